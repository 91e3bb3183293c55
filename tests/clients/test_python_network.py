"""The Python package over what is between a client and a daemon: TLS, Unix sockets, keys, refusals, lost
connections, slow ones."""

import asyncio
import concurrent.futures
import email.utils
import socket
import ssl
import time

import httpx
import numpy as np
import pytest
import trustme
import wheel  # noqa: F401
from relay import Relay, problem

import gemmd
from daemon import Daemon

A = np.random.default_rng().random((30, 20))


@pytest.fixture
def relay(daemon):
    made = []

    def make(**options):
        made.append(Relay(daemon.port, **options))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


@pytest.fixture(params=["waits", "asyncio"])
def flip(request):
    """flip(url, **of the client) sends one request by either client; both must do the same."""

    def waits(url, *, a=A, call=None, **options):
        with gemmd.Client(url, **options) as client:
            return client.flip(a, **(call or {}))

    def asynchronous(url, *, a=A, call=None, **options):
        async def work():
            async with gemmd.AsyncClient(url, **options) as client:
                return await client.flip(a, **(call or {}))

        return asyncio.run(work())

    return waits if request.param == "waits" else asynchronous


def at(relay, scheme="http"):
    return f"{scheme}://127.0.0.1:{relay.port}"


def right(result):
    return np.array_equal(result, A[:, ::-1]) and result.account.op == "flip"


# Addresses.

@pytest.mark.parametrize("form", ["unix:{}", "unix://{}", "http+unix://{}", "http+unix://{quoted}"])
def test_unix_socket(flip, relay, tmp_path, form):
    path = tmp_path / "gemmd.sock"
    one = relay(unix=path)
    assert right(flip(form.format(path, quoted=str(path).replace("/", "%2F")), key="k"))
    assert "host: localhost" in one.heads[0].lower() and "Authorization: Bearer k" in one.heads[0]
    with pytest.raises(gemmd.TransportError, match="none.sock"):
        flip("unix:none.sock", retries=0)


def test_addresses(flip, daemon, monkeypatch):
    monkeypatch.setenv("GEMMD_URL", daemon.url(""))
    assert right(flip(None))
    assert right(flip(f"127.0.0.1:{daemon.port}")) and right(flip(daemon.url("/")))
    for wrong in ("", "http://", "ftp://host", "http://host:port", "http://host/?a=b", "unix:", "http://host:99999"):
        with pytest.raises(ValueError):
            gemmd.Client(wrong)
    with pytest.raises(gemmd.TransportError, match="If not, its address begins with http://"):
        flip(f"https://127.0.0.1:{daemon.port}", retries=0)
    with pytest.raises(gemmd.RequestError) as caught:  # a path before the daemon's own
        flip(daemon.url("/elsewhere"))
    assert caught.value.status == 404 and caught.value.code == "not_found"


def test_a_reset_in_place_of_a_handshake(flip):
    """As of a gemmd without TLS that closes before it has read all of the greeting."""
    with socket.create_server(("127.0.0.1", 0)) as server, concurrent.futures.ThreadPoolExecutor() as pool:
        def reset():
            connection, _ = server.accept()
            connection.recv(1)
            connection.close()  # with bytes that nobody has read

        served = pool.submit(reset)
        with pytest.raises(gemmd.TransportError, match="reset by peer; does gemmd speak TLS there"):
            flip(f"https://127.0.0.1:{server.getsockname()[1]}", retries=0)
        served.result()


def test_tls(flip, relay, tmp_path, monkeypatch):
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(tls)
    one = relay(tls=tls)
    assert right(flip(at(one, "https"), ca=tmp_path / "ca.pem"))
    assert right(flip(at(one, "https"), ca=ssl.create_default_context(cafile=tmp_path / "ca.pem")))
    with pytest.raises(gemmd.TransportError, match="(?i)certificate"):
        flip(at(one, "https"), retries=0)
    monkeypatch.setenv("GEMMD_CA", str(tmp_path / "ca.pem"))
    assert right(flip(at(one, "https"))) and "GET" not in one.heads[0]
    large = np.random.default_rng().random((1000, 500))
    assert np.array_equal(flip(at(one, "https"), a=large), large[:, ::-1])
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(ValueError, match="PEM"):
        gemmd.Client("https://localhost", ca=tmp_path / "no.pem")
    with pytest.raises(FileNotFoundError, match="none.pem"):
        gemmd.Client("https://localhost", ca=tmp_path / "none.pem")


