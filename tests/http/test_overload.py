"""More than the daemon can do: it says no at once, in words, and is as before afterwards."""

import time

import numpy as np
import pytest

import formats
import prometheus
import wire
from daemon import SLOW, Daemon
from jobs import (
    ONE_AT_A_TIME,
    SlowJob,
    Threads,
    gauge,
    occupied,
    rejected,
    unaccounted_us,
    wait_until,
)
from wire import target

T, M = "/v1/transpose", "/v1/matmul"
RAW = {"Content-Type": wire.RAW}


def check_refusal(reply, *codes):
    assert reply.status == 503 and reply.code in codes, reply
    assert reply.header("Retry-After").isdigit() and int(reply.header("Retry-After")) >= 1


# The queue.


def test_a_flood_is_answered(start_idle):
    daemon = start_idle("--queue-limit", "2", *ONE_AT_A_TIME)
    # Ten small runs instead of a large one: the body of a refused request, which comes whole, must
    # stay below what a daemon drops rather than closes the connection.
    job = SlowJob(daemon, 0.005)

    def flood():
        replies = []
        with daemon.client(timeout=120) as client:
            path, body, headers = job.parts(job.size, repeat=10)
            for _ in range(4):
                began = time.monotonic()
                replies.append((client.post(path, body, headers), time.monotonic() - began))
        return replies

    threads = Threads()
    for _ in range(64):
        threads.go(flood)
    replies = [reply for batch in threads.join() for reply in batch]
    assert len(replies) == 64 * 4
    served = [took for reply, took in replies if reply.status == 200]
    refused = [took for reply, took in replies if reply.status != 200]
    assert len(served) >= 3, "what the queue held must be served"
    assert len(refused) >= 64, "64 at once do not fit into a queue of 2"
    for reply, _ in replies:
        if reply.status == 200:
            assert reply.body == bytes(4 * job.size * job.size)
        else:
            check_refusal(reply, "queue_full")
    # A refusal does not wait for any job: the median comes in less than one takes, although
    # 64 threads of this client share one interpreter.
    assert sorted(refused)[len(refused) // 2] < 0.5 * SLOW
    assert rejected(daemon, "queue_full") == len(refused)
    assert job.request(daemon).status == 200, "and afterwards all is well"


def test_a_full_queue_is_refused_on_the_headers(start_idle):
    """Whoever asks with Expect learns it before the body is sent; small bodies are dropped."""
    daemon = start_idle("--queue-limit", "1", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 2.0)
    with occupied(daemon, job, 2):
        began = time.monotonic()
        small = daemon.post(M + "?kernel=naive", b'{"a": [[1]], "b": [[1]]}')
        check_refusal(small, "queue_full")
        for fmt, path in ((wire.RAW, T + "?shape=1000x1000"), (wire.NPY, T)):
            with daemon.raw() as raw:
                raw.send(wire.head("POST", path, "Content-Type: " + fmt, "Expect: 100-continue",
                                   "Content-Length: 4000000"))
                check_refusal(raw.reply(), "queue_full")
        assert gauge(daemon, "gemmd_queue_depth") == 1, "all that was while it was full"
        assert time.monotonic() - began < 1.0 * SLOW
        # Other questions are still answered.
        for path in ("/healthz", "/readyz", "/metrics", "/v1/stats", "/v1/kernels"):
            assert daemon.get(path).status == 200
        assert daemon.post(M, b"[[").status in (400, 503)


def test_jobs_of_one_queue_are_served_in_order(start_idle):
    daemon = start_idle("--queue-limit", "8", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 1.0 * min(SLOW, 3))  # long enough for all four to be sent meanwhile
    with occupied(daemon, job, 4) as connections:
        stats = [raw.reply().ok().stats for raw in connections]
    queues = [each["us"]["queue"] for each in stats]
    kernel = min(each["us"]["kernel"] for each in stats)
    # Each has waited for the one before it as well: a kernel's time more (but for the time
    # that passed between their sending, which is well below one kernel).
    assert queues == sorted(queues)
    assert queues[3] - queues[1] > kernel
    assert min(map(unaccounted_us, stats)) <= 150 * SLOW


def test_jobs_beside_each_other_and_alone(daemon, start):
    """Streams let jobs overlap, and the account says so; repeated runs have the device alone."""
    if all(each["kind"] != "cuda" for each in daemon.get("/v1/devices").json()["devices"]):
        pytest.skip("only a GPU has several streams")
    daemon = start("--threads", "2", "--streams", "2")
    job = SlowJob(daemon, 1.0)
    product = b'{"a": [[1, 2]], "b": [[1], [2]], "kernel": "naive"%s}'
    with occupied(daemon, job) as (busy,):
        beside = daemon.post(M, product % b"").ok().stats
        alone = daemon.post(M, product % b', "repeat": 3').ok().stats
        assert beside["concurrent"] is True and beside["us"]["queue"] < 0.5e6 * SLOW
        assert "concurrent" not in alone
        assert busy.reply().ok().stats["concurrent"] is True
    assert alone["us"]["queue"] > 0.1e6, "it waited for the other job"


def test_a_small_job_beside_a_large_one(start):
    """On a CPU it waits neither for what runs nor for what waits to run alone, and needs
    no queue slot."""
    daemon = start("--queue-limit", "1", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 1.0)
    small = np.ones((64, 64), "<f4")
    with occupied(daemon, job) as (busy,), daemon.raw(timeout=120) as waiting:
        job.send(waiting, repeat=2)
        wait_until(lambda: gauge(daemon, "gemmd_queue_depth") == 1, "a queued job")
        for fmt in ("raw", "npy"):
            body = formats.encode(fmt, "f32", small, small)
            reply = daemon.post(target(M, **body.parameters), body.data, body.headers)
            assert reply.ok().stats["concurrent"] is True
            assert reply.stats["us"]["queue"] < 0.1e6 * SLOW
        assert gauge(daemon, "gemmd_queue_depth") == 1 and gauge(daemon, "gemmd_jobs_running") == 1
        assert busy.reply().ok().stats["concurrent"] is True
        assert "concurrent" not in waiting.reply().ok().stats


def first_refusal(connections):
    for raw in connections:
        try:
            reply = raw.reply(timeout=0.5)
        except TimeoutError:
            continue  # this one waits in the queue
        if reply.status != 200:
            return reply
    raise AssertionError("nobody was refused")


def test_retry_after_follows_the_drain_rate(start_idle):
    """It is the time that the jobs before one will take at the rate of late, not a constant."""
    daemon = start_idle("--queue-limit", "30", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 0.12)
    # So many that the rate of late is that of such jobs. By the daemon's clock: what a busy machine
    # lets this client wait is no time of the queue's.
    times_us = [job.request(daemon).ok().stats["us"]["kernel"] for _ in range(20)]
    queue_s = 30 * 1e-6 * sum(times_us) / len(times_us)
    connections = [job.send(daemon.raw(timeout=120)) for _ in range(50)]
    # The last ones found it full, and were told at once.
    refused = first_refusal(reversed(connections))
    # Thirty jobs lie before it, some 3.6 s on an idle machine: to come back after one would be too
    # early, and it should not be sent away for a minute either.
    check_refusal(refused, "queue_full")
    assert queue_s / 2 <= int(refused.header("Retry-After")) <= 3 * queue_s
    for raw in connections:
        raw.socket.close()


# Deadlines.


def test_a_running_job_is_given_up_at_its_deadline(start_idle):
    daemon = start_idle(*ONE_AT_A_TIME)
    job = SlowJob(daemon, 2.5)
    began = time.monotonic()
    reply = job.request(daemon, timeout_ms=300)
    took = time.monotonic() - began
    assert (reply.status, reply.code) == (503, "deadline_passed")
    assert 0.28 <= took <= 0.3 + 0.7 * SLOW
    assert reply.header("Retry-After") is None  # the same would take as long again
    # The device is free again soon, not after the rest of the job.
    began = time.monotonic()
    assert daemon.post(M + "?kernel=naive", b'{"a": [[1]], "b": [[1]]}').status == 200
    assert time.monotonic() - began < 1.0 * SLOW


def test_a_queued_job_is_given_up_at_its_deadline(start_idle):
    daemon = start_idle(*ONE_AT_A_TIME)
    job = SlowJob(daemon, 2.0)
    with occupied(daemon, job):
        began = time.monotonic()
        reply = job.request(daemon, timeout_ms=200)
        took = time.monotonic() - began
        assert (reply.status, reply.code) == (503, "deadline_passed")
        assert 0.18 <= took <= 0.2 + 0.7 * SLOW
        assert int(reply.header("Retry-After")) >= 1  # it waited for others
        assert gauge(daemon, "gemmd_queue_depth") == 0
    assert rejected(daemon, "deadline_passed") >= 1


def test_the_daemons_own_deadline_caps_the_clients(start_idle):
    job = SlowJob(start_idle(*ONE_AT_A_TIME), 2.0)  # measured where there is time for it
    daemon = start_idle("--timeout", "300ms", *ONE_AT_A_TIME)
    for parameters in ({}, {"timeout_ms": 60000}):
        began = time.monotonic()
        reply = job.request(daemon, **parameters)
        assert (reply.status, reply.code) == (503, "deadline_passed")
        assert 0.28 <= time.monotonic() - began <= 0.3 + 0.7 * SLOW


def test_a_deadline_that_is_met(daemon):
    reply = daemon.post(T + "?timeout_ms=60000", b"[[1]]")
    assert reply.status == 200


# Memory.


def test_what_can_never_fit(start):
    daemon = start("--memory-limit", "8M", "--body-limit", "64M")
    # An upload beyond the limit, refused on its headers.
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T + "?shape=2000x2000", "Content-Type: " + wire.RAW,
                           "Content-Length: 16000000"))
        reply = raw.reply()
        assert (reply.status, reply.code) == (413, "too_large"), reply
        assert str(8 << 20) in reply.json()["detail"]
    # Operands that fit with a result that does not: a column by a row.
    column, row = np.zeros((3000, 1), "<f4"), np.zeros((1, 3000), "<f4")
    body = formats.encode("npy", "f32", column, row)
    reply = daemon.post(M, body.data, body.headers)
    assert (reply.status, reply.code) == (413, "too_large"), reply
    assert str(8 << 20) in reply.json()["detail"]
    # And what fits is served.
    assert daemon.post(T + "?shape=900x900", bytes(4 * 900 * 900), RAW).status == 200


