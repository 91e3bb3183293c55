"""The account of a reply: that it is complete, that its three copies agree, and that its
figures are true where a client can know the truth."""

import json
import math
import re
import time

import numpy as np
import pytest

import formats
import wire
from daemon import SLOW
from jobs import STAGES, unaccounted_us
from wire import target

T, M = "/v1/transpose", "/v1/matmul"
RAW = {"Content-Type": wire.RAW}

TYPES = {
    "id": str, "op": str, "kernel": str, "device": str, "placed": str, "dtype": str, "shapes": dict, "us": dict,
    "batch": int, "concurrent": bool, "doubt": str, "repeat": int, "kernel_us_min": float,
    "kernel_us_median": float, "bytes_min": int, "effective_gbs": float, "copy_gbs": float,
    "percent_of_copy": float, "percent_of_link": float, "flops": float, "gflops": float, "intensity": float, "bound": str,
    "roof": str, "roofline_gflops": float, "percent_of_roofline": float,
}
ALWAYS = ("id", "op", "kernel", "device", "placed", "dtype", "shapes", "us", "bytes_min")
# Printed figures are rounded; ratios of them are compared within this.
ROUNDING = 2e-3


def close(seen, expected):
    return abs(seen - expected) <= ROUNDING * abs(expected) + 1e-6


def check_members(stats):
    assert set(stats) <= set(TYPES), set(stats) - set(TYPES)
    assert set(ALWAYS) <= set(stats), set(ALWAYS) - set(stats)
    for name, value in stats.items():
        kind = (int, float) if TYPES[name] is float else TYPES[name]
        assert isinstance(value, kind) and (TYPES[name] is bool or value is not True), name
    assert set(stats["us"]) <= {*STAGES, "total"}, stats["us"]
    assert "total" in stats["us"]
    for stage, value in stats["us"].items():
        assert isinstance(value, (int, float)) and 0 <= value < 1e9 * SLOW, (stage, value)
    assert stats.get("concurrent", True) is True, "absent, not false"
    for name in ("copy_gbs", "effective_gbs", "percent_of_copy", "roofline_gflops"):
        assert stats.get(name, 1) > 0, f"{name}: absent, not zero"


def matmul(daemon, m, k, n, dtype="f32", accept=None, c=False, **parameters):
    sizes = {"shape_a": f"{m}x{k}", "shape_b": f"{k}x{n}", "shape_c": f"{m}x{n}" if c else None}
    size = np.dtype(formats.NUMPY[dtype]).itemsize
    body = bytes(size * (m * k + k * n + (m * n if c else 0)))
    headers = {**RAW, **({"Accept": accept} if accept else {})}
    return daemon.post(target(M, dtype=dtype, **sizes, **parameters), body, headers).ok()


def transpose(daemon, rows, cols, dtype="f32", accept=None, **parameters):
    body = bytes(np.dtype(formats.NUMPY[dtype]).itemsize * rows * cols)
    headers = {**RAW, **({"Accept": accept} if accept else {})}
    path = target(T, dtype=dtype, shape=f"{rows}x{cols}", **parameters)
    return daemon.post(path, body, headers).ok()


def server_timing(reply):
    """The header as its grammar has it: names and their parameters."""
    entries = {}
    for entry in reply.header("Server-Timing").split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        assert re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name), name
        assert name not in entries, name
        entries[name] = {}
        for parameter in parameters:
            match = re.fullmatch(r'([0-9A-Za-z]+)=("[^"]*"|[^\s";,]+)', parameter)
            assert match and match[1] not in entries[name], parameter
            entries[name][match[1]] = match[2]
    return entries


@pytest.mark.parametrize("accept", [wire.JSON, wire.NPY, wire.RAW])
@pytest.mark.parametrize("ask, sizes", [(transpose, (65, 33)), (matmul, (65, 33, 31))])
def test_members(daemon, ask, sizes, accept):
    reply = ask(daemon, *sizes, accept=accept)
    stats = reply.stats
    check_members(stats)
    assert stats["op"] == ask.__name__ and stats["dtype"] == "f32"
    assert "\n" not in reply.header("Gemmd-Stats")
    if accept == wire.JSON:
        assert reply.json()["stats"] == stats
        assert set(reply.json()) == {"shape", "dtype", "data", "stats"}


@pytest.mark.parametrize("dtype", formats.NUMPY)
def test_members_for_every_type(daemon, dtype):
    stats = transpose(daemon, 9, 7, dtype).stats
    check_members(stats)
    assert stats["dtype"] == dtype
    if dtype in formats.ARITHMETIC:
        stats = matmul(daemon, 9, 7, 5, dtype).stats
        check_members(stats)
        assert stats["dtype"] == dtype


