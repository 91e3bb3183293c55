"""Attacks that once worked: each is cheap for a client and was dear for the daemon."""

import json
import os
import pathlib
import signal
import time

import pytest

import wire
from daemon import SLOW, sanitizer_of
from jobs import Threads
from problems import check
from wire import target

T, M = "/v1/transpose", "/v1/matmul"
JSON = {"Content-Type": wire.JSON}
RAW = {"Content-Type": wire.RAW}


def long_text(rows=400, cols=400):
    """JSON of some megabytes: decoded on a worker."""
    row = "[" + ",".join(["0.1234567890123"] * cols) + "]"
    return ("[" + ",".join([row] * rows) + "]").encode()


def test_no_thread_keeps_a_right(start):
    """Nor does one of a library's, which began before the program itself; the filter is in all of them."""
    if os.geteuid() != 0:
        pytest.skip("only root has rights that a thread could keep")
    daemon = start("--threads", "2", env={"OPENBLAS_NUM_THREADS": "4"})
    time.sleep(0.2)  # those that only start something have ended
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        rights = {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")}
        assert not any(rights.values()), (status["Name"], rights)
        if sanitizer_of() is None:  # there is no filter in such a build, which has all threads join in
            assert (int(status["NoNewPrivs"]), int(status["Seccomp"])) == (1, 2), status["Name"]


def test_sigterm_while_workers_decode(start):
    """Requests on a codec worker are suspended too: none may be left when the library stops."""
    daemon = start("--drain-timeout", "1ms", "--memory-limit", "2G", "--queue-limit", "100")
    body, replies = long_text(), []
    head = wire.head("POST", T, f"Content-Type: {wire.JSON}", f"Content-Length: {len(body)}")
    raws = [daemon.raw(timeout=60 * SLOW) for _ in range(16)]
    for raw in raws:
        raw.send(head, body[:-1])
    for raw in raws:
        raw.send(body[-1:])
    time.sleep(0.02)
    daemon.signal(signal.SIGTERM)
    for raw in raws:
        replies.append(raw.reply())
    assert daemon.wait() == 0
    assert all(reply.status == 200 or reply.code == "draining" for reply in replies), replies


def resident(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmHWM"].split()[0]) << 10


@pytest.mark.skipif(sanitizer_of() is not None, reason="a sanitizer's own memory is in the way")
def test_text_after_elements_stays_within_the_memory_limit(start):
    """Buffers that are kept for reuse make room for a text."""
    limit = 256 << 20
    daemon = start("--memory-limit", str(limit))
    ready = resident(daemon)
    with daemon.client(timeout=60 * SLOW) as client:
        path = target(T, shape="5000x5000", dtype="f32")
        client.post(path, bytes(100 << 20)[: 4 * 25_000_000], RAW).ok()
        client.post(T, b" " * (200 << 20) + b"[[1, 2]]", JSON).ok()
    assert resident(daemon) <= ready + limit + (64 << 20)


def test_white_space_in_small_pieces_costs_its_length(daemon):
    body = b" " * (4 << 20) + b"[[1, 2]]"
    began = time.monotonic()
    with daemon.raw(timeout=60 * SLOW) as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {len(body)}"))
        for at in range(0, len(body), 4096):
            raw.send(body[at : at + 4096])
        assert raw.reply().ok().json()["data"] == [[1], [2]]
    # Looked over again for each piece it took minutes.
    assert time.monotonic() - began < 20 * SLOW


def test_an_empty_result_of_many_rows_is_short(daemon):
    reply = daemon.post(T, b'{"shape":[400000000,0,0],"data":[]}', JSON).ok()
    assert reply.json()["shape"] == [400000000, 0, 0]
    assert reply.json()["data"] == [] and len(reply.body) < 4096


def test_others_are_served_while_large_texts_are_written(daemon):
    body = json.dumps({"shape": [700, 700], "data": [0.123] * 490_000}).encode()
    writers = Threads()
    for _ in range(6):
        writers.go(lambda: daemon.post(T, body, JSON, timeout=120 * SLOW).ok())
    worst = 0
    while any(thread.is_alive() for thread in writers.threads):
        began = time.monotonic()
        assert daemon.get("/healthz").status == 200
        worst = max(worst, time.monotonic() - began)
    assert len(writers.join()) == 6
    assert worst < 2 * SLOW


@pytest.mark.parametrize("place", ["query", "body"])
def test_a_timeout_counts_wherever_it_is_said(daemon, place):
    rows = [[1.0] * 1500] * 1500
    document = {"timeout_ms": 20} if place == "body" else {}
    body = json.dumps({"a": rows, "b": rows, **document}).encode()
    path = target(M, kernel="naive", timeout_ms=20 if place == "query" else None)
    check(daemon.post(path, body, JSON, timeout=120 * SLOW), 503, "deadline_passed")


def test_two_lengths_do_not_open_the_door(daemon):
    """The first is enormous, the last is 0: what is still to come cannot be told."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 1000000000000", "Content-Length: 0"))
        check(raw.reply(), 400, "bad_length")


@pytest.mark.parametrize("name", ["Content-Type", "Content-Encoding"])
def test_a_header_that_comes_twice_is_refused(daemon, name):
    value = {"Content-Type": wire.JSON, "Content-Encoding": "identity"}[name]
    with daemon.raw() as raw:
        raw.send(
            wire.head("POST", T, f"{name}: {value}", f"{name}: x", "Content-Length: 3"), b"[1]"
        )
        check(raw.reply(), 400, "bad_request", name)


@pytest.mark.parametrize("path", ["/healthz%00/secret", "/v1/transpose%00"])
def test_a_coded_nul_does_not_end_a_path(daemon, path):
    assert daemon.get(path).status == 404


def test_two_names_of_one_parameter_must_agree(daemon):
    path = target(T, shape="1x1", shape_a="1x2")
    check(daemon.post(path, bytes(8), RAW), 400, "bad_parameter", "twice")


def test_a_shape_beside_json_operands_is_refused(daemon):
    check(daemon.post(T, b'{"a":[[1]],"shape_a":"5x5"}', JSON), 400, "bad_parameter", "shape")


def test_figures_that_were_not_measured_are_absent(daemon):
    stats = daemon.post(target(T, shape="0x5", repeat=3), b"", RAW).ok().stats
    assert not [name for name in stats if name.startswith("kernel_us")]
    assert "kernel" not in stats["us"]
