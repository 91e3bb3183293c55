"""Clients who take their time, in a world whose time runs thirty times as fast: how long each is
waited for, what it is told, and that an honest one is let be."""

import os
import select
import socket
import threading
import time

import pytest

import daemon as daemon_module
import wire
from daemon import SLOW, Daemon
from hostile import HASTE, HASTY, everything, post, unharmed
from jobs import Threads, gauge, wait_until
from problems import check
from wire import RAW

T = "/v1/transpose"
HEAD_S = 60 / HASTE  # of real time: for a whole head
GRACE_S = 30 / HASTE  # what a body, or the reader of a reply, may be behind
RATE = 16384 * HASTE  # bytes a second at which it is not
LATEST_S = 4.0  # a sweep, and a machine with other things to do
LONGEST_S = HEAD_S + LATEST_S * SLOW


@pytest.fixture(scope="module")
def hasty():
    assert os.access(HASTY, os.X_OK), f"set GEMMD_HASTY_BIN to gemmd_hasty; {HASTY!r} is none"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon_module, "BINARY", HASTY)
        started = Daemon("--timeout", "3600s")  # of its own time
    yield started
    started.stop()


class Feeder(threading.Thread):
    """Sends a piece every so often, until it is done or its connection is."""

    def __init__(self, raw, piece, every_s, times):
        super().__init__(daemon=True)
        self.work = (raw, piece, every_s, times)
        self.start()

    def run(self):
        raw, piece, every_s, times = self.work
        try:
            for _ in range(times):
                raw.socket.send(piece)
                time.sleep(every_s)
        except OSError:
            pass


def check_time(began, seconds):
    took = time.monotonic() - began
    assert 0.9 * seconds <= took <= seconds + LATEST_S * SLOW, took


BEGINNINGS = {
    "stops": (b"POST /v1/transpose HTTP/1.1\r\nHost: localhost\r\nX: ", b"", 0),
    "a request line": (b"GE", b"", 0),
    "header lines": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n", 0.2),
    "a header without an end": (b"GET / HTTP/1.1\r\nX: ", b"y", 0.05),
    "empty lines": (b"\r\n", b"", 0),
}


def ends_slowly(daemon, first, piece, every_s, seconds, detail):
    """One client, which has so many seconds from its first byte on: not fewer, nor many more."""
    with daemon.raw() as raw:
        began = time.monotonic()
        raw.send(first)
        if piece:
            Feeder(raw, piece, every_s, int(2 * seconds / every_s))
        reply = raw.reply()
        check_time(began, seconds)
        check(reply, 408, "upload_timeout", detail)
        assert reply.header("Connection") == "close" and raw.closed()


def all_end_slowly(daemon, clients, seconds, detail):
    """All of them beside each other."""
    threads = Threads()
    for first, piece, every_s in clients.values():
        threads.go(ends_slowly, daemon, first, piece, every_s, seconds, detail)
    threads.join()


def test_heads_that_do_not_become_whole(hasty):
    """Whatever trickles in, a head has its minute and no more: it is told so, and closed."""
    with unharmed(hasty) as seen:
        all_end_slowly(hasty, BEGINNINGS, HEAD_S, "headers.*60 seconds")
        seen.counted("slow_heads_ended", len(BEGINNINGS))
        seen.failed("upload_timeout", len(BEGINNINGS))
        seen.check("gemmd_http_requests_total", len(BEGINNINGS), route="other", code="408")


def test_connections_without_a_request(hasty):
    """Closed without a word, a minute after they came or had their last reply."""
    with unharmed(hasty) as seen:
        began = time.monotonic()
        with hasty.raw() as new, hasty.raw() as used:
            time.sleep(0.5)
            again = time.monotonic()
            used.send(wire.head("GET", "/healthz"))
            assert used.reply().status == 200
            assert everything(new, LONGEST_S) == b""
            check_time(began, HEAD_S)
            assert everything(used, LONGEST_S) == b""
            check_time(again, HEAD_S)
        seen.counted("idle_connections_ended", 2)
        seen.counted("slow_heads_ended", 0)


