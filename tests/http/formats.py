"""Matrices as the tests make them, send them and read them back. Nothing here is shared
with gemmd: NumPy is the oracle, and what NumPy lacks (bfloat16) is made by hand.

A matrix is a NumPy array together with the name of its element type. bf16 is held as its
16 bits, in a uint16 array; opaque elements as NumPy's void."""

import io
import json
from decimal import Decimal

import numpy as np

import wire

NUMPY = {
    "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8", "i32": "<i4", "i64": "<i8",
    "bool": "|b1", "i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "u32": "<u4",
    "u64": "<u8", "c64": "<c8", "c128": "<c16",
    "v1": "|V1", "v2": "|V2", "v4": "|V4", "v8": "|V8", "v16": "|V16",
}
ARITHMETIC = ("f16", "bf16", "f32", "f64", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
IN_JSON = (*FLOATS, *INTEGERS, "bool")
# Big-endian files exist for numbers of more than a byte.
SWAPPABLE = ("f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64", "c64", "c128")

# Half the distance between 1 and the next number: the relative error of one rounding.
ROUNDOFF = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
# The same below the smallest normal number, where the error is absolute.
UNDERFLOW = {"f16": 2.0**-25, "bf16": 2.0**-134, "f32": 2.0**-150, "f64": 2.0**-1075}


# Element types.


def bf16_round(values):
    """float64 to the nearest bf16, ties to even, as uint16. Rounded once: by way of f32,
    rounded to odd, which keeps what decides a tie."""
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        near = wide.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32).astype(np.int64)
    inexact = np.isfinite(back) & (back != wide)
    # Truncate: one step towards zero where rounding went away from it; then make it odd.
    bits = np.where(inexact & (np.abs(back) > np.abs(wide)), bits - 1, bits)
    bits = np.where(inexact, bits | 1, bits)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(wide), 0x7FC0, rounded).astype(np.uint16)


def bf16_widen(bits):
    return np.left_shift(bits, 16, dtype=np.uint32)[...].view(np.float32)


def widen(array, dtype):
    """Floating-point elements as float64, exactly."""
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        return (bf16_widen(array) if dtype == "bf16" else array).astype(np.float64)


def narrow(values, dtype):
    """float64 (or integers) to the element type, rounded once."""
    return bf16_round(values) if dtype == "bf16" else np.asarray(values).astype(NUMPY[dtype])


def random_bits(rng, dtype, shape):
    """Any bits at all, NaNs included: for operations that only move elements."""
    kind = np.dtype(NUMPY[dtype])
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(count * kind.itemsize), kind, count).reshape(shape)


def random_numbers(rng, dtype, shape):
    """Finite numbers: of order 1 for floating point, of the full range for integers."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return narrow(rng.standard_normal(shape), dtype)
    info = np.iinfo(NUMPY[dtype])
    return rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)


def small_integers(rng, dtype, shape):
    """From -2 to 2: sums of up to 64 products are exact in every arithmetic type."""
    return narrow(rng.integers(-2, 3, shape), dtype)


# Bodies.


def npy(array, version=(1, 0), descr=None, fortran=False, shape=None, data=None):
    """An NPY file, each part of its header as wanted, truthful or not."""
    array = np.asarray(array)
    header = "{'descr': %r, 'fortran_order': %r, 'shape': %s, }" % (
        descr or array.dtype.str,
        fortran,
        shape if shape is not None else repr(array.shape),
    )
    return npy_with_header(header, version) + (
        array.tobytes("F" if fortran else "C") if data is None else data
    )


def npy_with_header(header, version=(1, 0)):
    prefix = 8 + (2 if version == (1, 0) else 4)
    text = header.encode("utf-8" if version == (3, 0) else "latin-1")
    text += b" " * (-(prefix + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(prefix - 8, "little") + text


def npy_claiming(shape, size=16, descr="<f4"):
    """An NPY file that says what it likes, followed by `size` bytes."""
    return npy(np.zeros(0, "<f4"), shape=shape, descr=descr, data=bytes(size))


def npy_of(array, dtype, version=(1, 0), swapped=False, fortran=False):
    descr = {"bf16": "<V2"}.get(dtype)
    if swapped:
        array = array.astype(array.dtype.newbyteorder(">"))
    return npy(array, version, descr, fortran)


def json_value(array, dtype):
    values = widen(array, dtype) if dtype in FLOATS else array
    return values.tolist()


def json_operand(array, dtype, flat=False):
    values = array.reshape(-1) if flat else array
    return {"shape": list(array.shape), "dtype": dtype, "data": json_value(values, dtype)}


def csv_text(array, dtype, separator=",", line_end="\n"):
    """Matrices of a stack are separated by an empty line."""
    values = json_value(array, dtype)
    matrices = values if array.ndim == 3 else [values]
    texts = []
    for rows in matrices:
        lines = (separator.join(str(int(x)) if dtype == "bool" else repr(x) for x in row) for row in rows)
        texts.append("".join(line + line_end for line in lines))
    return line_end.join(texts)


class Body:
    """A request's body, and what must stand in its head for it to be understood."""

    def __init__(self, media_type, data, **parameters):
        self.media_type, self.data, self.parameters = media_type, data, parameters

    @property
    def headers(self):
        return {"Content-Type": self.media_type} if self.media_type else {}


