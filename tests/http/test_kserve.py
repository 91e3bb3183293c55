"""The Open Inference Protocol v2, spoken without any client's help: health, metadata, statistics,
inference in every format, and errors in the protocol's own format."""

import json
import struct
import threading

import numpy as np
import pytest

import formats
import wire

V2 = {
    "bool": "BOOL", "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64", "u8": "UINT8",
    "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "f16": "FP16", "bf16": "BF16",
    "f32": "FP32", "f64": "FP64",
}
MODELS = ("matmul", "transpose", "add", "flip")


def tensor(name, array, datatype="FP32", **rest):
    return {"name": name, "shape": list(array.shape), "datatype": datatype, **rest}


def binary(name, array, datatype="FP32"):
    return tensor(name, array, datatype, parameters={"binary_data_size": array.nbytes})


def body_of(request, *arrays):
    text = json.dumps(request).encode()
    return text + b"".join(a.tobytes() for a in arrays), {
        "Inference-Header-Content-Length": str(len(text))}


def infer(daemon, model, request, *arrays, headers=None):
    body, own = body_of(request, *arrays)
    return daemon.post(f"/v2/models/{model}/infer", body, {**own, **(headers or {})})


def result(reply, dtype="f32"):
    """The only output of a reply, whichever way it came."""
    assert reply.status == 200, reply
    length = reply.header("Inference-Header-Content-Length")
    document = json.loads(reply.body[:int(length)] if length else reply.body)
    (output,) = document["outputs"]
    assert output["name"] == "C" and output["datatype"] == V2[dtype]
    if length:
        assert reply.media_type == wire.RAW
        data = reply.body[int(length):]
        assert output["parameters"] == {"binary_data_size": len(data)}
        return document, np.frombuffer(data, formats.NUMPY[dtype]).reshape(output["shape"])
    assert reply.media_type == wire.JSON and "parameters" not in output
    assert not output["data"] or not isinstance(output["data"][0], list)  # flat
    return document, np.array(output["data"]).reshape(output["shape"])


def refused(reply, status, *parts):
    assert reply.status == status, reply
    assert reply.media_type == wire.JSON, reply
    document = reply.json()
    assert list(document) == ["error"]
    for part in parts:
        assert part in document["error"], document
    assert reply.header("X-Request-Id")


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)
DATA = {"inputs": [tensor("A", A, data=A.ravel().tolist()), tensor("B", B, data=B.tolist())]}


def test_server(daemon):
    assert daemon.get("/v2/health/live").ok().json() == {"live": True}
    assert daemon.get("/v2/health/ready").ok().json() == {"ready": True}
    server = daemon.get("/v2").ok().json()
    assert "shared_memory_prefix" not in server
    assert server["name"] == "gemmd" and server["version"]
    assert {"binary_tensor_data", "statistics"} <= set(server["extensions"])
    assert daemon.request("HEAD", "/v2/health/live").ok().body == b""


@pytest.mark.parametrize("suffix", ["", "/versions/1"])
def test_models(daemon, suffix):
    for model in MODELS:
        operands = ["A", "B"] if model in ("matmul", "add") else ["A"]
        meta = daemon.get(f"/v2/models/{model}{suffix}").ok().json()
        assert meta["name"] == model and meta["versions"] == ["1"]
        assert [i["name"] for i in meta["inputs"]] == operands
        assert meta["outputs"] == [{"name": "C", "datatype": "FP32", "shape": [-1, -1]}]
        config = daemon.get(f"/v2/models/{model}{suffix}/config").ok().json()
        assert config["name"] == model and config["max_batch_size"] == 0
        assert [i["data_type"] for i in config["input"]] == ["TYPE_FP32"] * len(operands)
        assert config["instance_group"][0]["count"] >= 1
        assert daemon.get(f"/v2/models/{model}{suffix}/ready").ok().json()["ready"] is True
    meta = daemon.get(f"/v2/models/matmul.tiled@f16{suffix}").ok().json()
    assert meta["name"] == "matmul.tiled@f16" and meta["inputs"][1]["datatype"] == "FP16"


