"""64 connections at once, each with a mix of operations, formats and sizes of its own; every
single result is checked."""

import threading

import numpy as np

import formats
import wire
from conftest import SEED
from jobs import Threads, all_given_back
from wire import target

CONNECTIONS = 64
ROUNDS = 24


class Mix:
    """One connection's requests, made and checked by its own random numbers."""

    def __init__(self, daemon, number):
        self.client = daemon.client(timeout=120)
        self.rng = np.random.default_rng([SEED, number])
        self.number = number

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def size(self):
        return int(self.pick([0, 1, 2, 3, 17, 31, 32, 33, 64, 65, 101, 150]))

    def transpose(self):
        dtype, fmt = self.pick([*formats.NUMPY]), self.pick([*formats.NPY_FORMATS, "raw"])
        if not formats.format_can(fmt, dtype):
            fmt = "npy"
        shape = (self.size(), self.size()) if self.rng.integers(2) else (3, self.size(), 5)
        array = formats.random_bits(self.rng, dtype, shape)
        body = formats.encode(fmt, dtype, array)
        reply = self.send("/v1/transpose", body)
        case = (self.number, dtype, fmt, shape)
        assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(array)), case

    def matmul(self):
        dtype, fmt = self.pick(formats.ARITHMETIC), self.pick(formats.FORMATS)
        if not formats.format_can(fmt, dtype) or fmt == "json-bare":
            fmt = "json-flat"
        m, k, n = (min(self.size(), 70) for _ in range(3))
        a = formats.random_numbers(self.rng, dtype, (m, k))
        b = formats.random_numbers(self.rng, dtype, (k, n))
        reply = self.send("/v1/matmul", formats.encode(fmt, dtype, a, b))
        formats.Product(dtype, a, b).check(formats.decode(reply, dtype), (self.number, dtype, fmt))

    def large(self):
        array = formats.random_bits(self.rng, "f64", (400, 700))
        reply = self.send("/v1/transpose", formats.encode("npy", "f64", array))
        assert formats.same_bits(formats.decode(reply, "f64"), formats.transposed(array))

    def wrong(self):
        request_id = f"mix-{self.number}"
        reply = self.client.post("/v1/matmul", b"[[1, 2]]", {"X-Request-Id": request_id})
        assert (reply.status, reply.code) == (422, "missing_operand")
        assert reply.json()["request_id"] == request_id

    def look(self):
        assert self.client.get(self.pick(["/healthz", "/v1/stats", "/v1/kernels"])).status == 200

    def send(self, path, body):
        reply = self.client.post(target(path, **body.parameters), body.data, body.headers)
        stats = reply.ok().stats
        assert stats["id"] == reply.header("X-Request-Id") and path.endswith(stats["op"])
        return reply

    def run(self, barrier):
        barrier.wait(60)
        kinds = [self.transpose, self.transpose, self.matmul, self.matmul, self.large, self.wrong,
                 self.look]
        with self.client:
            for _ in range(ROUNDS):
                self.pick(kinds)()
        return ROUNDS


def test_many_connections_with_everything_at_once(start):
    daemon = start()
    barrier = threading.Barrier(CONNECTIONS)
    threads = Threads()
    for number in range(CONNECTIONS):
        threads.go(Mix(daemon, number).run, barrier)
    assert sum(threads.join(120)) == CONNECTIONS * ROUNDS
    all_given_back(daemon)


def test_results_do_not_mix(start):
    """Each connection sends a matrix that no other sends, over and over, as fast as it can."""
    daemon = start()

    def work(number):
        array = np.full((37, 41), number, "<i4") + np.arange(37 * 41, dtype="<i4").reshape(37, 41)
        body = formats.npy(array)
        with daemon.client(timeout=120) as client:
            for _ in range(60):
                reply = client.post("/v1/transpose", body, {"Content-Type": wire.NPY})
                assert np.array_equal(formats.read_npy(reply, "i32"), array.T), number
        return 60

    threads = Threads()
    for number in range(CONNECTIONS):
        threads.go(work, 100000 * number)
    assert sum(threads.join(120)) == 60 * CONNECTIONS
