"""What gemmctl takes from its command line and its environment, and what it says: names, numbers, suffixes, tables,
colours, advice. The servers here answer as they are told."""

import io
import json
import os
import re
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from gemmctl_world import GEMMCTL, answers, environment, front, gemmctl, on_terminal, reply, server, url  # noqa: F401

JSON = "Content-Type: application/json"


def told(document):
    return reply(json.dumps(document).encode(), JSON)


def listed(*pages):
    """What `list` prints of these pages of matrices."""
    parts = [{"matrices": matrices, **({"next": "/v1/matrices?after=x"} if i + 1 < len(pages) else {})}
             for i, matrices in enumerate(pages)]
    with answers(*map(told, parts)) as (url, heads):
        status, out, errors = gemmctl("list", url=url)
    assert status == 0 and len(heads) == len(pages), errors
    return out.decode()


@pytest.mark.parametrize("arguments, words", [
    (("stats", "--max-time", "0"), "0 is not a time"), (("bench", "flip", "-n", "-1"), "-1 is not a number above 0"),
    (("flip", "x", "-p", "=1"), "=1 is not NAME=VALUE"), (("flip", "x", *(["-p", "a=1"] * 65)), "more than 64 parameters"),
    (("top", "-k", "naive"), "top takes no parameters"), (("bench", "flip", "-s", "5"), "5 is no shape"),
    (("frobnicate",), "there is no command frobnicate; see gemmctl --help"),
    (("get", "team.7x"), "team.7x is no name of a matrix"),
    (("flip", "x", "--devise=cpu"), "the nearest is --device"), (("--frobnicate", "flip"), "see gemmctl --help"),
    (("flip", "x", "-Z"), "see gemmctl --help"),
])
def test_command_lines_that_are_wrong(arguments, words):
    status, out, errors = gemmctl(*arguments, url="http://127.0.0.1:1")
    assert status == 2 and not out and words in errors, errors


def test_as_much_as_there_may_be(tmp_path):
    """64 parameters are sent, and so is the name of an owner whatever it begins with."""
    with answers(reply(b"x"), reply(b"x")) as (url, heads):
        assert gemmctl("flip", "-", "-f", "csv", *(["-p", "a=1"] * 64), url=url, stdin=b"1\n")[0] == 0
        assert gemmctl("get", "7team.x", url=url)[0] == 0
    assert heads[0].count("a=1") == 64 and "GET /v1/matrices/7team.x " in heads[1]


def test_lists_of_several_pages():
    out = listed([{"name": "one"}], [{"name": "two"}])
    assert "one" in out and "two" in out
    out = listed([{"name": f"m{i}"} for i in range(513)])
    assert re.findall(r"^m\d+", out, re.M) == [f"m{i}" for i in range(513)] and out.count("name") == 2


def test_tables():
    """Columns are as wide as characters are, and no character moves the cursor; thousands have units of their own."""
    out = listed([{"name": "\u00e9\u00e9", "dtype": "f32", "bytes": 999}, {"name": "abcd", "dtype": "f32", "bytes": 1000},
                  {"name": "a\x7fb", "dtype": "f32", "bytes": 2500000}]).splitlines()
    assert {line.index("f32") for line in out[1:]} == {out[0].index("type")}
    assert "a?b" in out[3] and [re.search(r"[\d.]+ k?M?B", line)[0] for line in out[1:]] == ["999 B", "1 kB", "2.5 MB"]


def test_kernels_of_all_types(url):
    out = gemmctl("kernels", "transpose", url=url)[1].decode()
    assert re.search(r"^transpose +naive +cpu:0 +all\b", out, re.M), out


def test_top_after_a_restart():
    """What has not been counted is not shown, and what is less than before grows by 0."""
    looks = [{"answered": {"/v1/add": count, "/v1/flip": 0}, "failed": {}} for count in (10, 4)]
    with answers(told(looks[0]), told({"devices": []}), told(looks[1]), told({"devices": []})) as (url, _):
        out = gemmctl("top", "-n", "2", "-i", "10ms", url=url)[1].decode()
    assert re.search(r"^/v1/add +4 +0$", out, re.M) and "/v1/flip" not in out, out


def test_bench_of_three_operands(url):
    shapes = [word for name in "abc" for word in (f"--shape-{name}", "2x2")]
    assert b"2x2 and 2x2 and 2x2 f32" in gemmctl("bench", "matmul", "-n", "1", *shapes, url=url)[1]


