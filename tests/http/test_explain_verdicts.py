"""What /v1/explain says of each kernel, against what was seen of it: Nsight Compute's counters on an H200
(tests/bench/results/counters_h200.json), times there (kernels_h200.json), and, of an H100, the stalls that
dominate, hit rates and occupancy (`seen` in the counters' file)."""

import functools
import json
import os
import pathlib
import re

import pytest

from daemon import SLOW
from wire import target

RESULTS = pathlib.Path(__file__).parent.parent / "bench" / "results"
# More than this part beyond the least is a conflict, or a waste. nvcc loads some neighbouring words
# at once, which takes a quarter fewer wavefronts, and banks wait a few per cent for each other.
EXCESS = 1.3
# How the verdict begins of a kernel that could not be faster.
LIMIT = "Nothing is wasted that costs time", "Memory is the limit", "Arithmetic is the limit"

pytestmark = pytest.mark.skipif(SLOW > 1, reason="traces every kernel, which needs no sanitizer")


@functools.cache
def explain(daemon, op, kernel, dtype, shape):
    query = {"format": "json", "gpu": "H200", "kernel": kernel, "dtype": dtype}
    for name, text in zip("ab", shape.split()):
        query["shape_" + name] = text.removesuffix("^T")
        if text.endswith("^T"):
            query["trans" + name] = "true"
    return daemon.get(target("/v1/explain/" + op, **query)).ok().json()


def counted():
    """For each variant the first run of it that Nsight Compute counted, in f32 if there is one."""
    runs = {}
    with open(RESULTS / "counters_h200.json", encoding="utf-8") as file:
        for run in json.load(file)["runs"]:
            op, kernel, dtype, shape = run["run"].split(" ", 3)
            if (op, kernel) not in runs or (dtype == "f32" and runs[op, kernel][0] != "f32"):
                runs[op, kernel] = dtype, shape, run["gpu"]
    return [(*name, *run) for name, run in runs.items()]


def of(document, kind, member):
    return sum(site["requests"] * site[member] for site in document["sites"] if site["kind"] == kind)


@pytest.mark.parametrize("op,kernel,dtype,shape,gpu", counted(), ids=lambda value: str(value)[:24])
def test_conflicts_are_those_that_nsight_counts(daemon, op, kernel, dtype, shape, gpu):
    document = explain(daemon, op, kernel, dtype, shape)
    verdicts = {}
    for site in document["sites"]:
        verdicts.setdefault(site["kind"], []).append(site["verdict"])
    for kind in ("shared_load", "shared_store"):
        wavefronts = gpu[kind + "_wavefronts"]
        if not wavefronts:
            continue  # asynchronous copies, whose stores the GPU does not count
        ideal = of(document, kind, "ideal_wavefronts_per_request")
        conflict = any("conflict" in v and not v.startswith("no") for v in verdicts.get(kind, []))
        # A kernel may have a few conflicts in one place beside many loads without.
        if wavefronts > EXCESS * ideal:
            assert conflict, (kind, wavefronts, ideal, verdicts)
        if wavefronts < 1.02 * ideal:
            assert not conflict, (kind, wavefronts, ideal, verdicts)
        if "wavefronts (passes" in document["problem"] and "load from" in document["problem"]:
            assert gpu["shared_load_wavefronts"] > EXCESS * of(
                document, "shared_load", "ideal_wavefronts_per_request"), document["problem"]


@pytest.mark.parametrize("op,kernel,dtype,shape,gpu", counted(), ids=lambda value: str(value)[:24])
def test_waste_is_what_nsight_counts(daemon, op, kernel, dtype, shape, gpu):
    document = explain(daemon, op, kernel, dtype, shape)
    if "sectors of 32 bytes instead of" not in document["problem"]:
        return
    kind = "global_load" if "load from" in document["problem"] else "global_store"
    assert gpu[kind + "_sectors"] > EXCESS * of(document, kind, "ideal_sectors_per_request")