def raw_shapes(arrays):
    """Fewer than two dimensions are a file's way to say it; here one says RxC."""
    shapes = ("x".join(map(str, as_matrix(x).shape)) for x in arrays)
    return {f"shape_{name}": shape for name, shape in zip("abc", shapes)}


def encode(fmt, dtype, *arrays):
    """The operands in one of FORMATS."""
    if fmt.startswith("json"):
        operands = [json_operand(x, dtype, flat=fmt == "json-flat") for x in arrays]
        if fmt == "json-bare":  # the elements alone, as nested rows
            operands = [operand["data"] for operand in operands]
        document = operands[0] if len(arrays) == 1 else dict(zip("abc", operands))
        parameters = {"dtype": dtype} if fmt == "json-bare" else {}
        return Body(wire.JSON, json.dumps(document).encode(), **parameters)
    if fmt == "raw":
        data = b"".join(x.tobytes() for x in arrays)
        return Body(wire.RAW, data, dtype=dtype, **raw_shapes(arrays))
    if fmt == "csv":
        assert len(arrays) == 1, "a CSV body is one matrix"
        return Body(wire.CSV, csv_text(arrays[0], dtype).encode(), dtype=dtype)
    options = {
        "version": {"npy-2": (2, 0), "npy-3": (3, 0)}.get(fmt, (1, 0)),
        "swapped": fmt in ("npy-big", "npy-big-fortran"),
        "fortran": fmt in ("npy-fortran", "npy-big-fortran"),
    }
    parameters = {"dtype": dtype} if dtype == "bf16" else {}
    return Body(wire.NPY, b"".join(npy_of(x, dtype, **options) for x in arrays), **parameters)


NPY_FORMATS = ("npy", "npy-2", "npy-3", "npy-fortran", "npy-big", "npy-big-fortran")
JSON_FORMATS = ("json-nested", "json-flat", "json-bare")
FORMATS = (*NPY_FORMATS, "raw", *JSON_FORMATS)


def format_can(fmt, dtype):
    """Whether such elements can be sent in that format at all."""
    if fmt.startswith("json"):
        return dtype in IN_JSON
    return dtype in SWAPPABLE or "big" not in fmt


def post(client, op, body, accept=None, **parameters):
    """Sends a Body to an operation."""
    headers = {**body.headers, **({"Accept": accept} if accept else {})}
    path = wire.target(f"/v1/{op}", **{**body.parameters, **parameters})
    return client.post(path, body.data, headers)


# Replies.


def decode(reply, dtype):
    """The array in a reply, its format checked to the letter."""
    assert reply.status == 200, reply
    read = {wire.JSON: read_json, wire.CSV: read_csv, wire.NPY: read_npy, wire.RAW: read_raw}[
        reply.media_type
    ]
    return read(reply, dtype)


def read_npy(reply, dtype):
    """Results are version 1.0, little-endian, C order; the elements begin aligned to 64."""
    body = reply.body
    assert body[:8] == b"\x93NUMPY\x01\x00", body[:8]
    assert (10 + int.from_bytes(body[8:10], "little")) % 64 == 0, body[:128]
    array = np.load(io.BytesIO(body), allow_pickle=False)
    expected = np.dtype("V2" if dtype == "bf16" else NUMPY[dtype])
    assert array.dtype == expected and array.dtype.isnative, array.dtype
    assert b"'fortran_order': False" in body[:256], body[:256]
    return array.view("<u2") if dtype == "bf16" else array


def read_raw(reply, dtype):
    assert reply.header("Gemmd-Dtype") == dtype, reply.headers
    shape = [int(size) for size in reply.header("Gemmd-Shape").split("x")]
    return np.frombuffer(reply.body, NUMPY[dtype]).reshape(shape)


def read_csv(reply, dtype):
    """Commas and line feeds, and nothing at all where there are no elements."""
    assert reply.header("Gemmd-Dtype") == dtype, reply.headers
    shape = [int(size) for size in reply.header("Gemmd-Shape").split("x")]
    if 0 in shape:
        assert reply.body == b""
        return np.empty(shape, NUMPY[dtype])
    text = reply.body.decode("ascii")
    assert text.endswith("\n") and " " not in text and "\r" not in text
    matrices = [[row.split(",") for row in part.splitlines()] for part in text.split("\n\n")]
    data = matrices if len(shape) == 3 else matrices[0]
    assert nesting(data) == shape and len(matrices) == (shape[0] if len(shape) == 3 else 1)
    if dtype in FLOATS:
        values = [float(x) for part in matrices for row in part for x in row]
        return narrow(np.array(values).reshape(shape), dtype)
    values = [int(x) for part in matrices for row in part for x in row]
    return np.array(values, dtype=object).astype(NUMPY[dtype]).reshape(shape)


