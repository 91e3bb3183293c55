"""Request lines and headers that are malformed, ambiguous or endless: each has one answer, which is
counted, and never one that a proxy in front could have read otherwise."""

import contextlib
import time

import pytest

import wire
from daemon import sanitizer_of
from hostile import Seen, everything, post, unharmed
from problems import check

T = "/v1/transpose"
H = b"Host: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + H
POST = b"POST /v1/transpose HTTP/1.1\r\n" + H
BODY = b"[[7]]"
CHUNKS = b"5\r\n[[7]]\r\n0\r\n\r\n"
PROBE = GET + b"\r\n"


def get(target, *lines):
    return b" ".join((b"GET", target, b"HTTP/1.1\r\n")) + b"".join(lines or (H,)) + b"\r\n"


# Refused by the HTTP library, with its own page, and closed. (What is sent, the status.)
PAGES = {
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "a version of ours": (b"GET /healthz HTTP/9.9\r\n" + H + b"\r\n", 505),
    "small letters": (b"GET /healthz http/1.1\r\n" + H + b"\r\n", 400),
    "no target": (b"GET HTTP/1.1\r\n" + H + b"\r\n", 400),
    "two spaces": (b"GET  /healthz HTTP/1.1\r\n" + H + b"\r\n", 400),
    "a space in the target": (b"GET /heal thz HTTP/1.1\r\n" + H + b"\r\n", 400),
    "a space at the end": (b"GET /healthz HTTP/1.1 \r\n" + H + b"\r\n", 400),
    "no Host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "bare LF": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400),
    "bare LF in a header": (b"GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400),
    "bare CR in a header": (b"GET /healthz HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n", 400),
    "a folded header": (GET + b"X: y\r\n z\r\n\r\n", 400),
    "a folded length": (POST + b"Content-Length:\r\n 5\r\n\r\n" + BODY, 400),
    "a folded first line": (b"GET /healthz HTTP/1.1\r\n z\r\n" + H + b"\r\n", 400),
    "NUL in a value": (GET + b"X: a\0b\r\n\r\n", 400),
    "NUL in a name": (GET + b"X\0Y: b\r\n\r\n", 400),
    "a space in a name": (GET + b"X Y: b\r\n\r\n", 400),
    "a space before the colon": (POST + b"Content-Length : 5\r\n\r\n" + BODY, 400),
    "no colon": (GET + b"Xb\r\n\r\n", 400),
    "no name": (GET + b": b\r\n\r\n", 400),
    "an odd coding": (POST + b"Transfer-Encoding: gzip\r\n\r\n" + BODY, 400),
    "gzip, chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS, 400),
    "chunked, chunked": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKS, 400),
    "identity": (POST + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n" + BODY, 400),
    "xchunked": (POST + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS, 400),
    "\\vchunked": (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKS, 400),
    '"chunked"': (POST + b'Transfer-Encoding: "chunked"\r\n\r\n' + CHUNKS, 400),
    "no coding": (POST + b"Transfer-Encoding:\r\n\r\n" + CHUNKS, 400),
    "both": (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS, 400),
    "both, swapped": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + CHUNKS,
                      400),
    "a list of lengths": (POST + b"Content-Length: 5, 5\r\n\r\n" + BODY, 400),
    "+5": (POST + b"Content-Length: +5\r\n\r\n" + BODY, 400),
    "-5": (POST + b"Content-Length: -5\r\n\r\n" + BODY, 400),
    "5 5": (POST + b"Content-Length: 5 5\r\n\r\n" + BODY, 400),
    "0x5": (POST + b"Content-Length: 0x5\r\n\r\n" + BODY, 400),
    "5.0": (POST + b"Content-Length: 5.0\r\n\r\n" + BODY, 400),
    "no length": (POST + b"Content-Length:\r\n\r\n" + BODY, 400),
    "a wide 5": (POST + "Content-Length: ５\r\n\r\n".encode() + BODY, 400),
    "2^64": (POST + b"Content-Length: 18446744073709551616\r\n\r\n" + BODY, 413),
    "2^64 + 5": (POST + b"Content-Length: 18446744073709551621\r\n\r\n" + BODY, 413),
    "2^64 - 1": (POST + b"Content-Length: 18446744073709551615\r\n\r\n" + BODY, 413),
    "many headers": (GET + b"a: b\r\n" * 100000 + b"\r\n", 431),
    "a long value": (GET + b"X: " + b"a" * 1000000, 431),
    "a long name": (GET + b"a" * 1000000, 431),
    "cookies": (GET + b"Cookie: " + b"a=b; " * 20000 + b"\r\n\r\n", 431),
    "a long target": (b"GET /" + b"a" * 1000000, 414),
    "a long query": (b"GET /healthz?" + b"a" * 1000000 + b" HTTP/1.1\r\n" + H + b"\r\n", 414),
    "a thousand parameters": (get(b"/healthz?" + b"a=b&" * 1000), 431),
}

