"""Named matrices on a GPU: results are right and stay there, what does not fit gives way, and what that saves.

    matrices.py GEMMD [SECONDS [BENCH_BARE [PART]]]

starts that daemon, with --backend cuda, on a free port; and the HTTP library by itself (tests/bench/load/bare.c),
beside which wrk loads it. PART is one of the functions below: `weights` alone, for example.

Plain Python and numpy. Lines that begin with "= " are for a summary.
"""
import http.client
import io
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy

NPY = {"Content-Type": "application/x-npy", "Accept": "application/x-npy"}
N = 4096
wrong = []


def check(held, what):
    if not held:
        wrong.append(what)
        print("WRONG:", what)


def npy(array):
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


class Daemon:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rpartition(":")[2]) if "listening" in line else None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def ask(connection, method, path, body=None, headers=None):
    """(status, body, headers)"""
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    return reply.status, reply.read(), reply.headers


def account(headers):
    return json.loads(headers["Gemmd-Stats"])


def put(connection, name, array):
    status, body, _ = ask(connection, "PUT", f"/v1/matrices/{name}", npy(array), NPY)
    check(status in (200, 201), f"put {name}: {status} {body[:200]}")
    return json.loads(body)


def get(connection, name):
    status, body, _ = ask(connection, "GET", f"/v1/matrices/{name}", headers=NPY)
    check(status == 200, f"get {name}: {status}")
    return numpy.load(io.BytesIO(body))


def same_bits(daemon):
    """By names and by their bytes, alone and kept: one result. Nothing that stays there is copied."""
    random, one = numpy.random.default_rng(1), daemon.connect()
    for dtype in ("f4", "f8", "f2", "i4"):
        for shape in ((3, 5, 4), (64, 64, 64), (200, 300, 100), (1024, 1024, 1024), (1, 4096, 4096)):
            m, k, n = shape
            a = random.integers(-4, 5, (m, k)).astype(dtype)
            b = random.standard_normal((k, n)).astype(dtype) if dtype[0] == "f" else random.integers(-4, 5, (k, n)).astype(dtype)
            check(put(one, "a", a)["device"] == "cuda:0", f"a of {shape} is not on the device")
            put(one, "b", b)
            status, body, headers = ask(one, "POST", "/v1/matmul?device=cuda", npy(a) + npy(b), NPY)
            sent = numpy.load(io.BytesIO(body))
            status, body, headers = ask(one, "POST", "/v1/matmul?a=ref:a&b=ref:b&device=cuda", headers=NPY)
            named = numpy.load(io.BytesIO(body))
            us = account(headers)["us"]
            check(status == 200 and sent.tobytes() == named.tobytes(), f"{dtype} {shape}: other bits by name")
            check("h2d" not in us, f"{dtype} {shape}: operands were copied: {us}")
            status, body, headers = ask(one, "POST", "/v1/matmul?a=ref:a&b=ref:b&keep=c&device=cuda")
            us = account(headers)["us"]
            check(status == 200 and "h2d" not in us and "d2h" not in us, f"{dtype} {shape}: copied, kept: {status} {us}")
            check(get(one, "c").tobytes() == sent.tobytes(), f"{dtype} {shape}: other bits kept")
            check(numpy.array_equal(get(one, "a"), a), f"{dtype} {shape}: a came back otherwise")
            for op, kept in (("transpose", lambda x: x.T), ("flip", lambda x: x[:, ::-1])):
                ask(one, "POST", f"/v1/{op}?a=ref:b&keep=d&device=cuda")
                check(numpy.array_equal(get(one, "d"), kept(b)), f"{op} {dtype} {shape}")
            status, body, _ = ask(one, "POST", "/v1/add?a=ref:c&b=ref:c&device=cpu", headers=NPY)
            check(numpy.load(io.BytesIO(body)).tobytes() == (sent + sent).tobytes(), f"on the cpu {dtype} {shape}")
    print("= results by names have the bits of those that were sent")


