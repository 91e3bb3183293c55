"""multipart/form-data: operands and parameters as parts, in every form and order, from Python
and from real curl; and messages that are meant to do harm."""

import io
import itertools
import json
import re
import select
import subprocess
import time

import numpy as np
import pytest

import formats
import wire
from jobs import gauge, wait_until
from problems import check

T, M, ADD = "/v1/transpose", "/v1/matmul", "/v1/add"
BOUNDARY = "------------------------d74496d66958873e"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
# As parts go, beside those of whole bodies.
FORMATS = ("npy", "npy-fortran", "npy-big", "raw", "json-nested", "json-flat", "csv")


def part(name, data, media_type=None):
    if isinstance(data, str):
        data = data.encode()
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
    if media_type:
        head += f'; filename="{name}.x"\r\nContent-Type: {media_type}'
    return head.encode() + b"\r\n\r\n" + data + b"\r\n"


def message(*parts):
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(client, path, body, accept=None, chunked=False):
    headers = {"Content-Type": TYPE, **({"Accept": accept} if accept else {})}
    if chunked:
        pieces = (body[at : at + 1000] for at in range(0, len(body), 1000))
        return client.post(path, pieces, headers)
    return client.post(path, body, headers)


def operand(name, fmt, dtype, array):
    """Its part, and what must stand in the URL for it to be understood."""
    body = formats.encode(fmt, dtype, array)
    shape = {f"shape_{name}": body.parameters["shape_a"]} if fmt == "raw" else {}
    return part(name, body.data, body.media_type), {"dtype": dtype, **shape}


# Forms.


@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_every_pair_of_forms_in_either_order(daemon, rng, dtype):
    a, b = (formats.small_integers(rng, dtype, shape) for shape in ((5, 7), (7, 3)))
    with daemon.client() as client:
        for format_a, format_b in itertools.product(FORMATS, FORMATS):
            if not (formats.format_can(format_a, dtype) and formats.format_can(format_b, dtype)):
                continue
            part_a, parameters_a = operand("a", format_a, dtype, a)
            part_b, parameters_b = operand("b", format_b, dtype, b)
            path = wire.target(M, **{**parameters_a, **parameters_b})
            for chunked, parts in ((False, (part_a, part_b)), (True, (part_b, part_a))):
                reply = post(client, path, message(*parts), chunked=chunked)
                got = formats.read_npy(reply.ok(), dtype)
                formats.Product(dtype, a, b).check(got, (format_a, format_b))


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i64", "u64", "i8", "bool"])
def test_every_element_type_and_stacks(daemon, rng, dtype, fmt):
    if not formats.format_can(fmt, dtype):
        pytest.skip("there are no such files")
    binary = "npy" in fmt or fmt == "raw"
    with daemon.client() as client:
        for shape in ((3, 4), (2, 3, 4), (1, 1), (33, 31)):
            random = formats.random_bits if binary else formats.random_numbers
            array = random(rng, dtype, shape)
            text, parameters = operand("a", fmt, dtype, array)
            parameter_parts = [part(name, value) for name, value in parameters.items()]
            reply = post(client, T, message(*parameter_parts, text))
            assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(array)), shape


def test_integers_beyond_2_to_53(daemon):
    big = 2**62 + 1
    body = message(part("a", f"{big},-{big}"), part("b", f"[[1,{-big}]]"), part("dtype", "i64"))
    reply = daemon.post(ADD, body, {"Content-Type": TYPE, "Accept": wire.JSON})
    wrapped = (-2 * big + 2**63) % 2**64 - 2**63
    assert reply.ok().json()["data"] == [[big + 1, wrapped]]


