"""Signals at bad moments: whatever was accepted is answered, and the daemon ends in time."""

import os
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

import formats
import wire
from daemon import BINARY, SANITIZER, SLOW, Daemon, environment
from jobs import ONE_AT_A_TIME, SlowJob, Threads, gauge, wait_until
from keyring import Keyring

T, M = "/v1/transpose", "/v1/matmul"


def refuses_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5 * SLOW).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True  # the second: it was closed while this one knocked
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle(start, number):
    daemon = start()
    daemon.get("/healthz").ok()
    began = time.monotonic()
    daemon.signal(number)
    assert daemon.wait() == 0
    assert time.monotonic() - began < 2 * SLOW


@pytest.mark.parametrize("delay_ms", [0, 5, 20, 50, 80, 150])
def test_while_it_starts(delay_ms):
    """Ended by the signal, or just after it was ready; in no case left behind."""
    with subprocess.Popen([BINARY, "--listen", "127.0.0.1:0"], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            time.sleep(delay_ms / 1000)
            process.terminate()
            _, log = process.communicate(timeout=5 * SLOW)
            assert process.returncode in (0, -signal.SIGTERM)
            assert not SANITIZER.search(log.decode()), log.decode()
        finally:
            process.kill()


def test_idle_connections_do_not_hold_it_up(start):
    daemon = start()
    connections = [daemon.raw() for _ in range(20)]
    for raw in connections[:10]:
        raw.send(wire.head("GET", "/healthz"))
        assert raw.reply().status == 200
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert time.monotonic() - began < 3 * SLOW
    for raw in connections:
        assert raw.closed()


def wait_in_flight(daemon, requests):
    asking = 1
    wait_until(lambda: gauge(daemon, "gemmd_requests_in_flight") == requests + asking,
               f"{requests} requests in flight")


def test_jobs_in_flight_are_served(start_idle):
    """One runs, two wait, one is being uploaded: whatever was accepted is answered."""
    daemon = start_idle(*ONE_AT_A_TIME, "--drain-timeout", "60s")
    job = SlowJob(daemon, 0.4)
    busy = [job.send(daemon.raw(timeout=60)) for _ in range(3)]
    with daemon.raw(timeout=60) as half:
        half.send(wire.head("POST", T, "Content-Length: 8"), b"[[1, ")
        wait_in_flight(daemon, 4)
        daemon.signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(daemon.port), "no new connections")
        half.send(b"2]]")
        assert half.reply().ok().json()["data"] == [[1], [2]]
    for raw in busy:
        assert raw.reply().ok().body == bytes(4 * job.size**2)
    assert daemon.wait() == 0


def test_a_reply_that_is_being_read_is_sent_to_its_end(start):
    daemon = start("--drain-timeout", "60s")
    array = np.arange(2000 * 1500, dtype="<f4").reshape(2000, 1500)
    with daemon.raw(timeout=60) as raw:
        raw.send(wire.head("POST", T + "?shape=2000x1500", "Content-Type: " + wire.RAW,
                           f"Content-Length: {array.nbytes}"), array.tobytes())
        raw.buffer += raw.socket.recv(100)  # it has begun
        daemon.signal(signal.SIGTERM)
        time.sleep(0.3)
        assert np.array_equal(formats.decode(raw.reply(), "f32"), array.T)
    assert daemon.wait() == 0


def test_no_new_requests_after_sigterm(start_idle):
    """On a connection that was kept alive: refused with 503, or closed; never left hanging."""
    daemon = start_idle(*ONE_AT_A_TIME, "--drain-timeout", "60s")
    job = SlowJob(daemon, 1.0)
    with daemon.raw() as kept, daemon.raw(timeout=60) as busy:
        kept.send(wire.head("GET", "/healthz"))
        kept.reply().ok()
        job.send(busy)
        time.sleep(0.1)
        daemon.signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(daemon.port), "no new connections")
        try:
            kept.send(wire.head("POST", T, "Content-Length: 5"), b"[[1]]")
            reply = kept.reply()
            assert (reply.status, reply.code) == (503, "draining")
        except (ConnectionError, AssertionError) as failure:
            assert isinstance(failure, ConnectionError) or "closed" in str(failure), failure
        assert busy.reply().status == 200
    assert daemon.wait() == 0


def test_the_first_request_of_a_new_connection_is_awaited(start):
    """It may be on its way, as a handshake is: it is answered, and the connection is not just closed."""
    daemon = start()
    with daemon.raw() as late:
        daemon.get("/healthz").ok()  # by now the other is accepted
        daemon.signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(daemon.port), "no new connections")
        time.sleep(0.1)
        late.send(wire.head("POST", T, "Content-Length: 5"), b"[[1]]")
        reply = late.reply()
        assert (reply.status, reply.code, reply.header("connection")) == (503, "draining", "close")
    assert daemon.wait() == 0


