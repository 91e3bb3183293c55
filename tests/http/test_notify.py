"""What a service manager is told of the daemon's life, and when its watchdog hears nothing."""

import resource
import signal
import socket
import time

import pytest

from daemon import SLOW, run
from jobs import wait_until


class Manager:
    """The manager's end of NOTIFY_SOCKET."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.name = name

    def environment(self, watchdog_s=None):
        env = {"NOTIFY_SOCKET": self.name}
        if watchdog_s:
            env["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        return env

    def next(self, timeout=10):
        """The next message as a dictionary; None if none comes."""
        self.socket.settimeout(timeout * SLOW)
        try:
            text = self.socket.recv(4096).decode()
        except TimeoutError:
            return None
        return dict(line.split("=", 1) for line in text.split("\n"))

    def flush(self):
        while self.next(timeout=0.001 / SLOW) is not None:
            pass


@pytest.fixture
def manager(tmp_path):
    one = Manager(str(tmp_path / "notify"))
    yield one
    one.socket.close()


def test_ready_when_it_is_and_stopping_when_it_stops(start, manager):
    daemon = start("--drain-delay", f"{int(500 * SLOW)}ms", env=manager.environment())
    told = manager.next()
    assert told == {"READY": "1", "STATUS": f"listening on http://127.0.0.1:{daemon.port}"}
    daemon.get("/healthz").ok()
    assert manager.next(timeout=0.3) is None, "no watchdog was asked for"
    daemon.signal(signal.SIGTERM)
    began = time.monotonic()
    assert manager.next() == {"STOPPING": "1", "STATUS": "draining"}
    assert time.monotonic() - began < 0.4 * SLOW, "at the beginning of the drain, not its end"
    assert daemon.wait() == 0


def test_an_abstract_socket(start):
    manager = Manager(f"@gemmd-test-{time.monotonic_ns()}")
    start(env=manager.environment())
    assert manager.next()["READY"] == "1"
    manager.socket.close()


def test_signs_of_life_come_at_half_of_the_time(start, manager):
    period = 1.0 * SLOW
    start(env=manager.environment(period))
    assert manager.next()["READY"] == "1"
    assert manager.next() == {"WATCHDOG": "1"}
    began = time.monotonic()
    for _ in range(6):
        assert manager.next(timeout=period / SLOW) == {"WATCHDOG": "1"}
    assert 6 * 0.49 * period <= time.monotonic() - began < 6 * 0.8 * period


def test_no_sign_of_life_of_a_daemon_that_answers_nobody(start, manager):
    """Here it has no descriptor left for whoever comes, and the rest of it is well."""
    daemon = start(env=manager.environment(0.8 * SLOW))
    assert manager.next()["READY"] == "1"
    assert manager.next() == {"WATCHDOG": "1"}
    _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    # One for its own end of a connection to itself, and none for the other. Looked at more than
    # once: such a connection may be there just now.
    idle = min(daemon.descriptors() for _ in range(20) if not time.sleep(0.01))
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (idle + 1, hard))
    time.sleep(0.5 * SLOW)
    manager.flush()
    assert manager.next(timeout=1.5) is None
    assert "event=watchdog" in daemon.log() and "no answer from" in daemon.log(), daemon.last_words()
    # The manager would have ended it by now; where it has not, life goes on.
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (hard, hard))
    assert manager.next() == {"WATCHDOG": "1"}


def test_it_ends_although_nobody_listens_any_more(start, manager):
    daemon = start(env=manager.environment(0.4 * SLOW))
    manager.socket.close()
    wait_until(lambda: "event=watchdog" in daemon.log(), "a line about it")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert "event=notify" in daemon.log()


@pytest.mark.parametrize("env, named", [
    ({"NOTIFY_SOCKET": "somewhere"}, "NOTIFY_SOCKET"),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC"),
])
def test_what_cannot_be_told_is_fatal_and_named(env, named):
    done = run("--listen", "127.0.0.1:0", env=env)
    assert done.returncode == 3 and named in done.stderr, done
    assert done.stdout == ""


def test_connections_beyond_the_soft_limit_of_descriptors(start):
    """Started with few, it takes as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 600:
        pytest.skip(f"this process may have but {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        daemon = start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
        connections = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(450)]
        wait_until(lambda: daemon.descriptors() > 450, "all of them to be taken")
        daemon.get("/healthz").ok()
        for connection in connections:
            connection.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_as_many_clients_as_there_may_be_are_no_reason_to_restart(start, manager):
    """Those who are silent make room for who is not, the daemon's own look at itself included."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4500:
        pytest.skip(f"this process may have but {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = []
    try:
        daemon = start("--log-level", "warn", env=manager.environment(0.8 * SLOW))
        limit = daemon.get("/v1/stats").json()["limits"]["connections_max"]["value"]
        for _ in range(limit + 10):
            clients.append(socket.create_connection(("127.0.0.1", daemon.port)))
        manager.flush()
        for _ in range(3):
            assert manager.next() == {"WATCHDOG": "1"}
        probe = run("--probe", "--listen", f"127.0.0.1:{daemon.port}")
        assert probe.returncode == 0, probe
        assert daemon.descriptors() > limit / 2, "there is a crowd still"
        assert manager.next() == {"WATCHDOG": "1"}
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: daemon.descriptors() < 100, "them to be gone", 10)
    daemon.get("/healthz").ok()
