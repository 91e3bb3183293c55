"""Regions of shared memory: registered, used by both protocols, and taken away at the worst time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import problems
import wire
from daemon import SLOW
from jobs import wait_until
from test_kserve import infer, refused, result, tensor

PREFIX = f"/gemmd-test-{os.getpid()}-"


class Object:
    """An object of POSIX shared memory."""

    def __init__(self, size, key=None):
        Object.count = getattr(Object, "count", 0) + 1
        self.key = key or f"{PREFIX}{Object.count}"
        self.path = "/dev/shm" + self.key
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(self.fd, size)

    def write(self, array, offset=0):
        os.pwrite(self.fd, array.tobytes(), offset)

    def read(self, dtype, shape, offset=0):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(os.pread(self.fd, size, offset), dtype).reshape(shape)

    def truncate(self, size):
        os.ftruncate(self.fd, size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.unlink(self.path)


@pytest.fixture(scope="module")
def shared():
    from daemon import Daemon
    daemon = Daemon("--allow-shared-memory", PREFIX, "--memory-limit", "256M", "--timeout", "20s")
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared):
    yield shared
    assert shared.alive(), shared.last_words()
    shared.post("/v2/systemsharedmemory/unregister").ok()
    # What a request holds is given back once its reply is out, or its client is seen to have gone.
    deadline = time.monotonic() + 10 * SLOW
    while (memory := shared.get("/v1/stats").json()["memory"])["used_bytes"] > 0:
        assert time.monotonic() < deadline, memory
        time.sleep(0.01)


def register(daemon, name, key, size, offset=0, kind="system"):
    body = json.dumps({"key": key, "offset": offset, "byte_size": size}).encode()
    return daemon.post(f"/v2/{kind}sharedmemory/region/{name}/register", body)


def status(daemon, name=None, kind="system"):
    middle = f"/region/{name}" if name else ""
    return daemon.get(f"/v2/{kind}sharedmemory{middle}/status")


def unregister(daemon, name=None, kind="system"):
    middle = f"/region/{name}" if name else ""
    return daemon.post(f"/v2/{kind}sharedmemory{middle}/unregister")


def part(region, size, offset=None):
    parameters = {"shared_memory_region": region, "shared_memory_byte_size": size}
    if offset is not None:
        parameters["shared_memory_offset"] = offset
    return parameters


def test_register_and_status(daemon):
    with Object(8192) as one, Object(100) as other:
        assert daemon.get("/v2").ok().json()["shared_memory_prefix"] == PREFIX
        assert status(daemon).ok().json() == []
        assert register(daemon, "a", one.key, 4096, 1024).ok().body == b""
        register(daemon, "b", other.key.lstrip("/"), 100).ok()
        assert status(daemon, "a").ok().json() == [
            {"name": "a", "key": one.key, "offset": 1024, "byte_size": 4096}]
        assert {region["name"] for region in status(daemon).ok().json()} == {"a", "b"}
        assert status(daemon, kind="cuda").ok().json() == []
        used = daemon.get("/v1/stats").json()["memory"]["used_bytes"]
        assert used == 4196
        refused(register(daemon, "a", other.key, 100), 409, "already")
        refused(status(daemon, "c"), 404, "no region 'c'")
        refused(unregister(daemon, "c"), 404, "no region 'c'")
        refused(unregister(daemon, "a", kind="cuda"), 404)
        unregister(daemon, "a").ok()
        assert [region["name"] for region in status(daemon).json()] == ["b"]
        unregister(daemon).ok()
        assert status(daemon).json() == []


def test_what_cannot_be_registered(daemon, tmp_path):
    with Object(4096) as one, Object(4096, f"/other-{os.getpid()}") as foreign:
        refused(register(daemon, "x", foreign.key, 4096), 403, "--allow-shared-memory")
        refused(register(daemon, "x", PREFIX + "nothing", 4096), 400, "opened")
        refused(register(daemon, "x", PREFIX + "a/../../etc/passwd", 8), 400, "slash")
        refused(register(daemon, "x", "/../" + PREFIX, 8), 400, "slash")
        refused(register(daemon, "x", "/.." + PREFIX, 8), 400)
        refused(register(daemon, "x", "", 8), 400)
        refused(register(daemon, "x", one.key, 4097), 409, "4096 bytes")
        refused(register(daemon, "x", one.key, 4096, 1), 409)
        refused(register(daemon, "x", one.key, 0), 400)
        refused(register(daemon, "x", one.key, 2**63), 400)
        refused(register(daemon, "x", one.key, 2**64 - 1, 2), 400)
        refused(register(daemon, "n" * 300, one.key, 8), 400, "bytes at most")
        for body in (b"", b"[]", b"{}", b"{" * 100, b'{"key":1,"byte_size":2}',
                     b'{"key":"a\\u0000b","byte_size":2}', b'{"key":"x","more":1}'):
            refused(daemon.post("/v2/systemsharedmemory/region/x/register", body), 400)
        refused(daemon.post("/v2/systemsharedmemory/region/x/register", b" " * 70000), 413)
        refused(daemon.get("/v2/systemsharedmemory/region/x/register"), 405)
        refused(daemon.post("/v2/systemsharedmemory/register", b"{}"), 404)
        refused(register(daemon, "x", one.key, 8, kind="cuda"), 400, "raw_handle")
        link = "/dev/shm" + PREFIX + "link"
        os.symlink("/etc/passwd", link)
        try:
            refused(register(daemon, "x", PREFIX + "link", 8), 400, "opened")
        finally:
            os.unlink(link)
        assert status(daemon).json() == []


def test_not_allowed(start):
    daemon = start()
    with Object(64) as one:
        refused(register(daemon, "x", one.key, 64), 403, "--allow-shared-memory")
        handle = {"raw_handle": {"b64": "A" * 86 + "=="}, "device_id": 0, "byte_size": 64}
        refused(daemon.post("/v2/cudasharedmemory/region/x/register", json.dumps(handle).encode()),
                403, "--allow-cuda-ipc")
        unregister(daemon).ok()  # clients that clean up find nothing to do
        unregister(daemon, kind="cuda").ok()
    refused(infer(daemon, "flip", {"inputs": [
        {"name": "A", "shape": [1, 1], "datatype": "FP32", "parameters": part("x", 4)}]}), 404)


@pytest.mark.parametrize("n", [3, 600])  # copied on the event thread, and by a worker
def test_infer(daemon, rng, n):
    a = rng.integers(-9, 9, (n, n)).astype(np.float32)
    b = rng.integers(-9, 9, (n, n)).astype(np.float32)
    with Object(3 * a.nbytes + 64) as one:
        one.write(a, 64)
        one.write(b, 64 + a.nbytes)
        register(daemon, "r", one.key, 3 * a.nbytes, 64).ok()
        at = 2 * a.nbytes
        request = {"id": "i", "inputs": [
            tensor("A", a, parameters=part("r", a.nbytes)),
            tensor("B", b, parameters=part("r", b.nbytes, a.nbytes))],
            "outputs": [{"name": "C", "parameters": part("r", a.nbytes, at)}]}
        reply = infer(daemon, "matmul", request).ok()
        (output,) = reply.json()["outputs"]
        assert output == {"name": "C", "datatype": "FP32", "shape": [n, n]}
        assert reply.media_type == wire.JSON and reply.json()["id"] == "i"
        assert np.array_equal(one.read("<f4", (n, n), 64 + at), a @ b)
        # One in a region, one in the body.
        del request["outputs"]
        request["inputs"][1] = tensor("B", b, parameters={"binary_data_size": b.nbytes})
        assert np.array_equal(result(infer(daemon, "matmul", request, b))[1], a @ b)
        assert np.array_equal(one.read("<f4", (n, n), 64), a)


def test_a_name_that_no_list_could_show(daemon):
    """It is refused: else the list left it out, and said whose the one before was."""
    with Object(4096) as one:
        refused(register(daemon, "%ff%c3", one.key, 4096), 400, "UTF-8")


def test_v1(daemon):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    with Object(4096) as one:
        one.write(a)
        one.write(b, 512)
        register(daemon, "r", one.key, 4096).ok()
        query = dict(region_a="r", shape_a="2x3", region_b="r", offset_b=512, shape_b="3x4")
        reply = daemon.post(wire.target("/v1/matmul", **query)).ok()
        assert reply.json()["data"] == (a @ b).tolist()
        reply = daemon.post(wire.target("/v1/matmul", **query, region_result="r", offset_result=1024),
                            headers={"Accept": wire.NPY}).ok()
        assert reply.media_type == wire.JSON  # of a result that is elsewhere
        assert reply.json()["shape"] == [2, 4] and "data" not in reply.json()
        assert reply.json()["stats"]["op"] == "matmul" and reply.stats["op"] == "matmul"
        assert np.array_equal(one.read("<f4", (2, 4), 1024), a @ b)
        # One operand in the body, whichever, and of whatever format.
        body = b'--x\r\nContent-Disposition: form-data; name="b"\r\n\r\n1,2,3\r\n--x--\r\n'
        reply = daemon.post(wire.target("/v1/add", region_a="r", shape_a="2x3"), body, {"Content-Type": "multipart/form-data; boundary=x", "Accept": wire.JSON})
        assert reply.ok().json()["data"] == (a + [1, 2, 3]).tolist()
        query = dict(region_a="r", shape_a="2x3")
        reply = daemon.post(wire.target("/v1/matmul", **query), json.dumps({"b": b.tolist()}).encode(),
                            {"Content-Type": wire.JSON}).ok()
        assert reply.json()["data"] == (a @ b).tolist()
        reply = daemon.post(wire.target("/v1/matmul", **query, shape_b="3x4"), b.tobytes(),
                            {"Content-Type": wire.RAW, "Accept": wire.JSON}).ok()
        assert reply.json()["data"] == (a @ b).tolist()
        reply = daemon.post(wire.target("/v1/matmul", region_b="r", offset_b=512, shape_b="3x4"),
                            json.dumps(a.tolist()).encode(), {"Content-Type": wire.JSON}).ok()
        assert reply.json()["data"] == (a @ b).tolist()
        reply = daemon.post(wire.target("/v1/transpose", region="r", shape="2x3",
                                        region_result="r", offset_result=2048)).ok()
        assert np.array_equal(one.read("<f4", (3, 2), 2048), a.T)
        # An upload whose result alone goes into the region.
        reply = daemon.post("/v1/transpose?region_result=r&offset_result=64",
                            json.dumps(a.tolist()).encode(), {"Content-Type": wire.JSON}).ok()
        assert np.array_equal(one.read("<f4", (3, 2), 64), a.T)


def test_bad_uses(daemon):
    a = np.ones((4, 4), np.float32)
    with Object(4096) as one:
        register(daemon, "r", one.key, 1024).ok()
        register(daemon, "s", one.key, 1024, 512).ok()

        def v2(parameters, output=None):
            request = {"inputs": [tensor("A", a, parameters=parameters)]}
            if output:
                request["outputs"] = [{"name": "C", "parameters": output}]
            return infer(daemon, "transpose", request)

        v2(part("r", 64)).ok()
        refused(v2(part("q", 64)), 404, "no region 'q'")
        refused(v2(part("r", 64, 961)), 400, "within")
        refused(v2(part("r", 64, 2**64 - 1)), 400, "within")
        refused(v2(part("r", 60)), 422, "64 bytes")
        refused(v2(part("r", 64), part("r", 63, 512)), 422, "room for 63")
        refused(v2(part("r", 64), part("q", 64)), 404)
        refused(v2(part("r", 64), part("r", 64, 1000)), 400, "within")
        refused(v2(part("r", 64), part("r", 64, 60)), 400, "in common")
        refused(v2(part("r", 64, 512), part("s", 64)), 400, "in common")  # one object, twice
        v2(part("r", 64, 448), part("s", 64)).ok()

        def v1(code, http, detail="", body=b"", method="transpose", **query):
            problems.check(daemon.post(wire.target(f"/v1/{method}", **query), body), http, code, detail)

        v1("not_found", 404, region="q", shape="4x4")
        v1("bad_parameter", 400, "shape_a", region="r")
        v1("bad_parameter", 400, "within", region="r", shape="4x4", offset=1000)
        v1("bad_parameter", 400, "whole number", region="r", shape="4x4", offset=-1)
        v1("bad_parameter", 400, "none is named", b"[[1]]", offset=4)
        v1("bad_parameter", 400, "in common", region="r", shape="4x4", region_result="r")
        before = dict(region="r", shape="4x4", region_result="r", offset_result=0)
        v1("bad_parameter", 400, "in common", **before, offset=60)
        assert daemon.post(wire.target("/v1/transpose", **before, offset=64)).status == 200
        v1("bad_shape", 422, "room for", region="r", shape="4x4", region_result="r", offset_result=1000)
        v1("bad_parameter", 400, "does not take regions", method="compare/transpose", region="r",
           shape="4x4")
        v1("bad_parameter", 400, "does not take regions", method="explain/transpose", region="r")
        v1("bad_parameter", 400, "too late", json.dumps({"region_a": "r", "b": [[1]]}).encode(),
           method="matmul")
        v1("extra_operand", 422, "body too", json.dumps({"a": [[1]], "b": [[1]]}).encode(),
           method="matmul", region_a="r", shape_a="1x1")
        unregister(daemon, "r").ok()
        refused(v2(part("r", 64)), 404)


def test_another_clients_region(daemon):
    """A client is an address: another one neither sees nor uses what is not its own."""
    import http.client
    with Object(4096) as one:
        register(daemon, "r", one.key, 64).ok()
        other = http.client.HTTPConnection("127.0.0.1", daemon.port, 10,
                                           source_address=("127.0.0.9", 0))
        for method, path, code in (("GET", "/v2/systemsharedmemory/region/r/status", 404),
                                   ("POST", "/v2/systemsharedmemory/region/r/unregister", 404),
                                   ("POST", "/v1/flip?region=r&shape=1x1", 404),
                                   ("POST", "/v2/systemsharedmemory/unregister", 200)):
            other.request(method, path)
            reply = other.getresponse()
            reply.read()
            assert reply.status == code, path
        other.close()
        assert len(status(daemon).json()) == 1


def test_limits(daemon):
    limits = daemon.get("/v1/stats").json()["limits"]
    with Object(129 << 20) as one:
        refused(register(daemon, "big", one.key, 129 << 20), 413, "one part in 2")
        for i in range(limits["regions_client_max"]["value"]):
            register(daemon, f"r{i}", one.key, 64).ok()
        refused(register(daemon, "more", one.key, 64), 422, "limits are")
        before = daemon.descriptors()
        unregister(daemon).ok()
        connections = 4  # that may be closing
        assert daemon.descriptors() <= before - limits["regions_client_max"]["value"] + connections
        register(daemon, "half", one.key, 100 << 20).ok()
        refused(register(daemon, "rest", one.key, 29 << 20), 413, "one part in 2")


def test_shrinks_in_use(daemon, rng):
    """The object is truncated and grown again without a pause while requests use it: each is
    answered, right or with what is wrong, and the daemon lives."""
    n = 512
    a = np.ones((n, n), np.float32)
    with Object(2 * a.nbytes) as one:
        one.write(a)
        register(daemon, "r", one.key, 2 * a.nbytes).ok()
        query = wire.target("/v1/transpose", region="r", shape=f"{n}x{n}", region_result="r",
                            offset_result=a.nbytes)
        body = {"inputs": [tensor("A", a, parameters=part("r", a.nbytes))],
                "outputs": [{"name": "C", "parameters": part("r", a.nbytes, a.nbytes)}]}
        stop = threading.Event()

        def shrink():
            while not stop.is_set():
                one.truncate(int(rng.integers(0, 2 * a.nbytes)))
                one.truncate(2 * a.nbytes)

        thread = threading.Thread(target=shrink)
        thread.start()
        seen = set()
        try:
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                reply = daemon.post(query)
                seen.add((reply.status, reply.code))
                reply = infer(daemon, "transpose", body)
                seen.add((reply.status, None))
        finally:
            stop.set()
            thread.join()
        assert seen <= {(200, None), (409, "region_conflict"), (409, None)}, seen
        one.truncate(100)
        problems.check(daemon.post(query), 409, "region_conflict", "shrunk|early|has 100 bytes")
        refused(infer(daemon, "transpose", body), 409, "region 'r'")
        one.truncate(2 * a.nbytes)
        one.write(a)
        daemon.post(query).ok()
        assert np.array_equal(one.read("<f4", (n, n), a.nbytes), a.T)


def test_unregistered_in_use(daemon):
    """Regions come and go under requests, and the object's name vanishes: what runs keeps it."""
    a = np.ones((300, 300), np.float32)
    with Object(a.nbytes) as one:
        one.write(a)
        stop = threading.Event()

        def come_and_go():
            while not stop.is_set():
                register(daemon, "r", one.key, a.nbytes)
                unregister(daemon, "r")

        thread = threading.Thread(target=come_and_go)
        thread.start()
        seen = set()
        try:
            until = time.monotonic() + 1
            while time.monotonic() < until:
                seen.add(daemon.post("/v1/flip?region=r&shape=300x300").status)
        finally:
            stop.set()
            thread.join()
        assert seen <= {200, 404}, seen
    with Object(a.nbytes) as gone:
        gone.write(a)
        register(daemon, "g", gone.key, a.nbytes).ok()
    daemon.post("/v1/flip?region=g&shape=300x300").ok()


