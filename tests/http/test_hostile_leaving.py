"""Clients who leave, at each state of a request and in each way there is to leave: what is counted
is exact, what they held is given back, and the daemon goes on."""

import json
import time

import pytest

import wire
from daemon import IDLE, Daemon
from hostile import everything, unharmed
from jobs import ONE_AT_A_TIME, SlowJob, gauge, wait_until
from wire import JSON, RAW, target

T, M = "/v1/transpose", "/v1/matmul"


def close(raw):
    raw.socket.close()


def reset(raw):
    raw.reset()


def half(raw):
    """Only its sending half: it could still read, but has given its request up."""
    raw.half_close()


WAYS = [close, reset, half]


def read_away(raw, way):
    """Who can still read may get an answer, which must not wait in the daemon for room."""
    if way is half:
        everything(raw, timeout=60)


@pytest.fixture(scope="module")
def slow():
    """A daemon that does one job at a time, and a job of more than a second."""
    daemon = Daemon(*ONE_AT_A_TIME, **IDLE)
    yield daemon, SlowJob(daemon, 1.2)
    daemon.stop()


def busy(daemon, count):
    """Whether so many requests are with the daemon, beside the one that asks."""
    return lambda: gauge(daemon, "gemmd_requests_in_flight") == count + 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "beginning",
    [b"", b"G", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"\r\n"],
    ids=["nothing", "a letter", "a line", "a header", "an empty line"],
)
def test_within_a_head(daemon, way, beginning):
    """No request yet: none is counted, neither as answered nor as aborted."""
    with unharmed(daemon) as seen:
        raws = [daemon.raw().send(beginning) for _ in range(5)]
        time.sleep(0.02)
        for raw in raws:
            way(raw)
        wait_until(lambda: gauge(daemon, "gemmd_connections") == 1, "connections closed")
        seen.counted("aborted_requests", 0)
        seen.check("gemmd_requests_rejected_total", 0)
        for raw in raws:
            raw.socket.close()


BODIES = {
    "a text": wire.head("POST", T, "Content-Length: 1000") + b"[[1, ",
    "nothing of it": wire.head("POST", T, "Content-Length: 1000"),
    "a large text": wire.head("POST", T, "Content-Length: 4000000") + b"[[" + b"1, " * 700000,
    "elements": wire.head("POST", T + "?shape=1000x1000", f"Content-Type: {RAW}",
                          "Content-Length: 4000000") + bytes(1000000),
    "a chunk": wire.head("POST", T, "Transfer-Encoding: chunked") + b"100\r\n[[1, ",
    "chunks": wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1, \r\n",
    "a chunk's size": wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1, \r\n1",
    "trailers": wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1]]\r\n0\r\nX: y\r\n",
    "waiting for 100": wire.head("POST", T, "Expect: 100-continue", "Content-Length: 1000"),
    "a body that is refused": wire.head("POST", "/none", "Content-Length: 1000") + b"x",
    "a body that nobody wants": wire.head("GET", "/healthz", "Content-Length: 1000") + b"x",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", BODIES.values(), ids=BODIES)
def test_within_a_body(daemon, way, data):
    with unharmed(daemon) as seen:
        raws = [daemon.raw().send(data) for _ in range(5)]
        wait_until(busy(daemon, 5), "five requests begun")
        for raw in raws:
            way(raw)
        seen.counted("aborted_requests", 5)
        for raw in raws:
            raw.socket.close()


@pytest.mark.parametrize("way", WAYS)
def test_while_a_worker_decodes(daemon, way):
    """A text of some megabytes, whole: it is decoded, or not begun any more, and then dropped."""
    row = "[" + ",".join(["0.1234567890123"] * 400) + "]"
    body = ("[" + ",".join([row] * 400) + "]").encode()
    head = wire.head("POST", T, f"Content-Type: {JSON}", f"Content-Length: {len(body)}")
    with unharmed(daemon) as seen:
        raws = [daemon.raw(timeout=60) for _ in range(6)]
        for raw in raws:
            raw.send(head, body[:-1])
        wait_until(busy(daemon, 6), "six requests begun")
        for raw in raws:
            raw.send(body[-1:])
            way(raw)
        for raw in raws:
            read_away(raw, way)
        wait_until(busy(daemon, 0), "all dropped")
        if way is not half:
            assert 0 < seen.moved("gemmd_aborted_requests_total") <= 6
        for raw in raws:
            raw.socket.close()