def test_drain_delay_serves_but_is_not_ready(start):
    daemon = start("--drain-delay", f"{int(1000 * SLOW)}ms")
    with daemon.client() as client:
        assert client.get("/readyz").status == 200
        daemon.signal(signal.SIGTERM)
        began = time.monotonic()
        wait_until(lambda: daemon.get("/readyz").status == 503, "not ready", 0.8)
        assert daemon.get("/healthz").status == 200, "a live process is not restarted"
        # On old and on new connections alike.
        assert client.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
        assert daemon.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
        assert time.monotonic() - began < SLOW, "the test itself was too slow"
    assert daemon.wait() == 0
    assert time.monotonic() - began >= 0.95 * SLOW


def test_keys_are_read_again_during_the_drain_delay(start, tmp_path):
    ring = Keyring(str(tmp_path / "keys"))
    ring.add("stays")
    ring.add("leaves")
    daemon = start("--keys", ring.path, "--drain-delay", f"{int(2000 * SLOW)}ms")
    leaves, stays = ring.headers("leaves"), ring.headers("stays")
    daemon.signal(signal.SIGTERM)
    daemon.post(T, b"[[1, 2]]", leaves).ok()
    ring.remove("leaves")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: daemon.post(T, b"[[1, 2]]", leaves).status == 401, "the reload", 1.5)
    daemon.post(T, b"[[1, 2]]", stays).ok()
    assert daemon.wait() == 0


def test_what_the_drain_timeout_does_not_allow_is_told_so(start_idle):
    """A job of many seconds, running, and one behind it: 503, exit code 0, and in time."""
    daemon = start_idle(*ONE_AT_A_TIME, "--drain-timeout", "500ms")
    job = SlowJob(daemon, 6.0)
    with daemon.raw(timeout=60) as running, daemon.raw(timeout=60) as queued:
        job.send(running)
        time.sleep(0.2)
        job.send(queued)
        time.sleep(0.2)
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        for raw in (running, queued):
            reply = raw.reply()
            assert (reply.status, reply.code) == (503, "draining"), reply
    assert daemon.wait() == 0
    assert 0.45 <= time.monotonic() - began < 0.5 + 2 * SLOW


def test_where_nothing_is_left_nothing_is_said_of_it(start):
    """Not even without time to drain: to see that nothing is in flight takes two looks."""
    daemon = start("--drain-timeout", "0s")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert "what is left" not in daemon.log()


def test_half_sent_requests_do_not_hold_it_beyond_the_drain_timeout(start):
    daemon = start("--drain-timeout", "500ms")
    beginnings = [
        b"",
        b"PO",
        b"POST /v1/transpose HTTP/1.1\r\nHost: localhost\r\nContent-",
        wire.head("POST", T, "Content-Length: 1000") + b"[[1",
        wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1",
        wire.head("POST", T, "Content-Length: 100000000", "Content-Type: " + wire.NPY),
        wire.head("POST", T, "Content-Length: 8", "Expect: 100-continue"),
    ]
    connections = [daemon.raw().send(beginning) for beginning in beginnings]
    time.sleep(0.2)
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert time.monotonic() - began < 0.5 + 3 * SLOW
    logged = [line for line in daemon.log().splitlines() if " event=request " in line]
    assert len(logged) == 4, daemon.log()  # those whose head has come: they are answered
    assert all(" status=503 code=draining " in line and line.endswith(" outcome=sent") for line in logged), logged
    for raw in connections:
        raw.socket.close()


def test_who_has_left_does_not_hold_it(start):
    """Of an end that came together with bytes the library knows nothing: it is still looked for."""
    daemon = start("--drain-timeout", "60s")
    with daemon.raw() as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        raw.send(wire.head("POST", "/v1/transpose", "Content-Length: 1000"), b"[[")
        raw.socket.close()
    wait_in_flight(daemon, 1)
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert time.monotonic() - began < 5 * SLOW


