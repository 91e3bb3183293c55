"""Random operations by several clients at once: exact results are NumPy's, others the same bits when asked again.

    random_requests.py GEMMD [SECONDS [SEED [BACKEND]]]    starts that daemon on a free port, with --backend cuda

Element types, shapes, kernels, formats, named matrices and parameters are drawn; values are small and whole, so that
results are exact in any order of sums. Of other values, a seventh of the products of floats, only the bits are
compared. Plain Python and numpy. Lines that begin with "= " are for a summary.
"""
import collections
import hashlib
import http.client
import io
import json
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy

CLIENTS = 24
ARITHMETIC = ("f16", "bf16", "f32", "f64", "i32", "i64")
MOVED = ARITHMETIC + ("bool", "i8", "u8", "i16", "u16", "u32", "u64", "c64", "c128", "v1", "v2", "v4", "v8", "v16")
NUMPY = {name: numpy.dtype(code) for name, code in {
    "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8", "i32": "<i4", "i64": "<i8", "bool": "?", "i8": "i1",
    "u8": "u1", "i16": "<i2", "u16": "<u2", "u32": "<u4", "u64": "<u8", "c64": "<c8", "c128": "<c16", "v1": "V1",
    "v2": "V2", "v4": "V4", "v8": "V8", "v16": "V16"}.items()}
wrong = []


def check(held, what):
    if not held:
        wrong.append(what)
        print("WRONG:", what[:600], flush=True)


