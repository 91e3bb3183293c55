"""Comparisons: every kernel of an operation on the same operands, what the report says of each,
that its figures agree with each other, and that right results are found to be right."""

import json
import math
import signal
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import formats
import problems
import wire
from daemon import SLOW
from formats import post
from jobs import Threads, all_given_back, gauge, wait_until
from wire import target

OPERANDS = {"transpose": 1, "matmul": 2, "add": 2, "flip": 1}
MOVES = ("transpose", "flip")
# Printed figures have five digits.
ROUNDING = 2e-4

ALWAYS = {"id", "op", "device", "model", "dtype", "shapes", "bytes_min", "flops", "reference",
          "rows", "us"}
SOMETIMES = {"bound", "copy_gbs", "roofline_gflops"}
ROW_ALWAYS = {"op", "kernel", "auto", "baseline", "note", "yardstick"}  # the last: an alias until 0.3
TIMED = {"runs", "kernel_us_min", "kernel_us_median", "effective_gbs", "speed"}
ROW_SOMETIMES = TIMED | {"prepare_us", "percent_of_copy", "gflops", "percent_of_roofline",
                         "accesses", "error", "failure", "estimated_us"}


def close(seen, expected):
    return abs(seen - expected) <= ROUNDING * abs(expected)


def devices(daemon):
    return {device["kind"]: device for device in daemon.get("/v1/devices").json()["devices"]}


def kernels(daemon, op, device, dtype=None):
    rows = daemon.get("/v1/kernels").json()["kernels"]
    return {
        row["name"] for row in rows
        if row["op"] == op and any(name.startswith(device) for name in row["devices"])
        and (dtype is None or dtype in row["dtypes"])
    }


@pytest.fixture(params=["cpu", "sim"])
def device(request, daemon):
    if request.param not in devices(daemon):
        pytest.skip("this build has no such device")
    return request.param


def operands(rng, op, dtype, rows, cols, make=formats.random_numbers):
    if op == "matmul":
        return [make(rng, dtype, (rows, cols)), make(rng, dtype, (cols, rows + 1))]
    return [make(rng, dtype, (rows, cols)) for _ in range(OPERANDS[op])]


def compare(client, op, body, **parameters):
    reply = post(client, f"compare/{op}", body, accept=wire.JSON, **parameters)
    assert reply.status == 200 and reply.media_type == wire.JSON, reply
    report = reply.json()
    check_members(report)
    assert report["op"] == op and report["id"] == reply.header("X-Request-Id")
    assert "total;dur=" in reply.header("Server-Timing")
    return report


def check_members(report):
    assert ALWAYS <= set(report) <= ALWAYS | SOMETIMES, report
    assert set(report["us"]) == {"receive", "decode", "queue", "runs", "check", "total"}
    parts = sum(value for name, value in report["us"].items() if name != "total")
    assert parts <= report["us"]["total"] * 1.01 + 1, report["us"]
    for row in report["rows"]:
        assert ROW_ALWAYS <= set(row) <= ROW_ALWAYS | ROW_SOMETIMES, row
        assert row["yardstick"] == row["baseline"], row  # alias until 0.3
        assert row["note"], row
        for name, value in row.items():
            assert not isinstance(value, float) or math.isfinite(value), (name, row)
    check_order(report["rows"])
    assert sum(row["auto"] for row in report["rows"]) <= 1


def check_order(rows):
    ranks = [
        (2, 0) if "failure" in row
        else (0, row["kernel_us_median"]) if "runs" in row
        else (1, row.get("accesses", {}).get("global_sectors", math.inf))
        for row in rows
    ]
    assert ranks == sorted(ranks), rows


def check_figures(report):
    """What follows from the times follows from them."""
    timed = [row for row in report["rows"] if "runs" in row]
    own = [row["kernel_us_median"] for row in timed if not row["baseline"]]
    for row in timed:
        us = row["kernel_us_median"]
        assert 0 < row["kernel_us_min"] <= us and row["runs"] >= 1
        # Times are printed to the nanosecond, rates made from what was measured.
        slack = 1 + ROUNDING + 1e-3 / us
        assert report["bytes_min"] / us / 1e3 / slack <= row["effective_gbs"]
        assert row["effective_gbs"] <= report["bytes_min"] / us / 1e3 * slack
        assert close(row["percent_of_copy"], 100 * row["effective_gbs"] / report["copy_gbs"])
        assert (row["gflops"] > 0) if report["flops"] and not row["baseline"] else "gflops" not in row
        slack *= 1 + ROUNDING + 1e-3 / min(own)
        assert min(own) / us / slack <= row["speed"] <= min(own) / us * slack
        computes = report["flops"] > 0 and not row["baseline"]
        assert row.get("gflops", 0) > 0 if computes else "gflops" not in row
        if "percent_of_roofline" in row:
            assert close(row["percent_of_roofline"],
                         100 * row["gflops"] / report["roofline_gflops"])


