"""Right sums: types x formats x every way to broadcast, by every kernel, against NumPy. A sum is
rounded once, so there is one right answer, to the bit."""

import concurrent.futures
import json
import math

import numpy as np
import pytest

import formats
import wire
from formats import post
from problems import check
from wire import target

A = "/v1/add"

# An operand as a whole, a row, a column, a scalar; in a stack, one matrix of it.
WHOLE, ROW, COLUMN, SCALAR = (3, 5), (1, 5), (3, 1), (1, 1)
MATRICES = [(a, b) for a in (WHOLE, ROW, COLUMN, SCALAR) for b in (WHOLE, ROW, COLUMN, SCALAR)]
STACKS = [
    ((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (3, 5)), ((3, 5), (2, 3, 5)), ((2, 3, 5), (1, 3, 5)),
    ((2, 3, 5), (1, 5)), ((2, 3, 5), (3, 1)), ((2, 3, 5), (1, 1)), ((1, 1), (2, 3, 5)),
    ((2, 1, 5), (3, 1)), ((2, 3, 1), (1, 1, 5)), ((2, 1, 1), (3, 5)), ((2, 1, 1), (1, 3, 5)),
    ((2, 1, 5), (2, 3, 1)), ((2, 1, 1), (2, 3, 5)), ((1, 3, 5), (3, 5)), ((1, 1, 1), (1, 1)),
]
FEW_DIMENSIONS = [((), (3, 5)), ((5,), (3, 5)), ((3, 5), (5,)), ((5,), (5,)), ((), ()), ((5,), ())]
EMPTY = [
    ((0, 5), (0, 5)), ((0, 5), (1, 5)), ((1, 1), (5, 0)), ((3, 0), (3, 1)), ((0, 3, 4), (3, 4)),
    ((0, 1, 1), (1, 4)), ((2, 0, 4), (1, 1)), ((0, 0), (1, 1)),
]
UGLY = [
    ((31, 33), (31, 33)), ((64, 65), (1, 65)), ((65, 63), (65, 1)), ((1, 2049), (1, 2049)),
    ((2049, 1), (1, 3)), ((97, 101), (1, 1)), ((683, 3), (1, 3)), ((683, 3), (683, 1)),
    ((1, 129), (257, 1)), ((3, 33, 65), (33, 65)),
]
SHAPES = [*MATRICES, *STACKS, *FEW_DIMENSIONS, *EMPTY, *UGLY]


def total(dtype, a, b):
    a, b = formats.as_matrix(a), formats.as_matrix(b)
    with np.errstate(all="ignore"):
        if dtype == "bf16":  # in f32, then rounded once
            return formats.bf16_round(formats.bf16_widen(a) + formats.bf16_widen(b))
        if dtype == "f16":
            return (a.astype(np.float32) + b.astype(np.float32)).astype(np.float16)
        return a + b


def same(got, expected, dtype):
    """The same bits, but for the bits of a NaN."""
    if dtype not in formats.FLOATS:
        return formats.same_bits(got, expected)
    both = formats.widen(got, dtype), formats.widen(expected, dtype)
    nan = np.isnan(both[0])
    if got.shape != expected.shape or not np.array_equal(nan, np.isnan(both[1])):
        return False
    return got[~nan].tobytes() == expected[~nan].tobytes()


@pytest.mark.parametrize("fmt", formats.FORMATS)
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_every_broadcast(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    with daemon.client() as client:
        for shapes in SHAPES:
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in shapes)
            if fmt == "json-bare" and (0 in (a.size, b.size) or () in shapes):
                continue  # brackets alone do not say how many columns no rows have
            reply = post(client, "add", formats.encode(fmt, dtype, a, b))
            assert same(formats.decode(reply, dtype), total(dtype, a, b), dtype), shapes


def test_shapes_are_those_of_numpy(daemon):
    """All pairs of sizes 1 to 3 in three dimensions: NumPy broadcasts them, and so does add, or
    both refuse."""
    sizes = [(t, i, j) for t in (1, 2, 3) for i in (1, 2) for j in (1, 3)]
    with daemon.client() as client:
        for shape_a in sizes:
            for shape_b in sizes:
                a, b = np.ones(shape_a, "<i4"), np.ones(shape_b, "<i4")
                reply = post(client, "add", formats.encode("npy", "i32", a, b))
                try:
                    shape = np.broadcast_shapes(shape_a, shape_b)
                except ValueError:
                    check(reply, 422, "bad_shape", "as many .* in a .* as in b")
                    continue
                got = formats.decode(reply, "i32")
                assert got.shape == shape and (got == 2).all()


def test_mixed_orders(daemon, rng):
    """One file in C order, one in Fortran order, either way round; large enough for tiles."""
    with daemon.client() as client:
        for shape_a, shape_b in (((150, 300), (150, 300)), ((300, 150), (300, 1)),
                                 ((4, 33, 65), (33, 65)), ((700, 701), (1, 701))):
            a, b = (formats.random_numbers(rng, "f32", shape) for shape in (shape_a, shape_b))
            for layouts in ((False, True), (True, False), (True, True)):
                data = b"".join(
                    formats.npy_of(x, "f32", fortran=f) for x, f in zip((a, b), layouts)
                )
                reply = post(client, "add", formats.Body(wire.NPY, data))
                assert same(formats.decode(reply, "f32"), total("f32", a, b), "f32"), layouts


@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_larger_sums(daemon, rng, dtype):
    """Large enough for several threads, and to be sent and received in pieces."""
    with daemon.client() as client:
        for shape_a, shape_b in (((701, 1103), (701, 1103)), ((1, 900001), (1, 1)),
                                 ((300007, 3), (1, 3)), ((1501, 1), (1, 701)),
                                 ((100, 97, 101), (97, 101))):
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in (shape_a, shape_b))
            reply = post(client, "add", formats.encode("raw", dtype, a, b))
            assert same(formats.decode(reply, dtype), total(dtype, a, b), dtype), (shape_a, shape_b)