def test_index_names_models_that_work(daemon):
    for path in ("/v2/repository/index", "/v2/repository/any/index"):
        index = daemon.post(path).ok().json()
    names = [model["name"] for model in index]
    assert set(MODELS) <= set(names) and len(set(names)) == len(names)
    assert "matmul.tiled" in names or "matmul.blocked" in names
    assert all(model["state"] == "READY" and model["version"] == "1" for model in index)
    for name in names:
        daemon.get(f"/v2/models/{name}").ok()
    refused(daemon.post("/v2/repository/models/matmul/load"), 400, "loaded")
    refused(daemon.post("/v2/repository/models/matmul/unload"), 400, "loaded")


@pytest.mark.parametrize("out", [None, True, False])
@pytest.mark.parametrize("data", ["json", "binary", "both"])
def test_infer(daemon, data, out):
    inputs, arrays = DATA["inputs"], ()
    if data == "binary":
        inputs, arrays = [binary("A", A), binary("B", B)], (A, B)
    elif data == "both":  # and in the other order
        inputs, arrays = [binary("B", B), DATA["inputs"][0]], (B,)
    request = {"id": 'a"\u00e9', "inputs": inputs}
    if out is not None:
        request["outputs"] = [{"name": "C", "parameters": {"binary_data": out}}]
    document, c = result(infer(daemon, "matmul", request, *arrays))
    assert np.array_equal(c, A @ B)
    assert document["id"] == 'a"\u00e9' and document["model_name"] == "matmul"
    assert document["model_version"] == "1"
    account = document["parameters"]
    assert account["op"] == "matmul" and account["flops"] == 48 and account["total_us"] > 0
    assert all(isinstance(v, (str, int, float, bool)) for v in account.values())


def test_no_header_and_no_id(daemon):
    reply = daemon.post("/v2/models/matmul/versions/1/infer", json.dumps(DATA).encode())
    document, c = result(reply)
    assert np.array_equal(c, A @ B) and "id" not in document
    assert reply.header("Server-Timing") and reply.header("Gemmd-Stats") is None
    request = {**DATA, "id": "", "parameters": {"binary_data_output": True}}
    document, c = result(daemon.post("/v2/models/matmul/infer", json.dumps(request).encode()))
    assert document["id"] == "" and np.array_equal(c, A @ B)


@pytest.mark.parametrize("dtype", V2)
def test_all_types(daemon, dtype):
    bits = np.arange(12, dtype=np.uint8) % 2 if dtype == "bool" else np.arange(12)
    x = formats.bf16_round(bits) if dtype == "bf16" else bits.astype(formats.NUMPY[dtype])
    x = x.reshape(3, 4)
    numbers = [bool(v) for v in bits] if dtype == "bool" else bits.tolist()
    for inputs, arrays in (([binary("A", x, V2[dtype])], (x,)),
                           ([tensor("A", x, V2[dtype], data=numbers)], ())):
        for out in (True, False):
            request = {"inputs": inputs, "outputs": [
                {"name": "C", "parameters": {"binary_data": out}}]}
            for model in ("transpose", f"transpose@{dtype}"):
                _, c = result(infer(daemon, model, request, *arrays), dtype)
                want = x.T if out else np.array(numbers).reshape(3, 4).T
                assert c.dtype.kind == "b" or np.array_equal(c, want), (c, want)
                assert np.array_equal(c.astype(want.dtype), want)


def test_variants_parameters_stacks(daemon):
    document, c = result(infer(daemon, "matmul.naive", {
        "inputs": [binary("A", A), binary("B", A)],
        "parameters": {"transb": True, "alpha": 2, "timeout": 5_000_000, "priority": 2}}, A, A))
    assert np.array_equal(c, 2 * A @ A.T) and document["parameters"]["kernel"] == "naive"
    assert document["model_name"] == "matmul.naive"
    c0 = np.ones((2, 4), np.float32)
    _, c = result(infer(daemon, "matmul", {
        "inputs": [binary("A", A), binary("B", B), binary("C", c0)],
        "parameters": {"beta": 3}}, A, B, c0))
    assert np.array_equal(c, A @ B + 3)
    stack = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    _, c = result(infer(daemon, "flip", {"inputs": [binary("A", stack)]}, stack))
    assert np.array_equal(c, stack[:, :, ::-1])
    empty = np.zeros((0, 5), np.float32)
    _, c = result(infer(daemon, "transpose", {"inputs": [binary("A", empty)]}))
    assert c.shape == (5, 0)


