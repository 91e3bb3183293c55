"""Quotas of keys and addresses: 429, its headers, and what is counted. (Edges of their arithmetic: unit/test_quota.c.)"""

import re
import threading
import time

import numpy as np
import pytest

import wire
from daemon import Daemon
from jobs import wait_until
from keyring import Keyring

T = "/v1/transpose"
BODY = b"[[1,2],[3,4]]"


# Each test has a key of its own, so that all may ask one daemon.
QUOTAS = {"three": "requests=3", "v2": "requests=1", "probe": "requests=1", "early": "requests=1", "thin": "bytes=100K",
          "wide": "bytes=1M", "busy": "device=1", "two": "jobs=2", "one": "jobs=1", "small": "memory=4500K",
          "reloaded": "bytes=1K", "rate": "requests=50"}


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    ring = Keyring(str(tmp_path_factory.mktemp("quota") / "keys"))
    ring.add("free", "use,read")
    for name, quota in QUOTAS.items():
        ring.add(name, quota=quota)
    return ring


@pytest.fixture(scope="module")
def daemon(ring):
    started = Daemon("--keys", ring.path, "--backend", "cpu")
    yield started
    started.stop()
    started.kill()


def refused(reply, kind):
    assert reply.status == 429, reply
    assert reply.json()["code"] == "quota_exceeded"
    assert int(reply.header("retry-after")) >= 1
    return int(reply.header("retry-after"))


def counted(daemon, ring, metric, key, **labels):
    text = daemon.get("/metrics", ring.headers("free")).ok().body.decode()
    want = "".join(f',{name}="{value}"' for name, value in labels.items())
    found = re.search(rf'^gemmd_{metric}{{key="{key}"{want}}} (\S+)$', text, re.M)
    return float(found.group(1)) if found else None


def in_flight(daemon, ring):
    """With the request that asks."""
    text = daemon.get("/metrics", ring.headers("free")).ok().body.decode()
    return int(re.search(r"^gemmd_requests_in_flight (\d+)$", text, re.M).group(1))


def test_requests(daemon, ring):
    """As many as a window holds, and no more; the next second has as many again."""
    with daemon.client() as client:
        began = time.monotonic()
        replies = [client.request("POST", T, BODY, ring.headers("three")) for _ in range(8)]
        took = time.monotonic() - began
    passed = [reply for reply in replies if reply.status == 200]
    assert 3 <= len(passed) <= 3 + 3 * took + 1
    assert [r.status for r in replies[:3]] == [200] * 3
    for reply in replies[3:]:
        if reply.status != 200:
            assert refused(reply, "requests") == 1
    assert passed[0].header("ratelimit-policy") == '"requests";q=3;qu="requests";w=1'
    assert re.fullmatch(r'"requests";r=2;t=1', passed[0].header("ratelimit"))
    daemon.post(T, BODY, ring.headers("free")).ok()  # others notice nothing
    time.sleep(1.05)
    for _ in range(3):
        daemon.post(T, BODY, ring.headers("three")).ok()
    assert counted(daemon, ring, "quota_refused_total", "three", quota="requests") == 8 - len(passed)
    assert counted(daemon, ring, "key_requests_total", "three") == len(passed) + 3
    assert daemon.post(T, BODY, ring.headers("free")).ok().header("ratelimit") is None


def test_v2_says_it_in_its_format(daemon, ring):
    replies = [daemon.get("/v2", ring.headers("v2")) for _ in range(3)]
    last = next(reply for reply in replies if reply.status == 429)
    assert list(last.json()) == ["error"] and int(last.header("retry-after")) == 1


def test_probes_are_not_counted(daemon, ring):
    for _ in range(10):
        daemon.get("/healthz", ring.headers("probe")).ok()


def test_bytes(daemon, ring):
    """A body larger than the quota is taken once; then the client waits for as long as it was."""
    body = np.zeros((256, 256), np.float32).tobytes()  # 256 KiB, and the reply as much
    headers = {**ring.headers("thin"), "Content-Type": wire.RAW}
    daemon.post(T + "?shape=256x256&dtype=f32", body, headers).ok()
    reply = daemon.post(T + "?shape=256x256&dtype=f32", body, headers)
    assert refused(reply, "bytes") == 6  # (512 KiB + the second's own 100 KiB - 100 KiB) / 100 KiB/s
    assert counted(daemon, ring, "key_body_bytes_total", "thin") >= 2 * len(body)
    assert counted(daemon, ring, "quota_refused_total", "thin", quota="bytes") == 1


def test_bytes_that_never_come_are_given_back(daemon, ring):
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 1000000000", "Content-Type: " + wire.RAW,
                           "Authorization: Bearer " + ring.keys["wide"]))
        assert raw.reply().status == 400  # no shape: refused before the body
    wait_until(lambda: daemon.post(T, BODY, ring.headers("wide")).status == 200, "the bytes")


def test_refused_early_with_a_body_to_come(daemon, ring):
    daemon.post(T, BODY, ring.headers("early")).ok()
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 1073741824", "Authorization: Bearer " + ring.keys["early"]))
        assert refused(raw.reply(), "requests") == 1


