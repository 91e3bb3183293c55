"""Rows reversed: any bits of every element type, in every format, by every kernel, against NumPy."""

import numpy as np
import pytest

import formats
import wire
from formats import post
from problems import check

F = "/v1/flip"

SHAPES = [
    (0, 0), (0, 5), (5, 0), (1, 1), (1, 17), (17, 1), (2, 3), (3, 2), (50, 4), (97, 101), (3, 500),
    (500, 3), (31, 33), (32, 32), (33, 31), (63, 65), (64, 64), (65, 63), (2, 129), (3, 4, 5),
    (1, 3, 4), (0, 3, 4), (3, 0, 4), (3, 4, 0), (4, 1, 1), (4, 3, 1), (2, 33, 31), (), (0,), (1,),
    (7,),
]


def flipped(array):
    return np.ascontiguousarray(formats.as_matrix(array)[..., ::-1])


@pytest.mark.parametrize("fmt", [f for f in formats.FORMATS if "json" not in f])
@pytest.mark.parametrize("dtype", formats.NUMPY)
def test_flip_moves_any_bits(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    with daemon.client() as client:
        for shape in SHAPES:
            array = formats.random_bits(rng, dtype, shape)
            got = formats.decode(post(client, "flip", formats.encode(fmt, dtype, array)), dtype)
            assert formats.same_bits(got, flipped(array)), shape


@pytest.mark.parametrize("fmt", formats.JSON_FORMATS)
@pytest.mark.parametrize("dtype", formats.IN_JSON)
def test_flip_json(daemon, rng, dtype, fmt):
    with daemon.client() as client:
        for shape in SHAPES:
            array = formats.random_numbers(rng, dtype, shape)
            if fmt == "json-bare" and (array.size == 0 or array.ndim == 0):
                continue  # brackets alone do not say how many columns no rows have
            got = formats.decode(post(client, "flip", formats.encode(fmt, dtype, array)), dtype)
            assert formats.same_bits(got, flipped(array)), shape


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64", "c128"])
def test_flip_of_a_larger_matrix(daemon, rng, dtype):
    """Large enough to be done by several threads, and sent and received in pieces."""
    with daemon.client() as client:
        for shape in ((1301, 1103), (3, 577, 801), (2, 700001), (500001, 3), (1400001, 1)):
            array = formats.random_bits(rng, dtype, shape)
            for fmt in ("npy", "npy-fortran", "raw"):
                got = formats.decode(post(client, "flip", formats.encode(fmt, dtype, array)), dtype)
                assert formats.same_bits(got, flipped(array)), (fmt, shape)


def test_every_kernel(daemon, rng):
    kernels = [k for k in daemon.get("/v1/kernels").json()["kernels"]
               if k["op"] == "flip" and "cpu:0" in k["devices"]]
    assert {"naive", "vector"} <= {kernel["name"] for kernel in kernels}
    with daemon.client() as client:
        for kernel in kernels:
            assert set(kernel["dtypes"]) == set(formats.NUMPY)
            for dtype in kernel["dtypes"]:
                for shape in ((33, 65), (3, 129), (129, 3), (2, 31, 33), (7, 1), (0, 3)):
                    array = formats.random_bits(rng, dtype, shape)
                    body = formats.encode("npy", dtype, array)
                    reply = post(client, "flip", body, kernel=kernel["name"], device="cpu")
                    assert reply.ok().stats["kernel"] == kernel["name"]
                    assert formats.same_bits(formats.decode(reply, dtype), flipped(array))


def test_twice_is_nothing(daemon, rng):
    array = formats.random_bits(rng, "f32", (40, 50))
    with daemon.client() as client:
        once = formats.decode(post(client, "flip", formats.encode("npy", "f32", array)), "f32")
        twice = formats.decode(post(client, "flip", formats.encode("npy", "f32", once)), "f32")
    assert formats.same_bits(twice, array) and not formats.same_bits(once, array)


def test_rows_of_one_element_are_a_copy(daemon):
    """And are honestly called one."""
    with daemon.client() as client:
        body = formats.encode("npy", "f32", np.arange(9, dtype="<f4").reshape(9, 1))
        kernel = post(client, "flip", body, device="cpu").ok().stats["kernel"]
    copies = {k["name"] for k in daemon.get("/v1/kernels").json()["kernels"] if k["op"] == "copy"}
    assert kernel in copies


def test_account(daemon):
    with daemon.client() as client:
        body = formats.encode("npy-fortran", "f64", np.ones((70, 50), "<f8"))
        stats = post(client, "flip", body, device="cpu").ok().stats
    assert stats["op"] == "flip"
    assert stats["shapes"] == {"a": [70, 50], "result": [70, 50]}
    assert stats["bytes_min"] == 2 * 8 * 3500 and stats["flops"] == 0
    assert (stats["bound"], stats["roof"]) == ("memory", "dram")
    assert stats["us"]["prepare"] > 0  # columns are made rows first


WRONG = [
    ("", {}, b'{"a": [[1]], "b": [[1]]}', 422, "extra_operand", r"\bb\b|one"),
    ("", {}, b"{}", 422, "missing_operand", "a is missing"),
    ("transa=1", {}, b"[[1]]", 400, "bad_parameter", "flip does not take 'transa'.*of matmul"),
    ("alpha=1", {}, b"[[1]]", 400, "bad_parameter", "flip does not take 'alpha'.*of matmul"),
    ("shape_b=1x1", {"Content-Type": wire.RAW}, bytes(4), 400, "bad_parameter",
     "flip does not take 'shape_b'.*of matmul and add"),
    ("kernel=direct&device=cpu", {}, b"[[1]]", 422, "kernel_unavailable", "direct.*naive"),
    ("dtype=c64", {}, b"[[1]]", 422, "bad_dtype", "c64"),
]


@pytest.mark.parametrize("query, headers, body, status, code, detail", WRONG)
def test_wrong_requests(daemon, query, headers, body, status, code, detail):
    with daemon.client() as client:
        check(client.post(f"{F}?{query}", body, headers), status, code, detail)
        # The connection is in step afterwards.
        assert client.post(F, b"[[1, 2]]").ok().json()["data"] == [[2, 1]]