def test_large_json_goes_by_a_worker(daemon, rng):
    x = rng.integers(0, 1000, (500, 600)).astype(np.float32)
    request = {"inputs": [tensor("A", x, data=x.ravel().tolist())]}
    _, c = result(infer(daemon, "transpose", request))
    assert np.array_equal(c, x.T)


def test_nonfinite(daemon):
    x = np.array([[1, np.inf]], np.float32)
    request = {"inputs": [binary("A", x)]}
    refused(infer(daemon, "transpose", request, x), 422, "binary_data", "element 1")
    _, c = result(infer(daemon, "transpose",
                        {**request, "parameters": {"nonfinite": "null"}}, x))
    assert c.tolist() == [[1], [None]]
    request["outputs"] = [{"name": "C", "parameters": {"binary_data": True}}]
    assert np.isinf(result(infer(daemon, "transpose", request, x))[1][1, 0])


def test_statistics(start):
    daemon = start()
    stats = daemon.get("/v2/models/matmul/stats").ok().json()["model_stats"][0]
    assert stats["inference_count"] == 0 and stats["last_inference"] == 0
    for _ in range(3):
        infer(daemon, "matmul", DATA).ok()
    infer(daemon, "matmul", {"inputs": DATA["inputs"][:1]})
    for path in ("/v2/models/matmul/versions/1/stats", "/v2/models/stats",
                 "/v2/models/matmul.naive/stats"):
        stats = daemon.get(path).ok().json()["model_stats"][0]
        assert stats["version"] == "1" and stats["name"] in path + "matmul"
        assert stats["inference_count"] == stats["execution_count"] == 3
        each = stats["inference_stats"]
        assert set(each) == {"success", "fail", "queue", "compute_input", "compute_infer",
                             "compute_output", "cache_hit", "cache_miss"}
        assert each["success"]["count"] == each["queue"]["count"] == 3 and each["success"]["ns"] > 0
        assert each["fail"]["count"] == 1
        assert stats["last_inference"] > 1.6e12
    names = [m["name"] for m in daemon.get("/v2/models/stats").ok().json()["model_stats"]]
    assert names == list(MODELS)


def bad_requests():
    yield 404, "nope", DATA, "there are matmul"
    yield 404, "matmul.nope", DATA, "variant 'nope'"
    yield 404, "matmul@x7", DATA, "element type"
    yield 404, "matmul@float32", DATA, "element type"
    yield 404, "matmulx", DATA, "no model"
    yield 422, "matmul@f16", DATA, "takes FP16"
    yield 422, "matmul", {"inputs": DATA["inputs"][:1]}, "operand"
    yield 422, "transpose", DATA, "takes A"
    yield 422, "matmul", {"inputs": [DATA["inputs"][0], {**DATA["inputs"][0], "name": "B"}]}, "2x3"
    yield 422, "add", {"inputs": [DATA["inputs"][0], {**DATA["inputs"][0], "name": "B",
                                                      "datatype": "INT32"}]}, "f32"
    yield 422, "matmul", {"inputs": [{**DATA["inputs"][0], "datatype": "BYTES"}]}, "BYTES"
    yield 422, "matmul", {"inputs": [{"name": "A", "shape": [1, 1], "datatype": "BYTES", "data": ["a"]}]}, "BYTES"
    yield 422, "transpose", {"inputs": [{**DATA["inputs"][0], "shape": [3, 3]}]}, "3x3"
    yield 400, "transpose", {"inputs": [{**DATA["inputs"][0], "parameters": {
        "binary_data_size": 24}}]}, "in one of them"
    yield 422, "transpose", {"inputs": [tensor("A", A, parameters={"binary_data_size": 20})]}, "24"
    yield 400, "transpose", {"inputs": [binary("A", A)]}, "0 follow the JSON"
    yield 400, "matmul", {**DATA, "outputs": [{"name": "C", "parameters": {
        "classification": 2}}]}, "classification is not supported"
    yield 400, "matmul", {**DATA, "outputs": [{"name": "D"}]}, "C alone"
    yield 400, "matmul", {**DATA, "parameters": {"kernal": "tiled"}}, "nearest is 'kernel'"
    yield 400, "matmul", {**DATA, "parameters": {"shape": "2x2"}}, "their own shape"
    yield 400, "matmul", {**DATA, "parameters": {"dtype": "f16"}}, "their own shape"
    yield 400, "matmul", {**DATA, "parameters": {"sequence_id": 1}}, "stands alone"
    yield 400, "matmul", {**DATA, "more": 1}, "more"
    yield 400, "matmul", [], "JSON object"
    yield 422, "matmul", {**DATA, "parameters": {"device": "cuda:77"}}, "cuda:77"
    yield 422, "transpose", {"inputs": [{**DATA["inputs"][0], "datatype": "UINT8",
                                         "data": [1, 2, 3, 4, 5, 256]}]}, "256"


