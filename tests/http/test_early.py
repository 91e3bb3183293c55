"""An error that is known before the body is in reaches a client that is still sending, whatever it
sends with; and one that never stops sending is not listened to for long."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time

import pytest

import daemon as daemon_module
import wire
from daemon import SLOW, Daemon
from hostile import HASTY, unharmed
from jobs import Threads, gauge, wait_until
from problems import check

T = "/v1/transpose"
MIB = 1 << 20
FETCH = """
const [url, size, type] = process.argv.slice(1);
fetch(url, {method: 'POST', headers: {'Content-Type': type}, body: new Uint8Array(Number(size))})
  .then(async r => console.log(r.status, JSON.parse(await r.text()).code),
        e => console.log(e.cause ? e.cause.code : e));
"""


def refused(path, mib, kind=wire.RAW):
    return (path, mib * MIB, kind)


REFUSED = {
    "too large": (refused(T, 65), "413 body_too_large"),
    "not a parameter": (refused(T + "?kernal=x", 24), "400 unknown_parameter"),
    "not a path": (refused("/v1/transpos", 3), "404 not_found"),
    "not a type": (refused(T, 24, "image/png"), "415 unsupported_media_type"),
    "no NPY": (refused(T, 24, wire.NPY), "400 bad_npy"),  # known with the first piece
    "too large for memory": (refused(T + "?shape=3072x4096", 48), "413 too_large"),
}


@pytest.fixture(scope="module")
def small():
    daemon = Daemon("--body-limit", "64M", "--memory-limit", "64M")
    yield daemon
    daemon.stop()


def post(daemon, path, size, kind):
    """As http.client does it: all is sent before anything is read. Again where the machine has other
    things to do, so that sending took longer than gemmd listens (LINGER_MS)."""
    for _ in range(10):
        begun = time.monotonic()
        try:
            reply = daemon.post(path, bytes(size), {"Content-Type": kind})
            break
        except (BrokenPipeError, ConnectionResetError):
            assert time.monotonic() - begun > 1, "the answer was lost to a client that sent in time"
    assert reply.header("Connection") == "close"
    return f"{reply.status} {reply.code}"


@pytest.mark.parametrize("request_, answer", REFUSED.values(), ids=REFUSED)
def test_a_client_that_sends_before_it_reads(small, request_, answer):
    with unharmed(small):
        for _ in range(5):
            assert post(small, *request_) == answer


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node on this machine")
@pytest.mark.parametrize("request_, answer", REFUSED.values(), ids=REFUSED)
def test_fetch(small, request_, answer):
    path, size, kind = request_
    with unharmed(small):
        done = subprocess.run(["node", "-e", FETCH, small.url(path), str(size), kind], text=True,
                              stdout=subprocess.PIPE, timeout=60 * SLOW, check=True)
    assert done.stdout.strip() == answer


def test_many_at_once(small):
    """More than linger at a time are answered as long as they read in the end."""
    def one():
        path, size, kind = refused(T + "?kernal=x", 4)
        return post(small, path, size, kind)

    with unharmed(small):
        threads = Threads()
        for _ in range(40):
            threads.go(one)
        assert threads.join() == ["400 unknown_parameter"] * 40


def test_a_head_that_the_library_refuses(small):
    """It is larger than the library's buffer, and a body comes behind it."""
    with unharmed(small), small.client() as client:
        reply = client.request("POST", T, bytes(24 * MIB), {"X-Long": "a" * 60000})
        assert reply.status == 431


def test_who_never_stops_sending(small):
    """A second, and the connection is gone; what came is not kept."""
    with unharmed(small), small.raw() as raw:
        before = small.rss_bytes()
        raw.send(wire.head("POST", T + "?kernal=x", f"Content-Length: {1 << 40}"))
        began, sent = time.monotonic(), 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - began < 20 * SLOW:
                raw.send(bytes(65536))
                sent += 65536
        took = time.monotonic() - began
        assert took < 5 * SLOW and (took > 0.5 or sent > 512 * MIB), (took, sent)
        assert MIB < sent < 2 << 30
        assert small.rss_bytes() - before < 16 * MIB


def test_who_stays_and_is_silent(small):
    """More than may linger (in a burst, twice 64): none has a descriptor for longer than a second."""
    with unharmed(small), contextlib.ExitStack() as open_ones:
        raws = [open_ones.enter_context(small.raw()) for _ in range(200)]
        wait_until(lambda: gauge(small, "gemmd_connections") == 201, "all taken")
        before = small.descriptors()
        for raw in raws:
            raw.send(wire.head("POST", T + "?kernal=x", f"Content-Length: {1 << 40}"))
        for raw in raws:
            check(raw.reply(), 400, "unknown_parameter")
        wait_until(lambda: gauge(small, "gemmd_connections") == 1, "all closed")
        assert small.descriptors() <= before - 200 + 2 * 64 + 2
        wait_until(lambda: small.descriptors() <= before - 200 + 1, "all forgotten", 5)


def test_a_body_that_is_too_slow(monkeypatch):
    """It trickles on and on, and a little longer than it is waited for."""
    assert os.access(HASTY, os.X_OK), f"set GEMMD_HASTY_BIN to gemmd_hasty; {HASTY!r} is none"
    monkeypatch.setattr(daemon_module, "BINARY", HASTY)
    daemon = Daemon()
    try:
        with unharmed(daemon), daemon.raw() as raw:
            raw.send(wire.head("POST", T, f"Content-Length: {MIB}"))
            while not select.select([raw.socket], [], [], 0.002)[0]:
                raw.send(b" ")
            for _ in range(5):  # within a second of the daemon's time
                raw.send(b" ")
                time.sleep(0.002)
            check(raw.reply(), 408, "upload_timeout")
    finally:
        daemon.stop()


def test_while_the_daemon_ends(start):
    """It has an answer that is on its way, and waits until its client has read it."""
    daemon = start()
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T + "?kernal=x", f"Content-Length: {1 << 40}"), bytes(MIB))
        # Answered, and left by the library: before it was accepted there was one connection too.
        wait_until(lambda: select.select([raw.socket], [], [], 0)[0] and gauge(daemon, "gemmd_connections") == 1, "the answer")
        daemon.signal(signal.SIGTERM)
        for _ in range(10):
            raw.send(bytes(MIB))
            time.sleep(0.03)
        check(raw.reply(), 400, "unknown_parameter")
    assert daemon.wait() == 0
