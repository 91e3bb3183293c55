"""Clients that go, stall or never read: nothing of theirs stays behind, and nobody else waits."""

import resource
import threading
import time

import pytest

import daemon as daemon_module
import wire
from daemon import BINARY, SLOW, sanitizer_of
from hostile import HASTY
from jobs import ONE_AT_A_TIME, SlowJob, gauge, occupied, rejected, wait_until

T, M = "/v1/transpose", "/v1/matmul"
RAW = {"Content-Type": wire.RAW}
MIB = 1 << 20


# Clients that go.


def test_a_queued_job_whose_client_has_gone_is_dropped(start_idle):
    daemon = start_idle(*ONE_AT_A_TIME)
    job = SlowJob(daemon, 1.5)
    with occupied(daemon, job, 4) as connections:
        before = rejected(daemon, "cancelled")
        connections[1].socket.close()
        connections[2].reset()
        connections[3].half_close()
        wait_until(lambda: gauge(daemon, "gemmd_queue_depth") == 0, "an empty queue", 1)
        wait_until(lambda: rejected(daemon, "cancelled") == before + 3, "three cancelled", 1)
        assert connections[0].reply().status == 200, "the one that stayed is served"


def test_a_running_job_whose_client_has_gone_does_no_harm(start_idle):
    daemon = start_idle(*ONE_AT_A_TIME)
    job = SlowJob(daemon, 0.5)
    with occupied(daemon, job):
        pass
    wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 0, "an idle device")
    assert job.request(daemon).status == 200


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /heal",
        wire.head("POST", T, "Content-Length: 1000") + b"[[1, ",
        wire.head("POST", T, "Transfer-Encoding: chunked") + b"5\r\n[[1, ",
        wire.head("POST", T + "?shape=1000x1000", "Content-Type: " + wire.RAW,
                  "Content-Length: 4000000") + bytes(100),
    ],
    ids=["a head", "a text", "a chunk", "an upload"],
)
def test_clients_that_send_something_and_go_at_once(start, beginning):
    """What they sent and their going come together, and both must be seen."""
    daemon = start()
    assert daemon.get("/healthz").status == 200
    descriptors = daemon.descriptors()
    for _ in range(20):
        with daemon.raw() as raw:
            raw.send(beginning)
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == 0, "all memory back", 3)
    wait_until(lambda: daemon.descriptors() <= descriptors, "descriptors closed", 3)


def test_memory_of_those_who_went_is_given_back(start_idle):
    daemon = start_idle("--memory-limit", "256M", *ONE_AT_A_TIME)
    job = SlowJob(daemon, 1.0)
    used = "gemmd_memory_used_bytes"
    wait_until(lambda: gauge(daemon, used) == 0, "no memory in use")
    with occupied(daemon, job, 3):
        assert gauge(daemon, used) >= 3 * 3 * 4 * job.size**2
    with daemon.raw() as raw:  # within an upload
        raw.send(wire.head("POST", T + "?shape=1000x1000", "Content-Type: " + wire.RAW,
                           "Content-Length: 4000000"), bytes(1000))
        wait_until(lambda: gauge(daemon, used) >= 4000000, "memory for an upload")
        raw.reset()
    wait_until(lambda: gauge(daemon, used) == 0, "all memory back")


@pytest.mark.skipif(sanitizer_of() is not None, reason="a sanitizer's own memory is in the way")
def test_memory_that_is_kept_for_nobody_goes_back_to_the_system(monkeypatch):
    """A minute after the last request that had it: two seconds of this daemon's time."""
    monkeypatch.setattr(daemon_module, "BINARY", HASTY)
    daemon = daemon_module.Daemon("--timeout", "3600s")
    try:
        ready = daemon.rss_bytes()
        for size in (5000, 400):  # large buffers, and such as the allocator has
            with daemon.client() as one, daemon.client() as other:
                for client in (one, other):
                    client.post(wire.target(T, shape=f"{size}x{size}"), bytes(4 * size * size), RAW).ok()
        memory = daemon.get("/v1/stats").ok().json()["memory"]
        assert memory["used_bytes"] == 0 and memory["kept_bytes"] >= 2 * 4 * 5000**2
        assert abs(gauge(daemon, "gemmd_memory_kept_bytes") - memory["kept_bytes"]) <= MIB
        assert daemon.rss_bytes() >= ready + 2 * 4 * 5000**2 * 0.9
        wait_until(lambda: gauge(daemon, "gemmd_memory_kept_bytes") == 0, "nothing kept", 10)
        wait_until(lambda: daemon.rss_bytes() <= ready + 16 * MIB, "the memory back", 3)
    finally:
        daemon.stop()


# Nothing stays behind.