def races(daemon, seconds):
    """Writers, readers and users of one name: each sees a whole version of it."""
    stop, seen = threading.Event(), set()
    side = 1024
    put(daemon.connect(), "r", numpy.full((side, side), 1, "f4"))

    def write(seed):
        one, random = daemon.connect(), numpy.random.default_rng(seed)
        while not stop.is_set():
            put(one, "r", numpy.full((side, side), random.integers(1, 9), "f4"))
            if random.random() < 0.2:
                ask(one, "DELETE", "/v1/matrices/r")

    def use(path, method):
        one = daemon.connect()
        while not stop.is_set():
            status, body, _ = ask(one, method, path, headers=NPY)
            if status == 404:
                continue
            check(status == 200, f"{path}: {status} {body[:100]}")
            array = numpy.load(io.BytesIO(body))
            check(array.min() == array.max(), f"{path}: a torn matrix")
            seen.add(float(array[0, 0]))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(2)] + [
        threading.Thread(target=use, args=args) for args in (
            ("/v1/matrices/r", "GET"), ("/v1/flip?a=ref:r&device=cuda", "POST"),
            ("/v1/transpose?a=ref:r&keep=s&return=result&device=cuda", "POST"))]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    check(len(seen) > 3, f"few versions were seen: {seen}")
    print(f"= races of writers, readers and users: {len(seen)} values seen, each whole")


