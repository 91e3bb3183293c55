"""CSV: as programs write it, there and back for every element type, and through curl."""

import json
import re
import subprocess

import numpy as np
import pytest

import formats
import wire
from formats import post
from problems import check
from wire import target

T = "/v1/transpose"
CSV = {"Content-Type": wire.CSV}

SHAPES = [(1, 1), (1, 17), (17, 1), (2, 3), (97, 101), (3, 4, 5), (4, 1, 1), (2, 33, 31)]


def finite_bits(rng, dtype, shape):
    """Any bits but NaN's, whose text does not say which it is; every fourth is denormal."""
    array = formats.random_bits(rng, dtype, shape).copy()
    if dtype in formats.FLOATS:
        bits = array.reshape(-1).view(f"<u{array.itemsize}")
        fraction = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[dtype]
        sign = 8 * array.itemsize - 1
        bits[::4] &= (1 << sign) | ((1 << fraction) - 1)
        array[np.isnan(formats.widen(array, dtype))] = 1
    return array


@pytest.mark.parametrize("dtype", formats.IN_JSON)
def test_every_bit_there_and_back(daemon, rng, dtype):
    with daemon.client() as client:
        for shape in SHAPES:
            array = finite_bits(rng, dtype, shape)
            reply = post(client, "transpose", formats.encode("csv", dtype, array))
            assert reply.ok().media_type == wire.CSV
            assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(array)), shape


@pytest.mark.parametrize("dtype", formats.IN_JSON)
def test_every_format_to_csv_and_back(daemon, rng, dtype):
    array = formats.random_numbers(rng, dtype, (5, 3))
    with daemon.client() as client:
        for fmt in ("npy", "raw", "json-flat"):
            body = formats.encode(fmt, dtype, array)
            reply = post(client, "transpose", body, accept=wire.CSV)
            assert reply.media_type == wire.CSV
            assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(array))
        for accept in (wire.JSON, wire.NPY, wire.RAW):
            reply = post(client, "transpose", formats.encode("csv", dtype, array), accept=accept)
            assert reply.media_type == accept
            assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(array))


ACCEPTS = [
    (None, wire.CSV),
    ("*/*", wire.CSV),
    ("text/*", wire.CSV),
    ("text/csv", wire.CSV),
    ("text/csv;q=0.5, application/json;q=0.4", wire.CSV),
    ("text/csv;q=0.5, application/json", wire.JSON),
    ("text/csv;q=0, */*;q=0.1", wire.JSON),
    ("application/*", wire.JSON),
]


@pytest.mark.parametrize("accept, expected", ACCEPTS)
def test_accept(daemon, accept, expected):
    reply = daemon.post(T, b"1,2\n", {**CSV, **({"Accept": accept} if accept else {})})
    assert reply.ok().media_type == expected
    assert formats.decode(reply, "f32").tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "content_type", ["text/csv; charset=utf-8", "text/csv; header=present", "TEXT/Csv;charset=\"x\""]
)
def test_parameters_of_the_content_type(daemon, content_type):
    reply = daemon.post(T, b"x,y\n1,2\n", {"Content-Type": content_type})
    assert reply.ok().body == b"1\n2\n"


def test_nan_and_infinity(daemon):
    for dtype in formats.FLOATS:
        reply = daemon.post(target(T, dtype=dtype), b"nan,-inf\nInfinity,NaN\n", CSV)
        assert reply.ok().body == b"nan,inf\n-inf,nan\n"
        reply = daemon.post(target(T, dtype=dtype), b"nan,1\n", {**CSV, "Accept": wire.JSON})
        assert (reply.status, reply.code) == (422, "nonfinite_in_json")


@pytest.mark.parametrize("fmt", ["csv", "json-flat"])
@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_integers_beyond_2_53(daemon, dtype, fmt):
    info = np.iinfo(formats.NUMPY[dtype])
    values = [info.min, info.max, info.max - 1, 2**53 + 1, 2**62 + 1, 10**18 + 1]
    array = np.array([values], formats.NUMPY[dtype])
    for accept in (wire.CSV, wire.JSON, wire.NPY):
        with daemon.client() as client:
            reply = post(client, "transpose", formats.encode(fmt, dtype, array), accept=accept)
        assert formats.same_bits(formats.decode(reply, dtype), array.T), (fmt, accept)