# No HTTP at all: closed without a word.
NOISE = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a word": b"hello\r\n\r\n",
    "NUL in the target": b"GET /heal\0thz HTTP/1.1\r\n" + H + b"\r\n",
    "NUL in the method": b"G\0T /healthz HTTP/1.1\r\n" + H + b"\r\n",
    "a line without an end": b"a" * 1000000,
    "a long method": b"A" * 300000 + b" /healthz HTTP/1.1\r\n" + H + b"\r\n",
    "empty lines": b"\r\n" * 500000,
    "spaces": b" " * 100 + PROBE,
}


def send(raw, data):
    """As much of it as the other end wants."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.socket.sendall(data)


@pytest.mark.parametrize("data, status", PAGES.values(), ids=PAGES)
def test_refused_with_a_page(daemon, data, status):
    seen = Seen(daemon)
    with daemon.raw() as raw:
        send(raw, data)
        got = everything(raw)
    # A reset may overtake the page where the client goes on sending.
    assert got.startswith(b"HTTP/1.1 %d " % status) or (not got and len(data) > 65536), got[:200]
    assert got.count(b"\r\n\r\n") <= 1, "one answer, whatever came behind"
    seen.check("gemmd_http_requests_total", 1, route="other", code=str(status))


@pytest.mark.parametrize("data", NOISE.values(), ids=NOISE)
def test_noise(daemon, data):
    seen = Seen(daemon)
    with daemon.raw() as raw:
        send(raw, data)
        assert everything(raw) == b""
    seen.counted("no_http_connections")


# Answered by gemmd: (what is sent, the status, its code or None, whether the connection stays).
ANSWERED = {
    "two Hosts": (b"GET /healthz HTTP/1.1\r\n" + H + H + b"\r\n", 400, "bad_request", True),
    "an empty Host": (get(b"/healthz", b"Host:\r\n"), 200, None, True),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", 200, None, False),
    "HTTP/1.0, kept": (b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, None, True),
    "HTTP/1.0 with a body": (b"POST /v1/transpose HTTP/1.0\r\nContent-Length: 5\r\n\r\n" + BODY,
                             200, None, False),
    "HTTP/1.0 in chunks": (b"POST /v1/transpose HTTP/1.0\r\nConnection: keep-alive\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS, 400, "bad_length", False),
    "HTTP/1.2": (b"GET /healthz HTTP/1.2\r\n" + H + b"\r\n", 200, None, True),
    "an empty line first": (b"\r\n" + PROBE, 200, None, True),
    "control characters": (GET + b"X: a\x01\x7fb\r\n\r\n", 200, None, True),
    "high bytes": (GET + b"X: \xff\xfe\r\n\r\n", 200, None, True),
    "hundred headers": (GET + b"a: b\r\n" * 100 + b"\r\n", 200, None, True),
    "absolute": (get(b"http://localhost:80/healthz"), 200, None, True),
    "absolute, no path": (get(b"http://localhost"), 200, None, True),
    "absolute, of another": (get(b"http://x/healthz"), 403, "unknown_host", True),
    "another scheme": (get(b"ftp://x/healthz"), 404, "not_found", True),
    "authority": (get(b"x:80"), 404, "not_found", True),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n" + H + b"\r\n", 404, "not_found", True),
    "OPTIONS": (b"OPTIONS /healthz HTTP/1.1\r\n" + H + b"\r\n", 405, "method_not_allowed", True),
    "CONNECT": (b"CONNECT x:443 HTTP/1.1\r\n" + H + b"\r\n", 404, "not_found", True),
    "CONNECT a path": (b"CONNECT /healthz HTTP/1.1\r\n" + H + b"\r\n", 405, "method_not_allowed",
                       True),
    "TRACE": (b"TRACE /healthz HTTP/1.1\r\n" + H + b"Cookie: secret\r\n\r\n", 405,
              "method_not_allowed", True),
    "an odd method": (b"BREW /healthz HTTP/1.1\r\n" + H + b"\r\n", 405, "method_not_allowed", True),
    "a small method": (b"get /healthz HTTP/1.1\r\n" + H + b"\r\n", 405, "method_not_allowed", True),
    "a method of signs": (b"G@T{\"} /healthz HTTP/1.1\r\n" + H + b"\r\n", 405,
                          "method_not_allowed", True),
    "WebSocket": (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  b"Sec-WebSocket-Key: AAAA\r\n\r\n", 200, None, True),
    "h2c": (GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"
            b"\r\n", 200, None, True),
    "a fragment": (get(b"/healthz#a"), 404, "not_found", True),
    "dots": (get(b"/v1/../healthz"), 404, "not_found", True),
    "two slashes": (get(b"//healthz"), 404, "not_found", True),
    "a control character": (get(b"/heal\x01thz"), 404, "not_found", True),
    "bytes that are no UTF-8": (get(b"/\xff\xfe"), 404, "not_found", True),
    "a coded letter": (get(b"/%68ealthz"), 200, None, True),
    "a coded slash": (get(b"/v1%2Fstats"), 404, "not_found", True),
    "a coded NUL": (get(b"/healthz%00"), 404, "not_found", True),
    "a coded question": (get(b"/healthz%3fa"), 404, "not_found", True),
    "a bad escape": (get(b"/%zz"), 404, "not_found", True),
    "half an escape": (get(b"/healthz%"), 404, "not_found", True),
    "coded noise": (get(b"/%ff%fe%c3%28"), 404, "not_found", True),
    "an escape in a value": (post(T + "?kernel=%zz", body=BODY), 422, "kernel_unavailable", True),
    "noise in a value": (post(T + "?kernel=\xff%fe", body=BODY), 422, "kernel_unavailable", True),
    "NUL in a value": (post(T + "?kernel=na%00ive", body=BODY), 422, "kernel_unavailable", True),
    "an empty query": (post(T + "?", body=BODY), 200, None, True),
    "nothing but &": (post(T + "?&&&", body=BODY), 400, "unknown_parameter", True),
    "nothing but =": (post(T + "?=&=", body=BODY), 400, "unknown_parameter", True),
    "33 parameters": (post(T + "?" + "a=b&" * 33, body=BODY), 400, "bad_parameter", True),
    "a long value": (post(T + "?kernel=" + "a" * 10000, body=BODY), 400, "bad_parameter", True),
    "005": (POST + b"Content-Length: 005\r\n\r\n" + BODY, 200, None, True),
    "many zeros": (POST + b"Content-Length: " + b"0" * 24 + b"5\r\n\r\n" + BODY, 400, "bad_length",
                   False),
    "2^63 - 1": (POST + b"Content-Length: 9223372036854775807\r\n\r\n" + BODY, 413,
                 "body_too_large", False),
    "2^63": (POST + b"Content-Length: 9223372036854775808\r\n\r\n" + BODY, 413, "body_too_large",
             False),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n" + BODY, 400,
                    "bad_length", False),
    "two codings": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + CHUNKS, 400, "bad_length", False),
    "CHUNKED": (POST + b"Transfer-Encoding:\tCHUNKED\r\n\r\n" + CHUNKS, 200, None, True),
    "an unknown expectation": (POST + b"Expect: a-pony\r\nContent-Length: 5\r\n\r\n" + BODY, 200,
                               None, True),
    "two expectations": (POST + b"Expect: 100-continue\r\nExpect: 100-continue\r\n"
                         b"Content-Length: 5\r\n\r\n" + BODY, 400, "bad_request", True),
    "expecting without a body": (GET + b"Expect: 100-continue\r\n\r\n", 200, None, True),
    "expecting, and sending": (POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n" + BODY,
                               200, None, True),
    "expecting, by HTTP/1.0": (b"POST /v1/transpose HTTP/1.0\r\nExpect: 100-continue\r\n"
                               b"Content-Length: 5\r\n\r\n" + BODY, 200, None, False),
    "expecting where nothing is": (b"POST /none HTTP/1.1\r\n" + H + b"Expect: 100-continue\r\n"
                                   b"Content-Length: 1048577\r\n\r\n", 404, "not_found", False),
}


@pytest.mark.parametrize("data, status, code, kept", ANSWERED.values(), ids=ANSWERED)
def test_answered(daemon, data, status, code, kept):
    seen = Seen(daemon)
    with daemon.raw() as raw:
        raw.send(data)
        reply = raw.reply()
        if code:
            check(reply, status, code)
        else:
            assert reply.status == status, reply
        if kept:
            raw.send(PROBE)
            assert raw.reply().ok().body == b"ok\n", "the connection is in step"
        else:
            assert raw.closed()
    seen.check("gemmd_requests_rejected_total", 1 if code else 0)
    seen.counted("aborted_requests", 0)


@pytest.mark.parametrize("framing", [b"Content-Length: 5", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("words", [b"100-continue", b"100-Continue"])
def test_whoever_expects_is_told_to_go_on(daemon, framing, words):
    with daemon.raw() as raw:
        for _ in range(2):
            raw.send(POST + b"Expect: " + words + b"\r\n" + framing + b"\r\n\r\n")
            assert raw.reply().status == 100
            raw.send(BODY if b"5" in framing else CHUNKS)
            assert raw.reply().ok().json()["data"] == [[7]]


# Many requests on one connection.


def test_pipelined_requests(daemon):
    """Answered in their order, each with its own answer, refused ones among them."""
    kinds = [
        (PROBE, 200), (post(T, body=b"[[1, 2]]"), 200), (get(b"/none"), 404),
        (post(T + "?x=1", body=BODY), 400), (POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS,
                                             200), (post("/healthz", body=BODY), 405),
    ]
    with daemon.raw() as raw:
        raw.send(b"".join(data for data, _ in kinds) * 100)
        assert [raw.reply().status for _ in range(600)] == [status for _, status in kinds] * 100


def test_what_follows_a_close_is_not_answered(daemon):
    """Neither what follows an ambiguous length, nor what follows `Connection: close`."""
    for first in (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n" + BODY,
                  GET + b"Connection: close\r\n\r\n"):
        with daemon.raw() as raw:
            raw.send(first + PROBE)
            assert everything(raw).count(b"HTTP/1.1 ") == 1


def test_a_body_is_not_a_request(daemon):
    """A request within the body of a refused one is dropped with it."""
    inner = b"GET /metrics HTTP/1.1\r\n" + H + b"\r\n"
    with unharmed(daemon) as seen, daemon.raw() as raw:
        raw.send(post("/none", body=inner) + post(T + "?x=1", body=inner) + PROBE)
        assert [raw.reply().status for _ in range(3)] == [404, 400, 200]
        raw.socket.close()
        seen.check("gemmd_requests_rejected_total", 2)


def test_a_half_closed_client_with_a_whole_request(daemon):
    """`printf ... | nc`: it has said all it will, and may still be answered; or the connection
    ends, which PROTOCOL.md allows. Nothing stays."""
    with unharmed(daemon):
        raws = [daemon.raw().send(post(T, body=BODY)) for _ in range(20)]
        for raw in raws:
            raw.half_close()
        for raw in raws:
            got = everything(raw)
            assert not got or got.startswith(b"HTTP/1.1 200 "), got[:100]
            raw.socket.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("kind", ["a value", "headers", "cookies", "a query"])
def test_heads_of_any_size(daemon, kind, method):
    """Each is answered: as it should be, or with 431 or 414; none is closed without a word because
    the reply has no room beside it."""
    path, body = (b"/healthz", b"") if method == "GET" else (T.encode(), BODY)
    statuses = []
    for size in [*range(1000, 11000, 2500), *range(11000, 18000, 300)]:
        more = {
            "a value": b"X: " + b"a" * size + b"\r\n",
            "headers": b"a: b\r\n" * (size // 70),
            "cookies": b"Cookie: " + b"a=b; " * (size // 74) + b"\r\n",
            "a query": b"",
        }[kind]
        query = b"?" + b"dtype=" + b"a" * size if kind == "a query" else b""
        data = (method.encode() + b" " + path + query + b" HTTP/1.1\r\n" + H + more +
                (b"Content-Length: %d\r\n" % len(body) if body else b"") + b"\r\n" + body)
        with daemon.raw() as raw:
            send(raw, data)
            reply = raw.reply()
        statuses.append(reply.status)
        if reply.status == 431 and reply.media_type == wire.PROBLEM:
            assert reply.code == "head_too_large" and "12288" in reply.json()["detail"]
    expected = 400 if kind == "a query" and method == "POST" else 200
    assert set(statuses[:4]) == {expected} and set(statuses) <= {expected, 431, 414}, statuses
    assert statuses[-1] in (431, 414) and statuses.index(431) > 6, statuses


# The library takes the end of the last header's value, or parameter's, for that of the head.
ENDS = {
    "a name": lambda size: b"GET /healthz?" + b"a" * size + b" HTTP/1.0\r\n\r\n",
    "a name and &": lambda size: b"GET /healthz?" + b"a" * size + b"& HTTP/1.0\r\n\r\n",
    "&": lambda size: b"GET /healthz" + b"a" * size + b"?& HTTP/1.0\r\n\r\n",
    "&&": lambda size: b"GET /healthz" + b"a" * size + b"?b&& HTTP/1.0\r\n\r\n",
    "a second name": lambda size: b"GET /healthz?b=" + b"a" * size + b"&c HTTP/1.0\r\n\r\n",
    "a value": lambda size: b"GET /healthz?b=" + b"a" * size + b" HTTP/1.0\r\n\r\n",
    "?": lambda size: b"GET /healthz" + b"a" * size + b"? HTTP/1.0\r\n\r\n",
    "no Host": lambda size: b"GET /healthz?" + b"a" * size + b" HTTP/1.1\r\n\r\n",
    "a long method": lambda size: b"A" * size + b" /?a HTTP/1.0\r\n\r\n",
    "pipelined": lambda size: b"GET /healthz?" + b"a" * size + b" HTTP/1.0\r\n\r\n" + PROBE,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_heads_that_end_in_a_parameter(daemon, end):
    """Of all sizes, so that some leave little of the library's buffer."""
    with unharmed(daemon):
        for size in [*range(100, 6500, 800), *range(6500, 8200, 50), *range(14000, 16400, 100)]:
            with daemon.raw() as raw:
                send(raw, end(size))
                assert everything(raw)[:8] in (b"HTTP/1.1", b"HTTP/1.0"), size