@pytest.mark.parametrize("rows, cols", [(0, 0), (0, 5), (1, 1)])
def test_members_of_next_to_nothing(daemon, rows, cols):
    for reply in (transpose(daemon, rows, cols), matmul(daemon, rows, cols, rows)):
        check_members(reply.stats)


def test_server_timing_agrees(daemon):
    reply = matmul(daemon, 65, 64, 63)
    timing, us = server_timing(reply), reply.stats["us"]
    assert set(timing) == set(us)
    for name, value in us.items():
        # Milliseconds with at least the microsecond shown.
        assert abs(float(timing[name]["dur"]) * 1000 - value) <= 1.0, name


def test_names_are_those_that_the_lists_have(daemon):
    kernels = {(k["op"], k["name"]) for k in daemon.get("/v1/kernels").json()["kernels"]}
    devices = {d["name"]: d for d in daemon.get("/v1/devices").json()["devices"]}
    for reply in (transpose(daemon, 65, 33), matmul(daemon, 65, 33, 31)):
        stats = reply.stats
        assert stats["device"] in devices
        # A transpose that only renames its axes is honestly called a copy.
        assert {(stats["op"], stats["kernel"]), ("copy", stats["kernel"])} & kernels
        again = transpose(daemon, 9, 9, device=stats["device"])
        assert again.stats["device"] == stats["device"]


def test_shapes(daemon):
    def shapes(path, *arrays, **parameters):
        body = formats.encode("npy", "f32", *(np.zeros(shape, "<f4") for shape in arrays))
        return daemon.post(target(path, **parameters), body.data, body.headers).ok().stats["shapes"]

    assert shapes(T, (2, 3)) == {"a": [2, 3], "result": [3, 2]}
    assert shapes(T, (7,)) == {"a": [1, 7], "result": [7, 1]}
    assert shapes(T, ()) == {"a": [1, 1], "result": [1, 1]}
    assert shapes(T, (4, 2, 3)) == {"a": [4, 2, 3], "result": [4, 3, 2]}
    expected = {"a": [2, 3], "b": [3, 4], "c": [2, 4], "result": [2, 4]}
    assert shapes(M, (2, 3), (3, 4), (2, 4)) == expected
    expected = {"a": [5, 2, 3], "b": [3, 4], "result": [5, 2, 4]}
    assert shapes(M, (5, 2, 3), (3, 4)) == expected
    expected = {"a": [3, 2], "b": [3, 4], "result": [2, 4]}
    assert shapes(M, (3, 2), (3, 4), transa=1) == expected


# Figures that a client can work out.


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (65, 33, 31), (2, 1000, 3), (3, 0, 4)])
@pytest.mark.parametrize("c", [False, True])
def test_bytes_flops_and_intensity_of_products(daemon, dtype, m, k, n, c):
    stats = matmul(daemon, m, k, n, dtype, c=c).stats
    size = np.dtype(formats.NUMPY[dtype]).itemsize
    assert stats["bytes_min"] == size * (m * k + k * n + (2 if c else 1) * m * n)
    assert stats["flops"] == 2 * m * k * n
    assert close(stats["intensity"], stats["flops"] / stats["bytes_min"])


def test_bytes_and_flops_of_stacks(daemon):
    body = formats.encode("npy", "f32", np.zeros((5, 2, 3), "<f4"), np.zeros((3, 4), "<f4"))
    stats = daemon.post(M, body.data, body.headers).ok().stats
    assert stats["bytes_min"] == 4 * (5 * 2 * 3 + 3 * 4 + 5 * 2 * 4)
    assert stats["flops"] == 2 * 5 * 2 * 3 * 4


def test_what_is_not_read_is_not_counted(daemon):
    """beta = 0 does not read c, alpha = 0 neither a nor b."""
    assert matmul(daemon, 8, 8, 8, c=True, beta=0).stats["bytes_min"] == 4 * 3 * 64
    assert matmul(daemon, 8, 8, 8, c=True, alpha=0).stats["bytes_min"] == 4 * 2 * 64


@pytest.mark.parametrize("dtype", formats.NUMPY)
def test_bytes_of_transposes(daemon, dtype):
    size = np.dtype(formats.NUMPY[dtype]).itemsize
    stats = transpose(daemon, 97, 101, dtype).stats
    assert stats["bytes_min"] == 2 * size * 97 * 101
    assert stats.get("flops", 0) == 0 and "gflops" not in stats


@pytest.mark.parametrize("ask, sizes", [(transpose, (701, 503)), (matmul, (301, 203, 101))])
def test_rates_follow_from_times(daemon, ask, sizes):
    stats = ask(daemon, *sizes).stats
    seconds = stats["us"]["kernel"] / 1e6
    assert close(stats["effective_gbs"], stats["bytes_min"] / seconds / 1e9)
    assert close(stats["percent_of_copy"], 100 * stats["effective_gbs"] / stats["copy_gbs"])
    if "gflops" in stats:
        assert close(stats["gflops"], stats["flops"] / seconds / 1e9)


