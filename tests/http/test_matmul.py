"""Right products: types x formats x ugly shapes, stacks, transposes and factors, by every kernel,
against NumPy and within the error bound of the arithmetic."""

import concurrent.futures
import json
import math

import numpy as np
import pytest

import formats
from formats import post

# m, k, n
PRODUCTS = [
    (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1), (1, 17, 1), (17, 1, 19), (2, 3, 2),
    (31, 32, 33), (33, 31, 32), (64, 65, 63), (63, 64, 65), (65, 63, 64), (32, 32, 32),
    (97, 89, 101), (1, 500, 3), (300, 2, 5), (2, 1000, 2),
]
STACKED = [
    ((3, 4, 5), (3, 5, 6)), ((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 6)), ((1, 4, 5), (3, 5, 6)),
    ((3, 4, 5), (1, 5, 6)), ((1, 4, 5), (1, 5, 6)), ((1, 4, 5), (5, 6)), ((0, 4, 5), (5, 6)),
    ((0, 4, 5), (0, 5, 6)), ((2, 33, 31), (2, 31, 32)), ((3, 4, 0), (3, 0, 6)),
]


def text_of(number):
    """A number as a query parameter has it."""
    return repr(number) if isinstance(number, float) else str(number)


@pytest.mark.parametrize("fmt", formats.FORMATS)
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_matmul_shapes(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    with daemon.client() as client:
        for m, k, n in PRODUCTS:
            if fmt == "json-bare" and 0 in (m, k, n):
                continue
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
            reply = post(client, "matmul", formats.encode(fmt, dtype, a, b))
            formats.Product(dtype, a, b).check(formats.decode(reply, dtype), (m, k, n))


@pytest.mark.parametrize("fmt", ["npy", "npy-big-fortran", "npy-fortran", "raw", "json-flat"])
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_matmul_stacks(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    with daemon.client() as client:
        for shapes in STACKED:
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in shapes)
            reply = post(client, "matmul", formats.encode(fmt, dtype, a, b))
            formats.Product(dtype, a, b).check(formats.decode(reply, dtype), shapes)


@pytest.mark.parametrize("transb", ["false", "true"])
@pytest.mark.parametrize("transa", ["0", "1"])
@pytest.mark.parametrize("fmt", ["npy", "npy-fortran", "json-nested"])
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_matmul_of_transposes(daemon, rng, dtype, fmt, transa, transb):
    ta, tb = transa == "1", transb == "true"
    with daemon.client() as client:
        pairs = [((31, 33), (33, 7)), ((2, 4, 65), (2, 65, 3)), ((5, 9), (3, 9, 2))]
        for shape_a, shape_b in pairs:
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in (shape_a, shape_b))
            a = formats.transposed(a) if ta else a
            b = formats.transposed(b) if tb else b
            body = formats.encode(fmt, dtype, a, b)
            reply = post(client, "matmul", body, transa=transa, transb=transb)
            expected = formats.Product(dtype, a, b, transa=ta, transb=tb)
            expected.check(formats.decode(reply, dtype), (shape_a, shape_b))


FACTORS = [(None, None), (1, 0), (2, None), (-3, 2), (0, 3), (0, 0), (1, -1)]


@pytest.mark.parametrize("alpha, beta", [*FACTORS, (0.1, -1.7), (1e-3, 0.3)])
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_matmul_with_factors(daemon, rng, dtype, alpha, beta):
    if dtype not in formats.FLOATS and isinstance(alpha, float):
        pytest.skip("an integer product's factors are integers")
    parameters = {
        name: text_of(value)
        for name, value in (("alpha", alpha), ("beta", beta))
        if value is not None
    }
    with daemon.client() as client:
        for shape_a, shape_b in (((31, 33), (33, 7)), ((3, 4, 65), (65, 3))):
            a, b = (formats.random_numbers(rng, dtype, shape) for shape in (shape_a, shape_b))
            c = formats.random_numbers(rng, dtype, (*shape_a[:-1], shape_b[-1]))
            expected = formats.Product(dtype, a, b, c, 1 if alpha is None else alpha, beta)
            for fmt in ("npy", "npy-fortran", "raw", "json-nested"):
                reply = post(client, "matmul", formats.encode(fmt, dtype, a, b, c), **parameters)
                expected.check(formats.decode(reply, dtype), (fmt, shape_a))


def test_alpha_without_c(daemon, rng):
    a, b = (formats.random_numbers(rng, "f64", (5, 5)) for _ in "ab")
    body = formats.encode("npy", "f64", a, b)
    with daemon.client() as client:
        reply = post(client, "matmul", body, alpha="-0.75")
    formats.Product("f64", a, b, alpha=-0.75).check(formats.decode(reply, "f64"))


def test_factors_as_members_of_the_body(daemon):
    document = {"a": [[1, 2], [3, 4]], "b": [[1, 0], [0, 1]], "c": [[1, 1], [1, 1]]}
    document.update(alpha=2, beta=-1, transa=True, kernel="auto")
    reply = daemon.post("/v1/matmul", json.dumps(document)).ok().json()
    assert reply["data"] == [[1, 5], [3, 7]]
    # The same, said twice.
    again = daemon.post("/v1/matmul?alpha=2&transa=1", json.dumps(document)).ok().json()
    assert again["data"] == reply["data"]


