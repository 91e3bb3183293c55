"""Requests to a gemmd on a GPU: are results right, are accounts sane, what do 64 clients get?

    h200_requests.py serve URL    single requests by curl, then 64 connections
    h200_requests.py lose URL     64 connections to a daemon that will lose its device

Plain Python and numpy. Lines that begin with "= " are for a summary.
"""
import collections
import http.client
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import numpy

CLIENTS = 64
wrong = []


def check(held, what):
    if not held:
        wrong.append(what)
        print("WRONG:", what)


def npy(array):
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


def curl(url, path, *arrays):
    """(status, Gemmd-Stats, result, wall-clock microseconds) of one request by curl."""
    with tempfile.NamedTemporaryFile() as body, tempfile.NamedTemporaryFile() as reply, \
            tempfile.NamedTemporaryFile() as head:
        for array in arrays:
            body.write(npy(array))
        body.flush()
        done = subprocess.run(
            ["curl", "-sS", "-H", "Expect:", "-H", "Content-Type: application/x-npy",
             "--data-binary", "@" + body.name, "-o", reply.name, "-D", head.name,
             "-w", "%{http_code} %{time_total}", url + path],
            capture_output=True, text=True, check=True)
        status, seconds = done.stdout.split()
        content = open(reply.name, "rb").read()
        stats = [line.split(":", 1)[1] for line in open(head.name)
                 if line.lower().startswith("gemmd-stats:")]
    if status != "200":
        return int(status), content.decode(), None, float(seconds) * 1e6
    return 200, json.loads(stats[0]), numpy.load(io.BytesIO(content)), float(seconds) * 1e6


STAGES = ("decode", "queue", "h2d", "prepare", "kernel", "d2h", "encode")


def sane(stats, wall, what):
    us = stats["us"]
    # A small job's kernel reads and writes the host's memory itself.
    copies = () if stats["kernel"] == "grouped" else ("h2d", "d2h")
    check(all(us.get(s, -1) > 0 for s in ("kernel", *copies)), f"{what}: stages in {us}")
    check(copies or not {"h2d", "d2h"} & us.keys(), f"{what}: copies in {us}")
    runs = stats.get("repeat", 1)
    parts = sum(us.get(s, 0) * (runs if s == "kernel" else 1) for s in STAGES if s != "queue")
    check(runs > 1 or parts <= us["total"] * 1.02 + 50, f"{what}: {parts} us of stages, total {us['total']}")
    check(us["total"] <= wall * 1.02 + 1000, f"{what}: total {us['total']}, wall clock {wall}")
    check(stats["device"].startswith("cuda:"), f"{what} ran on {stats['device']}")


def show(stats, wall):
    us = stats["us"]
    print(f"= {stats['op']:9} {stats['kernel']:11} {stats['dtype']:4} {json.dumps(stats['shapes'])[:60]:60}"
          f" h2d {us.get('h2d', 0):8.0f} kernel {us['kernel']:9.1f} d2h {us.get('d2h', 0):8.0f} total {us['total']:9.0f}"
          f" wall {wall:9.0f} us {stats.get('effective_gbs', 0):6.0f} GB/s"
          f" {stats.get('percent_of_copy', 0):5.1f} % of copy {stats.get('gflops', 0):8.0f} GFLOP/s")


def one(url, path, expected, tolerance, *arrays):
    curl(url, path, *arrays)  # loads the kernel, pins the buffers
    status, stats, result, wall = curl(url, path, *arrays)
    check(status == 200, f"{path}: {status} {stats}")
    if status != 200:
        return
    if tolerance == 0:
        right = numpy.array_equal(result, expected)
    else:
        error = numpy.linalg.norm(result.astype("f8") - expected) / numpy.linalg.norm(expected)
        right = error <= tolerance
    check(right, f"{path}: the result")
    sane(stats, wall, path)
    show(stats, wall)


