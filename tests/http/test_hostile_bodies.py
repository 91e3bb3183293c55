"""Bodies whose framing lies, or is broken: Content-Length both ways, chunks, their extensions and
trailers. What follows on the connection is read as what it is, or not at all."""

import contextlib
import os

import pytest

import daemon as daemon_module
import wire
from daemon import SLOW, Daemon
from hostile import HASTE, HASTY, everything, unharmed
from problems import check
from wire import RAW

T = "/v1/transpose"
POST = wire.head("POST", T, "Transfer-Encoding: chunked")
BODY = b"[[7]]"
PROBE = wire.head("GET", "/healthz")


def length(size, *more):
    return wire.head("POST", T, f"Content-Length: {size}", *more)


# Content-Length.


def test_a_length_that_is_too_small(daemon):
    """The body ends where it said; the rest is read as the next request, and is none."""
    with unharmed(daemon) as seen, daemon.raw() as raw:
        raw.send(length(5), BODY + b"]]]]\r\n\r\n")
        assert raw.reply().ok().json()["data"] == [[7]]
        assert everything(raw) == b""
        raw.socket.close()
        seen.counted("no_http_connections")


def test_a_length_that_cuts_a_text(daemon):
    with daemon.raw() as raw:
        raw.send(length(4), BODY[:4] + PROBE)
        check(raw.reply(), 400, "bad_json")
        assert raw.reply().ok().body == b"ok\n"


def test_a_length_that_is_too_large(daemon):
    """What comes next is taken for the body's rest, and the reply is about that."""
    with daemon.raw() as raw:
        raw.send(length(5 + len(PROBE)), BODY, PROBE)
        check(raw.reply(), 400, "bad_json")
        raw.send(PROBE)
        assert raw.reply().ok().body == b"ok\n"


@pytest.mark.parametrize("stated, sent", [(16, 15), (16, 17), (16, 0), (12, 16), (20, 16)])
def test_elements_of_another_number(daemon, stated, sent):
    """2x2 of four bytes: the length that is stated must be theirs, whatever is sent."""
    with unharmed(daemon) as seen, daemon.raw() as raw:
        raw.send(wire.head("POST", T + "?shape=2x2", f"Content-Type: {RAW}",
                           f"Content-Length: {stated}"), bytes(sent))
        if stated == 16 and sent < 16:
            raw.half_close()
            assert everything(raw) == b""
            seen.counted("aborted_requests")
        elif stated == 16:
            assert raw.reply().status == 200
        else:
            if sent < stated:
                raw.send(bytes(stated - sent))
            code = "body_truncated" if stated < 16 else "body_trailing"
            check(raw.reply(), 400, code)
        raw.socket.close()


# Chunks.