def test_keys(flip, relay, tmp_path, monkeypatch):
    one = relay(key="id.secret")
    with pytest.raises(gemmd.AuthError) as caught:
        flip(at(one))
    assert caught.value.status == 401 and caught.value.code == "no_key" and "uthorization" not in one.heads[0]
    assert right(flip(at(one), key="id.secret"))
    (tmp_path / "key").write_text("id.secret\n")
    monkeypatch.setenv("GEMMD_KEY_FILE", str(tmp_path / "key"))
    assert right(flip(at(one)))
    monkeypatch.setenv("GEMMD_KEY", "id.other")  # goes before the file, and an argument before both
    with pytest.raises(gemmd.AuthError):
        flip(at(one))
    assert right(flip(at(one), key="id.secret"))
    assert "secret" not in repr(gemmd.Client(at(one), key="id.secret").__dict__)
    for wrong in ("two words", "ü", "a\nb"):
        with pytest.raises(ValueError):
            gemmd.Client(at(one), key=wrong)
    monkeypatch.delenv("GEMMD_KEY")
    (tmp_path / "key").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="one line of ASCII"):
        gemmd.Client(at(one))
    (tmp_path / "key").write_text("\n")
    with pytest.raises(ValueError, match="empty"):
        gemmd.Client(at(one))


# Connections.

def test_connections_are_used_again(relay):
    one = relay()
    with gemmd.Client(at(one)) as client:
        for _ in range(10):
            assert right(client.flip(A))
    assert one.connections == 1

    async def work():
        async with gemmd.AsyncClient(at(one), connections=3) as client:
            await asyncio.gather(*(client.flip(A) for _ in range(12)))

    asyncio.run(work())
    assert 2 <= one.connections <= 4


# Refusals.

def test_waits_as_long_as_it_is_told_to(flip, relay):
    one = relay(refusals=[problem(503, "queue_full", Retry_After="1"), problem(429, "quota", Retry_After="0")])
    start = time.monotonic()
    assert right(flip(at(one)))
    assert time.monotonic() - start >= 1 and one.connections == 3


def test_a_date_says_when_too(flip, relay):
    soon = email.utils.formatdate(time.time() + 1, usegmt=True)
    one = relay(refusals=[problem(503, "draining", Retry_After=soon)])
    assert right(flip(at(one))) and one.connections == 2


def test_a_proxy_whose_daemon_restarts(flip, relay):
    page = (503, {"Content-Type": "text/html"}, b"<html>no upstream</html>")
    one = relay(refusals=[page, None, page])
    assert right(flip(at(one))) and one.connections == 4


@pytest.mark.parametrize("refusal, kind", [
    (problem(503, "deadline_passed"), gemmd.UnavailableError),  # it used its time itself
    (problem(503, "cancelled"), gemmd.UnavailableError),  # nothing says that waiting helps
    (problem(503, "queue_full", Retry_After="61"), gemmd.UnavailableError),  # longer than anybody waits
    (problem(500, "internal"), gemmd.ServerError),
    (problem(409, "conflict", Retry_After="0"), gemmd.RequestError),
    (problem(403, "not_yours"), gemmd.AuthError),
    ((502, {"Content-Type": "text/html"}, b"<html>bad gateway</html>"), gemmd.ServerError),
    ((302, {"Location": "/elsewhere"}, b""), gemmd.ReplyError),
    ((200, {"Content-Type": "text/html"}, b"<html>hello</html>"), gemmd.ReplyError),
    ((200, {"Gemmd-Shape": "2x2", "Gemmd-Dtype": "f64"}, b"12345"), gemmd.ReplyError),
])
def test_what_is_not_sent_again(flip, relay, refusal, kind):
    one = relay(refusals=[refusal])
    with pytest.raises(kind) as caught:
        flip(at(one))
    assert one.connections == 1 and type(caught.value) is kind and isinstance(caught.value, gemmd.Error)
    if b"html" in refusal[2]:
        assert "html" in str(caught.value) or refusal[0] == 200


