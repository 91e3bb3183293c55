"""Matrices in every format, there and back: transposes of every element type and shape, against
NumPy; how a reply's format is chosen, and every way in which a body may arrive."""

import time
import xml.etree.ElementTree

import numpy as np
import pytest

import formats
import wire
from formats import post
from wire import target

TILE_EDGES = [(31, 33), (32, 32), (33, 31), (63, 65), (64, 64), (65, 63)]
MATRICES = [(0, 0), (0, 5), (5, 0), (1, 1), (1, 17), (17, 1), (2, 3), (97, 101), (3, 500), (500, 3)]
STACKS = [(3, 4, 5), (1, 3, 4), (0, 3, 4), (3, 0, 4), (3, 4, 0), (4, 1, 1), (2, 33, 31)]
FEW_DIMENSIONS = [(), (0,), (1,), (7,)]
SHAPES = [*MATRICES, *TILE_EDGES, *STACKS, *FEW_DIMENSIONS]


# Transpose.


@pytest.mark.parametrize("fmt", [f for f in formats.FORMATS if "json" not in f])
@pytest.mark.parametrize("dtype", formats.NUMPY)
def test_transpose_moves_any_bits(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    with daemon.client() as client:
        for shape in SHAPES:
            array = formats.random_bits(rng, dtype, shape)
            got = formats.decode(post(client, "transpose", formats.encode(fmt, dtype, array)), dtype)
            assert formats.same_bits(got, formats.transposed(array)), shape


@pytest.mark.parametrize("fmt", formats.JSON_FORMATS)
@pytest.mark.parametrize("dtype", formats.IN_JSON)
def test_transpose_json(daemon, rng, dtype, fmt):
    with daemon.client() as client:
        for shape in SHAPES:
            array = formats.random_numbers(rng, dtype, shape)
            if fmt == "json-bare" and (array.size == 0 or array.ndim == 0):
                continue  # brackets alone do not say how many columns no rows have
            got = formats.decode(post(client, "transpose", formats.encode(fmt, dtype, array)), dtype)
            assert formats.same_bits(got, formats.transposed(array)), shape


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_files_that_numpy_wrote(daemon, tmp_path, version):
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for name, layout in (("c", array), ("fortran", np.asfortranarray(array))):
        path = tmp_path / f"{name}.npy"
        with open(path, "wb") as file:
            np.lib.format.write_array(file, layout, version)
        reply = daemon.post("/v1/transpose", path.read_bytes())
        assert formats.same_bits(formats.read_npy(reply, "f32"), formats.transposed(array))


@pytest.mark.parametrize(
    "header",
    [
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",  # any order, no last comma
        '{"descr": "<f4", "fortran_order": False, "shape": (2, 3), }',
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,)}",
        "{ 'descr' : '<f4' ,  'fortran_order' : False , 'shape' : ( 2 , 3 ) , }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",  # Python 2 wrote these
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3), }",
    ],
)
def test_npy_headers_as_others_write_them(daemon, header):
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    reply = daemon.post("/v1/transpose", formats.npy_with_header(header) + array.tobytes())
    assert formats.same_bits(formats.read_npy(reply, "f32"), formats.transposed(array))


def test_npy_header_of_any_length(daemon):
    """Writers align the data to 64; readers must not ask for it."""
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    for padding in (0, 1, 5, 16, 3000):
        header = text + b" " * padding + b"\n"
        file = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + array.tobytes()
        reply = daemon.post("/v1/transpose", file)
        assert formats.same_bits(formats.read_npy(reply, "f32"), formats.transposed(array)), padding


@pytest.mark.parametrize("descr", ["<V2", "|V2"])
@pytest.mark.parametrize("asked, dtype", [(None, "v2"), ("bf16", "bf16"), ("v2", "v2")])
def test_two_byte_void_is_bf16_if_named_so(daemon, descr, asked, dtype):
    bits = np.arange(6, dtype="<u2").reshape(2, 3)
    reply = daemon.post(target("/v1/transpose", dtype=asked), formats.npy(bits, descr=descr))
    assert reply.ok().stats["dtype"] == dtype
    assert np.frombuffer(reply.body[-12:], "<u2").tolist() == [0, 3, 1, 4, 2, 5]


