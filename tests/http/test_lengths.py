"""Bodies that lie about their length, are too long, stop short or come when nobody wants them:
answered as early as can be, and never the worse for the next request."""

import json
import subprocess
import time

import numpy as np
import pytest

import formats
import wire
from daemon import SLOW, Daemon
from formats import npy_claiming as claiming
from problems import check, check_one_of

MIB = 1 << 20
T, M = "/v1/transpose", "/v1/matmul"
RAW = {"Content-Type": wire.RAW}
NPY = {"Content-Type": wire.NPY}
JSON = {"Content-Type": wire.JSON}


def test_no_body(daemon):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T))
        check(raw.reply(), 411, "length_required")
        raw.send(wire.head("GET", "/healthz"))
        assert raw.reply().status == 200


@pytest.mark.parametrize(
    "headers, answer",
    [({}, "422 missing_operand"), (JSON, "400 bad_json"), (NPY, "400 body_truncated")],
)
def test_an_empty_body(daemon, headers, answer):
    """Said to be empty, or with no byte in its only chunk: no matrix, whatever its format."""
    for body in (b"", iter([])):
        check_one_of(daemon.post(T, body, headers), answer)


def test_two_lengths(daemon):
    for other in ("9", "8"):  # even if both say the same
        with daemon.raw() as raw:
            raw.send(wire.head("POST", T, "Content-Length: 8", f"Content-Length: {other}"))
            check(raw.reply(), 400, "bad_length", "Content-Length")
            assert raw.closed()


def test_a_length_beside_chunks(daemon):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 5", "Transfer-Encoding: chunked"))
        assert raw.reply().status == 400
        assert raw.closed()


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "five", "99999999999999999999999"])
def test_a_length_that_is_no_number(daemon, length):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {length}"))
        assert raw.reply().status in (400, 413)
        assert raw.closed()


@pytest.fixture(scope="module")
def small():
    """A daemon that takes bodies of up to 4 MiB."""
    daemon = Daemon("--body-limit", "4M")
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("expect", [(), ("Expect: 100-continue",)])
def test_a_length_over_the_limit(small, expect):
    """Answered on the headers: not a byte of the body is waited for."""
    with small.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {4 * MIB + 1}", *expect))
        check(raw.reply(), 413, "body_too_large", f"{4 * MIB + 1}.*{4 * MIB}")
        assert raw.closed()


def test_a_length_at_the_limit(small):
    array = np.zeros((1024, 1024), "<f4")
    reply = small.post(T + "?shape=1024x1024", array.tobytes(), RAW)
    assert reply.ok().header("Gemmd-Shape") == "1024x1024"


def test_chunks_over_the_limit(small):
    """Answered as soon as the limit is passed, though more chunks may come."""
    with small.raw() as raw:
        raw.send(wire.head("POST", T + "?shape=1025x1024", f"Content-Type: {wire.RAW}",
                           "Transfer-Encoding: chunked"))
        for _ in range(4):
            raw.send(wire.chunk(bytes(MIB)))
        raw.send(wire.chunk(b"1"))
        check(raw.reply(), 413, "body_too_large", f"{4 * MIB}")
        assert raw.closed()


def test_curl_is_told_before_it_sends(small, tmp_path):
    """It asks first when a body is large, and stops at the answer."""
    path = tmp_path / "large"
    path.write_bytes(bytes(8 * MIB))
    command = ["curl", "-sS", "-w", "%{http_code} %{size_upload}", "-o", str(tmp_path / "out")]
    command += ["--data-binary", f"@{path}", "-H", "Content-Type: " + wire.RAW, small.url(T)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 * SLOW)
    assert done.stdout == "413 0", (done.stdout, done.stderr)
    assert json.loads((tmp_path / "out").read_bytes())["code"] == "body_too_large"


# The 1 MiB rule: an error that is known before the body has come.

EARLY = [
    ("/nowhere", (), 404),
    ("/healthz", (), 405),
    (T, ("Content-Type: text/html",), 415),
    (T + "?kernal=x", (), 400),
    (T + "?shape=1x1", (f"Content-Type: {wire.RAW}",), 400),
    (T, ("Accept: text/html",), 406),
    (M + "?device=gpu", (), 422),
]


@pytest.mark.parametrize("path, headers, status", EARLY)
def test_up_to_a_mib_is_dropped_and_the_connection_kept(daemon, path, headers, status):
    with daemon.raw() as raw:
        for _ in range(2):
            raw.send(wire.head("POST", path, *headers, f"Content-Length: {MIB}"), bytes(MIB))
            assert raw.reply().status == status
        raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[7]]")
        assert raw.reply().ok().json()["data"] == [[7]]


