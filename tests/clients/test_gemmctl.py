"""gemmctl from outside: files and pipes of every format against NumPy, errors and their exit statuses, reports,
TLS, keys and Unix sockets, terminals."""

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

from gemmctl_world import (GEMMCTL, HERE, SLOW, answers, certificate, environment, front, gemmctl, on_terminal,
                           reply, server, url)  # noqa: F401
from daemon import Daemon
from jobs import Threads

ROOT = HERE.parent.parent


def good(*arguments, **keywords):
    status, out, errors = gemmctl(*arguments, **keywords)
    assert status == 0, (arguments, status, errors)
    return out


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def loaded(data):
    return np.load(io.BytesIO(data))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(int(os.environ.get("GM_SEED", "1")))
    a, b = rng.integers(-9, 9, (37, 23)).astype("f4"), rng.integers(-9, 9, (23, 41)).astype("f4")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    np.savetxt(tmp_path / "a.csv", a, "%g", ",")
    np.savetxt(tmp_path / "b.tsv", b, "%g", "\t")
    (tmp_path / "a.json").write_text(json.dumps(a.tolist()))
    (tmp_path / "b.raw").write_bytes(b.tobytes())
    (tmp_path / "a.raw").write_bytes(a.tobytes())
    return a, b, tmp_path


# Expressions.


def test_expressions(url, files, tmp_path):
    a, b, folder = files
    out = good("eval", "2 * (x @ y) + k", f"x={folder}/a.npy", f"y={folder}/b.tsv", "k=1", url=url)
    assert np.array_equal(loaded(out), 2 * (a @ b) + 1)
    assert np.array_equal(loaded(good("eval", "x > 2", "x=-", url=url, stdin=npy(a))), a > 2)
    good("eval", "x.T", f"x={folder}/a.csv", "-o", tmp_path / "t.npy", url=url)
    assert np.array_equal(np.load(tmp_path / "t.npy"), a.T)
    assert json.loads(good("eval", "1 + 1", "--json", url=url))["data"] == [[2]]


def test_expressions_of_matrices_that_the_daemon_keeps(url, files):
    a, b, folder = files
    good("put", "w", folder / "a.npy", url=url)
    assert b"w2: 37x23 f32" in good("eval", "w * 2", "--keep", "w2", url=url)
    assert np.array_equal(loaded(good("eval", "w2 - v", "v=ref:w", url=url)), a)
    assert b"elementwise(w)" in good("eval", "w + 1", "-p", "explain=plan", url=url)
    good("delete", "w", "w2", url=url)


@pytest.mark.parametrize("arguments, status, words", [
    (["x +"], 1, "character 4"), (["q * 2"], 1, "q is no operand"), ([], 2, "takes an expression"),
    (["x", "x"], 2, "NAME=FILE"), (["x", "x=/nowhere.npy"], 6, "nowhere"), (["x"] + ["y=1"] * 17, 2, "at most 16"),
])
def test_expressions_that_are_wrong(url, arguments, status, words):
    got, _, errors = gemmctl("eval", *arguments, url=url)
    assert got == status and words in errors, (got, errors)


# Files and pipes.


@pytest.mark.parametrize("left", ["a.npy", "a.csv", "a.json", "a.raw"])
@pytest.mark.parametrize("right", ["b.npy", "b.tsv", "b.raw"])
def test_products_of_files(url, files, left, right):
    a, b, folder = files
    shapes = ["--shape-a", "37x23"] if left.endswith("raw") else []
    shapes += ["--shape-b", "23x41"] if right.endswith("raw") else []
    good("matmul", folder / left, folder / right, *shapes, "-o", folder / "c.npy", url=url)
    assert np.array_equal(np.load(folder / "c.npy"), a @ b)


def test_every_operation(url, files):
    a, b, folder = files
    assert np.array_equal(loaded(good("transpose", folder / "a.npy", url=url)), a.T)
    assert np.array_equal(loaded(good("flip", folder / "a.npy", url=url)), a[:, ::-1])
    assert np.array_equal(loaded(good("add", folder / "a.npy", folder / "a.npy", url=url)), a + a)
    np.save(folder / "c.npy", a @ b)
    got = loaded(good("matmul", folder / "a.npy", folder / "b.npy", folder / "c.npy", "--alpha", "2",
                      "--beta", "-1", "-k", "naive", url=url))
    assert np.array_equal(got, 2 * (a @ b) - a @ b)
    got = loaded(good("matmul", folder / "b.npy", folder / "a.npy", "--transa", "--transb", url=url))
    assert np.array_equal(got, b.T @ a.T)