def every_kind(daemon):
    """Requests that are served, refused, left, cut and dropped."""
    with daemon.client() as client:
        for _ in range(10):
            client.post(T, b"[[1, 2], [3, 4]]").ok()
            client.post(M, b'{"a": [[1, 2]], "b": [[1], [2]]}').ok()
            client.post(T + "?shape=300x300", bytes(360000), RAW).ok()
            for path, body in (("/none", b""), (T, b"[["), (T + "?x=1", b"[[1]]"), (M, b"[[1]]")):
                assert client.post(path, body).status >= 400
            client.get("/metrics").ok()
    for _ in range(10):
        upload = wire.head("POST", T + "?shape=1000x1000", "Content-Type: " + wire.RAW,
                           "Content-Length: 4000000")
        with daemon.raw() as raw:
            raw.send(upload, bytes(100000))
            raw.reset()
        with daemon.raw() as raw:  # goes without reading its reply
            raw.send(upload, bytes(4000000))
            raw.socket.recv(1)
            raw.reset()
        with daemon.raw() as raw:
            raw.send(wire.head("POST", T, "Transfer-Encoding: chunked"), wire.chunk(b"[[1"))
            raw.half_close()
        with daemon.raw() as raw:
            raw.send(b"GET / HT")
        with daemon.raw() as raw:
            raw.send(wire.head("POST", "/none", "Content-Length: 99000000"))
            assert raw.reply().status == 404


def test_nothing_stays_behind(start):
    daemon = start()
    for _ in range(6):  # until the allocator keeps what it will keep; after three it may lack 6 MiB
        every_kind(daemon)

    def settled():
        return (
            gauge(daemon, "gemmd_memory_used_bytes") == 0
            and gauge(daemon, "gemmd_requests_in_flight") <= 1  # the one that asks
        )

    wait_until(settled, "everything given back")
    time.sleep(0.2)
    memory, descriptors, threads = daemon.rss_bytes(), daemon.descriptors(), daemon.threads()
    for _ in range(6):
        every_kind(daemon)
    wait_until(settled, "everything given back")
    wait_until(lambda: daemon.descriptors() <= descriptors, "descriptors closed")
    assert daemon.threads() == threads
    if not sanitizer_of(BINARY):  # they keep what was freed, to find uses of it
        # 6 x 30 uploads of 4 MB would be 700 MB if they leaked, and 60 kinds of reply at
        # least 1 MiB if each lost 3 KB; what an allocator keeps for later is less than this.
        assert daemon.rss_bytes() - memory < 6 << 20


def test_many_connections_come_and_go(start):
    daemon = start()
    assert daemon.get("/healthz").status == 200
    time.sleep(0.2)
    descriptors = daemon.descriptors()
    for _ in range(3):
        idle = [daemon.raw() for _ in range(200)]
        assert daemon.get("/healthz").status == 200
        for raw in idle:
            raw.socket.close()
    wait_until(lambda: daemon.descriptors() <= descriptors, "descriptors closed")


def test_running_out_of_descriptors(start):
    """Those that are connected are served, the others wait their turn, nobody spins."""
    daemon = start()
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (40, 40))
    connections = [daemon.raw() for _ in range(60)]
    time.sleep(0.2)
    used = daemon.cpu_seconds()
    time.sleep(0.5)
    assert daemon.cpu_seconds() - used < 0.25, "it spins"
    for raw in connections:
        raw.send(wire.head("GET", "/healthz", "Connection: close"))
    for raw in connections:
        assert raw.reply().status == 200
        raw.socket.close()


def test_slow_readers_do_not_stop_others(start):
    """Many replies that nobody reads, larger than a socket's buffers."""
    daemon = start()
    request = wire.head("POST", T + "?shape=1500x1500", "Content-Type: " + wire.RAW,
                        "Content-Length: 9000000") + bytes(9000000)
    lazy = [daemon.raw() for _ in range(8)]
    senders = [threading.Thread(target=raw.send, args=(request,)) for raw in lazy]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60 * SLOW)
        assert not sender.is_alive()
    began = time.monotonic()
    assert daemon.post(T, b"[[1, 2]]").status == 200
    assert time.monotonic() - began < 5 * SLOW
    assert lazy[0].reply().status == 200
    for raw in lazy:
        raw.socket.close()


@pytest.mark.parametrize("kind", ["trickle", "stalled"])
def test_slow_senders_do_not_stop_others(daemon, kind):
    lazy = [daemon.raw() for _ in range(32)]
    for raw in lazy:
        raw.send(wire.head("POST", T, "Content-Length: 1000"), b"[[")
    for _ in range(20):
        if kind == "trickle":
            for raw in lazy:
                raw.send(b"1")
        assert daemon.post(T, b"[[1, 2]]").status == 200
    for raw in lazy:
        raw.socket.close()