def check_right(report, verdict):
    for row in report["rows"]:
        if "failure" in row:
            assert row["failure"]["code"] == "kernel_unavailable", row
            assert "error" not in row and "runs" not in row
        else:
            expected = "exact" if row["baseline"] else verdict
            assert row["error"]["verdict"] == expected, row
            assert row["error"]["wrong"] == 0 and "first" not in row["error"], row
            assert row["error"].get("worst", 0) <= 1, row


def verdict_of(op, dtype):
    return "within" if op == "matmul" and dtype in formats.FLOATS else "exact"


# Every operation, type and format.


@pytest.mark.parametrize("dtype", formats.NUMPY)
@pytest.mark.parametrize("op", OPERANDS)
def test_every_kernel_is_compared_and_right(daemon, device, rng, op, dtype):
    if op not in MOVES and dtype not in formats.ARITHMETIC:
        pytest.skip("not a type of numbers that are computed with")
    make = formats.random_bits if op in MOVES else formats.random_numbers
    with daemon.client(timeout=120) as client:
        for rows, cols in ((33, 65), (1, 1), (3, 40), (40, 3)):
            arrays = operands(rng, op, dtype, rows, cols, make)
            body = formats.encode("raw", dtype, *arrays)
            report = compare(client, op, body, device=device, repeat=2)
            assert report["dtype"] == dtype and report["device"].startswith(device)
            assert report["reference"]["against"] == "reference"
            check_right(report, verdict_of(op, dtype))
            seen = [row["kernel"] for row in report["rows"] if row["op"] == op]
            assert len(seen) == len(set(seen))
            assert set(seen) == kernels(daemon, op, device)
            copies = {row["kernel"] for row in report["rows"] if row["op"] == "copy"}
            assert copies == (kernels(daemon, "copy", device) if op in MOVES else set())
            if device != "sim":
                check_figures(report)


@pytest.mark.parametrize("op", OPERANDS)
def test_every_format_of_a_body(daemon, rng, op):
    arrays = operands(rng, op, "f32", 9, 7)
    with daemon.client() as client:
        for fmt in formats.FORMATS:
            report = compare(client, op, formats.encode(fmt, "f32", *arrays))
            check_right(report, verdict_of(op, "f32"))
            assert report["shapes"]["a"] == [9, 7]


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((5, 0), (0, 3)), ((2, 0, 3), (3, 4))])
def test_nothing_to_do(daemon, device, shapes):
    arrays = [np.zeros(shape, "<f4") for shape in shapes]
    with daemon.client() as client:
        report = compare(client, "matmul", formats.encode("npy", "f32", *arrays), device=device)
        check_right(report, "within")
        report = compare(client, "transpose", formats.encode("npy", "f32", arrays[0]), device=device)
        check_right(report, "exact")
        assert all("runs" not in row for row in report["rows"]), "what never ran has no time"


@pytest.mark.parametrize("dtype", formats.ARITHMETIC)
def test_products_with_everything(daemon, device, rng, dtype):
    a, b, c = (formats.random_numbers(rng, dtype, s) for s in ((3, 17, 9), (5, 17), (9, 5)))
    for fmt in ("npy", "npy-fortran", "raw"):
        body = formats.encode(fmt, dtype, a, b, c)
        with daemon.client(timeout=120) as client:
            report = compare(client, "matmul", body, device=device, transa=1, transb="true",
                             alpha=-3, beta=2, repeat=1)
        check_right(report, verdict_of("matmul", dtype))
        assert report["shapes"] == {"a": [3, 17, 9], "b": [5, 17], "c": [9, 5],
                                    "result": [3, 9, 5]}


@pytest.mark.parametrize("dtype", formats.FLOATS)
@pytest.mark.parametrize("op", ["matmul", "add"])
def test_nan_and_infinity_are_right_where_they_belong(daemon, device, rng, op, dtype):
    a, b = (formats.random_numbers(rng, dtype, (20, 20)) for _ in "ab")
    for number, value in enumerate((math.nan, math.inf, -math.inf)):
        a[3 + number, 5] = formats.narrow(np.array(value), dtype)
    with daemon.client() as client:
        report = compare(client, op, formats.encode("raw", dtype, a, b), device=device)
    check_right(report, verdict_of(op, dtype))