def timed():
    """Some f32 shapes that were timed, of each kind."""
    shapes = {
        "copy": ["8192x8192"], "flip": ["8192x8192"],
        "transpose": ["8192x8192", "8191x8209"],
        "add": ["8192x8192 8192x8192", "16777216x3 16777216x3"],
        "matmul": ["256x256 256x256", "4096x33x33 4096x33x33"],
    }
    with open(RESULTS / "kernels_h200.json", encoding="utf-8") as file:
        rows = [row for row in json.load(file)["results"] if row["dtype"] == "f32"]
    for op, of_op in shapes.items():
        for shape in of_op:
            times = {row["variant"]: row for row in rows if (row["op"], row["shape"]) == (op, shape)}
            yield op, shape, times


@pytest.mark.parametrize("op,shape,times", timed(), ids=lambda value: str(value)[:24])
def test_no_advice_makes_a_kernel_slower(daemon, op, shape, times):
    kernels = daemon.get("/v1/kernels").json()["kernels"]
    plain = [k["name"] for k in kernels if k["op"] == op and "sim:0" in k["devices"]]
    total = {name: row["median_us"] + row.get("prepare_us", 0) for name, row in times.items()}
    best = min(total[name] for name in plain if name in total)
    for kernel in sorted(set(plain) & set(times)):
        document = explain(daemon, op, kernel, "f32", shape)
        named = re.search(r"kernel=(\w+)", document["cure"])
        if named and named[1] in total:
            assert total[named[1]] < total[kernel], document["cure"]
        if total[kernel] == best:
            assert not named, document["cure"]
        if op != "matmul" and times[kernel]["percent_of_copy"] >= 92:
            assert document["problem"].startswith(LIMIT), (kernel, document["problem"])
        if op != "matmul" and times[kernel]["percent_of_copy"] < 80:
            assert not document["problem"].startswith(LIMIT), kernel


def test_no_roof_is_broken(daemon):
    """By no time that was measured: of products, in each of which another level of memory is busy."""
    with open(RESULTS / "kernels_h200.json", encoding="utf-8") as file:
        rows = [row for row in json.load(file)["results"] if row["op"] == "matmul"]
    for shape in ("256x256 256x256", "8192x16 16x8192"):
        for row in rows:
            if row["shape"] != shape or row["variant"] in ("nothing", "cublas"):
                continue
            document = explain(daemon, "matmul", row["variant"], row["dtype"], shape)
            roofline = document["totals"]["roofline"]
            if "attainable_gflops" in roofline:
                assert row["gflops"] < 1.02 * roofline["attainable_gflops"], (row, roofline)


# ---- What Nsight Compute saw of each variant at the size of its times: stalls, caches, registers. ----

with open(RESULTS / "counters_h200.json", encoding="utf-8") as results:
    SEEN = json.load(results)["seen"]
# By turns: hit rates of one third, verdicts of another; with GM_ALL=1 both of all.
ALL = os.environ.get("GM_ALL") == "1"
PARTS = [SEEN["rows"] if ALL else SEEN["rows"][i::3] for i in range(2)]
# Hit rates that the model of the caches misses by more, and why.
MISSED = {
    "transpose unaligned f32 8191x8209": "loads that wait for one sector ask L2 for it twice",
    "flip vectorized f32 8192x8192": "the same",
    "matmul warp_tiled f32 1024x1024 1024x1024": "the two halves of L2 each fetch what both need",
    "matmul batched f32 4096x33x33 4096x33x33": "loads that have L2 fetch 256 bytes",
    "matmul naive f32 4096x4096 4096x4096": "blocks of a column stay in step for longer than assumed",
    "matmul tiled f32 16384x64 64x16384": "two blocks of a multiprocessor share L1",
}
POINTS = 10


@functools.cache
def explain_run(daemon, run, gpu):
    op, kernel, dtype, shapes = run.split(" ", 3)
    query = {"format": "json", "gpu": gpu, "kernel": kernel, "dtype": dtype}
    query.update(zip(("shape_a", "shape_b"), shapes.split()))
    return daemon.get(target("/v1/explain/" + op, **query)).ok().json()