def test_the_format_of_the_reply(daemon):
    body = message(part("a", "1,2\n3,4\n", "text/csv"))
    with daemon.client() as client:
        for accept, media_type in ((None, wire.NPY), ("*/*", wire.NPY), (wire.JSON, wire.JSON),
                                   (wire.CSV, wire.CSV), (wire.RAW, wire.RAW)):
            reply = post(client, T, body, accept).ok()
            assert reply.media_type == media_type
            assert formats.same_bits(formats.decode(reply, "f32"), np.array([[1, 3], [2, 4]], "f4"))
        check(post(client, T, body, "image/png"), 406, "not_acceptable")


PLACES = ("query", "member", "part")


def with_parameter(daemon, place, name, value):
    """A 1 x 1 product of 6 with a parameter in one of the three places."""
    if place == "query":
        body = b'{"a": [[2]], "b": [[3]]}'
        return daemon.post(wire.target(M, **{name: value}), body, {"Content-Type": wire.JSON})
    if place == "member":
        body = json.dumps({name: value, "a": [[2]], "b": [[3]]}).encode()
        return daemon.post(M, body, {"Content-Type": wire.JSON})
    body = message(part(name, value), part("a", "[[2]]"), part("b", "[[3]]"))
    return daemon.post(M, body, {"Content-Type": TYPE, "Accept": wire.JSON})


@pytest.mark.parametrize("place", PLACES)
def test_a_value_has_128_bytes(daemon, place):
    for size in (72, 73, 127, 128):
        for name, value, result in (("alpha", "2." + "0" * (size - 2), 12),
                                    ("timeout_ms", "60000".zfill(size), 6),
                                    ("repeat", "2".zfill(size), 6),
                                    ("kernel", "auto", 6)):
            reply = with_parameter(daemon, place, name, value)
            assert reply.ok().json()["data"] == [[result]], (name, size)
        check(with_parameter(daemon, place, "kernel", "k" * size), 422, "kernel_unavailable")
        check(with_parameter(daemon, place, "device", "d" * size), 422, "device_unavailable")
        check(with_parameter(daemon, place, "repeat", "2".ljust(size, "0")), 400, "bad_parameter", "1000")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("size", [133, 200, 256, 257, 1000])
def test_a_value_of_more_bytes_is_refused_for_that(daemon, place, size):
    code = "bad_multipart" if place == "part" else "bad_parameter"
    for name, digit in (("kernel", "k"), ("alpha", "1"), ("dtype", "f"), ("shape_b", "1")):
        check(with_parameter(daemon, place, name, digit * size), 400, code, f"{name}.* bytes")
    if place == "member":
        check(with_parameter(daemon, place, "alpha", int("1" * size)), 400, code, "alpha.* bytes")


def test_compare_and_explain(daemon, rng):
    a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((30, 40), (40, 20)))
    parts = [part("a", formats.npy(a), wire.RAW), part("b", formats.npy(b), wire.RAW)]
    with daemon.client() as client:
        for body in (message(*parts, part("format", "json")), message(part("format", "json"), *parts)):
            for op in ("compare", "explain"):
                report = post(client, f"/v1/{op}/matmul", body).ok().json()
                shapes = report["shapes"] if op == "compare" else report["shape"]
                assert shapes["a"] == [30, 40] and shapes["b"] == [40, 20]
        report = post(client, "/v1/explain/transpose", message(part("shape", "64x32"),
                                                               part("format", "json"))).ok().json()
        assert report["shape"]["a"] == [64, 32], "no operands, only parameters"
        report = post(client, "/v1/explain/transpose", message(part("a", formats.npy(a)),
                                                               part("kernel", "naive")))
        assert "kernel naive" in report.ok().body.decode()


# curl, as people use it.


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def files(tmp_path, rng):
    """a, b and c in files of every format, and what is in them."""
    arrays = {}
    for name, shape in (("a", (30, 40)), ("b", (40, 20)), ("c", (30, 20))):
        array = arrays[name] = formats.random_numbers(rng, "f32", shape)
        np.save(tmp_path / f"{name}.npy", array)
        for fmt, suffix in (("csv", "csv"), ("json-nested", "json"), ("raw", "bin")):
            (tmp_path / f"{name}.{suffix}").write_bytes(formats.encode(fmt, "f32", array).data)
        (tmp_path / f"{name}.txt").write_bytes((tmp_path / f"{name}.csv").read_bytes())
    return tmp_path, arrays


