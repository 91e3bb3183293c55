"""What GET /v1/explain may take, whatever the shape: some time and memory, both read from /proc.

Time is the daemon's own on its processors, so that a busy machine changes nothing. With GM_ALL=1
each simulated kernel is asked for each extreme shape; else a few are.
"""

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon import SLOW, sanitizer_of
from wire import target

MEMORY_MB = 256  # growth while a request is answered, the system's tables of pages included
CPU_S = 3 * SLOW  # counts end a sample long before, and else two seconds of the host's threads
RAW_HEADERS = {"Content-Type": "application/octet-stream"}
ALL = os.environ.get("GM_ALL") == "1"

# Each would take hours, or hundreds of gigabytes, if it were followed to its end.
FORMER = [
    ("matmul", {"kernel": "grid_stride", "shape_a": "300000x0", "shape_b": "0x300000"}),
    ("matmul", {"kernel": "naive", "shape_a": "1x1", "shape_b": "1x68719476736"}),
    ("matmul", {"kernel": "grid_stride", "shape_a": "1x1", "shape_b": "1x68719476736"}),
    ("matmul", {"kernel": "naive", "shape_a": "200000x200000", "shape_b": "200000x200000"}),
    ("matmul", {"shape_a": "200000x200000", "shape_b": "200000x200000"}),
    ("add", {"kernel": "grid_stride", "shape_a": "1000000000x1x1", "shape_b": "1x1"}),
    ("transpose", {"kernel": "naive", "shape": "8589934592x16"}),
    ("transpose", {"kernel": "naive", "shape": "137438953472x1x1"}),
    ("transpose", {"kernel": "padded", "shape": "68719476736x1"}),
    # Lanes that touch the same pages one after the other, each time after they were given back.
    ("add", {"kernel": "grid_stride", "dtype": "f16", "shape_a": "3x1", "shape_b": "3x40000000000"}),
    ("add", {"kernel": "grid_stride", "shape_a": "1x400000", "shape_b": "400000x1"}),
    # One long thread among a thousand that end at once.
    ("matmul", {"kernel": "naive", "shape_a": "1x34359738337", "shape_b": "34359738337x1"}),
]

MOVES = ["68719476736x1", "1x68719476736", "8589934592x16", "16x8589934592", "262144x262144",
         "137438953472x1x1", "1000000000x3x5", "4294967297x7", "65537x65537", "1073741824x3",
         "2x34359738368x3", "0x68719476736", "68719476736x0"]
PRODUCTS = [("300000x0", "0x300000"), ("1x68719476736", "68719476736x1"),
            ("1x1", "1x68719476736"), ("68719476736x1", "1x1"), ("200000x200000", "200000x200000"),
            ("3x8589934592", "8589934592x2"), ("1048576x1048576", "1048576x1"),
            ("1000000000x2x3", "1000000000x3x2"), ("1000000000x2x3", "3x2"),
            ("20000000x33x31", "20000000x31x37"), ("100000x50000", "50000x7"),
            ("7x4294967296", "4294967296x7"), ("524288x0", "0x524288"),
            ("1x34359738337", "34359738337x1")]
SUMS = [("1000000000x1x1", "1x1"), ("68719476736x1", "68719476736x1"), ("1000000000x3", "1000000000x3"),
        ("262144x262144", "262144x262144"), ("1x68719476736", "1x1"), ("262144x262144", "1x262144"),
        ("30000000000x3x1", "3x1"), ("1x400000", "400000x1"), ("3x1", "3x40000000000"),
        ("70000x3x1", "1x200000")]


def kernels(daemon, op):
    rows = daemon.get("/v1/kernels").json()["kernels"]
    return [k for k in rows if k["op"] == op and "sim:0" in k["devices"]]


def sweep(daemon):
    """Each simulated kernel, in its narrowest and its widest type, by each shape of its operation."""
    for op in ("transpose", "matmul", "add", "flip", "copy"):
        shapes = [{"shape_a": a, "shape_b": b} for a, b in {"matmul": PRODUCTS, "add": SUMS}[op]] \
            if op in ("matmul", "add") else [{"shape": s} for s in MOVES]
        for kernel, shape in itertools.product(kernels(daemon, op), shapes):
            for dtype in {kernel["dtypes"][0], kernel["dtypes"][-1]}:
                yield op, {"kernel": kernel["name"], "dtype": dtype, **shape}


