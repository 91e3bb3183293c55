"""Regions of shared memory on a GPU: results, objects that shrink in use, memory of the device itself.

    regions.py GEMMD [SECONDS]    starts that daemon, with --backend cuda, on a free port

Plain Python and numpy; CUDA by its driver's library. Lines that begin with "= " are for a summary.
"""
import base64
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy

PREFIX = f"/gemmd-gpu-{os.getpid()}-"
N = 4096
wrong = []


def check(held, what):
    if not held:
        wrong.append(what)
        print("WRONG:", what)


class Daemon:
    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary, "--listen", "127.0.0.1:0", "--backend", "cuda", "--allow-shared-memory", PREFIX,
             "--allow-cuda-ipc", "--log-level", "warn"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rpartition(":")[2]) if "listening" in line else None

    def ask(self, method, path, body=None, headers=None, connection=None):
        """(status, document, headers)"""
        one = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        one.request(method, path, body, headers or {})
        reply = one.getresponse()
        content = reply.read()
        if not connection:
            one.close()
        is_json = (reply.getheader("Content-Type") or "").endswith("json")
        return reply.status, json.loads(content) if is_json and content else content, reply.headers

    def register(self, name, key, size, offset=0):
        return self.ask("POST", f"/v2/systemsharedmemory/region/{name}/register",
                        json.dumps({"key": key, "offset": offset, "byte_size": size}))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Object:
    def __init__(self, name, size):
        self.key, self.path = PREFIX + name, "/dev/shm" + PREFIX + name
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(self.fd, size)

    def write(self, array, offset=0):
        os.pwrite(self.fd, array.tobytes(), offset)

    def read(self, shape, offset=0):
        size = int(numpy.prod(shape)) * 4
        return numpy.frombuffer(os.pread(self.fd, size, offset), "<f4").reshape(shape)

    def close(self):
        os.close(self.fd)
        os.unlink(self.path)


def query(path, **parameters):
    return path + "?" + urllib.parse.urlencode(parameters)


def product(daemon, n, name="r"):
    size = n * n * 4
    return query("/v1/matmul", region_a=name, region_b=name, offset_b=size, region_result=name,
                 offset_result=2 * size, shape_a=f"{n}x{n}", shape_b=f"{n}x{n}", device="cuda")


def results(daemon):
    """Of small parts, which are copied, and large ones, which the device copies by itself."""
    random = numpy.random.default_rng(1)
    for n in (3, 100, 512, 1024):
        size = n * n * 4
        one = Object(f"results{n}", 3 * size)
        a, b = (random.integers(-4, 5, (n, n)).astype("<f4") for _ in range(2))
        one.write(a)
        one.write(b, size)
        status, document, _ = daemon.register("r", one.key, 3 * size)
        check(status == 200, f"register {n}: {status} {document}")
        status, document, headers = daemon.ask("POST", product(daemon, n), b"")
        check(status == 200, f"product {n}: {status} {document}")
        check(numpy.array_equal(one.read((n, n), 2 * size), a @ b), f"product {n}: another result")
        status, document, _ = daemon.ask("POST", query(
            "/v1/transpose", region="r", shape=f"{n}x{n}", device="cpu"), b"")
        check(status == 200 and numpy.array_equal(numpy.array(document["data"]), a.T), f"cpu {n}")
        daemon.ask("POST", "/v2/systemsharedmemory/unregister", b"")
        one.close()
    print("= results in regions are right")


