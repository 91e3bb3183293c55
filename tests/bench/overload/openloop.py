"""Requests sent when they are due, whether or not earlier ones have been answered, as independent
clients do; a closed loop would slow down with the daemon and hide what waiting costs. Latencies
count from the moment at which a request was due.

No packaged generator does this with bodies of several sizes from several addresses: wrk and hey
keep a fixed number of requests going, and send all from one address.
"""

import asyncio
import dataclasses
import json
import multiprocessing
import random
import socket
import time


@dataclasses.dataclass
class Stream:
    """One kind of request by one client, at a mean rate, at random moments."""

    name: str
    address: str  # the client's: 127.0.0.x
    rate: float  # a second
    path: str
    body: bytes
    headers: tuple = ("Content-Type: application/octet-stream",)
    connections: int = 1000  # at most at a time; what would need more was not sent


@dataclasses.dataclass
class Outcome:
    latency: float  # from when it was due to the last byte of its reply
    answer: float  # from when it was sent: less, where this program was late itself
    status: int
    code: str = ""  # of a problem
    retry_after: str = ""
    kernel_s: float = 0.0


class Results:
    def __init__(self, stream):
        self.stream = stream
        self.outcomes = []
        self.lost = []  # connections that ended before their reply
        self.unsent = 0  # for want of connections: the generator's fault

    def latencies(self, *statuses):
        return sorted(o.latency for o in self.outcomes if o.status in statuses)

    def answers(self, *statuses):
        return sorted(o.answer for o in self.outcomes if o.status in statuses)

    def late(self):
        """The longest that this program has been behind."""
        return max((o.latency - o.answer for o in self.outcomes), default=0.0)

    def count(self, *statuses):
        return sum(o.status in statuses for o in self.outcomes)

    def statuses(self):
        return {o.status for o in self.outcomes}

    def without_retry_after(self):
        return sum(o.status == 503 and not o.retry_after.isdigit() for o in self.outcomes)

    def sent(self):
        return len(self.outcomes) + len(self.lost)


def percentile(values, percent):
    """Of sorted values; 0 where there are none."""
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else 0.0


def read_head(text):
    """(status, headers by lower-case name) of a reply's head."""
    lines = text.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), {name.lower(): value.strip() for name, value in pairs}


IDLE_S = 20  # a connection that was idle for longer is not used again: it may be being closed


class Connection:
    def __init__(self, loop, port, address):
        self.loop, self.port, self.address, self.buffer = loop, port, address, b""
        self.used = time.monotonic()
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind((address, 0))

    async def open(self):
        await self.loop.sock_connect(self.socket, ("127.0.0.1", self.port))
        return self

    async def more(self, size=1 << 20):
        data = await self.loop.sock_recv(self.socket, size)
        if not data:
            raise ConnectionError("closed before the reply was whole")
        return data

    async def request(self, head, body):
        """(status, headers, body or its first piece, whether the connection may be used again)"""
        if len(body) < 65536:
            await self.loop.sock_sendall(self.socket, head + body)
        else:
            # A refusal may come before the body has gone, and close the connection under it.
            try:
                await self.loop.sock_sendall(self.socket, head)
                await self.loop.sock_sendall(self.socket, memoryview(body))
            except (ConnectionResetError, BrokenPipeError):
                pass
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += await self.more()
        text, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status, headers = read_head(text)
        first, left = self.buffer[:4096], int(headers["content-length"]) - len(self.buffer)
        self.buffer = b""
        while left > 0:
            piece = await self.more(min(left, 1 << 20))
            left -= len(piece)
            if len(first) < 4096:
                first += piece
        return status, headers, first, headers.get("connection", "").lower() != "close"

    def close(self):
        self.socket.close()


async def one(loop, port, stream, idle, results, due):
    head = "\r\n".join([f"POST {stream.path} HTTP/1.1", "Host: localhost", *stream.headers,
                        f"Content-Length: {len(stream.body)}", "", ""]).encode()
    connection = idle.pop() if idle else None
    if connection and time.monotonic() - connection.used > IDLE_S:
        idle.append(connection)
        while idle:  # all others have been idle for longer
            idle.pop().close()
        connection = None
    try:
        connection = connection or await Connection(loop, port, stream.address).open()
        sent = time.monotonic()
        status, headers, body, again = await connection.request(head, stream.body)
    except OSError as failure:
        results.lost.append(repr(failure))
        if connection:
            connection.close()
        return
    now = time.monotonic()
    outcome = Outcome(now - due, now - sent, status, retry_after=headers.get("retry-after", ""))
    if status == 200:
        outcome.kernel_s = json.loads(headers["gemmd-stats"])["us"].get("kernel", 0) * 1e-6
    elif headers.get("content-type", "").startswith("application/problem+json"):
        outcome.code = json.loads(body)["code"]
    results.outcomes.append(outcome)
    if again:
        connection.used = time.monotonic()
        idle.append(connection)
    else:
        connection.close()


async def drive(port, stream, seconds, seed):
    loop, rng = asyncio.get_running_loop(), random.Random(f"{seed} {stream.name}")
    results, idle, tasks = Results(stream), [], set()
    due = begin = time.monotonic()
    while (due := due + rng.expovariate(stream.rate)) < begin + seconds:
        await asyncio.sleep(max(0, due - time.monotonic()))
        if len(tasks) >= stream.connections:
            results.unsent += 1
            continue
        tasks.add(task := loop.create_task(one(loop, port, stream, idle, results, due)))
        task.add_done_callback(tasks.discard)
    while tasks:
        await asyncio.wait(tasks)
    for connection in idle:
        connection.close()
    return results


def _process(pipe, port, stream, seconds, seed):
    results = asyncio.run(drive(port, stream, seconds, seed))
    results.stream = dataclasses.replace(stream, body=b"")
    pipe.send(results)


def run(port, streams, seconds, seed=1):
    """Results by the streams' names. Each stream has a process: none waits for another's bodies."""
    running = []
    for stream in streams:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_process, args=(theirs, port, stream, seconds, seed))
        process.start()
        theirs.close()
        running.append((stream, ours, process))
    results = {}
    for stream, pipe, process in running:
        results[stream.name] = pipe.recv()
        process.join()
    return results
