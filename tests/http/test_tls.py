"""TLS: by real clients over real sockets, and what is written past the HTTP library."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import numpy as np
import pytest

from certificates import OPENSSL, Authority
from daemon import SLOW, Daemon, run
from hostile import HASTE, HASTY
from jobs import Threads, wait_until

if not OPENSSL:
    pytest.skip("there is no openssl to make certificates with", allow_module_level=True)
T = "/v1/transpose"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("tls"))
    done = run("--check", *options(made.sign("first")))
    if "has no TLS" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done
    return made


def options(pair):
    return ("--tls-cert", pair[0], "--tls-key", pair[1])


@pytest.fixture(scope="module")
def server(authority):
    """One daemon that speaks TLS, and without it at its second address."""
    started = Daemon(*options(authority.sign("server")), "--body-limit", "300M")
    yield started
    started.stop()


def context(authority, certificate=None, most=None):
    made = ssl.create_default_context(cafile=authority.file)
    made.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    if certificate:
        made.load_cert_chain(*certificate)
    if most:
        made.minimum_version, made.maximum_version = ssl.TLSVersion.TLSv1, most
        made.set_ciphers("ALL:@SECLEVEL=0")
    return made


def connect(daemon, made):
    plain = socket.create_connection(("127.0.0.1", daemon.port), timeout=20 * SLOW)
    return made.wrap_socket(plain, server_hostname="localhost")


def client(daemon, made, timeout=60):
    return http.client.HTTPSConnection("127.0.0.1", daemon.port, context=made,
                                       timeout=timeout * SLOW)


def ask(daemon, made, method="GET", path="/healthz", body=None, headers=None):
    one = client(daemon, made)
    try:
        one.request(method, path, body, headers or {})
        reply = one.getresponse()
        return reply.status, reply.read()
    finally:
        one.close()


def read_all(secure):
    """All until the other end closes the session, which must be done in form."""
    text = b""
    while piece := secure.recv(65536):
        text += piece
    return text


def counted(daemon, made, what):
    _, text = ask(daemon, made, path="/metrics")
    return sum(float(line.rpartition(" ")[2]) for line in text.decode().splitlines()
               if line.startswith(what))


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions(server, authority, most):
    assert server.ready_line.startswith("listening on https://127.0.0.1:")
    made = context(authority)
    made.minimum_version = made.maximum_version = most
    with connect(server, made) as secure:
        assert secure.version() == most.name.replace("_", ".")
        assert "GCM" in secure.cipher()[0] or "CHACHA20" in secure.cipher()[0]
    status, text = ask(server, made, "POST", T, b"[[1,2],[3,4]]", JSON)
    assert status == 200 and json.loads(text)["data"] == [[1, 3], [2, 4]]


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_versions_are_refused(server, authority, most):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(server, context(authority, most=most))
    assert ask(server, context(authority))[0] == 200


@pytest.mark.parametrize("program,arguments,said", [
    ("curl", ("-sS", "--cacert", "{ca}", "https://127.0.0.1:{port}/healthz"), "ok"),
    ("openssl", ("s_client", "-brief", "-verify_return_error", "-CAfile", "{ca}", "-connect",
                 "127.0.0.1:{port}"), "Verification: OK"),
    ("gnutls-cli", ("--x509cafile", "{ca}", "-p", "{port}", "127.0.0.1"), "Handshake was completed"),
])
def test_clients_of_others(server, authority, program, arguments, said):
    if not shutil.which(program):
        pytest.skip(f"there is no {program}")
    command = [a.format(ca=authority.file, port=server.port) for a in arguments]
    done = subprocess.run([program, *command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60 * SLOW)
    assert said in done.stdout + done.stderr, done


def test_large_bodies(server, authority):
    """64 MB each way: thousands of records. (Less under a sanitizer.)"""
    side = 8192 if SLOW == 1 else 2048
    matrix = np.random.default_rng(1).integers(0, 256, (side, side), dtype=np.uint8)
    status, text = ask(server, context(authority), "POST", f"{T}?shape={side}x{side}&dtype=u8",
                       matrix.tobytes(), {"Content-Type": "application/octet-stream"})
    assert status == 200
    assert (np.frombuffer(text, np.uint8).reshape(side, side) == matrix.T).all()


def test_pipelining(server, authority):
    """Many requests in one record: what TLS has decrypted is in no socket any more."""
    with connect(server, context(authority)) as secure:
        one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        secure.sendall(one * 50 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert read_all(secure).count(b"HTTP/1.1 200 OK") == 51


def test_bytes_in_small_records(server, authority):
    body = b"[[1,2],[3,4]]"
    text = b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n" \
           b"Content-Type: application/json\r\n\r\n" % (T.encode(), len(body)) + body
    with connect(server, context(authority)) as secure:
        for i in range(len(text)):
            secure.sendall(text[i:i + 1])
        assert b"[[1,3],[2,4]]" in read_all(secure)


# ---- What does not go through the library. ----


def problem(text):
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["code"]


def test_an_error_before_the_body_is_read(server, authority):
    size = 301 << 20
    with connect(server, context(authority)) as secure:
        secure.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
                       b"Content-Type: text/csv\r\n\r\n" % (T.encode(), size))
        secure.sendall(b"1,2\n" * 50000)
        assert problem(read_all(secure)) == (413, "body_too_large")


def test_an_error_in_the_middle_of_a_body(start, authority):
    daemon = start(*options(authority.sign("middle")), "--body-limit", "2M")
    with connect(daemon, context(authority)) as secure:
        secure.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                       b"Content-Type: text/csv\r\n\r\n" % T.encode())
        piece = b"1,2\n" * 16384
        try:
            for _ in range(40):
                secure.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        except OSError:
            pass  # it closes while we send
        assert problem(read_all(secure)) == (413, "body_too_large")


def test_a_head_that_is_too_large(server, authority):
    with connect(server, context(authority)) as secure:
        secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                       + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 40) for i in range(115)) + b"\r\n")
        assert problem(read_all(secure)) == (431, "head_too_large")


def test_the_end_finds_uploads(start, authority):
    """SIGTERM within a body: its event thread answers, in the session, when the next bytes come. A
    client that is silent is closed without an answer."""
    daemon = start(*options(authority.sign("end")), "--drain-timeout", "300ms")
    made, answer = context(authority), b""
    with connect(daemon, made) as talks, connect(daemon, made) as silent:
        for secure in (talks, silent):
            secure.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
                           b"Content-Type: text/csv\r\n\r\n1,2\n" % T.encode())
        wait_until(lambda: counted(daemon, made, "gemmd_requests_in_flight") >= 3, "both requests")
        daemon.signal(signal.SIGTERM)
        for _ in range(40):
            try:
                talks.sendall(b"1,2\n")
            except OSError:
                break
            time.sleep(0.05)
        assert problem(read_all(talks)) == (503, "draining")
        with contextlib.suppress(OSError):
            answer = read_all(silent)
        assert (answer, daemon.wait()) == (b"", 0)


# ---- Clients that do not speak TLS, or not to its end. ----


def test_plain_http_is_no_handshake(server, authority):
    before = counted(server, context(authority), 'gemmd_connections_closed_total{reason="tls"}')
    with server.raw() as raw:
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.closed()
    after = counted(server, context(authority), 'gemmd_connections_closed_total{reason="tls"}')
    assert after == before + 1


def hello(made):
    """The first bytes of a handshake."""
    sent = ssl.MemoryBIO()
    halves = made.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        halves.do_handshake()
    return sent.read()


@pytest.fixture(scope="module")
def hasty(authority):
    """In a world whose time runs thirty times as fast."""
    daemon = Daemon(*options(authority.sign("hasty")), "--timeout", "3600s", binary=HASTY)
    yield daemon
    daemon.stop()
    daemon.kill()


def stop_handshakes(hasty, authority):
    """Before its first byte, within its first message, and after that: it is ended."""
    text = hello(context(authority))
    stopped = [hasty.raw().send(text[:part]) for part in (0, 5, 100, None)]
    began = time.monotonic()
    for raw in stopped:
        with raw:
            while raw.socket.recv(65536):
                pass
        took = time.monotonic() - began
        assert 0.9 * 60 / HASTE <= took <= 60 / HASTE + 4 * SLOW, took


def send_slowly(hasty, authority):
    """The answer goes through the session, when the next bytes come."""
    with connect(hasty, context(authority)) as secure:
        secure.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
                       b"Content-Type: text/csv\r\n\r\n" % T.encode())
        for _ in range(int(10 * SLOW / 0.02)):
            try:
                secure.sendall(b"1,2\n")
            except OSError:
                break
            time.sleep(0.02)
        assert problem(read_all(secure)) == (408, "upload_timeout")


def read_slowly(hasty, authority):
    side = 4096
    with connect(hasty, context(authority)) as secure:
        secure.sendall(b"POST %s?shape=%dx%d&dtype=u8 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
                       b"Content-Type: application/octet-stream\r\n\r\n" % (T.encode(), side, side, side * side)
                       + bytes(side * side))
        name = 'gemmd_connections_closed_total{reason="slow_reader"}'
        wait_until(lambda: counted(hasty, context(authority), name) == 1, "it is ended")
        received = 0
        with contextlib.suppress(OSError):
            while piece := secure.recv(65536):
                received += len(piece)
        assert received < side * side


def test_clients_that_are_too_slow_are_ended(hasty, authority):
    """All at once, since they take their time."""
    threads = Threads()
    for client_of in (stop_handshakes, send_slowly, read_slowly):
        threads.go(client_of, hasty, authority)
    threads.join()


def test_handshakes_that_stop_leave_room(start, authority):
    """More of them than connections are allowed: an honest client gets in."""
    daemon = start(*options(authority.sign("crowd")),
                   under=("sh", "-c", 'ulimit -n 160; exec "$@"', "sh"))
    begun = []
    try:
        text = hello(context(authority))
        for _ in range(200):
            one = socket.create_connection(("127.0.0.1", daemon.port), timeout=20 * SLOW)
            begun.append(one)
            one.send(text)
        assert ask(daemon, context(authority))[0] == 200
    finally:
        for one in begun:
            one.close()


# ---- Certificates. ----


def serial(daemon, made):
    with connect(daemon, made) as secure:
        return int(secure.getpeercert()["serialNumber"], 16)


def test_reload_loses_no_request(start, authority):
    pair = authority.sign("reloaded", serial=100)
    daemon = start(*options(pair))
    made, failures, done = context(authority), [], threading.Event()

    def use():
        while not done.is_set():
            try:
                assert ask(daemon, made, "POST", T, b"[[1,2],[3,4]]", JSON)[0] == 200
            except Exception as fault:  # noqa: BLE001: whatever it is, it is a lost request
                failures.append(repr(fault))

    users = [threading.Thread(target=use) for _ in range(4)]
    kept = client(daemon, made)  # one that began before goes on after
    kept.request("GET", "/healthz")
    kept.getresponse().read()
    for user in users:
        user.start()
    try:
        for number in range(101, 106):
            authority.sign("reloaded", serial=number)
            daemon.signal(signal.SIGHUP)
            wait_until(lambda n=number: serial(daemon, made) == n, "it has happened")
    finally:
        done.set()
        for user in users:
            user.join()
    assert not failures, failures[:3]
    kept.request("GET", "/healthz")
    assert kept.getresponse().status == 200
    kept.close()


def resume(daemon, made, session):
    """A request on a connection of its own; returns its session, and whether that was resumed."""
    plain = socket.create_connection(("127.0.0.1", daemon.port), timeout=20 * SLOW)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with made.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
        secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_all(secure).startswith(b"HTTP/1.1 200 ")
        return secure.session, secure.session_reused


def test_sessions_are_resumed(start, authority):
    """Until the certificate is read again."""
    daemon, made = start(*options(authority.sign("resumed"))), {}
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        one = made[version] = context(authority)
        one.minimum_version = one.maximum_version = version
        session, resumed = resume(daemon, one, None)
        assert not resumed and session.has_ticket and 0 < session.ticket_lifetime_hint <= 3600
        for _ in range(3):
            session, resumed = resume(daemon, one, session)
            assert resumed
        made[version] = one, session
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "event=reload" in daemon.log(), "it has happened")
    for one, session in made.values():
        assert not resume(daemon, one, session)[1]


def test_what_cannot_be_read_again_stays(start, authority):
    pair = authority.sign("broken", serial=7)
    daemon = start(*options(pair))
    with open(pair[0], "w") as file:
        file.write("no certificate\n")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "level=error event=reload" in daemon.log(), "it has happened")
    assert serial(daemon, context(authority)) == 7


def test_an_expired_certificate_is_replaced(start, authority):
    pair = authority.sign("expired", serial=1, days=-1)
    daemon = start(*options(pair))
    assert "the certificate has expired" in daemon.log()
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(daemon, context(authority))
    authority.sign("expired", serial=2)
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "event=reload outcome=done" in daemon.log(), "it has happened")
    assert serial(daemon, context(authority)) == 2


def refused(daemon, made):
    """What a client is told whose certificate is not wanted."""
    with pytest.raises(OSError) as told:
        ask(daemon, made)
    return str(told.value)


def test_only_clients_with_a_certificate(start, authority, tmp_path):
    other = Authority(tmp_path / "other", "other")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(authority.file, trusted)
    server_pair = authority.sign("mutual")
    daemon = start(*options(server_pair), "--tls-client-ca", str(trusted))
    ours, theirs = authority.sign("ours", client=True), other.sign("theirs", client=True)
    assert ask(daemon, context(authority, ours))[0] == 200
    assert not resume(daemon, context(authority, ours), None)[0].has_ticket
    assert "certificate required" in refused(daemon, context(authority))
    assert "unknown ca" in refused(daemon, context(authority, theirs))
    assert "certificate expired" in refused(
        daemon, context(authority, authority.sign("late", client=True, days=-1)))
    assert refused(daemon, context(authority, server_pair)), "it is for servers"
    done = run("--probe", "--listen", f"127.0.0.1:{daemon.port}", *options(server_pair))
    assert done.returncode == 0, done
    # Another authority from now on.
    shutil.copy(other.file, trusted)
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "event=reload" in daemon.log(), "it has happened")
    assert ask(daemon, context(authority, theirs))[0] == 200
    assert "unknown ca" in refused(daemon, context(authority, ours))


def test_rsa_and_a_probe(start, authority):
    pair = authority.sign("rsa", kind="rsa")
    daemon = start(*options(pair))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        made = context(authority)
        made.minimum_version = made.maximum_version = version
        assert ask(daemon, made)[0] == 200
    done = run("--probe", "--listen", f"127.0.0.1:{daemon.port}", *options(pair))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def spoilt(authority):
    """A certificate and its key, and the key of another."""
    return (*authority.sign("spoilt"), authority.sign("another")[1])


@pytest.mark.parametrize("spoil,said", [
    (lambda cert, key, more: ("--tls-cert", cert), "belong together"),
    (lambda cert, key, more: ("--tls-key", key), "belong together"),
    (lambda cert, key, more: ("--tls-client-ca", cert), "needs --tls-cert"),
    (lambda cert, key, more: ("--tls-cert", cert, "--tls-key", more), "do not match"),
    (lambda cert, key, more: ("--tls-cert", cert + ".no", "--tls-key", key), "No such file"),
    (lambda cert, key, more: ("--tls-cert", key, "--tls-key", key), "no certificate and its key"),
    (lambda cert, key, more: ("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key),
     "no certificates of authorities"),
    (lambda cert, key, more: ("--tls-cert", cert, "--tls-key", key, "--tls-priority", "BEST"),
     "--tls-priority"),
])
def test_a_start_that_cannot_be(spoilt, spoil, said):
    for more in ((), ("--check",)):
        done = run("--listen", "127.0.0.1:0", *spoil(*spoilt), *more)
        assert done.returncode in (1, 2, 3) and said in done.stderr, done


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_versions_cannot_be_brought_back(start, authority):
    daemon = start(*options(authority.sign("old")), "--tls-priority", "NORMAL:+VERS-TLS1.1:+VERS-TLS1.0")
    made = context(authority, most=ssl.TLSVersion.TLSv1_1)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(daemon, made)
    assert ask(daemon, context(authority))[0] == 200


def test_nothing_leaks(start, authority):
    daemon = start(*options(authority.sign("leak")))
    made = context(authority)

    def work(times):
        for _ in range(times):
            ask(daemon, made, "POST", T, b"[[1,2],[3,4]]", JSON)
            connect(daemon, made).close()
            with daemon.raw() as raw:
                raw.send(b"\x16\x03\x01")
            daemon.signal(signal.SIGHUP)

    work(60 if SLOW == 1 else 10)
    before = daemon.rss_bytes(), daemon.descriptors()
    work(200 if SLOW == 1 else 30)
    wait_until(lambda: daemon.descriptors() <= before[1], "it has happened")
    if SLOW == 1:
        assert daemon.rss_bytes() < before[0] + (4 << 20), (before[0], daemon.rss_bytes())
    assert os.path.exists(f"/proc/{daemon.pid}")
