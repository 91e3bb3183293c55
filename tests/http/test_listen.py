"""Where gemmd listens: several addresses, and Unix sockets with their permissions and files."""

import os
import signal
import socket
import stat
import subprocess

import pytest

from daemon import Daemon, run
from jobs import wait_until


def ask(path, text=b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
    """One request over a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(path))
        client.sendall(text)
        reply = b""
        while piece := client.recv(65536):
            reply += piece
        return reply


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gemmd.sock"


def mode_of(path):
    found = os.stat(path).st_mode
    assert stat.S_ISSOCK(found)
    return stat.S_IMODE(found)


@pytest.mark.parametrize("more,mode", [("", 0o600), (",mode=0660", 0o660), (",mode=777", 0o777)])
def test_a_unix_socket_and_its_mode(start, path, more, mode):
    daemon = start("--listen", f"unix:{path}{more}")
    assert mode_of(path) == mode
    assert ask(path).startswith(b"HTTP/1.1 200")
    body = b"[[1,2],[3,4]]"
    reply = ask(path, b"POST /v1/transpose HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"[[1,3],[2,4]]" in reply
    assert "anyone who can reach" not in daemon.log()
    done = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/healthz"],
                          capture_output=True, text=True, timeout=30)
    assert done.stdout == "ok\n", done
    assert run("--probe", "--listen", f"unix:{path}").returncode == 0
    daemon.get("/healthz").ok()  # the other address serves too
    daemon.stop()
    assert not path.exists()


def test_a_socket_of_a_daemon_that_was_killed(start, path):
    first = Daemon("--listen", f"unix:{path}")
    first.kill()
    assert path.exists()
    assert run("--probe", "--listen", f"unix:{path}").returncode == 1
    start("--listen", f"unix:{path}")
    assert ask(path).startswith(b"HTTP/1.1 200")


def test_a_socket_in_use_is_left_alone(start, path):
    start("--listen", f"unix:{path}")
    done = run("--listen", f"unix:{path}")
    assert done.returncode == 3 and "already in use" in done.stderr, done
    assert ask(path).startswith(b"HTTP/1.1 200")


def test_a_file_that_is_no_socket_is_left_alone(path):
    path.write_text("precious")
    done = run("--listen", f"unix:{path}")
    assert done.returncode == 3 and str(path) in done.stderr, done
    assert path.read_text() == "precious"


def test_what_another_has_put_there_stays(start, path):
    daemon = start("--listen", f"unix:{path}")
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        daemon.stop()
        assert path.exists()


def test_a_client_that_leaves_is_noticed(start, path):
    """And one that comes when gemmd drains is served, as over TCP."""
    daemon = start("--listen", f"unix:{path}", "--drain-delay", "1s")
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"POST /v1/transpose HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n[")
    wait_until(lambda: b"gemmd_requests_in_flight 1\n" in ask(
        path, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "they are gone")
    daemon.signal(signal.SIGTERM)
    assert ask(path).startswith(b"HTTP/1.1 200")
    assert daemon.wait() == 0


def test_several_addresses_in_all_ways(start, path, tmp_path):
    other = tmp_path / "other.sock"
    env = {"GEMMD_LISTEN": f"127.0.0.1:0 unix:{other}"}
    daemon = Daemon(env=env, listen=False)
    try:
        daemon.get("/healthz").ok()
        assert ask(other).startswith(b"HTTP/1.1 200")
    finally:
        daemon.stop()
        daemon.kill()
    # The command line's take the place of the variable's.
    daemon = start("--listen", f"unix:{path}", env=env)
    assert ask(path).startswith(b"HTTP/1.1 200") and not other.exists()


@pytest.mark.parametrize("text", ["unix:", "unix:" + "x" * 200, "unix:/x,mode=", "unix:/x,mode=9",
                                  "unix:/x,mode=1777", "unix:/x,mode=-1", "127.0.0.1:1,plane",
                                  " ".join(["127.0.0.1:0"] * 9)])
def test_what_is_no_address(text):
    done = run("--listen", text)
    assert done.returncode == 2 and "--listen" in done.stderr, done