def test_a_daemon_that_answered_is_waited_for():
    """Where the caller does not say how often: for half a minute, but not where nobody has answered yet."""

    def waits(attempts, known, *errors):
        retries, waited = gemmd.retries.Retries(gemmd.calls.document("/v1/stats"), attempts, 60, known), 0
        for count, error in enumerate(errors):
            try:
                waited += retries.pause(error)
            except gemmd.Error:
                return count, waited
        return len(errors), waited

    away = [gemmd.TransportError("refused")] * 20
    lost = gemmd.UnavailableError("lost", status=503, code="device_lost", retry_after=1)
    assert waits(None, False, *away)[0] == 4 and waits(None, False, *away)[1] < 2
    assert waits(None, True, *away)[0] == 8 and 25 < waits(None, True, *away)[1] < 29
    assert waits(None, False, lost, *away)[0] == 8
    assert waits(3, True, *away)[0] == waits(3, False, *away)[0] == 3 and waits(0, True, *away)[0] == 0


def test_attempts_end(flip, relay):
    full = problem(503, "queue_full", Retry_After="0")
    one = relay(refusals=[full] * 9)
    with pytest.raises(gemmd.UnavailableError) as caught:
        flip(at(one), retries=2)
    error = caught.value
    assert one.connections == 3 and error.code == "queue_full" and error.retry_after == 0 and error.request_id == "r-1"
    with pytest.raises(gemmd.UnavailableError):
        flip(at(one), retries=0)
    assert one.connections == 4
    with pytest.raises(gemmd.TransportError) as caught:
        flip(at(relay(refusals=[None] * 9)), retries=1)
    assert isinstance(caught.value, ConnectionError) and caught.value.status is None


# Time.

def test_silence_is_not_waited_for(flip, relay):
    one = relay(silent=True)
    for options in ({"timeout": 0.2}, {"call": {"timeout": 0.2}}):
        start = time.monotonic()
        with pytest.raises(gemmd.TimeoutError) as caught:
            flip(at(one), **options)
        assert isinstance(caught.value, TimeoutError) and time.monotonic() - start < 5
    assert one.connections == 2  # it may be at work, so nothing is sent again


def test_the_daemons_own_limit(flip, relay):
    one = relay()
    with pytest.raises(gemmd.UnavailableError) as caught:
        flip(at(one), a=np.ones((600, 600), "f4"),
             call={"kernel": "shared", "device": "sim", "timeout_ms": 1})
    assert caught.value.code == "deadline_passed" and one.connections == 1


def test_what_had_its_time_is_sent_once_more_at_most(flip, relay):
    one = relay(refusals=[problem(503, "deadline_passed", Retry_After="0")] * 9)
    with pytest.raises(gemmd.UnavailableError):
        flip(at(one))
    assert one.connections == 2
    with pytest.raises(gemmd.UnavailableError):
        flip(at(one), call={"timeout_ms": 1000})
    assert one.connections == 3
    one.refusals = one.refusals[:1]
    assert right(flip(at(one)))


def test_a_job_that_used_its_time_is_not_sent_again():
    short = Daemon("--timeout", "1s", "--threads", "1")
    try:
        start = time.monotonic()
        with gemmd.Client(short.url("")) as client, pytest.raises(gemmd.UnavailableError) as caught:
            client.matmul(np.ones((700, 700)), np.ones((700, 700)), repeat=1000)
        assert caught.value.code == "deadline_passed" and time.monotonic() - start < 5
    finally:
        short.stop()


# Errors that come before the body is sent.

def test_an_early_error_is_read(flip):
    small = Daemon("--body-limit", "1M")
    try:
        with pytest.raises(gemmd.RequestError) as caught:
            flip(small.url(""), a=np.ones((4000, 2000)), retries=0)
        assert caught.value.status == 413 and caught.value.code == "body_too_large"
    finally:
        small.stop()


