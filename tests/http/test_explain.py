"""GET and POST /v1/explain/{op}: what a student, and a program, read of a kernel's accesses."""

import functools
import math
import re
import time
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import formats
import problems
from daemon import SLOW
from wire import JSON, PROBLEM, RAW, head, target

OPS = ("transpose", "matmul", "add", "flip", "copy")
SVG = "image/svg+xml"
TEXT = "text/plain"


@functools.cache
def fetched(daemon, path):
    return daemon.get(path)


def explain(daemon, op, method="GET", body=None, headers=None, **parameters):
    """What is only read is asked for once: the same request has the same report (test_explain_bounds.py)."""
    path = target(f"/v1/explain/{op}", **parameters)
    return fetched(daemon, path) if method == "GET" and not headers else daemon.request(method, path, body, headers)


def report(daemon, op, **parameters):
    reply = explain(daemon, op, format="json", **parameters).ok()
    assert reply.media_type == JSON
    return reply.json()


def text(daemon, op, **parameters):
    reply = explain(daemon, op, **parameters).ok()
    assert reply.header("Content-Type") == "text/plain; charset=utf-8"
    return reply.body.decode("utf-8")


def sites(document, kind, memory=None):
    found = [s for s in document["sites"] if s["kind"] == kind and memory in (None, s["memory"])]
    assert found, (kind, memory, [(s["kind"], s["memory"]) for s in document["sites"]])
    return found


def simulated_kernels(daemon, op):
    """The names of an op's kernels, and of each an element type that it takes: f32 if it can."""
    kernels = daemon.get("/v1/kernels").json()["kernels"]
    return [(k["name"], "f32" if "f32" in k["dtypes"] else k["dtypes"][0])
            for k in kernels if k["op"] == op and "sim:0" in k["devices"]]


# Figures of the textbook, derived by hand for 4-byte elements and warps of 32.


def test_naive_transpose_stores_with_a_stride(daemon):
    document = report(daemon, "transpose", kernel="naive")
    (load,) = sites(document, "global_load", "a")
    (store,) = sites(document, "global_store", "result")
    assert (load["sectors_per_request"], load["ideal_sectors_per_request"]) == (4, 4)
    assert (store["sectors_per_request"], store["ideal_sectors_per_request"]) == (32, 4)
    assert load["requests"] == store["requests"] == 1024 * 1024 / 32
    assert store["bytes_useful"] == 4 * 1024 * 1024
    assert store["bytes_moved"] == 8 * store["bytes_useful"]
    totals = document["totals"]
    assert totals["global_sectors_min"] == 2 * 4 * 1024 * 1024 / 32
    assert totals["global_sectors"] == 36 * 32768
    assert totals["global_sectors_ratio"] == 4.5
    assert totals["shared_wavefronts"] == 0 and totals["barriers"] == 0


def test_unpadded_tile_has_bank_conflicts(daemon):
    document = report(daemon, "transpose", kernel="tiled")
    for site in sites(document, "global_load") + sites(document, "global_store"):
        assert site["sectors_per_request"] == 4
    for site in sites(document, "shared_store"):
        assert site["wavefronts_per_request"] == 1
    for site in sites(document, "shared_load"):
        assert (site["wavefronts_per_request"], site["ideal_wavefronts_per_request"]) == (32, 1)
    assert document["totals"]["global_sectors_ratio"] == 1
    assert document["totals"]["barriers_per_block"] == 1


def test_padding_cures_it(daemon):
    document = report(daemon, "transpose", kernel="padded")
    for site in sites(document, "shared_load") + sites(document, "shared_store"):
        assert site["wavefronts_per_request"] == 1
    assert document["totals"]["shared_wavefronts"] == document["totals"]["shared_wavefronts_ideal"]


@pytest.mark.parametrize("op, kernel, parameters", [
    ("matmul", "naive", {"shape": "4096x4096"}), ("matmul", "vector_loads", {"shape": "4096x4096"}), ("matmul", "warp_tiled", {"shape": "4096x4096"}),
    ("matmul", "double_buffered", {"shape": "4096x4096"}), ("matmul", "multistage", {"shape_a": "128x4096", "shape_b": "4096x256"}),
    ("matmul", "register_tiled", {"shape": "1000x1000", "dtype": "f16"}), ("matmul", "register_tiled", {"shape": "1000x1000", "dtype": "i32"}),
    ("transpose", "naive", {"shape": "4096x4096", "dtype": "u8"}), ("transpose", "unaligned", {"shape": "4096x4096", "dtype": "u8"}),
    ("transpose", "vectorized", {"shape": "1000x1001", "dtype": "c128"}), ("transpose", "naive", {"shape": "4096x4096", "gpu": "T4"}),
    ("add", "float3", {"shape": "100000x3"})])
def test_advice_does_not_lead_back(daemon, op, kernel, parameters):
    seen = []
    while kernel:
        assert kernel not in seen, (*seen, kernel)
        seen.append(kernel)
        found = re.search(r"kernel=(\w+)", report(daemon, op, kernel=kernel, **parameters)["cure"])
        kernel = found and found[1]