def test_without_elements(daemon):
    """0 rows; of as many columns as a header names, where it is said that there is one."""
    for text, header, shape in ((b"", None, "0x0"), (b"\r\n \n", None, "0x0"), (b"x,y,z\n", "true", "3x0")):
        path = target(T, header=header)
        reply = daemon.post(path, text, CSV).ok()
        assert (reply.body, reply.header("Gemmd-Shape")) == (b"", shape)
        reply = daemon.post(path, text, {**CSV, "Accept": wire.JSON}).ok()
        assert "x".join(map(str, reply.json()["shape"])) == shape


def test_a_first_line_that_might_be_numbers(daemon):
    """It is not passed over in silence: a label, years, nothing below."""
    for text in (b"id,1,2", b"id,1,2\n", b"year,2019,2020\n1,2,3\n", b"x,y\n"):
        check(daemon.post(T, text, CSV), 400, "bad_csv", "header=true")
        assert daemon.post(T + "?header=true", text, CSV).ok().header("Gemmd-Shape") in ("3x0", "3x1", "2x0")
        check(daemon.post(T + "?header=false", text, CSV), 400, "bad_csv", "line 1, field 1")
    reply = daemon.post(T + "?header=true", b"2019,2020\n1,2\n", CSV).ok()
    assert reply.body == b"1\n2\n"


def test_header_as_a_part_behind_the_text(daemon):
    body = (b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nid,7\n1,2\n\r\n'
            b'--B\r\nContent-Disposition: form-data; name="header"\r\n\r\ntrue\r\n--B--\r\n')
    reply = daemon.post(T, body, {"Content-Type": "multipart/form-data; boundary=B", "Accept": wire.CSV})
    assert reply.ok().body == b"1\n2\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " , ", ";\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("fmt", ["%.18e", "%r", "%+.3f", "%g", "%12.5f", '"%.17g"'])
def test_what_numpy_writes(daemon, tmp_path, rng, delimiter, newline, fmt):
    """Against NumPy's reader. In all 180,000 numbers, a few of them odd."""
    array = rng.standard_normal((50, 40)) * 10.0 ** rng.integers(-20, 20, (50, 40))
    array[3, 4], array[5, 6], array[7, 8] = np.nan, np.inf, -np.inf
    path = tmp_path / "a.csv"
    # NumPy 2 has a representation of its own for its floats: %r is meant of Python's.
    rows = array.astype(object) if fmt == "%r" else array
    for header in ("", "first,second"):
        np.savetxt(path, rows, fmt, delimiter, newline, header)
        text = path.read_text().replace('"', "").replace(" ", "").replace("\t", ",")
        lines = [line for line in text.split("\n") if line and "first" not in line]
        split = lines[0].count(";") and ";" or ","
        want = np.array([[float(x) for x in line.replace(",", split).split(split) if x] for line in lines])
        assert want.shape == array.shape
        body = path.read_bytes()
        reply = daemon.post(target(T, dtype="f64"), body, {**CSV, "Accept": wire.NPY})
        got = formats.read_npy(reply.ok(), "f64")
        assert np.array_equal(got, want.T, equal_nan=True)


def test_random_decimals_against_python(daemon, rng):
    """Numbers of up to 40 digits, in every spelling; Python's float rounds them correctly."""
    texts = []
    for _ in range(50000):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 40))))
        point = rng.integers(0, len(digits) + 1)
        text = ("", "-", "+")[rng.integers(3)] + digits[:point] + "." * rng.integers(2)
        text += digits[point:] + ("", f"e{rng.integers(-300, 260)}", "E+05")[rng.integers(3)]
        texts.append(text if text[-1:].isdigit() or text[-1:] == "." else text + "1")
    want = np.array([float(text) for text in texts])
    keep = np.isfinite(want)
    texts, want = [t for t, k in zip(texts, keep) if k], want[keep]
    reply = daemon.post(target(T, dtype="f64"), "\n".join(texts).encode(), {**CSV, "Accept": wire.NPY})
    got = formats.read_npy(reply.ok(), "f64")
    assert got.tobytes() == want.tobytes()


