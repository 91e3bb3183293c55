"""Devices that fail: a daemon whose only device is slow, out of memory, lost or hung, as its
environment tells it; jobs that are held go on with SIGUSR1. Whoever waits is answered, and the process ends to be restarted."""

import os
import signal
import time

import pytest

import daemon as daemon_module
import problems
import wire
from daemon import SLOW
from jobs import Threads, all_given_back, gauge, wait_until

# A named kernel is never run on the event thread: these jobs are always the device's.
T = "/v1/transpose?kernel=naive"
BODY = b"[[1, 2], [3, 4]]"
REQUEST = wire.head("POST", T, f"Content-Length: {len(BODY)}") + BODY
FAKE = os.environ.get("GEMMD_FAKE_BIN", "")
DRAIN_S = 1.0


@pytest.fixture
def start_fake(start, monkeypatch):
    """start_fake(lose_at=2, streams=3) gives a daemon whose device does that."""
    assert os.access(FAKE, os.X_OK), f"set GEMMD_FAKE_BIN to gemmd_fake; {FAKE!r} is none"
    monkeypatch.setattr(daemon_module, "BINARY", FAKE)

    def start_one(*options, **plan):
        env = {"FAKE_" + name.upper(): str(value) for name, value in plan.items()}
        return start("--drain-timeout", f"{DRAIN_S:g}s", *options, env=env)

    return start_one


def send(daemon, count, running=1):
    """`count` requests on connections of their own, one after the other, of which the first
    `running` get onto the device."""
    connections = []
    for sent in range(1, count + 1):
        connections.append(daemon.raw(timeout=30).send(REQUEST))
        name = "gemmd_jobs_running" if sent <= running else "gemmd_queue_depth"
        wanted = sent if sent <= running else sent - running
        wait_until(lambda: gauge(daemon, name) == wanted, f"{name} {wanted}")
    return connections


def check_lost(reply):
    problems.check(reply, 503, "device_lost")
    assert 1 <= int(reply.header("Retry-After")) <= 60


def ends(daemon, code, seconds):
    """Whether it ends by itself with this code within so many seconds."""
    began = time.monotonic()
    assert daemon.wait() == code, daemon.last_words()
    assert time.monotonic() - began < seconds * SLOW, daemon.last_words()


def release(daemon):
    daemon.signal(signal.SIGUSR1)


def close(connections):
    for raw in connections:
        raw.socket.close()


def test_the_fake_computes_when_it_is_told_nothing(start_fake):
    daemon = start_fake(streams=2)
    assert daemon.post(T, BODY).ok().json()["data"] == [[1, 3], [2, 4]]
    assert daemon.post("/v1/transpose", BODY).ok().stats["device"] == "fake:0"
    daemon.stop()


def test_out_of_memory_fails_one_request(start_fake):
    daemon = start_fake(memory_at=2)
    daemon.post(T, BODY).ok()
    reply = daemon.post(T, BODY)
    problems.check(reply, 503, "device_memory")
    assert int(reply.header("Retry-After")) >= 1
    assert daemon.post(T, BODY).ok().json()["data"] == [[1, 3], [2, 4]]
    assert daemon.get("/healthz").status == 200
    all_given_back(daemon)
    daemon.stop()


@pytest.mark.parametrize("streams", [1, 3])
def test_everybody_is_told_that_the_device_is_lost(start_fake, streams):
    """Those on a stream, and those who wait; then it exits, soon and with 1."""
    daemon = start_fake(streams=streams, lose_at=1, hold=1)
    connections = send(daemon, 6, streams)
    release(daemon)
    for raw in connections:
        check_lost(raw.reply())
    ends(daemon, 1, 3)
    assert "event=device_lost" in daemon.log()
    close(connections)


def test_the_event_thread_may_find_out(start_fake):
    """A job so small that it runs where its request was read."""
    daemon = start_fake(lose_at=2)
    daemon.post("/v1/transpose", BODY).ok()
    check_lost(daemon.post("/v1/transpose", BODY))
    ends(daemon, 1, 3)