def test_waste_is_no_less_on_a_gpu_whose_cache_nobody_measured(daemon):
    for gpu in ("T4", "B200", "RTX 3090", "RTX 5090"):
        naive, tiled = (report(daemon, "transpose", kernel=kernel, gpu=gpu, shape="4096x4096")["totals"]["estimate"] for kernel in ("naive", "padded"))
        assert naive["bound"] == "l2" and naive["us"] > 2 * tiled["us"], gpu


def test_array_of_structures(daemon):
    document = report(daemon, "add", kernel="float3", shape="100000x3", shape_b="100000x3")
    for site in sites(document, "global_load"):
        assert site["sectors_per_request"] == pytest.approx(12, rel=0.001)
        assert site["ideal_sectors_per_request"] == pytest.approx(4, rel=0.001)
    assert document["totals"]["global_sectors_ratio"] == pytest.approx(3, rel=0.001)


def test_tiling_divides_the_loads_of_a_product_by_the_tile(daemon):
    """Each element of a and b is loaded n times by the naive kernel, n / 32 times by tiles. The
    naive kernel's warp needs 1 sector of a and 4 of b for each k; the tiled one's 4 and 4 for
    each 32."""
    naive = report(daemon, "matmul", kernel="naive", shape="256x256", shape_b="256x256")
    tiled = report(daemon, "matmul", kernel="tiled", shape="256x256", shape_b="256x256")

    def loads(document):
        found = sites(document, "global_load")
        return sum(site["sectors_per_request"] * site["requests"] for site in found)

    assert loads(naive) == 256 * 256 / 32 * 256 * 5
    assert loads(tiled) == 256 * 256 / 32 * (256 / 32) * 8
    assert tiled["totals"]["executed_intensity"] > 10 * naive["totals"]["executed_intensity"]


# A student's test: the plain text alone.


def test_a_student_sees_what_is_slow_and_why(daemon):
    names = ("naive", "tiled", "padded")
    naive, tiled, padded = (text(daemon, "transpose", kernel=name) for name in names)
    assert re.search(r"store\s+to\s+`result`\s+touches\s+32\s+sectors\s+of\s+32\s+bytes\s+instead\s+of\s+4", naive)
    assert re.search(r"4096\s+bytes apart", naive)
    assert re.search(r"kernel=padded", naive)
    assert re.search(r"load from\s+`tile`\s+takes\s+32\s+wavefronts", tiled)
    assert "32-way bank conflict  <--" in tiled
    assert "kernel=padded" in tiled
    assert "Nothing is wasted" in padded and "conflict  <--" not in padded
    for page in (naive, tiled, padded):
        assert "kernels/cuda/transpose/" in page and "out[" in page


def test_no_place_is_marked_that_no_sentence_tells_of(daemon):
    for op, kernel, shapes in (("matmul", "batched", {"shape_a": "4096x33x33", "shape_b": "4096x33x33"}), ("transpose", "tiled", {}), ("matmul", "naive", {})):
        page, told = text(daemon, op, kernel=kernel, **shapes), report(daemon, op, kernel=kernel, **shapes)["problem"].startswith("kernels/")
        assert page.count("  <--") == told, (kernel, page)
        assert told == (kernel == "tiled")


def test_words_of_places_without_waste(daemon):
    """What is called coalesced is side by side, and one address is one."""
    document = report(daemon, "matmul", kernel="vector_loads")
    load, of_b = sites(document, "global_load", "a"), sites(document, "global_load", "b")
    assert [site["verdict"] for site in load] == ["whole sectors"]  # 32 bytes of each of 16 rows
    assert [site["verdict"] for site in of_b] == ["coalesced"]
    assert sites(document, "shared_load", "tile_a")[0]["verdict"] == "broadcast"  # two addresses
    for kernel, verdict in (("naive", "one address"), ("dynamic_tile", "coalesced")):
        assert sites(report(daemon, "matmul", kernel=kernel), "global_load", "a")[0]["verdict"] == verdict
    (both,) = sites(report(daemon, "matmul", kernel="dynamic_tile"), "shared_load")  # two loads of one line
    assert both["verdict"] == "no conflict"


def test_drawings_say_what_a_store_moves_and_wide_accesses_take(daemon):
    page = explain(daemon, "transpose", kernel="naive", format="svg").ok().body.decode()
    assert ">is written</text>" in page and "fetched is used</text>" in page
    page = explain(daemon, "transpose", kernel="padded", dtype="c128", format="svg").ok().body.decode()
    assert ">for 16 bytes a lane</text>" in page
    assert ">fewer as vectors</text>" in explain(daemon, "matmul", kernel="register_tiled", format="svg").ok().body.decode()
    # Of a conflict that some warps have, one that has it is drawn.
    page = explain(daemon, "transpose", kernel="padded", dtype="f16", format="svg").ok().body.decode()
    drawn = re.search(r"-way bank conflict</text>.*?</g>", page, re.S)[0]
    assert 'class="k"' in drawn


