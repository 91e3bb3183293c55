"""How many requests gemmd serves, beside what the HTTP library does by itself, beside the same
service in FastAPI and NumPy, and beside a Triton server with a model in NumPy. Started by run.sh,
which says what else is needed.

    load.py --gemmd GEMMD --bare BENCH_BARE [--triton VENV | --gpu] [--full] [--only WORDS] [--rounds N]
            [--seconds S] [--json FILE]

With --gpu the servers are gemmd on a GPU, the HTTP library alone, also as it suspends and resumes each
request from another thread, and the service in FastAPI with CuPy for NumPy.

Cases of the format "v2" are for Triton: the bytes of its own client, which gemmd takes under /v2. They
show gemmd's /v1 with the same matrices too. Without Triton there are none.

All servers run all the time; each case goes round them in an order that changes at random, and a
ratio is the median of its rounds' ratios, so that what else the machine does hits both sides alike.
Before a case is timed, each server's answer to it is compared with NumPy's. No server writes a line
for each request.

The load comes from wrk: it is in Debian and Ubuntu, sends bodies, keeps connections open, and costs
so little itself that on a few cores the servers are what is measured; it is closed-loop, so its
latencies are those of clients that wait for each answer. It reads replies in pieces of 8 KB and ends
in the middle of a request; so the largest matrices are sent by curl, one request a turn.
"""

import argparse
import copy
import datetime
import glob
import http.client
import io
import json
import math
import os
import platform
import random
import re
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"raw": "application/octet-stream", "npy": "application/x-npy", "json": "application/json",
         "v2": "application/octet-stream"}
BIG = 8192  # 256 MB of f32
SLOW = 1024  # with many connections such requests take a second each, so that turns are longer
SLOW_TURNS = 3
RAW = "gemmd, /v1 raw"  # beside /v2
ON_GPU = "gemmd, device=cuda"  # beside gemmd, which chooses where a small product runs
GPU_SMALL = 256  # up to this size
READY_S, WAIT_S = 60, 120

# operation, size, format, connections
SHORT = [
    ("matmul", 64, "raw", 8), ("transpose", BIG, "raw", 1), # the goals
    ("matmul", 64, "raw", 1), ("matmul", 64, "raw", 64),
    ("matmul", 64, "npy", 8), ("matmul", 64, "json", 8),
    ("matmul", 512, "raw", 8), ("transpose", 1024, "raw", 8),
]
TRITON = [("matmul", 64, "v2", 1), ("matmul", 64, "v2", 8), ("matmul", 64, "v2", 32),
          ("matmul", 512, "v2", 8), ("matmul", 1024, "v2", 32)]
# Of a machine with a GPU, which has more cores.
GPU = [("matmul", 64, "raw", 1), ("matmul", 64, "raw", 8), ("matmul", 64, "raw", 64), ("matmul", 64, "raw", 256),
       ("matmul", 64, "npy", 8), ("matmul", 256, "raw", 64), ("matmul", 512, "raw", 32),
       ("transpose", 1024, "raw", 8), ("transpose", BIG, "raw", 1)]
FULL = [(op, size, fmt, connections) for op in ("matmul", "transpose") for size in (16, 64, 512, 1024)
        for fmt in ("raw", "npy", "json") for connections in (1, 8, 64)
        if fmt != "json" or size <= 512] + [
    ("transpose", BIG, "raw", 1), ("transpose", BIG, "npy", 1)]