def test_hit_rates_are_those_of_nsight(daemon):
    near, far = set(), {}
    for row in PARTS[0]:
        totals = explain_run(daemon, row["run"], SEEN["gpu"])["totals"]
        if "l2_hit_percent" not in totals:
            continue  # the trace was too short
        off = max(abs(totals["l1_hit_percent"] - 100 * row["l1_load_hits"] / row["l1_load_sectors"]),
                  abs(totals["l2_hit_percent"] - 100 * row["l2_read_hits"] / row["l2_read_sectors"]))
        if off <= POINTS:
            near.add(tuple(row["run"].split()[:2]))
        else:
            far[row["run"]] = off
    assert set(far) == set(MISSED) & {row["run"] for row in PARTS[0]}, far
    assert len(near) > (20 if ALL else 8), near


# The kernel asks for more of L1, which leaves less shared memory.
CARVED = {"transpose vectorized f32 8192x8192"}


@pytest.mark.parametrize("row", PARTS[0], ids=lambda row: row["run"])
def test_occupancy_is_that_of_nsight(daemon, row):
    occupancy = explain_run(daemon, row["run"], SEEN["gpu"])["totals"]["occupancy"]
    assert max(16, occupancy["registers_per_thread"]) == row["registers_per_thread"]  # a launch has 16 at least
    if row["run"] not in CARVED:
        assert occupancy["percent"] == pytest.approx(row["occupancy_percent"], abs=1)


def has_more_sectors(daemon, run):
    """Whether Nsight Compute counted more sectors of the kernel than the ideal, in a run that it counted them of."""
    for op, kernel, dtype, shape, gpu in counted():
        if run.split()[:2] == [op, kernel]:
            document = explain(daemon, op, kernel, dtype, shape)
            return any(gpu[kind + "_sectors"] > EXCESS * of(document, kind, "ideal_sectors_per_request")
                       for kind in ("global_load", "global_store"))
    return False


def evidence(daemon, row):
    """What a verdict may say, by what was seen."""
    stalls = {name: part for name, part in row["stalls_percent"].items() if name not in ("selected", "not_selected")}
    waits = max(stalls, key=stalls.get)
    if row["dram_percent"] >= 75:
        yield "memory"
    if waits in ("long_scoreboard", "barrier", "drain"):
        yield "latency"
        if row["dram_percent"] < 90:
            yield "L2"
        if has_more_sectors(daemon, row["run"]):
            yield "sectors"
    if waits in ("mio_throttle", "short_scoreboard", "lg_throttle") or row["lsu_wavefronts_percent"] >= 60:
        yield "wavefronts"
    if row["issue_percent"] >= 50:
        yield "issue"
    if row["issue_percent"] >= 70:
        yield "arithmetic"
    if row["waves"] < 1.2:
        yield "blocks"
    if row["us"] < 8:
        yield "launch"


VERDICTS = [
    ("but memory takes", "memory"), ("but arithmetic takes", "arithmetic"),
    ("Memory is the limit", "memory"), ("bytes that must move take", "memory"), ("bytes that miss the caches take", "memory"),
    ("rate of cuBLAS", "arithmetic"),
    ("multiply-adds take", "arithmetic"), ("wavefronts (passes over the banks)", "wavefronts"), ("sectors of 32 bytes instead", "sectors"),
    ("the grid has", "blocks"), ("launch takes most", "launch"), ("the rest is latency", "latency"), ("latency takes", "latency"),
    ("issuing takes", "issue"), ("the data stage of", "wavefronts"), ("the L2 cache takes", "L2"), ("arithmetic takes", "arithmetic"),
]


# Where the estimate, and so the verdict, is beside what was seen.
UNLIKE = {"matmul register_tiled f32 4096x4096 4096x4096": "compilers load the next tile ahead of its barrier"}


@pytest.mark.parametrize("row", PARTS[1], ids=lambda row: row["run"])
def test_verdicts_are_what_warps_wait_for(daemon, row):
    document = explain_run(daemon, row["run"], "H200")
    if document["cut"]:
        return
    said = next((kind for words, kind in VERDICTS if words in document["problem"].split(", and the bytes that")[0]), None)
    if said == "arithmetic" and "tensor cores" not in document["cure"] and "rate of cuBLAS" in document["problem"]:
        return  # it says no more than what was measured
    if row["run"] in UNLIKE:
        return
    assert said in set(evidence(daemon, row)), (document["problem"], row)