def test_one_dimension_is_a_row(daemon):
    reply = daemon.post("/v1/transpose", b"[1, 2, 3]").ok().json()
    assert reply["shape"] == [3, 1] and reply["data"] == [[1], [2], [3]]


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64", "c128"])
def test_transpose_of_a_larger_matrix(daemon, rng, dtype):
    """Large enough to be done in tiles by several threads, and sent and received in pieces."""
    for shape in ((1301, 1103), (3, 577, 801), (2, 700001), (700001, 2)):
        array = formats.random_bits(rng, dtype, shape)
        for fmt in ("npy", "npy-fortran", "raw"):
            body = formats.encode(fmt, dtype, array)
            with daemon.client() as client:
                got = formats.decode(post(client, "transpose", body), dtype)
            assert formats.same_bits(got, formats.transposed(array)), (fmt, shape)


# The format of a reply.

ACCEPTS = [
    (None, None),
    ("*/*", None),
    ("application/*", None),
    ("application/json", wire.JSON),
    ("application/x-npy", wire.NPY),
    ("application/octet-stream", wire.RAW),
    ("APPLICATION/JSON", wire.JSON),
    ("application/json; charset=utf-8", wire.JSON),
    ("application/json;q=0.5, application/x-npy;q=0.9", wire.NPY),
    ("application/x-npy ; q=0.9 ,application/json;q=0.95", wire.JSON),
    ("application/json;q=0.001,application/octet-stream;q=0.002", wire.RAW),
    ("text/html, application/json;q=0.1", wire.JSON),
    ("text/html, */*;q=0.1", None),
    ("application/json;q=0, application/x-npy", wire.NPY),
]


@pytest.mark.parametrize("accept, expected", ACCEPTS)
@pytest.mark.parametrize("fmt", ["npy", "raw", "json-nested"])
def test_accept(daemon, fmt, accept, expected):
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    body = formats.encode(fmt, "f32", array)
    with daemon.client() as client:
        reply = post(client, "transpose", body, accept=accept)
    assert reply.ok().media_type == (expected or body.media_type)
    assert formats.same_bits(formats.decode(reply, "f32"), formats.transposed(array))


@pytest.mark.parametrize("lines", [1, 4, 10, 100])
def test_an_accept_header_in_several_lines_is_one_list(daemon, lines):
    with daemon.raw() as raw:
        others = [f"Accept: x/y{n}" for n in range(lines)]
        raw.send(wire.head("POST", "/v1/transpose", *others, "Accept: application/octet-stream", "Content-Length: 5"), b"[[1]]")
        assert raw.reply().ok().media_type == wire.RAW


