"""Expressions on a GPU: results are NumPy's, and what they take, beside a copy and beside CuPy where it is installed.

    eval.py GEMMD [SECONDS]    starts that daemon, with --backend cuda, on a free port; SECONDS of random expressions

Plain Python and numpy, with tests/http/expressions.py. Lines that begin with "= " are for a summary.
"""
import http.client
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import time
import urllib.parse

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "http"))
import expressions  # noqa: E402

NPY = {"Content-Type": "application/x-npy", "Accept": "application/x-npy"}
N = 4096
wrong = []


def check(held, what):
    if not held:
        wrong.append(what)
        print("WRONG:", what[:600])


class Daemon:
    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary, "--listen", "127.0.0.1:0", "--backend", "cuda", "--log-level", "warn", "--matrix-memory", "16G",
             "--memory-limit", "48G"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rpartition(":")[2]) if "listening" in line else None
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120) if self.port else None

    def ask(self, method, path, body=None, headers=None):
        """(status, body, headers)"""
        self.connection.request(method, path, body, headers or {})
        reply = self.connection.getresponse()
        return reply.status, reply.read(), reply.headers

    def eval(self, expr, operands=None, **query):
        headers, body = expressions.parts(expr, operands or {})
        return self.ask("POST", "/v1/eval?" + urllib.parse.urlencode(query), body, headers)

    def put(self, name, array):
        status, body, _ = self.ask("PUT", f"/v1/matrices/{name}", expressions.npy(array), NPY)
        check(status in (200, 201), f"put {name}: {status} {body[:200]}")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def compare(daemon, expr, operands, expected):
    """None, or what is wrong."""
    status, body, _ = daemon.eval(expr, operands)
    case = f"{expr} of { {n: (a.dtype.name, a.shape) for n, a in operands.items()} }"
    if status != 200:
        return f"{case}: {status} {body[:300]}"
    got, expected = numpy.load(io.BytesIO(body)), expressions.as_matrix(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{case}: {got.dtype} {got.shape}, not {expected.dtype} {expected.shape}"
    if not numpy.array_equal(got, expected, equal_nan=got.dtype.kind == "f"):
        return f"{case}: {got}, not {expected}"
    return None


def same_bits(daemon, seconds):
    """Of values that are whole or quarters, and small, NumPy's bits."""
    for expr in expressions.EXACT:
        used = {n: v for n, v in expressions.OPERANDS.items() if n in set(expressions.names_of(expr))}
        fault = compare(daemon, expr, used, expressions.numpy_eval(expr, used))
        check(not fault, str(fault))
    computed, until, seed = 0, time.monotonic() + seconds, 1
    while time.monotonic() < until:
        seed += 1
        expr, operands, expected = expressions.written(seed)
        if isinstance(expected, Exception):
            continue
        with numpy.errstate(all="ignore"):
            if expected.dtype == numpy.float16 and numpy.any(numpy.abs(expected.astype("f8")) > 1024):
                continue  # sums are rounded in another order
        fault = compare(daemon, expr, operands, expected)
        if fault and ": 422" in fault:
            continue
        check(not fault, f"seed {seed}: {fault}")
        computed += 1
    print(f"= {len(expressions.EXACT)} expressions, and {computed} at random, have NumPy's bits")


def functions(daemon):
    random_numbers = numpy.random.default_rng(2)
    x = random_numbers.standard_normal((701, 1033))
    for dtype in ("f4", "f8", "f2"):
        array = x.astype(dtype)
        for name in ("exp", "log", "sqrt", "tanh"):
            expr = f"{name}(abs(x) + 0.5)"
            status, body, _ = daemon.eval(expr, {"x": array})
            expected = getattr(numpy, name)((numpy.abs(array) + numpy.dtype(dtype).type(0.5)).astype("f8"))
            got = numpy.load(io.BytesIO(body)).astype("f8")
            eps = numpy.finfo(dtype).eps
            error = numpy.max(numpy.abs(got - expected) / (numpy.abs(expected) + 1e-3)) / eps
            check(status == 200 and error < 8, f"{expr} {dtype}: {error:.1f} eps")
    for axis in (None, 0, 1):
        for shape in ((1 << 12, 1 << 12), (1, 1 << 24), (1 << 24, 1), (1 << 20, 3), (3, 1 << 20)):
            array = random_numbers.standard_normal(shape, dtype="f4")
            for name in ("sum", "mean", "max", "min"):
                status, body, _ = daemon.eval(f"{name}(x, axis={axis})", {"x": array})
                got = numpy.load(io.BytesIO(body))
                expected = numpy.atleast_2d(getattr(numpy, name)(array.astype("f8"), axis=axis))
                check(status == 200 and numpy.allclose(got, expected, rtol=3e-7, atol=1e-8), f"{name} {shape} axis {axis}")
                again = numpy.load(io.BytesIO(daemon.eval(f"{name}(x, axis={axis})", {"x": array})[1]))
                check(again.tobytes() == got.tobytes(), f"{name} {shape} axis {axis}: other bits the second time")
    print("= functions and reductions are as exact as their arithmetic")


def account(daemon, expr, runs=20):
    """The account of the median run, whose operands and result stay on the device."""
    accounts = []
    for _ in range(runs):
        status, body, headers = daemon.eval(expr, keep="kept", device="cuda")
        check(status == 200, f"{expr}: {status} {body[:300]}")
        if status != 200:
            return None
        accounts.append(json.loads(headers["Gemmd-Stats"]))
    accounts.sort(key=lambda a: a["us"]["kernel"])
    return accounts[len(accounts) // 2]


def clock_us(run, runs=20, warm=3):
    """The median by the client's clock, once memory has been allocated."""
    times = []
    for _ in range(warm + runs):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e6)
    return sorted(times[warm:])[runs // 2]


def cupy_us(run, runs=20):
    """The median of CUDA events around it; None without CuPy."""
    import cupy
    run()
    times = []
    for _ in range(runs):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(1e3 * cupy.cuda.get_elapsed_time(begin, end))
    return sorted(times)[len(times) // 2]


CHAINS = [  # name, expression over f32 of 256 MB each, operations
    ("copy", "x", 0), ("1 operation", "x * 2", 1), ("3 operations", "(x * 2 + 1) * x", 3),
    ("6 operations", "((x * 2 + 1) * x - 3) * 0.5 + x", 6), ("6, relu", "maximum(((x * 2 + 1) * 0.5 - 3) * 1.5, 0) + 1", 6),
    ("12 operations", "((((((x * 2 + 1) * x - 3) * 0.5 + x) * 2 + 1) * x - 3) * 0.5 + x)", 12),
    ("6, of three inputs", "((x * y + z) * x - y) * 0.5 + z", 6), ("6, a row and a column", "((x * row + col) * 2 - row) * 0.5 + col", 6),
    ("comparison and where", "where(x > y, x, y) * 2", 3), ("tanh", "tanh(x)", 1), ("exp and divide", "1 / (1 + exp(-x))", 4),
    ("sum", "sum(x)", 1), ("sum of products", "sum(x * y)", 2), ("sum of columns", "sum(x, axis=0)", 1), ("sum of rows", "sum(x, axis=1)", 1),
    ("f64, 6 operations", "((d * 2 + 1) * d - 3) * 0.5 + d", 6), ("f16, 6 operations", "((h * 2 + 1) * h - 3) * 0.5 + h", 6),
]


def chains(daemon):
    random_numbers = numpy.random.default_rng(3)
    x = random_numbers.standard_normal((8192, 8192), dtype="f4")
    for name, array in (("x", x), ("y", x[::-1]), ("z", x[:, ::-1]), ("row", x[:1]), ("col", x[:, :1]),
                        ("d", x[:4096].astype("f8")), ("h", x.astype("f2"))):
        daemon.put(name, numpy.ascontiguousarray(array))
    for name, expr, _ in CHAINS:
        a = account(daemon, expr)
        if a:
            rate = a["bytes_min"] / a["us"]["kernel"] / 1e3
            print(f"= {name}: {expr}: {a['us']['kernel']:.1f} us, {rate:.0f} GB/s, {rate / a['copy_gbs']:.3f} of a copy "
                  f"({a['copy_gbs']:.0f}), {len(a['steps'])} steps")
    try:
        import cupy
    except ImportError:
        print("CuPy is not here: no figures beside it")
        return
    on = {name: cupy.asarray(numpy.ascontiguousarray(v)) for name, v in (("x", x), ("y", x[::-1]), ("z", x[:, ::-1]))}
    for name, expr in (("6 operations", "((x * 2 + 1) * x - 3) * 0.5 + x"), ("6, of three inputs", "((x * y + z) * x - y) * 0.5 + z")):
        code = compile(expr, "expr", "eval")
        print(f"= CuPy, step by step: {name}: {cupy_us(lambda: eval(code, {}, on)):.1f} us")


def layer(daemon):
    """alpha * (a @ b.T) + c, then tanh."""
    random_numbers = numpy.random.default_rng(4)
    a, b, c = (random_numbers.standard_normal((N, N), dtype="f4") / 32 for _ in range(3))
    for name, array in (("a", a), ("b", b), ("c", c)):
        daemon.put(name, array)
    daemon.eval("tanh(0.5 * (a @ b.T) + c)", keep="t", device="cuda")
    got = numpy.load(io.BytesIO(daemon.ask("GET", "/v1/matrices/t", headers=NPY)[1]))
    some = numpy.tanh(0.5 * (a[:64].astype("f8") @ b.T.astype("f8")) + c[:64])
    check(numpy.max(numpy.abs(got[:64] - some)) < 1e-5, "tanh(0.5 * (a @ b.T) + c)")
    time.sleep(1)  # the threads of NumPy's product look for more work for a while, on all cores
    mine = account(daemon, "tanh(0.5 * (a @ b.T) + c)")
    wall = clock_us(lambda: daemon.eval("tanh(0.5 * (a @ b.T) + c)", keep="t", device="cuda"))
    steps = ", ".join(f"{s['op']} {s['kernel']} {s['us']:.0f}" for s in mine["steps"])
    print(f"= tanh(0.5 * (a @ b.T) + c), {N}^2 f32 by names: kernels {mine['us']['kernel']:.0f} us ({steps}), total {mine['us']['total']:.0f}, client {wall:.0f}")
    single = account(daemon, "a @ b.T")
    print(f"= a @ b.T alone: {single['us']['kernel']:.0f} us by {single['steps'][0]['kernel']}")
    try:
        import cupy
    except ImportError:
        return
    a, b, c = (cupy.asarray(v) for v in (a, b, c))

    def steps_of_cupy():
        t = a @ b.T
        t = 0.5 * t
        t = t + c
        return cupy.tanh(t)

    def steps_that_end():
        steps_of_cupy()
        cupy.cuda.Device().synchronize()

    theirs = cupy_us(steps_of_cupy)
    clock = clock_us(steps_that_end)
    print(f"= the same by CuPy, step by step in one process: events {theirs:.0f} us, clock {clock:.0f} us; gemmd is "
          f"{theirs / mine['us']['kernel']:.2f} x by kernels, {clock / wall:.2f} x by the client's clock")


def overhead(daemon):
    """A small expression by names: what a step costs."""
    daemon.put("s", numpy.ones((64, 64), "f4"))
    for expr in ("s + 1", "tanh(s @ s + 1)", "s @ s @ s @ s @ s"):
        a = account(daemon, expr, 200)
        print(f"= {expr} of 64 x 64: kernels {a['us']['kernel']:.1f} us, total {a['us']['total']:.1f} us, {len(a['steps'])} steps")


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    random.seed(1)
    daemon = Daemon(sys.argv[1])
    if daemon.port is None:
        print("there is no GPU that gemmd can use: skipped")
        sys.exit(77)
    try:
        same_bits(daemon, seconds)
        functions(daemon)
        overhead(daemon)
        chains(daemon)
        layer(daemon)
        used = json.loads(daemon.ask("GET", "/v1/stats")[1])["memory"]["used_bytes"]
        for matrix in json.loads(daemon.ask("GET", "/v1/matrices")[1])["matrices"]:
            daemon.ask("DELETE", f"/v1/matrices/{matrix['name']}")
        left = json.loads(daemon.ask("GET", "/v1/stats")[1])
        check(left["memory"]["used_bytes"] == left["matrices"]["device_bytes"] == 0, f"left: {left['memory']} {left['matrices']}, before {used}")
    finally:
        code = daemon.end()
    check(code == 0, f"exit code {code}")
    print("all well" if not wrong else f"{len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
