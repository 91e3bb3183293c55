"""What every attack is measured by: the counters that it moved, and that all it took is back."""

import contextlib
import os

import prometheus
import wire
from jobs import wait_until

HASTY = os.environ.get("GEMMD_HASTY_BIN", "")
HASTE = 30  # how much faster its time runs

# What /metrics calls the reasons for which connections were closed.
CLOSED = {"no_http_connections": "no_http", "idle_connections_ended": "idle", "slow_heads_ended": "slow_head",
          "slow_bodies_ended": "slow_body", "slow_readers_ended": "slow_reader", "evicted_connections": "evicted"}


class Seen:
    """A daemon's figures at the beginning of an attack, to compare with later ones."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.before = prometheus.fetch(daemon)
        self.stats = daemon.get("/v1/stats").ok().json()

    def moved(self, name, **labels):
        """By how much a metric has grown."""
        after = prometheus.total_in(prometheus.fetch(self.daemon), name, **labels)
        return after - prometheus.total_in(self.before, name, **labels)

    def check(self, name, growth, **labels):
        """The growth of a counter, which may take a moment and must stay."""
        wait_until(lambda: self.moved(name, **labels) >= growth, f"{name} {labels} +{growth}")
        assert self.moved(name, **labels) == growth, (name, labels)

    def failed(self, code, growth=1):
        """A failure of this code: in /metrics, and the same in /v1/stats."""
        self.check("gemmd_requests_rejected_total", growth, reason=code)
        now = self.daemon.get("/v1/stats").ok().json()["failed"].get(code, 0)
        assert now - self.stats["failed"].get(code, 0) == growth

    def counted(self, name, growth=1):
        """A counter of stats.h's lists, by its name in /v1/stats: there, and the same in /metrics."""
        if name in CLOSED:
            self.check("gemmd_connections_closed_total", growth, reason=CLOSED[name])
        else:
            self.check(f"gemmd_{name}_total", growth)
        now = self.daemon.get("/v1/stats").ok().json()["counters"][name]
        assert now - self.stats["counters"][name] == growth


@contextlib.contextmanager
def unharmed(daemon):
    """Around an attack: gives a Seen; afterwards memory, connections and descriptors are what they
    were, and an ordinary client is served."""
    seen = Seen(daemon)
    descriptors = daemon.descriptors()
    connections = prometheus.total_in(seen.before, "gemmd_connections")
    yield seen

    def settled():
        now = prometheus.fetch(daemon)
        return (
            prometheus.total_in(now, "gemmd_memory_used_bytes") == 0
            and prometheus.total_in(now, "gemmd_requests_in_flight") == 1  # the one that asks
            and prometheus.total_in(now, "gemmd_connections") <= connections
            and daemon.descriptors() <= descriptors
        )

    wait_until(settled, "memory, connections and descriptors given back")
    assert daemon.post("/v1/transpose", b"[[1, 2]]").ok().json()["data"] == [[1], [2]]


def post(path, *headers, body=b""):
    """A whole POST, as bytes."""
    return wire.head("POST", path, *headers, f"Content-Length: {len(body)}") + body


def everything(raw, timeout=5):
    """What comes until the connection is closed, or reset; fails if it stays open."""
    raw.socket.settimeout(timeout)
    data = raw.buffer
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while piece := raw.socket.recv(65536):
            data += piece
    return data