def test_integer_factors_beyond_doubles(daemon):
    big = 2**53 + 1
    body = formats.encode("raw", "i64", np.array([[1]]), np.array([[1]]), np.array([[1]]))
    with daemon.client() as client:
        reply = post(client, "matmul", body, alpha=str(big), beta=str(-(2**62) - 1))
    assert formats.decode(reply, "i64").item() == big - 2**62 - 1


@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_small_integers_are_exact_in_any_type(daemon, rng, dtype):
    a, b = (formats.small_integers(rng, dtype, shape) for shape in ((33, 63), (63, 31)))
    with daemon.client() as client:
        got = formats.decode(post(client, "matmul", formats.encode("raw", dtype, a, b)), dtype)
    if dtype in formats.FLOATS:
        exact = formats.widen(a, dtype) @ formats.widen(b, dtype)
        assert np.array_equal(formats.widen(got, dtype), exact)
    else:
        assert np.array_equal(got, a @ b)


@pytest.mark.parametrize("kernel", ["auto", "naive", "blocked"])
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_matmul_of_larger_matrices(daemon, rng, dtype, kernel):
    """More than a block of each kernel in every direction, and no multiple of any."""
    for m, k, n in ((150, 601, 270), (601, 40, 1030)):
        a, b = (formats.random_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
        with daemon.client() as client:
            reply = post(client, "matmul", formats.encode("raw", dtype, a, b), kernel=kernel)
        formats.Product(dtype, a, b).check(formats.decode(reply, dtype), (m, k, n))


@pytest.mark.parametrize("precision", ["fp32", "ieee"])
@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_precision(daemon, rng, dtype, precision):
    a, b = (formats.random_numbers(rng, dtype, shape) for shape in ((33, 200), (200, 31)))
    with daemon.client() as client:
        body = formats.encode("raw", dtype, a, b)
        reply = post(client, "matmul", body, precision=precision)
    formats.Product(dtype, a, b).check(formats.decode(reply, dtype))


@pytest.mark.parametrize("precision, roundoff", [("tf32", 2.0**-11), ("bf16", 2.0**-8)])
def test_precision_as_a_permission(daemon, rng, precision, roundoff):
    """Factors may be rounded to the short type first: two roundings a product, then f32 sums."""
    a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((33, 200), (200, 31)))
    with daemon.client() as client:
        body = formats.encode("raw", "f32", a, b)
        got = formats.decode(post(client, "matmul", body, precision=precision), "f32")
    exact = formats.Product("f32", a, b)
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    bound = exact.bound + formats.gamma(2, roundoff) * (1 + formats.gamma(204, 2.0**-24)) * size
    assert np.all(np.abs(got - exact.exact) <= bound)


# NaN and infinity.


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", formats.FLOATS)
def test_nonfinite_elements_propagate(daemon, rng, dtype, bad):
    a, b = (np.abs(formats.widen(formats.random_numbers(rng, dtype, (33, 33)), dtype)) for _ in "ab")
    a[7, 5] = bad
    a, b = formats.narrow(a, dtype), formats.narrow(b, dtype)
    with daemon.client() as client:
        got = formats.decode(post(client, "matmul", formats.encode("npy", dtype, a, b)), dtype)
    with np.errstate(invalid="ignore"):
        expected = formats.widen(a, dtype) @ formats.widen(b, dtype)
    got = formats.widen(got, dtype)
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    assert np.array_equal(np.isinf(got), np.isinf(expected))
    assert np.isfinite(got[8]).all() and not np.isfinite(got[7]).any()


@pytest.mark.parametrize("dtype", formats.FLOATS)
def test_zero_times_infinity_is_nan(daemon, dtype):
    a, b = (formats.narrow(np.array([[value]]), dtype) for value in (0.0, math.inf))
    with daemon.client() as client:
        got = formats.decode(post(client, "matmul", formats.encode("raw", dtype, a, b)), dtype)
    assert np.isnan(formats.widen(got, dtype)).all()


@pytest.mark.parametrize("dtype", formats.FLOATS)
@pytest.mark.parametrize("shape", [(1, 1), (33, 33)])
def test_what_is_not_read_does_not_show(daemon, dtype, shape):
    nan, one = (formats.narrow(np.full(shape, value), dtype) for value in (math.nan, 1.0))
    with daemon.client() as client:
        for operands, factors, expected in (
            ((nan, nan, one), {"alpha": 0, "beta": 2}, 2),
            ((one, one, nan), {"alpha": 1, "beta": 0}, shape[0]),
            ((nan, nan), {"alpha": 0}, 0),
        ):
            body = formats.encode("npy", dtype, *operands)
            got = formats.decode(post(client, "matmul", body, **factors), dtype)
            assert (formats.widen(got, dtype) == expected).all(), factors


# The same bits, whatever else goes on.


@pytest.mark.parametrize("dtype", formats.FLOATS)
def test_results_are_the_same_bits_every_time(daemon, rng, dtype):
    a, b, c = (formats.random_numbers(rng, dtype, s) for s in ((97, 289), (289, 101), (97, 101)))
    body = formats.encode("raw", dtype, a, b, c)

    def ask(_):
        with daemon.client() as client:
            replies = [post(client, "matmul", body, alpha="0.3", beta="0.7") for _ in range(6)]
        return {reply.ok().body for reply in replies}

    alone = ask(0)
    assert len(alone) == 1
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for under_load in pool.map(ask, range(12)):
            assert under_load == alone