def test_text_names_every_line_it_tells_of(daemon):
    for op in OPS:
        for kernel, dtype in simulated_kernels(daemon, op):
            narrow = kernel.startswith("float3") or kernel == "skinny"
            shape = "96x3" if narrow else "96x96"
            both = {"shape_b": shape} if op == "add" else {}
            if op == "matmul":
                both = {"skinny": {"shape": "3x96", "shape_b": "96x96"},
                        "split_k_dot": {"shape": "3x96", "shape_b": "96x2"},
                        "batched": {"shape": "4x32x33", "shape_b": "4x33x20"},
                        }.get(kernel, {"shape_b": shape})
            both = {"shape": shape, "dtype": dtype, **both}
            document = report(daemon, op, kernel=kernel, **both)
            page = text(daemon, op, kernel=kernel, **both)
            for site in document["sites"]:
                place = re.escape(site["file"].split("/")[-1])
                assert site["source"] and site["source"] in page, (op, kernel, site)
                assert re.search(rf"^{place}:{site['line']} +{site['kind']} ", page, re.M), (op, kernel)
            assert document["problem"].split()[0] in page


# The document.


@pytest.mark.parametrize("op", OPS)
def test_members(daemon, op):
    document = report(daemon, op)
    assert document["op"] == op and document["dtype"] == "f32" and document["device"] == "sim:0"
    assert document["shape"]["result"] == [1024, 1024]
    assert set(document) - {"measured", "auto"} == {
        "id", "op", "kernel", "device", "shape", "dtype", "problem", "cure", "totals", "sites",
        "launches", "sampled", "cut", "blocks_traced", "blocks"}
    assert document["sites"] and document["launches"]
    for site in document["sites"]:
        check_site(site)
    totals = document["totals"]
    has_arithmetic = op in ("matmul", "add")
    assert ("flops" in totals) == ("intensity" in totals) == has_arithmetic
    assert ("attainable_gflops" in totals["roofline"]) == has_arithmetic
    assert totals["roofline"]["gpu"] == totals["occupancy"]["gpu"] == "H200"
    assert 0 < totals["occupancy"]["percent"] <= 100 and totals["occupancy"]["limited_by"]
    assert ("registers_per_thread" in totals["occupancy"]) != ("note" in totals["occupancy"])
    check_estimate(totals)
    assert 0 < document["blocks_traced"] <= document["blocks"]
    assert document["sampled"] == (document["blocks_traced"] < document["blocks"]) or any(
        launch["steps_sampled"] for launch in document["launches"])


def check_estimate(totals):
    estimate, flight = totals["estimate"], totals["in_flight"]
    parts = estimate["parts_us"]
    assert max(parts.values()) < estimate["us"] - estimate["launch_us"] < sum(parts.values())
    assert parts[estimate["bound"]] > 0 and estimate["waves"] > 0
    assert flight["bytes"] > 0 and flight["requests_per_warp"] >= 1
    assert totals["requests"] > 0 and totals["l2_lines"] > 0
    assert 0 <= totals["l1_hit_percent"] <= 100


def check_site(site):
    shared = site["kind"].startswith("shared")
    unit, size = ("wavefronts", 128) if shared else ("sectors", 32)
    other = "sectors" if shared else "wavefronts"
    assert f"{other}_per_request" not in site
    units, ideal = site[f"{unit}_per_request"], site[f"ideal_{unit}_per_request"]
    assert 0 < ideal <= units, site
    assert site["requests"] > 0 and 0 < site["lanes_per_request"] <= 32
    assert site["bytes_moved"] == pytest.approx(units * size * site["requests"], rel=1e-4)
    assert 0 < site["bytes_useful"] <= site["bytes_moved"]
    assert site["file"].endswith((".cu", ".h")) and site["line"] > 0 and site["memory"]
    addresses = site["example"]["addresses"]
    assert len(addresses) == 32 and any(a is not None for a in addresses)
    assert all(a is None or a >= 0 for a in addresses)
    assert site["example"]["bytes_per_lane"] in (1, 2, 4, 8, 16)


def test_the_examples_are_of_such_requests(daemon):
    """Sectors counted from the addresses of an interior warp are those of the report."""
    document = report(daemon, "transpose", kernel="naive", shape="2048x2048")
    for site in document["sites"]:
        size = site["example"]["bytes_per_lane"]
        sectors = {(a + byte) // 32 for a in site["example"]["addresses"] if a is not None
                   for byte in range(size)}
        assert len(sectors) == site["sectors_per_request"], site