def read_json(reply, dtype):
    """Numbers are read as text and rounded once, so that no reader hides a lost bit."""
    document = json.loads(reply.body, parse_float=Decimal, parse_constant=refuse)
    assert document["dtype"] == dtype
    shape, data = document["shape"], document["data"]
    if 0 in shape:  # rows that are empty, or none
        assert data == np.empty(shape).tolist()
    else:
        assert nesting(data) == shape, (shape, nesting(data))
    if dtype in FLOATS:
        values = np.array(data, dtype=object).astype(np.float64).reshape(shape)
        return narrow(values, dtype)
    values = np.array(data, dtype=object).reshape(shape)
    kinds = {bool} if dtype == "bool" else {int}
    assert {type(value) for value in values.flat} <= kinds, document
    return values.astype(NUMPY[dtype])


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def nesting(data):
    """The shape of nested lists, which must not be ragged."""
    if not isinstance(data, list):
        return []
    shapes = [nesting(item) for item in data]
    assert all(shape == shapes[0] for shape in shapes), "ragged"
    return [len(data), *(shapes[0] if shapes else [])]


# What the answer must be.


def as_matrix(array):
    """One dimension N is 1xN, none is 1x1."""
    return np.atleast_2d(array)


def transposed(array):
    return np.ascontiguousarray(np.swapaxes(as_matrix(array), -1, -2))


def same_bits(got, expected):
    return (
        got.shape == expected.shape
        and got.dtype == expected.dtype
        and got.tobytes() == expected.tobytes()
    )


class Product:
    """alpha * op(a) op(b) + beta * c, and how far from it a computed one may be.

    For sums of K products in a type of unit roundoff u, in any order, the error is at most
    gamma(K) * |a| |b|, gamma(n) = n*u / (1 - n*u) (Higham, Accuracy and Stability of Numerical
    Algorithms, section 3.5). The two factors and the last addition add four roundings. f16 and
    bf16 do this in f32 and then round once more, to their own type."""

    def __init__(self, dtype, a, b, c=None, alpha=1, beta=None, transa=False, transb=False):
        self.dtype = dtype
        a, b = (as_matrix(x) for x in (a, b))
        a = np.swapaxes(a, -1, -2) if transa else a
        b = np.swapaxes(b, -1, -2) if transb else b
        beta = (0 if c is None else 1) if beta is None else beta
        if dtype in FLOATS:
            self._floating(a, b, c, alpha, beta)
        else:
            kind = np.dtype(NUMPY[dtype]).type
            with np.errstate(over="ignore"):
                self.exact = kind(alpha) * np.matmul(a, b)
                if c is not None:
                    self.exact = self.exact + kind(beta) * as_matrix(c)
            self.bound = None

    def _floating(self, a, b, c, alpha, beta):
        dtype = self.dtype
        # NumPy multiplies long doubles element by element, and doubles by a BLAS.
        wide = np.longdouble if dtype == "f64" else np.float64
        a, b = (widen(x, dtype).astype(wide) for x in (a, b))
        value = alpha * np.matmul(a, b)
        size = abs(alpha) * np.matmul(abs(a), abs(b))
        if c is not None:
            addend = beta * widen(as_matrix(c), dtype).astype(wide)
            value, size = value + addend, size + abs(addend)
        inner = "f32" if dtype in ("f16", "bf16") else dtype
        steps = a.shape[-1] + 4
        reference = ROUNDOFF["f64"] * (2.0**-11 if dtype == "f64" else 1)  # long double has 11 bits more
        error = gamma(steps, ROUNDOFF[inner]) * size + steps * UNDERFLOW[inner]
        error = error + gamma(steps, reference) * size
        if inner != dtype:
            error = error + ROUNDOFF[dtype] * (abs(value) + error) + UNDERFLOW[dtype]
        self.exact, self.bound = value, error

    def check(self, got, case=""):
        assert got.shape == self.exact.shape, (case, got.shape, self.exact.shape)
        if self.bound is None:
            assert same_bits(got, self.exact), case
            return
        error = abs(widen(got, self.dtype).astype(np.longdouble) - self.exact)
        # Written so that a NaN fails.
        assert np.all(error <= self.bound), (case, float(np.max(error / self.bound)))


def gamma(count, roundoff):
    assert count * roundoff < 0.5
    return count * roundoff / (1 - count * roundoff)