@pytest.mark.parametrize("path, headers, status", EARLY)
def test_up_to_a_mib_that_asks_first_is_dropped_too(daemon, path, headers, status):
    with daemon.raw() as raw:
        for size in (5, MIB):
            raw.send(wire.head("POST", path, *headers, "Expect: 100-continue", f"Content-Length: {size}"))
            assert raw.reply().status == 100
            raw.send(bytes(size))
            assert raw.reply().status == status
        raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[7]]")
        assert raw.reply().ok().json()["data"] == [[7]]


@pytest.mark.parametrize("path, headers, status", EARLY)
@pytest.mark.parametrize("expect", [(), ("Expect: 100-continue",)])
def test_beyond_a_mib_is_answered_at_once_and_closed(daemon, path, headers, status, expect):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", path, *headers, *expect, f"Content-Length: {MIB + 1}"))
        reply = raw.reply()
        assert reply.status == status
        assert (reply.header("Connection") or "").lower() == "close"
        assert raw.closed()


def test_an_error_within_the_body_follows_the_same_rule(daemon):
    """The header of this file is refused with most of the body still to come."""
    bad = claiming("(-1, 2)", size=0)
    for more, kept in ((MIB // 2, True), (64 * MIB, False)):
        with daemon.raw() as raw:
            length = f"Content-Length: {len(bad) + more}"
            raw.send(wire.head("POST", T, f"Content-Type: {wire.NPY}", length), bad)
            if kept:
                raw.send(bytes(more))
            check(raw.reply(), 400, "bad_npy")
            if kept:
                raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[7]]")
                assert raw.reply().ok().json()["data"] == [[7]]
            else:
                assert raw.closed()


# Bodies that stop short.


@pytest.mark.parametrize("content_type", [wire.JSON, wire.NPY, wire.RAW])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_client_that_stops_within_the_body(daemon, content_type, framing):
    """It closes its half within the body: no answer is owed, but the connection must end."""
    file = formats.npy(np.ones((9, 9)))
    body = {wire.JSON: b"[[1, ", wire.NPY: file[:200], wire.RAW: bytes(100)}[content_type]
    path = T + ("?shape=10x10" if content_type == wire.RAW else "")
    framed = wire.chunk(body) if framing == "chunks" else body
    header = "Transfer-Encoding: chunked" if framing == "chunks" else "Content-Length: 400"
    with daemon.raw() as raw:
        raw.send(wire.head("POST", path, f"Content-Type: {content_type}", header), framed)
        time.sleep(0.05)
        raw.half_close()
        data = b""
        while piece := raw.socket.recv(4096):
            data += piece
        assert not data or data.startswith(b"HTTP/1.1 400"), data
    assert daemon.get("/healthz").status == 200


@pytest.mark.parametrize(
    "garbage",
    [b"5\r\n[[1]]xx0\r\n\r\n", b"zz\r\n[[1]]\r\n0\r\n\r\n", b"-5\r\n[[1]]\r\n0\r\n\r\n",
     b"fffffffffffffffff\r\n[[1]]\r\n"],
)
def test_broken_chunks(daemon, garbage):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Transfer-Encoding: chunked"), garbage)
        try:
            assert raw.reply().status in (400, 413)
        except AssertionError as failure:
            assert "closed" in str(failure)
        except ConnectionResetError:
            pass
    assert daemon.get("/healthz").status == 200


NO_HTTP = {
    "a word": b"hello\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "another version": b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",
    "a huge header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 500000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 500000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a huge query": b"GET /metrics?" + b"a&" * 50000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
    "a space": b"POST /v1/transpose HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\n[[1]]",
    "a folded line": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
    "chunked twice": b"POST /v1/transpose HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\n[[1]]\r\n0\r\n\r\n",
    "an odd coding": b"POST /v1/transpose HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: gzip\r\n\r\n[[1]]",
}


@pytest.mark.parametrize("bytes_sent", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http(daemon, bytes_sent):
    """Refused or dropped by the HTTP library, never answered as if it were a good request."""
    with daemon.raw() as raw:
        try:
            raw.send(bytes_sent)
            raw.half_close()
            while piece := raw.socket.recv(65536):
                assert not piece.startswith(b"HTTP/1.1 200"), piece
        except OSError:
            pass  # it has been closed on us, and rightly
    assert daemon.get("/healthz").status == 200


def test_a_body_where_none_is_wanted(daemon):
    """Dropped, within reason, and the connection is in step."""
    with daemon.raw() as raw:
        for chunks in (False, True):
            header = "Transfer-Encoding: chunked" if chunks else "Content-Length: 5"
            raw.send(wire.head("GET", "/healthz", header))
            raw.send(wire.chunk(b"hello") + b"0\r\n\r\n" if chunks else b"hello")
            assert raw.reply().status == 200
    with daemon.raw() as raw:
        raw.send(wire.head("GET", "/healthz", f"Content-Length: {1 << 40}"))
        assert raw.reply().status in (400, 413)
        assert raw.closed()
