"""SIGTERM with a thousand requests in flight, in every state that a request can be in: each that was
accepted is answered with its own result, the daemon ends with 0, and the next one does the same."""

import contextlib
import json
import resource
import signal
import time

import numpy as np
import pytest

import prometheus
import wire
from daemon import SLOW
from jobs import ONE_AT_A_TIME, SlowJob, gauge, wait_until

T, M = "/v1/transpose", "/v1/matmul"
DRAIN = ("--drain-timeout", "300s", "--timeout", "300s", "--queue-limit", "2048")
RAW = "Content-Type: " + wire.RAW


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """A thousand sockets, in a process that was given a thousand descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"{hard} descriptors are too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Flight:
    """A request on its way. begin() sends what makes it one, go_on() the rest, end() checks the
    answer; each has numbers of its own, so that no other's answer is right for it."""

    def __init__(self, daemon, number):
        self.raw, self.number = daemon.raw(timeout=300), number
        self.begin()

    def send(self, path, body, *headers, now=None):
        """The head, and the first `now` bytes of the body."""
        self.rest = body[len(body) if now is None else now:]
        self.raw.send(wire.head("POST", path, *headers, f"Content-Length: {len(body)}"),
                      body[:len(body) - len(self.rest)])

    def go_on(self):
        if self.rest:
            self.raw.send(self.rest)

    def matrix(self, rows, columns):
        return np.arange(rows * columns, dtype="<f4").reshape(rows, columns) + self.number

    def check_transposed(self, array):
        body = self.raw.reply().ok().body
        assert body == np.ascontiguousarray(array.T).tobytes(), self.number

    def close(self):
        self.raw.socket.close()


class Queued(Flight):
    """A job of some milliseconds, with hundreds before it."""

    def begin(self):
        a, b = np.full((8, 8), self.number, "<f4"), np.ones((8, 8), "<f4")
        self.send(M + "?shape_a=8x8&shape_b=8x8&repeat=1000", a.tobytes() + b.tobytes(), RAW)

    def end(self):
        body = self.raw.reply().ok().body
        assert body == np.full((8, 8), 8 * self.number, "<f4").tobytes(), self.number


class Uploading(Flight):
    """The second half of the body comes after the signal."""

    def begin(self):
        body = self.matrix(40, 50).tobytes()
        self.send(T + "?shape=40x50", body, RAW, now=len(body) // 2)

    def end(self):
        self.check_transposed(self.matrix(40, 50))


class Chunked(Flight):
    def begin(self):
        body = self.matrix(40, 50).tobytes()
        self.raw.send(wire.head("POST", T + "?shape=40x50", RAW, "Transfer-Encoding: chunked"),
                      wire.chunk(body[:3000]))
        self.rest = wire.chunk(body[3000:]) + wire.chunk(b"")

    def end(self):
        self.check_transposed(self.matrix(40, 50))


class Expecting(Flight):
    """Has been told to go on, and has not yet."""

    def begin(self):
        self.send(T + "?shape=40x50", self.matrix(40, 50).tobytes(), RAW, "Expect: 100-continue",
                  now=0)
        assert self.raw.reply().status == 100

    def end(self):
        self.check_transposed(self.matrix(40, 50))


class Text(Flight):
    """A megabyte of text: a worker reads it, and a worker writes the answer."""

    def begin(self):
        rows = [[100000 + self.number + column] * 400 for column in range(400)]
        self.send(T + "?dtype=i32", json.dumps(rows).encode())

    def end(self):
        data = self.raw.reply().ok().json()["data"]
        assert data == [[100000 + self.number + column for column in range(400)]] * 400


class Reading(Flight):
    """An answer of more megabytes than sockets hold, of which the client takes a little now and then."""

    def begin(self):
        self.send(T + "?shape=1000x4000", self.matrix(1000, 4000).tobytes(), RAW)

    def end(self):
        for _ in range(4):
            time.sleep(0.05)
            self.raw.buffer += self.raw.socket.recv(1000)
        self.check_transposed(self.matrix(1000, 4000))


IN_FLIGHT = [(Reading, 10), (Text, 20), (Queued, 600), (Uploading, 180), (Chunked, 100),
             (Expecting, 90)]


def served(daemon):
    return prometheus.total_in(prometheus.fetch(daemon), "gemmd_http_requests_total", route=T, code="200")


@contextlib.contextmanager
def take_off(daemon, kinds):
    flights = []
    try:
        for kind, count in kinds:
            for _ in range(count):
                flights.append(kind(daemon, len(flights)))
        yield flights
    finally:
        for flight in flights:
            flight.close()


@pytest.mark.parametrize("time_around", [1, 2])
def test_a_thousand_in_flight(start_idle, time_around):
    daemon = start_idle(*DRAIN, *ONE_AT_A_TIME)
    job = SlowJob(daemon, 3 * min(SLOW, 3))
    with contextlib.ExitStack() as others, daemon.raw(timeout=300) as holder:
        reading = others.enter_context(take_off(daemon, IN_FLIGHT[:1]))
        wait_until(lambda: served(daemon) >= len(reading), "replies that are not read")
        job.send(holder)  # nothing else is done while it runs
        flights = reading + others.enter_context(take_off(daemon, IN_FLIGHT[1:]))
        idle = [others.enter_context(daemon.raw()) for _ in range(20)]
        wait_until(lambda: gauge(daemon, "gemmd_requests_in_flight") >= 1000, "a thousand")
        late = [others.enter_context(daemon.raw()) for _ in range(20)]
        for raw in late:
            raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[7]]")
        daemon.signal(signal.SIGTERM)
        for flight in flights:
            flight.go_on()
        for flight in flights:
            flight.end()
        for raw in late:
            # Read before the signal or after it: answered in either case.
            reply = raw.reply()
            assert reply.status == 200 or (reply.status, reply.code) == (503, "draining"), reply
        assert holder.reply().ok().body == bytes(4 * job.size**2)
        assert daemon.wait() == 0
        assert all(raw.closed() for raw in idle)


def test_a_thousand_that_cannot_be_finished(start):
    """No time is left for them: told so, all of them, and at once."""
    daemon = start("--drain-timeout", "200ms", "--timeout", "300s", "--queue-limit", "2048",
                   *ONE_AT_A_TIME)
    with take_off(daemon, [(Queued, 900), (Uploading, 100)]) as flights:
        wait_until(lambda: gauge(daemon, "gemmd_requests_in_flight") > 500, "requests")
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        for flight in flights[:900]:
            reply = flight.raw.reply()
            assert reply.status == 200 or (reply.status, reply.code) == (503, "draining"), reply
        for flight in flights[900:]:
            reply = flight.raw.reply()
            assert (reply.status, reply.code) == (503, "draining"), reply
        assert daemon.wait() == 0
        assert time.monotonic() - began < 0.2 + 4 * SLOW