def test_sums_that_broadcast(daemon, device, rng):
    a = formats.random_numbers(rng, "f32", (4, 9, 7))
    with daemon.client() as client:
        for shape in ((1, 1), (1, 7), (9, 1), (9, 7), (4, 1, 7)):
            b = formats.random_numbers(rng, "f32", shape)
            report = compare(client, "add", formats.encode("npy", "f32", a, b), device=device)
            check_right(report, "exact")


# One kernel, or those that are asked for.


def test_one_kernel(daemon, rng):
    body = formats.encode("raw", "f32", *operands(rng, "matmul", "f32", 33, 65))
    with daemon.client() as client:
        for name in kernels(daemon, "matmul", "cpu", "f32"):
            reply = post(client, "compare/matmul", body, accept=wire.JSON, kernel=name, repeat=7)
            if reply.status == 422:
                problems.check(reply, 422, "kernel_unavailable", name)
                continue
            (row,) = reply.ok().json()["rows"]
            assert row["kernel"] == name and row["runs"] == 7 and row["speed"] == 1
        everything = compare(client, "matmul", body, kernel="auto")
        assert {row["kernel"] for row in everything["rows"]} == kernels(daemon, "matmul", "cpu")
        chosen = post(client, "matmul", body).stats["kernel"]
        assert [row["kernel"] for row in everything["rows"] if row["auto"]] == [chosen]


def test_why_a_kernel_is_missing(daemon, rng):
    body = formats.encode("raw", "f32", *operands(rng, "matmul", "f32", 33, 65))
    with daemon.client() as client:
        report = compare(client, "matmul", body, device="cpu")
    (skinny,) = [row for row in report["rows"] if row["kernel"] == "skinny"]
    assert "at most 8" in skinny["failure"]["detail"]
    assert report["rows"][-1] is skinny


@pytest.mark.parametrize("op", OPERANDS)
def test_estimates_beside_the_times(daemon, rng, op):
    body = formats.encode("raw", "f32", *operands(rng, op, "f32", 33, 65))
    with daemon.client() as client:
        rows = compare(client, op, body, device="cpu")["rows"]
        able = [row for row in rows if "failure" not in row]
        assert len(able) > 1 and all(row["estimated_us"] > 0 for row in able)
        assert all("estimated_us" not in row for row in compare(client, op, body, device="sim")["rows"])


def test_runs(daemon, rng):
    body = formats.encode("raw", "f32", *operands(rng, "add", "f32", 33, 65))
    with daemon.client() as client:
        assert {row["runs"] for row in compare(client, "add", body)["rows"]} == {5}
        for repeat in (1, 2, 40):
            rows = compare(client, "add", body, repeat=repeat)["rows"]
            assert {row["runs"] for row in rows} == {repeat}
            if repeat == 1:
                assert all(row["kernel_us_min"] == row["kernel_us_median"] for row in rows)


# The formats of a report.


def test_for_people(daemon, device, rng):
    body = formats.encode("npy", "f32", *operands(rng, "transpose", "f32", 40, 50))
    with daemon.client() as client:
        reply = post(client, "compare/transpose", body, device=device)
    assert reply.header("Content-Type") == "text/plain; charset=utf-8"
    text = reply.ok().body.decode()
    head, *lines = text.splitlines()
    assert head.startswith(f"transpose of 40x50 f32 on {device}:0 (")
    title = next(line for line in lines if line.startswith("kernel "))
    assert ("time us" in title) == (device != "sim") and ("sectors" in title) == (device == "sim")
    table = lines[lines.index(title):]
    table = table[:table.index("")]
    assert len({len(line) for line in table}) == 1, "columns are aligned"
    assert len(table) == 1 + len(kernels(daemon, "transpose", device)) + len(
        kernels(daemon, "copy", device))
    assert sum(" * " in line for line in table) == 1
    for name in kernels(daemon, "transpose", device):
        assert any(line.startswith(f"{name}: ") for line in lines), f"the idea of {name}"


ACCEPT = [
    (None, None, "text/plain"),
    ("*/*", None, "text/plain"),
    ("text/plain", None, "text/plain"),
    ("application/json", None, wire.JSON),
    ("text/plain;q=0.3, application/json;q=0.4", None, wire.JSON),
    ("text/html, */*;q=0.1", None, "text/plain"),
    ("text/plain", "json", wire.JSON),
    ("application/json", "text", "text/plain"),
    ("image/png", "json", wire.JSON),
    ("image/svg+xml", None, "image/svg+xml"),
    (None, "svg", "image/svg+xml"),
]