@pytest.mark.parametrize("scheme", ["http", "https", "HTTPS"])
def test_the_absolute_format_of_a_target(daemon, scheme):
    """As a client sends it that takes gemmd for a proxy; RFC 9112 3.2.2 wants it understood."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", f"{scheme}://localhost/v1/transpose", "Content-Length: 5"), b"[[1]]")
        assert raw.reply().ok().json()["data"] == [[1]]
        raw.send(wire.head("GET", f"{scheme}://localhost")) # the console, at /
        assert raw.reply().ok().media_type == "text/html"


@pytest.mark.parametrize("coding, status", [("identity", 200), ("Identity", 200), ("gzip", 415),
                                            ("identity, gzip", 415), ("", 415)])
def test_content_encoding(daemon, coding, status):
    reply = daemon.post("/v1/transpose", b"[[1]]", {"Content-Encoding": coding})
    assert reply.status == status, reply


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/csv;q=0", "application/json;q=0"])
def test_nothing_acceptable(daemon, accept):
    reply = daemon.post("/v1/transpose", b"[[1]]", {"Accept": accept})
    assert (reply.status, reply.code) == (406, "not_acceptable")
    for fmt in (wire.JSON, wire.CSV, wire.NPY, wire.RAW, "image/svg+xml"):
        assert fmt in reply.json()["detail"]


def test_a_result_as_a_heat_map(daemon):
    """Only where it is asked for by name: whoever takes anything gets the format that he sent."""
    body = formats.npy(np.array([[1, 2], [np.nan, 1]], "<f4"))
    svg = {"Accept": "text/html, image/svg+xml, */*;q=0.5"}
    with daemon.client() as client:
        reply = client.post("/v1/transpose", body, svg).ok()
        assert reply.media_type == "image/svg+xml" and reply.header("Gemmd-Shape") == "2x2" and reply.stats["op"] == "transpose"
        assert xml.etree.ElementTree.fromstring(reply.body).find("{*}title").text == "2x2 f32, from 1 to 2"
        for colour, cells in (("#440154", "M0 0h1v1h-1zM1 1h1v1h-1z"), ("#d55e00", "M1 0h1v1h-1z"), ("#fde725", "M0 1h1v1h-1z")):
            assert f'<path fill="{colour}" d="{cells}"/>' in reply.body.decode()
        assert client.request("PUT", "/v1/matrices/drawn", body).status in (200, 201)
        part = client.get("/v1/matrices/drawn?rows=0:1", svg).ok()
        assert b"<title>1x2 f32, from 1 to 2</title>" in part.body and part.header("ETag").endswith('-svg"')
        assert client.post("/v1/eval", b'{"expr": "drawn.T > 1"}', {"Content-Type": wire.JSON, **svg}).ok().body.count(b"<path") == 2
        assert client.request("DELETE", "/v1/matrices/drawn").status == 204
        reply = client.post("/v1/transpose?dtype=c64&shape=1x1", bytes(8), {"Content-Type": wire.RAW, "Accept": "image/svg+xml"})
        assert reply.status == 422 and "no place on a scale" in reply.json()["detail"], reply
        assert client.post("/v1/transpose", body, {"Accept": "image/*;q=0.1, */*;q=0.1"}).ok().media_type == wire.NPY


def test_every_format_to_every_format(daemon, rng):
    with daemon.client() as client:
        for dtype in formats.IN_JSON:
            array = formats.random_numbers(rng, dtype, (5, 3))
            for fmt in ("npy", "raw", "json-flat"):
                for accept in (wire.NPY, wire.RAW, wire.JSON):
                    body = formats.encode(fmt, dtype, array)
                    reply = post(client, "transpose", body, accept=accept)
                    assert reply.media_type == accept
                    got = formats.decode(reply, dtype)
                    assert formats.same_bits(got, formats.transposed(array)), (dtype, fmt, accept)


@pytest.mark.parametrize("dtype", ["c64", "c128", "v1", "v2", "v4", "v8", "v16"])
def test_elements_that_have_no_json_format(daemon, rng, dtype):
    array = formats.random_bits(rng, dtype, (2, 3))
    with daemon.client() as client:
        reply = post(client, "transpose", formats.encode("npy", dtype, array), accept=wire.JSON)
    assert (reply.status, reply.code) == (422, "cannot_encode")


# How a body arrives.


def shares(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("fmt", ["npy", "npy-big-fortran", "raw", "json-nested"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 13, 1000, 65537])
def test_chunked(daemon, rng, fmt, size):
    a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((9, 11), (11, 10)))
    if size > 100:
        a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((99, 211), (211, 110)))
    body = formats.encode(fmt, "f32", a, b)
    path = target("/v1/matmul", **body.parameters)
    with daemon.client() as client:
        for _ in range(2):  # and the connection is in step afterwards
            reply = client.post(path, shares(body.data, size), body.headers)
            formats.Product("f32", a, b).check(formats.decode(reply, "f32"))


@pytest.mark.parametrize("fmt", ["npy", "raw", "json-nested"])
def test_a_byte_at_a_time(daemon, fmt):
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    body = formats.encode(fmt, "f32", array)
    with daemon.raw() as raw:
        path = target("/v1/transpose", **body.parameters)
        length = f"Content-Length: {len(body.data)}"
        message = wire.head("POST", path, f"Content-Type: {body.media_type}", length) + body.data
        raw.send(*shares(message, 1))
        assert formats.same_bits(formats.decode(raw.reply(), "f32"), formats.transposed(array))


def test_pipelined_requests_are_answered_in_order(daemon):
    bodies = [b"[[%d, 2]]" % number for number in range(20)]
    with daemon.raw() as raw:
        raw.send(
            b"".join(
                wire.head("POST", "/v1/transpose", f"Content-Length: {len(body)}") + body
                for body in bodies
            )
        )
        for number in range(len(bodies)):
            assert raw.reply().ok().json()["data"] == [[number], [2]]


def test_http_1_0(daemon):
    """As ab speaks it: the connection closes after each reply unless it asks for more."""
    body = b"[[1, 2]]"
    plain = b"POST /v1/transpose HTTP/1.0\r\nContent-Length: 8\r\n\r\n" + body
    with daemon.raw() as raw:
        assert raw.send(plain).reply().ok().json()["data"] == [[1], [2]]
        assert raw.closed()
    kept = plain.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")
    with daemon.raw() as raw:
        for _ in range(3):
            assert raw.send(kept).reply().ok().json()["data"] == [[1], [2]]


def test_expect_continue(daemon):
    body = b"[[1, 2]]"
    with daemon.raw() as raw:
        length = f"Content-Length: {len(body)}"
        raw.send(wire.head("POST", "/v1/transpose", length, "Expect: 100-continue"))
        assert raw.reply().status == 100
        raw.send(body)
        assert raw.reply().ok().json()["data"] == [[1], [2]]


def test_an_empty_raw_matrix_needs_no_bytes(daemon):
    reply = daemon.post("/v1/transpose?shape=0x5", b"", {"Content-Type": wire.RAW})
    assert formats.decode(reply, "f32").shape == (5, 0)


@pytest.mark.parametrize("names", [("shape", "shape_b"), ("shape_a", "shape_b")])
def test_shape_is_another_name_for_shape_a(daemon, names):
    a, b = np.ones((2, 3), "<f4"), np.ones((3, 4), "<f4")
    parameters = dict(zip(names, ("2x3", "3x4")))
    headers = {"Content-Type": wire.RAW}
    reply = daemon.post(target("/v1/matmul", **parameters), a.tobytes() + b.tobytes(), headers)
    assert np.array_equal(formats.decode(reply, "f32"), a @ b)


def test_a_file_states_its_type_and_dtype_may_agree(daemon):
    array = np.arange(6, dtype=">f8").reshape(2, 3)
    reply = daemon.post("/v1/transpose?dtype=f64", formats.npy(array))
    assert np.array_equal(formats.read_npy(reply, "f64"), array.T)


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("space", [b"", b" \t\r\n", b"\n" * 5000])
def test_first_bytes_decide(daemon, content_type, space):
    headers = {"Content-Type": content_type} if content_type else {}
    for text in (b"[[1, 2]]", b'{"shape": [1, 2], "data": [1, 2]}'):
        reply = daemon.post("/v1/transpose", space + text, headers)
        assert reply.ok().media_type == wire.JSON and reply.json()["data"] == [[1], [2]]
    reply = daemon.post("/v1/transpose", formats.npy(np.ones((1, 2), "<f4")), headers)
    assert formats.read_npy(reply, "f32").shape == (2, 1)


@pytest.mark.parametrize("split", [1, 3, 64, 100, 4000])
def test_first_bytes_decide_however_they_come(daemon, split):
    for body in (b" " * 4000 + b"[[1, 2]]", formats.npy(np.array([[1, 2]], "<f4"))):
        with daemon.raw() as raw:
            raw.send(wire.head("POST", "/v1/transpose", f"Content-Length: {len(body)}"))
            for part in (body[:split], body[split:]):
                raw.send(part)
                time.sleep(0.02)  # so that they come in pieces
            assert formats.decode(raw.reply(), "f32").tolist() == [[1], [2]]


def test_content_type_is_compared_without_case_and_parameters(daemon):
    for content_type in ("Application/JSON", "application/json; charset=utf-8"):
        reply = daemon.post("/v1/transpose", b"[[1]]", {"Content-Type": content_type})
        assert reply.ok().json()["data"] == [[1]]


def test_json_layout_is_free(daemon):
    text = b' {\r\n\t"data" : [ 1 ,2,\n3 ,4 ] , "dtype":"f64","shape":[ 2,2 ]\n} \n'
    reply = daemon.post("/v1/transpose", text, {"Content-Type": wire.JSON})
    assert np.array_equal(formats.decode(reply, "f64"), [[1, 3], [2, 4]])


def test_a_large_text(daemon, rng):
    """Text of several MiB is decoded and encoded by other threads than short text."""
    array = formats.random_numbers(rng, "f64", (500, 700))
    with daemon.client() as client:
        reply = post(client, "transpose", formats.encode("json-nested", "f64", array))
    assert len(reply.body) > 1 << 22
    assert formats.same_bits(formats.decode(reply, "f64"), formats.transposed(array))
