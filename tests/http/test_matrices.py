"""Named matrices: written in every format and kept as results, read whole and in parts, used wherever an operand is,
owned, shared, bounded, and replaced under those who read them."""

import io
import json
import re
import signal
import threading
import time
from datetime import datetime

import numpy as np
import pytest

import problems
import wire
from daemon import SLOW
from jobs import ONE_AT_A_TIME, SlowJob, occupied, wait_until
from keyring import Keyring
from test_kserve import infer, refused, result

M = "/v1/matrices"
A = np.arange(6, dtype=np.float32).reshape(2, 3)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def load(reply):
    return np.load(io.BytesIO(reply.ok().body))


def put(daemon, name, array, headers=None, **query):
    return daemon.request("PUT", wire.target(f"{M}/{name}", **query), npy(array),
                          {"Content-Type": wire.NPY, **(headers or {})})


def fetch(daemon, name, headers=None, **query):
    return daemon.get(wire.target(f"{M}/{name}", **query), {"Accept": wire.NPY, **(headers or {})})


def listed(daemon, headers=None):
    return {m["name"]: m for m in daemon.get(M, headers).ok().json()["matrices"]}


@pytest.fixture(scope="module")
def shared():
    from daemon import Daemon
    daemon = Daemon("--memory-limit", "256M", "--matrix-memory", "64M")
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared):
    yield shared
    assert shared.alive(), shared.last_words()
    for name in listed(shared):
        assert shared.request("DELETE", f"{M}/{name}").status == 204
    deadline = time.monotonic() + 10 * SLOW
    while (stats := shared.get("/v1/stats").json())["memory"]["used_bytes"] > 0:
        assert time.monotonic() < deadline, stats["memory"]
        time.sleep(0.01)
    assert stats["matrices"] | {"limit_bytes": 0} == {
        "count": 0, "used_bytes": 0, "device_bytes": 0, "limit_bytes": 0}


FORMATS = {
    "json": ({"Content-Type": wire.JSON}, {}, lambda a: json.dumps(a.tolist()).encode()),
    "csv": ({"Content-Type": wire.CSV}, {},
            lambda a: "".join(",".join(map(str, row)) + "\n" for row in a.tolist()).encode()),
    "npy": ({}, {}, npy),
    "columns": ({"Content-Type": wire.NPY}, {}, lambda a: npy(np.asfortranarray(a))),
    "raw": ({"Content-Type": wire.RAW}, {"shape": "2x3", "dtype": "f32"}, lambda a: a.tobytes()),
}


