"""What gemmd says about itself: its kernels, devices, counters, limits and health."""

import concurrent.futures
import time

import pytest

import formats
import hostile
import prometheus
from jobs import gauge, wait_until
from wire import JSON

T, M = "/v1/transpose", "/v1/matmul"
PAGES = ("/v1/kernels", "/v1/devices", "/v1/stats", "/metrics", "/healthz", "/readyz")
AB = b'{"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}'


@pytest.mark.parametrize("path", PAGES)
def test_get_and_head(daemon, path):
    with daemon.client() as client:
        got = client.get(path).ok()
        headed = client.request("HEAD", path).ok()
        assert headed.body == b"" and got.body
        for name in ("Content-Type", "X-Request-Id", "Content-Length"):
            assert got.header(name) and headed.header(name), name
        assert headed.media_type == got.media_type
        # The length of a page that does not change is also the same.
        if path in ("/v1/kernels", "/healthz", "/readyz"):
            assert int(headed.header("Content-Length")) == len(got.body)
        assert client.get("/healthz").status == 200  # in step


@pytest.mark.parametrize("path", (*PAGES, "/openapi.json", "/v1/requests", "/v1/matrices", "/v1/choose/flip", "/v2", "/v2/models/flip", "/nothing"))
def test_texts_end_with_a_newline(daemon, path):
    """The shell's next prompt begins a line of its own."""
    assert daemon.get(path).body.endswith(b"\n")


@pytest.mark.parametrize("path", PAGES)
def test_a_query_does_no_harm(daemon, path):
    assert daemon.get(path + "?x=1").status in (200, 400)


def test_kernels(daemon):
    reply = daemon.get("/v1/kernels").ok()
    assert reply.media_type == JSON
    kernels = reply.json()["kernels"]
    names = [(kernel["op"], kernel["name"]) for kernel in kernels]
    # One name may be of several rows, of different devices.
    places = [(*name, device) for name, kernel in zip(names, kernels) for device in kernel["devices"]]
    assert len(set(places)) == len(places)
    assert {op for op, _ in names} >= {"transpose", "matmul"}
    assert ("matmul", "naive") in names and ("transpose", "naive") in names
    known_devices = {device["name"] for device in daemon.get("/v1/devices").json()["devices"]}
    for kernel in kernels:
        assert set(kernel) >= {"op", "name", "devices", "dtypes", "needs", "note"}, kernel
        assert kernel["devices"] and set(kernel["devices"]) <= known_devices, kernel
        assert kernel["dtypes"] and set(kernel["dtypes"]) <= set(formats.NUMPY), kernel
        assert isinstance(kernel["needs"], str) and kernel["note"].strip(), kernel
    for op, dtypes in (("matmul", formats.ARITHMETIC), ("transpose", formats.NUMPY)):
        covered = {dtype for kernel in kernels if kernel["op"] == op for dtype in kernel["dtypes"]}
        assert covered == set(dtypes), op


def test_devices(daemon):
    reply = daemon.get("/v1/devices").ok()
    assert reply.media_type == JSON
    devices = reply.json()["devices"]
    assert "cpu:0" in [device["name"] for device in devices]
    for device in devices:
        for alias, name in (("lanes", "streams"), ("units", "compute_units"),
                            ("times_kernels", "has_kernel_times")):  # until 0.3
            assert device[alias] == device[name], device
        if device["name"].startswith("cpu"):
            assert 0.1 < device["copy_gbs"] < 10000, device
            assert 0 < device["memory_bytes"] < 1 << 60, device


def test_stats(daemon):
    reply = daemon.get("/v1/stats").ok()
    assert reply.media_type == JSON
    document = reply.json()
    for limit in document["limits"].values():
        assert limit["value"] > 0 and limit["unit"] and len(limit["reason"].split()) >= 3, limit
    numbers = []

    def collect(value):
        if isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, (int, float)):
            numbers.append(value)

    collect(document)
    assert len(numbers) >= 10 and all(number >= 0 for number in numbers)


def test_health_and_readiness(daemon):
    for path in ("/healthz", "/readyz"):
        for _ in range(3):
            assert daemon.get(path).status == 200


def counters(metrics):
    found = {}
    for metric in metrics.values():
        for key, value in metric.samples.items():
            if metric.type == "counter" or (metric.type == "histogram"):
                found[key] = value
    return found


def test_metrics_are_well_formed_and_counters_only_grow(daemon):
    before = prometheus.read(daemon)
    assert len(before) >= 8
    with daemon.client() as client:
        for _ in range(10):
            client.post(T, b"[[1, 2]]").ok()
            client.post(M, AB).ok()
            client.post(T, b"[[")
            client.get("/none")
    after = prometheus.read(daemon)
    assert set(before) <= set(after), "a metric went away"
    old, new = counters(before), counters(after)
    for key, value in old.items():
        assert new[key] >= value, key
    assert any(new[key] > value for key, value in old.items())