@pytest.mark.parametrize("query", ["repeat", "dtype=f32&repeat", "repeat&", "=", "&=2"])
def test_parameters_without_a_name(daemon, query):
    reply = daemon.post(f"{T}?{query}", BODY)
    check(reply, 400, "unknown_parameter", "NAME=VALUE")


def test_more_parameters_than_are_kept(daemon):
    """All are counted: what is too much is refused before the reply has no room beside it."""
    for count in range(30, 300, 3):
        with daemon.raw() as raw:
            raw.send(get(b"/healthz?" + b"&".join([b"a"] * count)))
            assert raw.reply().status in (200, 431), count


def test_a_large_head_of_head(daemon):
    """Refused past the library, which would have known that there is no body to HEAD."""
    with daemon.raw() as raw:
        raw.send(b"HEAD /healthz HTTP/1.1\r\n" + H + b"X: " + b"a" * 13000 + b"\r\n\r\n")
        got = everything(raw)
    assert got.startswith(b"HTTP/1.1 431 ") and got.endswith(b"\r\n\r\n"), got


def test_flooded_with_large_heads(daemon):
    """Two hundred connections with as much of a head as one may have: others are served, and their
    memory is bounded."""
    with unharmed(daemon):
        before = daemon.rss_bytes()
        raws = [daemon.raw() for _ in range(200)]
        for raw in raws:
            raw.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 32000)
        began = time.monotonic()
        assert daemon.get("/healthz").status == 200
        assert time.monotonic() - began < 2
        if not sanitizer_of():  # they have memory of their own
            assert daemon.rss_bytes() - before < 200 * 2 * 32768 + (2 << 20)
        for raw in raws:
            raw.socket.close()