def test_a_head_that_comes_late_but_whole(hasty):
    """In pieces, but within its minute: and the next has a minute of its own."""
    with hasty.raw() as raw:
        for _ in range(2):
            for piece in (b"GET /hea", b"lthz HTTP/1.1\r\nHo", b"st: localhost\r\n", b"\r\n"):
                time.sleep(0.15 * HEAD_S)
                raw.send(piece)
            assert raw.reply().ok().body == b"ok\n"


LENGTH, CHUNKED = "Content-Length: 900000", "Transfer-Encoding: chunked"
BODIES = {
    "nothing": (wire.head("POST", T, LENGTH), b"", 0),
    "stops": (wire.head("POST", T, LENGTH) + b"[[1, ", b"", 0),
    "trickles": (wire.head("POST", T, LENGTH) + b"[[", b"1", 0.05),
    "trickles elements": (wire.head("POST", T + "?shape=300x300&dtype=f64", f"Content-Type: {RAW}",
                                    "Content-Length: 720000"), bytes(100), 0.05),
    "chunks": (wire.head("POST", T, CHUNKED) + b"2\r\n[[\r\n", b"1\r\n1\r\n", 0.05),
    "half a chunk's size": (wire.head("POST", T, CHUNKED) + b"2", b"", 0),
    # Its burst does not give it credit for the time after.
    "begins fast": (wire.head("POST", T, "Content-Length: 9000000") + b" " * 4000000, b" ", 0.1),
}


def test_bodies_that_come_too_slowly(hasty):
    with unharmed(hasty) as seen:
        all_end_slowly(hasty, BODIES, GRACE_S,
                       r"bytes of the body .* 30 seconds .* 16384 bytes")
        seen.counted("slow_bodies_ended", len(BODIES))
        seen.failed("upload_timeout", len(BODIES))
        seen.check("gemmd_http_requests_total", len(BODIES), route=T, code="408")
        seen.counted("aborted_requests", 0)


def test_bodies_that_trickle_without_a_pause(hasty):
    """A byte that comes in the very moment of the end does not cost a client its answer."""
    head = wire.head("POST", T, LENGTH) + b"[["
    with unharmed(hasty) as seen:
        all_end_slowly(hasty, {client: (head, b"1", 0.002) for client in range(40)}, GRACE_S,
                       r"bytes of the body .* 30 seconds .* 16384 bytes")
        seen.counted("slow_bodies_ended", 40)
        seen.failed("upload_timeout", 40)


def test_a_refused_body_that_does_not_come(hasty):
    """The error that was known before is what it is told, once its rest is waited for no more."""
    with unharmed(hasty) as seen, hasty.raw() as raw:
        began = time.monotonic()
        raw.send(wire.head("POST", T + "?kernal=x", "Content-Length: 1000"), b"[[")
        check(raw.reply(), 400, "unknown_parameter", "kernal")
        check_time(began, GRACE_S)
        assert raw.closed()
        seen.counted("slow_bodies_ended")
        seen.failed("upload_timeout", 0)


