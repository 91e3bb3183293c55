"""Jobs of a wanted length: plain products, their size found by measuring this daemon."""

import contextlib
import threading
import time

import prometheus
import wire
from daemon import SLOW
from wire import RAW, target

ONE_AT_A_TIME = ("--threads", "1", "--streams", "1")

STAGES = ("receive", "decode", "queue", "h2d", "prepare", "kernel", "d2h", "encode")


def unaccounted_us(stats):
    """What of the total no part of an account explains."""
    return stats["us"]["total"] - sum(stats["us"].get(stage, 0) for stage in STAGES)


class SlowJob:
    """A product of zeros by the plain kernel, which does not care what the numbers are."""

    def __init__(self, daemon, seconds):
        size = 160
        while True:
            # The best of four: the first run of all also pays for its memory, and a busy machine may take any
            # for much longer than they are.
            us = min(self.request(daemon, size).ok().stats["us"]["kernel"] for _ in range(4))
            if us >= 5000 or size >= 1280:
                break
            size *= 2
        self.size = int(size * (seconds * 1e6 / us) ** (1 / 3))
        self.expected_s = us * 1e-6 * (self.size / size) ** 3

    @staticmethod
    def parts(size, **parameters):
        shape = f"{size}x{size}"
        path = target("/v1/matmul", shape_a=shape, shape_b=shape, kernel="naive", **parameters)
        return path, bytes(8 * size * size), {"Content-Type": RAW}

    def request(self, daemon, size=None, **parameters):
        path, body, headers = self.parts(size or self.size, **parameters)
        return daemon.post(path, body, headers, timeout=120)

    def send(self, raw, **parameters):
        """Only sends, on a bare connection; the reply can be read later or never."""
        path, body, headers = self.parts(self.size, **parameters)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return raw.send(wire.head("POST", path, *lines, f"Content-Length: {len(body)}"), body)


class Threads:
    """Runs functions beside each other and hands their results, or first failure, back."""

    def __init__(self):
        self.threads, self.results, self.failures = [], [], []

    def go(self, function, *arguments):
        def run():
            try:
                self.results.append(function(*arguments))
            except BaseException as failure:
                self.failures.append(failure)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def join(self, timeout=60):
        for thread in self.threads:
            thread.join(timeout * SLOW)
            assert not thread.is_alive(), "a request hangs"
        if self.failures:
            raise self.failures[0]
        return self.results


def wait_until(condition, what, timeout=30):
    """Long by default: a machine with other things to do may take ten times as long."""
    deadline = time.monotonic() + timeout * SLOW
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.01)


def gauge(daemon, name):
    return prometheus.total_in(prometheus.fetch(daemon), name)


def evicted(daemon):
    """Connections closed to make room for others."""
    return prometheus.total_in(prometheus.fetch(daemon), "gemmd_connections_closed_total", reason="evicted")


def all_given_back(daemon):
    """Waits for it, not long: a client may have all of a reply before the daemon has ended the
    request, and given its memory back."""
    names = ("gemmd_memory_used_bytes", "gemmd_queue_depth", "gemmd_jobs_running")

    def none():
        text = prometheus.fetch(daemon)
        return all(prometheus.total_in(text, name) == 0 for name in names)

    wait_until(none, "all of " + ", ".join(names), 3)


def rejected(daemon, reason):
    name = "gemmd_requests_rejected_total"
    return prometheus.total_in(prometheus.fetch(daemon), name, reason=reason)


@contextlib.contextmanager
def occupied(daemon, job, count=1):
    """The device busy with `count` jobs (the first running, the rest queued), on connections
    that are given."""
    connections = [daemon.raw(timeout=120) for _ in range(count)]
    try:
        for index, raw in enumerate(connections):
            job.send(raw)
            # One after the other, so that their order is known.
            if index == 0:
                wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "a running job")
            else:
                wait_until(lambda: gauge(daemon, "gemmd_queue_depth") == index, "a queued job")
        yield connections
    finally:
        for raw in connections:
            raw.socket.close()
