"""NPY files that are damaged in every way, and shapes that overflow in every format: each is refused
with the same answer however the bytes come, and costs nothing."""

import contextlib
import io
import json
import struct
from urllib.parse import urlencode

import numpy as np
import pytest

import formats
import wire
from formats import npy_claiming as claiming
from hostile import unharmed
from problems import check_one_of
from wire import JSON, NPY, RAW

T, M = "/v1/transpose", "/v1/matmul"
GOOD = formats.npy(np.ones((2, 2), "<f4"))
FIELDS = {"descr": "'<f4'", "fortran_order": "False", "shape": "(2, 2)"}


def header(text, size=16, version=1):
    """A file whose header is this text, and zeros behind it."""
    text = text if isinstance(text, bytes) else text.encode("latin-1")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + bytes(size)


def fields(size=16, **changed):
    """A header with some of its values replaced, or left out where they are None."""
    values = {**FIELDS, **changed}
    text = ", ".join(f"'{name}': {value}" for name, value in values.items() if value is not None)
    return header("{" + text + "}\n", size)


BAD, CUT, LONG, SHAPE, TYPE = ("400 bad_npy", "400 body_truncated", "400 body_trailing",
                               "422 bad_shape", "422 bad_dtype")

FILES = {
    # The beginning.
    "one byte": (b"\x93", CUT),
    "half the magic": (GOOD[:5], CUT),
    "the magic alone": (GOOD[:6], CUT),
    "no minor version": (GOOD[:7], CUT),
    "no length": (GOOD[:8], CUT),
    "half a length": (GOOD[:9], CUT),
    "no header": (GOOD[:10], CUT),
    "half a header": (GOOD[:50], CUT),
    "all but the line end": (GOOD[:127], CUT),
    "no data": (GOOD[:128], CUT),
    "all but a byte": (GOOD[:-1], CUT),
    "a byte more": (GOOD + b"\0", LONG),
    "another magic": (b"\x92" + GOOD[1:], BAD),
    "magic in small letters": (b"\x93numpy" + GOOD[6:], BAD),
    "version 0": (GOOD[:6] + b"\0\0" + GOOD[8:], BAD),
    "version 4": (GOOD[:6] + b"\4\0" + GOOD[8:], BAD),
    "version 1.1": (GOOD[:6] + b"\1\1" + GOOD[8:], BAD),
    "version 255": (GOOD[:6] + b"\xff\xff" + GOOD[8:], BAD),
    # Its length.
    "an empty header": (header(""), BAD),
    "a header of spaces": (header(" " * 117 + "\n"), BAD),
    "a length of 4 GiB": (b"\x93NUMPY\2\0\xff\xff\xff\xff" + GOOD[10:], BAD),
    "a length of 2 GiB": (b"\x93NUMPY\3\0\0\0\0\x80" + GOOD[10:], BAD),
    "a length of 64 KiB": (b"\x93NUMPY\1\0\xff\xff" + GOOD[10:], "400 body_truncated or 400 bad_npy"),
    "a length that ends within": (b"\x93NUMPY\1\0\x20\0" + GOOD[10:], BAD),
    "version 2 read as 1": (GOOD[:6] + b"\2\0" + GOOD[8:], BAD),
    # What is in it.
    "no braces": (header("'descr': '<f4'\n"), BAD),
    "no end": (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)\n"), BAD),
    "a list": (header("['<f4', False, (2, 2)]\n"), BAD),
    "JSON": (header('{"descr": "<f4", "fortran_order": false, "shape": [2, 2]}\n'), BAD),
    "NUL": (header("{'descr': '<f4'\0, 'fortran_order': False, 'shape': (2, 2)}\n"), BAD),
    "a string without an end": (header("{'descr': '<f4}\n"), BAD),
    "high bytes": (header("{'descr': '\xff\xfe', 'fortran_order': False, 'shape': (2, 2)}\n"), TYPE),
    "a key twice": (header("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, "
                           "'shape': (2, 2)}\n"), BAD),
    "a fourth key": (fields(x="1"), BAD),
    "a call": (fields(shape="__import__('os').system('true')"), BAD),
    "a comment": (header("{'descr': '<f4', # x\n'fortran_order': False, 'shape': (2, 2)}\n"), BAD),
    "no descr": (fields(descr=None), BAD),
    "no order": (fields(fortran_order=None), BAD),
    "no shape": (fields(shape=None), BAD),
    "order 0": (fields(fortran_order="0"), BAD),
    "order true": (fields(fortran_order="true"), BAD),
    "order 'False'": (fields(fortran_order="'False'"), BAD),
    "descr 4": (fields(descr="4"), BAD),
    "descr None": (fields(descr="None"), BAD),
    "no words for descr": (fields(descr="''"), TYPE),
    "descr <": (fields(descr="'<'"), TYPE),
    "descr <f": (fields(descr="'<f'"), TYPE),
    "descr <f3": (fields(descr="'<f3'"), TYPE),
    "descr <f-4": (fields(descr="'<f-4'"), TYPE),
    "descr <f4 and more": (fields(descr="'<f4x'"), TYPE),
    "descr ?": (fields(descr="'?'"), TYPE),
    "descr of 2^64": (fields(descr="'|V18446744073709551620'"), TYPE),
    "descr of 2^32": (fields(descr="'|V4294967300'"), TYPE),
    "descr V0": (fields(descr="'|V0'"), TYPE),
    "a long descr": (fields(descr="'" + "f" * 5000 + "'"), TYPE),
    "object": (fields(descr="'|O'"), TYPE),
    "text": (fields(descr="'<U4'"), TYPE),
    "bytes": (fields(descr="'|S4'"), TYPE),
    "dates": (fields(descr="'<M8[s]'"), TYPE),
    "records": (fields(descr="[('x', '<f4')]"), TYPE),
    "long floats": (fields(descr="'<f16'"), TYPE),
    # The shape.
    "shape 4": (fields(shape="4"), BAD),
    "a shape in brackets": (fields(shape="[2, 2]"), BAD),
    "(4), no tuple": (fields(shape="(4)"), BAD),
    "a shape without an end": (fields(shape="(2, 2"), BAD),
    "a shape of words": (fields(shape="('2', '2')"), BAD),
    "a shape of nothing": (fields(shape="(,)"), BAD),
    "two commas": (fields(shape="(2,, 2)"), BAD),
    "a nested shape": (fields(shape="((2, 2),)"), BAD),
    "-1": (fields(shape="(-1, 2)"), BAD),
    "-0": (fields(shape="(-0, 2)"), BAD),
    "+2": (fields(shape="(+2, 2)"), BAD),
    "2.0": (fields(shape="(2.0, 2)"), BAD),
    "2e0": (fields(shape="(2e0, 2)"), BAD),
    "0x2": (fields(shape="(0x2, 2)"), BAD),
    "2_0": (fields(shape="(2_0, 2)"), BAD),
    "True": (fields(shape="(True, 2)"), BAD),
    "four dimensions": (fields(shape="(1, 1, 2, 2)"), SHAPE),
    "33 dimensions": (fields(shape="(" + "1, " * 33 + ")"), SHAPE),
    "2000 dimensions": (fields(shape="(" + "1," * 2000 + ")"), SHAPE),
    "more than a header may hold": (fields(shape="(" + "1," * 20000 + ")"), BAD),
    "2^63": (fields(shape=f"({1 << 63}, 1)"), SHAPE),
    "2^64": (fields(shape=f"({1 << 64}, 1)"), SHAPE),
    "2^64 + 2": (fields(shape=f"({(1 << 64) + 2}, 2)"), SHAPE),
    "a hundred digits": (fields(shape="(" + "9" * 100 + ", 1)"), SHAPE),
    "2^64 of nothing": (fields(shape=f"({1 << 64}, 0)", size=0), SHAPE),
    "a product of 2^64": (fields(shape=f"({1 << 32}, {1 << 32})"), SHAPE),
    "a product of 2^64 + 4": (fields(shape=f"(4, {(1 << 62) + 1})"), SHAPE),
    "bytes past 2^64": (fields(shape=f"({1 << 31}, {1 << 31})"), SHAPE),
    "a product past 2^64 of nothing": (fields(shape=f"({1 << 40}, {1 << 40}, 0)", size=0), SHAPE),
    "more than there can be": (fields(shape=f"({1 << 30}, {1 << 20})"),
                               "400 body_truncated or 413 too_large"),
}