def test_a_body_at_the_least_rate(hasty):
    """Slow, yet never behind: it takes three times the grace, and is served."""
    body = bytes(int(3 * GRACE_S * 2 * RATE) // 4096 * 4096)
    with hasty.raw(timeout=30) as raw:
        path = f"{T}?shape={len(body) // 4096}x1024"
        began = time.monotonic()
        raw.send(wire.head("POST", path, f"Content-Type: {RAW}", f"Content-Length: {len(body)}"))
        for at in range(0, len(body), 65536):
            raw.send(body[at : at + 65536])
            time.sleep(max(0, began + (at + 65536) / (2 * RATE) - time.monotonic()))
        assert time.monotonic() - began > 2.5 * GRACE_S
        assert raw.reply().status == 200


def test_a_large_body_at_a_small_body_s_rate():
    """Its reply and itself are most of the memory there is: it may hold that for a minute or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon_module, "BINARY", HASTY)
        daemon = Daemon("--timeout", "3600s", "--memory-limit", "64M")
    try:
        mib, held = 22, 44
        least = held**2 / 64 / 60 * 2**20  # a second of its time
        with unharmed(daemon) as seen, daemon.raw(timeout=30) as raw:
            began = time.monotonic()
            raw.send(wire.head("POST", f"{T}?shape={mib * 256}x1024", f"Content-Type: {RAW}",
                               f"Content-Length: {mib << 20}"))
            while not select.select([raw.socket], [], [], 0.05)[0]:
                raw.send(bytes(int(0.05 * 3 * RATE)))  # three times what a small one has to
            reply = raw.reply()
            assert GRACE_S < time.monotonic() - began < 2.5 * GRACE_S + LATEST_S * SLOW
            check(reply, 408, "upload_timeout", f"30 seconds behind the minimum rate of {least / 1e5:.0f}")
            seen.counted("slow_bodies_ended")
    finally:
        daemon.stop()


# Readers. Replies are so large that the kernels' buffers hold but a part.

ROWS, COLUMNS = 4000, 4000
REPLY_BYTES = 4 * ROWS * COLUMNS


def ask(raw):
    # Small and fixed: a kernel may otherwise take tens of megabytes for who does not read them.
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.send(wire.head("POST", f"{T}?shape={ROWS}x{COLUMNS}", f"Content-Type: {RAW}",
                       f"Content-Length: {REPLY_BYTES}"))
    raw.send(bytes(REPLY_BYTES))


def check_reset(raw):
    """Behind what its own kernel holds, the client finds not the end of its reply, but a reset."""
    with pytest.raises(ConnectionResetError):
        while raw.socket.recv(1 << 20):
            pass


def test_a_reply_that_nobody_reads(hasty):
    """64 MB, of which the client takes nothing: it has the grace, and then the connection is reset
    rather than left to the kernel with the rest."""
    with unharmed(hasty) as seen, hasty.raw() as raw:
        asked = time.monotonic()
        ask(raw)
        began = time.monotonic()
        seen.counted("slow_readers_ended")
        assert time.monotonic() - asked >= 0.9 * GRACE_S
        assert time.monotonic() - began < GRACE_S + LATEST_S * SLOW
        seen.counted("aborted_requests")
        check_reset(raw)


def test_a_reply_that_is_read_by_and_by(hasty):
    """A little now and then does not help, nor does it that half was taken at once."""
    with unharmed(hasty) as seen, hasty.raw() as raw:
        ask(raw)
        taken = 0
        while taken < REPLY_BYTES // 2:
            taken += len(raw.socket.recv(1 << 20))
        began = time.monotonic()
        while gauge(hasty, "gemmd_memory_used_bytes") > 0:
            assert time.monotonic() - began < 2 * GRACE_S + LATEST_S * SLOW
            assert raw.socket.recv(100)
            time.sleep(0.02)
        seen.counted("slow_readers_ended")
        check_reset(raw)


def test_a_reader_at_the_least_rate(hasty):
    """With buffers as small as a slow network's, so that the daemon sees its pace."""
    with hasty.raw(timeout=30) as raw:
        size = 400
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        raw.send(post(f"{T}?shape={size}x{size}&dtype=f64", f"Content-Type: {RAW}",
                      body=bytes(8 * size * size)))
        began, taken = time.monotonic(), 0
        while b"\r\n\r\n" not in raw.buffer or taken < 8 * size * size:
            piece = raw.socket.recv(32768)
            assert piece
            raw.buffer += piece
            taken += len(piece)
            time.sleep(max(0, began + taken / (2 * RATE) - time.monotonic()))
        assert time.monotonic() - began > GRACE_S
