"""GET /v1/requests: the last accounts, whose they are, and their pictures."""

import concurrent.futures
import json
import re
import time
import xml.etree.ElementTree

import numpy as np
import pytest

import formats
from keyring import Keyring
from wire import target

R, T, M = "/v1/requests", "/v1/transpose", "/v1/matmul"
AB = b'{"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}'
MOST = 1000


@pytest.fixture
def fresh(start):
    return start("--threads", "1")


def ask(daemon, headers=None, **parameters):
    return daemon.get(target(R, **parameters), headers).ok().json()["requests"]


def test_none_yet(fresh):
    document = fresh.get(R).ok().json()
    assert document["requests"] == [] and document["now_us"] > 0


def test_what_the_account_said(fresh):
    """All but shares of ceilings, which may be measured again meanwhile."""
    said = [fresh.post(T, b"[[1, 2]]").ok().stats, fresh.post(M + "?repeat=3", AB).ok().stats]
    kept = ask(fresh)
    assert [one["number"] for one in kept] == [1, 2]
    for one, stats in zip(kept, said):
        account = one["account"]
        assert account.keys() == stats.keys()
        for name in ("id", "op", "kernel", "device", "dtype", "shapes", "us", "batch", "bytes_min", "flops", "placed"):
            assert account[name] == stats[name], name
        assert one["client"] == "127.0.0.1"
        assert abs(one["arrived_unix_us"] / 1e6 - time.time()) < 60


def test_stages_follow_one_another(fresh):
    body = b"\n".join(b",".join(b"%d" % (i * j % 7) for i in range(900)) for j in range(900))
    stats = fresh.post(M + "?kernel=blocked", json.dumps({"a": np.ones((70, 60)).tolist(),
                                                         "b": np.ones((60, 50)).tolist()}).encode()).ok().stats
    large = fresh.post(T, body, {"Content-Type": "text/csv"}).ok().stats
    for one, account in zip(ask(fresh), (stats, large)):
        stages = one["stages"]
        assert stages[0]["stage"] == "receive" and stages[0]["start_us"] == one["arrived_us"]
        assert stages[-1]["stage"] == "encode"
        for stage, us in account["us"].items():
            if stage != "total":
                assert sum(s["us"] for s in stages if s["stage"] == stage) == pytest.approx(us, abs=0.02), stage
        for before, after in zip(stages, stages[1:]):
            assert before["start_us"] + before["us"] <= after["start_us"] + 0.02, (before, after)
        ran = one["ran"]
        kernel = next(s for s in stages if s["stage"] == "kernel")
        assert ran["start_us"] == kernel["start_us"] and kernel["us"] <= ran["us"] + 0.02
        assert ran["stream"] == 0
        assert stages[-1]["start_us"] + stages[-1]["us"] <= one["arrived_us"] + account["us"]["total"] + 0.02


def test_a_small_job_has_no_stream(fresh):
    fresh.post(T, b"[[1, 2]]").ok()
    assert "stream" not in ask(fresh)[0]["ran"]