def in_chunks(daemon, path, content_type, body, size):
    """The reply to a body in chunks of so many bytes, which may come before its end."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", path, "Content-Type: " + content_type,
                           "Transfer-Encoding: chunked"))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pieces = (body[i : i + size] for i in range(0, len(body), size))
            raw.send(*(wire.chunk(piece) for piece in pieces), b"0\r\n\r\n")
        return raw.reply()


@pytest.mark.parametrize("file, answer", FILES.values(), ids=FILES)
def test_damaged_files(daemon, file, answer):
    """With a length, in chunks of a few bytes, and behind a whole one."""
    with daemon.client() as client:
        check_one_of(client.post(T, file, {"Content-Type": NPY}), answer)
        second = client.post(M, GOOD + file, {"Content-Type": NPY})
        assert second.status in (400, 413, 422), second
        assert client.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
    check_one_of(in_chunks(daemon, T, NPY, file, 7), answer)


def test_every_byte_of_a_header_changed(daemon):
    """To a few values each: never a crash, never a wait, never 500; and what is accepted is a matrix
    of 16 bytes still."""
    file = bytearray(formats.npy(np.ones((2, 2), "<f4")))
    with unharmed(daemon), daemon.client() as client:
        for at in range(128):
            for value in (0, 0x20, 0x31, 0x39, 0x7F, 0xFF):
                kept, file[at] = file[at], value
                reply = client.post(T, bytes(file), {"Content-Type": NPY})
                assert reply.status in (200, 400, 413, 422), reply
                if reply.status == 200:
                    assert np.lib.format.read_magic(io.BytesIO(reply.body)) == (1, 0)
                    assert len(reply.body) == 128 + 16
                file[at] = kept
        client.connection.close()


# Shapes that overflow, in every format that can state one.

HUGE = [
    (1 << 31, 1 << 31), (1 << 32, 1 << 32), (1 << 62, 4), (1 << 63, 1), (1, 1 << 63), (1 << 64, 1),
    ((1 << 64) + 1, 1), (1 << 16, 1 << 48), (10**30, 1), (1 << 40, 1 << 40), (3, (1 << 64) // 3),
    (1 << 21, 1 << 21, 1 << 21), (1 << 32, 1 << 32, 0), (1 << 63, 0),
]
SIGNED = [(-1, 4), (4, -1), (-2, -2), (-(1 << 63), 1), (-(1 << 64), 0)]
# What can be said of one that no machine can hold.
TOO_MUCH = ("422 bad_shape or 413 too_large or 400 bad_parameter or 400 body_truncated or "
            "400 bad_json or 400 bad_npy")


@pytest.mark.parametrize("shape", HUGE + SIGNED, ids=str)
def test_shapes_that_overflow(daemon, shape):
    text = "x".join(map(str, shape))
    cases = [
        (f"{T}?shape={text}", RAW, bytes(16)),
        (f"{T}?shape={text}&dtype=c128", RAW, b""),
        (f"{M}?shape_a=1x1&shape_b={text}", RAW, bytes(16)),
        (T, NPY, claiming(str(shape))),
        (T, JSON, json.dumps({"shape": shape, "data": [1, 2, 3, 4]}).encode()),
        (T, JSON, json.dumps({"shape": shape, "data": []}).encode()),
        (T, JSON, json.dumps({"a": {"dtype": "f64", "shape": shape, "data": [[1]]}}).encode()),
    ]
    with unharmed(daemon), daemon.client() as client:
        for path, content_type, body in cases:
            reply = client.post(path, body, {"Content-Type": content_type})
            check_one_of(reply, TOO_MUCH)
            assert reply.header("Retry-After") is None, "no time will help"
        assert client.get(f"/v1/explain/transpose?shape={text}").status in (400, 422)
        client.connection.close()
    for path, content_type, body in cases:
        check_one_of(in_chunks(daemon, path, content_type, body, 1000), TOO_MUCH)


@pytest.mark.parametrize(
    "name, value",
    [("repeat", 1 << 63), ("repeat", (1 << 64) + 1), ("repeat", -1), ("timeout_ms", 1 << 64),
     ("timeout_ms", -5), ("timeout_ms", "1e3"), ("alpha", "1e999999999"), ("beta", "-"),
     ("shape_a", "1x"), ("shape_a", "x1"), ("shape_a", "1xx1"), ("shape_a", "1X1"),
     ("shape_a", " 1x1"), ("shape_a", "1x1 "), ("shape_a", "0x0x0x0"), ("shape_a", "1.0x1"),
     ("shape_a", "+1x1"), ("shape_a", "1" * 1000), ("shape_a", "\uff11x1")],
)
def test_numbers_that_are_none(daemon, name, value):
    query = urlencode({"shape_a": "1x1", "shape_b": "1x1", name: value})
    reply = daemon.post(f"{M}?{query}", bytes(8), {"Content-Type": RAW})
    check_one_of(reply, "400 bad_parameter or 422 out_of_range")
