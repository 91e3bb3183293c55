"""More connections than there may be, all of them silent: whoever comes with a request is served, and
whoever holds a connection for nothing makes room."""

import os
import re
import resource
import selectors
import signal
import socket
import subprocess
import threading
import time

import pytest

import wire
from daemon import BINARY, SLOW, START_S, Daemon, environment, sanitizer_of
from hostile import unharmed
from jobs import evicted, gauge, wait_until

T = "/v1/transpose"
MAX, SPARE = 3072, 192  # CONNECTIONS_MAX, and its SPARE_PART


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """Enough for both ends of a crowd's connections, if this machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX + 2000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process here has {hard} descriptors at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def crowd():
    """crowd(daemon, count, data) connects so often, sends that, and is silent."""
    sockets = []

    def come(daemon, count, data=b""):
        for _ in range(count):
            sockets.append(socket.create_connection(("127.0.0.1", daemon.port), 30 * SLOW))
            if data:
                sockets[-1].sendall(data)
        return sockets

    yield come
    for one in sockets:
        one.close()


one_crowd = pytest.mark.skipif(sanitizer_of() == "thread", reason="the same threads meet in a crowd with half a body")


@pytest.mark.parametrize(
    "data",
    [pytest.param(b"", marks=one_crowd, id="silent"),
     pytest.param(b"GET / HTTP/1.1\r\nX: ", marks=one_crowd, id="half a head"),
     pytest.param(wire.head("POST", T, "Content-Length: 9") + b"[[", id="half a body")],
)
def test_a_crowd_keeps_nobody_out(start, crowd, data):
    """The first of them go, those who keep working stay, and each newcomer is answered soon."""
    daemon = start()
    with unharmed(daemon) as seen:
        with daemon.client() as kept:
            kept.get("/healthz").ok()
            sockets = crowd(daemon, MAX + 500, data)
            began = time.monotonic()
            # At first all of them are new, and nobody is known to be late.
            assert daemon.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
            assert time.monotonic() - began < 3 * SLOW
            for _ in range(20):
                began = time.monotonic()
                assert daemon.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
                assert time.monotonic() - began < 0.5 * SLOW
            assert gauge(daemon, "gemmd_connections") <= MAX
        wait_until(lambda: gauge(daemon, "gemmd_connections") <= MAX - SPARE + 2, "room again")
        evicted = seen.moved("gemmd_connections_closed_total", reason="evicted")
        assert 500 <= evicted <= 500 + SPARE + 30, evicted
        # Those who were last are still there.
        assert gauge(daemon, "gemmd_connections") >= MAX - SPARE - 30
        ended = sum(1 for one in sockets if not still_open(one))
        assert abs(ended - evicted) <= 30, (ended, evicted)
        if data.startswith(b"POST"):
            late = seen.moved("gemmd_requests_rejected_total", reason="upload_timeout")
            # All but, perhaps, the one that was kept, and, of a slow build, those that had to go before
            # their head was read.
            assert evicted - (30 if sanitizer_of() else 1) <= late <= evicted
        for one in sockets:
            one.close()


def still_open(one):
    one.setblocking(False)
    try:
        return bool(one.recv(4096, socket.MSG_PEEK)) and False
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_clients_at_work_are_not_disturbed(start, crowd):
    """Kept connections, each with a request every now and then, among three thousand silent ones."""
    daemon = start()
    workers = [daemon.client() for _ in range(20)]
    for _ in range(10):
        crowd(daemon, 450)
        for worker in workers:
            worker.post(T, b"[[1, 2]]").ok()
    for _ in range(20):
        for worker in workers:
            # A connection that was ended would be opened again by the library: then its socket is
            # another.
            before = worker.socket
            worker.post(T, b"[[1, 2]]").ok()
            assert worker.socket is before
        time.sleep(0.02)
    assert evicted(daemon) >= 4500 + 20 - MAX
    for worker in workers:
        worker.connection.close()


def test_full_rounds_of_events(start, crowd):
    """A request on exactly as many connections of each event thread as the library takes events at a
    time (128), in one moment, and nothing else happens: all are answered."""
    daemon = start()
    request = wire.head("GET", "/healthz", "Connection: keep-alive")
    sockets = crowd(daemon, 128 * min(16, max(2, os.cpu_count())))
    for stopped in (False, True):  # the second time it finds all of them at once
        if stopped:
            os.kill(daemon.process.pid, signal.SIGSTOP)
        for one in sockets:
            one.sendall(request)
        os.kill(daemon.process.pid, signal.SIGCONT)
        for one in sockets:
            one.settimeout(10 * SLOW)
            assert one.recv(4096).startswith(b"HTTP/1.1 200")


def limited(limit):
    return ("sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh")


def refusal(limit):
    """What gemmd says where it may have so many descriptors, and how many it needs by that."""
    done = subprocess.run([*limited(limit), BINARY, "--listen", "127.0.0.1:0"], env=environment(),
                          timeout=START_S, text=True, capture_output=True)
    assert done.returncode == 3 and "listening" not in done.stdout, done
    needed = re.search(rf"may have {limit} file descriptors .* needs (\d+)", done.stderr)
    return done.stderr, int(needed[1]) if needed else None


@pytest.fixture(scope="module")
def least():
    """The fewest descriptors with which it starts: drivers open some more where there are more."""
    needed = 40
    for _ in range(20):
        try:
            Daemon(under=limited(needed)).stop()
            return needed
        except AssertionError:
            last, needed = needed, refusal(needed)[1]
            assert needed > last
    raise AssertionError(f"{needed} descriptors are not enough")


@pytest.mark.parametrize("more", [0, 28, 56, 128])
def test_few_descriptors_are_shared_out_by_their_number(start, crowd, least, more):
    """A crowd that takes every connection there can be is a crowd like any other."""
    most = 16 + more
    daemon = start(under=limited(least + more))
    assert re.search(rf"event=descriptors limit={least + more} connections_max={most} ", daemon.log())
    crowd(daemon, min(3 * most, 200))
    for _ in range(3):
        assert daemon.post(T, b"[[1, 2]]").ok().json()["data"] == [[1], [2]]
    assert daemon.descriptors() <= least + more


def ask_for_ever(port, count, request, stop):
    """So many connections ask for the same again and again, at once after each answer; one that was closed comes back."""
    waiting, selector = {}, selectors.DefaultSelector()

    def come():
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        selector.register(one, selectors.EVENT_WRITE)
        waiting[one] = b""

    for _ in range(count):
        come()
    while not stop.is_set():
        for key, _ in selector.select(0.1):
            one = key.fileobj
            try:
                if key.events == selectors.EVENT_WRITE:
                    one.sendall(request)
                    selector.modify(one, selectors.EVENT_READ)
                    continue
                data = one.recv(65536)
                waiting[one] += data
                head, end, body = waiting[one].partition(b"\r\n\r\n")
                if data and (not end or len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1])):
                    continue
                if data and b"Connection: close" not in head:
                    waiting[one] = b""
                    one.sendall(request)
                    continue
            except OSError:
                pass
            selector.unregister(one)
            del waiting[one]
            one.close()
            come()
    for one in waiting:
        one.close()


def test_a_crowd_at_work_keeps_nobody_out(start, least):
    """One client has a job on each connection that there can be, and more wait to come in. Another one is served."""
    most = 16 + 128
    daemon = start("--threads", "1", "--streams", "1", under=limited(least + 128))
    for name, shape in (("a", "8x200000"), ("b", "200000x8")):
        path = wire.target(f"/v1/matrices/{name}", shape=shape, dtype="f32")
        assert daemon.request("PUT", path, bytes(6400000), {"Content-Type": wire.RAW}).status == 201
    request = wire.head("POST", wire.target("/v1/matmul", a="ref:a", b="ref:b", kernel="naive"), "Content-Length: 0")
    stop = threading.Event()
    crowd = threading.Thread(target=ask_for_ever, args=(daemon.port, most + 60, request, stop))
    with unharmed(daemon) as seen:
        crowd.start()
        try:
            job = b'{"a": [[1, 2]], "b": [[3], [4]], "kernel": "naive"}'  # with a kernel's name it queues
            for ask in (wire.head("GET", "/healthz", "Connection: close"),
                        wire.head("POST", "/v1/matmul", f"Content-Length: {len(job)}", "Connection: close") + job) * 3:
                time.sleep(0.5)
                with socket.create_connection(("127.0.0.1", daemon.port), 20 * SLOW, ("127.0.0.2", 0)) as other:
                    other.sendall(ask)
                    assert other.recv(4096).startswith(b"HTTP/1.1 200")
        finally:
            stop.set()
            crowd.join()
            for name in "ab":
                assert daemon.request("DELETE", f"/v1/matrices/{name}", timeout=60 * SLOW).status == 204
        assert seen.moved("gemmd_requests_rejected_total", reason="queue_full") > 0


@pytest.mark.parametrize("limit", [8, 12, 20, 40, 56])
def test_too_few_descriptors_are_fatal_and_said(limit):
    text, needed = refusal(limit)
    assert needed and needed > limit if limit >= 20 else needed or "Too many open files" in text, text