def singles(url):
    random = numpy.random.default_rng(1)
    for side in (512, 4096, 8192):
        a = random.standard_normal((side, side), dtype="f4")
        for kernel in ("naive", "tiled", "padded", "auto"):
            one(url, f"/v1/transpose?kernel={kernel}", a.T, 0, a)
    a = random.standard_normal((4096, 4096), dtype="f4")
    one(url, "/v1/transpose?kernel=padded&repeat=50", a.T, 0, a)
    stack = numpy.asfortranarray(random.standard_normal((8, 512, 300)))
    one(url, "/v1/transpose", stack.transpose(0, 2, 1), 0, stack)
    one(url, "/v1/flip", a[:, ::-1], 0, a)
    one(url, "/v1/add", a + a, 0, a, a)
    for side in (512, 2048, 4096):
        a = random.standard_normal((side, side), dtype="f4")
        b = random.standard_normal((side, side), dtype="f4")
        product = a.astype("f8") @ b
        for kernel in ("naive", "tiled", "dynamic_tile", "auto"):
            one(url, f"/v1/matmul?kernel={kernel}", product, 1e-5, a, b)
    a, b = a.astype("f2"), b.astype("f2")
    one(url, "/v1/matmul", a.astype("f8") @ b.astype("f8"), 2e-3, a, b)
    for op in ("transpose", "matmul"):
        a = random.standard_normal((2048, 2048), dtype="f4")
        status, text, _, _ = curl_text(url, f"/v1/compare/{op}", *([a] if op == "transpose" else [a, a]))
        check(status == 200, f"compare {op}: {status} {text}")
        print(text)


def curl_text(url, path, *arrays):
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=120)
    body = b"".join(npy(a) for a in arrays)
    connection.request("POST" if arrays else "GET", path, body if arrays else None,
                       {"Content-Type": "application/x-npy"} if arrays else {})
    reply = connection.getresponse()
    return reply.status, reply.read().decode(), reply.headers, None


def client(url, number, seconds, outcomes, times, stop_at_loss):
    """One connection's requests, its own operands, every result checked."""
    where = urllib.parse.urlsplit(url)
    random = numpy.random.default_rng(number)
    a = random.standard_normal((512, 384), dtype="f4")
    b = random.integers(-9, 9, (256, 256), dtype="i4")
    jobs = [("/v1/transpose", npy(a), a.T), ("/v1/matmul", npy(b) + npy(b), b @ b),
            ("/v1/flip", npy(a), a[:, ::-1])]
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    end, i = time.monotonic() + seconds, number
    while time.monotonic() < end:
        path, body, expected = jobs[i % 3]
        i += 1
        begin = time.monotonic()
        try:
            connection.request("POST", path, body, {"Content-Type": "application/x-npy"})
            reply = connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException) as error:
            outcomes[type(error).__name__] += 1
            connection.close()
            if stop_at_loss:
                return
            continue
        times.append(time.monotonic() - begin)
        code = "" if reply.status == 200 else " " + json.loads(content).get("code", "")
        outcomes[f"{reply.status}{code}"] += 1
        if reply.status == 200:
            check(numpy.array_equal(numpy.load(io.BytesIO(content)), expected), f"{path} under load")
        if reply.getheader("Connection", "").lower() == "close":
            connection.close()


def crowd(url, seconds, stop_at_loss=False):
    outcomes, times = collections.Counter(), []
    threads = [threading.Thread(target=client, args=(url, n, seconds, outcomes, times, stop_at_loss))
               for n in range(CLIENTS)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    times.sort()
    print(f"= {CLIENTS} connections, {took:.1f} s: {dict(outcomes)}; {len(times) / took:.0f} replies/s,"
          f" median {1e3 * times[len(times) // 2]:.1f} ms, 99th percentile {1e3 * times[len(times) * 99 // 100]:.1f} ms")
    return outcomes


def serve(url):
    for path in ("/v1/devices", "/v1/kernels"):
        status, text, _, _ = curl_text(url, path)
        check(status == 200, path)
        print(text)
        if path == "/v1/devices":
            for device in json.loads(text)["devices"]:
                print(f"= {device['name']}: {device['model']}, {device['detail']}, lanes {device['lanes']},"
                      f" copy {device.get('copy_gbs', 0):.0f} GB/s")
    singles(url)
    outcomes = crowd(url, 10)
    check(set(outcomes) <= {"200", "503 queue_full"} and outcomes["200"] > 500, f"64 connections: {dict(outcomes)}")
    status, text, _, _ = curl_text(url, "/v1/stats")
    print(text)


def lose(url):
    """Right results until the device is lost, then 503 or no connection; never a wrong one."""
    outcomes = crowd(url, 20, stop_at_loss=True)
    check(outcomes["200"] > 0, "there were results before")
    check(outcomes["503 device_lost"] > 0, "clients are told: device_lost")
    known = {"200", "503 device_lost", "503 draining", "503 queue_full"}
    odd = {o for o in outcomes if o[0].isdigit()} - known
    check(not odd, f"no other replies: {odd}")


{"serve": serve, "lose": lose}[sys.argv[1]](sys.argv[2])
print(f"= {len(wrong)} wrong" + "".join("; " + w for w in wrong[:5]))
sys.exit(1 if wrong else 0)
