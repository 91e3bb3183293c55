"""What the tests of gemmctl share: the program, a daemon, and a server before it that speaks TLS or listens on a
Unix socket, wants a key, or is slow."""

import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import pty
import select
import socket
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))

from daemon import BINARY, SLOW, Daemon  # noqa: E402

# Beside the daemon in a build folder.
GEMMCTL = pathlib.Path(BINARY).resolve().parent.parent / "clients" / "c" / "gemmctl"
if not os.access(GEMMCTL, os.X_OK):
    pytest.skip("gemmctl is not in this build: there is no libcurl", allow_module_level=True)


def environment(**extra):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("GEMMD_") and name not in ("NO_COLOR", "TERM")}
    return {**kept, "TERM": "xterm", **extra}


def gemmctl(*arguments, url=None, stdin=b"", env=None, timeout=60):
    """(status, stdout, stderr): bytes out, text of errors."""
    where = ("--url", url) if url else ()
    done = subprocess.run([GEMMCTL, *map(str, arguments), *where], input=stdin, capture_output=True,
                          env=environment(**(env or {})), timeout=timeout * SLOW)
    errors = done.stderr.decode()
    assert "Sanitizer" not in errors and "runtime error" not in errors, errors
    return done.returncode, done.stdout, errors


def on_terminal(*arguments, keys=b"", until=None, env=None):
    """(status, what a terminal of 80 x 24 was sent); keys are typed once `until` was seen."""
    try:
        pid, terminal = pty.fork()
    except OSError as error:
        pytest.skip(f"this system has no terminals: {error}")
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        os.execve(GEMMCTL, [str(GEMMCTL), *map(str, arguments)], environment(**(env or {})))
    seen, deadline = b"", time.monotonic() + 30 * SLOW
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side has closed
            break
        if not part:
            break
        seen += part
        if until and until in seen:
            os.write(terminal, keys)
            until = None
    else:
        os.kill(pid, 9)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


@pytest.fixture(scope="module")
def server():
    one = Daemon()
    yield one
    one.stop()


@pytest.fixture
def url(server):
    return server.url("")


class Front(http.server.BaseHTTPRequestHandler):
    """Asks for a key, answers as it is told, or hands the request on to the daemon."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        told = self.server.told
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.heads.append(dict(self.headers))
        if self.server.pause:
            time.sleep(self.server.pause)
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            told = (401, {}, {"code": "unauthorized", "detail": "a key is needed", "request_id": "r-9"})
        if told:
            status, headers, document = told
            text = json.dumps(document).encode()
            kind = "application/problem+json"
        else:
            headers = {n: v for n, v in self.headers.items() if n.lower() in ("accept", "content-type")}
            reply = self.server.daemon_behind.request(self.command, self.path, body, headers)
            status, text = reply.status, reply.body
            kind = reply.header("content-type")
            headers = {n: v for n, v in reply.headers if n.startswith("gemmd-")}
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass

    def address_string(self):
        return "a client"


class FrontServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # clients that leave, or do not trust us
        pass


@contextlib.contextmanager
def front(daemon, *, tls=None, unix=None, key=None, told=None, pause=0):
    """A server on a free port of 127.0.0.1, or on a Unix socket; tls: (certificate, key) files."""
    one = FrontServer(("127.0.0.1", 0), Front, bind_and_activate=not unix)
    if unix:
        one.socket.close()
        one.socket = socket.socket(socket.AF_UNIX)
        one.socket.bind(str(unix))
        one.socket.listen()
    one.daemon_behind, one.key, one.told, one.pause, one.heads = daemon, key, told, pause, []
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        one.socket = context.wrap_socket(one.socket, server_side=True)
    one.url = f"{'https' if tls else 'http'}://localhost:{one.socket.getsockname()[1]}" if not unix else None
    thread = threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.shutdown()
        one.server_close()


@contextlib.contextmanager
def answers(*replies):
    """A server that answers the one request of each connection with these bytes and closes it; nobody listens after the
    last. Yields its URL and the heads that came."""
    listener = socket.create_server(("127.0.0.1", 0))
    heads = []

    def serve():
        with listener:
            for reply in replies:
                client = listener.accept()[0]
                with client, client.makefile("rb") as request, contextlib.suppress(OSError):
                    head = b"".join(iter(request.readline, b"\r\n")).decode()
                    heads.append(head)
                    lengths = [line.split(":")[1] for line in head.splitlines() if line.startswith("Content-Length")]
                    request.read(int(lengths[0]) if lengths else 0)
                    client.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads


def reply(body, *headers):
    """Of `answers`: a good one."""
    lines = ["HTTP/1.1 200 OK", "Connection: close", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def certificate(folder):
    """A certificate for localhost that nobody signed, and its key."""
    paths = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    return paths