def product(body, arrays, **keywords):
    got = np.load(io.BytesIO(body), allow_pickle=False)
    formats.Product("f32", arrays["a"], arrays["b"], **keywords).check(got)


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("suffixes", [("npy", "npy"), ("csv", "csv"), ("json", "json"),
                                      ("bin", "bin"), ("txt", "txt"), ("npy", "csv"),
                                      ("json", "bin"), ("txt", "npy")])
def test_curl_two_files(daemon, files, suffixes, order):
    folder, arrays = files
    suffix = dict(zip("ab", suffixes))
    fields = [word for name in order for word in ("-F", f"{name}=@{folder}/{name}.{suffix[name]}")]
    shapes = {f"shape_{name}": {"a": "30x40", "b": "40x20"}[name]
              for name in "ab" if suffix[name] == "bin"}
    product(curl(*fields, daemon.url(wire.target(M, **shapes))), arrays)
    fields = [word for item in shapes.items() for word in ("-F", "=".join(item))] + fields
    product(curl(*fields, "-H", "Transfer-Encoding: chunked", daemon.url(M)), arrays)


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_curl_three_files_and_parameters_anywhere(daemon, files, order):
    folder, arrays = files
    suffix = {"a": "npy", "b": "json", "c": "csv"}
    fields = [f"{name}=@{folder}/{name}.{suffix[name]}" for name in order]
    for at in range(4):
        some = [*fields[:at], "beta=-0.5", "alpha=2", "kernel=naive", *fields[at:]]
        reply = curl(*(word for field in some for word in ("-F", field)), daemon.url(M))
        product(reply, arrays, c=arrays["c"], alpha=2, beta=-0.5)


def test_curl_types_names_and_fields(daemon, files):
    folder, arrays = files
    a, b = f"a=@{folder}/a.csv", f"b=@{folder}/b.npy"
    product(curl("-F", a + ";type=text/csv", "-F", b + ";type=application/x-npy", daemon.url(M)), arrays)
    product(curl("-F", f"a=<{folder}/a.csv", "-F", b, daemon.url(M)), arrays)
    product(curl("-F", a + ';filename="\\"; name=b;.csv"', "-F", b, daemon.url(M)), arrays)
    product(curl("--form-escape", "-F", a + ';filename="\\".csv"', "-F", b, daemon.url(M)), arrays)
    text = curl("-F", "a=[[1,2],[3,4]]", "-F", "b=10,20", "-H", "Accept: application/json",
                daemon.url(ADD))
    assert json.loads(text)["data"] == [[11, 22], [13, 24]]


@pytest.mark.parametrize(
    "fields, detail",
    [
        (["a=@a.npy", "b=b.npy"], "part b is the text 'b.npy'; to send a file write its name after an @"),
        (["a=@a.npy", "b=@b.npy", "kernle=naive"], "no part 'kernle'; the nearest is 'kernel'"),
        (["A=@a.npy", "b=@b.npy"], "no part 'A'; the nearest is 'a'"),
        (["file=@a.npy"], "no part 'file'.*Operands are parts named a, b and c"),
        (["a=@a.npy", 'b"x\\=@b.npy'], "no part 'b\"x"),
        (["a=@a.npy", "a=@b.npy"], "two parts named a"),
        (["a=@a.npy"], "b is missing"),
        (["a=@a.bin", "b=@b.npy"], "shape_a=RxC"),
        (["a=@a.npy,b.npy"], "parts within a part; each operand is a part of its own"),
        (["a=@a.npy;encoder=base64", "b=@b.npy"], "'base64', which is not known"),
        (["a=@a.npy;type=image/png", "b=@b.npy"], "part a is 'image/png', which is not known"),
        (["a=@a.npy", "b=@a.npy"], "30x40"),
        (["a=@a.npy", "b=@b.npy", "dtype=f64"], "operand a is f32 in its file, the request says f64"),
        (["a=@a.npy", "b=@b.npy", "device=sim"], "comes after operands that are already on cpu:0"),
    ],
)
def test_curl_and_mistakes(daemon, files, fields, detail):
    folder, _ = files
    fields = [field.replace("@", f"@{folder}/").replace(",b", f",{folder}/b") for field in fields]
    reply = json.loads(curl(*(word for field in fields for word in ("-F", field)), daemon.url(M)))
    assert re.search(detail, reply["detail"], re.DOTALL), reply
    assert reply["status"] in (400, 415, 422)