def bf16(values):
    """f32 rounded to the nearest bf16, ties to even."""
    bits = values.astype("<f4").view("<u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def stored(values, dtype):
    """float64 or int64 as elements of that type; integers wrap."""
    if dtype == "bf16":
        return bf16(values)
    if dtype in ("i32", "i64"):
        return values.astype("<i8").astype(NUMPY[dtype])
    return values.astype(NUMPY[dtype])


class Job:
    """A request, and the bytes of its result, where they are known beforehand."""

    def __init__(self, draw, kernels):
        self.draw, self.query, self.operands = draw, {}, []
        self.op = draw.choice(("transpose", "transpose", "flip", "add", "matmul", "matmul", "matmul"))
        self.dtype = draw.choice(MOVED if self.op in ("transpose", "flip") else ARITHMETIC)
        self.random = numpy.random.default_rng(draw.getrandbits(63))
        self.exact = True
        if draw.random() < 0.4:
            self.query["kernel"] = draw.choice([k["name"] for k in kernels if k["op"] == self.op and self.dtype in k["dtypes"]])
        getattr(self, "move" if self.op in ("transpose", "flip") else self.op)()
        if draw.random() < 0.1:
            self.query["repeat"] = draw.randint(2, 5)

    def size(self, most):
        """Small ones as often as large ones; whole tiles, a few elements more or fewer, or anything."""
        n = int(2 ** self.draw.uniform(0, numpy.log2(most)))
        if self.draw.random() < 0.5:
            unit = self.draw.choice((8, 16, 32, 64, 128))
            n = (n + unit - 1) // unit * unit + self.draw.choice((0, 0, 0, -1, 1))
        return 0 if self.draw.random() < 0.01 else min(max(n, 1), most)

    def shape(self, elements):
        rows = self.size(elements)
        shape = (rows, self.size(max(1, elements // max(rows, 1))))
        if self.draw.random() < 0.3:
            return (self.draw.randint(1, max(1, min(200, elements // max(1, shape[0] * shape[1])))),) + shape
        return shape

    def values(self, shape, least=-4, most=4):
        return self.random.integers(least, most + 1, shape).astype("i8" if self.dtype[0] == "i" else "f8")

    def move(self):
        shape = self.shape(1 << self.draw.choice((10, 16, 22, 24)))
        dtype = NUMPY[self.dtype]
        if self.dtype == "bool":
            a = self.random.integers(0, 2, shape).astype("?")
        else:
            a = numpy.frombuffer(self.random.bytes(int(numpy.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
            if self.query.get("kernel") == "cublas":  # which changes the bits of NaN
                a = numpy.nan_to_num(a)
        self.operands = [a]
        self.expected = a.swapaxes(-1, -2) if self.op == "transpose" else a[..., ::-1]

    def add(self):
        shape = self.shape(1 << self.draw.choice((10, 16, 22)))
        other = tuple(1 if self.draw.random() < 0.15 else n for n in shape[self.draw.choice((0, 0, len(shape) - 2)):])
        a, b = self.values(shape, -100, 100), self.values(other, -100, 100)
        if self.draw.random() < 0.5:
            a, b = b, a
        self.operands = [stored(a, self.dtype), stored(b, self.dtype)]
        self.expected = stored(a + b, self.dtype)

    def matmul(self):
        draw, most = self.draw, self.draw.choice((40, 300, 2000, 5000))
        m, n, k = self.size(most), self.size(most), self.size(min(most, 4000))
        if draw.random() < 0.3:
            m, n = draw.choice(((1, n), (m, 1), (draw.randint(1, 16), n), (m, draw.randint(1, 16))))
        batch = draw.randint(1, max(1, min(300, (1 << 23) // max(1, m * n, k * m, k * n)))) if draw.random() < 0.3 else None
        ta, tb = draw.random() < 0.3, draw.random() < 0.3
        shapes = [(k, m) if ta else (m, k), (n, k) if tb else (k, n)]
        if batch:
            alone = draw.choice((None, None, 0, 1))
            shapes = [s if i == alone else (batch,) + s for i, s in enumerate(shapes)]
        a, b = (self.values(s) for s in shapes)
        if self.dtype[0] != "i" and draw.random() < 0.15:
            a, b, self.exact = self.random.standard_normal(a.shape), self.random.standard_normal(b.shape), False
        self.operands = [stored(a, self.dtype), stored(b, self.dtype)]
        if ta:
            self.query["transa"] = "true"
        if tb:
            self.query["transb"] = "true"
        alpha = draw.choice((1, 1, 1, -1, 2, 0))
        if alpha != 1:
            self.query["alpha"] = alpha
        if self.dtype == "f32" and draw.random() < 0.3:
            self.query["precision"] = draw.choice(("ieee", "tf32", "bf16"))
        self.expected = None
        result = alpha * numpy.matmul(*(x.astype("f8").swapaxes(-1, -2) if t else x.astype("f8") for x, t in ((a, ta), (b, tb))))
        if draw.random() < 0.25:
            c = self.values(result.shape)
            beta = draw.choice((1, 1, 2, -1, 0))
            self.operands.append(stored(c, self.dtype))
            self.query["beta"] = beta
            result = result + beta * c
        if self.exact:
            self.expected = stored(result, self.dtype)

    def body(self):
        """(body, content type)"""
        if self.dtype[0] == "v" or self.dtype == "bf16" or self.draw.random() < 0.5:
            self.query["dtype"] = self.dtype
            for name, array in zip("abc", self.operands):
                self.query["shape_" + name] = "x".join(map(str, array.shape))
            return b"".join(x.tobytes() for x in self.operands), "application/octet-stream"
        file = io.BytesIO()
        for array in self.operands:
            numpy.save(file, numpy.asfortranarray(array) if self.exact and array.ndim == 2 and self.draw.random() < 0.3 else array)
        return file.getvalue(), "application/x-npy"

    def same(self, content):
        if content == self.expected.tobytes():
            return True
        # 0 and -0 are equal
        got, whole = numpy.frombuffer(content, self.expected.dtype), self.expected.ravel()
        if self.dtype == "bf16":
            got, whole = (x.astype("<u4") << 16 for x in (got, whole))
            got, whole = got.view("<f4"), whole.view("<f4")
        return len(got) == len(whole) and self.op in ("add", "matmul") and numpy.array_equal(got, whole)

    def __repr__(self):
        return f"{self.op} {self.dtype} {[x.shape for x in self.operands]} {self.query}"


class Client(threading.Thread):
    def __init__(self, port, number, seed, kernels, until):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.draw, self.number, self.kernels, self.until = random.Random(f"{seed} {number}"), number, kernels, until
        self.outcomes, self.ran, self.asked = collections.Counter(), collections.Counter(), time.monotonic()

    def ask(self, method, path, body=None, kind="application/octet-stream"):
        if time.monotonic() - self.asked > 30:  # the daemon closes connections that are idle for 60 s
            self.connection.close()
        self.connection.request(method, path, body, {"Content-Type": kind, "Accept": "application/octet-stream"})
        reply = self.connection.getresponse()
        self.asked = time.monotonic()
        return reply.status, reply.read(), json.loads(reply.getheader("Gemmd-Stats") or "{}")

    def result(self, job, body, kind):
        """(status, bytes, account), of a plain request, by named operands, or kept and then read."""
        query, how = dict(job.query), self.draw.random()
        if how < 0.15:
            names = [f"m{self.number}_{i}" for i in range(len(job.operands))]
            for name, array in zip(names, job.operands):
                shape = "x".join(map(str, array.shape))
                status, text, _ = self.ask("PUT", f"/v1/matrices/{name}?dtype={job.dtype}&shape={shape}", array.tobytes())
                if status not in (200, 201, 204):
                    return status, text, {}
            query = {k: v for k, v in query.items() if k[:5] not in ("dtype", "shape")}
            query |= {operand: f"ref:{name}" for operand, name in zip("abc", names)}
            body = b""
        elif how < 0.25 and "repeat" not in query:
            query["keep"] = f"k{self.number}"
        reply = self.ask("POST", f"/v1/{job.op}?{urllib.parse.urlencode(query)}", body, kind)
        if reply[0] == 200 and "keep" in query:
            account = json.loads(reply[1])
            reply = *self.ask("GET", f"/v1/matrices/{query['keep']}")[:2], account.get("stats", account)
        return reply

    def run(self):
        try:
            self.work()
        except Exception as error:
            check(False, f"client {self.number}, {time.monotonic() - self.asked:.1f} s after its last reply: {error!r}")
        self.connection.close()

    def work(self):
        while time.monotonic() < self.until:
            job = Job(self.draw, self.kernels)
            body, kind = job.body()
            first = None
            for again in range(2):
                status, content, account = self.result(job, body, kind)
                if status != 200:
                    code = json.loads(content).get("code", "")
                    self.outcomes[f"{status} {code}"] += 1
                    # A named kernel need not take every shape, and what is too much to compute is refused.
                    check(status in (422, 503) and (status == 503 or "kernel" in job.query or "limit" in code),
                          f"{job}: {status} {content[:200]}")
                    break
                self.outcomes["200"] += 1
                self.ran[f"{job.op} {account.get('kernel')}"] += 1
                if job.expected is not None:
                    check(job.same(content), f"{job}: {account.get('kernel')}: another result")
                # Exact results were compared above, where 0 and -0 are equal: a named operand is in C order, and 0 may be -0.
                digest = hashlib.blake2b(content).digest()
                check(job.exact or first in (None, digest), f"{job}: {account.get('kernel')}: other bits")
                first = digest


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    backend = sys.argv[4] if len(sys.argv) > 4 else "cuda"
    process = subprocess.Popen([sys.argv[1], "--listen", "127.0.0.1:0", "--backend", backend, "--log-level", "warn",
                                "--matrix-memory", "8G", "--memory-limit", "48G"], stdout=subprocess.PIPE, text=True)
    try:
        run(process, seconds, seed, backend)
    finally:
        process.kill()  # nothing where it has ended


def run(process, seconds, seed, backend):
    line = process.stdout.readline()
    if "listening" not in line:
        print("there is no GPU that gemmd can use: skipped")
        sys.exit(77)
    port = int(line.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/v1/kernels")
    kernels = [k for k in json.loads(connection.getresponse().read())["kernels"]
               if any(d.startswith(backend) for d in k["devices"])]
    clients = [Client(port, n, seed, kernels, time.monotonic() + seconds) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    process.send_signal(signal.SIGTERM)
    code = process.wait(60)
    check(code == 0, f"exit code {code}")
    ran = sum((c.ran for c in clients), collections.Counter())
    outcomes = sum((c.outcomes for c in clients), collections.Counter())
    check(outcomes["200"] > 0.8 * sum(outcomes.values()), f"too many were refused: {dict(outcomes)}")
    print("kernels:", dict(sorted(ran.items())))
    print(f"= seed {seed}: {dict(outcomes)}, {len(ran)} kernels")
    print("all well" if not wrong else f"{len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