def test_bench_tells_failures_apart():
    refusals = [f'{{"code": "{code}", "detail": "d"}}'.encode() for code in ("bad_shape", "bad_dtype")]
    failed = [b"HTTP/1.1 422 U\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(r), r) for r in refusals]
    with answers(reply(b"x"), *failed) as (url, _):
        out = gemmctl("bench", "flip", "-s", "2x2", "-n", "2", "-c", "1", "--json", url=url)[1]
    assert json.loads(out)["failures"] == {"bad_shape": 1, "bad_dtype": 1}


def test_open_loop_counts_what_was_sent_late(server):
    """One connection, four requests at once, and a server that takes 0.1 s for each."""
    with front(server, pause=0.1) as there:
        out = gemmctl("bench", "flip", "-s", "2x2", "-c", "1", "--rate", "1000", "-n", "4", "--json", url=there.url)[1]
    said = json.loads(out)
    assert said["sent"] == 4 and said["latency_us"]["max"] > 350e3 > said["service_us"]["min"], said


def test_suffixes(url, tmp_path):
    """In capitals they mean the same; that of a folder, or a part of one, means nothing."""
    np.save(tmp_path / "a.npy", np.ones((2, 2), np.float32))
    (tmp_path / "b.csv").mkdir()
    for name, first in (("a.CSV", b"1,1"), ("b.csv/out", b"\x93NUMPY"), ("out.cs", b"\x93NUMPY")):
        assert gemmctl("flip", tmp_path / "a.npy", "-o", tmp_path / name, url=url)[0] == 0
        assert (tmp_path / name).read_bytes().startswith(first), name


def test_pipes_that_come_in_pieces(url):
    """NPY is told by six bytes, of which the first may come alone."""
    file = io.BytesIO()
    np.save(file, np.ones((2, 2), np.float32))
    with subprocess.Popen([GEMMCTL, "flip", "-", "-t", "csv", "--url", url], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=environment()) as run:
        run.stdin.write(file.getvalue()[:1])
        run.stdin.flush()
        time.sleep(0.05)
        assert run.communicate(file.getvalue()[1:])[0] == b"1,1\n1,1\n"


def test_files_whose_names_begin_with_a_number(url, tmp_path, monkeypatch):
    np.save(tmp_path / "3.npy", np.ones((2, 2), np.float32))
    monkeypatch.chdir(tmp_path)
    assert gemmctl("eval", "x + 1", "x=3.npy", "-t", "csv", url=url)[1] == b"2,2\n2,2\n"


def test_keys_of_the_environment(server):
    """A key goes before a file of one."""
    with front(server, key="id.secret") as there:
        env = {"GEMMD_KEY": "id.secret", "GEMMD_KEY_FILE": "/no/such"}
        assert gemmctl("devices", url=there.url, env=env)[0] == 0


def test_keys_files(tmp_path):
    """A name has one key, and what others could read they can no longer."""
    keys = tmp_path / "keys"
    keys.touch(0o664)
    keys.chmod(0o664)
    assert gemmctl("key", "new", "a", "--keys", keys)[0] == 0
    assert keys.stat().st_mode & 0o777 == 0o660
    before = keys.read_bytes()
    status, out, errors = gemmctl("key", "new", "a", "--keys", keys)
    assert status == 6 and not out and "has a key named a already" in errors and keys.read_bytes() == before


def test_retry_waits_as_long_as_it_is_told():
    busy = b"HTTP/1.1 503 S\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with answers(busy % 100) as (url, _):
        with subprocess.Popen([GEMMCTL, "flip", "ref:w", "--retry", "1h", "--url", url], stderr=subprocess.PIPE,
                              env=environment()) as waiting:
            said = waiting.stderr.readline()
            waiting.terminate()
    assert b"once more in 100.0 s" in said
    with answers(busy % 3600) as (url, heads):  # too late
        status, _, errors = gemmctl("flip", "ref:w", "--retry", "30s", url=url)
    assert status == 4 and "once more" not in errors and len(heads) == 1
    with answers(reply(b"12345678")[:-4], reply(b"12345678")) as (url, heads):  # the first half was written
        status, out, _ = gemmctl("flip", "ref:w", "--retry", "30s", url=url)
    assert status == 3 and out == b"1234" and len(heads) == 1


def test_advice_for_sockets(tmp_path):
    """Nobody speaks TLS on a Unix socket."""
    with answers(b"") as (url, _):
        assert "https://" in gemmctl("devices", url=url)[2]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def serve():
            with listener.accept()[0] as client:
                client.recv(4096)

        threading.Thread(target=serve, daemon=True).start()
        status, _, errors = gemmctl("devices", url=f"unix:{tmp_path}/s")
    assert status == 3 and "Empty reply" in errors and "https://" not in errors, errors


def test_who_closes_a_pipe_hears_nothing(url):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([GEMMCTL, "stats", "--url", url], stdout=theirs, stderr=subprocess.PIPE, env=environment())
    os.close(theirs)
    assert done.returncode == 6 and not done.stderr


def test_no_color_counts_where_it_says_something(url):
    assert b"\033[1m" in on_terminal("devices", "--url", url, env={"NO_COLOR": ""})[1]
    assert b"\033[1m" not in on_terminal("devices", "--url", url, env={"NO_COLOR": "1"})[1]