@pytest.mark.parametrize("fmt", FORMATS)
def test_written_in_each_format_and_read_in_each(daemon, fmt):
    headers, query, body = FORMATS[fmt]
    reply = daemon.request("PUT", wire.target(f"{M}/w", **query), body(A), headers)
    assert reply.status == 201, reply
    said = reply.json()
    tag = reply.header("ETag")
    assert said["name"] == "w" and said["shape"] == [2, 3] and said["dtype"] == "f32"
    assert said["bytes"] == 24 and said["durable"] is False and f'"{said["etag"]}"' == tag
    assert said.keys() == {"name", "shape", "dtype", "bytes", "device", "etag", "durable", "created", "used"}
    assert listed(daemon)["w"] == said
    for accept, read in ((wire.NPY, lambda r: np.load(io.BytesIO(r.body))),
                         (wire.RAW, lambda r: np.frombuffer(r.body, "<f4").reshape(2, 3)),
                         (wire.CSV, lambda r: np.loadtxt(io.BytesIO(r.body), delimiter=",")),
                         (wire.JSON, lambda r: np.array(r.json()["data"])),
                         (None, lambda r: np.array(r.json()["data"]))):
        reply = daemon.get(f"{M}/w", {"Accept": accept} if accept else None).ok()
        assert np.array_equal(read(reply), A), accept
        assert reply.header("Gemmd-Shape") == "2x3" and reply.header("Gemmd-Dtype") == "f32"
        assert reply.header("ETag").startswith(tag[:-1] + "-") # bytes differ by format, and so do tags
    head = daemon.request("HEAD", f"{M}/w", None, {"Accept": wire.NPY})
    assert head.status == 200 and head.body == b"" and head.header("Gemmd-Shape") == "2x3"
    assert int(head.header("Content-Length")) == len(npy(A))
    problems.check(daemon.get(f"{M}/w", {"Accept": "image/png"}), 406, "not_acceptable")
    parts = ("edge", b'--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + npy(A) + b"\r\n--edge--\r\n")
    reply = daemon.request("PUT", f"{M}/w", parts[1], {"Content-Type": "multipart/form-data; boundary=edge"})
    assert reply.status == 200 and reply.header("ETag") != tag # it replaces the one before


def test_every_type_and_stack(daemon, rng):
    for dtype in ("f2", "f8", "i4", "i8", "?", "u1", "c16"):
        array = rng.integers(0, 2, (3, 4, 5)).astype(dtype)
        put(daemon, "t", array)
        back = load(fetch(daemon, "t"))
        assert back.dtype == array.dtype and np.array_equal(back, array)
        assert np.array_equal(load(fetch(daemon, "t", rows="1:3", cols="2:")), array[:, 1:3, 2:])
    put(daemon, "empty", np.zeros((0, 7), np.float32))
    assert load(fetch(daemon, "empty")).shape == (0, 7)


def test_ranges(daemon, rng):
    array = rng.standard_normal((40, 50)).astype(np.float32)
    for order in (array, np.asfortranarray(array)):
        put(daemon, "w", order)
        for rows, cols, want in (("0:10", None, array[:10]), ("7", None, array[7:8]), (None, "5", array[:, 5:6]),
                                 ("38:", ":2", array[38:, :2]), (":", ":", array), ("3:3", None, array[3:3]),
                                 ("40:40", None, array[40:]), ("0:40", "49", array[:, 49:])):
            assert np.array_equal(load(fetch(daemon, "w", rows=rows, cols=cols)), want), (rows, cols)
    for query in ({"rows": "0:41"}, {"rows": "40"}, {"rows": "3:2"}, {"cols": "50"}, {"cols": "0:999999999"}):
        problems.check(fetch(daemon, "w", **query), 400, "bad_parameter", "the matrix has")
    for text in ("", "-1", "a", "1:2:3", "1-2", " 1", "0x1", "1:2,3", "9" * 19, "0:" + "9" * 30, "1\0"):
        problems.check(fetch(daemon, "w", rows=text), 400, "bad_parameter")
    problems.check(fetch(daemon, "w", kernel="naive"), 400, "bad_parameter", "does not take 'kernel'")
    problems.check(put(daemon, "w", A, foo="v"), 400, "unknown_parameter", "PUT has no parameter 'foo'; it has dtype")
    problems.check(put(daemon, "w", A, keep="v"), 400, "bad_parameter", "PUT has no parameter 'keep'; it has dtype")
    problems.check(fetch(daemon, "w", row="1"), 400, "unknown_parameter", "rows")


def test_names(daemon):
    for name in ("w", "_", "A9_z", "x" * 64):
        assert put(daemon, name, A).status == 201
    assert set(listed(daemon)) == {"w", "_", "A9_z", "x" * 64}
    for name in ("9w", "x" * 65, "a-b", "a.b", "a%20b", "%C3%A9", "w%00"):
        problems.check(put(daemon, name, A), 400, "bad_parameter", "no name")
    for name in ("none", "9w", "x" * 300, "a.w", "@0.w"):
        problems.check(fetch(daemon, name), 404, "not_found")
        problems.check(daemon.request("DELETE", f"{M}/{name}"), 404, "not_found")
    problems.check(daemon.request("DELETE", f"{M}/w?rows=0:1"), 400, "unknown_parameter", "no parameters")
    problems.check(daemon.post(f"{M}/w"), 405, "method_not_allowed")
    problems.check(daemon.request("PUT", M, b"[]"), 405, "method_not_allowed")
    for query, code in ((dict(kernel="naive"), "bad_parameter"), (dict(a="ref:w"), "extra_operand|bad_parameter"),
                        (dict(rows="1"), "bad_parameter"), (dict(ttl="0"), "bad_parameter"),
                        (dict(ttl="1.5"), "bad_parameter"), (dict(ttl="99999999999"), "bad_parameter"),
                        (dict(share="*"), "bad_parameter"), (dict(keep="x"), "bad_parameter")):
        reply = put(daemon, "w", A, **query)
        assert reply.status in (400, 422) and reply.code in code.split("|"), reply
    assert np.array_equal(load(fetch(daemon, "w")), A)
    problems.check(daemon.request("PUT", f"{M}/w", b"[[1,2],[3", {"Content-Type": wire.JSON}), 400, "bad_json")
    assert np.array_equal(load(fetch(daemon, "w")), A) # what fails changes nothing


def test_operands(daemon):
    """Wherever an operand is: in the query, in JSON, in parts, under /v2; alone and beside others."""
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    c = np.ones((2, 4), np.float32)
    for name, array in (("a", A), ("b", b), ("c", c)):
        put(daemon, name, array)
    J = {"Content-Type": wire.JSON}
    matmul = "/v1/matmul"

    def data(reply):
        return np.array(reply.ok().json()["data"])

    assert np.array_equal(data(daemon.post(f"{matmul}?a=ref:a&b=ref:b")), A @ b)
    assert np.array_equal(data(daemon.post(f"{matmul}?a=ref:a&b=ref:b&c=ref:c&beta=2")), A @ b + 2)
    assert np.array_equal(data(daemon.post(f"{matmul}?a=ref:a&b=ref:a&transb=1")), A @ A.T)
    assert np.array_equal(data(daemon.post(f"{matmul}?b=ref:b", json.dumps(A.tolist()).encode(), J)), A @ b)
    assert np.array_equal(load(daemon.post(f"{matmul}?a=ref:a", npy(b), {"Content-Type": wire.NPY})), A @ b)
    assert np.array_equal(load(daemon.post(f"{matmul}?b=ref:b", npy(A), {"Content-Type": wire.NPY})), A @ b)
    text = {"a": {"ref": "a"}, "b": b.tolist(), "alpha": 2}
    assert np.array_equal(data(daemon.post(matmul, json.dumps(text).encode(), J)), 2 * (A @ b))
    text = {"b": {"ref": "b"}, "a": {"ref": "a"}, "device": "cpu"}
    assert np.array_equal(data(daemon.post(matmul, json.dumps(text).encode(), J)), A @ b)
    assert np.array_equal(data(daemon.post("/v1/transpose", b'{"ref": "a"}', J)), A.T)

    def message(*parts):
        body = b"".join(b'--edge\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % part for part in parts)
        return daemon.post(matmul, body + b"--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"})

    assert np.array_equal(load(message((b"a", b"ref:a"), (b"b", b"ref:b\n"))), A @ b)
    assert np.array_equal(load(message((b"b", b"ref:b"), (b"a", npy(A)))), A @ b)
    problems.check(message((b"a", b"ref:none"), (b"b", b"ref:b")), 404, "not_found")
    problems.check(message((b"a", b"ref:9"), (b"b", b"ref:b")), 400, "bad_parameter", "ref:NAME")

    def v2(**parameters):
        return infer(daemon, "matmul", {"inputs": [
            {"name": "A", "shape": [2, 3], "datatype": "FP32", "parameters": {"ref": "a"}},
            {"name": "B", "shape": [3, 4], "datatype": "FP32", "parameters": {"ref": "b"}}], **parameters})

    assert np.array_equal(result(v2())[1], A @ b)
    reply = v2(parameters={"keep": "k"}).ok()
    assert "data" not in reply.json()["outputs"][0] and np.array_equal(load(fetch(daemon, "k")), A @ b)
    for change, status in (({"shape": [3, 2]}, 422), ({"datatype": "FP64"}, 422), ({"parameters": {"ref": "no"}}, 404),
                           ({"parameters": {"ref": 1}}, 400), ({"data": [1] * 6}, 400)):
        request = {"name": "A", "shape": [2, 3], "datatype": "FP32", "parameters": {"ref": "a"}, **change}
        refused(infer(daemon, "transpose", {"inputs": [request]}), status)
    refused(infer(daemon, "transpose", {"inputs": [], "parameters": {"a": "ref:a"}}), 400, "of their own")

    # Reports too.
    rows = daemon.post(f"/v1/compare/matmul?a=ref:a&b=ref:b&format=json&repeat=1").ok().json()["rows"]
    assert all(row["error"]["verdict"] != "wrong" for row in rows if "error" in row)
    assert daemon.post("/v1/explain/transpose?a=ref:a&format=json").ok().json()["shape"]["a"] == [2, 3]
    assert daemon.get("/v1/explain/transpose?a=ref:a&format=json").ok().json()["shape"]["a"] == [2, 3]
    problems.check(daemon.get("/v1/explain/transpose?a=ref:none"), 404, "not_found")
    assert daemon.post("/v1/transpose?a=ref:a&device=sim").ok().json()["data"] == A.T.tolist()


def test_wrong_operands(daemon):
    put(daemon, "a", A)
    J = {"Content-Type": wire.JSON}

    def check(path, status, code, detail, body=b"", headers=None):
        problems.check(daemon.post(path, body, headers), status, code, detail)

    check("/v1/transpose?a=ref:none", 404, "not_found", "'none'")
    check("/v1/transpose?a=a", 400, "bad_parameter", "ref:NAME")
    check("/v1/transpose?a=ref:", 400, "bad_parameter", "ref:NAME")
    check("/v1/transpose?a=ref:" + "x" * 130, 400, "bad_parameter", "bytes|ref")
    check("/v1/transpose?b=ref:a", 400, "bad_parameter", "does not take 'b'")
    check("/v1/matmul?a=ref:a", 422, "missing_operand", "empty")
    check("/v1/matmul?a=ref:a&b=ref:a", 422, "bad_shape", "must equal")
    check("/v1/transpose?a=ref:a&dtype=f64", 422, "bad_dtype", "named matrix of f32")
    check("/v1/transpose?a=ref:a&shape=3x2", 400, "bad_parameter", "shape")
    check("/v1/transpose?a=ref:a&ttl=5", 400, "bad_parameter", "keep=NAME")
    check("/v1/matmul?a=ref:a", 422, "extra_operand", "named matrix", b'{"a": [[1]], "b": [[1]]}', J)
    check("/v1/transpose", 400, "bad_json", "data", b'{"a": {"ref": "a", "data": [1]}}', J)
    check("/v1/transpose", 400, "bad_json", "ref", b'{"ref": "a", "a": [[1]]}', J)
    check("/v1/transpose", 400, "bad_parameter", "ref:NAME", b'{"ref": "../a"}', J)
    check("/v1/transpose", 400, "bad_json", "string", b'{"ref": 5}', J)
    for path in ("/v1/compare/flip", "/v1/explain/flip"):
        check(f"{path}?a=ref:a&keep=x", 400, "bad_parameter", "no result")
    check("/v1/explain/copy?rows=1", 400, "bad_parameter", "named matrices")
    check("/v1/flip?keep=x&return=what", 400, "bad_parameter", "result or account", b"[[1]]")
    assert set(listed(daemon)) == {"a"}


def test_results_are_kept(daemon):
    put(daemon, "a", A)
    reply = daemon.post("/v1/transpose?a=ref:a&keep=t").ok()
    assert reply.json().keys() == {"shape", "dtype", "stats"} and reply.json()["shape"] == [3, 2]
    assert reply.header("Location") == f"{M}/t" and "durable=?0" in reply.header("Gemmd-Kept")
    assert listed(daemon)["t"]["etag"] == reply.header("ETag").strip('"')
    assert np.array_equal(load(fetch(daemon, "t")), A.T)
    reply = daemon.post("/v1/transpose?keep=t&return=result", npy(2 * A), {"Content-Type": wire.NPY})
    assert np.array_equal(load(reply), 2 * A.T) and np.array_equal(load(fetch(daemon, "t")), 2 * A.T)
    # A chain, each step by names; and one that replaces its own operand.
    for _ in range(3):
        daemon.post("/v1/add?a=ref:t&b=ref:t&keep=t").ok()
    assert np.array_equal(load(fetch(daemon, "t")), 16 * A.T)
    assert "data" not in daemon.post("/v1/flip?a=ref:a&return=account").ok().json()
    # What fails keeps nothing.
    nan = npy(np.full((2, 2), np.nan, np.float32))
    problems.check(daemon.post("/v1/flip?keep=n&return=result", nan, {"Accept": wire.JSON}), 422, "nonfinite_in_json")
    problems.check(daemon.post("/v1/matmul?a=ref:a&b=ref:a&keep=n"), 422, "bad_shape")
    problems.check(daemon.post("/v1/flip?a=ref:a&keep=a", headers={"If-None-Match": "*"}), 412, "precondition_failed")
    assert set(listed(daemon)) == {"a", "t"} and np.array_equal(load(fetch(daemon, "a")), A)
    text = {"a": A.tolist(), "keep": "j", "ttl": 60}
    daemon.post("/v1/flip", json.dumps(text).encode(), {"Content-Type": wire.JSON}).ok()
    assert "expires" in listed(daemon)["j"]


def test_conditions(daemon):
    """Two writers do not lose an update; a reader does not fetch twice."""
    one = put(daemon, "w", A).header("ETag")

    def write(status, **headers):
        reply = put(daemon, "w", A, {name.replace("_", "-"): value for name, value in headers.items()})
        assert reply.status == status, reply
        return reply

    write(412, If_None_Match="*")
    two = write(200, If_Match=one).header("ETag")
    assert two != one
    write(412, If_Match=one)
    three = write(200, If_Match=f', "x", W/"y" ,, {two}').header("ETag")
    write(412, If_Match="W/" + three)
    write(412, If_None_Match=f'"a",W/{three}')
    four = write(200, If_Match="*").header("ETag")
    five = write(200, If_None_Match=one).header("ETag")
    for bad in ("", "abc", '"a', '"a" "b"', "*, *", '"a",b', "W/", "\xff", ", ,", '"' + "x" * 3000):
        problems.check(put(daemon, "w", A, {"If-Match": bad}), 400, "bad_request", "If-Match is")
        problems.check(put(daemon, "w", A, {"If-None-Match": bad}), 400, "bad_request", "If-None-Match is")
    # The tag of a GET names the format too, and does for writing.
    got = fetch(daemon, "w").header("ETag")
    assert got == five[:-1] + '-npy"' and four != five
    for value, status in ((got, 304), ("*", 304), (f'"x", W/{got}', 304), (five, 200), ('"x"', 200), ("junk", 200)):
        reply = fetch(daemon, "w", {"If-None-Match": value})
        assert reply.status == status and (status == 200 or (reply.body == b"" and reply.header("ETag") == got))
        assert status == 200 or reply.header("Content-Length") is None, "it would be that of a 200"
    assert fetch(daemon, "w", {"If-Match": one}).status == 412
    write(200, If_Match=got)
    problems.check(put(daemon, "new", A, {"If-Match": "*"}), 412, "precondition_failed", "no such matrix")
    problems.check(daemon.request("DELETE", f"{M}/w", None, {"If-Match": five}), 412, "precondition_failed")
    problems.check(put(daemon, "w", A, {"Content-Range": "bytes 0-9/200"}), 400, "bad_request", "Content-Range")
    gone = daemon.request("DELETE", f"{M}/w", None, {"If-Match": listed(daemon)["w"]["etag"].join('""')})
    assert gone.status == 204 and gone.header("Content-Type") is None and gone.header("X-Request-Id")


def test_conditions_in_several_lines_are_one_list(daemon):
    tag = put(daemon, "w", A).header("ETag")
    got = fetch(daemon, "w").header("ETag")
    for head, status in ((wire.head("GET", f"{M}/w", 'If-None-Match: "a"', f"If-None-Match: {got}", "Accept: " + wire.NPY), 304),
                         (wire.head("DELETE", f"{M}/w", 'If-Match: "a"', 'If-Match: "b"', 'If-Match: "c"'), 412),
                         (wire.head("DELETE", f"{M}/w", 'If-Match: "a"', f"If-Match: {tag}", "If-Match:"), 204)):
        with daemon.raw() as raw:
            raw.send(head)
            assert raw.reply().status == status, head


def test_counted_updates(daemon):
    """Writers that add one under If-Match, and try again on 412: none is lost."""
    put(daemon, "n", np.zeros((1, 1), np.float32))
    writers, each = 4, 5

    def write():
        with daemon.client() as client:
            for _ in range(each):
                while True:
                    now = client.get(f"{M}/n", {"Accept": wire.NPY})
                    value = np.load(io.BytesIO(now.body)) + 1
                    reply = client.request("PUT", f"{M}/n", npy(value), {"If-Match": now.header("ETag")})
                    if reply.status == 200:
                        break
                    assert reply.status == 412, reply

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(fetch(daemon, "n"))[0, 0] == writers * each


def test_replaced_and_deleted_under_readers(daemon):
    """Who reads or multiplies gets the old matrix or the new one, whole, or 404."""
    n, stop, seen, wrong = 200, threading.Event(), set(), []
    put(daemon, "w", np.full((n, n), 1, np.float32))

    def write():
        value = 1
        with daemon.client() as client:
            while not stop.is_set():
                value = value % 9 + 1
                body = npy(np.full((n, n), value, np.float32))
                assert client.request("PUT", f"{M}/w", body).status in (200, 201)
                if value == 5:
                    client.request("DELETE", f"{M}/w")

    def read(path, scale):
        with daemon.client() as client:
            while not stop.is_set():
                reply = client.request("POST" if "add" in path else "GET", path, None, {"Accept": wire.NPY})
                if reply.status == 404:
                    seen.add(404)
                    continue
                array = np.load(io.BytesIO(reply.body)) / scale
                if reply.status != 200 or array.shape != (n, n) or array.min() != array.max():
                    wrong.append((reply.status, array.min(), array.max()))
                seen.add(float(array[0, 0]))

    threads = [threading.Thread(target=write)] + [
        threading.Thread(target=read, args=args)
        for args in ((f"{M}/w", 1), ("/v1/add?a=ref:w&b=ref:w", 2), ("/v1/add?a=ref:w&b=ref:w&keep=v&return=result", 2))]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    stop.set()
    for thread in threads:
        thread.join()
    # An operand that is named twice may be two versions of it, but each result is uniform.
    assert not wrong and len(seen) > 3, (wrong[:3], seen)


@pytest.mark.parametrize("trans", ["", "&transb=1"])
def test_rows_by_one_matrix(daemon, trans):
    """Many connections multiply a row each by the same matrix: each gets its own product, with the bits that it has alone."""
    connections, each, n = 64, 4, 96
    random = np.random.default_rng(5)
    w, rows = random.standard_normal((n, n)).astype(np.float32), random.standard_normal((connections, n)).astype(np.float32)
    put(daemon, "w", w)
    path = f"/v1/matmul?b=ref:w&alpha=2{trans}"
    exact = 2 * rows.astype(float) @ (w.T if trans else w)
    bound = 2 * n * 2.0**-24 * (np.abs(rows) @ np.abs(w.T if trans else w))
    alone = [load(daemon.request("POST", path, npy(row[None, :]), {"Accept": wire.NPY})) for row in rows]
    got, lock = {}, threading.Lock()

    def multiply(index):
        with daemon.client() as client:
            mine = [load(client.request("POST", path, npy(rows[index:index + 1]), {"Accept": wire.NPY})) for _ in range(each)]
        with lock:
            got[index] = mine

    threads = [threading.Thread(target=multiply, args=(i,)) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == connections
    for i, mine in got.items():
        assert (np.abs(alone[i][0] - exact[i]) <= bound[i]).all(), i
        assert all(one.tobytes() == alone[i].tobytes() for one in mine), i


def test_room(daemon):
    """64 MB of named matrices, one owner half of it. Nothing is lost to make room, and what is refused leaves nothing."""
    block = np.zeros((1 << 21, 1), np.float32) # 8 MB
    problems.check(put(daemon, "big", np.zeros((9 << 20, 1), np.float32)), 413, "too_large", "one part in 2")
    for i in range(4):
        assert put(daemon, f"w{i}", block).status == 201
    problems.check(put(daemon, "w4", block), 507, "storage_full", "--matrix-memory")
    problems.check(put(daemon, "w0", block), 507, "storage_full", "counts beside")
    problems.check(daemon.post("/v1/flip?a=ref:w0&keep=w4"), 507, "storage_full")
    assert set(listed(daemon)) == {"w0", "w1", "w2", "w3"}
    stats = daemon.get("/v1/stats").json()
    assert stats["matrices"]["used_bytes"] == 4 * block.nbytes and stats["matrices"]["limit_bytes"] == 64 << 20
    assert stats["memory"]["used_bytes"] >= 4 * block.nbytes
    metrics = daemon.get("/metrics").ok().body.decode()
    assert f"\ngemmd_matrices_bytes {4 * block.nbytes}\n" in metrics and "\ngemmd_matrices 4\n" in metrics
    assert daemon.request("DELETE", f"{M}/w1").status == 204
    assert put(daemon, "w4", block).status == 201


def test_pages_of_the_list(daemon):
    names = {f"m{i}" for i in range(1300)}
    with daemon.client() as client:
        for name in names:
            assert client.request("PUT", f"{M}/{name}", b"[[1]]").status == 201
        found, path, pages = [], M, 0
        while path:
            page = client.get(path).ok().json()
            found += [m["name"] for m in page["matrices"]]
            assert len(page["matrices"]) <= 1100
            path, pages = page.get("next"), pages + 1
        assert sorted(found) == sorted(names) and pages == 2
        for query, code in (("after=x", "bad_parameter"), ("after=-1", "bad_parameter"), ("after=", "bad_parameter"),
                            ("after=99999999999", "bad_parameter"), ("after=65536", "bad_parameter"), ("after=1&" * 33, "bad_parameter"), ("from=1", "unknown_parameter")):
            problems.check(client.get(f"{M}?{query}"), 400, code)
        for name in names:
            assert client.request("DELETE", f"{M}/{name}").status == 204


def test_keys(start, tmp_path):
    """Names belong to keys. Another key sees nothing of them but what is shared with it, which it reads as OWNER.NAME."""
    ring = Keyring(str(tmp_path / "keys"))
    for name in ("alice", "bob", "car.ol"):
        ring.add(name)
    ring.add("root", "use,read,admin")
    ring.add("small", quota="memory=1M")
    daemon = start("--keys", ring.path, "--memory-limit", "64M")
    a, b, c, root = map(ring.headers, ("alice", "bob", "car.ol", "root"))
    put(daemon, "w", A, a)
    put(daemon, "w", 2 * A, b)
    put(daemon, "s", 3 * A, a, share="bob,car.ol")
    put(daemon, "all", 4 * A, c, share="*")
    assert np.array_equal(load(fetch(daemon, "w", a)), A) and np.array_equal(load(fetch(daemon, "w", b)), 2 * A)
    assert set(listed(daemon, a)) == {"w", "s", "all"} and listed(daemon, b)["s"]["owner"] == "alice"
    assert np.array_equal(load(fetch(daemon, "alice.s", b)), 3 * A)
    assert np.array_equal(load(fetch(daemon, "alice.s", a)), 3 * A)
    assert daemon.post("/v1/flip?a=ref:car.ol.all", headers=b).ok().json()["data"] == (4 * A[:, ::-1]).tolist()
    for name in ("alice.w", "s", "alice.none", "nobody.w"):
        problems.check(fetch(daemon, name, b), 404, "not_found")
        problems.check(daemon.post(f"/v1/flip?a=ref:{name}", headers=b), 404, "not_found")
    problems.check(daemon.request("DELETE", f"{M}/alice.s", None, b), 403, "forbidden", "shared")
    problems.check(put(daemon, "alice.s", A, b), 403, "forbidden", "names an owner")
    put(daemon, "s", A, a) # who shares says so each time
    problems.check(fetch(daemon, "alice.s", b), 404, "not_found")
    problems.check(daemon.get(M), 401, "unauthorized")
    # An admin sees and deletes all.
    owners = sorted((m["owner"], m["name"]) for m in daemon.get(M, root).ok().json()["matrices"])
    assert owners == [("alice", "s"), ("alice", "w"), ("bob", "w"), ("car.ol", "all")]
    assert np.array_equal(load(fetch(daemon, "alice.w", root)), A)
    assert daemon.post("/v1/flip?a=ref:bob.w", headers=root).ok().json()["data"] == (2 * A[:, ::-1]).tolist()
    assert daemon.request("DELETE", f"{M}/alice.w", None, root).status == 204
    wait_until(lambda: len(re.findall("event=audit .*key=root .*another key", daemon.log())) == 4, "a line for each")
    problems.check(fetch(daemon, "w", a), 404, "not_found")
    # A key's quota of memory counts what it keeps.
    small = ring.headers("small")
    for i in range(3):
        assert put(daemon, f"q{i}", np.zeros((65536,), np.float32), small).status == 201
    assert put(daemon, "q3", np.zeros((131072,), np.float32), small).status in (413, 429)
    # What a key had goes with it.
    before = daemon.get("/v1/stats", root).json()["matrices"]["count"]
    ring.remove("car.ol")
    daemon.signal(1)
    deadline = time.monotonic() + 10 * SLOW
    while daemon.get("/v1/stats", root).json()["matrices"]["count"] != before - 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    problems.check(fetch(daemon, "car.ol.all", a), 404, "not_found")


def test_the_longest_names(start, tmp_path):
    """ref:OWNER.NAME is as long as a parameter's value may be."""
    owner, name = "k" * 63, "n" * 64
    ring = Keyring(str(tmp_path / "keys"))
    ring.add(owner)
    daemon = start("--keys", ring.path)
    key = ring.headers(owner)
    assert put(daemon, name, A, key).status == 201
    ref = f"ref:{owner}.{name}"
    reply = daemon.post(f"/v1/add?a={ref}&b={ref}", headers={**key, "Accept": wire.NPY}).ok()
    assert np.array_equal(load(reply), 2 * A)
    problems.check(daemon.post(f"/v1/flip?a={ref}x", headers=key), 400, "bad_parameter", "133 bytes")


def test_ttl_begins_with_the_matrix(start_idle):
    """And not with a request that waits for its device."""
    daemon = start_idle(*ONE_AT_A_TIME)
    with occupied(daemon, SlowJob(daemon, 1.5)):
        daemon.post("/v1/flip?kernel=naive&keep=late&ttl=100", b"[[1, 2]]").ok()
    facts = listed(daemon)["late"]
    created, expires = (datetime.fromisoformat(facts[what].replace("Z", "+00:00")) for what in ("created", "expires"))
    assert (expires - created).total_seconds() == 100


def test_another_address(daemon):
    import http.client
    put(daemon, "w", A)
    other = http.client.HTTPConnection("127.0.0.1", daemon.port, 10, source_address=("127.0.0.9", 0))
    for method, path, status in (("GET", f"{M}/w", 404), ("DELETE", f"{M}/w", 404), ("POST", "/v1/flip?a=ref:w", 404),
                                 ("GET", M, 200)):
        other.request(method, path)
        reply = other.getresponse()
        body = reply.read()
        assert reply.status == status, path
    assert json.loads(body)["matrices"] == []
    other.close()


def test_a_name_owns_what_its_key_wrote(start, tmp_path):
    """A key that gets another name leaves nothing to whoever gets its old one."""
    ring = Keyring(str(tmp_path / "keys"))
    ring.add("alice")
    daemon = start("--keys", ring.path)
    assert put(daemon, "secret", A, ring.headers("alice")).status == 201
    ring.rename("alice", "alina")
    ring.add("alice")
    ring.add("root", "use,read,admin")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "event=reload keys=3" in daemon.log(), "the reload")
    problems.check(fetch(daemon, "secret", ring.headers("alice")), 404, "not_found")
    problems.check(fetch(daemon, "secret", ring.headers("alina")), 404, "not_found")
    kept = daemon.get("/v1/stats", ring.headers("root")).json()["matrices"]
    assert (kept["count"], kept["used_bytes"]) == (0, 0)