def test_every_kernel(daemon, rng):
    kernels = [k for k in daemon.get("/v1/kernels").json()["kernels"]
               if k["op"] == "add" and "cpu:0" in k["devices"]]
    assert {"direct", "vector"} <= {kernel["name"] for kernel in kernels}
    with daemon.client() as client:
        for kernel in kernels:
            assert set(kernel["dtypes"]) == set(formats.ARITHMETIC)
            for dtype in kernel["dtypes"]:
                for shapes in (*UGLY, *STACKS):
                    a, b = (formats.random_numbers(rng, dtype, shape) for shape in shapes)
                    for fmt in ("raw", "npy-fortran"):
                        body = formats.encode(fmt, dtype, a, b)
                        reply = post(client, "add", body, kernel=kernel["name"], device="cpu")
                        assert reply.ok().stats["kernel"] == kernel["name"]
                        case = (kernel["name"], dtype, shapes, fmt)
                        assert same(formats.decode(reply, dtype), total(dtype, a, b), dtype), case


@pytest.mark.parametrize("dtype", formats.FLOATS)
def test_special_values(daemon, dtype):
    """Each with each: NaN, infinities, zeros, the ends of the range."""
    values = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 65504.0, 16.0, 3.3e38, 1e-40, 6e-8]
    with np.errstate(over="ignore"):
        column = formats.narrow(np.array([values, [-x for x in values]]).reshape(-1, 1), dtype)
    row = np.ascontiguousarray(column.T)
    with daemon.client() as client:
        got = formats.decode(post(client, "add", formats.encode("npy", dtype, column, row)), dtype)
    assert same(got, total(dtype, column, row), dtype)


def test_a_sum_that_json_cannot_carry(daemon):
    text = json.dumps({"a": [[3e38, 1]], "b": [[3e38, 1]]})
    check(daemon.post(A, text), 422, "nonfinite_in_json", "nonfinite=null")
    assert daemon.post(A + "?nonfinite=null", text).ok().json()["data"] == [[None, 2]]


def test_integers_wrap(daemon):
    for dtype in ("i32", "i64"):
        info = np.iinfo(formats.NUMPY[dtype])
        a, b = np.array([[info.max, info.min]], info.dtype), np.array([[1, -1]], info.dtype)
        with daemon.client() as client:
            got = formats.decode(post(client, "add", formats.encode("json-flat", dtype, a, b)), dtype)
        assert got.tolist() == [[info.min, info.max]]


def test_operands_as_parts_of_one_text(daemon):
    for text, data in (
        ('{"a": [[1, 2], [3, 4]], "b": [10, 20]}', [[11, 22], [13, 24]]),
        ('{"b": {"shape": [2, 1], "data": [10, 20]}, "a": [[1, 2], [3, 4]]}', [[11, 12], [23, 24]]),
        ('{"a": [[1]], "b": [[2]], "dtype": "i64", "kernel": "direct", "device": "cpu"}', [[3]]),
    ):
        assert daemon.post(A, text).ok().json()["data"] == data


def test_account(daemon):
    a, b = np.ones((70, 50), "<f4"), np.ones((1, 50), "<f4")
    with daemon.client() as client:
        stats = post(client, "add", formats.encode("npy", "f32", a, b)).ok().stats
    assert (stats["op"], stats["dtype"]) == ("add", "f32")
    assert stats["shapes"] == {"a": [70, 50], "b": [1, 50], "result": [70, 50]}
    assert stats["flops"] == 3500
    assert stats["bytes_min"] == 4 * (3500 + 50 + 3500)  # a repeated row is read once
    assert stats["bound"] == "memory"
    assert stats["intensity"] == pytest.approx(3500 / stats["bytes_min"], rel=1e-4)


