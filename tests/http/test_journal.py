"""--log-to journald and syslog: what arrives at a real socket in the place of theirs, from within the sandbox."""

import json
import os
import re
import socket
import struct
import time

import pytest

from daemon import run
from jobs import wait_until
from keyring import Keyring

T = "/v1/transpose"


class Logger:
    """A socket that others log to."""

    def __init__(self, path):
        self.path, self.lines = str(path), []
        self.open()

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()
        os.unlink(self.path)

    def all(self):
        try:
            while True:
                self.lines.append(self.socket.recv(1 << 17))
        except BlockingIOError:
            return self.lines

    def entries(self):
        return [fields_of(line) for line in self.all()]

    def of(self, event):
        wait_until(lambda: any(e.get("GEMMD_EVENT") == event for e in self.entries()), event)
        return [e for e in self.entries() if e.get("GEMMD_EVENT") == event]


def fields_of(datagram):
    """Of journald's native protocol: NAME=VALUE lines, and those with a length."""
    fields = {}
    while datagram:
        line, _, datagram = datagram.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size, = struct.unpack("<Q", datagram[:8])
            value, end, datagram = datagram[8:8 + size], datagram[8 + size:9 + size], datagram[9 + size:]
            assert end == b"\n"
        assert re.fullmatch(rb"[A-Z][A-Z0-9_]{0,63}", name), name
        fields[name.decode()] = value.decode()
    return fields


@pytest.fixture
def logger(tmp_path):
    logger = Logger(tmp_path / "log")
    yield logger
    logger.socket.close()


@pytest.fixture
def ring(tmp_path):
    ring = Keyring(str(tmp_path / "keys"))
    ring.add("alice", "read")
    return ring


def use(daemon, ring):
    """A request that is served, and one that is refused, with a name that has a newline in it."""
    daemon.get("/v1/kernels", ring.headers("alice")).ok()
    assert daemon.post(T, b"[[1]]", {**ring.headers("alice"), "X-Request-Id": "77"}).status == 403
    assert daemon.get("/none%0a%22x", ring.headers("alice")).status == 404


@pytest.mark.parametrize("fmt", ["logfmt", "json"])
def test_journald(start, logger, ring, fmt):
    daemon = start("--keys", ring.path, "--log-to", f"journald:{logger.path}", "--log-format", fmt)
    use(daemon, ring)
    audit, = logger.of("audit")
    assert audit["GEMMD_KEY"] == "alice" and audit["GEMMD_CLIENT"] == "127.0.0.1" and audit["GEMMD_ID"] == "77"
    assert audit["GEMMD_OUTCOME"] == "refused" and audit["GEMMD_CODE"] == "forbidden"
    assert audit["GEMMD_REASON"] == "the key alice may not do this: its line has no role use"
    assert (audit["PRIORITY"], audit["SYSLOG_FACILITY"], audit["SYSLOG_IDENTIFIER"]) == ("4", "10", "gemmd")
    wait_until(lambda: len(logger.of("request")) == 3, "three requests")
    # Each was on a connection of its own: their threads log in any order.
    requests = {entry["GEMMD_STATUS"]: entry for entry in logger.of("request")}
    assert set(requests) == {"200", "403", "404"} and requests["404"]["GEMMD_PATH"] == '/none\n"x'
    served = requests["200"]
    assert served["PRIORITY"] == "6" and served["SYSLOG_FACILITY"] == "3"
    message = served["MESSAGE"]
    if fmt == "json":
        assert json.loads(message)["event"] == "request"
    else:
        assert message.startswith("event=request id=") and "level=" not in message and "\n" not in message
    daemon.stop()
    assert daemon.log() == "" and logger.of("exit")


def test_syslog(start, logger, ring):
    daemon = start("--keys", ring.path, "--log-to", f"syslog:{logger.path}")
    use(daemon, ring)
    wait_until(lambda: sum(b" event=request " in line for line in logger.all()) == 3, "three requests")
    stamp = rb"[A-Z][a-z]{2} [ 123]\d \d\d:\d\d:\d\d gemmd\[%d\]: " % daemon.pid
    for line in logger.all():
        assert re.match(rb"<(30|84)>" + stamp + rb"event=", line), line
        assert line.startswith(b"<84>") == (b"event=audit " in line)  # authpriv, warning
    assert any(b"event=audit id=77 client=127.0.0.1 key=alice " in line for line in logger.all())


def test_a_logger_that_is_away_stops_nobody(start, logger, ring):
    """What it missed is counted, and told of when it is back."""
    daemon = start("--keys", ring.path, "--log-to", f"journald:{logger.path}")
    logger.of("device")
    logger.close()
    for _ in range(20):
        daemon.get("/v1/kernels", ring.headers("alice")).ok()
    time.sleep(0.6)  # what looks after lines that were left does not tell of them elsewhere
    logger.open()
    daemon.get("/v1/kernels", ring.headers("alice")).ok()
    # A line is written after its reply, so the last ones may find the logger back.
    dropped = int(logger.of("log")[0]["GEMMD_DROPPED"])
    assert 10 <= dropped <= 20
    wait_until(lambda: dropped + len(logger.of("request")) == 21, "a line for each request, or a count of it")


def test_a_logger_that_reads_nothing_stops_nobody(start, logger, ring):
    """Its socket is full after some lines."""
    daemon = start("--keys", ring.path, "--log-to", f"syslog:{logger.path}")
    with daemon.client() as client:
        for _ in range(400):
            client.get("/v1/kernels", ring.headers("alice")).ok()
    wait_until(lambda: daemon.get("/healthz", ring.headers("alice")).status == 200, "an answer")
    assert 0 < len(logger.all()) < 400


@pytest.mark.parametrize("place", ["journal", "journald:", "journald:x", "stderr:/x", "syslogs", "syslog:/" + "x" * 200])
def test_what_is_no_place(place):
    done = run("--log-to", place)
    assert done.returncode == 2 and "--log-to" in done.stderr, done


def test_nobody_is_there(tmp_path):
    for options, status in (((), 3), (("--check",), 1)):
        done = run("--listen", "127.0.0.1:0", "--log-to", f"journald:{tmp_path}/none", *options)
        assert done.returncode == status and f"{tmp_path}/none: No such file" in done.stderr, done