@pytest.mark.parametrize("status, model, request_, part", bad_requests())
def test_bad_requests(daemon, status, model, request_, part):
    refused(infer(daemon, model, request_), status, part)


def test_errors_of_every_kind_have_the_format(daemon, start):
    refused(daemon.get("/v2/nothing"), 404, "/v2/health/live")
    refused(daemon.get("/v2/models/matmul/versions/2"), 404)
    refused(daemon.get("/v2/models/nope"), 404, "no model")
    refused(daemon.get("/v2/models/nope/ready"), 404)
    reply = daemon.get("/v2/models/matmul/infer")
    refused(reply, 405, "POST")
    assert reply.header("Allow") == "POST"
    body, headers = body_of(DATA)
    for coding in ("gzip", "deflate"):
        reply = infer(daemon, "matmul", DATA, headers={"Content-Encoding": coding})
        refused(reply, 415, coding)
        assert reply.header("Accept-Encoding") == "identity"
    with daemon.raw() as raw:
        raw.send(wire.head("POST", "/v2/models/matmul/infer"))
        refused(raw.reply(), 411)
    with daemon.raw() as raw:
        raw.send(wire.head("POST", "/v2/models/matmul/infer", "Content-Length: 9", "Content-Length: 9"))
        refused(raw.reply(), 400)
    with daemon.raw() as raw:
        raw.send(wire.head("GET", "/v2/x" + "y" * 13000))
        refused(raw.reply(), 431)
    with daemon.raw() as raw:
        raw.send(wire.head("POST", "/v2/models/matmul/infer", f"Content-Length: {len(body)}",
                           *["Inference-Header-Content-Length: 5"] * 2) + body)
        refused(raw.reply(), 400, "twice")
    small = start("--body-limit", "1K", "--memory-limit", "1M")
    big = np.zeros((20, 20), np.float32)
    refused(infer(small, "transpose", {"inputs": [binary("A", big)]}, big), 413, "body-limit")
    large = {"inputs": [{"name": "A", "shape": [1000, 1000], "datatype": "FP32",
                         "parameters": {"binary_data_size": 4000000}}]}
    text = json.dumps(large).encode()
    with small.raw() as raw:
        raw.send(wire.head("POST", "/v2/models/transpose/infer", "Transfer-Encoding: chunked",
                           f"Inference-Header-Content-Length: {len(text)}"),
                 wire.chunk(text), wire.chunk(b"x"))
        refused(raw.reply(), 413, "memory-limit")