def test_uploads_are_told_too(start_fake):
    """Half a body and the headers of one: there is no point in waiting for the rest."""
    daemon = start_fake(lose_at=1, hold=1)
    halves = [
        daemon.raw().send(wire.head("POST", T, "Content-Length: 1000") + b"[[1,"),
        daemon.raw().send(wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1, \r\n"),
    ]
    wait_until(lambda: gauge(daemon, "gemmd_requests_in_flight") == 3, "two uploads")
    connections = send(daemon, 1)
    release(daemon)
    check_lost(connections[0].reply())
    for raw in halves:
        reply = raw.reply()
        assert reply.status == 503 and reply.code in ("device_lost", "draining"), reply
        assert int(reply.header("Retry-After")) >= 1
    ends(daemon, 1, 3)
    close(connections + halves)


def test_a_second_stream_that_hangs_does_not_keep_it(start_fake):
    """The device is lost while a job on another stream never returns: answered over its head."""
    daemon = start_fake(streams=2, hang_at=1, lose_at=2, hold=1)
    connections = send(daemon, 5, 2)
    began = time.monotonic()
    release(daemon)
    for raw in connections:
        check_lost(raw.reply())
    ends(daemon, 1, DRAIN_S + 3)
    assert time.monotonic() - began < (DRAIN_S + 3) * SLOW
    close(connections)


def test_probes_while_it_ends(start_fake):
    """Whoever holds a connection sees /healthz fail for as long as there are answers."""
    daemon = start_fake(streams=2, hang_at=1, lose_at=2, hold=1)
    kept = [daemon.raw() for _ in range(40)]
    for raw in kept:
        raw.send(wire.head("GET", "/healthz"))
        raw.reply().ok()
    connections = send(daemon, 2, 2)
    release(daemon)
    check_lost(connections[1].reply())
    seen = set()
    for raw in kept:
        try:
            raw.send(wire.head("GET", "/healthz"))
            reply = raw.reply(timeout=5 * SLOW)
        except (ConnectionError, AssertionError):
            break  # it has ended
        check_lost(reply)
        seen.add(reply.status)
        time.sleep(0.02)
    assert seen == {503}
    ends(daemon, 1, DRAIN_S + 3)
    close(kept + connections)


def test_lost_under_load(start_fake):
    """Clients in a row on many connections: an answer that is whole, or a connection refused."""
    daemon = start_fake(streams=2, lose_at=200)

    def work():
        statuses = set()
        try:
            connection = daemon.raw(timeout=30)
        except ConnectionError:
            return statuses  # too late: the daemon has ended
        with connection as raw:
            while 503 not in statuses:
                try:
                    raw.send(REQUEST)
                    reply = raw.reply()
                except ConnectionError:
                    break
                except AssertionError as failure:
                    assert str(failure).startswith("closed without a whole head: b''"), failure
                    break
                assert reply.status == 200 or reply.code in ("device_lost", "draining"), reply
                statuses.add(reply.status)
        return statuses

    threads = Threads()
    for _ in range(16):
        threads.go(work)
    results = threads.join()
    assert any(503 in statuses for statuses in results)
    assert any(200 in statuses for statuses in results)
    ends(daemon, 1, 3)


def test_a_job_that_hangs_and_sigterm(start_fake):
    """It is told when the drain timeout is over, and the process ends with 0, in time."""
    daemon = start_fake(hang_at=1)
    connections = send(daemon, 3)
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    for raw in connections:
        problems.check(raw.reply(), 503, "draining")
    ends(daemon, 0, DRAIN_S + 3)
    assert time.monotonic() - began >= 0.9 * DRAIN_S
    close(connections)


def test_a_job_that_can_be_stopped_is_stopped(start_fake):
    """Slow, but not deaf: after the drain timeout nobody is left, and nothing is cut off."""
    daemon = start_fake(hold=1)
    connections = send(daemon, 3)
    daemon.signal(signal.SIGTERM)
    for raw in connections:
        problems.check(raw.reply(), 503, "draining")
    ends(daemon, 0, DRAIN_S + 3)
    assert "did not stop" not in daemon.log(), daemon.last_words()
    close(connections)


def test_lost_while_it_drains(start_fake):
    """The exit code tells it, although a signal was first."""
    daemon = start_fake("--drain-timeout", "30s", lose_at=1, hold=1)
    connections = send(daemon, 3)
    daemon.signal(signal.SIGTERM)
    wait_until(lambda: "event=signal" in daemon.log(), "a daemon that drains")
    release(daemon)
    for raw in connections:
        check_lost(raw.reply())
    ends(daemon, 1, 4)
    close(connections)


def test_a_slow_job_is_served_before_it_ends(start_fake):
    daemon = start_fake("--drain-timeout", "30s", hold=1)
    connections = send(daemon, 2)
    daemon.signal(signal.SIGTERM)
    wait_until(lambda: "event=signal" in daemon.log(), "a daemon that drains")
    release(daemon)
    for raw in connections:
        assert raw.reply().ok().json()["data"] == [[1, 3], [2, 4]]
    ends(daemon, 0, 4)
    close(connections)