def test_device_time(daemon, ring):
    """It is charged when a job has run: the one that overdraws it ends, and the next waits."""
    headers = {**ring.headers("busy"), "Content-Type": wire.RAW}
    for _ in range(2000):
        reply = daemon.post("/v1/matmul?shape_a=256x256&shape_b=256x256&kernel=naive", bytes(1 << 19), headers)
        if reply.status == 429:
            break
        assert reply.status == 200
    wait = refused(reply, "device")
    assert 1 <= wait <= 120  # the last job may have taken long
    assert '"device";q=1;qu="seconds";w=60' in reply.header("ratelimit-policy")
    assert counted(daemon, ring, "key_device_seconds_total", "busy") >= 1
    daemon.get("/v1/kernels", ring.headers("busy")).ok()  # that takes no device
    daemon.get("/v1/choose/matmul?shape=64x64", ring.headers("busy")).ok()
    for method, body in (("PUT", BODY), ("GET", b""), ("DELETE", b"")):
        assert daemon.request(method, "/v1/matrices/idle", body, ring.headers("busy")).status in (200, 201, 204), method


def test_jobs_at_a_time(daemon, ring):
    waiting = [daemon.raw() for _ in range(2)]
    try:
        for raw in waiting:  # bodies that do not end
            raw.send(wire.head("POST", T, "Content-Length: 13", "Authorization: Bearer " + ring.keys["two"]) + b"[[1,2]")
        # Asked without a job: one of ours could take the second's place.
        wait_until(lambda: in_flight(daemon, ring) == 3, "two jobs")
        assert daemon.post(T, BODY, ring.headers("two")).status == 429
        daemon.get("/v1/kernels", ring.headers("two")).ok()
        daemon.post(T, BODY, ring.headers("free")).ok()
        waiting[0].send(b",[3,4]]")
        waiting[0].reply().ok()
        daemon.post(T, BODY, ring.headers("two")).ok()
    finally:
        for raw in waiting:
            raw.socket.close()
    for _ in range(5):  # clients that left hold nothing
        wait_until(lambda: daemon.post(T, BODY, ring.headers("two")).status == 200, "the slots")


def test_one_job_after_the_other_on_new_connections(daemon, ring):
    """A slot is free before its reply is sent, so that whoever has the reply may go on at once."""
    for _ in range(100):
        daemon.post(T, BODY, ring.headers("one")).ok()


def test_memory(daemon, ring):
    headers = {**ring.headers("small"), "Content-Type": wire.RAW}
    reply = daemon.post(T + "?shape=1024x1024&dtype=f32", bytes(4 << 20), headers)
    assert reply.status == 413 and reply.json()["code"] == "too_large"
    daemon.post(T + "?shape=512x512&dtype=f32", bytes(1 << 20), headers).ok()
    with daemon.raw() as raw:  # one that holds 2 MiB, and waits
        raw.send(wire.head("POST", T + "?shape=512x512&dtype=f32", "Content-Length: 1048576", "Content-Type: " + wire.RAW,
                           "Authorization: Bearer " + ring.keys["small"], "Expect: 100-continue"))
        assert raw.socket.recv(100).startswith(b"HTTP/1.1 100 ")  # let in before the next one comes
        raw.send(bytes(1000))
        wait_until(lambda: daemon.post(T + "?shape=600x600&dtype=f32", bytes(1440000), headers).status == 429, "memory")
    wait_until(lambda: daemon.post(T + "?shape=512x512&dtype=f32", bytes(1 << 20), headers).status == 200, "it is back")


def test_a_reload_keeps_what_was_taken(daemon, ring):
    """Not the window that a new table would give: or who edits the file resets all quotas."""
    daemon.post(T, b"[[" + b"1," * 5000 + b"1]]", ring.headers("reloaded")).ok()
    refused(daemon.post(T, BODY, ring.headers("reloaded")), "bytes")
    ring.add("another")
    daemon.signal(1)
    wait_until(lambda: daemon.log().count("event=reload") == 1, "the reload")
    refused(daemon.post(T, BODY, ring.headers("reloaded")), "bytes")
    ring.lines["reloaded"] = ring.lines["reloaded"].replace("bytes=1K", "bytes=none")
    ring.write()
    daemon.signal(1)
    wait_until(lambda: daemon.log().count("event=reload") == 2, "the reload")
    daemon.post(T, BODY, ring.headers("reloaded")).ok()


def test_of_all_clients(start, tmp_path):
    """--quota holds for addresses, and for keys that say nothing of that kind."""
    daemon = start("--quota", "requests=2")
    replies = [daemon.post(T, BODY) for _ in range(6)]
    assert [r.status for r in replies[:2]] == [200, 200] and 429 in [r.status for r in replies]
    seen = []
    wait_until(lambda: (seen.append(daemon.get("/metrics")), seen[-1].status == 200)[1], "the next second")
    assert 'gemmd_quota_refused_total{key="none",quota="requests"}' in seen[-1].body.decode()
    ring = Keyring(str(tmp_path / "keys"))
    ring.add("own", "use,read", "requests=none")
    ring.add("plain")
    keyed = start("--keys", ring.path, "--quota", "requests=2")
    for _ in range(6):
        keyed.post(T, BODY, ring.headers("own")).ok()
    assert 429 in [keyed.post(T, BODY, ring.headers("plain")).status for _ in range(6)]


def test_many_at_once_get_no_more(daemon, ring):
    """The rate holds over all of a key's connections."""
    statuses, began = [], time.monotonic()

    def ask():
        with daemon.client() as client:
            while time.monotonic() - began < 0.7 or 429 not in statuses:
                statuses.append(client.request("POST", T, BODY, ring.headers("rate")).status)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    assert set(statuses) == {200, 429} and 50 <= statuses.count(200) <= 50 + 50 * took