def test_what_replaces_its_own_operand_is_not_sent_twice(daemon):
    """After a connection that was lost nobody knows whether it was carried out."""
    with gemmd.Client(f"http://127.0.0.1:{daemon.port}") as direct:
        w = direct.put(np.array([[10.0]], "f4"), "once_w")
        for call, again in (
            (lambda client: client.keep_eval("once_w - 1", "once_w"), False),
            (lambda client: client.keep_eval(w - 1, "once_w"), False),
            (lambda client: client.keep("once_w", "add", w, [[1.0]]), False),
            (lambda client: client.keep_eval("once_w - 1", "once_v"), True),
        ):
            with Relay(daemon.port, refusals=[None]) as relay, gemmd.Client(f"http://127.0.0.1:{relay.port}") as client:
                if again:
                    assert call(client).name == "once_v"
                else:
                    with pytest.raises(gemmd.TransportError):
                        call(client)
            assert direct.get(w).tolist() == [[10.0]]
        for name in ("once_w", "once_v"):
            direct.delete(name)


# What a caller gives.

@pytest.mark.parametrize("kind, options", [
    (ValueError, {"timeout": 0}), (ValueError, {"timeout": -1}), (ValueError, {"timeout": float("nan")}),
    (ValueError, {"connections": 0}), (ValueError, {"retries": -1}), (ValueError, {"retry_wait": -1}),
    (TypeError, {"timeout": "1"}), (TypeError, {"connections": 1.5}), (TypeError, {"retries": "a"}),
    (TypeError, {"retry_wait": "x"}), (ValueError, {"call": {"timeout": 0}}), (TypeError, {"call": {"timeout": "1"}}),
])
def test_settings_are_checked(flip, daemon, kind, options):
    """Before anything is sent or waited for."""
    (name,) = options.get("call", options)
    start = time.monotonic()
    with pytest.raises(kind, match=f"^{name} is "):
        flip(daemon.url(""), **options)
    assert time.monotonic() - start < 1


def test_settings_of_any_kind_of_number(flip, daemon):
    assert right(flip(daemon.url(""), timeout=np.float32(5), retries=np.int64(2), retry_wait=float("inf"), connections=np.int8(1)))
    assert right(flip(daemon.url(""), timeout=None, call={"timeout": 5}))


def test_addresses_and_names_are_texts(daemon):
    for wrong in (5, b"http://localhost"):
        with pytest.raises(TypeError, match="address of a daemon is a text"):
            gemmd.Client(wrong)
    with pytest.raises(TypeError, match="key is a text"):
        gemmd.Client(daemon.url(""), key=5)
    with gemmd.Client(daemon.url("")) as client:
        for call in (lambda: client.get(5), lambda: client.delete(5), lambda: client.put(A, 5),
                     lambda: client.keep(5, "flip", A), lambda: client.keep_eval("1 + 1", 5)):
            with pytest.raises(TypeError, match="named matrix is a text"):
                call()


@pytest.mark.parametrize("body", [b"hello", b"[]", b"{}", b"\xff\xfe"])
def test_any_server_that_is_none_of_ours(relay, body):
    """It answers everything with 200: whatever is asked, that is no result."""
    one = relay(refusals=[(200, {"Content-Type": "text/plain"}, body)] * 40)
    x = gemmd.NamedMatrix("x", (30, 20), "f64", "1")
    with gemmd.Client(at(one)) as client:
        for call in (
            lambda: client.flip(A), lambda: client.matmul(A, A.T), lambda: client.keep("x", "flip", A),
            lambda: client.put(A), lambda: client.get("x"), lambda: client.delete("x"), lambda: client.matrices(),
            lambda: client.eval("x", {"x": A}), lambda: client.keep_eval("x", "y"), lambda: client.plan("x", {"x": A}),
            lambda: client.plan(x + 1), lambda: client.compare("flip", A), lambda: client.explain("flip"),
            lambda: client.explain("flip", A, drawings=False), lambda: client.flip(np.ones((500, 500))),
            lambda: client.kernels(), lambda: client.devices(), lambda: client.gpus(),
        ):
            with pytest.raises(gemmd.ReplyError, match="a reply that is not gemmd's"):
                call()
    with pytest.raises(gemmd.ReplyError, match="not gemmd's"):  # no drawing
        gemmd.calls.drawing("flip", [], {}).finish(gemmd.calls.Reply(200, httpx.Headers(), np.frombuffer(body, "u1")))