def test_names_begin_with_the_name_of_the_program(daemon):
    for name in prometheus.read(daemon):
        assert name.startswith(("gemmd_", "process_")), name


def test_every_request_is_counted_once(start):
    """By route and status, on a daemon that nobody else uses."""
    daemon = start()
    with daemon.client() as client:
        for _ in range(7):
            client.post(T, b"[[1, 2]]").ok()
        for _ in range(3):
            client.post(M, AB).ok()
        for _ in range(5):
            assert client.post(T, b"[[").status == 400
        for _ in range(2):
            assert client.get("/none/such").status == 404
    metrics = prometheus.read(daemon)
    name = "gemmd_http_requests_total"
    assert prometheus.total(metrics, name, code="200", route="/v1/transpose") == 7
    assert prometheus.total(metrics, name, code="200", route="/v1/matmul") == 3
    assert prometheus.total(metrics, name, code="400") == 5
    assert prometheus.total(metrics, name, code="404") == 2
    duration = "gemmd_request_duration_seconds_count"
    assert prometheus.total(metrics, duration, op="matmul") == 3
    stage = "gemmd_stage_duration_seconds_count"
    assert prometheus.total(metrics, stage, op="matmul", stage="kernel") == 3


def test_paths_make_no_new_series(start):
    """A client that asks for many pages that are not there must not grow the metrics."""
    daemon = start()
    with daemon.client() as client:
        client.get("/none")
        before = len(daemon.get("/metrics").body.splitlines())
        for number in range(50):
            client.get(f"/none/{number}")
            client.request("BREW", f"/pot/{number}")
    after = len(daemon.get("/metrics").body.splitlines())
    assert after - before <= 5


def test_bytes_are_counted(daemon):
    before = prometheus.read(daemon)
    body = b"[[1, 2], [3, 4]]"
    reply = daemon.post(T, body).ok()
    after = prometheus.read(daemon)

    def moved(name):
        return prometheus.total(after, name) - prometheus.total(before, name)

    assert moved("gemmd_request_body_bytes_total") == len(body)
    assert moved("gemmd_response_body_bytes_total") >= len(reply.body)


def test_old_names_beside_the_new(start):
    """Until 0.3 (CHANGELOG.md)."""
    daemon = start()
    with daemon.raw() as raw:
        raw.send(b"]]]]\r\n\r\n")
        hostile.everything(raw)
    wait_until(lambda: gauge(daemon, "gemmd_connections_closed_total") == 1, "it counts")
    metrics = prometheus.read(daemon)
    for member, reason in hostile.CLOSED.items():
        now = prometheus.total(metrics, "gemmd_connections_closed_total", reason=reason)
        assert prometheus.total(metrics, f"gemmd_{member}_total") == now == (reason == "no_http"), reason
    now = prometheus.total(metrics, "gemmd_connections_accepted_total")
    assert prometheus.total(metrics, "gemmd_connections_total") == now >= 2


def test_a_busy_device(daemon):
    """Its busy time grows by what its jobs took, on that device alone, and by no more than passes."""
    def busy(device):
        seconds = prometheus.total(prometheus.read(daemon), "gemmd_device_busy_seconds_total", device=device)
        return seconds, daemon.get("/v1/stats").ok().json()["queues"][device]["busy_s"]

    before, idle, began = busy("cpu:0"), busy("sim:0"), time.monotonic()
    account = daemon.post(M + "?kernel=naive&repeat=5&device=cpu", AB).ok().json()["stats"]
    after, took = busy("cpu:0"), time.monotonic() - began
    for was, now in zip(before, after):
        assert 5e-6 * account["kernel_us_min"] <= now - was <= took
    assert busy("sim:0") == idle
    assert busy("cpu:0") == after


def test_memory_of_devices(daemon):
    metrics = prometheus.read(daemon)
    for device in daemon.get("/v1/devices").json()["devices"]:
        size = prometheus.total(metrics, "gemmd_device_memory_size_bytes", device=device["name"])
        used = prometheus.total(metrics, "gemmd_device_memory_used_bytes", device=device["name"])
        assert size == device["memory_bytes"] > used > 0 and device["memory_used_bytes"] < size
    assert prometheus.total(metrics, "process_open_fds") < prometheus.total(metrics, "process_max_fds")
    assert abs(prometheus.total(metrics, "process_open_fds") - daemon.descriptors()) <= 2
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert prometheus.total(metrics, name) > 0, name


def test_reading_the_metrics_under_load(daemon):
    """Each reading is consistent in itself, however busy the daemon is."""
    def work(_):
        with daemon.client() as client:
            for _ in range(40):
                client.post(M, AB).ok()

    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        busy = [pool.submit(work, number) for number in range(8)]
        readings = [prometheus.read(daemon) for _ in range(20)]
        for future in busy:
            future.result()
    assert len(readings) == 20