@pytest.mark.parametrize("accept, fmt, media_type", ACCEPT)
def test_which_format(daemon, accept, fmt, media_type):
    headers = {"Content-Type": wire.JSON, **({"Accept": accept} if accept else {})}
    path = target("/v1/compare/transpose", format=fmt)
    assert daemon.post(path, b"[[1, 2]]", headers).ok().media_type == media_type


@pytest.mark.parametrize("accept", ["text/html", "application/x-npy", "image/png"])
def test_no_such_format(daemon, accept):
    reply = daemon.post("/v1/compare/add", b"{}", {"Content-Type": wire.JSON, "Accept": accept})
    problems.check(reply, 406, "not_acceptable", r"text/plain, application/json and image/svg\+xml")


@pytest.mark.parametrize("op", OPERANDS)
def test_drawing(daemon, op, device):
    """A bar for each kernel that has a result, its name, and how far its result is off."""
    body = formats.npy(np.ones((24, 24), np.float32)) * OPERANDS[op]
    ask = {"Content-Type": "application/x-npy"}
    svg = daemon.post(target("/v1/compare/" + op, device=device, format="svg"), body, ask).ok().body.decode()
    report = daemon.post(target("/v1/compare/" + op, device=device, format="json"), body, ask).ok().json()
    drawing = ElementTree.fromstring(svg)
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    rows = report["rows"]
    for row in rows:
        assert ("copy/" if row["baseline"] else "") + row["kernel"] in texts, (row, texts)
    assert texts.count("no result") == sum("failure" in row for row in rows)
    assert {"time, us"} & set(texts) if device == "cpu" else "sectors of global memory" in texts
    bars = [element for element in drawing.iter("{http://www.w3.org/2000/svg}rect") if element.get("rx")]
    assert len(bars) == 2 * sum("failure" not in row for row in rows)
    assert all(float(bar.get("x")) + float(bar.get("width")) <= 900 for bar in bars)
    assert "<script" not in svg and "http" not in svg.replace("http://www.w3.org/2000/svg", "")


BAD = [
    ("transpose", b"[[1, 2], [3]]", "", 422, "bad_shape", ""),
    ("transpose", b"[[1", "", 400, "bad_json", ""),
    ("transpose", b"[[1]]", "?format=png", 400, "bad_parameter", "text, json and svg"),
    ("transpose", b"[[1]]", "?format=", 400, "bad_parameter", "format"),
    ("transpose", b'{"a": [[1]], "format": "yaml"}', "", 400, "bad_parameter", "text, json and svg"),
    ("transpose", b"[[1]]", "?formt=json", 400, "unknown_parameter", "format"),
    ("transpose", b"[[1]]", "?alpha=2", 400, "bad_parameter", "matmul"),
    ("transpose", b"[[1]]", "?repeat=1001", 400, "bad_parameter", "1000"),
    ("transpose", b"[[1]]", "?device=abacus", 422, "device_unavailable", "cpu:0"),
    ("transpose", b"[[1, 2], [3, 4]]", "?kernel=blcoked", 422, "kernel_unavailable", "blocked"),
    ("matmul", b"[[1]]", "", 422, "missing_operand", "b"),
    ("add", b"{}", "", 422, "missing_operand", "a"),
    ("transpose", b'{"kernel": "naive"}', "", 422, "missing_operand", "a"),
    ("matmul", b'{"a": [[1, 2]], "b": [[1, 2]]}', "", 422, "bad_shape", "columns"),
    ("matmul", b'{"a": [[1]], "b": [[1]], "dtype": "u8"}', "", 422, "bad_dtype", ""),
    ("add", b'{"a": [[1, 2]], "b": [[1, 2, 3]]}', "", 422, "bad_shape", ""),
    ("flip", b'{"a": [[1]], "b": [[1]]}', "", 422, "extra_operand", ""),
    ("matmul", b"x", "", 415, "unsupported_media_type", ""),
    ("copy", b"[[1]]", "", 404, "not_found", ""),
]


@pytest.mark.parametrize("op, body, query, status, code, detail", BAD)
def test_refused(daemon, op, body, query, status, code, detail):
    problems.check(daemon.post(f"/v1/compare/{op}{query}", body), status, code, detail)


