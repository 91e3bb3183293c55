"""More than gemmd can do, offered in open loop: jobs of 5 to 20 ms arrive at ten times the rate at
which the device does them, whether earlier ones were answered or not.

    open_loop.py --gemmd GEMMD [--backend cpu] [--times 10] [--seconds 10] [--timeout-ms 1000] [--shared]
                 [--json FILE]

A closed loop, as load.py's, waits for answers, so it never offers more than is done. Arrivals here are
a Poisson process. A job is a product that is repeated until it takes its time: its operands are small,
so that the device is what is short, and not the socket. It says how long a refusal takes, how many of
those served are late, and whether the device was kept busy.

A repeated product has the device alone. With --shared a job is one product, of the size that takes its
time, and runs beside others on streams: for a slow device, as gemmd_fake has it:

    FAKE_GFLOPS=1 FAKE_STREAMS=3 open_loop.py --gemmd build/release/tests/gemmd_fake --backend fake --shared
"""

import argparse
import asyncio
import collections
import datetime
import json
import os
import random
import time

import numpy as np

import load

SIZE = 128
JOBS_MS = (5, 10, 20)
WARM_S = 2  # before what is counted: the queue fills


class Connection:
    """One connection that is kept, with a request at a time."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def post(self, head, body):
        """"served" or the error's code, and the seconds from the body's end to the reply's."""
        self.writer.write(head)
        self.writer.write(body)
        await self.writer.drain()
        began = time.monotonic()
        reply = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in reply.split(b"\r\n")[1:-2])
        content = await self.reader.readexactly(int(fields[b"content-length"]))
        took = time.monotonic() - began
        if fields.get(b"connection") == b"close":
            self.writer.close()
            self.writer = None
        return "served" if reply.split(b" ", 2)[1] == b"200" else json.loads(content)["code"], took


class Jobs:
    """Requests whose kernels take as long as JOBS_MS says."""

    def __init__(self, server, timeout_ms, shared):
        self.server, self.timeout_ms = server, timeout_ms
        one_us = self.account(SIZE, 200 if not shared else 1)["us"]["kernel"]
        if shared:
            kinds = [(round(SIZE * (1e3 * ms / one_us) ** (1 / 3)), 1) for ms in JOBS_MS]
        else:
            kinds = [(SIZE, max(2, min(1000, round(1e3 * ms / one_us)))) for ms in JOBS_MS]
        self.ms = [repeat * one_us / 1e3 * (size / SIZE) ** 3 for size, repeat in kinds]
        self.requests = [self.request(size, repeat) for size, repeat in kinds]

    def path(self, size, repeat):
        return (f"/v1/matmul?shape_a={size}x{size}&shape_b={size}x{size}&dtype=f32&repeat={repeat}"
                f"&timeout_ms={self.timeout_ms}")

    def body(self, size):
        return np.random.default_rng(1).uniform(-1, 1, (2, size, size)).astype(np.float32).tobytes()

    def account(self, size, repeat):
        connection = self.server.connection()
        connection.request("POST", self.path(size, repeat), self.body(size), {"Content-Type": load.TYPES["raw"]})
        reply = connection.getresponse()
        reply.read()
        if reply.status != 200:
            raise SystemExit(f"gemmd answers {reply.status}")
        return json.loads(reply.getheader("Gemmd-Stats"))

    def request(self, size, repeat):
        body = self.body(size)
        return (f"POST {self.path(size, repeat)} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
                f"Content-Type: {load.TYPES['raw']}\r\nContent-Length: {len(body)}\r\n\r\n").encode(), body


async def offer(jobs, rate, seconds, rng):
    """What came of each job that arrived after WARM_S: its index in JOBS_MS, outcome, seconds."""
    idle, seen, running = [], [], set()

    async def one(index, counts):
        connection = idle.pop() if idle else Connection(
            *await asyncio.open_connection("127.0.0.1", jobs.server.port))
        outcome, took = await connection.post(*jobs.requests[index])
        if connection.writer:
            idle.append(connection)
        if counts:
            seen.append((index, outcome, took))

    began = time.monotonic()
    at, late = began, 0.0
    while at < began + WARM_S + seconds:
        at += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        late = max(late, time.monotonic() - at)
        task = asyncio.create_task(one(rng.randrange(len(JOBS_MS)), at > began + WARM_S))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    for connection in idle:
        connection.writer.close()
    return seen, late


def percentile(values, percent):
    return round(1e3 * float(np.percentile(values, percent)), 2)


def main():
    parser = argparse.ArgumentParser(description="see the head of open_loop.py")
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--times", type=float, default=10, help="of what the device does")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--timeout-ms", type=int, default=1000)
    parser.add_argument("--shared", action="store_true", help="larger products, not repeated ones")
    parser.add_argument("--json", help="the result file")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    server = load.start_gemmd(options.gemmd, options.backend)
    try:
        jobs = Jobs(server, options.timeout_ms, options.shared)
        rate = options.times * 1e3 / (sum(jobs.ms) / len(jobs.ms))
        seen, late = asyncio.run(offer(jobs, rate, options.seconds, random.Random(1)))
    finally:
        server.stop()
    took_by = collections.defaultdict(list)
    for _, outcome, took in seen:
        took_by[outcome].append(took)
    row = {
        "jobs_ms": [round(ms, 2) for ms in jobs.ms], "offered_per_s": round(rate, 1), "offered": len(seen),
        "failed_share": round(1 - len(took_by["served"]) / max(1, len(seen) - len(took_by["queue_full"])), 4),
        "served_late": sum(took > options.timeout_ms / 1e3 for took in took_by["served"]),
        "device_busy": round(sum(jobs.ms[index] for index, outcome, _ in seen if outcome == "served")
                             / 1e3 / options.seconds, 3),
        "generator_late_ms": round(1e3 * late, 2),
        "outcomes": {outcome: {"count": len(took)} | {f"p{p}_ms": percentile(took, p) for p in (50, 99, 100)}
                     for outcome, took in took_by.items()},
    }
    print(json.dumps(row, indent=1))
    if options.json:
        document = {"benchmark": "open_loop", "date": datetime.datetime.now(datetime.UTC).isoformat()[:19] + "Z",
                    "commit": load.commit(),
                    "device": load.machine(options.backend == "cuda"), "cores": os.cpu_count(),
                    "load_before": round(load_before, 2), "timeout_ms": options.timeout_ms,
                    "times": options.times, "seconds": options.seconds, "shared": options.shared, "results": [row]}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
