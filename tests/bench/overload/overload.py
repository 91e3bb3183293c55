#!/usr/bin/env python3
"""More than gemmd can do, for as long as you like: what it does with the rest, and whether small
requests and quiet clients are served beside large ones and shouters.

    GEMMD_BIN=build/release/server/gemmd tests/bench/overload/overload.py [--seconds 600]

Starts a daemon of its own on this machine, and prints three parts:
  alone     small products by themselves, at a low rate: their latency without load
  mix       the same, beside products of 4096 x 4096 that take half of the device's time
  overload  ten times what the device can do, nine tenths of it by one client
Where it says that it was late itself, the machine had too little time for both: try a quiet one.
The last lines say what was promised and whether it held; the exit status is 1 where it did not.
"""

import argparse
import os
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", "http")]

import prometheus  # noqa: E402
from daemon import Daemon  # noqa: E402

from openloop import Stream, percentile, run  # noqa: E402

SMALL = 64
JOB_REPEAT = 1000  # of a small product: a job of milliseconds with a body of kilobytes


def product(size, **parameters):
    shape = f"{size}x{size}"
    query = "".join(f"&{name}={value}" for name, value in parameters.items())
    return {"path": f"/v1/matmul?shape_a={shape}&shape_b={shape}{query}", "body": bytes(8 * size * size)}


def median_s(daemon, size, **parameters):
    """How long one takes on the device by itself: the median of five."""
    request = product(size, **parameters)
    times = []
    for _ in range(5):
        began = time.monotonic()
        reply = daemon.post(request["path"], request["body"],
                            {"Content-Type": "application/octet-stream"}, timeout=120).ok()
        us = reply.stats["us"]["kernel"] * parameters.get("repeat", 1)
        times.append(min(time.monotonic() - began, us * 1e-6))
    return sorted(times)[2]


class Memory:
    """The daemon's resident memory, watched."""

    def __init__(self, daemon):
        self.daemon, self.most, self.stopped = daemon, 0, threading.Event()
        self.samples = []
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        while not self.stopped.wait(0.1):
            self.samples.append(self.daemon.rss_bytes())
            self.most = max(self.most, self.samples[-1])

    def stop(self):
        self.stopped.set()
        self.thread.join()


def milliseconds(values):
    return " ".join(f"p{p}={1e3 * percentile(values, p):.1f}" for p in (50, 99, 100))


def show(part, results):
    for name, r in results.items():
        served, refused = r.latencies(200), r.answers(503)
        print(f"{part:9}{name:8} sent={r.sent()} served={len(served)} ms({milliseconds(served)}) "
              f"refused={len(refused)} ms({milliseconds(refused)}) lost={len(r.lost)} "
              f"unsent={r.unsent} late={r.late():.1f}s", flush=True)


class Verdict:
    def __init__(self):
        self.failed = False

    def add(self, held, sentence):
        self.failed = self.failed or not held
        print(("holds: " if held else "FAILS: ") + sentence, flush=True)


def check_answers(verdict, daemon, parts, before):
    """All were answered, 200 or 503 with Retry-After, and the daemon counted the same."""
    every = [r for results in parts for r in results.values()]
    statuses = set().union(*(r.statuses() for r in every))
    lost = [text for r in every for text in r.lost]
    verdict.add(statuses <= {200, 503}, f"no status but 200 and 503: {sorted(statuses)}")
    verdict.add(not lost, f"none lost: {len(lost)} {lost[:3]}")
    missing = sum(r.without_retry_after() for r in every)
    verdict.add(missing == 0, f"Retry-After with each 503: {missing} without")
    for status in (200, 503):
        counted = answered(daemon, status) - before[status]
        seen = sum(r.count(status) for r in every)
        verdict.add(counted == seen, f"counted as {status}: {counted:.0f}; seen: {seen}")


def answered(daemon, status):
    return prometheus.total(prometheus.read(daemon), "gemmd_http_requests_total",
                            route="/v1/matmul", code=str(status))


def measure(options):
    daemon = Daemon("--memory-limit", options.memory_limit, "--log-level", "warn")
    verdict, ready = Verdict(), daemon.rss_bytes()
    limit = prometheus.total(prometheus.read(daemon), "gemmd_memory_limit_bytes")
    memory = Memory(daemon)
    try:
        large_s = median_s(daemon, options.large)
        job_s = median_s(daemon, SMALL, repeat=JOB_REPEAT)
        print(f"on the device: {options.large}x{options.large} {large_s:.3f} s, the job of the "
              f"overload {1e3 * job_s:.2f} ms; ready with {ready >> 20} MB", flush=True)
        before = {status: answered(daemon, status) for status in (200, 503)}
        part = min(60, max(5, options.seconds / 3))
        small = Stream("small", "127.0.0.2", 50, **product(SMALL))
        alone = run(daemon.port, [small], part)
        show("alone", alone)
        large_rate = 0.5 / large_s
        mix = run(daemon.port, [
            Stream("small", "127.0.0.2", max(50, 9 * large_rate), **product(SMALL)),
            Stream("large", "127.0.0.2", large_rate, **product(options.large))],
            max(part, 10 / large_rate))
        show("mix", mix)
        job = product(SMALL, repeat=JOB_REPEAT)
        over = run(daemon.port, [
            Stream("shouter", "127.0.0.3", 9 / job_s, **job),
            Stream("polite", "127.0.0.4", 0.03 / job_s, **job),
            Stream("other", "127.0.0.5", 1 / job_s, **job)], options.seconds)
        show("overload", over)
        check_answers(verdict, daemon, (alone, mix, over), before)
        counters = daemon.get("/v1/stats").json()["counters"]
        print("counters: " + " ".join(f"{name}={n}" for name, n in counters.items() if n), flush=True)
    finally:
        memory.stop()
    p99_alone = percentile(alone["small"].latencies(200), 99)
    p99_mix = percentile(mix["small"].latencies(200), 99)
    in_mix_s = max([large_s, *(o.kernel_s for o in mix["large"].outcomes)])
    verdict.add(p99_mix <= 3 * p99_alone + in_mix_s,
                f"p99 of small beside large {1e3 * p99_mix:.1f} ms <= 3 x {1e3 * p99_alone:.1f} ms "
                f"alone + {1e3 * in_mix_s:.0f} ms, the longest a large one took")
    polite = over["polite"]
    verdict.add(polite.count(200) == polite.sent(),
                f"a client within its share is served: {polite.count(200)} of {polite.sent()}")
    refused = sorted(sum((r.answers(503) for r in over.values()), []))
    verdict.add(percentile(refused, 99) < 0.25,
                f"p99 of {len(refused)} refusals {1e3 * percentile(refused, 99):.1f} ms < 250 ms")
    tail = memory.samples[len(memory.samples) // 2:]
    print(f"memory: ready {ready >> 20} MB, most {memory.most >> 20} MB, second half "
          f"{min(tail) >> 20} to {max(tail) >> 20} MB")
    verdict.add(memory.most <= ready + limit + (64 << 20),
                f"resident at most {memory.most >> 20} MB <= {ready >> 20} + "
                f"{int(limit) >> 20} + 64 MB")
    daemon.stop()
    return 1 if verdict.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30, help="of overload (default 30)")
    parser.add_argument("--large", type=int, default=4096, help="side of a large product")
    parser.add_argument("--memory-limit", default="2G", help="the daemon's (default 2G)")
    return measure(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
