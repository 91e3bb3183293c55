"""`gemmd --probe`: what a container asks itself with, and its exit status for every answer."""

import signal
import socket
import subprocess
import threading
import time

import pytest

from daemon import BINARY, SLOW, environment, run
from jobs import ONE_AT_A_TIME, SlowJob, wait_until


def probe(*options, env=None):
    return run("--probe", *options, env=env)


def at(port, host="127.0.0.1"):
    return ("--listen", f"{host}:{port}")


def check_alive(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def check_dead(done, *words):
    """1, which says "not healthy" to every supervisor, and a line that says why."""
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("gemmd: ") and done.stderr.count("\n") == 1, done
    for word in words:
        assert word in done.stderr, done


def test_alive(daemon):
    check_alive(probe(*at(daemon.port)))
    check_alive(probe(env={"GEMMD_LISTEN": f"127.0.0.1:{daemon.port}"}))
    check_alive(probe(*at(daemon.port, "localhost")))
    # The options of the daemon may stand there as they are.
    check_alive(probe("--threads", "2", "--drain-timeout=9s", *at(daemon.port)))


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[::1]"])
def test_where_it_listens_is_where_it_is_asked(host):
    """One variable tells the daemon and its probe, as in a container."""
    family = socket.AF_INET6 if "[" in host else socket.AF_INET
    with socket.socket(family) as free:
        try:
            free.bind((host.strip("[]"), 0))
        except OSError as fault:
            pytest.skip(f"{host}: {fault}")
        port = free.getsockname()[1]
    env = {"GEMMD_LISTEN": f"{host}:{port}", "GEMMD_INSECURE": "yes"}
    with subprocess.Popen([BINARY], env=environment(env), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout.readline() == f"listening on http://{host}:{port}\n"
            check_alive(probe(env=env))
        finally:
            process.terminate()
            assert process.wait(15 * SLOW) == 0
    check_dead(probe(env=env), str(port), "Connection refused")


def test_it_is_no_client_that_went_away(start):
    """Nor a request of a kind of its own: the log has it like any other, for who asks for all."""
    daemon = start("--log-level", "debug")
    for _ in range(5):
        check_alive(probe(*at(daemon.port)))
    wait_until(lambda: daemon.log().count('path="/healthz" status=200') == 5, "five requests")
    assert "outcome=aborted" not in daemon.log()


def test_probes_that_go_well_are_no_news(start):
    """They come every few seconds for ever. One that fails is."""
    daemon = start("--drain-delay", f"{int(500 * SLOW)}ms")
    for path in ("/healthz", "/readyz", "/metrics"):
        assert daemon.get(path).status == 200
    assert daemon.post("/v1/transpose", b"[[1]]").status == 200
    wait_until(lambda: 'path="/v1/transpose"' in daemon.log(), "an ordinary request")
    assert daemon.log().count("event=request") == 1
    daemon.signal(signal.SIGTERM)
    wait_until(lambda: daemon.get("/readyz").status == 503, "not ready")
    wait_until(lambda: 'path="/readyz" status=503' in daemon.log(), "its failure")
    assert daemon.wait() == 0


def test_busy_is_alive(start):
    daemon = start(*ONE_AT_A_TIME)
    job = SlowJob(daemon, 1.0)
    with daemon.raw(timeout=60) as raw:
        job.send(raw)
        time.sleep(0.1)
        check_alive(probe(*at(daemon.port)))
        raw.reply().ok()


def test_draining_is_alive(start):
    """A daemon that ends in good order is not to be killed meanwhile."""
    daemon = start("--drain-delay", f"{int(1500 * SLOW)}ms")
    daemon.signal(signal.SIGTERM)
    wait_until(lambda: daemon.get("/readyz").status == 503, "not ready", 1.0)
    check_alive(probe(*at(daemon.port)))
    assert daemon.wait() == 0


def test_nobody_there():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # and does not listen
        check_dead(probe(*at(reserved.getsockname()[1])), "127.0.0.1", "Connection refused")


class Other:
    """Somebody else's server: reads a request, sends this, and keeps the connection or not."""

    def __init__(self, answer, close=True):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, args=(answer, close))
        self.thread.start()

    def serve(self, answer, close):
        connection, _ = self.socket.accept()
        while b"\r\n\r\n" not in connection.recv(4096):
            pass
        connection.sendall(answer)
        if not close:
            connection.recv(1)  # until the other side has had enough
        connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join()
        self.socket.close()


@pytest.mark.parametrize("answer, said", [
    (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "503 Service Unavailable"),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
    (b"220 mail.example.org ready\r\n", "220 mail.example.org"),
    (b"", "answers"),
    (b"\x1b[2J\r\n", "\\x1b"),
])
def test_other_answers_are_not_alive(answer, said):
    with Other(answer) as other:
        check_dead(probe(*at(other.port)), str(other.port), said)


def test_no_answer_in_time_is_not_alive():
    began = time.monotonic()
    with Other(b"HTTP/1.1 200 OK\r\n", close=False) as other:
        check_dead(probe(*at(other.port)), "no answer", "timed out")
    assert 1.9 < time.monotonic() - began < 2 + 3 * SLOW


def test_a_stopped_daemon_is_not_alive(start):
    """Its sockets still take connections, and nobody answers them."""
    daemon = start()
    daemon.signal(signal.SIGSTOP)
    try:
        check_dead(probe(*at(daemon.port)), "no answer")
    finally:
        daemon.signal(signal.SIGCONT)
    check_alive(probe(*at(daemon.port)))


@pytest.mark.parametrize("options", [("--threads", "x"), ("--probe=1",), ("now",)])
def test_misuse_is_no_verdict(options):
    assert probe("--listen", "127.0.0.1:1", *options).returncode == 2