def test_curl_a_large_file_in_little_memory(start, rng, tmp_path):
    """Operand, result and no third copy: what multipart adds is a buffer's worth."""
    daemon = start("--memory-limit", "40M")
    array = formats.random_bits(rng, "f32", (2000, 2000))  # 16 MB, and as much for the result
    np.save(tmp_path / "a.npy", array)
    out = tmp_path / "t.npy"
    curl("-F", f"a=@{tmp_path}/a.npy", daemon.url(T), "-o", str(out))
    assert formats.same_bits(np.load(out), formats.transposed(array))
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == 0, "all memory back")


# Memory and going away.


def upload(*parts, length=None):
    body = message(*parts)
    head = wire.head("POST", T, f"Content-Type: {TYPE}", f"Content-Length: {length or len(body)}")
    return head, body


def test_the_length_is_counted_once(start, rng):
    daemon = start()
    array = formats.random_bits(rng, "f32", (1000, 1000))
    head, body = upload(part("a", formats.npy(array), wire.RAW))
    used = "gemmd_memory_used_bytes"
    with daemon.raw() as raw:
        raw.send(head, body[:-10])
        wait_until(lambda: gauge(daemon, used) >= len(body), "memory for an upload")
        time.sleep(0.1)
        assert gauge(daemon, used) < 1.1 * len(body)
        raw.send(body[-10:])
        assert formats.same_bits(formats.read_npy(raw.reply(), "f32"), formats.transposed(array))
    wait_until(lambda: gauge(daemon, used) == 0, "all memory back")


def test_clients_that_go_within_a_part(start):
    daemon = start()
    assert daemon.get("/healthz").status == 200
    descriptors = daemon.descriptors()
    used = "gemmd_memory_used_bytes"
    head, body = upload(part("dtype", "f32"), part("a", formats.npy(np.zeros((50, 50), "f4"))),
                        length=100000)
    text_head, text = upload(part("a", "1,2,3\n" * 1000), length=100000)
    for begin, rest in ((head, body), (text_head, text)):
        for cut in (1, 60, 100, 140, 200, 230, 300, 400, 5000, len(rest)):
            with daemon.raw() as raw:
                raw.send(begin, rest[:cut])
                raw.reset() if cut % 200 else raw.socket.close()
    wait_until(lambda: gauge(daemon, used) == 0, "all memory back")
    wait_until(lambda: daemon.descriptors() <= descriptors, "descriptors closed")
    assert daemon.post(T, b"[[1]]").status == 200


# Messages that are meant to do harm.


def endless(daemon, beginning, piece, most=32 << 20):
    """Sends a chunked body that goes on until gemmd has had enough: its answer."""
    sent = 0
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Type: {TYPE}", "Transfer-Encoding: chunked"))
        raw.send(wire.chunk(beginning) if beginning else b"")
        while not select.select([raw.socket], [], [], 0)[0]:
            assert sent < most, "what fits into the sockets' buffers, not more"
            raw.send(wire.chunk(piece))
            sent += len(piece)
        return raw.reply()