def test_types_and_shapes(daemon):
    document = report(daemon, "transpose", kernel="naive", dtype="f64", shape="3x64x32")
    assert document["shape"] == {"a": [3, 64, 32], "result": [3, 32, 64]}
    assert sites(document, "global_load")[0]["sectors_per_request"] == 8
    document = report(daemon, "copy", dtype="u8", shape="1000x1000")
    assert document["totals"]["bytes_min"] == 2000000
    shapes = {"shape_a": "64x128", "shape_b": "96x128"}
    document = report(daemon, "matmul", **shapes, transb="true", alpha="2")
    assert document["shape"]["result"] == [64, 96]
    assert document["totals"]["flops"] == 2 * 64 * 96 * 128
    document = report(daemon, "matmul", shape="64x64", shape_b="64x64", shape_c="64x64", beta="1")
    assert sites(document, "global_load", "c")
    # An alpha of 0 leaves a and b unread.
    document = report(daemon, "matmul", shape="64x64", shape_b="64x64", alpha="0")
    assert not [s for s in document["sites"] if s["memory"] in ("a", "b")]


def test_nothing_to_do(daemon):
    document = report(daemon, "transpose", shape="0x5")
    assert document["sites"] == [] and document["launches"] == []
    assert "Nothing to improve" in text(daemon, "transpose", shape="0x5")
    xml.fromstring(explain(daemon, "transpose", shape="0x5", format="svg").ok().body)


def test_large_shapes_take_a_second_or_so(daemon):
    for op, kernel in (("transpose", "naive"), ("transpose", "padded"), ("matmul", "tiled")):
        both = {"shape_b": "8192x8192"} if op == "matmul" else {}
        began = time.monotonic()
        document = report(daemon, op, kernel=kernel, shape="8192x8192", **both)
        took = time.monotonic() - began
        assert took < 20 * SLOW, (op, kernel, took)  # a second, where nothing else runs
        assert document["sampled"] and document["blocks_traced"] < document["blocks"]
    full = 8192 * 8192 / 32
    document = report(daemon, "transpose", kernel="naive", shape="8192x8192")
    assert document["totals"]["global_sectors"] == 36 * full  # exact, though from a sample


def test_other_gpus(daemon):
    for name in [gpu["name"] for gpu in daemon.get("/v1/devices").json()["gpus"]]:
        totals = report(daemon, "matmul", shape="256x256", shape_b="256x256", gpu=name)["totals"]
        assert totals["roofline"]["gpu"] == totals["occupancy"]["gpu"] == name
        roof = totals["roofline"]
        assert roof["ridge"] == pytest.approx(roof["peak_gflops"] / roof["dram_gbs"], rel=1e-4)
        of_dram = min(roof["peak_gflops"], totals["intensity"] * roof["dram_gbs"])
        assert roof["attainable_gflops"] <= of_dram * 1.0001
        assert (roof["attainable_gflops"] < of_dram * 0.999) == (
            roof["roof"] in ("l2", "l1_and_shared"))
        assert roof["bound"] == ("compute" if roof["roof"] == "arithmetic" else "memory")
    reply = explain(daemon, "copy", gpu="Voodoo2")
    assert reply.status == 400 and "H200" in reply.json()["detail"]


# What auto takes, and two kernels side by side.


def test_without_kernel_it_is_what_auto_takes_on_the_gpu(daemon):
    document = report(daemon, "transpose", shape="2048x2048")
    assert document["auto"] == {"gpu": "H200", "kernel": "vectorized", "traced": True}
    assert document["kernel"] == "vectorized"
    document = report(daemon, "matmul", shape="4096x4096", dtype="f16", gpu="A100")
    assert document["auto"] == {"gpu": "A100", "kernel": "cublas", "traced": False}
    assert document["kernel"] != "cublas" and document["sites"]
    page = text(daemon, "matmul", shape="4096x4096")
    assert page.startswith("On H200 auto takes split_bf16, which cannot be traced")
    assert "auto" not in report(daemon, "transpose", kernel="naive")


def test_against(daemon):
    document = report(daemon, "transpose", kernel="tiled", against="padded")
    assert (document["kernel"], document["against"]["kernel"]) == ("tiled", "padded")
    assert "l1_and_shared" in document["changed"] and "times as fast" in document["brought"]
    alone = report(daemon, "transpose", kernel="padded")
    assert document["against"]["totals"] == alone["totals"]
    page = text(daemon, "transpose", kernel="tiled", against="padded")
    assert re.search(r"wavefronts of shared memory +1.08134e\+06 +65536", page)
    assert "tiled.cu:" in page and "padded.cu:" in page
    assert "it does not tell them apart" in text(daemon, "matmul", kernel="tiled", against="tiled")
    page = text(daemon, "matmul", kernel="naive", against="tiled", gpu="H200")
    assert "What changes most from naive to tiled: latency," in page and "waves of blocks: " not in page
    page = text(daemon, "matmul", kernel="naive", shape="4096x4096", alpha="0", gpu="H200")
    assert "blocks load nothing" in page and " -0" not in page
    parts = report(daemon, "matmul", kernel="naive", shape="4096x4096", alpha="0", gpu="H200")["totals"]["estimate"]["parts_us"]
    assert parts["instructions"] > 0.8 * parts["l2"], parts  # warps that only store have their first instructions too
    reply = explain(daemon, "transpose", kernel="tiled", against="paded")
    assert reply.status == 422 and "padded" in reply.json()["detail"]
    reply = daemon.post("/v1/transpose?against=padded", b"[[1]]")
    assert reply.status == 400 and "against" in reply.json()["detail"]


