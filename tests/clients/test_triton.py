"""Triton's own Python client, as the package registry has it, against the daemon: every type, JSON
and binary, errors, many requests at once."""

import asyncio

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
         "FP32", "FP64", "BF16")
ARITHMETIC = ("INT32", "INT64", "FP16", "FP32", "FP64")


@pytest.fixture
def client(daemon):
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.port}", concurrency=4) as one:
        yield one


def tensor(name, array, datatype=None, binary=True, module=triton):
    from tritonclient.utils import np_to_triton_dtype

    one = module.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
    one.set_data_from_numpy(array, binary_data=binary)
    return one


def output(binary=True, **rest):
    return [triton.InferRequestedOutput("C", binary_data=binary, **rest)]


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_server_and_models(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("matmul") and client.is_model_ready("matmul.tiled@f16", "1")
    assert not client.is_model_ready("nope") and not client.is_model_ready("matmul", "2")
    assert client.get_server_metadata()["name"] == "gemmd"
    assert client.get_model_metadata("add", "1")["inputs"][1]["name"] == "B"
    assert client.get_model_config("flip")["input"][0]["data_type"] == "TYPE_FP32"
    names = {model["name"] for model in client.get_model_repository_index()}
    assert {"matmul", "transpose", "add", "flip"} <= names
    before = client.get_inference_statistics("matmul")["model_stats"][0]["inference_count"]
    client.infer("matmul", [tensor("A", A), tensor("B", B)])
    after = client.get_inference_statistics("matmul", "1")["model_stats"][0]
    assert after["inference_count"] == before + 1
    assert len(client.get_inference_statistics()["model_stats"]) == 4


@pytest.mark.parametrize("datatype", TYPES)
def test_types(client, datatype):
    bits = np.arange(12).reshape(3, 4)
    if datatype == "BOOL":
        bits = bits % 2
    x = bits.astype(triton_to_np_dtype(datatype))  # of BF16 that is float32
    for binary_in in (True, False):
        if datatype in ("FP16", "BF16") and not binary_in:
            continue  # the client itself refuses these in JSON
        for out in (None, True, False):
            outputs = None if out is None else output(out)
            reply = client.infer("transpose", [tensor("A", x, datatype, binary_in)], outputs=outputs)
            c = reply.as_numpy("C")
            assert reply.get_output("C")["datatype"] == datatype
            assert np.array_equal(c, x.T), (binary_in, out, c)


@pytest.mark.parametrize("datatype", ARITHMETIC)
def test_arithmetic(client, datatype):
    a, b = (m.astype(triton_to_np_dtype(datatype)) for m in (A, B))
    model = "matmul@" + {"F": "f", "I": "i"}[datatype[0]] + datatype.lstrip("FPINT")
    for name in ("matmul", model):
        c = client.infer(name, [tensor("A", a), tensor("B", b)]).as_numpy("C")
        assert c.dtype == a.dtype and np.array_equal(c, a @ b)
    c = client.infer("add", [tensor("A", a), tensor("B", a)], outputs=output(False)).as_numpy("C")
    assert np.array_equal(c, a + a)


def test_request_id_and_parameters(client):
    reply = client.infer("matmul.naive", [tensor("A", A), tensor("B", A)], request_id='x"\\\n',
                         parameters={"transb": True, "alpha": 3, "kernel": "naive"},
                         priority=3, timeout=10_000_000).get_response()
    assert reply["id"] == 'x"\\\n' and reply["model_name"] == "matmul.naive"
    assert reply["parameters"]["kernel"] == "naive" and reply["parameters"]["total_us"] > 0


def test_large(client, rng):
    a = rng.standard_normal((700, 900)).astype(np.float32)
    for binary in (True, False):
        c = client.infer("transpose", [tensor("A", a, binary=binary)],
                         outputs=output(binary)).as_numpy("C")
        assert np.array_equal(c, a.T)


def errors(client):
    a, b = tensor("A", A), tensor("B", B)
    yield "there are matmul", lambda: client.infer("nope", [a, b])
    yield "variant", lambda: client.infer("matmul.nope", [a, b])
    yield "nothing at", lambda: client.infer("matmul", [a, b], model_version="9")
    yield "columns", lambda: client.infer("matmul", [a, tensor("B", A)])
    yield "takes A", lambda: client.infer("flip", [a, b])
    yield "takes FP64", lambda: client.infer("matmul@f64", [a, b])
    yield "BYTES", lambda: client.infer("flip", [tensor("A", np.array([[b"x"]], object))])
    yield "classification is not", lambda: client.infer("matmul", [a, b], outputs=output(class_count=2))
    yield "C alone", lambda: client.infer(
        "matmul", [a, b], outputs=[triton.InferRequestedOutput("D")])
    yield "nearest", lambda: client.infer("matmul", [a, b], parameters={"kernal": "x"})
    yield "stands alone", lambda: client.infer("matmul", [a, b], sequence_id=3, sequence_start=True)
    yield "gzip", lambda: client.infer("matmul", [a, b], request_compression_algorithm="gzip")
    yield "deflate", lambda: client.infer("matmul", [a, b], request_compression_algorithm="deflate")
    yield "time", lambda: client.infer("matmul.naive", [
        tensor("A", np.ones((1500, 1500), np.float32)),
        tensor("B", np.ones((1500, 1500), np.float32))], timeout=1)
    yield "loaded", lambda: client.load_model("matmul")
    yield "no model", lambda: client.get_model_metadata("nope")
    yield "no model", lambda: client.get_model_config("nope")
    yield "no model", lambda: client.get_inference_statistics("nope")


def test_errors(client):
    for part, call in errors(client):
        with pytest.raises(InferenceServerException) as caught:
            call()
        assert part in caught.value.message(), (part, caught.value.message())
        assert 400 <= int(caught.value.status()) < 600


def test_reply_compression_is_not_forced(client):
    """A client may say that it understands gzip: the reply need not be it."""
    c = client.infer("matmul", [tensor("A", A), tensor("B", B)],
                     response_compression_algorithm="gzip").as_numpy("C")
    assert np.array_equal(c, A @ B)


def test_many_at_once(client):
    pending = [client.async_infer("matmul", [tensor("A", A + i), tensor("B", B)], request_id=str(i))
               for i in range(40)]
    for i, one in enumerate(pending):
        reply = one.get_result()
        assert reply.get_response()["id"] == str(i)
        assert np.array_equal(reply.as_numpy("C"), (A + i) @ B)
    failing = client.async_infer("matmul", [tensor("A", A), tensor("B", A)])
    with pytest.raises(InferenceServerException):
        failing.get_result()


def test_asyncio(daemon):
    async def run():
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{daemon.port}") as client:
            assert await client.is_server_ready()
            a = tensor("A", A, module=triton_aio)
            b = tensor("B", B, module=triton_aio)
            replies = await asyncio.gather(*(client.infer("matmul", [a, b]) for _ in range(20)))
            assert all(np.array_equal(reply.as_numpy("C"), A @ B) for reply in replies)
            with pytest.raises(InferenceServerException):
                await client.infer("nope", [a, b])

    asyncio.run(run())


def test_static_helpers(client):
    """A body made beforehand, and a reply taken apart by hand, as replaying tools do."""
    body, length = triton.InferenceServerClient.generate_request_body(
        [tensor("A", A), tensor("B", B)], outputs=output())
    headers = {"Inference-Header-Content-Length": str(length)} if length else {}
    reply = client._post(request_uri="v2/models/matmul/infer", request_body=body, headers=headers,
                         query_params=None)
    content = reply.read()
    result = triton.InferenceServerClient.parse_response_body(
        content, header_length=int(reply.get("Inference-Header-Content-Length")))
    assert np.array_equal(result.as_numpy("C"), A @ B)


def test_system_shared_memory(start, rng):
    """Regions as the client's own tool makes them: results go where operands are."""
    import os

    from tritonclient.utils import shared_memory

    prefix = f"gemmd-triton-{os.getpid()}-"
    daemon = start("--allow-shared-memory", prefix)
    x = rng.standard_normal((300, 200)).astype(np.float32)
    region = shared_memory.create_shared_memory_region("in", prefix + "in", x.nbytes)
    result = shared_memory.create_shared_memory_region("out", prefix + "out", 2 * x.nbytes)
    try:
        with triton.InferenceServerClient(f"127.0.0.1:{daemon.port}") as client:
            client.unregister_system_shared_memory()
            client.unregister_cuda_shared_memory()
            shared_memory.set_shared_memory_region(region, [x])
            client.register_system_shared_memory("in", prefix + "in", x.nbytes)
            client.register_system_shared_memory("out", "/" + prefix + "out", x.nbytes, x.nbytes)
            names = {one["name"] for one in client.get_system_shared_memory_status()}
            assert names == {"in", "out"} and client.get_cuda_shared_memory_status() == []
            assert client.get_system_shared_memory_status("out")[0]["offset"] == x.nbytes
            a = triton.InferInput("A", list(x.shape), "FP32")
            a.set_shared_memory("in", x.nbytes)
            c = triton.InferRequestedOutput("C")
            c.set_shared_memory("out", x.nbytes)
            reply = client.infer("transpose", [a], outputs=[c])
            output = reply.get_output("C")
            assert output == {"name": "C", "datatype": "FP32", "shape": [200, 300]}
            got = shared_memory.get_contents_as_numpy(result, np.float32, [200, 300], x.nbytes)
            assert np.array_equal(got, x.T)
            with pytest.raises(InferenceServerException, match="already"):
                client.register_system_shared_memory("in", prefix + "in", x.nbytes)
            with pytest.raises(InferenceServerException, match="no region"):
                client.unregister_system_shared_memory("nope")
            client.unregister_system_shared_memory("in")
            with pytest.raises(InferenceServerException, match="no region 'in'"):
                client.infer("transpose", [a], outputs=[c])
            client.unregister_system_shared_memory()
            assert client.get_system_shared_memory_status() == []
    finally:
        shared_memory.destroy_shared_memory_region(region)
        shared_memory.destroy_shared_memory_region(result)


def test_shared_memory_is_off_by_default(client):
    with pytest.raises(InferenceServerException, match="--allow-shared-memory"):
        client.register_system_shared_memory("r", "/gemmd", 64)
    with pytest.raises(InferenceServerException, match="--allow-cuda-ipc"):
        client.register_cuda_shared_memory("r", b"A" * 86 + b"==", 0, 64)
    assert client.get_system_shared_memory_status() == []