def test_inference_is_there(fresh):
    body = {"inputs": [{"name": "A", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}
    fresh.post("/v2/models/transpose/infer", json.dumps(body).encode()).ok()
    account = ask(fresh)[0]["account"]
    assert account["op"] == "transpose" and account["shapes"]["result"] == [2, 1]


def test_failures_and_reports_are_not(fresh):
    assert fresh.post(T, b"[[1, 2").status == 400
    fresh.post("/v1/compare/transpose?format=json", b"[[1, 2]]").ok()
    fresh.get("/v1/explain/transpose?shape=32x32&format=json").ok()
    assert ask(fresh) == []


def test_since_and_limit(fresh):
    with fresh.client() as client:
        for _ in range(7):
            client.post(T, b"[[1]]").ok()
    numbers = lambda **q: [one["number"] for one in ask(fresh, **q)]
    assert numbers() == [1, 2, 3, 4, 5, 6, 7]
    assert numbers(limit=3) == [5, 6, 7]
    assert numbers(since=5) == [6, 7]
    assert numbers(since=2, limit=2) == [6, 7]
    assert numbers(since=7) == [] and numbers(since=2**63 - 1) == []


def test_those_that_are_asked_for(fresh):
    with fresh.client() as client:
        for path in (T, M, T + "?device=sim", M):
            client.post(path, b"[[1]]" if path.startswith(T) else AB).ok()
    every = ask(fresh)
    numbers = lambda **q: [one["number"] for one in ask(fresh, **q)]
    assert numbers(op="matmul") == [2, 4] and numbers(op="matmul", limit=1) == [4] and numbers(op="matmul", since=2) == [4]
    assert numbers(device="sim:0") == [3] and numbers(device="cpu:0", op="transpose") == [1] and numbers(device="cpu") == []
    assert numbers(id=every[2]["account"]["id"]) == [3] and numbers(id="none") == []
    end = every[1]["arrived_us"] + every[1]["account"]["us"]["total"]
    assert numbers(to_us=int(every[0]["arrived_us"]) + 1) == [1]
    assert numbers(from_us=int(end) + 1, to_us=int(every[3]["arrived_us"]) + 1) == [3, 4]
    # So are the pictures' requests: a roofline has a circle for each, and five to tell the operations.
    circles = lambda query: fresh.get(R + "/roofline.svg" + query).ok().body.count(b"</circle>")
    assert circles("") == 3 and circles("?op=matmul") == 2 and circles("?device=sim:0") == 0
    one = fresh.get(f"{R}/waterfall.svg?id={every[3]['account']['id']}").ok().body.decode()
    assert "matmul" in one and one.count("<rect") == 9 + len(every[3]["stages"])  # with the background and eight stages
    for stage in every[3]["stages"]:
        assert f">{stage['us']:.1f} us</text>" in one, stage
    ran = every[2]["ran"]
    streams = fresh.get(f"{R}/streams.svg?from_us={int(ran['start_us']) - 1}&to_us={int(ran['start_us'] + ran['us']) + 1}").ok().body
    assert b"sim:0 stream" in streams and b"cpu:0" not in streams


def test_as_they_went(fresh):
    """Rates by the second: what is drawn adds up to what was there."""
    begun = ask(fresh, limit=1) == [] and fresh.get(R).json()["now_us"]
    with fresh.client() as client:
        for _ in range(20):
            client.post(M, AB).ok()
    end = fresh.get(R).json()["now_us"]
    drawn = fresh.get(f"{R}/live.svg?from_us={int(begun)}&to_us={int(end) + 1}").ok()
    assert drawn.media_type == "image/svg+xml"
    picture = xml.etree.ElementTree.fromstring(drawn.body)
    paths = [path.get("d") for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert len(paths) == 5 and all(paths)
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Requests a second", "Jobs that wait", "Jobs on devices"} <= set(texts)
    # The rate of each of 60 stretches of time is a step of the first line: its height, over all stretches, is the number of requests.
    most = float(texts[texts.index("Requests a second") + 3])
    steps = [(120 - 34 - float(y)) / (120 - 60) * most for y in re.findall(r"[ML][0-9.]+ ([0-9.]+)h", paths[0])]
    assert len(steps) == 60 and sum(steps) * (end - begun) * 1e-6 / 60 == pytest.approx(20, rel=0.03)


@pytest.mark.parametrize("query, code", [("limit=0", "bad_parameter"), ("limit=1001", "bad_parameter"), ("limit=x", "bad_parameter"),
                                         ("since=-1", "bad_parameter"), ("since=", "bad_parameter"), ("since=" + "9" * 30, "bad_parameter"),
                                         ("since=18446744073709551616", "bad_parameter"), ("limit=1&" * 32 + "limit=1", "bad_parameter"), ("until=3", "unknown_parameter"),
                                         ("limit", "unknown_parameter"), ("id=", "bad_parameter"),
                                         ("to_us=0", "bad_parameter"), ("from_us=4611686018427388", "bad_parameter")])
def test_bad_questions(daemon, query, code):
    for path in (R, R + "/roofline.svg", R + "/waterfall.svg", R + "/streams.svg", R + "/live.svg"):
        reply = daemon.get(f"{path}?{query}")
        assert reply.status == 400 and reply.code == code, reply


def test_the_oldest_go(fresh):
    with fresh.client() as client:
        for _ in range(MOST + 50):
            client.post(T, b"[[1]]").ok()
    numbers = [one["number"] for one in ask(fresh, limit=MOST)]
    assert numbers == list(range(51, MOST + 51))
    assert len(ask(fresh)) == 100


def test_each_key_sees_its_own(start, tmp_path):
    ring = Keyring(str(tmp_path / "keys"))
    for name, roles in (("ann", "use"), ("ben", "use"), ("eve", "read"), ("boss", "admin")):
        ring.add(name, roles)
    daemon = start("--keys", ring.path)
    for name in ("ann", "ben", "ann"):
        daemon.post(T, b"[[1]]", ring.headers(name)).ok()
    clients = lambda name: [one["client"] for one in ask(daemon, ring.headers(name))]
    assert clients("ann") == ["ann", "ann"] and clients("ben") == ["ben"]
    assert clients("eve") == clients("boss") == ["ann", "ben", "ann"]
    assert [one["number"] for one in ask(daemon, ring.headers("ann"), limit=1)] == [3]
    assert daemon.get(R).status == 401
    drawn = lambda name: daemon.get(R + "/roofline.svg", ring.headers(name)).ok().body.count(b"</circle>")
    assert drawn("eve") == drawn("ann") + drawn("ben")


def test_pictures(fresh, rng):
    with fresh.client() as client:
        for path in (R + "/roofline.svg", R + "/waterfall.svg", R + "/streams.svg", R + "/live.svg"):
            reply = client.get(path).ok()  # of nothing
            assert reply.media_type == "image/svg+xml" and b"no request" in reply.body
            xml.etree.ElementTree.fromstring(reply.body)
        for path, operands in ((T, 1), (M, 2), ("/v1/add", 2), ("/v1/flip", 1)):
            body = formats.npy(rng.random((60, 60), np.float32)) * operands
            client.post(path, body, {"Content-Type": "application/x-npy"}).ok()
        client.post(T + "?device=sim&kernel=tiled", b"[[1, 2]]").ok()
        roofline = client.get(R + "/roofline.svg").ok().body
        assert roofline.count(b"</circle>") == 4  # the simulated one has no time
        for ceiling in (b"dram", b"fp32", b"fp64", b"int32"):  # also of arithmetic that nobody asked for
            assert b"cpu:0 " + ceiling in roofline
        waterfall = client.get(R + "/waterfall.svg?limit=2").ok().body
        assert b"transpose tiled, sim:0" in waterfall and b"flip" in waterfall and b"matmul" not in waterfall
        streams = client.get(R + "/streams.svg").ok().body
        assert streams.count(b"<g>") >= 1 and b"sim:0 stream 0" in streams
        for picture in (roofline, waterfall, streams):
            xml.etree.ElementTree.fromstring(picture)


def test_while_others_come(fresh):
    """Each record is whole, whoever writes and reads at once."""
    def post():
        with fresh.client() as client:
            for _ in range(150):
                client.post(M, AB).ok()

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(post) for _ in range(4)]
        while not all(job.done() for job in jobs):
            for one in ask(fresh, limit=MOST):
                assert one["account"]["op"] == "matmul" and len(one["stages"]) >= 4
        for job in jobs:
            job.result()
    kept = ask(fresh, limit=MOST)
    assert [one["number"] for one in kept] == list(range(1, 601))
    assert len({one["account"]["id"] for one in kept}) == 600