def test_a_reader_that_never_reads_does_not_hold_it_either(start):
    daemon = start("--drain-timeout", "500ms")
    size = 3000
    with daemon.raw(timeout=60) as raw:
        raw.send(wire.head("POST", f"{T}?shape={size}x{size}", f"Content-Type: {wire.RAW}",
                           f"Content-Length: {4 * size**2}"), bytes(4 * size**2))
        time.sleep(0.3 * SLOW)
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        assert time.monotonic() - began < 0.5 + 3 * SLOW


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("gap_s", [0, 0.005, 0.02])
def test_a_signal_sent_twice_is_one(start_idle, number, gap_s):
    """timeout(1) signals the process and then its group; service managers may repeat theirs."""
    daemon = start_idle(*ONE_AT_A_TIME, "--drain-timeout", "60s")
    job = SlowJob(daemon, 0.5)
    with daemon.raw(timeout=60) as raw:
        job.send(raw)
        wait_in_flight(daemon, 1)
        daemon.signal(signal.SIGTERM)
        time.sleep(gap_s)
        daemon.signal(number)
        assert raw.reply().ok().body == bytes(4 * job.size**2)
    assert daemon.wait() == 0


def test_a_second_sigterm_after_more_than_a_second_ends_it_at_once(start_idle):
    daemon = start_idle(*ONE_AT_A_TIME, "--drain-timeout", "60s", "--drain-delay", "60s")
    job = SlowJob(daemon, 6.0)
    with daemon.raw() as raw:
        job.send(raw)
        time.sleep(0.2)
        daemon.signal(signal.SIGTERM)
        time.sleep(0.7)
        daemon.signal(signal.SIGTERM)
        time.sleep(0.5)
        assert daemon.alive()
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 1
        assert time.monotonic() - began < 1.5 * SLOW


def test_sigterm_under_64_busy_connections(start):
    """Each connection sends until it is told not to. A request whose connection stayed open is
    answered 200 or 503; a connection may only close between requests."""
    daemon = start("--drain-timeout", "30s")
    body = b"[[1, 2], [3, 4]]"
    request = wire.head("POST", T, f"Content-Length: {len(body)}") + body

    def work():
        served = 0
        with daemon.raw(timeout=30) as raw:
            while True:
                try:
                    raw.send(request)
                    reply = raw.reply()
                except ConnectionError:
                    return served
                except AssertionError as failure:
                    # Closed before a byte of an answer: it was never accepted.
                    assert str(failure).startswith("closed without a whole head: b''"), failure
                    return served
                if reply.status == 503:
                    assert reply.code == "draining"
                    return served
                assert reply.ok().json()["data"] == [[1, 3], [2, 4]]
                served += 1

    threads = Threads()
    for _ in range(64):
        threads.go(work)
    time.sleep(1.0)
    daemon.signal(signal.SIGTERM)
    served = threads.join()
    assert daemon.wait() == 0
    assert len(served) == 64 and sum(served) > 64


def test_accepted_jobs_are_counted_to_the_last(start_idle):
    """Whatever was sent whole before SIGTERM is answered 200, on every connection."""
    daemon = start_idle("--drain-timeout", "60s", "--queue-limit", "256", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 0.02)
    connections = [job.send(daemon.raw(timeout=60)) for _ in range(64)]
    time.sleep(0.3 * SLOW)
    daemon.signal(signal.SIGTERM)
    replies = [raw.reply() for raw in connections]
    assert [reply.status for reply in replies] == [200] * 64
    assert daemon.wait() == 0
    for raw in connections:
        raw.socket.close()


def test_a_connection_in_the_backlog_is_not_lost(start):
    """Connections that the kernel has taken, and whose requests are already there."""
    for _ in range(5):
        daemon = start("--drain-timeout", "30s")
        connections = []
        for _ in range(30):
            raw = daemon.raw(timeout=30)
            connections.append(raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[1]]"))
        daemon.signal(signal.SIGTERM)
        statuses = [raw.reply().status for raw in connections]
        assert set(statuses) <= {200, 503}, statuses
        assert daemon.wait() == 0
        for raw in connections:
            raw.socket.close()


def test_sigkill_leaves_nothing(start, tmp_path):
    """No file, no socket, no process: the port can be used by the next one."""
    before = set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))
    daemon = Daemon()
    job = SlowJob(daemon, 0.5)
    with daemon.raw() as raw:
        job.send(raw)
        daemon.kill()
        assert raw.closed()
    assert refuses_connections(daemon.port)
    left = (set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))) - before
    # gemmd-test-...: shared memory of other tests that run now.
    assert not [name for name in left if "gemmd" in name.lower() and not name.startswith("gemmd-test-")], left
    assert start("--listen", f"127.0.0.1:{daemon.port}").get("/healthz").status == 200


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
def test_other_signals_do_not_crash_it(number):
    """SIGPIPE comes from clients that went away; the others end a program or do nothing."""
    daemon = Daemon()
    try:
        daemon.signal(number)
        time.sleep(0.2)
        try:
            assert daemon.post(T, b"[[1]]").status == 200
            daemon.stop()
        except ConnectionError:  # it has ended, or is about to
            assert number != signal.SIGPIPE and daemon.wait() in (0, -number)
    finally:
        daemon.kill()