def test_keeps_the_connection_and_any_media_type(daemon):
    with daemon.client() as client:
        for media in (None, "application/json", "text/x-nonsense", wire.RAW):
            body, headers = body_of(DATA)
            if media:
                headers["Content-Type"] = media
            # Accept is not looked at: the request says what it wants.
            headers["Accept"] = "application/x-npy"
            assert np.array_equal(
                result(client.post("/v2/models/matmul/infer", body, headers))[1], A @ B)
            first = client.socket
            refused(client.post("/v2/models/matmul/infer", b"{", {}), 400)
            assert client.socket is first


def test_deadline_and_queue(start):
    """The rules of /v1 hold: a time-out in microseconds, and a queue that is full."""
    daemon = start("--queue-limit", "1", "--threads", "1")
    n = 1500
    x = np.ones((n, n), np.float32)
    request = {"inputs": [binary("A", x), binary("B", x)],
               "outputs": [{"name": "C", "parameters": {"binary_data": True}}]}
    refused(infer(daemon, "matmul.naive", {**request, "parameters": {"timeout": 1}}, x, x), 503,
            "time")
    replies = []
    crowd = [threading.Thread(target=lambda: replies.append(
        infer(daemon, "matmul.naive", {**request, "parameters": {"timeout": 2_000_000}}, x, x)))
        for _ in range(6)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    busy = [reply for reply in replies if reply.status == 503]
    assert busy
    for reply in busy:
        refused(reply, 503)
        assert reply.header("Retry-After") or "time" in reply.json()["error"]


def test_perf_analyzer_order(daemon):
    """What perf_analyzer asks for, in its order, with the C++ client's habits: the header is always
    there, Expect is not, and the members that it reads without looking are all there."""
    with daemon.client() as client:
        meta = client.get("/v2/models/matmul").ok().json()
        config = client.get("/v2/models/matmul/config").ok().json()
        assert isinstance(config["max_batch_size"], int)
        assert "response_cache" not in config and "model_transaction_policy" not in config
        assert isinstance(client.get("/v2").ok().json()["extensions"], list)
        before = client.get("/v2/models/matmul/stats").ok().json()["model_stats"][0]
        for out in (False, True):
            request = {"id": "", "inputs": [binary(i["name"], x, i["datatype"])
                                            for i, x in zip(meta["inputs"], (A, B))],
                       "outputs": [{"name": o["name"], "parameters": {"binary_data": out}}
                                   for o in meta["outputs"]]}
            body, headers = body_of(request, A, B)
            document, c = result(client.post("/v2/models/matmul/infer", body, headers))
            assert np.array_equal(c, A @ B)
            for output in document["outputs"]:
                assert ("parameters" not in output) or output["parameters"]["binary_data_size"] >= 0
        text = json.dumps(DATA).encode()  # all JSON, and the header says so
        result(client.post("/v2/models/matmul/infer", text,
                           {"Inference-Header-Content-Length": str(len(text))}))
        after = client.get("/v2/models/matmul/stats").ok().json()["model_stats"][0]
    assert int(after["version"]) == 1 and after["inference_count"] == before["inference_count"] + 3
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        was, now = before["inference_stats"][name], after["inference_stats"][name]
        assert now["count"] == was["count"] + 3 and now["ns"] >= was["ns"] >= 0


def test_hostile_tensors(daemon):
    """Sizes that cannot be, and bytes that are not JSON: refused at once, and nothing is lost."""
    def shaped(shape, size=0):
        return {"inputs": [{"name": "A", "shape": shape, "datatype": "FP64",
                            "parameters": {"binary_data_size": size}}]}

    for shape in ([2**62, 8], [2**64], [-1, 3], [1.5, 2], [1, 2, 3, 4], "x", [[1]], [2**31, 2**31]):
        reply = infer(daemon, "transpose", shaped(shape))
        assert reply.status in (400, 413, 422), reply
        refused(reply, reply.status)
    for junk in (b"{" * 5000, b"[" * 5000, b"\0" * 100, b'{"inputs":' + b"[" * 100000,
                 b'{"id":"\xff"}', struct.pack("<f", 1.0) * 64):
        refused(daemon.post("/v2/models/transpose/infer", junk), 400)
    many = {"inputs": [tensor("A", A, data=[0])] * 3000}
    refused(infer(daemon, "transpose", many), 422)