@pytest.mark.parametrize("op, kernel, parameters, said, cure", [
    ("matmul", "naive", {"dtype": "f64", "gpu": "rtx4090"}, "arithmetic takes", ""),
    ("matmul", "multistage", {"gpu": "A100"}, "the others are idle", "smaller tiles"),
    ("matmul", "multistage", {"dtype": "i32", "shape": "1000x1000"}, "the others are idle", "smaller tiles"),
    ("matmul", "warp_tiled", {"shape_a": "2176x1024", "shape_b": "1024x1024"}, "some have one block more to do", "smaller tiles"),
    ("copy", "direct", {"shape": "1x1"}, "The launch takes most", "Give one launch more"),
    ("transpose", "tiled", {"shape": "2x2"}, "The launch takes most", "Give one launch more"),
    ("matmul", "naive", {"shape_a": "1x8192", "shape_b": "8192x8192", "gpu": "H200"}, "latency takes", "bytes under way"),
    ("matmul", "naive", {"shape_a": "1x1000000", "shape_b": "1000000x1"}, "", "see kernel=split_k_dot"),
    ("transpose", "padded", {"shape": "2000000x4"}, "", "see kernel=skinny"),
    ("transpose", "unaligned", {"shape": "1000x1000"}, "", "Let blocks overlap"),
    ("add", "float3", {"shape": "1000000x3"}, "", "Stage the records"),
    ("transpose", "unaligned", {"dtype": "u8", "shape": "4096x4096"}, "", "see kernel=vectorized"),
])
def test_what_is_to_blame(daemon, op, kernel, parameters, said, cure):
    document = report(daemon, op, kernel=kernel, **parameters)
    assert said in document["problem"] and cure in document["cure"], (document["problem"], document["cure"])


def test_times_have_no_exponents(daemon):
    for parameters in ({"kernel": "naive", "dtype": "f64", "gpu": "rtx4090"}, {"kernel": "tiled", "gpu": "T4", "shape": "4096x4096"}):
        assert not re.search(r"takes? [^ ]*e\+", report(daemon, "matmul", **parameters)["problem"])


def test_passes_before_a_kernel_are_not_its_time(daemon):
    """What was measured has them, and the figures have not."""
    brought = report(daemon, "add", kernel="float3_soa", shape="16777216x3", shape_b="16777216x3", against="float3")["brought"]
    assert "measured" not in brought or "estimated" in brought, brought


def test_one_shape_is_that_of_all_operands(daemon):
    document = report(daemon, "matmul", kernel="tiled", shape="64x64")
    assert document["shape"]["b"] == [64, 64]
    document = report(daemon, "add", kernel="direct", shape="96x3")
    assert document["shape"] == {"a": [96, 3], "b": [96, 3], "result": [96, 3]}
    document = report(daemon, "matmul", kernel="tiled", shape_a="64x32", shape_b="32x16")
    assert document["shape"]["result"] == [64, 16]


def test_errors_end_with_a_newline(daemon):
    assert explain(daemon, "transpose", kernel="nave").body.endswith(b"}\n")


# Forms.


def test_drawing(daemon):
    reply = explain(daemon, "transpose", kernel="tiled", format="svg").ok()
    assert reply.media_type == SVG
    root = xml.fromstring(reply.body)
    assert root.tag.endswith("}svg") and root.get("viewBox")
    names = {element.tag.split("}")[1] for element in root.iter()}
    assert {"title", "desc", "rect", "text"} <= names
    assert not names & {"script", "image", "a", "use"}
    width, height = (float(root.get(name)) for name in ("width", "height"))
    assert width <= 1480 and height < 900  # one screen, with the cured kernel beside it
    assert "kernel padded" in " ".join(root.itertext())
    for element in root.iter():
        for name in ("x", "y"):
            if element.get(name):
                assert 0 <= float(element.get(name)) <= max(width, height), element.attrib
    words = " ".join(root.itertext())
    assert "32-way bank conflict" in words and "lane" in words and "bank" in words


@pytest.mark.parametrize("accept,fmt", [
    (None, TEXT), ("*/*", TEXT), ("text/*", TEXT), (JSON, JSON), (SVG, SVG),
    ("text/plain;q=0.1, application/json", JSON), ("text/html, image/*;q=0.5, */*;q=0.1", SVG),
])
def test_accept(daemon, accept, fmt):
    headers = {"Accept": accept} if accept else {}
    for method in ("GET", "POST"):
        assert explain(daemon, "flip", method, None, headers, shape="64x64").ok().media_type == fmt


def test_format_is_stronger_than_accept(daemon):
    reply = explain(daemon, "flip", headers={"Accept": "text/html"}, format="json").ok()
    assert reply.media_type == JSON