def timed(daemon, clients, path, seconds):
    """(requests a second, median of the clients' clock in us, medians of the account)

    On plain sockets: Python's HTTP client takes 200 us of its own."""
    walls, accounts, lock = [], [], threading.Lock()
    until = time.monotonic() + seconds
    barrier = threading.Barrier(clients)

    def work(index):
        mine, said = [], []
        one = socket.create_connection(("127.0.0.1", daemon.port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = (f"POST {path.replace('@', str(index))} HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: 0\r\n\r\n").encode()

        def once():
            begin = time.perf_counter()
            one.sendall(request)
            reply = one.recv(65536)
            took = time.perf_counter() - begin
            head, _, body = reply.partition(b"\r\n\r\n")
            wanted = int(re.search(rb"(?i)content-length: *([0-9]+)", head)[1])
            while len(body) < wanted:
                body += one.recv(65536)
            check(head.startswith(b"HTTP/1.1 200"), f"{path}: {reply[:300]}")
            return took, json.loads(re.search(rb"(?i)gemmd-stats: *(.*)\r\n", head + b"\r\n")[1])["us"]

        for _ in range(3):
            once()
        barrier.wait()
        while time.monotonic() < until:
            took, us = once()
            mine.append(took)
            said.append(us)
        with lock:
            walls.extend(mine)
            accounts.extend(said)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    per_s = len(walls) / (time.monotonic() - begin)
    middle = {name: sorted(u.get(name, 0) for u in accounts)[len(accounts) // 2] for name in accounts[0]}
    return per_s, 1e6 * sorted(walls)[len(walls) // 2], middle


def products(daemon, seconds):
    one, random = daemon.connect(), numpy.random.default_rng(3)
    for name in ("x", "y"):
        put(one, name, random.standard_normal((N, N)).astype("f4"))
    path = "/v1/matmul?a=ref:x&b=ref:y&keep=z@&device=cuda"
    for clients in (1, 8):
        per_s, wall, us = timed(daemon, clients, path, seconds)
        # A GPU that works without a break has a lower clock than one that waits for requests. So the kernel's own
        # rate is that of a thousand runs with nothing between.
        _, _, headers = ask(one, "POST", path.replace("@", "") + "&repeat=1000")
        work, busy = (u["kernel"] + u.get("prepare", 0) for u in (us, account(headers)["us"]))  # split operands, too
        print(f"= {N}^3 f32 by names, kept, {clients} clients: {per_s:.1f}/s ({per_s * busy / 1e6:.3f} of the kernel's rate); "
              f"total - kernel {us['total'] - work:.0f} us, client - kernel {wall - work:.0f} us, "
              f"kernel {work:.0f} us, without a break {busy:.0f}")
        print("stages:", {name: round(value, 1) for name, value in us.items()})


WRK = """local file = assert(io.open("%s", "rb"))
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/x-npy"
wrk.headers["Accept"] = "application/x-npy"
wrk.body = file:read("*a")
function done(summary)
    local e = summary.errors
    io.write(string.format("GM %%d %%d %%d\\n", summary.requests, summary.duration,
        e.connect + e.read + e.write + e.timeout + e.status))
end
"""


def wrk(port, path, body, seconds, connections):
    """Requests a second that wrk gets; None where there is no wrk."""
    if not shutil.which("wrk"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/body", "wb") as file:
            file.write(body)
        with open(f"{folder}/post.lua", "w", encoding="ascii") as file:
            file.write(WRK % f"{folder}/body")
        threads = max(1, min(8, (os.cpu_count() or 2) // 2))
        done = subprocess.run(["wrk", f"-t{threads}", f"-c{connections}", f"-d{math.ceil(seconds)}s", "-s",
                               f"{folder}/post.lua", f"http://127.0.0.1:{port}{path}"],
                              capture_output=True, text=True, check=False)
    line = [line.split() for line in done.stdout.splitlines() if line.startswith("GM ")]
    check(line and int(line[0][3]) == 0, f"wrk: {done.stdout[-500:]} {done.stderr[-500:]}")
    return 1e6 * int(line[0][1]) / int(line[0][2]) if line else 0


def middle(values):
    values = sorted(values)
    return values[len(values) // 2] if values else float("nan")


def told(accounts):
    """What accounts say of their launches, in the middle."""
    return (f"batch {middle(a['batch'] for a in accounts)} (up to {max(a['batch'] for a in accounts)}), "
            f"kernel {middle(a['us']['kernel'] for a in accounts):.1f} us, "
            f"{middle(a.get('effective_gbs', 0) for a in accounts):.0f} GB/s, "
            f"{middle(a.get('percent_of_copy', 0) for a in accounts):.0f} % of a copy, "
            f"total {middle(a['us']['total'] for a in accounts):.0f} us")


def weights(daemon, seconds, bare=None, connections=64, side=8192):
    """Rows by weights that stay: each has the bits that it has alone; then as many as can be, beside the
    HTTP library by itself, which replies with as many bytes."""
    one, random, path = daemon.connect(), numpy.random.default_rng(4), "/v1/matmul?b=ref:w&device=cuda"
    w = random.standard_normal((side, side)).astype("f4")
    rows = random.standard_normal((connections, side)).astype("f4")
    put(one, "w", w)
    exact = rows.astype("f8") @ w.astype("f8")
    bound = side * 2.0**-24 * (numpy.abs(rows).astype("f8") @ numpy.abs(w).astype("f8"))
    alone, accounts = [], []
    for i in range(connections):
        status, body, headers = ask(one, "POST", path, npy(rows[i:i + 1]), NPY)
        check(status == 200, f"weights: {status} {body[:200]}")
        alone.append(numpy.load(io.BytesIO(body)))
        accounts.append(account(headers))
        check(accounts[-1]["batch"] == 1, f"a lone request in company: {accounts[-1]}")
        check(bool((numpy.abs(alone[i][0] - exact[i]) <= bound[i]).all()), f"row {i} is wrong")
    del exact, bound
    print(f"= 1 x {side} by named {side} x {side}, by {accounts[0]['kernel']}, alone: {told(accounts)}")

    until, count, lock, accounts = time.monotonic() + seconds, [0] * connections, threading.Lock(), []

    def work(index):
        mine, said = daemon.connect(), []
        body = npy(rows[index:index + 1])
        while time.monotonic() < until:
            status, reply, headers = ask(mine, "POST", path, body, NPY)
            check(status == 200, f"weights: {status} {reply[:200]}")
            check(numpy.load(io.BytesIO(reply)).tobytes() == alone[index].tobytes(), f"row {index}: other bits in company")
            said.append(account(headers))
            count[index] += 1
        with lock:
            accounts.extend(said)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"= the same, {connections} connections of one Python process: {sum(count) / seconds:.0f}/s; {told(accounts)}")
    check(max(a["batch"] for a in accounts) > 1, "no two requests were gathered")

    body = npy(rows[:1])
    for _ in range(2):
        echo = wrk(bare.port, f"/bytes/{len(body)}", body, seconds, connections) if bare else None
        per_s = wrk(daemon.port, path, body, seconds, connections)
        if per_s is None:
            print("= there is no wrk: its figures are left out")
            break
        recent = json.loads(ask(one, "GET", "/v1/requests")[1])["requests"]
        recent = [r["account"] for r in recent if r["account"]["op"] == "matmul"]
        beside = f"; the bare library {echo:.0f}/s: {per_s / echo:.2f} of it" if echo else ""
        print(f"= the same, {connections} connections of wrk: {per_s:.0f}/s{beside}; {told(recent)}")


def put_use_delete(port, index, rounds):
    """One client of many: what each request took, and what was wrong."""
    one, took, bad = http.client.HTTPConnection("127.0.0.1", port, timeout=120), [], []
    body = npy(numpy.eye(64, dtype="f4"))
    for i in range(rounds):
        name = f"m{index}_{i}"
        for method, path, content in (("PUT", f"/v1/matrices/{name}", body), ("POST", f"/v1/flip?a=ref:{name}", None),
                                      ("DELETE", f"/v1/matrices/{name}", None)):
            begin = time.perf_counter()
            status, _, _ = ask(one, method, path, content, NPY)
            took.append(time.perf_counter() - begin)
            if status not in (200, 201, 204):
                bad.append(f"{method} {path}: {status}")
    return took, bad


def many(daemon, total=100000, clients=32):
    """Small ones put, used, deleted: nothing grows, nothing is lost. Each client is a process: threads of one would
    wait for each other."""
    before, begin = stats(daemon), time.monotonic()
    with multiprocessing.get_context("fork").Pool(clients) as pool:
        done = pool.starmap(put_use_delete, [(daemon.port, i, total // clients) for i in range(clients)], 1)
    took, after = time.monotonic() - begin, stats(daemon)
    for _, bad in done:
        for what in bad:
            check(False, what)
    check(after == before, f"left behind: {after}, before {before}")
    slow = sorted(second for times, _ in done for second in times)
    print(f"= {total} matrices of 64 x 64 put, used, deleted by {clients} clients: {3 * total / took:.0f} requests/s, "
          f"p50 {1e3 * slow[len(slow) // 2]:.2f} ms, p99 {1e3 * slow[int(0.99 * len(slow))]:.2f} ms")


def spills(binary, seconds, clients=8, side=16384):
    """More matrices of 1 GB than the device may hold, read, multiplied, replaced and deleted: each value is whole, and the
    newest of its only writer. Most are only in the device's memory, so the limits may exceed the host's."""
    daemon = Daemon(binary, "--listen", "127.0.0.1:0", "--backend", "cuda", "--log-level", "warn",
                    "--memory-limit", "400G", "--matrix-memory", "400G")
    device = json.loads(ask(daemon.connect(), "GET", "/v1/devices")[1])["devices"][0]
    count = int(device["memory_bytes"] // 2 // (side * side * 4)) + 10
    base = ((numpy.arange(side)[:, None] * 7 + numpy.arange(side)) % 997).astype("f4")
    outcomes, until = [], math.inf

    def write(one, number, add):
        status, body, _ = ask(one, "POST", f"/v1/eval?keep=m{number}&device=cuda", json.dumps({"expr": f"base + {add}"}),
                              {"Content-Type": "application/json"})
        check(status == 200, f"m{number} = base + {add}: {status} {body[:300]}")

    def work(index):
        one, random = daemon.connect(), numpy.random.default_rng(index)
        own = {number: None for number in range(index, count, clients)}
        for number in own:
            own[number] = int(random.integers(1000))
            write(one, number, own[number])
        while time.monotonic() < until:
            number, row, act = int(random.integers(count)), int(random.integers(side)), random.random()
            if act < 0.1:
                number -= (number - index) % clients  # one of its own
                if number in own:
                    check(ask(one, "DELETE", f"/v1/matrices/m{number}")[0] == 204, f"delete m{number}")
                    own[number] = int(random.integers(1000))
                    write(one, number, own[number])
                continue
            if act < 0.4:
                unit = numpy.zeros(side, "f4")
                unit[row] = 1
                status, body, _ = ask(one, "POST", f"/v1/matmul?shape_a=1x{side}&b=ref:m{number}&device=cuda", unit.tobytes(),
                                      {"Content-Type": "application/octet-stream", "Accept": "application/octet-stream"})
            else:
                status, body, _ = ask(one, "GET", f"/v1/matrices/m{number}?rows={row}", headers={"Accept": "application/octet-stream"})
            if status == 404 and number not in own:  # its writer replaces it
                continue
            outcomes.append("product" if act < 0.4 else "read")
            what = f"m{number}, row {row}, {outcomes[-1]}"
            check(status == 200, f"{what}: {status} {body[:300]}")
            added = set(numpy.frombuffer(body, "f4") - base[row]) if status == 200 else {0}
            check(len(added) == 1 and added <= ({own[number]} if number in own else set(range(1000))), f"{what}: {added}")

    def guarded(index):
        try:
            work(index)
        except Exception as error:
            check(False, f"client {index}: {error!r}")

    begin = time.monotonic()
    until = begin + seconds + 40  # the first round takes most of it
    try:
        put(daemon.connect(), "base", base)
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = stats(daemon)
        check(held["count"] == count + 1 and held["used_bytes"] > held["device_bytes"] > 0, f"held: {held}")
        for name in ["base", *(f"m{number}" for number in range(count))]:
            check(ask(daemon.connect(), "DELETE", f"/v1/matrices/{name}")[0] == 204, f"delete {name}")
        check(stats(daemon)["used_bytes"] == stats(daemon)["device_bytes"] == 0, f"left: {stats(daemon)}")
    finally:
        code = daemon.end()
    check(code == 0, f"exit code {code} of the daemon with more than fits")
    print(f"= {count} matrices of 1 GB, {held['device_bytes'] / 2**30:.0f} GB of them on the device: in {time.monotonic() - begin:.0f} s"
          f" {outcomes.count('read')} rows read, {outcomes.count('product')} products")


def stats(daemon):
    return json.loads(ask(daemon.connect(), "GET", "/v1/stats")[1])["matrices"]


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    part = sys.argv[4] if len(sys.argv) > 4 else None
    daemon = Daemon(sys.argv[1], "--listen", "127.0.0.1:0", "--backend", "cuda", "--log-level", "warn",
                    "--matrix-memory", "16G", "--memory-limit", "48G")
    if daemon.port is None:
        print("there is no GPU that gemmd can use: skipped")
        sys.exit(77)
    bare = Daemon(sys.argv[3]) if len(sys.argv) > 3 and os.path.exists(sys.argv[3]) else None
    parts = {"same_bits": lambda: same_bits(daemon), "races": lambda: races(daemon, seconds),
             "products": lambda: products(daemon, seconds), "weights": lambda: weights(daemon, seconds, bare),
             "many": lambda: many(daemon), "spills": lambda: spills(sys.argv[1], seconds)}
    try:
        for name, run in parts.items():
            if part in (None, name):
                run()
        one = daemon.connect()
        for matrix in json.loads(ask(one, "GET", "/v1/matrices")[1])["matrices"]:
            check(ask(one, "DELETE", f"/v1/matrices/{matrix['name']}")[0] == 204, "delete")
        left = stats(daemon)
        check(left["used_bytes"] == left["device_bytes"] == 0, f"left: {left}")
    finally:
        code = daemon.end()
        if bare:
            bare.end()
    check(code == 0, f"exit code {code}")
    print("all well" if not wrong else f"{len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