def test_a_large_text(daemon, rng):
    """Text of several MiB is decoded and encoded by other threads than short text."""
    array = formats.random_numbers(rng, "f64", (500, 700))
    with daemon.client() as client:
        reply = post(client, "transpose", formats.encode("csv", "f64", array))
    assert len(reply.body) > 1 << 22
    assert formats.same_bits(formats.decode(reply, "f64"), formats.transposed(array))
    assert reply.stats["us"]["decode"] > 0 and reply.stats["us"]["encode"] > 0


def test_chunked_and_in_pieces(daemon):
    text = b"x;y\r\n1;2\r\n\r\n\"3\";4"
    for size in range(1, len(text) + 1):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        with daemon.client() as client:
            reply = client.post(T, iter(pieces), CSV)
        assert reply.ok().body == b"1\n2\n\n3\n4\n"


REFUSED = [
    (b"1,2\n3\n", {}, 422, "bad_shape", "line 2 has 1 fields where 2"),
    (b"1,2\n\n3,4\n5,6\n", {}, 422, "bad_shape", "2 rows where 1"),
    (b"1,x2\n3,4x\n", {}, 400, "bad_csv", "line 1, field 2 is 'x2'"),
    (b"1,,2\n", {}, 400, "bad_csv", "field 2 is empty"),
    (b"1,5;2,5\n", {}, 400, "bad_csv", "tr ',;' '.,'"),
    (b"[[1,2]]", {}, 400, "bad_csv", "application/json"),
    (b"1,1e39\n", {}, 422, "out_of_range", "'1e39'.*f32"),
    (b"1,9223372036854775808\n", {"dtype": "i64"}, 422, "out_of_range", "i64"),
    (b"1,nan\n", {"dtype": "i32"}, 422, "out_of_range", "'nan'"),
    (b"1,1.5\n", {"dtype": "i32"}, 422, "out_of_range", "whole"),
    (b"1\n", {"dtype": "c64"}, 422, "bad_dtype", "NPY"),
    (b"1\n", {"shape": "1x1"}, 400, "bad_parameter", "text/csv states its own"),
]


@pytest.mark.parametrize("text, parameters, status, code, detail", REFUSED)
def test_refused(daemon, text, parameters, status, code, detail):
    reply = daemon.post(target(T, **parameters), text, CSV)
    assert (reply.status, reply.code) == (status, code), reply
    assert re.search(detail, reply.json()["detail"]), reply


@pytest.mark.parametrize("op", ["matmul", "add", "compare/matmul"])
def test_two_operands_do_not_fit_into_one_text(daemon, op):
    """Known from the headers; the answer says what to type."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", f"/v1/{op}", "Content-Type: text/csv", "Content-Length: 4"))
        raw.send(b"1,2\n")
        reply = raw.reply()
    assert (reply.status, reply.code) == (422, "missing_operand")
    assert "-F a=@a.csv -F b=@b.csv" in reply.json()["detail"]


def test_results_that_csv_cannot_carry(daemon):
    reply = daemon.post(T, formats.npy(np.ones((2, 3), "<c8")), {"Accept": wire.CSV})
    assert (reply.status, reply.code) == (422, "cannot_encode")


def test_curl(daemon, tmp_path, rng):
    array = rng.standard_normal((30, 20)).astype("<f4")
    np.savetxt(tmp_path / "a.csv", array, "%.9g", ",", header="a,b")
    command = ["curl", "-sS", "--data-binary", f"@{tmp_path}/a.csv", "-H", "Content-Type: text/csv",
               daemon.url(T), "-o", f"{tmp_path}/t.csv"]
    subprocess.run(command, check=True)
    assert np.array_equal(np.loadtxt(tmp_path / "t.csv", "<f4", delimiter=","), array.T)
    command[3] = f"@{tmp_path}/t.csv"
    subprocess.run([*command, "-H", "Accept: application/json"], check=True)
    document = json.loads((tmp_path / "t.csv").read_text())
    assert np.array_equal(np.array(document["data"], "<f4"), array)


def test_compare_and_explain_take_csv(daemon):
    for path in ("/v1/compare/transpose", "/v1/explain/transpose"):
        reply = daemon.post(path, b"1,2\n3,4\n", {**CSV, "Accept": wire.JSON}).ok()
        assert reply.media_type == wire.JSON