def test_one_name_at_once(daemon):
    """Of several who register a name at the same time one has it, and the others leave nothing."""
    with Object(40_000) as one:
        for _ in range(20):
            seen = []

            def try_it():
                seen.append(register(daemon, "same", one.key, 40_000).status)

            threads = [threading.Thread(target=try_it) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(seen) == [200] + 5 * [409], seen
            unregister(daemon, "same").ok()
            assert status(daemon, "same").status == 404


def test_client_is_killed(daemon):
    """A client that goes while its region is in use loses nothing but its answer."""
    n = 900
    a = np.ones((n, n), np.float32)
    with Object(2 * a.nbytes) as one:
        one.write(a)
        register(daemon, "r", one.key, 2 * a.nbytes).ok()
        path = wire.target("/v1/matmul", region_a="r", region_b="r", shape_a=f"{n}x{n}",
                           shape_b=f"{n}x{n}", region_result="r", offset_result=a.nbytes,
                           kernel="naive")
        for _ in range(4):
            with daemon.raw() as raw:
                raw.send(wire.head("POST", path, "Content-Length: 0"))
                time.sleep(0.02)
                raw.reset()
    deadline = time.monotonic() + 20 * SLOW
    while daemon.get("/v1/stats").json()["requests_in_flight"] > 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)


