"""The requests that are made of a daemon under torture, and what a right answer to each is: that
of the same daemon without a fault, but for what differs from one answer to the next."""

import atexit
import json
import os
import re
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))

import wire  # noqa: E402

OPS = ("transpose", "matmul", "add", "flip")
LARGE = 400  # a side of a matrix whose text is longer than what an event thread takes


class Kind:
    """One or more requests on a connection, of which the last is the one that is hit."""

    def __init__(self, name, *requests, expects_100=False, to_head=False, answer="document",
                 pieces=1, after=(), keyless=False, reload=False, status=None, tls=None):
        self.tls = tls # HANDSHAKE or SESSION: over TLS, from which of them on it is hit
        self.keyless, self.reload = keyless, reload # sent without a key; as the keys are read again
        self.after = after # requests that put back what these have left, without a fault
        self.name, self.requests, self.answer, self.pieces = name, requests, answer, pieces
        self.expects_100, self.to_head = expects_100, to_head
        self.is_v2 = requests[-1].split()[1].startswith(b"/v2")
        number = re.match(r"[45]\d\d", name)
        self.status = status or (int(number.group()) if number else 200)


def post(path, media_type, body, *headers):
    media = (f"Content-Type: {media_type}",) if media_type else ()
    return wire.head("POST", path, *media, f"Content-Length: {len(body)}", *headers) + body


def get(path, *headers):
    return wire.head("GET", path, *headers)


def numbers(rows, cols, start=0):
    return [[float((i * cols + j + start) % 101) for j in range(cols)] for i in range(rows)]


def floats(rows, cols, start=0):
    row = [value for line in numbers(rows, cols, start) for value in line]
    return struct.pack(f"<{len(row)}f", *row)


def npy(rows, cols, start=0, order=False):
    head = f"{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({rows}, {cols}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + floats(
        rows, cols, start)


def text(*matrices):
    names = dict(zip("abc", matrices))
    return json.dumps(names if len(matrices) > 1 else matrices[0]).encode()


def chunked(path, media_type, *pieces):
    head = wire.head("POST", path, f"Content-Type: {media_type}", "Transfer-Encoding: chunked")
    return head + b"".join(map(wire.chunk, pieces)) + b"0\r\n\r\n"


def parts(*named):
    """multipart/form-data, as curl -F writes it."""
    edge = "------------------------d74496d66958873e"
    body = b"".join(
        b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n'
        b"Content-Type: %s\r\n\r\n%s\r\n" % (edge.encode(), name, name, media, data)
        for name, media, data in named
    )
    return f"multipart/form-data; boundary={edge}", body + b"--" + edge.encode() + b"--\r\n"


PREFIX = "/gemmd-torture-"