MALFORMED = {
    "an extension": b"5;a=b\r\n[[7]]\r\n0\r\n\r\n",
    "a quoted extension": b'5;a="b;\\"c"\r\n[[7]]\r\n0\r\n\r\n',
    "an extension of the last": b"5\r\n[[7]]\r\n0;x\r\n\r\n",
    "an extension behind a space": b"5 ;a=b\r\n[[7]]\r\n0\r\n\r\n",
    "a space": b"5 \r\n[[7]]\r\n0\r\n\r\n",
    "a space before": b" 5\r\n[[7]]\r\n0\r\n\r\n",
    "0x": b"0x5\r\n[[7]]\r\n0\r\n\r\n",
    "-5": b"-5\r\n[[7]]\r\n0\r\n\r\n",
    "+5": b"+5\r\n[[7]]\r\n0\r\n\r\n",
    "nothing": b"\r\n[[7]]\r\n0\r\n\r\n",
    "g": b"g\r\n[[7]]\r\n0\r\n\r\n",
    "NUL": b"5\0\r\n[[7]]\r\n0\r\n\r\n",
    "bare LF": b"5\n[[7]]\n0\n\n",
    "bare CR": b"5\r[[7]]\r0\r\r",
    "too small": b"4\r\n[[7]]\r\n0\r\n\r\n",
    "too large": b"6\r\n[[7]]\r\n0\r\n\r\n",
    "much too large": b"9\r\n[[7]]\r\n0\r\n\r\n\r\n\r\n",
    "no line end behind": b"5\r\n[[7]]0\r\n\r\n",
    "a list": b"2,3\r\n[[7]]\r\n0\r\n\r\n",
    "a trailer without a colon": b"5\r\n[[7]]\r\n0\r\nX y\r\n\r\n",
    "a folded trailer": b"5\r\n[[7]]\r\n0\r\nX: y\r\n z\r\n\r\n",
    "NUL in a trailer": b"5\r\n[[7]]\r\n0\r\nX: \0\r\n\r\n",
    "bare LF in a trailer": b"5\r\n[[7]]\r\n0\r\nX: y\n\r\n",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_chunks(daemon, body):
    """400 and a close, by the library: nothing behind is read as a request."""
    with unharmed(daemon) as seen, daemon.raw() as raw:
        raw.send(POST, body, PROBE)
        got = everything(raw)
        assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1, got[:200]
        raw.socket.close()
        seen.check("gemmd_http_requests_total", 1, route="other", code="400")


OVERSIZED = {
    "2^64": (b"10000000000000000\r\n" + BODY, 413),
    "2^64 + 5": (b"10000000000000005\r\n" + BODY, 413),
    "a hundred digits": (b"f" * 100 + b"\r\n" + BODY, 413),
    "a long trailer": (b"5\r\n[[7]]\r\n0\r\nX: " + b"a" * 200000 + b"\r\n\r\n", 431),
    "many trailers": (b"5\r\n[[7]]\r\n0\r\n" + b"a: b\r\n" * 50000 + b"\r\n", 431),
}


@pytest.mark.parametrize("body, status", OVERSIZED.values(), ids=OVERSIZED)
def test_oversized_chunks(daemon, body, status):
    with unharmed(daemon) as seen, daemon.raw() as raw:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            raw.send(POST, body)
        got = everything(raw)
        # A reset may overtake the page where the client goes on sending.
        assert got.startswith(b"HTTP/1.1 %d " % status) or (not got and len(body) > 65536), got
        raw.socket.close()
        seen.check("gemmd_http_requests_total", 1, route="other", code=str(status))


ODD = {
    "a byte each": b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n",
    "zeros before": b"0" * 100 + b"5\r\n[[7]]\r\n000\r\n\r\n",
    "a trailer": b"5\r\n[[7]]\r\n0\r\nX: y\r\n\r\n",
    "a length as a trailer": b"5\r\n[[7]]\r\n0\r\nContent-Length: 99\r\n\r\n",
    "a coding as a trailer": b"5\r\n[[7]]\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a Host as a trailer": b"5\r\n[[7]]\r\n0\r\nHost: y\r\n\r\n",
    "a type as a trailer": b"5\r\n[[7]]\r\n0\r\nContent-Type: text/html\r\nAccept: x/y\r\n\r\n",
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_odd_but_well_formed_chunks(daemon, body):
    """Trailers change nothing."""
    with daemon.raw() as raw:
        raw.send(POST, body, PROBE)
        assert raw.reply().ok().json()["data"] == [[7]]
        assert raw.reply().ok().body == b"ok\n"


@pytest.mark.parametrize("kind", ["many", "long"])
def test_trailers_of_any_size(daemon, kind):
    """Each is answered, as if there were none or with 431: they share the memory of the head and of
    the reply's."""
    with unharmed(daemon):
        for size in range(100, 17000, 130):
            trailers = b"a: b\r\n" * (size // 70) if kind == "many" else b"a: %b\r\n" % (b"b" * size)
            with daemon.raw() as raw:
                raw.send(POST, b"5\r\n[[7]]\r\n0\r\n" + trailers + b"\r\n")
                assert raw.reply().status in ((200,) if size < 10000 else (200, 431)), size


def test_two_last_chunks(daemon):
    """The second is what follows: no request."""
    with daemon.raw() as raw:
        raw.send(POST, b"5\r\n[[7]]\r\n0\r\n\r\n0\r\n\r\n")
        assert raw.reply().ok().json()["data"] == [[7]]
        assert everything(raw) == b""


@pytest.mark.parametrize("size", ["7fffffffffffffff", "8000000000000000", "ffffffffffffffff"])
def test_a_chunk_that_claims_the_world(start, size):
    """Nothing is reserved for it; once the limit is passed the answer is 413."""
    daemon = start("--body-limit", "4M", "--memory-limit", "64M")
    with unharmed(daemon) as seen, daemon.raw() as raw:
        raw.send(POST, size.encode() + b"\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            raw.send(b" " * (5 << 20))
        check(raw.reply(), 413, "body_too_large", "4194304")
        raw.socket.close()
        seen.failed("body_too_large")


def test_a_chunk_size_without_an_end(monkeypatch):
    """The library refuses it, but may wait for ever to say so: the connection ends all the same."""
    assert os.access(HASTY, os.X_OK), f"set GEMMD_HASTY_BIN to gemmd_hasty; {HASTY!r} is none"
    monkeypatch.setattr(daemon_module, "BINARY", HASTY)
    daemon = Daemon()
    try:
        with unharmed(daemon), daemon.raw() as raw:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                raw.send(POST, b"5;" + b"a" * 200000 + b"\r\n")
            got = everything(raw, (2 + 60 / HASTE + 5) * SLOW)
            assert not got or got.startswith(b"HTTP/1.1 413 "), got[:200]
            raw.socket.close()
    finally:
        daemon.stop()