# Registers a region, removes the object's name, and asks for a product that takes a while.
KILLED = """
import json, mmap, os, random, socket, struct, sys
port, key, n = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
size = n * n * 4
fd = os.open("/dev/shm" + key, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.ftruncate(fd, 2 * size)
region = mmap.mmap(fd, 2 * size)

def post(path, body=b""):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(f"POST {path} HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
    return s

assert b" 200 " in post("/v2/systemsharedmemory/region/killed/register", json.dumps(
    {"key": key, "offset": 0, "byte_size": 2 * size}).encode()).recv(100)
os.unlink("/dev/shm" + key)
where = f"shape_a={n}x{n}&shape_b={n}x{n}&region_a=killed&region_b=killed"
s = post(f"/v1/matmul?{where}&region_result=killed&offset_result={size}&kernel=naive")
print("asked", flush=True)
while True: # numbers that any reply can carry
    region[:8] = struct.pack("<2f", random.random(), random.random())
"""


def test_process_is_killed(daemon):
    """A process is killed while the daemon works on its region. The region stays, and counts, until
    a client of the same address takes it away; its object, which has no name any more, goes with it."""
    n, key = 1000 if SLOW == 1 else 500, f"{PREFIX}killed"
    size = 2 * n * n * 4
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(daemon.port), key, str(n)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "asked\n"

    def stats():
        return daemon.get("/v1/stats").ok().json()

    deadline = time.monotonic() + 20 * SLOW
    while stats()["requests_in_flight"] < 2:
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not os.path.exists("/dev/shm" + key)
    daemon.post("/v1/flip", b"[[1,2]]").ok()
    while stats()["requests_in_flight"] > 1:
        assert time.monotonic() < deadline
    assert status(daemon, "killed").ok().json() == [
        {"name": "killed", "key": key, "offset": 0, "byte_size": size}]
    assert stats()["memory"]["used_bytes"] >= size
    daemon.post("/v1/flip?region=killed&shape=2x2").ok()
    with Object(128 << 20) as one:
        refused(register(daemon, "mine", one.key, (128 << 20) - size + 1), 413, f"beside {size}")
        assert daemon.has_open("/dev/shm" + key)
        unregister(daemon, "killed").ok()
        wait_until(lambda: not daemon.has_open("/dev/shm" + key), "the region's object is closed")
        register(daemon, "mine", one.key, 128 << 20).ok()