def test_only_posted(daemon):
    reply = daemon.get("/v1/compare/matmul")
    problems.check(reply, 405, "method_not_allowed")
    assert reply.header("Allow") == "POST"


def test_format_is_for_reports(daemon):
    reply = daemon.post("/v1/transpose?format=json", b"[[1]]")
    problems.check(reply, 400, "bad_parameter", "Accept")


# What costs much.


def test_without_a_reference(daemon, rng):
    """Beyond what plain loops can check, results are compared with another kernel's."""
    limit = daemon.get("/v1/stats").json()["limits"]["reference_flops_max"]["value"]
    size = int((limit / 2) ** (1 / 3)) + 16
    arrays = [formats.random_numbers(rng, "f32", (size, size)) for _ in "ab"]
    body = formats.encode("raw", "f32", *arrays)
    others = kernels(daemon, "matmul", "cpu", "f32") - {"naive", "skinny"}
    with daemon.client(timeout=120) as client:
        auto = post(client, "matmul", body).stats["kernel"]
        for name in others:
            report = compare(client, "matmul", body, kernel=name, device="cpu")
            assert report["reference"]["against"] == auto
            rows = {row["kernel"]: row for row in report["rows"]}
            assert set(rows) == {auto, name} and "error" not in rows[auto]
            if name == auto:
                continue
            error = rows[name]["error"]
            assert error["verdict"] == "compared"
            assert 0 <= error["max_relative"] < 1e-4 and error["max_absolute"] < 1


def test_too_many_runs(daemon):
    """Told by the shapes, before any of the body."""
    rows, side = 100000, 1000
    path = target("/v1/compare/matmul", dtype="f32", shape_a=f"{rows}x{side}",
                  shape_b=f"{side}x{side}", repeat=1000, device="cpu")
    length = 4 * side * (rows + side)
    with daemon.raw() as raw:
        raw.send(wire.head("POST", path, f"Content-Type: {wire.RAW}", f"Content-Length: {length}"))
        problems.check(raw.reply(), 422, "cost_limit", "kernel=.*repeat")


def test_a_slow_kernel_is_stopped_and_the_others_are_reported(daemon):
    """Two seconds for all of them: whatever does not end in its part of that is stopped."""
    size, timeout_ms = 1100, int(2000 * SLOW)
    path = target("/v1/compare/matmul", shape_a=f"{size}x{size}", shape_b=f"{size}x{size}",
                  device="cpu", timeout_ms=timeout_ms)
    begun = time.monotonic()
    headers = {"Content-Type": wire.RAW, "Accept": wire.JSON}
    reply = daemon.post(path, bytes(8 * size * size), headers, timeout=120)
    assert reply.status == 200 and time.monotonic() - begun < 3 * timeout_ms * 1e-3, reply
    rows = {row["kernel"]: row for row in reply.json()["rows"]}
    assert "runs" in rows["blocked"] or "failure" in rows["blocked"]
    for row in rows.values():
        assert ("failure" in row) != ("runs" in row), row
        if row.get("failure", {}).get("code") == "cost_limit":
            assert "stopped after" in row["failure"]["detail"]


def slow_comparison(seconds=30):
    """A request whose naive kernel takes long, and is allowed to."""
    size = 2000
    return target("/v1/compare/matmul", shape_a=f"{size}x{size}", shape_b=f"{size}x{size}",
                  dtype="i64", device="cpu", timeout_ms=int(seconds * 1000)), bytes(16 * size * size)


def begin_slow(daemon, raw):
    path, body = slow_comparison()
    raw.send(wire.head("POST", path, f"Content-Type: {wire.RAW}", f"Content-Length: {len(body)}"),
             body)
    wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "a kernel runs")
    time.sleep(0.3)


def test_a_client_that_goes_ends_it(start):
    daemon = start()
    with daemon.raw() as raw:
        begin_slow(daemon, raw)
        assert gauge(daemon, "gemmd_memory_used_bytes") > 0
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == 0, "its memory comes back", 15)
    assert gauge(daemon, "gemmd_jobs_running") == gauge(daemon, "gemmd_queue_depth") == 0


def test_a_drain_ends_it(start):
    daemon = start("--drain-timeout", "300ms")
    with daemon.raw(timeout=60) as raw:
        begin_slow(daemon, raw)
        daemon.signal(signal.SIGTERM)
        reply = raw.reply()
        assert (reply.status, reply.code) == (503, "draining"), reply
    assert daemon.wait() == 0