class Server:
    """A process that says where it listens, or a port at which it is to listen."""

    scheme = "http"

    def __init__(self, name, command, port=None, env=None):
        self.name, self.port = name, port
        env = {key: value for key, value in os.environ.items() if not key.startswith("GEMMD_")} | (env or {})
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                                        stdout=self.log if port else subprocess.PIPE,
                                        stderr=self.log, start_new_session=True)
        if not port:
            line = self.process.stdout.readline()
            found = re.search(r":(\d+)$", line.strip())
            if not found:
                raise SystemExit(f"{name} did not start: {line!r}")
            self.port = int(found.group(1))
        deadline = time.monotonic() + READY_S
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"{name} did not start")
            time.sleep(0.05)

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def connection(self):
        if self.scheme == "http":
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_S,
                                           context=ssl._create_unverified_context())

    def answers(self):
        try:
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=5).connect()
            return True
        except OSError:
            return False

    def cpu_s(self):
        """What its processes have used so far."""
        total = 0
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{int(entry)}/stat", encoding="ascii") as file:
                    fields = file.read().rpartition(")")[2].split()
            except (ValueError, OSError):
                continue
            if int(fields[3]) == self.process.pid:  # the session that it leads
                total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def last_words(self):
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors="replace")

    def settle(self):
        """Waits until it has done what was asked of it, by clients that left too."""
        deadline = time.monotonic() + WAIT_S
        before = -1.0
        while (now := self.cpu_s()) - before > 0.02 and time.monotonic() < deadline:
            before = now
            time.sleep(0.1)

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(20)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_gemmd(path, backend="cpu"):
    return Server("gemmd", [path, "--listen", "127.0.0.1:0", "--backend", backend, "--log-level", "warn"])


def start_bare(path):
    return Server("bare", [path])


def start_triton(venv, folder):
    """An instance of the model a core, with a thread for products each. One instance with all threads
    was a quarter faster with one connection, and slower with many. The Python of an instance heeds no
    PYTHONPATH: it takes its packages, and so a NumPy with OpenBLAS, from the first python3 of PATH."""
    venv = os.path.abspath(venv)
    packages = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))[0]
    root = os.path.join(packages, "pytriton", "tritonserver")
    model = os.path.join(folder, "models", "matmul")
    os.makedirs(os.path.join(model, "1"))
    shutil.copy(os.path.join(HERE, "triton_model.py"), os.path.join(model, "1", "model.py"))
    tensor = '{{ name: "{}" data_type: TYPE_FP32 dims: [ -1, -1 ] }}'
    with open(os.path.join(model, "config.pbtxt"), "w", encoding="ascii") as file:
        file.write(f'backend: "python"\ninput [ {tensor.format("A")}, {tensor.format("B")} ]\n'
                   f'output [ {tensor.format("C")} ]\n'
                   f"instance_group [ {{ kind: KIND_CPU count: {os.cpu_count()} }} ]\n")
    port = free_port()
    return Server("Triton", [os.path.join(root, "bin", "tritonserver"), "--model-repository",
                             os.path.dirname(model), "--backend-directory", os.path.join(root, "backends"),
                             "--http-address", "127.0.0.1", "--http-port", str(port), "--allow-grpc", "false",
                             "--allow-metrics", "false"],
                  port, {"PATH": os.path.join(venv, "bin") + ":" + os.environ["PATH"],
                         "OPENBLAS_NUM_THREADS": "1"})


def backend(options):
    """With a GPU gemmd has both, and chooses where a small product runs."""
    return "auto" if options.gpu else "cpu"


def arrays(options):
    """The package whose arrays FastAPI's service computes with."""
    return "cupy" if options.gpu else "numpy"


def start_servers(options, folder):
    # Each worker with CuPy has a context of its own on the GPU: a few fill it.
    most = min(os.cpu_count(), 4) if options.gpu else os.cpu_count()

    def numpy_server(workers):
        port = free_port()
        return Server(f"FastAPI, {workers} worker{'s' * (workers > 1)}",
                      [sys.executable, "-m", "uvicorn", "--app-dir", HERE, "numpy_server:app",
                       "--port", str(port), "--workers", str(workers), "--no-access-log",
                       "--log-level", "warning"], port, {"ARRAYS": arrays(options)})

    yield start_gemmd(options.gemmd, backend(options))
    yield start_bare(options.bare)
    if options.gpu:
        yield Server("bare, suspends", [options.bare, "suspend"])
    yield numpy_server(1)
    if most > 1:
        yield numpy_server(most)
    if options.triton:
        yield start_triton(options.triton, folder)