def test_a_fortran_stack_is_prepared_and_a_matrix_is_not(daemon):
    with daemon.client() as client:
        for shape, prepared in (((2, 30, 40), True), ((30, 40), False)):
            body = formats.encode("npy-fortran", "f32", np.ones(shape, "<f4"), np.ones(shape, "<f4"))
            stats = post(client, "add", body, device="cpu").ok().stats
            assert ("prepare" in stats["us"]) == prepared


def test_the_same_bits_every_time(daemon, rng):
    a, b = (formats.random_numbers(rng, "f16", shape) for shape in ((997, 603), (1, 603)))
    body = formats.encode("raw", "f16", a, b)

    def ask(_):
        with daemon.client() as client:
            return {post(client, "add", body).ok().body for _ in range(6)}

    alone = ask(0)
    assert len(alone) == 1
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert all(under_load == alone for under_load in pool.map(ask, range(12)))


AB = b'{"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}'
RAW = {"Content-Type": wire.RAW}

WRONG = [
    ("", {}, b'{"a": [[1, 2, 3]], "b": [[4, 5]]}', 422, "bad_shape",
     r"a is 1x3 and b is 1x2: .*columns in a \(3\) as in b \(2\)"),
    ("", {}, b'{"a": [[1], [2], [3]], "b": [[4], [5]]}', 422, "bad_shape",
     r"a is 3x1 and b is 2x1: .*rows in a \(3\) as in b \(2\)"),
    ("shape_a=2x1x1&shape_b=3x1x1", RAW, bytes(20), 422, "bad_shape", "2x1x1.*3x1x1.*matrices"),
    ("shape_a=0x2&shape_b=2x2", RAW, bytes(16), 422, "bad_shape", "0x2.*2x2"),
    ("shape_a=4000000000x1&shape_b=1x4000000000", RAW, bytes(0), 400, "body_truncated", ""),
    ("", {}, b"[[1, 2]]", 422, "missing_operand", "add needs two operands.*b is missing"),
    ("", {}, b'{"b": [[1]]}', 422, "missing_operand", "a is missing"),
    ("", {}, b'{"a": [[1]], "b": [[1]], "c": [[1]]}', 422, "extra_operand", r"\bc\b|two"),
    ("alpha=2", {}, AB, 400, "bad_parameter", "add does not take 'alpha'.*parameter of matmul"),
    ("beta=2", {}, AB, 400, "bad_parameter", "add does not take 'beta'.*parameter of matmul"),
    ("transa=1", {}, AB, 400, "bad_parameter", "add does not take 'transa'.*parameter of matmul"),
    ("transb=0", {}, AB, 400, "bad_parameter", "add does not take 'transb'.*parameter of matmul"),
    ("shape_c=1x1", RAW, bytes(4), 400, "bad_parameter", "shape_c"),
    ("kernel=blocked&device=cpu", {}, AB, 422, "kernel_unavailable", "blocked.*direct and vector"),
    ("dtype=u8", {}, AB, 422, "bad_dtype", "add computes in f16.*u8"),
    ("", {}, b'{"a": {"dtype": "f16", "data": [[1]]}, "b": {"dtype": "f64", "data": [[1]]}}', 422,
     "bad_dtype", "f16.*f64"),
]


@pytest.mark.parametrize("query, headers, body, status, code, detail", WRONG)
def test_wrong_requests(daemon, query, headers, body, status, code, detail):
    with daemon.client() as client:
        check(client.post(f"{A}?{query}", body, headers), status, code, detail)
        # The connection is in step afterwards.
        assert client.post(A, AB).ok().json()["data"] == [[6, 8], [10, 12]]


def test_operands_of_different_types(daemon):
    data = formats.npy(np.ones((2, 2), "<f4")) + formats.npy(np.ones((2, 2), "<f8"))
    check(daemon.post(A, data), 422, "bad_dtype", "f32.*f64")


def test_a_result_that_nobody_has_room_for(daemon):
    """A few bytes that ask for very many are refused as long as they are few."""
    shapes = {"shape_a": "200000000x1", "shape_b": "1x200000000", "dtype": "f16"}
    with daemon.raw() as raw:
        lines = (f"Content-Type: {wire.RAW}", f"Content-Length: {800000000}")
        raw.send(wire.head("POST", target(A, **shapes), *lines))
        check(raw.reply(), 413, "too_large")
