"""GET /v1/choose/{op}: what each kernel is estimated to take, also on a GPU that need not be here, and which one is taken."""

import math
import os
import re

import pytest

from daemon import run
from wire import JSON, target

OPS = ("transpose", "matmul", "add", "flip")
PARTS = ("math", "shared", "l2", "dram", "wait")


def choose(daemon, op, **parameters):
    return daemon.request("GET", target(f"/v1/choose/{op}", **parameters))


def report(daemon, op, **parameters):
    reply = choose(daemon, op, format="json", **parameters).ok()
    assert reply.media_type == JSON
    return reply.json()


@pytest.mark.parametrize("op", OPS)
def test_takes_the_least_estimate(daemon, op):
    document = report(daemon, op, shape="1500x1500", gpu="H200")
    estimates = [c["estimated_us"] for c in document["candidates"] if "estimated_us" in c]
    assert len(estimates) > 1 and estimates == sorted(estimates)
    assert document["device"] == "H200" and document["profile"] == "NVIDIA H200"
    assert document["kernel"] == document["candidates"][0]["kernel"]
    assert document["reason"].startswith(document["kernel"] + ": estimated at ")


def test_says_why_a_kernel_has_no_estimate(daemon):
    notes = {}
    for op, parameters in (("matmul", {"shape": "700x700"}), ("add", {"shape": "1000x3"})):
        for candidate in report(daemon, op, gpu="H200", **parameters)["candidates"]:
            assert ("note" in candidate) == ("estimated_us" not in candidate)
            notes[candidate["kernel"]] = candidate.get("note")
    assert notes["vector_loads"] == "auto never takes it" and "small jobs" in notes["grouped"]
    assert re.search(r"\nfloat3 +none  auto never takes it\n", choose(daemon, "add", shape="1000x3", gpu="H200").ok().body.decode())


@pytest.mark.parametrize("dtype, parameters, kernel", [
    ("f32", {"shape": "4096x4096"}, "split_bf16"),
    ("f32", {"shape": "4096x4096", "precision": "ieee"}, "multistage_tuned"),
    ("bf16", {"shape": "4096x4096"}, "wgmma"),
])
def test_kernels_that_no_simulator_runs_are_candidates(daemon, dtype, parameters, kernel):
    assert report(daemon, "matmul", dtype=dtype, gpu="H200", **parameters)["kernel"] == kernel
    elsewhere = report(daemon, "matmul", dtype=dtype, gpu="T4", **parameters)["candidates"]
    assert not {"split_bf16", "wgmma", "mma"} & {candidate["kernel"] for candidate in elsewhere}


@pytest.mark.parametrize("parameters", [
    {"shape": "512x512", "beta": "3"}, {"shape": "512x512", "alpha": "0"}, {"shape_a": "3000x0", "shape_b": "0x3000"}])
def test_what_cublas_refuses_it_does_not_get(daemon, parameters):
    names = [c["kernel"] for c in report(daemon, "matmul", dtype="f16", gpu="H200", **parameters)["candidates"]]
    assert names and "cublas" not in names


def test_the_answer_for_a_model_is_the_same_on_every_device(daemon):
    for shape in ("30x40", "700x700"):
        one, two = (report(daemon, "transpose", shape=shape, gpu="H200", device=device) for device in ("cpu", "sim"))
        assert one == two


@pytest.mark.parametrize("where", [{"gpu": "H200"}, {"device": "cpu"}])
def test_an_estimate_is_the_sum_of_its_parts(daemon, where):
    for candidate in report(daemon, "matmul", shape_a="500x700", shape_b="700x300", **where)["candidates"]:
        if "estimated_us" not in candidate:
            continue
        overlapping = math.sqrt(sum(candidate[part] ** 2 for part in PARTS))
        assert candidate["estimated_us"] == pytest.approx(candidate["launch"] + candidate["passes"] + overlapping, abs=0.01)
        assert candidate[candidate["most"]] == max(candidate[part] for part in (*PARTS, "launch", "passes"))


def test_a_slower_gpu_is_estimated_to_take_longer(daemon):
    fast, slow = (report(daemon, "transpose", shape="5000x5000", gpu=gpu) for gpu in ("H200", "L4"))
    assert slow["candidates"][0]["estimated_us"] > 4 * fast["candidates"][0]["estimated_us"]


def test_says_how_a_product_is_divided(daemon):
    text = choose(daemon, "matmul", shape_a="64x65536", shape_b="65536x64", gpu="H200").ok().body.decode()
    assert "auto takes multistage_tuned: estimated at " in text
    assert ", split among " in text


def test_is_the_same_every_time(daemon):
    one, two = (report(daemon, "matmul", shape="333x333", gpu="A100") for _ in range(2))
    assert one == two


@pytest.mark.parametrize("op", OPS)
def test_kernels_of_the_cpu_have_estimates(daemon, op):
    document = report(daemon, op, shape="300x300", device="cpu")
    estimates = [candidate["estimated_us"] for candidate in document["candidates"]]
    assert document["device"] == "cpu:0" and document["profile"]
    assert len(estimates) > 1 and estimates == sorted(estimates) and estimates[0] > 0
    assert document["kernel"] == document["candidates"][0]["kernel"]
    assert document["reason"].startswith(document["kernel"] + ": estimated at ")
    text = choose(daemon, op, shape="300x300", device="cpu").ok().body.decode()
    assert f"auto takes {document['kernel']}: estimated at " in text and "none" not in text


def test_impossible_shapes_and_parameters_are_refused(daemon):
    assert choose(daemon, "matmul", shape_a="3x4", shape_b="5x6").status == 422
    assert choose(daemon, "transpose", gpu="no such").status == 400
    reply = choose(daemon, "transpose", against="tiled")
    assert reply.status == 400 and "/v1/explain" in reply.json()["detail"]
    reply = choose(daemon, "transpose", kernel="tiled")
    assert reply.status == 400 and "'kernel'" in reply.json()["detail"]
    assert daemon.request("POST", "/v1/choose/transpose", b"").status == 405


# ---- Tables of numbers. (unit.test_cuda_run has one that fits.)


@pytest.fixture
def with_profile(tmp_path):
    def write(gpu, text="GM_LAUNCH(1000, 1)\n"):
        path = tmp_path / "profile.inc"
        path.write_text(f'GM_MEASURED_ON("{gpu}", "1", "2026-01-01", "abc")\n{text}')
        return str(path)

    return write


@pytest.mark.parametrize("gpu, text, said", [
    ("no such GPU", "", "is of no such GPU, and no device here is one"),
    ("Fake GPU 0", "GM_RATES(naive, 1)\n", "line 2 of the profile is not one of a table"),
    ("Fake GPU 0", " * long\n" * 10000, "larger than 65535 bytes"),
    ("Fake GPU 0", " *\0\n", "it is no table"),
])
def test_a_table_of_another_model_or_a_wrong_one_is_fatal(with_profile, gpu, text, said):
    done = run("--listen", "127.0.0.1:0", "--profile", with_profile(gpu, text))
    assert done.returncode != 0 and "listening" not in done.stdout
    assert said in done.stderr


def test_a_table_that_is_none_is_fatal(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it
    (tmp_path / "empty").touch()
    for what in ("/no/such/file", tmp_path, tmp_path / "pipe", tmp_path / "empty", "/dev/zero"):
        done = run("--listen", "127.0.0.1:0", "--profile", str(what))
        assert done.returncode != 0 and f"{what}: " in done.stderr