def shrinks(daemon, seconds):
    """The object is truncated and grown without a pause while the device copies from it."""
    n = 2048
    size = n * n * 4
    one = Object("shrinks", 3 * size)
    one.write(numpy.ones((2 * n, n), "<f4"))
    status, document, _ = daemon.register("r", one.key, 3 * size)
    check(status == 200, f"register: {status} {document}")
    stop = threading.Event()

    def shrink():
        random = numpy.random.default_rng(2)
        while not stop.is_set():
            os.ftruncate(one.fd, int(random.integers(0, 3 * size)))
            os.ftruncate(one.fd, 3 * size)

    seen = {}

    def use():
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        while not stop.is_set():
            status = daemon.ask("POST", product(daemon, n), b"", connection=connection)[0]
            seen[status] = seen.get(status, 0) + 1

    threads = [threading.Thread(target=target) for target in (shrink, use, use, use)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    check(daemon.process.poll() is None, "the daemon died of a region that shrank")
    check(set(seen) <= {200, 409}, f"answers {seen}")
    daemon.ask("POST", "/v2/systemsharedmemory/unregister", b"")
    one.close()
    print(f"= regions that shrink: {seen}")


def rate(daemon, clients, path, seconds, body=b""):
    """Requests a second, and the medians in microseconds of the client's clock and the account's total. On
    plain sockets: Python's HTTP client takes 100 to 200 us of its own."""
    until, walls, totals = time.monotonic() + seconds, [], []

    def run():
        one = socket.create_connection(("127.0.0.1", daemon.port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        while time.monotonic() < until:
            begin = time.perf_counter()
            one.sendall(request)
            reply = one.recv(65536)
            walls.append((time.perf_counter() - begin) * 1e6)
            head, _, rest = reply.partition(b"\r\n\r\n")
            left = int(re.search(rb"(?i)content-length: *([0-9]+)", head)[1]) - len(rest)
            while left > 0:
                left -= len(one.recv(65536))
            check(head.startswith(b"HTTP/1.1 200"), f"{reply[:300]}")
            totals.append(json.loads(re.search(rb"(?i)gemmd-stats: *(.*)\r\n", head + b"\r\n")[1])["us"])
        one.close()

    threads = [threading.Thread(target=run) for _ in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    median = {name: sorted(us.get(name, 0) for us in totals)[len(totals) // 2] for name in totals[0]}
    return len(walls) / (time.monotonic() - begin), sorted(walls)[len(walls) // 2], median


def rates(daemon, seconds):
    size = N * N * 4
    objects = []
    for client in range(4):
        objects.append(Object(f"rates{client}", 3 * size))
        objects[-1].write(numpy.random.default_rng(3).standard_normal((2 * N, N)).astype("<f4"))
        check(daemon.register(f"r{client}", objects[-1].key, 3 * size)[0] == 200, "register")
    for clients in (1, 4):
        per_s, wall, us = rate(daemon, clients, product(daemon, N, "r0"), seconds)
        work = sum(us.get(stage, 0) for stage in ("h2d", "prepare", "kernel", "d2h"))
        print(f"= system regions, {N}^3 f32, {clients} clients: {per_s:.1f}/s, client {wall:.0f} us, "
              f"total {us['total']:.0f} us, copies + kernel {work:.0f} us: + {us['total'] - work:.0f}, + {wall - work:.0f} us")
        print("stages:", {name: round(value, 1) for name, value in us.items()})
    daemon.ask("POST", "/v2/systemsharedmemory/unregister", b"")
    for one in objects:
        one.close()


class Cuda:
    """As much of the driver as memory that is shared needs."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        if error:
            raise OSError(f"{name} answers {error}")

    def allocate(self, size):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at

    def write(self, at, array, offset=0):
        array = numpy.ascontiguousarray(array)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(at.value + offset),
                  array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        self.call("cuCtxSynchronize")

    def read(self, at, shape, offset=0):
        array = numpy.empty(shape, "<f4")
        self.call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_uint64(at.value + offset), ctypes.c_size_t(array.nbytes))
        return array

    def handle(self, at):
        handle = ctypes.create_string_buffer(64)
        self.call("cuIpcGetMemHandle", handle, at)
        return base64.b64encode(handle.raw).decode()


def device_memory(daemon, seconds):
    size = N * N * 4
    try:
        cuda = Cuda()
        at = cuda.allocate(3 * size)
        handle = cuda.handle(at)
    except OSError as error:
        print(f"= memory of the device: skipped, {error}")
        return

    def register(name, bytes_, handle_=handle, device=0):
        return daemon.ask("POST", f"/v2/cudasharedmemory/region/{name}/register", json.dumps(
            {"raw_handle": {"b64": handle_}, "device_id": device, "byte_size": bytes_}))

    status, document, _ = register("big", 64 * size)
    check(status == 400 and "allocation" in str(document), f"byte_size that lies: {status} {document}")
    status, document, _ = register("none", size, base64.b64encode(bytes(64)).decode())
    check(status == 400, f"a handle of nothing: {status} {document}")
    status, document, _ = register("far", size, device=9)
    check(status == 400, f"another device: {status} {document}")
    status, document, _ = register("r", 3 * size)
    if status != 200:
        print(f"= memory of the device: untried, since it cannot be opened here: {status} {document}")
        return
    for n in (128, 1024):
        a, b = (numpy.random.default_rng(n).integers(-4, 5, (n, n)).astype("<f4") for _ in range(2))
        cuda.write(at, a)
        cuda.write(at, b, n * n * 4)
        status, document, headers = daemon.ask("POST", product(daemon, n), b"")
        check(status == 200, f"product {n} in device memory: {status} {document}")
        check(numpy.array_equal(cuda.read(at, (n, n), 2 * n * n * 4), a @ b), f"product {n} there: wrong")
    status, document, _ = daemon.ask("POST", query("/v1/flip", region="r", shape="4x4", device="cpu"), b"")
    check(status == 400, f"on the cpu: {status} {document}")
    status, document, _ = daemon.ask("POST", query("/v1/flip", region="r", shape="4x4", offset=4), b"")
    check(status == 400, f"at an odd offset: {status} {document}")
    cuda.write(at, numpy.random.default_rng(4).standard_normal((2 * N, N)).astype("<f4"))
    for clients in (1, 4):
        per_s, wall, us = rate(daemon, clients, product(daemon, N), seconds)
        work = us["kernel"] + us.get("prepare", 0)  # split operands are part of the product
        print(f"= device regions, {N}^3 f32, {clients} clients: {per_s:.1f}/s, client {wall:.0f} us, "
              f"total {us['total']:.0f} us, kernel {work:.0f} us: + {us['total'] - work:.0f}, + {wall - work:.0f} us")
        print("stages:", {name: round(value, 1) for name, value in us.items()})
    status, document, _ = daemon.ask("GET", "/v2/cudasharedmemory/status")
    check(document == [{"name": "r", "device_id": 0, "byte_size": 3 * size}], f"status {document}")
    check(daemon.ask("POST", "/v2/cudasharedmemory/unregister", b"")[0] == 200, "unregister")


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    daemon = Daemon(sys.argv[1])
    if daemon.port is None:
        print("there is no GPU that gemmd can use: skipped")
        sys.exit(77)
    try:
        results(daemon)
        shrinks(daemon, seconds)
        rates(daemon, seconds)
        device_memory(daemon, seconds)
        used = daemon.ask("GET", "/v1/stats")[1]["memory"]["used_bytes"]
        check(used == 0, f"{used} bytes are still reserved")
    finally:
        code = daemon.end()
    check(code == 0, f"exit code {code}")
    print("all well" if not wrong else f"{len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