def test_small_figures_keep_their_digits(daemon):
    """The rates of a job of a few bytes are small, but they were measured: not rounded to
    nothing. Three digits at least."""
    for reply in (transpose(daemon, 1, 1), matmul(daemon, 1, 1, 1), matmul(daemon, 1, 1, 1, "f64")):
        stats = reply.stats
        kernel_s = stats["us"]["kernel"] / 1e6
        for name, expected in (
            ("effective_gbs", stats["bytes_min"] / kernel_s / 1e9),
            ("percent_of_copy", 100 * stats["bytes_min"] / kernel_s / 1e9 / stats["copy_gbs"]),
            ("gflops", stats["flops"] / kernel_s / 1e9),
        ):
            if expected:
                assert abs(stats[name] - expected) <= 0.01 * expected, (name, stats)


def test_roofline(daemon):
    """The lower of two ceilings: what memory can feed, and what arithmetic can do."""
    device = daemon.get("/v1/devices").json()["devices"][0]
    peak = device["peaks"]["f32"]["gflops"]
    for m, k, n in ((500, 1, 500), (300, 300, 300)):
        stats = matmul(daemon, m, k, n).stats
        assert close(stats["copy_gbs"], device["copy_gbs"])
        fed = stats["flops"] / stats["bytes_min"] * device["copy_gbs"]
        if fed < peak:
            assert stats["bound"] == "memory" and close(stats["roofline_gflops"], fed)
        else:
            assert stats["bound"] == "compute" and close(stats["roofline_gflops"], peak)
            assert stats["roof"] == device["peaks"]["f32"]["roof"]
        share = 100 * stats["gflops"] / stats["roofline_gflops"]
        assert close(stats["percent_of_roofline"], share)
    stats = transpose(daemon, 500, 500).stats
    assert stats["bound"] == "memory" and stats["roof"]
    if "percent_of_roofline" in stats:
        assert close(stats["percent_of_roofline"], stats["percent_of_copy"])


# Times.


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: transpose(d, 33, 31),
        lambda d: transpose(d, 1200, 1100),
        lambda d: matmul(d, 200, 200, 200, "f64"),
        lambda d: matmul(d, 30, 20, 10, "f64", accept=wire.JSON),
        lambda d: transpose(d, 700, 600, accept=wire.JSON),
    ],
    ids=["small transpose", "transpose", "product", "small JSON", "large JSON"],
)
def test_parts_add_up_to_the_total(daemon, ask):
    """Never more than the total, but for the rounding of nine printed numbers. What is missing
    is the bookkeeping between the stages: some calls of clock_gettime, a queue's mutex, the
    making of a task. That is tens of microseconds on any machine; 150 are allowed (more for
    sanitizers). A machine may take the processor away in between, so the best of ten counts;
    a stage that nobody measures would be missing from all ten."""
    gaps = [unaccounted_us(ask(daemon).stats) for _ in range(10)]
    assert min(gaps) >= -5, gaps
    assert min(gaps) <= 150 * SLOW, gaps


def test_total_is_within_the_clients_wall_clock(daemon):
    with daemon.client() as client:
        for size in (10, 100, 1000):
            body = bytes(4 * size * size)
            began = time.perf_counter()
            reply = client.post(target(T, shape=f"{size}x{size}"), body, RAW).ok()
            wall_us = (time.perf_counter() - began) * 1e6
            assert 0 < reply.stats["us"]["total"] <= wall_us + 1


def test_receive_is_the_time_of_the_upload(daemon):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T + "?shape=1x4", f"Content-Type: {wire.RAW}",
                           "Content-Length: 16"), bytes(8))
        time.sleep(0.2)
        raw.send(bytes(8))
        us = raw.reply().ok().stats["us"]
    assert 190_000 <= us["receive"] <= us["total"]
    assert us["total"] - us["receive"] < 190_000 * SLOW


def test_kernel_time_grows_with_the_work(daemon):
    """A cube of twice the size is eight times the work; asked for twice the time at least."""
    def best(size):
        stats = [matmul(daemon, size, size, size, kernel="naive").stats for _ in range(5)]
        return min(each["us"]["kernel"] for each in stats)

    assert best(256) > 2 * best(128) > 0


def test_decode_and_encode_are_measured_for_text(daemon, rng):
    array = formats.random_numbers(rng, "f64", (200, 300))
    body = formats.encode("json-nested", "f64", array)
    us = daemon.post(T, body.data, body.headers).ok().stats["us"]
    assert us["decode"] > 0 and us["encode"] > 0