def test_head(daemon):
    reply = daemon.request("HEAD", "/v1/explain/copy").ok()
    assert reply.body == b"" and int(reply.header("Content-Length")) > 100


def test_timing(daemon):
    timing = explain(daemon, "copy").ok().header("Server-Timing")
    assert "queue;dur=" in timing and "encode;dur=" in timing and "total;dur=" in timing
    assert "kernel;dur" not in timing
    # Two jobs, of which none is time in the queue.
    timing = explain(daemon, "matmul", kernel="tiled", against="naive", shape="2048x2048").ok().header("Server-Timing")
    us = {name: float(dur) for name, dur in re.findall(r"(\w+);dur=([0-9.]+)", timing)}
    assert us["queue"] < us["total"] / 4, timing


def test_what_the_query_says_of_a_named_matrix_must_be_true(daemon):
    assert daemon.request("PUT", "/v1/matrices/w", b"[[1, 2, 3]]").status == 201
    for path in ("/v1/explain/transpose", "/v1/choose/transpose"):
        assert daemon.get(path + "?a=ref:w&format=json").ok().json()["dtype"] == "f32"
        problems.check(daemon.get(path + "?a=ref:w&shape=3x4"), 400, "bad_parameter", "has its own")
        problems.check(daemon.get(path + "?a=ref:w&dtype=f64"), 422, "bad_dtype", "named matrix of f32")
    assert daemon.request("DELETE", "/v1/matrices/w").status == 204


def test_kernels_are_launched_as_on_the_gpu_that_is_asked_for(daemon):
    """Their host code sees its multiprocessors and its shared memory."""
    text = explain(daemon, "transpose", kernel="vectorized", gpu="t4", dtype="f16", shape="8192x8192").ok().body.decode()
    assert "No block" not in text, text
    waves = {}
    for gpu in ("t4", "h200"):
        report = explain(daemon, "add", kernel="grid_stride", gpu=gpu, shape="8192x8192", format="json").ok().json()
        waves[gpu] = report["launches"][0]["blocks"]
    assert waves == {"t4": 40 * 4, "h200": 132 * 8}  # as many as fit at once


def test_products_of_i64_are_arithmetic_too(daemon):
    report = explain(daemon, "matmul", kernel="multistage", dtype="i64", shape="2048x2048", gpu="H200", format="json").ok().json()
    parts = report["totals"]["estimate"]["parts_us"]
    assert parts["arithmetic"] == max(parts.values()) > 1000


def test_measured_times_are_of_the_same_work(daemon):
    """Those of a product are not of one with c, nor those of a transpose of one that is a copy."""
    same = {"kernel": "tiled", "gpu": "H200", "format": "json"}
    assert explain(daemon, "matmul", shape="1024x1024", **same).ok().json()["measured"]["same_shape"] is True
    report = explain(daemon, "matmul", shape="1024x1024", shape_c="1024x1024", beta=1, **same).ok().json()
    assert "measured" not in report
    report = explain(daemon, "matmul", shape="1024x1024", alpha=0, **same).ok().json()
    assert "measured" not in report
    # Those of a shape that is only near are not said to be this one's.
    for shape, measured in (("8192x8192", True), ("6000x6000", False)):
        text = explain(daemon, "transpose", kernel="naive", against="tiled", shape=shape, gpu="H200").ok().body.decode()
        words = " ".join(text.split())
        brought = re.search(r"What it brings: .*?\((\w+) on H200\)", words)
        assert brought and brought[1] == ("measured" if measured else "estimated"), text


# POST: operands as the operation takes them.


@pytest.mark.parametrize("fmt", ("npy", "raw", "json-nested"))
def test_operands_in_a_body(daemon, rng, fmt):
    a, b = (formats.random_numbers(rng, "f64", shape) for shape in ((40, 50), (50, 30)))
    body = formats.encode(fmt, "f64", a, b)
    path = target("/v1/explain/matmul", **{**body.parameters, "kernel": "naive", "format": "json"})
    document = daemon.post(path, body.data, body.headers).ok().json()
    assert document["shape"] == {"a": [40, 50], "b": [50, 30], "result": [40, 30]}
    assert document["dtype"] == "f64" and document["kernel"] == "naive"


def test_a_body_says_the_same_as_its_shapes(daemon, rng):
    a = formats.random_numbers(rng, "f32", (100, 70))
    body = formats.encode("npy", "f32", a)
    path = target("/v1/explain/transpose", kernel="naive", format="json")
    posted = daemon.post(path, body.data, body.headers).ok().json()
    got = report(daemon, "transpose", kernel="naive", shape="100x70")
    for document in (posted, got):
        del document["id"]
        for site in document["sites"]:
            del site["example"]  # of whichever block was there first
    assert posted == got


def test_parameters_in_a_json_body(daemon):
    body = b'{"a": [[1, 2], [3, 4]], "kernel": "naive", "format": "json", "gpu": "T4"}'
    document = daemon.post("/v1/explain/transpose", body).ok().json()
    assert document["kernel"] == "naive" and document["totals"]["occupancy"]["gpu"] == "T4"