def status_mb(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 1024


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(daemon, op, parameters):
    """The reply to an explain that stayed within bounds."""
    pid = daemon.process.pid
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak begins anew
    before_mb, before_s = status_mb(pid, "VmRSS"), cpu_s(pid)
    reply = daemon.get(target(f"/v1/explain/{op}", format="json", **parameters))
    grown_mb = status_mb(pid, "VmHWM") - before_mb + status_mb(pid, "VmPTE")
    took_s = cpu_s(pid) - before_s
    assert grown_mb < MEMORY_MB and took_s < CPU_S, (op, parameters, reply.status, grown_mb, took_s)
    return reply


@pytest.fixture
def small(start):
    return start("--memory-limit", "256M")


def check(document):
    """What a document says of itself fits together."""
    assert document["sampled"] or not document["cut"]
    assert document["cut"] == any(launch["cut"] for launch in document["launches"])
    assert ("cut_by" in document) == document["cut"]
    if document["cut"]:
        assert document["cut_by"] in ("count", "time")
        assert "global_sectors_ratio" not in document["totals"]
    assert document["blocks_traced"] <= document["blocks"]


@pytest.mark.parametrize("op,parameters", FORMER, ids=lambda value: str(value)[:90])
def test_extreme_shapes(small, op, parameters):
    document = ask(small, op, parameters).ok().json()
    check(document)
    assert document["sampled"] and document["sites"]
    if sanitizer_of() is None:
        assert document.get("cut_by") != "time", "counts end a trace before the clock does"


def test_long_products_are_followed_to_their_end(small):
    """Rounds that are only counted cost little: each element is loaded n / 32 times by tiles."""
    document = ask(small, "matmul", {"kernel": "tiled", "shape_a": "200000x200000",
                                     "shape_b": "200000x200000"}).ok().json()
    assert not document["cut"]
    loads = sum(site["bytes_moved"] for site in document["sites"] if site["kind"] == "global_load")
    assert loads == pytest.approx(2 * 4 * 200000 ** 3 / 32, rel=1e-5)


def test_the_same_request_has_the_same_report(start):
    """Budgets are counts: not the threads' number, nor what ran before, changes a figure."""
    daemons = [start("--threads", str(threads)) for threads in (1, 5)]
    for op, parameters in (FORMER[2], FORMER[6], ("transpose", {"kernel": "naive"}),
                           ("matmul", {"kernel": "registers", "shape": "2048x2048",
                                       "shape_b": "2048x2048"})):
        reports = []
        for daemon in daemons + daemons[:1]:
            document = daemon.get(target(f"/v1/explain/{op}", format="json", **parameters)).ok().json()
            del document["id"]
            reports.append(document)
        assert all(report == reports[0] for report in reports), (op, parameters)


@pytest.mark.skipif(sanitizer_of() is not None, reason="a sanitizer's own memory is in the way")
def test_a_body_is_not_copied(start):
    """Shapes are all that counts; what a body holds is held once."""
    daemon = start("--memory-limit", "1G")
    pid, size = daemon.process.pid, 100 << 20
    path = target("/v1/explain/transpose", shape=f"{size // 4 // 1024}x1024", dtype="f32", kernel="naive")
    before = status_mb(pid, "VmRSS")
    daemon.post(path, bytes(size), RAW_HEADERS).ok()
    assert status_mb(pid, "VmHWM") - before < size / 2 ** 20 + MEMORY_MB / 2


def test_a_small_job_does_not_wait_for_a_long_one(start):
    """A product that keeps the simulator for half a minute, if it had so long, and one of two by two beside it."""
    daemon, side = start(), 640
    zeros = bytes(2 * 4 * side * side)
    product = target("/v1/matmul", device="sim", shape_a=f"{side}x{side}", shape_b=f"{side}x{side}",
                     dtype="f32", kernel="naive", timeout_ms=2500)
    with ThreadPoolExecutor() as pool:
        long_one = pool.submit(daemon.post, product, zeros, RAW_HEADERS, 150)
        time.sleep(0.5)
        path = target("/v1/transpose", device="sim", shape="2x2", dtype="f32")
        daemon.post(path, bytes(16), RAW_HEADERS).ok()
        assert not long_one.done()
        assert long_one.result().code == "deadline_passed"


@pytest.mark.skipif(not ALL, reason="some minutes: GM_ALL=1")
def test_all_kernels_at_all_extremes(start):
    daemon, bad, asked, began = start("--memory-limit", "256M"), [], 0, time.monotonic()
    for op, parameters in sweep(daemon):
        try:
            reply = ask(daemon, op, parameters)
            if reply.status == 200:
                check(reply.json())
            elif reply.status not in (413, 422):
                bad.append((op, parameters, reply.status, reply.json()))
        except AssertionError as failure:
            bad.append(failure.args)
        asked += 1
    print(f"{asked} requests, {len(bad)} bad, {time.monotonic() - began:.0f} s")
    assert not bad, "\n".join(map(str, bad))