def test_prepare_is_the_rearranging_of_operands(daemon, rng):
    """Not measured, and so not there, where nothing was rearranged."""
    arrays = [formats.random_numbers(rng, "i32", (2, 40, 40)) for _ in "ab"]
    plain = formats.encode("npy", "i32", *arrays)
    assert daemon.post(M, plain.data, plain.headers).ok().stats["us"].get("prepare", 0) == 0
    fortran = formats.encode("npy-fortran", "i32", *arrays)
    reply = daemon.post(M + "?kernel=naive", fortran.data, fortran.headers).ok()
    assert reply.stats["us"]["prepare"] > 0


# Repeat.


def test_repeat(daemon):
    stats = matmul(daemon, 65, 64, 63, repeat=20).stats
    check_members(stats)
    assert stats["repeat"] == 20
    assert 0 < stats["kernel_us_min"] <= stats["kernel_us_median"]
    assert stats["us"]["kernel"] == stats["kernel_us_median"]
    assert "concurrent" not in stats
    # All the runs are in the total, though only one is in the parts.
    assert stats["us"]["total"] >= 19 * stats["kernel_us_min"]


def test_no_repeat(daemon):
    for parameters in ({}, {"repeat": 1}):
        stats = matmul(daemon, 9, 9, 9, **parameters).stats
        assert not {"repeat", "kernel_us_min", "kernel_us_median"} & set(stats)


def test_repeat_does_not_change_the_result(daemon, rng):
    """Not even where the result is added to: every run starts from the same operands."""
    arrays = [formats.random_numbers(rng, "f32", (33, 33)) for _ in "abc"]
    body = formats.encode("npy", "f32", *arrays)
    path = target(M, alpha=2, beta=3)
    once, often = (
        daemon.post(path + more, body.data, body.headers).ok().body for more in ("", "&repeat=7")
    )
    assert once == often


# Identity.

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OWN_ID = re.compile(r"[0-9A-Za-z._-]{8,64}")


@pytest.mark.parametrize(
    "headers, expected",
    [
        ({"X-Request-Id": "my-id_1.2"}, "my-id_1.2"),
        ({"X-Request-Id": "a"}, "a"),
        ({"X-Request-Id": "a" * 64}, "a" * 64),
        ({"X-Request-Id": "a" * 65}, None),
        ({"X-Request-Id": "with space"}, None),
        ({"X-Request-Id": "semi;colon"}, None),
        ({"X-Request-Id": 'quote"'}, None),
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, TRACE),
        ({"TraceParent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-Request-Id": "mine"}, TRACE),
        ({"traceparent": f"cc-{TRACE}-00f067aa0ba902b7-01-what-will-be"}, TRACE),
        ({"traceparent": f"cc-{TRACE}-00f067aa0ba902b7-01.what"}, None),
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01-no"}, None),
        ({"traceparent": f"ff-{TRACE}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, None),
        ({"traceparent": f"00-{TRACE.upper()}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": f"00-{TRACE[1:]}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-0x"}, None),
        ({"traceparent": "bad", "X-Request-Id": "mine"}, "mine"),
    ],
)
def test_request_id(daemon, headers, expected):
    reply = daemon.post(T, b"[[1]]", headers).ok()
    request_id = reply.header("X-Request-Id")
    if expected is None:
        assert OWN_ID.fullmatch(request_id), request_id
        assert not any(request_id in value for value in headers.values()), request_id
    else:
        assert request_id == expected
    assert reply.stats["id"] == request_id
    assert reply.json()["stats"]["id"] == request_id


def test_every_reply_has_an_id_of_its_own(daemon):
    seen = set()
    with daemon.client() as client:
        for method, path, body in 5 * [
            ("POST", T, b"[[1]]"), ("POST", T, b"[["), ("GET", T, None), ("GET", "/none", None),
            ("HEAD", "/healthz", None),
        ]:
            seen.add(client.request(method, path, body).header("X-Request-Id"))
        for path in ("/v1/kernels", "/v1/devices", "/v1/stats", "/metrics", "/healthz", "/readyz"):
            seen.add(client.get(path).header("X-Request-Id"))
    assert None not in seen and len(seen) == 31


def test_statistics_are_json_that_any_reader_takes(daemon):
    """No NaN, no infinity, no number that a double cannot hold."""
    def refuse(constant):
        raise AssertionError(constant)

    for reply in (transpose(daemon, 0, 5), matmul(daemon, 3, 0, 4), matmul(daemon, 0, 0, 0)):
        stats = json.loads(reply.header("Gemmd-Stats"), parse_constant=refuse)
        assert all(math.isfinite(v) for v in stats.values() if isinstance(v, float))
