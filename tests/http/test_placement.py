"""Where a job runs and what the account says of it; the same product has the same bits at any load."""

import json

import numpy as np
import pytest

from conftest import SEED
from jobs import Threads
from wire import target

RAW = {"Content-Type": "application/octet-stream"}
TIMES = 1000
CLIENTS = 16


def product(daemon, n, dtype, **parameters):
    body = bytes(2 * n * n * np.dtype(dtype).itemsize)
    names = {"<f4": "f32", "<i4": "i32"}
    path = target("/v1/matmul", shape_a=f"{n}x{n}", shape_b=f"{n}x{n}", dtype=names[dtype], **parameters)
    return json.loads(daemon.post(path, body, RAW).ok().header("Gemmd-Stats"))


def test_placed(start):
    daemon = start("--backend", "auto")
    devices = [device["name"] for device in daemon.get("/v1/devices").ok().json()["devices"]]
    assert product(daemon, 8, "<f4")["placed"] == "shape"
    assert product(daemon, 8, "<i4")["placed"] == "load"
    transpose = daemon.post(target("/v1/transpose", shape="2x3", dtype="f32"), bytes(24), RAW).ok()
    assert json.loads(transpose.header("Gemmd-Stats"))["placed"] == "load"
    for device in ("cpu", "sim"):
        stats = product(daemon, 8, "<f4", device=device)
        assert (stats["placed"], stats["device"]) == ("asked", f"{device}:0") and f"{device}:0" in devices
    assert product(daemon, 8, "<f4", kernel="naive")["placed"] == "asked"
    assert product(daemon, 8, "<f4", repeat=3)["placed"] == "asked"


def test_placed_by_load(start):
    assert product(start("--backend", "auto", "--placement", "load"), 8, "<f4")["placed"] == "load"


def test_placed_by_the_operator(start):
    stats = product(start("--backend", "sim"), 8, "<f4")
    assert (stats["placed"], stats["device"]) == ("asked", "sim:0")


@pytest.mark.parametrize("n", [64, 150])  # on an event thread, and by the queue
def test_same_bits_idle_and_under_load(daemon, n):
    rng = np.random.default_rng([SEED, n])
    body = rng.standard_normal((2, n, n), dtype=np.float32).tobytes()
    path = target("/v1/matmul", shape_a=f"{n}x{n}", shape_b=f"{n}x{n}", dtype="f32")
    idle = daemon.client(timeout=60)
    first = idle.post(path, body, RAW).ok()
    stats = json.loads(first.header("Gemmd-Stats"))

    def ask(client, times):
        for _ in range(times):
            reply = client.post(path, body, RAW).ok()
            assert reply.body == first.body
            seen = json.loads(reply.header("Gemmd-Stats"))
            assert (seen["device"], seen["kernel"]) == (stats["device"], stats["kernel"])

    ask(idle, TIMES // 4)
    threads = Threads()
    for _ in range(CLIENTS):
        threads.go(ask, daemon.client(timeout=60), TIMES // CLIENTS)
    threads.join()