DASHES = f"--{BOUNDARY}\r\n".encode()
BOMBS = {
    "a million parts of one name": (b"", part("dtype", "f32") * 1000, "bad_multipart"),
    "a million parts of no name": (b"", (DASHES + b"\r\n\r\n") * 1000, "bad_multipart"),
    "a million unknown parts": (b"", part("x", "1") * 1000, "unknown_parameter"),
    "a header without an end": (DASHES, b"X-Header: x\r\n" * 5000, "bad_multipart"),
    "a line without an end": (DASHES + b"X: ", b"x" * 65536, "bad_multipart"),
    "a preamble without an end": (b"", b"no boundary\r\n" * 5000, "bad_multipart"),
    "an epilogue without an end": (message(part("a", "1")), b"--\r\n" * 10000, "body_trailing"),
    "a parameter without an end": (part("kernel", "x" * 100)[:-2], b"x" * 65536, "bad_multipart"),
    "parts within parts": (DASHES + b'Content-Disposition: form-data; name="a"\r\nContent-Type: '
                           b"multipart/mixed; boundary=b\r\n\r\n", b"--b\r\n\r\n" * 10000,
                           "unsupported_media_type"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_short(start, bomb):
    beginning, piece, code = BOMBS[bomb]
    daemon = start()
    descriptors = daemon.descriptors()
    memory = daemon.rss_bytes()
    answers = []
    for _ in range(5):
        answers.append(endless(daemon, beginning, piece))
    # The same where its length is known: short enough to be read to its end, then answered.
    with daemon.client() as client:
        reply = post(client, T, beginning + piece[: 500000])
        check(reply, 415 if code.startswith("unsupported") else 400, code)
        assert client.post(T, b"[[1]]").status == 200, "the connection is still good"
    for reply in answers:
        check(reply, 415 if code.startswith("unsupported") else 400, code)
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == 0, "all memory back")
    wait_until(lambda: daemon.descriptors() <= descriptors + 1, "descriptors closed")
    assert daemon.rss_bytes() - memory < 64 << 20


@pytest.mark.parametrize(
    "content_type, body, status, code, detail",
    [
        ("multipart/form-data", b"x", 400, "bad_multipart", "leave that header to the client"),
        ("multipart/form-data; boundary=a*b", b"x", 400, "bad_multipart", "1 to 70"),
        ("multipart/mixed; boundary=x", b"x", 415, "unsupported_media_type", "multipart/form-data"),
        (TYPE, b"", 400, "body_truncated", "holds no line --------"),
        (TYPE, b"[[1]]", 400, "body_truncated", "holds no line --------"),
        (TYPE, part("a", "1"), 400, "body_truncated", "ends early, in its part 1"),
        (TYPE, message(part("a", "1")).replace(b"\r\n", b"\n"), 400, "bad_multipart", "CR LF"),
        (TYPE, message(part("a", formats.npy(np.zeros((9, 9), "f4"))[:-1])), 400, "body_truncated",
         "part a: .*323 of the 324 bytes"),
        (TYPE, message(part("a", formats.npy(np.zeros((9, 9), "f4")) + b"x")), 400, "body_trailing",
         "part a: after operand a"),
        (TYPE, message(part("a", formats.npy_claiming(f"({1 << 40}, {1 << 20})"))), 400,
         "body_truncated", "part a: its elements need"),
    ],
)
def test_refusals(daemon, content_type, body, status, code, detail):
    check(daemon.post(T, body, {"Content-Type": content_type}), status, code, detail)


def test_a_boundary_with_blanks_and_one_of_70_characters(daemon):
    for boundary in ("a b", "x" * 70, "'()+_,-./:=?"):
        body = message(part("a", "1,2")).replace(BOUNDARY.encode(), boundary.encode())
        body = b"preamble\r\n" + body + b"epilogue"
        headers = {"Content-Type": f'multipart/form-data; boundary="{boundary}"', "Accept": wire.JSON}
        assert daemon.post(T, body, headers).ok().json()["data"] == [[1], [2]]