@pytest.mark.parametrize("way", WAYS)
def test_while_it_waits_in_the_queue(slow, way):
    daemon, job = slow
    with unharmed(daemon) as seen, daemon.raw(timeout=60) as running:
        job.send(running)
        wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "a running job")
        raws = [job.send(daemon.raw(timeout=60)) for _ in range(3)]
        wait_until(lambda: gauge(daemon, "gemmd_queue_depth") == 3, "a queue")
        for raw in raws:
            way(raw)
        wait_until(lambda: gauge(daemon, "gemmd_queue_depth") == 0, "an empty queue", 1)
        seen.failed("cancelled", 3)
        assert running.reply().status == 200
        for raw in raws + [running]:
            raw.socket.close()
        if way is reset:  # to who has only closed, a last word can still be sent
            seen.counted("aborted_requests", 3)


@pytest.mark.parametrize("way", WAYS)
def test_while_it_runs(slow, way):
    """A job on the device runs to its end; its result has nobody to go to."""
    daemon, job = slow
    with unharmed(daemon) as seen:
        raw = job.send(daemon.raw(timeout=60))
        wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "a running job")
        way(raw)
        wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 0, "its end")
        read_away(raw, way)
        wait_until(busy(daemon, 0), "its request's end")
        # Without a reset the kernel takes half a megabyte before it learns that nobody is there.
        assert seen.moved("gemmd_aborted_requests_total") <= 1
        cancelled = seen.moved("gemmd_requests_rejected_total", reason="cancelled")
        seen.check("gemmd_requests_rejected_total", cancelled)
        assert cancelled <= (way is reset)
        raw.socket.close()


@pytest.mark.parametrize("way", [close, reset])
def test_while_a_worker_encodes(daemon, way):
    """The result is a text of some megabytes."""
    body = json.dumps({"shape": [600, 600], "data": [0.123] * 360000}).encode()
    head = wire.head("POST", T, f"Content-Type: {JSON}", f"Content-Length: {len(body)}")
    with unharmed(daemon):
        for delay_s in (0.005, 0.01, 0.02, 0.04):
            raw = daemon.raw(timeout=60).send(head, body)
            time.sleep(delay_s)
            way(raw)
        wait_until(busy(daemon, 0), "all dropped")


@pytest.mark.parametrize("way", [close, reset])
def test_within_a_reply(daemon, way):
    """32 MB, of which the client takes the beginning."""
    size = 4 * 4000 * 2000
    request = wire.head("POST", target(T, shape="4000x2000"), f"Content-Type: {RAW}",
                        f"Content-Length: {size}")
    with unharmed(daemon) as seen:
        for _ in range(3):
            raw = daemon.raw(timeout=60).send(request, bytes(size))
            assert raw.socket.recv(1000).startswith(b"HTTP/1.1 200 ")
            way(raw)
        seen.counted("aborted_requests", 3)


@pytest.mark.parametrize("way", WAYS)
def test_between_requests(daemon, way):
    with unharmed(daemon) as seen:
        raws = [daemon.raw().send(wire.head("GET", "/healthz")) for _ in range(5)]
        for raw in raws:
            assert raw.reply().status == 200
            way(raw)
        wait_until(lambda: gauge(daemon, "gemmd_connections") == 1, "connections closed")
        seen.counted("aborted_requests", 0)
        for raw in raws:
            raw.socket.close()


def test_pipelined_and_gone(daemon):
    """A hundred requests at once, and nobody for the answers."""
    request = wire.head("POST", T, "Content-Length: 5") + b"[[1]]"
    with unharmed(daemon):
        for way in (close, reset):
            way(daemon.raw().send(request * 100))