def test_pipes_and_formats(url, files):
    a, b, folder = files
    both = npy(a) + npy(b)
    assert np.array_equal(loaded(good("matmul", "-", stdin=both, url=url)), a @ b)
    assert good("transpose", "-", stdin=b"[[1,2],[3,4]]", url=url).startswith(b'{"shape":[2,2]')
    assert good("transpose", "-", stdin=b"1;2\n3;4\n", url=url) == b"1,3\n2,4\n"
    assert good("transpose", "-", "--to", "raw", stdin=npy(a), url=url) == a.T.tobytes()
    assert good("flip", "-", "-s", "37x23", stdin=a.tobytes(), url=url) == a[:, ::-1].tobytes()
    out = good("add", folder / "a.csv", "-", stdin=b"1", url=url)
    assert np.array_equal(np.loadtxt(io.BytesIO(out), delimiter=","), a + 1)
    assert good("matmul", "-", stdin=b'{"a": [[2]], "b": [[3]]}', url=url).count(b"[[6]]") == 1
    # --shape is of raw operands alone.
    (folder / "raw").write_bytes(a.tobytes())
    assert np.array_equal(loaded(good("add", folder / "a.npy", folder / "raw", "-s", "37x23", url=url)), 2 * a)
    # Without an end that is known: a pipe that is written to piece by piece.
    command = f"(head -c 100 {folder}/a.npy; sleep 0.2; tail -c +101 {folder}/a.npy) | {GEMMCTL} flip - -u {url}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment(), timeout=60)
    assert np.array_equal(loaded(done.stdout), a[:, ::-1]), done.stderr
    # A name that tells nothing: the first bytes do.
    shutil.copy(folder / "a.npy", folder / "noname")
    assert np.array_equal(loaded(good("transpose", folder / "noname", url=url)), a.T)


def test_suffix_of_the_result(url, files):
    a, _, folder = files
    for name in ("t.csv", "t.json", "t.raw", "t.NPY"):
        good("transpose", folder / "a.npy", "-o", folder / name, url=url)
    assert np.array_equal(np.loadtxt(folder / "t.csv", delimiter=","), a.T)
    assert json.loads((folder / "t.json").read_text())["data"] == a.T.tolist()
    assert (folder / "t.raw").read_bytes() == a.T.tobytes()
    assert np.array_equal(np.load(folder / "t.NPY"), a.T)
    status, _, errors = gemmctl("transpose", folder / "a.npy", "-o", folder / "t.svg", url=url)  # of a report alone
    assert status == 2 and "t.svg: a matrix cannot be written as svg" in errors and not (folder / "t.svg").exists()