class Case:
    closes = False  # whether each request has a connection of its own
    keys = ""  # a file of keys, of which each request has another; one key: all have it

    def __init__(self, op, size, fmt, connections, rng, folder, triton=None):
        self.op, self.size, self.fmt, self.connections = op, size, fmt, connections
        self.operands = [rng.uniform(-1, 1, (size, size)).astype(np.float32)
                         for _ in range(2 if op == "matmul" else 1)]
        self.file = os.path.join(folder, "body")
        self.raw_file = os.path.join(folder, "raw")
        self.reply_bytes = {}  # of each server, once it is known
        with open(self.raw_file, "wb") as file:
            file.write(b"".join(x.tobytes() for x in self.operands))
        if fmt == "v2":
            command = [os.path.join(triton, "bin", "python"), os.path.join(HERE, "triton_request.py"),
                       str(size), self.raw_file, self.file]
            self.json_bytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        else:
            with open(self.file, "wb") as file:
                file.write(self.encode())

    def __str__(self):
        return f"{self.op} {self.size}x{self.size} {self.fmt}, {self.connections} connections"

    def servers_of(self, servers):
        """Those that take it."""
        taken = [server for server in servers
                 if not server.name.startswith("FastAPI" if self.fmt == "v2" else "Triton")]
        if self.fmt == "v2":
            taken.append(copy.copy(taken[0]))
            taken[-1].name = RAW
        elif any(server.name == "bare, suspends" for server in servers) and self.size <= GPU_SMALL:
            taken.append(copy.copy(taken[0]))
            taken[-1].name = ON_GPU
        return taken

    def format_of(self, server):
        return "raw" if server.name == RAW else self.fmt

    def file_of(self, server):
        return self.raw_file if server.name == RAW else self.file

    def headers(self, server):
        fmt = self.format_of(server)
        said = {"Content-Type": TYPES[fmt]}
        return said | {"Inference-Header-Content-Length": self.json_bytes} if fmt == "v2" else said

    def encode(self):
        if self.fmt == "raw":
            return b"".join(x.tobytes() for x in self.operands)
        if self.fmt == "npy":
            file = io.BytesIO()
            for x in self.operands:
                np.save(file, x)
            return file.getvalue()
        # As many digits as an f32 needs.
        rows = [[[float(str(v)) for v in row] for row in x] for x in self.operands]
        return json.dumps(dict(zip("ab", rows)) if len(rows) > 1 else rows[0]).encode()

    def path(self, server):
        if server.name.startswith("bare"):
            return f"/bytes/{self.reply_bytes['gemmd']}"
        fmt = self.format_of(server)
        if fmt == "v2":
            return f"/v2/models/{self.op}/infer"
        shape = f"{self.size}x{self.size}"
        names = ("shape_a", "shape_b")[: len(self.operands)]
        query = [f"{name}={shape}" for name in names] + ["dtype=f32"] if fmt == "raw" else []
        query += ["device=cuda"] * (server.name == ON_GPU)
        return f"/v1/{self.op}{'?' if query else ''}{'&'.join(query)}"

    def decode(self, fmt, reply):
        if fmt == "raw":
            return np.frombuffer(reply, np.float32).reshape(self.size, self.size)
        if fmt == "npy":
            return np.load(io.BytesIO(reply))
        return np.array(json.loads(reply)["data"], np.float32)

    def right(self, fmt, reply):
        result = self.decode(fmt, reply)
        if self.op == "transpose":
            return np.array_equal(result, self.operands[0].T)
        a, b = (x.astype(np.float64) for x in self.operands)
        # The bound of a sum of that many products in f32, in any order.
        bound = (self.size + 2) * 2.0**-24 * (np.abs(a) @ np.abs(b))
        return result.shape == bound.shape and bool((np.abs(result - a @ b) <= bound).all())

    def prove(self, server):
        connection = server.connection()
        with open(self.file_of(server), "rb") as file:
            body = file.read()
        connection.request("POST", self.path(server), body, self.headers(server))
        response = connection.getresponse()
        reply = response.read()
        connection.close()
        if response.status != 200:
            raise SystemExit(f"{self}: {server.name} answers {response.status}: {reply[:300]!r}")
        self.reply_bytes[server.name] = len(reply)
        if server.name.startswith("bare"):
            wanted = self.reply_bytes["gemmd"]
            correct = reply == (body * -(-wanted // len(body)))[:wanted]
        elif self.format_of(server) == "v2":
            correct = self.right("raw", reply[int(response.getheader("Inference-Header-Content-Length")):])
        else:
            correct = self.right(self.format_of(server), reply)
        if not correct:
            raise SystemExit(f"{self}: the answer of {server.name} is wrong")


def send_once(case, server):
    """One request by curl: how long it took, in microseconds."""
    command = ["curl", "--silent", "--insecure", "--show-error", "--max-time", str(WAIT_S), "--output", os.devnull,
               "--header", f"Content-Type: {TYPES[case.fmt]}", "--header", "Expect:",
               "--data-binary", f"@{case.file}", "--write-out",
               "%{http_code} %{size_download} %{time_pretransfer} %{time_total}",
               server.url(case.path(server))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"curl: {server.name}: {done.stderr}")
    code, received, began, ended = done.stdout.split()
    if code != "200" or int(received) != case.reply_bytes[server.name]:
        raise SystemExit(f"{case}: {server.name} answers {code} with {received} bytes")
    return 1e6 * (float(ended) - float(began))


def drive(case, server, seconds):
    """One turn: a dictionary of what was seen."""
    if case.size >= SLOW and case.connections > 8:
        seconds *= SLOW_TURNS
    before = server.cpu_s()
    if case.size == BIG:
        us = send_once(case, server)
        return {"rate": 1e6 / us, "p50_us": us, "cpu_us": 1e6 * (server.cpu_s() - before)}
    threads = min(case.connections, max(1, os.cpu_count() // 2))
    command = ["wrk", f"-t{threads}", f"-c{case.connections}", f"-d{seconds}", f"--timeout={WAIT_S}",
               "-s", os.path.join(HERE, "post.lua"), server.url(case.path(server))]
    headers = case.headers(server)
    env = {**os.environ, "GM_BODY": case.file_of(server), "GM_TYPE": headers["Content-Type"],
           "GM_CLOSE": "1" if case.closes else "", "GM_KEYS": case.keys}
    if "Inference-Header-Content-Length" in headers:
        env["GM_JSON_BYTES"] = headers["Inference-Header-Content-Length"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    server.settle()
    cpu_s = server.cpu_s() - before
    said = re.search(r"^GM (.*)$", done.stdout, re.MULTILINE)
    if done.returncode or not said:
        raise SystemExit(f"{case}: {server.name} (ended with {server.process.poll()}): wrk: {done.stdout}{done.stderr}"
                         f"{server.last_words()}")
    count, us, received, errors, bad, p50, p99 = (float(word) for word in said.group(1).split())
    if errors or bad:
        raise SystemExit(f"{case}: {server.name}: {errors:.0f} errors, {bad:.0f} answers not 2xx")
    if count == 0:
        return drive(case, server, 2 * seconds)
    # JSON is not always of the same length: the account has figures of its own.
    if received < count * case.reply_bytes[server.name] * (0.95 if case.fmt == "json" else 1):
        raise SystemExit(f"{case}: {server.name} answered with less than it should")
    return {"rate": count * 1e6 / us, "p50_us": p50, "p99_us": p99,
            "cpu_us": 1e6 * cpu_s / count}


def take_turns(case, servers, options, rng):
    """What was seen of each server in each round."""
    for server in servers:
        case.prove(server)
        # Everything is warm: memory, caches, and what a server compiles or connects on first use.
        if case.size != BIG:
            drive(case, server, 1)
    rounds = []
    # A few requests are a turn too short to be quiet by chance.
    for _ in range(options.rounds * (3 if case.size == BIG else 1)):
        order = servers[:]
        rng.shuffle(order)
        seen = {server.name: drive(case, server, options.seconds) for server in order}
        rounds.append(seen)
    return rounds


# What gemmd's rate is compared with: the best of the servers whose names match this.
OTHERS = {"of_bare": "bare$", "of_suspends": "bare, suspends", "of_fastapi": "FastAPI", "of_raw": RAW,
          "of_triton": "Triton"}


def measure(case, servers, options, rng):
    """One row of the result."""
    rounds = take_turns(case, servers, options, rng)
    row = {"op": case.op, "dtype": "f32", "size": case.size, "format": case.fmt,
           "connections": case.connections, "request_bytes": os.path.getsize(case.file),
           "reply_bytes": case.reply_bytes["gemmd"], "servers": {}}
    for server in servers:
        runs = [seen[server.name] for seen in rounds]
        row["servers"][server.name] = {
            key: round(statistics.median(run[key] for run in runs), 3)
            for key in runs[0]}
        row["servers"][server.name]["rates"] = [round(run["rate"], 2) for run in runs]
    for key, pattern in OTHERS.items():
        others = [max((seen[name]["rate"] for name in seen if re.match(pattern, name)), default=0)
                  for seen in rounds]
        if all(others):
            row[key] = round(statistics.median(
                seen["gemmd"]["rate"] / other for seen, other in zip(rounds, others)), 3)
    return row


def show(case, row):
    print(case)
    for name, seen in row["servers"].items():
        print(f"    {name:20s} {seen['rate']:11.1f} requests/s   p50 {seen['p50_us'] / 1e3:9.3f} ms   "
              f"p99 {seen.get('p99_us', math.nan) / 1e3:9.3f} ms   {seen['cpu_us']:10.1f} us of CPU each")
    said = {"of_bare": "of the bare library", "of_raw": "of its own /v1 raw",
            "of_suspends": "of the library that suspends", "of_fastapi": "times FastAPI at its best", "of_triton": "times Triton and NumPy"}
    print("    gemmd is " + ", ".join(f"{row[key]:.2f} {words}" for key, words in said.items() if key in row),
          flush=True)


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    return done.stdout.split("\n")[0].strip() or "unknown"


def machine(gpu=False):
    if gpu:
        return first_line(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def versions(options, triton):
    from importlib.metadata import version

    seen = {name: version(name) for name in ("fastapi", "uvicorn", "numpy")} | {
        "python": platform.python_version(), "wrk": first_line(["wrk", "-v"]).split(" [")[0]}
    if options.gpu:
        import cupy

        seen["cupy"] = cupy.__version__
    if triton:
        connection = http.client.HTTPConnection("127.0.0.1", triton.port, timeout=WAIT_S)
        connection.request("GET", "/v2")
        seen["triton"] = json.loads(connection.getresponse().read())["version"]
    return seen


def commit():
    """GM_COMMIT, where the sources came without their history."""
    return os.environ.get("GM_COMMIT") or first_line(["git", "describe", "--always", "--dirty"])


def save(options, load_before, said, rows):
    document = {"benchmark": "load_gpu" if options.gpu else "load", "date": datetime.datetime.now(datetime.UTC).isoformat()[:19] + "Z",
                "commit": commit(),
                "device": machine(options.gpu), "cores": os.cpu_count(), "load_before": round(load_before, 2),
                "backend": backend(options), "rounds": options.rounds, "seconds": options.seconds,
                "versions": said, "results": rows}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description="see the head of load.py")
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--bare", required=True)
    parser.add_argument("--triton", help="the virtual environment that has nvidia-pytriton")
    parser.add_argument("--gpu", action="store_true", help="gemmd and its peers on a GPU")
    parser.add_argument("--full", action="store_true", help="every operation, size, format and number "
                        "of connections: half an hour")
    parser.add_argument("--only", default="", help="cases whose name holds all of these words")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=1, help="of a server's turn in a round")
    parser.add_argument("--json", help="the result file")
    options = parser.parse_args()

    cases = [case for case in (FULL if options.full else GPU if options.gpu else SHORT) + (TRITON if options.triton else [])
             if all(word in "{0} {1}x{1} {2} {3}".format(*case).split() for word in options.only.split())]
    began, load_before = time.monotonic(), os.getloadavg()[0]
    rng, shuffler = np.random.default_rng(1), random.Random(1)
    rows, servers = [], []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for server in start_servers(options, folder):
                servers.append(server)
            triton = next((server for server in servers if server.name == "Triton"), None)
            said = versions(options, triton)
            for parameters in cases:
                case = Case(*parameters, rng, folder, options.triton)
                rows.append(measure(case, case.servers_of(servers), options, shuffler))
                show(case, rows[-1])
                if options.json: # anew after each case: what was seen is kept
                    save(options, load_before, said, rows)
        finally:
            for server in servers:
                server.stop()
    print(f"{time.monotonic() - began:.0f} s; load before {load_before:.1f}")


if __name__ == "__main__":
    main()