def test_an_empty_body_is_none(daemon):
    for headers in ({}, {"Content-Type": JSON}, {"Content-Type": "application/x-npy"}):
        reply = daemon.post("/v1/explain/copy?format=json", b"", headers).ok()
        assert reply.json()["shape"]["a"] == [1024, 1024]
    with daemon.raw() as raw:
        raw.send(head("POST", "/v1/explain/copy", "Transfer-Encoding: chunked"), b"0\r\n\r\n")
        assert raw.reply().status == 200


# Errors.


@pytest.mark.parametrize("body,missing", [
    (b'{"b": [[1, 2, 3], [4, 5, 6]]}', "a"),
    (b'{"c": [[1, 2], [3, 4]]}', "a"),
    (b'{"a": [[1, 2], [3, 4]]}', "b"),
])
def test_an_operand_alone(daemon, body, missing):
    """Sizes are assumed where nothing is said of any operand, and not beside what is said."""
    reply = daemon.post("/v1/explain/matmul", body)
    assert (reply.status, reply.code) == (422, "missing_operand")
    assert f"{missing} is missing" in reply.json()["detail"]


@pytest.mark.parametrize("op,parameters,status,code,says", [
    ("transpose", {"kernel": "nave"}, 422, "kernel_unavailable", "naive"),
    ("transpose", {"kernel": "blocked"}, 422, "kernel_unavailable", "naive"),
    ("transpose", {"device": "cpu"}, 422, "device_unavailable", "sim"),
    ("transpose", {"device": "sim:7"}, 422, "device_unavailable", "sim:0"),
    ("transpose", {"format": "pdf"}, 400, "bad_parameter", "svg"),
    ("transpose", {"shape": "3*4"}, 400, "bad_parameter", "RxC"),
    ("transpose", {"shap": "3x4"}, 400, "unknown_parameter", "shape"),
    ("transpose", {"shape_b": "3x4"}, 400, "bad_parameter", "matmul"),
    ("transpose", {"transa": "1"}, 400, "bad_parameter", "matmul"),
    ("matmul", {"shape": "3x4", "shape_b": "5x6"}, 422, "bad_shape", "4"),
    ("matmul", {"dtype": "u8"}, 422, "bad_dtype", "f32"),
    ("add", {"shape": "3x4", "shape_b": "5x4"}, 422, "bad_shape", "3x4"),
    ("copy", {"shape": "1048576x1048576"}, 422, "cost_limit", "1024 GiB"),
    ("copy", {"shape": "99999999999x99999999999"}, 422, "bad_shape", None),
    ("copy", {"shape": "300000x300000"}, 200, None, None),
])
def test_errors(daemon, op, parameters, status, code, says):
    for method in ("GET", "POST"):
        reply = explain(daemon, op, method, **parameters)
        assert reply.status == status, reply
        assert reply.code == code
        assert says is None or says in reply.json()["detail"], reply


def test_no_format_is_acceptable(daemon):
    for method in ("GET", "POST"):
        reply = explain(daemon, "copy", method, headers={"Accept": "text/html"})
        assert reply.status == 406 and SVG in reply.json()["detail"]


def test_methods_and_paths(daemon):
    reply = daemon.request("PUT", "/v1/explain/transpose")
    assert reply.status == 405 and reply.header("Allow") == "GET, HEAD, POST"
    assert daemon.get("/v1/explain").status == 404
    assert daemon.get("/v1/explain/inverse").status == 404


def test_gpu_and_format_are_for_reports(daemon):
    for parameter in ("gpu=T4", "format=json"):
        reply = daemon.post("/v1/transpose?" + parameter, b"[[1]]")
        assert reply.status == 400 and parameter.split("=")[0] in reply.json()["detail"]


# Operations on the device itself.


def test_the_device_computes(daemon, rng):
    for kernel, dtype in simulated_kernels(daemon, "transpose"):
        a = formats.random_bits(rng, dtype, (32, 64))
        body = formats.encode("npy", dtype, a)
        with daemon.client() as client:
            reply = formats.post(client, "transpose", body, device="sim", kernel=kernel).ok()
        assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(a))
        stats = reply.stats
        assert stats["device"] == "sim:0" and stats["kernel"] == kernel
        assert "kernel" not in stats["us"] and "effective_gbs" not in stats
        accesses = stats["accesses"]
        assert accesses["global_sectors"] >= accesses["global_sectors_min"] > 0
        assert accesses["blocks"] > 0 and accesses["warps"] >= accesses["blocks"]


@pytest.mark.parametrize("op, shapes", [
    ("transpose", [(5, 0)]), ("transpose", [(0, 3)]), ("flip", [(0, 5, 5)]),
    ("add", [(5, 0), (5, 0)]), ("matmul", [(5, 3), (3, 0)]), ("matmul", [(0, 3), (3, 4)]),
    ("matmul", [(5, 0), (0, 4)]), ("matmul", [(600, 5, 45), (600, 45, 0)])])