def shared_object(size):
    """The key of an object of shared memory, which is there until we end."""
    path = f"/dev/shm{PREFIX}{os.getpid()}"
    with open(path, "wb") as file:
        file.write(floats(1, size // 4))
    atexit.register(lambda: os.path.exists(path) and os.unlink(path))
    return f"{PREFIX}{os.getpid()}"


def v2_kinds():
    """Of the Open Inference Protocol v2, and regions of shared memory."""
    J, path = wire.JSON, "/v2/models/transpose/infer"
    a = {"name": "A", "shape": [3, 4], "datatype": "FP32"}

    def body(**more):
        return json.dumps({"id": "1", "inputs": [{**a, **more}]}).encode()

    data = body(data=[float(i) for i in range(12)])
    binary = body(parameters={"binary_data_size": 48})
    header = f"Inference-Header-Content-Length: {len(binary)}"
    yield Kind("v2-json", post(path, J, data))
    yield Kind("v2-binary", post(path + "?nonfinite=null", wire.RAW, binary + floats(3, 4), header))
    yield Kind("v2-pieces", post(path, wire.RAW, binary + floats(3, 4), header), pieces=7)
    large = {**a, "shape": [LARGE, LARGE], "data": [float(i % 101) for i in range(LARGE * LARGE)]}
    yield Kind("v2-worker", post(path, J, json.dumps({"inputs": [large]}).encode()))
    for name in ("v2", "v2/health/ready", "v2/models/matmul", "v2/models/matmul/config",
                 "v2/models/matmul/stats"):
        yield Kind("get-" + name.replace("/", "-"), get("/" + name), answer="report")
    yield Kind("v2-index", post("/v2/repository/index", None, b""), answer="report")
    yield Kind("404-v2", get("/v2/none"))
    yield Kind("404-v2-model", post("/v2/models/none/infer", J, data))
    yield Kind("400-v2", post(path, J, b"{"))
    yield Kind("415-v2", post(path, J, data, "Content-Encoding: gzip"))
    region = json.dumps({"key": shared_object(4096), "byte_size": 4096}).encode()
    register = post("/v2/systemsharedmemory/region/r/register", J, region)
    unregister = post("/v2/systemsharedmemory/unregister", None, b"")
    part = body(parameters={"shared_memory_region": "r", "shared_memory_byte_size": 48})
    yield Kind("region-register", register, after=(unregister,))
    yield Kind("region-unregister", register, unregister, after=(unregister,))
    yield Kind("region-status", register, get("/v2/systemsharedmemory/status"), after=(unregister,))
    yield Kind("region-infer", register, post(path, J, part), after=(unregister,))
    yield Kind("region-v1", register, post(
        "/v1/transpose?region=r&shape=3x4&region_result=r&offset_result=64", None, b""),
        after=(unregister,))


def matrix_kinds():
    """Of named matrices. What is small stays on the event thread, what is large goes to a worker."""
    def put(name, body, *headers):
        return wire.head("PUT", f"/v1/matrices/{name}", f"Content-Type: {wire.NPY}", f"Content-Length: {len(body)}",
                         *headers) + body

    def delete(name):
        return wire.head("DELETE", f"/v1/matrices/{name}", "Content-Length: 0")

    small, large = npy(5, 7), npy(640, 1024)
    after = delete("w"), delete("v")
    yield Kind("matrix-put", put("w", small), answer="report", after=after, status=201)
    yield Kind("matrix-put-worker", put("w", large), answer="report", after=after, status=201)
    yield Kind("matrix-replace", put("w", large), put("w", small), answer="report", after=after)
    yield Kind("matrix-get", put("w", small), get("/v1/matrices/w?rows=1:3"), after=after)
    yield Kind("matrix-get-worker", put("w", large), get("/v1/matrices/w?cols=:9", "Accept: text/csv"), after=after)
    yield Kind("matrix-list", put("w", small), get("/v1/matrices"), answer="report", after=after)
    yield Kind("matrix-delete", put("w", small), delete("w"), after=after, status=204)
    yield Kind("matrix-use", put("w", small), post("/v1/transpose?a=ref:w", None, b""), after=after)
    yield Kind("matrix-json", put("w", npy(3, 3)), post("/v1/matmul", wire.JSON, b'{"a": {"ref": "w"}, "b": {"ref": "w"}}'),
               after=after)
    yield Kind("matrix-parts", put("w", npy(5, 5)), post("/v1/matmul", *parts((b"a", b"text/plain", b"ref:w"),
               (b"b", b"application/octet-stream", npy(5, 5)))), after=after)
    yield Kind("matrix-keep", put("w", small), post("/v1/transpose?a=ref:w&keep=v&ttl=100", None, b""), after=after)
    yield Kind("matrix-keep-large", put("w", large), post("/v1/transpose?a=ref:w&keep=v&return=result", None, b"",
               f"Accept: {wire.NPY}"), after=after)
    yield Kind("412-matrix", put("w", small), put("w", small, "If-None-Match: *"), answer="report", after=after)
    yield Kind("404-matrix", post("/v1/transpose?a=ref:none", None, b""))


def eval_kinds():
    """Of expressions. Text is parsed on the event thread or a worker, as that of any operation."""
    E, J = "/v1/eval", wire.JSON
    put = wire.head("PUT", "/v1/matrices/w", f"Content-Type: {wire.NPY}", f"Content-Length: {len(npy(3, 3))}") + npy(3, 3)
    after = (wire.head("DELETE", "/v1/matrices/w", "Content-Length: 0"),)
    document = json.dumps({"expr": "2 * (x @ x.T) + tanh(k)", "operands": {"x": numbers(3, 4), "k": 0.5}}).encode()
    large = json.dumps({"expr": "mean(exp(-x), axis=1, keepdims=True)", "operands": {"x": numbers(LARGE, LARGE)}}).encode()
    files = parts((b"expr", b"text/plain", b"x[:2] @ y + 1"), (b"x", b"application/octet-stream", npy(5, 5)),
                  (b"y", b"application/octet-stream", npy(5, 7)))
    yield Kind("eval", post(E, J, document))
    yield Kind("eval-worker", post(E, J, large, f"Accept: {wire.NPY}"))
    yield Kind("eval-parts", post(E, *files))
    yield Kind("eval-parts-in-pieces", post(E, *files), pieces=9)
    yield Kind("eval-simulated", post(E + "?device=sim", J, document))
    yield Kind("eval-matrix", put, post(E, J, b'{"expr": "sum(w @ w.T, axis=0)"}'), after=after)
    yield Kind("eval-keep", put, post(E, J, b'{"expr": "w > 4", "keep": "w"}'), after=after)
    yield Kind("eval-plan", post(E + "?explain=plan", J, document), answer="report")
    yield Kind("400-eval", post(E, J, b'{"expr": "x + ", "operands": {"x": [[1]]}}'))
    yield Kind("422-eval-operand", post(E, J, b'{"expr": "none + 1"}'))
    yield Kind("422-eval", post(E, J, b'{"expr": "x @ x", "operands": {"x": [[1, 2]]}}'))


HANDSHAKE, SESSION = "handshake", "session"


def tls_kinds():
    """Of what differs over TLS: handshakes, records, early errors, and a certificate that is read again."""
    T, J = "/v1/transpose", wire.JSON
    small = post(T, J, text(numbers(3, 4)))
    yield Kind("tls-handshake", small, tls=HANDSHAKE)
    yield Kind("tls-json", small, tls=SESSION)
    yield Kind("tls-npy-large", post(T, wire.NPY, npy(640, 1024)), tls=SESSION)
    yield Kind("tls-worker", post(T, J, text(numbers(LARGE, LARGE))), tls=SESSION)
    yield Kind("tls-in-pieces", small, tls=SESSION, pieces=9)
    yield Kind("401-tls", small, tls=SESSION, keyless=True)
    yield Kind("413-tls", wire.head("POST", T, f"Content-Length: {1 << 50}") + bytes(1 << 20), tls=SESSION)
    yield Kind("400-tls-in-body", post(T + "?dtype=f32", wire.NPY, npy(30, 30)[:-4] + bytes(5000)), tls=SESSION)
    yield Kind("tls-reload", small, tls=HANDSHAKE, reload=True)


def kinds():
    yield from v2_kinds()
    yield from matrix_kinds()
    yield from eval_kinds()
    yield from tls_kinds()
    T, M, small = "/v1/transpose", "/v1/matmul", numbers(3, 4)
    two = text(numbers(3, 3), numbers(3, 3, 5))
    J = wire.JSON
    yield Kind("json", post(T, J, text(small)))
    yield Kind("json-first-bytes", post(T, None, text(small)))
    yield Kind("json-worker", post(T, J, text(numbers(LARGE, LARGE))))
    # Lines of a list are joined, and the target has a host: both take memory.
    yield Kind("json-to-npy", post("http://localhost" + M, J, two, "Accept: text/csv;q=0.5", f"Accept: {wire.NPY}"))
    yield Kind("json-parameters", post(M + "?transa=1", J, b'{"alpha": 2, "beta": 1, '
               b'"a": [[1, 2], [3, 4]], "b": [[1], [2]], "c": [[1], [2]]}'))
    yield Kind("npy", post(T, wire.NPY, npy(64, 48)))
    yield Kind("npy-large", post(T, wire.NPY, npy(640, 1024)))
    yield Kind("npy-two-first-bytes", post(M, None, npy(5, 5) + npy(5, 7)))
    yield Kind("npy-to-json-worker", post(T, wire.NPY, npy(LARGE, LARGE), f"Accept: {J}"))
    queued = post(M + "?shape_a=160x160&shape_b=160x160", wire.RAW,
                  floats(160, 160) + floats(160, 160, 7))
    yield Kind("raw-queued", queued)
    yield Kind("repeat", post(M + "?repeat=3", J, two))
    yield Kind("prepared", post("/v1/add", wire.NPY, npy(6, 4, order=True) + npy(6, 4)))
    yield Kind("simulated", post(T + "?device=sim", J, text(small)))
    for fmt in ("json", "text"):
        yield Kind(f"compare-{fmt}", post(f"/v1/compare/matmul?format={fmt}", J, two),
                   answer="report")
    yield Kind("compare-sim", post("/v1/compare/transpose?device=sim&format=json", J, text(small)),
               answer="report")
    for fmt in ("json", "text", "svg"):
        path = f"/v1/explain/transpose?shape=40x40&device=sim&format={fmt}"
        yield Kind(f"explain-{fmt}", get(path), answer="report")
    yield Kind("explain-body", post("/v1/explain/flip?device=sim", J, text(small)), answer="report")
    for path in ("/v1/stats", "/v1/kernels", "/v1/devices", "/metrics", "/healthz", "/readyz"):
        yield Kind("get-" + path.rpartition("/")[2], get(path), answer="report")
    yield Kind("head", wire.head("HEAD", "/v1/stats"), to_head=True, answer="report")
    yield Kind("401", post(T, J, text(small)), keyless=True)
    yield Kind("401-long", wire.head("POST", T, "Content-Length: 3000000") + bytes(3000000), keyless=True)
    yield Kind("401-v2", get("/v2"), keyless=True)
    yield Kind("401-basic", get("/v1/kernels", "Authorization: Basic OmEuYg=="), keyless=True)
    yield Kind("403-origin", get("/v1/kernels", "Origin: https://evil.example"))
    yield Kind("cors", post(T, J, text(small), "Origin: https://lab.example"))
    yield Kind("reload", post(T, J, text(small)), reload=True)
    yield Kind("404", get("/v1/none"))
    yield Kind("405", get(T))
    yield Kind("415", post(T, "image/png", b"\x89PNG"))
    yield Kind("415-first-bytes", post(T, None, b"a=1&b=2"))
    yield Kind("422", post(M, J, text(numbers(2, 3), numbers(2, 3))))
    yield Kind("400", post(T, J, b"[[1, 2], [3"))
    yield Kind("400-two-lengths", wire.head("POST", T, "Content-Length: 1", "Content-Length: 2"))
    yield Kind("413", wire.head("POST", T, f"Content-Length: {1 << 50}") + bytes(2 << 20))
    yield Kind("405-long", post("/healthz", None, bytes(3 << 20)))
    yield Kind("400-in-body", post(T + "?dtype=f32", wire.NPY, npy(30, 30)[:-4] + bytes(5000)))
    yield Kind("chunked", chunked(T, J, b"[[1, 2", b"], [3, 4]]"))
    yield Kind("chunked-npy", chunked(T, wire.NPY, npy(64, 48)[:100], npy(64, 48)[100:]))
    yield Kind("in-pieces", post(M, None, npy(5, 5) + npy(5, 7)), pieces=9)
    yield Kind("keep-alive", post(T, J, text(small)), post(M, J, two))
    yield Kind("keep-alive-error", post(T, J, b"[["), queued)
    yield Kind("expect-100", post(T, J, text(small), "Expect: 100-continue"), expects_100=True)
    yield Kind("csv", post(T, "text/csv", b"1,2,3\n4,5,6\n"))
    rows = "\n".join(",".join(map(str, row)) for row in numbers(LARGE, LARGE)).encode()
    yield Kind("csv-worker", post(T, "text/csv", rows))
    for name, *operands in (("multipart", (b"a", b"application/octet-stream", npy(5, 5)),
                             (b"b", b"application/octet-stream", npy(5, 5, 3))),
                            ("multipart-text", (b"b", b"application/json", text(small)),
                             (b"kernel", b"text/plain", b"naive"),
                             (b"a", b"text/csv", b"1,2,3\n4,5,6\n")),
                            ("multipart-worker", (b"a", b"application/json",
                                                  text(numbers(LARGE, LARGE))),
                             (b"b", b"application/octet-stream", npy(LARGE, LARGE)))):
        yield Kind(name, post(M, *parts(*operands)))


# What of an answer is the same each time.


def paths(document, at=""):
    """Where a document has something."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from paths(value, f"{at}.{name}")
    elif isinstance(document, list):
        yield f"{at}[{len(document)}]"
        for index, value in enumerate(document):
            yield from paths(value, f"{at}[{index}]")
    else:
        yield at


def lines(body):
    """The lines of a text without its figures, in any order."""
    text = re.sub(r"[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?", "#", body.decode())
    found = sorted(re.sub(r"[ ]+", " ", line).strip() for line in text.splitlines()
                   if not line.startswith("gemmd_http_requests_total")) # those that were asked for
    return [f"{found[:index].count(line)} {line}" for index, line in enumerate(found)]


def parse(reply):
    document = json.loads(reply.body) if reply.body and reply.media_type.endswith("json") else None
    return document if isinstance(document, dict) else {}


def excused(kind, reply, cold):
    """What need not be there. Of metrics and devices, what is read from a file, since it is not guessed. Of
    a comparison: the kernels that could not run for want of memory. Their rows say so, and have
    nothing else to say."""
    if kind.name == "get-metrics":
        return ["process_resident_memory_bytes", "process_virtual_memory_bytes", "gemmd_device_memory_used_bytes"]
    if kind.name == "get-devices":
        return ["memory_used_bytes"]
    if kind.name == "get-stats" and cold: # which has what happened, and in a daemon that has just begun little did
        return [".failed.", ".answered."]
    if not kind.name.startswith("compare"):
        return []
    lacking = ("memory_full", "device_memory")
    rows = [row for row in parse(reply).get("rows", [])
            if row.get("failure", {}).get("code") in lacking]
    said = re.findall(r"^(\w+): no result: .*memory", reply.body.decode(), re.MULTILINE)
    return [f"{row['kernel']}." for row in rows] + [f" {name}" for name in said]


def sameness(kind, reply):
    """(what must be equal, what must all be there) of an answer."""
    exact = [reply.status, reply.media_type]
    there = {f"header {name}" for name, _ in reply.headers}
    document = parse(reply)
    head = reply.header("Inference-Header-Content-Length")
    if head: # JSON, and what follows it
        document = json.loads(reply.body[:int(head)])
        exact.append(reply.body[int(head):])
    if "model_version" in document:
        there.update(paths(document.pop("parameters"), "parameters"))
    stats = document.pop("stats", None)
    if reply.header("Gemmd-Stats"):
        there.update(paths(reply.stats, "Gemmd-Stats"))
        there.update(paths(stats, "stats"))
    if reply.media_type == wire.PROBLEM:
        document.pop("request_id")
    if kind.answer == "report" and document:
        for row in document.pop("rows", []): # in the order of their times
            there.update(paths(row, f"row {row['op']}/{row['kernel']}"))
        there.update(paths(document))
    elif kind.answer == "report":
        there.update(lines(reply.body))
    else:
        exact.append(document or reply.body)
    return exact, there