def test_result_is_whole_or_absent(url, files):
    a, _, folder = files
    target = folder / "t.npy"
    target.write_bytes(b"before")
    os.chmod(target, 0o640)
    assert gemmctl("matmul", folder / "a.npy", folder / "a.npy", "-o", target, url=url)[0] == 1
    assert target.read_bytes() == b"before"
    (folder / "link.npy").symlink_to(target)
    good("transpose", folder / "a.npy", "-o", folder / "link.npy", url=url)
    assert (folder / "link.npy").is_symlink() and np.array_equal(np.load(target), a.T)
    assert target.stat().st_mode & 0o777 == 0o640
    good("transpose", target, "-o", target, url=url)  # onto itself
    assert np.array_equal(np.load(target), a)
    assert sorted(p.name for p in folder.iterdir() if "t.npy" in p.name) == ["t.npy"]
    assert gemmctl("transpose", folder / "a.npy", "-o", "/dev/full", url=url)[0] == 6
    with open("/dev/full", "wb") as full:
        done = subprocess.run([GEMMCTL, "stats", "-u", url], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 6 and b"No space left" in done.stderr
    with open("/dev/full", "wb") as full:  # of more than a buffer holds
        done = subprocess.run([GEMMCTL, "explain", "transpose", "--to", "svg", "-u", url], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 6 and b"standard output" in done.stderr
    done = subprocess.run(["sh", "-c", f"{GEMMCTL} explain transpose --to svg -u {url} | head -c 1"], capture_output=True)
    assert len(done.stdout) == 1 and done.stderr == b""
    late = f"(sleep 0.2; {GEMMCTL} flip {target} -u {url}; echo $? >&2) | true"  # it writes to nobody
    assert subprocess.run(["sh", "-c", late], capture_output=True).stderr == b"6\n"


def test_account(url, files):
    _, _, folder = files
    target = folder / "t.npy"
    account = json.loads(good("transpose", folder / "a.npy", "-o", target, "--json", url=url))
    assert account["op"] == "transpose" and account["shapes"]["result"] == [23, 37]
    status, out, errors = gemmctl("transpose", folder / "a.npy", "-o", target, "-v", url=url)
    assert status == 0 and out == b"" and re.match(r"transpose by \w+ on cpu:0: [\d.]+ [mu]?s \(", errors)
    assert gemmctl("transpose", folder / "a.npy", "-o", target, url=url)[1:] == (b"", "")
    assert json.loads(good("transpose", folder / "a.csv", "--json", url=url))["stats"]["op"] == "transpose"


# Errors.


def test_exit_statuses(url, server, files, tmp_path):
    _, _, folder = files
    a = folder / "a.npy"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    noise = folder / "noise"
    noise.write_bytes(bytes(range(256)))
    np.savez(folder / "both.npz", a=np.ones(3))
    expected = [
        (1, ["matmul", a, a], url, "(bad_shape)"),
        (1, ["transpose", a, "-p", "kernle=naive"], url, "(unknown_parameter)"),
        (1, ["transpose", a, "-k", "nope"], url, "gemmctl kernels"),
        (1, ["transpose", a, "-d", "tpu"], url, "gemmctl devices"),
        (2, ["transpos", a], url, "the nearest is transpose"),
        (2, ["transpose"], url, "takes one file"),
        (2, ["transpose", a, a], url, "takes one file"),
        (2, ["matmul", "-", "-"], url, "one operand only"),
        (2, ["transpose", a, "--to", "xml"], url, "xml"),
        (2, ["transpose", a, "--from", "svg"], url, "svg"),
        (2, ["transpose", a, "--to", "svg"], url, "svg"),
        (2, ["transpose", a, "--frobnicate"], url, "--help"),
        (2, ["transpose", a, "-p", "kernel"], url, "NAME=VALUE"),
        (2, ["transpose", noise], url, "--from FORMAT"),
        (2, ["transpose", folder / "a.raw"], url, "--shape"),
        (2, ["bench", "invert"], url, "transpose, matmul, add or flip"),
        (2, ["bench", "matmul", "-s", "12y12"], url, "12y12"),
        (2, ["bench", "matmul", "--duration", "soon"], url, "a time"),
        (2, ["explain"], url, "wants an operation"),
        (2, ["compare", "transpose"], url, "compare transpose takes the file of its operand"),
        (2, ["compare", "matmul"], url, "compare matmul takes the files of its operands"),
        (2, ["explain", "transpose", a, a], url, "takes no file, or the file of its operand"),
        (2, ["explain", "copy", a], url, "explain copy takes no file\n"),
        (2, ["choose", "flip", a], url, "choose flip takes no file; --shape says how large"),
        (2, ["choose", "copy"], url, "choose wants an operation"),
        (2, ["choose", "flip", "--to", "svg"], url, "choose takes no --to; --json asks for JSON"),
        (2, ["stats", "--url", ""], url, "--url: '' is not a URL"),
        (2, ["explain", "flip", "--to", "npy"], url, "text, svg and json"),
        (2, ["stats"], "gopher://x", "http://"),
        (2, [], url, "--help"),
        (3, ["stats"], nobody, "is gemmd running"),
        (3, ["stats"], "unix:/nonexistent.sock", "is gemmd running"),
        (6, ["transpose", folder / "none.npy"], url, "No such file"),
        (6, ["matmul", a, "weights"], url, "weights: No such file or directory; a matrix that the daemon keeps is ref:weights\n"),
        (2, ["put", "9", a], url, "9 is no name of a matrix: a name has letters"),
        (2, ["transpose", folder / "both.npz"], url, "both.npz is a zip archive, as .npz files are"),
        (6, ["transpose", folder], url, "is a folder"),
        (6, ["transpose", a, "-o", folder / "no" / "t.npy"], url, "No such file"),
        (6, ["stats", "--key-file", folder / "none"], url, "No such file"),
        (6, ["stats", "--key-file", "/dev/null"], url, "no key"),
        (3, ["stats"], url.replace("http", "https"), "If not, the URL begins with http://"),
        (2, ["flip", "-"], url, "- is empty"),
    ]
    for status, arguments, where, words in expected:
        got, out, errors = gemmctl(*arguments, url=where)
        assert got == status and words in errors and out == b"", (arguments, got, errors)
        assert errors.startswith("gemmctl: ") or "--frobnicate" in arguments
    told = {"code": "queue_full", "detail": "the queue is full", "request_id": "r-5"}
    for http, status in ((503, 4), (429, 4), (500, 5), (403, 7), (418, 1)):
        with front(server, told=(http, {"Retry-After": "3"}, told)) as there:
            got, _, errors = gemmctl("stats", url=there.url)
            assert got == status and "the queue is full (queue_full)" in errors, errors
            assert "try again in 3 s" in errors and "request id r-5" in errors
    with front(server, pause=2) as there:
        started = time.monotonic()
        assert gemmctl("stats", "-m", "200ms", url=there.url)[0] == 4
        assert time.monotonic() - started < 1.5 * SLOW
        for little in ("0.4ms", "0.0004"):  # no limit is 0 ms, and this is not
            assert gemmctl("stats", "-m", little, url=there.url)[0] == 4
    # Every refusal has its id, which the log has too.
    errors = gemmctl("matmul", a, a, url=url)[2]
    assert re.search(r"request id ([0-9a-f]{32})", errors).group(1) in server.log()


def test_advice_is_in_options(url, files):
    _, _, folder = files
    np.save(folder / "nan.npy", np.array([[1, np.nan]], "f4"))
    np.save(folder / "complex.npy", np.ones((2, 2), "c8"))
    for arguments, advice in ((("nan.npy", "--to", "json"), "--to npy, or --nonfinite null"),
                              (("complex.npy", "--to", "csv"), "--to npy"),
                              (("a.npy", "--from", "csv"), "--from FORMAT")):
        status, _, errors = gemmctl("flip", folder / arguments[0], *arguments[1:], url=url)
        assert status == 1 and f"in gemmctl that is {advice}" in errors, errors
    (folder / "bad.csv").write_text("1,x\n")
    assert "in gemmctl" not in gemmctl("flip", folder / "bad.csv", url=url)[2]
    good("flip", folder / "nan.npy", "--to", "json", "--nonfinite", "null", url=url)


@pytest.mark.parametrize("arguments, option", [
    (("kernels", "-o", "k.txt"), "--output"), (("devices", "-o", "d.json"), "--output"),
    (("bench", "transpose", "a.npy", "-n", "5", "-o", "x.json"), "--output"), (("devices", "-t", "json"), "--to"),
    (("put", "w", "a.npy", "-o", "x"), "--output"), (("stats", "-f", "csv"), "--from"),
    (("get", "w", "-f", "csv"), "--from"), (("flip", "a.npy", "-n", "5"), "--requests"),
    (("list", "--retry", "1s"), "--retry"), (("top", "--rate", "5"), "--rate"), (("key", "list", "-t", "json"), "--to"),
    (("transpose", "a.npy", "--quota", "jobs=4"), "--quota"),
])
def test_options_that_a_command_does_not_take(url, files, arguments, option, monkeypatch):
    monkeypatch.chdir(files[2])
    before = sorted(os.listdir())
    status, out, errors = gemmctl(*arguments, url=url)
    assert status == 2 and out == b"" and f"{arguments[0]} takes no {option}" in errors
    assert sorted(os.listdir()) == before


def test_json_errors(url, files):
    _, _, folder = files
    status, out, errors = gemmctl("matmul", folder / "a.npy", folder / "a.npy", "--json", url=url)
    document = json.loads(errors)
    assert status == 1 and out == b""
    assert document["code"] == "bad_shape" and document["http"] == 422 and document["exit"] == 1
    assert "rows of b (37)" in document["detail"] and len(document["request_id"]) == 32


# Reports and figures.


def test_reports(url, files):
    _, _, folder = files
    text = good("compare", "matmul", folder / "a.npy", folder / "b.npy", "--repeat", "1", url=url).decode()
    assert re.search(r"^naive .*\d", text, re.M) and re.search(r"^blocked .*\d", text, re.M)
    rows = json.loads(good("compare", "flip", folder / "a.csv", "--json", "-k", "naive", url=url))["rows"]
    assert any(row["kernel"] == "naive" and row["error"]["verdict"] == "exact" for row in rows)
    assert b"32-way" in good("explain", "transpose", "-k", "tiled", url=url)
    assert b"<svg" in good("explain", "transpose", "-k", "tiled", "--to", "svg", url=url)
    assert b"auto takes" in good("choose", "matmul", "-s", "64x64", "--gpu", "h200", url=url)
    assert "kernel" in json.loads(good("choose", "flip", "--dtype", "u8", "--json", url=url))
    good("explain", "copy", "-s", "64x64", "-o", folder / "x.json", url=url)
    assert json.loads((folder / "x.json").read_text())["op"] == "copy"
    good("explain", "matmul", folder / "a.npy", folder / "b.npy", "-o", folder / "x.svg", url=url)
    assert "<svg" in (folder / "x.svg").read_text()
    good("compare", "transpose", folder / "a.npy", "-o", folder / "y.svg", url=url)
    assert "<svg" in (folder / "y.svg").read_text()
    assert b"<svg" in good("compare", "transpose", folder / "a.npy", "--to", "svg", url=url)
    for command in (("explain", "transpose"), ("compare", "transpose", folder / "a.npy")):
        for suffix in ("npy", "csv", "raw"):
            status, _, errors = gemmctl(*command, "-o", folder / f"z.{suffix}", url=url)
            assert status == 2 and f"cannot be written as {suffix}" in errors
            assert not (folder / f"z.{suffix}").exists()
        good(*command, "-o", folder / "z.npy", "--to", "text", url=url)  # asked for
        (folder / "z.npy").unlink()


def test_figures(url):
    kernels = good("kernels", url=url).decode().splitlines()
    assert kernels[0].split()[:3] == ["op", "kernel", "devices"] and len(kernels) > 20
    flips = good("kernels", "flip", url=url).decode().splitlines()
    assert len(flips) > 1 and all(line.startswith("flip ") for line in flips[1:])
    names = {k["name"] for k in json.loads(good("kernels", "--json", url=url))["kernels"]}
    assert {line.split()[1] for line in kernels[1:]} == names
    of_flip = json.loads(good("kernels", "flip", "--json", url=url))["kernels"]
    assert [(k["op"], k["name"]) for k in of_flip] == [tuple(line.split()[:2]) for line in flips[1:]]
    devices = good("devices", url=url).decode()
    assert re.search(r"^cpu:0 +cpu +yes ", devices, re.M) and re.search(r"^sim:0 +sim ", devices, re.M)
    stats = good("stats", url=url).decode()
    assert re.search(r"^answered./v1/kernels +\d+$", stats, re.M) and "limits" not in stats
    assert "limits" in json.loads(good("stats", "--json", url=url))
    assert gemmctl("stats", "extra", url=url)[0] == 2


def test_bench(url, files, server):
    _, _, folder = files
    before = json.loads(good("stats", "-j", url=url))["answered"]["/v1/add"]
    closed = json.loads(good("bench", "add", "-n", "50", "-c", "3", "-s", "8x8", "--json", url=url))
    assert closed["loop"] == "closed" and closed["sent"] == closed["good"] == 50 and not closed["failures"]
    after = json.loads(good("stats", "-j", url=url))["answered"]["/v1/add"]
    assert after - before == 51  # and the one that is sent to see whether all is well
    latency = [closed["latency_us"][name] for name in ("min", "p50", "p90", "p99", "max")]
    assert latency == sorted(latency) and latency[0] > 0
    text = good("bench", "matmul", folder / "a.npy", folder / "b.npy", "-n", "20", url=url).decode()
    assert "20 answered well" in text and "p99.9" in text
    assert gemmctl("bench", "matmul", folder / "a.npy", folder / "a.npy", "-n", "20", url=url)[0] == 1
    for flags, shape_b in (((), "3x2"), (("--transb",), "2x3"), (("--transa",), "2x3"), (("-p", "transb=0"), "3x2"),
                           (("--transa", "--transb"), "3x2")):
        said = json.loads(good("bench", "matmul", "-n", "2", "-s", "2x3", *flags, "--json", url=url))
        assert said["good"] == 2 and said["operands"] == f"2x3 and {shape_b} f32", said
    assert b"4x2x3 and 4x2x3" in good("bench", "matmul", "-n", "2", "-s", "4x2x3", "--transb", url=url)
    for dtype in ("f16", "bf16", "f64", "i32", "i64"):
        assert b"2 answered well" in good("bench", "matmul", "-n", "2", "-s", "9x5", "--dtype", dtype, url=url)


def test_open_loop_counts_from_when_it_was_due(server):
    """A server that takes 0.2 s, asked by one connection 20 times a second for a second: of the 20 requests five are
    sent, and the others would wait for longer and longer."""
    with front(server, pause=0.2) as there:
        said = json.loads(good("bench", "flip", "-s", "2x2", "-c", "1", "--rate", "20", "--duration", "1s",
                               "--json", url=there.url))
    assert said["loop"] == "open" and said["sent"] + said["unsent"] == 20 and 3 <= said["sent"] <= 6
    assert said["service_us"]["p50"] < said["latency_us"]["p50"]
    assert said["service_us"]["p50"] > 200e3 * 0.99
    assert said["latency_us"]["max"] > 600e3


def test_bench_counts_failures(server):
    told = {"code": "queue_full", "detail": "the queue is full", "request_id": "r-5"}
    with front(server, told=(503, {"Retry-After": "1"}, told)) as there:
        status, out, _ = gemmctl("bench", "flip", "-s", "2x2", "-n", "10", "--json", url=there.url)
    assert status == 4 and json.loads(out)["failures"] == {"queue_full": 10}


def test_bench_adds_up_the_failures_of_connections():
    """Ended without a reply, no HTTP, and nobody there: of one name."""
    with answers(reply(b"x"), reply(b"x"), b"", b"SSH-2.0-hello\r\n") as (url, heads):
        status, out, _ = gemmctl("bench", "flip", "-s", "2x2", "-n", "5", "-c", "1", "--json", url=url)
    said = json.loads(out)
    assert status == 3 and len(heads) == 4
    assert said["good"] == 1 and said["failures"] == {"connection": 4}, said


def test_bench_of_matrices_that_the_daemon_keeps(url, files):
    """Standard input is no operand."""
    a, b, folder = files
    good("put", "v", folder / "a.npy", url=url)
    good("put", "w", folder / "b.npy", url=url)
    for operands in ((folder / "a.npy", "ref:w"), ("ref:v", folder / "b.npy"), ("ref:v", "ref:w")):
        out = good("bench", "matmul", *operands, "-n", "5", "--json", url=url, stdin=npy(a))
        said = json.loads(out)
        assert said["good"] == 5 and said["operands"] == " and ".join(map(str, operands)), said
        assert said["received_bytes_per_s"] > 0
    good("delete", "v", "w", url=url)


def test_top_elsewhere_than_on_a_terminal(url):
    text = good("top", "-n", "2", "-i", "50ms", url=url).decode()
    assert text.count("gemmd 0.") == 2 and "cpu:0" in text and "\033" not in text
    lines = good("top", "-n", "2", "-i", "50ms", "--json", url=url).splitlines()
    assert [json.loads(line)["draining"] for line in lines] == [False, False]


# Keys, TLS and sockets.


def test_key(server, url, tmp_path):
    (tmp_path / "key").write_text("id.secret\n")
    with front(server, key="id.secret") as there:
        status, _, errors = gemmctl("stats", url=there.url)
        assert status == 7 and "--key-file" in errors and "r-9" in errors
        good("stats", "--key-file", tmp_path / "key", url=there.url)
        good("stats", url=there.url, env={"GEMMD_KEY": "id.secret"})
        good("stats", url=there.url, env={"GEMMD_KEY_FILE": str(tmp_path / "key")})
        good("stats", "--key-file", tmp_path / "key", url=there.url, env={"GEMMD_KEY": "wrong"})
        good("stats", env={"GEMMD_KEY": "id.secret", "GEMMD_URL": there.url})
        assert there.heads[0].get("Authorization") is None
    status, _, errors = gemmctl("stats", url=url, env={"GEMMD_KEY": "two words"})
    assert status == 2 and "two words" not in errors  # a key is not shown


def test_key_file_that_is_being_written(tmp_path):
    """As by the shell: GEMMD_KEY_FILE=f gemmctl key new bob >f"""
    keys, mine = tmp_path / "keys", tmp_path / "f"
    mine.write_text("")
    env = {"GEMMD_KEY_FILE": str(mine), "GEMMD_URL": "ftp://nowhere"}
    assert len(good("key", "new", "bob", "--keys", keys, env=env).strip()) == 16 + 1 + 64
    assert b"bob" in good("key", "list", "--keys", keys, "--key-file", tmp_path / "none", env=env)


@pytest.mark.parametrize("count", [511, 512, 1100])
def test_every_key_is_listed(tmp_path, count):
    keys = tmp_path / "keys"
    good("key", "new", "k0", "--keys", keys)
    line = keys.read_text()
    keys.write_text("".join(line.replace("k0 ", f"k{i} ") for i in range(count)))
    listed = [row.split()[0] for row in good("key", "list", "--keys", keys).decode().splitlines()]
    assert [name for name in listed if name != "name"] == [f"k{i}" for i in range(count)]
    assert [key["name"] for key in json.loads(good("key", "list", "--keys", keys, "--json"))] == [
        f"k{i}" for i in range(count)]
    with open(keys, "a") as file:
        file.write("nonsense\n")
    status, out, errors = gemmctl("key", "list", "--keys", keys)
    assert status == 6 and f"line {count + 1}" in errors and out.count(b"\nk") == count
    assert gemmctl("key", "list", "--keys", keys, "--json")[:2] == (6, b"")


def test_tls(server, tmp_path, files):
    a, _, folder = files
    tls = certificate(tmp_path)
    with front(server, tls=tls, key="k") as there:
        env = {"GEMMD_KEY": "k"}
        status, _, errors = gemmctl("stats", url=there.url, env=env)
        assert status == 3 and "--ca" in errors and not there.heads  # no key goes to who is not trusted
        out = good("transpose", folder / "a.npy", "--ca", tls[0], url=there.url, env=env)
        assert np.array_equal(loaded(out), a.T)
        good("stats", url=there.url, env={**env, "GEMMD_CA": str(tls[0])})
        other = there.url.replace("localhost", "127.0.0.1")  # which is not the certificate's name
        assert gemmctl("stats", "--ca", tls[0], url=other, env=env)[0] == 3
        assert gemmctl("stats", "--ca", folder / "none.pem", url=there.url, env=env)[0] == 6


def test_unix_socket(server, tmp_path, files):
    a, _, folder = files
    path = tmp_path / "a b.sock"
    with front(server, unix=path) as there:
        quoted = str(path).replace("/", "%2F").replace(" ", "%20")
        for where in (f"unix:{path}", f"unix://{path}", f"http+unix://{quoted}"):
            assert np.array_equal(loaded(good("transpose", folder / "a.npy", url=where)), a.T)
        good("stats", "--unix-socket", path)
        assert len(there.heads) == 4
    # The path is that of a socket nobody listens on now. The host of a URL beside it was not asked.
    missing = tmp_path / "none.sock"
    for arguments in (("--unix-socket", path, "-u", "127.0.0.1:1"), ("-u", f"unix:{path}")):
        status, _, errors = gemmctl("stats", *arguments)
        assert status == 3 and f"the socket {path}: Connection refused" in errors and "127.0.0.1" not in errors
    status, _, errors = gemmctl("flip", folder / "a.npy", "--unix-socket", missing)
    assert status == 3 and f"the socket {missing}: No such file or directory" in errors


def test_environment_is_read_by_nobody_else(server, url):
    """The library takes no proxy, CA or key from the environment."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        good("stats", url=url, env={name: "http://127.0.0.1:1", "no_proxy": "", "NO_PROXY": ""})
    assert gemmctl("stats", "--proxy", "http://127.0.0.1:1", url=url)[0] == 3


# Terminals.


def test_terminal_gets_no_bytes_but_colours(url, files):
    _, _, folder = files
    status, seen = on_terminal("transpose", folder / "a.npy", "-u", url)
    assert status == 0 and b"NUMPY" not in seen and seen.count(b"\n") == 23
    status, seen = on_terminal("kernels", "flip", "-u", url)
    assert status == 0 and b"\033[1m" in seen
    for extra, env in (([], {"NO_COLOR": "1"}), (["--color", "never"], {}), ([], {"TERM": "dumb"})):
        assert b"\033" not in on_terminal("kernels", "flip", "-u", url, *extra, env=env)[1]
    assert b"\033[1m" in good("kernels", "flip", "--color", "always", url=url)
    # What a server says does not command the terminal.
    status, seen = on_terminal("transpose", folder / "a.npy", "-u", url, "-k", "\033[2J")
    assert status == 1 and b"\033[2J" not in seen


def test_progress_only_on_a_terminal(server, files):
    _, _, folder = files
    target = folder / "t.npy"
    with front(server, pause=1.2) as there:
        arguments = ["transpose", folder / "a.npy", "-o", target, "-u", there.url]
        status, seen = on_terminal(*arguments)
        assert status == 0 and b"[####" in seen and seen.rstrip().endswith(b"copy")  # the bar goes, a summary stays
        assert b"[####" not in on_terminal(*arguments, "-q")[1]
        assert gemmctl(*arguments)[1:] == (b"", "")


def test_top_on_a_terminal(url):
    status, seen = on_terminal("top", "-u", url, "-i", "100ms", keys=b"q", until=b"a second")
    assert status == 0
    assert seen.startswith(b"\033[?1049h") and seen.rstrip().endswith(b"\033[?1049l")  # left as it was
    assert b"cpu:0" in seen and b"q ends" in seen
    status, seen = on_terminal("top", "-u", "http://127.0.0.1:1")
    assert status == 3 and b"\033[?1049h" not in seen


def test_top_says_on_the_ordinary_screen_why_it_ended():
    document = reply(b"{}")
    for replies, status, words in (([document] * 4, 3, b"is gemmd running there?"),
                                   ([document] * 4 + [b"SSH-2.0-hello\r\n"], 5, b"gemmctl:"),
                                   ([document] * 4 + [reply(b"<html>")], 5, b"is not JSON")):
        with answers(*replies) as (url, _):
            got, seen = on_terminal("top", "-u", url, "-i", "50ms", "--color", "never")
        screen, left, after = seen.partition(b"\033[?1049l")
        assert got == status and left and b"q ends" in screen, seen
        assert words in after and b"gemmctl:" not in screen, seen


def test_retry_does_nothing_twice():
    """What is kept may have replaced its own operand when the connection broke; any other result is the same."""
    kept = reply(b'{"shape": [2, 2], "dtype": "f32"}', "Content-Type: application/json")
    with answers(b"", kept) as (url, heads):
        assert gemmctl("flip", "ref:w", "--keep", "w", "--retry", "10s", url=url)[0] == 3
        assert gemmctl("flip", "ref:w", "--keep", "w", url=url)[0] == 0
    assert len(heads) == 2
    with answers(b"", reply(b"x")) as (url, heads):
        assert good("flip", "ref:w", "--retry", "10s", url=url) == b"x"
    assert len(heads) == 2
    said = b'{"status": 503, "code": "queue_full", "detail": "d", "request_id": "r"}'
    fields = "HTTP/1.1 503 S\r\nRetry-After: 1\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n"
    refused = (fields % ("Content-Type: application/problem+json\r\n", len(said))).encode() + said
    with answers(refused, kept) as (url, heads):  # it was not done
        good("eval", "w + w", "--keep", "w", "--retry", "20s", url=url)
    assert len(heads) == 2
    with answers((fields % ("", 0)).encode(), kept) as (url, heads):  # a proxy's, which may have lost the reply
        assert gemmctl("eval", "w + w", "--keep", "w", "--retry", "20s", url=url)[0] != 0
        good("eval", "w + w", "--keep", "w", url=url)


def test_retry(files):
    """Its device is lost, it ends, and is started again a second later: one call that knows of nothing."""
    fake = os.environ.get("GEMMD_FAKE_BIN", "")
    assert os.access(fake, os.X_OK), f"set GEMMD_FAKE_BIN to gemmd_fake; {fake!r} is none"
    first = Daemon("--drain-timeout", "1s", binary=fake, env={"FAKE_LOSE_AT": "1"})
    a, _, folder = files
    url, port, out = first.url(""), first.port, folder / "out.npy"
    command = ("transpose", folder / "a.npy", "-o", out, "--kernel", "naive")
    results = Threads()
    results.go(lambda: gemmctl(*command, "--retry", "30s", url=url))
    assert first.wait() == 1
    assert gemmctl(*command, url=url)[0] == 3
    time.sleep(1)
    second = Daemon("--listen", f"127.0.0.1:{port}", listen=False)
    try:
        (status, _, said), = results.join()
        assert status == 0 and "once more in" in said, said
        assert np.array_equal(np.load(out), a.T)
    finally:
        second.stop()
        second.kill()
    began = time.monotonic()
    again, once = gemmctl(*command, "--retry", "500ms", "-q", url=url), gemmctl(*command, "-q", url=url)
    # libcurl says how long a connection took.
    assert again[:2] == once[:2] and re.sub(r"\d+ ms", "", again[2]) == re.sub(r"\d+ ms", "", once[2])
    assert 0.2 < time.monotonic() - began < 5 * SLOW, "it ends when it should"


def test_interrupt(server, files):
    _, _, folder = files
    with front(server, pause=20) as there:
        process = subprocess.Popen([GEMMCTL, "transpose", folder / "a.npy", "-o", folder / "t.npy", "-u", there.url],
                                   env=environment(), stderr=subprocess.PIPE)
        while not there.heads:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(15 * SLOW) == 130
    assert not [p.name for p in folder.iterdir() if p.name.startswith("t.npy")]


@pytest.mark.parametrize("command", [("stats",), ("list",), ("kernels",), ("devices",), ("top", "-n", "1")])
def test_interrupt_of_a_wait(server, command):
    with front(server, pause=20) as there:
        process = subprocess.Popen([GEMMCTL, *command, "-u", there.url], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not there.heads:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(15 * SLOW) == 130


def test_interrupt_of_bench(server):
    """What was measured is said, and no thread sleeps on."""
    with front(server) as there:
        process = subprocess.Popen([GEMMCTL, "bench", "flip", "-s", "2x2", "--rate", "5", "--duration", "1h", "--json",
                                    "-u", there.url], env=environment(), stdout=subprocess.PIPE)
        while len(there.heads) < 4:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=5 * SLOW)
    assert process.returncode == 130 and json.loads(out)["good"] >= 2


# Documents.


def documented_options():
    text = good("--help").decode()
    return set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.M))


@pytest.mark.parametrize("path", ["completions/gemmctl.bash", "completions/_gemmctl", "completions/gemmctl.fish",
                                  "man/gemmctl.1"])
def test_every_option_and_command_is_described(path):
    text = (ROOT / "clients/c" / path).read_text()
    options = documented_options()
    assert len(options) > 30
    patterns = {"gemmctl.fish": r"^complete.* -l ([a-z-]+)", "gemmctl.1": r"Fl -([a-z-]+)"}
    described = set(re.findall(patterns.get(path.split("/")[1], r"--([a-z-]+)"), text, re.M))
    assert options == described
    for command in re.findall(r"^  ([a-z]+) ", good("--help").decode().split("Options:")[0], re.M):
        assert re.search(rf"\b{command}\b", text), command


def test_completions_work(url):
    def completed(line):
        words = line.split(" ")
        script = (f"source {ROOT}/clients/c/completions/gemmctl.bash; COMP_WORDS=({' '.join(map(repr, words))}); "
                  f"COMP_CWORD={len(words) - 1}; _gemmctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        path = f"{GEMMCTL.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                              env=environment(GEMMD_URL=url, PATH=path))
        return done.stdout.split()

    assert completed("gemmctl tr") == ["transpose"]
    assert completed("gemmctl compare ma") == ["matmul"]
    assert completed("gemmctl flip --from n") == ["npy"]
    assert "--shape-b" in completed("gemmctl matmul --shape")
    assert completed("gemmctl flip a.npy --device c") == ["cpu:0"]
    assert "naive" in completed("gemmctl flip a.npy --kernel n")
    for shell, option, name in (("zsh", "-n", "_gemmctl"), ("fish", "-n", "gemmctl.fish")):
        if shutil.which(shell):
            subprocess.run([shell, option, ROOT / "clients/c/completions" / name], check=True)


def test_man_pages():
    pages = [*sorted((ROOT / "clients/c/man").glob("*.[13]")), ROOT / "server/gemmd.1"]
    assert len(pages) > 5
    header = "".join((ROOT / "clients/c/include" / name).read_text() for name in ("gemmd.h", "gemmd_http.h"))
    text = "".join(page.read_text() for page in pages)
    for function in re.findall(r"\b(gemmd_\w+)(?<!_fn)\(", header):
        assert re.search(rf"^\.(Nm|Fn|Fo) {function}\b", text, re.M), function
    if not shutil.which("mandoc"):
        pytest.skip("there is no mandoc")
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout, done.stdout


# Named matrices.


def test_named_matrices(url, files):
    a, b, folder = files
    assert good("put", "w", folder / "b.npy", url=url) == b"w: 23x41 f32\n"
    good("put", "x", folder / "a.raw", "--shape", "37x23", "--ttl", "1000", "-q", url=url)
    assert np.array_equal(loaded(good("get", "w", url=url)), b)
    assert np.array_equal(loaded(good("get", "w", "--rows", "2:5", "--cols", "7", url=url)), b[2:5, 7:8])
    good("get", "x", "-o", folder / "x.csv", url=url)
    assert np.array_equal(np.loadtxt(folder / "x.csv", delimiter=","), a)
    # Beside files, alone, as the second operand, and in reports.
    assert np.array_equal(loaded(good("matmul", folder / "a.npy", "ref:w", url=url)), a @ b)
    assert np.array_equal(loaded(good("matmul", "ref:x", "ref:w", url=url)), a @ b)
    assert np.array_equal(loaded(good("matmul", "ref:x", folder / "b.raw", "--shape", "23x41", "-t", "npy", url=url)), a @ b)
    np.save(folder / "c.npy", a @ b)
    got = good("matmul", folder / "a.npy", "ref:w", folder / "c.npy", "--beta", "-1", url=url)
    assert np.array_equal(loaded(got), 0 * (a @ b))
    assert b"naive" in good("compare", "transpose", "ref:x", url=url)
    assert good("matmul", "ref:x", "ref:w", "--keep", "y", url=url) == b"y: 37x41 f32\n"
    good("flip", "ref:y", "--keep", "y", "-o", folder / "f.npy", url=url)
    assert np.array_equal(np.load(folder / "f.npy"), (a @ b)[:, ::-1])
    assert np.array_equal(loaded(good("get", "y", url=url)), (a @ b)[:, ::-1])
    said = json.loads(good("put", "w", folder / "b.npy", "--json", url=url))
    assert said["name"] == "w" and said["shape"] == [23, 41]
    lines = good("list", url=url).decode().splitlines()
    assert [line.split()[0] for line in lines] == ["name", "w", "x", "y"] and "37x41" in lines[3]
    assert {json.loads(line)["name"] for line in good("list", "--json", url=url).splitlines()} == {"w", "x", "y"}
    good("delete", "w", "x", "y", url=url)
    assert len(good("list", url=url).splitlines()) == 1
    for arguments, status in ((("get", "w"), 1), (("delete", "w"), 1), (("flip", "ref:w"), 1), (("get", "a/b"), 2),
                              (("put", "w"), 2), (("get",), 2), (("delete",), 2), (("list", "w"), 2),
                              (("put", "9", folder / "a.npy"), 2), (("delete", "w", "--rows", "0:1"), 2), (("put", "w", folder / "none.npy"), 6)):
        assert gemmctl(*arguments, url=url)[0] == status, arguments