def test_a_drain_lets_it_finish(start, rng):
    daemon = start()
    body = formats.encode("raw", "f32", *operands(rng, "matmul", "f32", 400, 400))
    threads = Threads()
    with daemon.client(timeout=120) as client:
        threads.go(compare, client, "matmul", body)
        wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "a kernel runs")
        daemon.signal(signal.SIGTERM)
        (report,) = threads.join(60)
    check_right(report, "within")
    assert daemon.wait() == 0


def test_others_are_served_meanwhile(start, rng):
    """Comparisons and single jobs beside each other, and a queue that is always full."""
    daemon = start("--queue-limit", "2")
    array = formats.random_bits(rng, "f64", (60, 50))
    body = formats.encode("npy", "f64", array)

    def transposes():
        served = 0
        with daemon.client(timeout=120) as client:
            for _ in range(40):
                reply = post(client, "transpose", body, kernel="naive")
                if reply.status == 200:
                    assert formats.same_bits(formats.decode(reply, "f64"), formats.transposed(array))
                    served += 1
                else:
                    assert (reply.status, reply.code) == (503, "queue_full"), reply
        return served

    def comparisons():
        served = 0
        with daemon.client(timeout=120) as client:
            for _ in range(10):
                reply = post(client, "compare/flip", body, accept=wire.JSON)
                if reply.status == 200:
                    check_right(reply.json(), "exact")
                    served += 1
                else:
                    assert (reply.status, reply.code) == (503, "queue_full"), reply
        return served

    threads = Threads()
    for _ in range(4):
        threads.go(transposes)
        threads.go(comparisons)
    assert sum(threads.join(120)) > 0
    with daemon.client(timeout=60) as client:
        check_right(compare(client, "flip", body), "exact")
    all_given_back(daemon)


# The simulator's figures, as the textbooks have them.


def test_a_simulated_device_counts_and_times_nothing(daemon, rng):
    if "sim" not in devices(daemon):
        pytest.skip("this build has no simulator")
    body = formats.encode("npy", "f32", formats.random_numbers(rng, "f32", (256, 256)))
    with daemon.client(timeout=120) as client:
        report = compare(client, "transpose", body, device="sim")
    kernels = [row for row in report["rows"] if not row["baseline"]]
    rows = {row["kernel"]: row["accesses"] for row in kernels if "accesses" in row}
    # What has no counts has refused, and says so: a block's shared memory does not hold it whole.
    assert all(row["failure"]["code"] == "kernel_unavailable" for row in kernels if row["kernel"] not in rows)
    assert "vectorized" in rows and "batched" not in rows
    assert all("runs" not in row and "effective_gbs" not in row for row in report["rows"])
    # Loads of 4 sectors per request and stores of 32, where 4 would do for each.
    assert rows["naive"]["global_sectors_ratio"] == 4.5
    assert rows["naive"]["shared_wavefronts"] == 0
    # A store of one wavefront and a load of 32; padded, of one each.
    for name, ratio in (("tiled", 16.5), ("padded", 1)):
        assert rows[name]["global_sectors_ratio"] == 1
        assert rows[name]["shared_wavefronts"] == ratio * rows[name]["shared_wavefronts_ideal"]
        assert rows[name]["barriers"] == 64
    copies = [row["accesses"] for row in report["rows"] if row["baseline"]]
    assert copies and all(row["global_sectors_ratio"] == 1 for row in copies)


def test_too_much_for_a_simulated_device(daemon):
    if "sim" not in devices(daemon):
        pytest.skip("this build has no simulator")
    limit = daemon.get("/v1/stats").json()["limits"]["sim_bytes_max"]["value"]
    rows = limit // 2 // 1024 + 1
    path = target("/v1/compare/flip", device="sim", dtype="u8", shape=f"{rows}x1024")
    with daemon.raw() as raw:
        raw.send(wire.head("POST", path, f"Content-Type: {wire.RAW}",
                           f"Content-Length: {1024 * rows}"))
        problems.check(raw.reply(), 422, "cost_limit", "/v1/explain/flip")


def test_the_account_adds_up(daemon, rng):
    body = formats.encode("raw", "f32", *operands(rng, "matmul", "f32", 200, 200))
    with daemon.client() as client:
        us = compare(client, "matmul", body)["us"]
    parts = sum(value for name, value in us.items() if name != "total")
    assert us["total"] - parts <= 0.2 * us["total"] + 1000 * SLOW, us
    assert us["runs"] > 0 and us["check"] > 0
