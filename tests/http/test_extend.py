"""A new parameter and a new endpoint take few changes: each is added to a copy of the server, which
is built and asked. The lists of changes below are whole, but for lines in PROTOCOL.md."""

import concurrent.futures
import os
import pathlib
import shutil
import sys

import pytest

import daemon as gemmd

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from build_tree import BuildTree, run  # noqa: E402

# (file, a line that is there, what is put before it)
PARAMETER = [
    (
        "server/request/params.h",
        '    OWN(const struct gm_gpu *, gpu, "gpu"',
        '    OWN(uint64_t, height, "height", GM_PARAM_OF_ALL, count, 1000, "from 1 to 1000") \\\n',
    ),
    (
        "server/api/operate.c",
        "    return status == GM_OK ? gm_operation_memory(plan,",
        "    if (status == GM_OK && params->height > 0 && params->height != plan->op.result.rows)\n"
        '        return gm_fail(err, GM_BAD_SHAPE, "the result has not %d rows", (int)params->height);\n',
    ),
]
ENDPOINT = [
    (
        "server/api/routes.h",
        '    X("/healthz", gm_handle_healthz, true, GM_OF_PROBE)',
        '    X("/v1/motto", gm_handle_motto, false, GM_OF_ANY) \\\n',
    ),
    (
        "server/api/health.c",
        "enum gm_progress gm_handle_healthz(",
        "enum gm_progress gm_handle_motto(struct gm_request *r)\n{\n"
        '    return gm_request_reply(r, "text/plain", strdup("prove, then time\\n"));\n}\n\n',
    ),
]
CURL_FORM = {"Content-Type": "application/json"}


def test_few_places():
    """Three with the line in PROTOCOL.md, and two."""
    assert len(PARAMETER) + 1 <= 3 and len(ENDPOINT) <= 2


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A gemmd with both."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "server", folder / "server")
    for name, before, text in PARAMETER + ENDPOINT:
        source = (folder / name).read_text()
        assert source.count("\n" + before) == 1, f"{name} has another form now"
        (folder / name).write_text(source.replace("\n" + before, "\n" + text + before))
    build = BuildTree(pathlib.Path(gemmd.BINARY).parents[1])

    def compile_one(number, source, words):
        path = source.relative_to(ROOT)
        words = [f"-I{folder}" if w == f"-I{ROOT}" else w for w in words if w != "-O2"]
        words[words.index("-o") + 1] = str(folder / f"{number}.o")
        words[words.index("-c") + 1] = str(folder / path)
        run([*words, f"-I{ROOT}"], cwd=build.folder / "server")
        return folder / f"{number}.o"

    sources = {s: words for s, words in build.compilations()
               if (ROOT / "server") in s.parents and "gemmd_server" in str(words) or
               s == ROOT / "server/main.c" and "/gemmd.dir/" in str(words)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda job: compile_one(job[0], *job[1]),
                                enumerate(sources.items())))
    words, where = build.link("server/gemmd")
    words = [w for w in words if not w.endswith(("main.c.o", "libgemmd_server.a"))]
    words[words.index("-o") + 1] = str(folder / "gemmd")
    run([words[0], *map(str, objects), *words[1:]], cwd=where)
    process = gemmd.Daemon("--backend", "cpu", binary=str(folder / "gemmd"))
    yield process
    process.stop()


def test_the_parameter(extended):
    with extended.client() as client:
        reply = client.post("/v1/transpose?height=2", b"[[1,2],[3,4]]", CURL_FORM)
        assert reply.status == 200
        reply = client.post("/v1/transpose?height=3", b"[[1,2],[3,4]]", CURL_FORM)
        assert reply.status == 422 and "3 rows" in reply.json()["detail"]
        reply = client.post("/v1/transpose?height=0", b"[[1,2],[3,4]]", CURL_FORM)
        assert reply.status == 400 and "from 1 to 1000" in reply.json()["detail"]
        reply = client.post("/v1/transpose?heigt=2", b"[[1,2],[3,4]]", CURL_FORM)
        assert reply.status == 400 and "'height'" in reply.json()["detail"]
        reply = client.post("/v1/transpose", b'{"a": [[1,2],[3,4]], "height": 5}', CURL_FORM)
        assert reply.status == 422


def test_the_endpoint(extended):
    with extended.client() as client:
        assert client.get("/v1/motto").ok().body == b"prove, then time\n"
        assert client.request("HEAD", "/v1/motto").status == 200
        reply = client.post("/v1/motto", b"", CURL_FORM)
        assert reply.status == 405 and "GET" in reply.header("Allow")
        assert "/v1/motto" in client.get("/nothing").json()["detail"]