def test_what_does_not_fit_now(start):
    daemon = start("--memory-limit", "16M")
    with daemon.raw() as holder:
        # An upload of 7 MiB that does not end holds 14 with its result.
        holder.send(wire.head("POST", T + "?shape=1792x1024", "Content-Type: " + wire.RAW,
                              f"Content-Length: {7 << 20}"), bytes(1000))
        wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") >= 7 << 20, "the holder")
        began = time.monotonic()
        body = bytes(4 * 1200 * 1000)
        with daemon.raw() as raw:
            raw.send(wire.head("POST", T + "?shape=1200x1000", "Content-Type: " + wire.RAW,
                               "Expect: 100-continue", f"Content-Length: {len(body)}"))
            reply = raw.reply()
            if reply.status == 100:  # a result may be reserved after the body
                raw.send(body)
                reply = raw.reply()
            check_refusal(reply, "memory_full")
        assert time.monotonic() - began < 1.0 * SLOW, "never waiting"
        holder.send(bytes((7 << 20) - 1000))
        assert holder.reply().status == 200
    assert daemon.post(T + "?shape=1200x1000", body, RAW).status == 200


# A body that comes too slowly. The limit is a fixed one, of 30 s, so this goes on beside the
# other tests of this file, from its beginning to its end.

GRACE_S = 30


def trickle(daemon):
    """When, and what, a client is told that sends a byte every quarter of a second."""
    began = time.monotonic()
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 5000"), b"[[")
        while time.monotonic() - began < GRACE_S + 10 * SLOW:
            try:
                raw.send(b"1")
                return raw.reply(timeout=0.25), time.monotonic() - began
            except TimeoutError:
                pass
    return None, time.monotonic() - began


@pytest.fixture(scope="module", autouse=True)
def trickling():
    daemon, threads = Daemon(), Threads()
    threads.go(trickle, daemon)
    yield threads
    daemon.stop()


def test_a_client_that_is_too_slow(trickling):
    reply, seconds = trickling.join()[0]
    assert reply and (reply.status, reply.code) == (408, "upload_timeout"), (reply, seconds)
    assert seconds >= GRACE_S - 1