def test_every_kernel_answers_for_matrices_of_nothing(daemon, op, shapes):
    """With the result, or that it is not for such."""
    for kernel, dtype in simulated_kernels(daemon, op) + [("auto", "f32"), ("none", "f32")]:
        empty = [formats.narrow(np.zeros(shape), dtype) for shape in shapes]
        body = formats.encode("npy", dtype, *empty)
        with daemon.client() as client:
            reply = formats.post(client, op, body, device="sim", kernel=kernel)
        assert reply.status == 200 or reply.code in ("kernel_unavailable", "unsupported_type"), (
            kernel, reply.status, reply.body)
        if reply.status == 200 and op == "matmul":
            assert not formats.decode(reply, dtype).any()


def test_runs_are_bounded_and_reports_are_not(daemon):
    """The headers and a byte tell what the rest would cost."""
    path = target("/v1/flip", shape=f"1x{1 << 27}", dtype="u8", device="sim")
    with daemon.raw() as raw:
        raw.send(head("POST", path, f"Content-Type: {RAW}", f"Content-Length: {1 << 27}"), b"x")
        reply = raw.reply()
    assert reply.status == 422 and reply.code == "cost_limit"
    assert "/v1/explain/flip" in reply.json()["detail"]
    report(daemon, "flip", shape=f"1x{1 << 27}", dtype="u8")


def test_the_default_device_is_not_simulated(daemon):
    assert daemon.post("/v1/transpose", b"[[1, 2]]").ok().stats["device"] != "sim:0"
    default = {d["name"]: d["default"] for d in daemon.get("/v1/devices").json()["devices"]}
    assert default["sim:0"] is False


def test_backend_sim(start):
    daemon = start("--backend", "sim")
    stats = daemon.post("/v1/transpose", b"[[1, 2]]").ok().stats
    assert stats["device"] == "sim:0" and stats["accesses"]["global_sectors"] > 0
    assert explain(daemon, "transpose").status == 200
    reply = daemon.post("/v1/transpose?device=cpu", b"[[1, 2]]").ok()
    assert reply.stats["device"] == "cpu:0"


def test_devices_show_what_is_played(daemon):
    document = daemon.get("/v1/devices").json()
    sim = next(d for d in document["devices"] if d["kind"] == "sim")
    assert sim["has_kernel_times"] is False and sim["gpu"]["name"] == "H200"
    assert sim["gpu"]["shared_bytes_per_multiprocessor"] == 228 * 1024
    for gpu in document["gpus"]:
        assert math.isfinite(gpu["dram_gbs"]) and gpu["fp32_gflops"] > 1000, gpu


# In the queue like any other work.


def test_a_deadline(daemon):
    reply = explain(daemon, "matmul", kernel="naive", shape="8192x8192", shape_b="8192x8192",
                    timeout_ms=1)
    assert reply.status in (200, 503)
    if reply.status == 503:
        assert reply.code == "deadline_passed" and reply.media_type == PROBLEM


def test_a_full_queue(start):
    """More explains at once than may wait: some are refused in so many words, none is lost."""
    daemon = start("--queue-limit", "1")
    path = target("/v1/explain/matmul", kernel="tiled", shape="2048x2048", shape_b="2048x2048")
    raws = [daemon.raw(60) for _ in range(8)]
    for raw in raws:
        raw.send(head("GET", path))
    replies = [raw.reply() for raw in raws]
    for raw in raws:
        raw.socket.close()
    assert {reply.status for reply in replies} <= {200, 503}
    assert any(reply.status == 200 for reply in replies)
    for reply in replies:
        if reply.status == 503:
            assert reply.code == "queue_full" and int(reply.header("Retry-After")) >= 1


def test_counted_by_path(start):
    daemon = start()
    explain(daemon, "copy").ok()
    explain(daemon, "copy", "POST").ok()
    answered = daemon.get("/v1/stats").json()["answered"]
    assert answered["/v1/explain/copy"] == 2
    metrics = daemon.get("/metrics").body.decode()
    lines = [line for line in metrics.splitlines() if 'route="/v1/explain/copy"' in line]
    assert len(lines) == 1 and lines[0].endswith(" 2")


def test_warps_of_the_example(daemon):
    """Each warp of the block in its own place: of a transpose, rows of the tile that follow one another."""
    sites = daemon.get("/v1/explain/transpose?kernel=tiled&shape=64x64&format=json").ok().json()["sites"]
    load = next(site for site in sites if site["kind"] == "global_load")
    assert [one["warp"] for one in load["warps"]] == list(range(8))
    assert load["warps"][0] == load["example"]
    for warp, one in enumerate(load["warps"]):
        assert one["block"] == load["example"]["block"]
        assert one["addresses"] == [warp * 64 * 4 + 4 * lane for lane in range(32)]
    stores = [site for site in sites if site["kind"] == "shared_load"]
    assert [one["addresses"][:2] for one in stores[0]["warps"]] == [[4 * warp, 4 * warp + 128] for warp in range(8)]
