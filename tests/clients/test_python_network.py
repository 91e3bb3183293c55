"""The Python package over what is between a client and a daemon: TLS, Unix sockets, keys, refusals, lost
connections, slow ones."""

import asyncio
import concurrent.futures
import email.utils
import socket
import ssl
import subprocess
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
    monkeypatch.setenv("GEMMD_URL", "")
    assert gemmd.address.resolve(None, None, None).base == "http://localhost:8080"
    assert gemmd.address.resolve("HTTPS://localhost/", None, None).tls is True
    assert right(flip(f"127.0.0.1:{daemon.port}")) and right(flip(daemon.url("/")))
    for wrong in ("", "http://", "ftp://host", "http://host:port", "http://host/?a=b", "http://host/#a", "unix:", "http+unix://", "http://host:65536"):
        with pytest.raises(ValueError):
            gemmd.Client(wrong)
    with pytest.raises(gemmd.TransportError, match="If not, its address begins with http://"):
        flip(f"https://127.0.0.1:{daemon.port}", retries=0)
    with pytest.raises(gemmd.RequestError) as caught:  # a path before the daemon's own
        flip(daemon.url("/elsewhere/"))
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
    folder = tmp_path / "folder"
    folder.mkdir()
    name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", tmp_path / "ca.pem"], check=True, capture_output=True, text=True).stdout.strip()
    (folder / f"{name}.0").write_bytes((tmp_path / "ca.pem").read_bytes())
    assert right(flip(at(one, "https"), ca=folder))
    with pytest.raises(gemmd.TransportError, match="(?i)certificate") as caught:
        flip(at(one, "https"), retries=0)
    assert "speak TLS" not in str(caught.value)
    monkeypatch.setenv("GEMMD_CA", str(tmp_path / "none.pem"))
    assert right(flip(at(one, "https"), ca=tmp_path / "ca.pem"))  # an argument goes before it
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
    assert right(flip(at(one), key="id.secret")) and right(flip(at(one), key=" id.secret\n"))
    (tmp_path / "key").write_text(" id.secret \nof the second line\n")
    monkeypatch.setenv("GEMMD_KEY_FILE", str(tmp_path / "key"))
    assert right(flip(at(one)))
    monkeypatch.setenv("GEMMD_KEY", "")  # is none
    assert right(flip(at(one)))
    monkeypatch.setenv("GEMMD_KEY", "id.other")  # goes before the file, and an argument before both
    with pytest.raises(gemmd.AuthError):
        flip(at(one))
    assert right(flip(at(one), key="id.secret"))
    assert "secret" not in repr(gemmd.Client(at(one), key="id.secret").__dict__)
    for wrong in ("two words", "ü", "a\nb", "a\x01b"):
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


def test_nothing_is_open_after_the_end(daemon):
    with gemmd.Client(daemon.url("")) as client:
        pass

    async def work():
        async with gemmd.AsyncClient(daemon.url("")) as other:
            pass
        return other

    for ended in (client, asyncio.run(work())):
        assert ended._http.is_closed and ended not in gemmd.client.CLIENTS and repr(ended) == f"gemmd.{type(ended).__name__}('{daemon.url('')}')"


def test_proxies_are_for_other_machines(flip, relay, daemon, monkeypatch):
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nobody is
    assert right(flip(daemon.url("")))
    proxy = relay(refusals=[problem(400, "bad_shape")])
    monkeypatch.setenv("HTTP_PROXY", at(proxy))
    with pytest.raises(gemmd.RequestError):
        flip("http://there.invalid:1", retries=0)
    assert proxy.heads[0].startswith("POST http://there.invalid:1/v1/flip ")


def test_progress_of_every_call(flip, daemon):
    """Of a client's own callback, unless a call has another, or wants none."""
    of_client, of_call = [], []
    assert right(flip(daemon.url(""), progress=of_client.append))
    assert [step.phase for step in of_client] == ["send", "send", "receive"]
    del of_client[:]
    assert right(flip(daemon.url(""), progress=of_client.append, call={"progress": of_call.append}))
    assert right(flip(daemon.url(""), progress=of_client.append, call={"progress": False}))
    assert len(of_call) == 3 and of_client == []
    with gemmd.Client(daemon.url(""), progress=of_client.append) as client:
        assert client.kernels()

    async def work():
        async with gemmd.AsyncClient(daemon.url(""), progress=of_client.append) as client:
            assert await client.kernels()

    asyncio.run(work())
    assert of_client == []  # nothing of the caller's moved
    with pytest.raises(gemmd.RequestError):  # of an error nothing is heard
        flip(daemon.url(""), call={"progress": of_client.append, "kernel": "nobody"})
    assert {step.phase for step in of_client} == {"send"}


@pytest.mark.parametrize("chunked", [True, False])
def test_a_reply_of_unsaid_length(flip, relay, chunked):
    """As of a proxy that passes it on in chunks, or ends it with the connection."""
    whole = np.ascontiguousarray(A[:, ::-1]).tobytes()
    pieces = [whole[:1000], whole[1000:1001], whole[1001:]]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""]) if chunked else whole
    headers = {"Content-Length": None, "Gemmd-Shape": "30x20", "Gemmd-Dtype": "f64", "Gemmd-Stats": '{"op":"flip"}', **({"Transfer-Encoding": "chunked"} if chunked else {})}
    assert right(flip(at(relay(refusals=[(200, headers, body)])), progress=lambda step: None))


def test_what_every_request_says(flip, relay):
    one = relay()
    assert right(flip(at(one)))
    head = one.heads[0].lower()
    assert "accept-encoding: identity" in head and f"user-agent: gemmd-python/{gemmd.__version__}" in head
    assert "authorization" not in head and head.startswith("post /v1/flip http/1.1") and f"content-length: {A.nbytes + 128}" in head


def test_limits_of_time():
    """Whom the caller gives more time than a reply may take, has it."""

    def limits(timeout, **params):
        found = gemmd.calls.Call("POST", "/v1/flip", lambda reply: None, gemmd.calls.encode(params)).timeouts(timeout)
        return found.connect, found.read

    assert limits(90) == (10, 90) and limits(None) == (10, None) and limits(0.5) == (0.5, 0.5)
    assert limits(90, timeout_ms=120_000) == (10, 130) and limits(90, timeout_ms=1000) == (10, 90) and limits(5, timeout_ms=1000) == (5, 11)


def test_this_machine_and_others():
    here = {"http://localhost:1": True, "127.0.0.2:80": True, "http://[::1]:80": True, "unix:/run/gemmd.sock": True, "http://10.0.0.1": False, "https://example.org": False}
    assert {url: gemmd.shared.is_here(gemmd.address.resolve(url, None, None)) for url in here} == here


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
    ((302, {"Location": "/elsewhere", "Gemmd-Shape": "30x20", "Gemmd-Dtype": "f64"}, A.tobytes()), gemmd.ReplyError),
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


def test_when_a_refusal_says_to_come_again():
    def after(value):
        headers = httpx.Headers({} if value is None else {"Retry-After": value})
        body = np.frombuffer(b'{"code": "draining", "detail": "It is draining.", "request_id": "r-1"}', "u1")
        ours, theirs = (gemmd.calls.Reply(503, headers, one).problem() for one in (body, body[:5]))
        assert (ours.code, ours.detail, ours.request_id, theirs.code) == ("draining", "It is draining.", "r-1", None)
        assert theirs.retry_after is ours.retry_after is None or abs(theirs.retry_after - ours.retry_after) < 5
        return ours.retry_after

    assert after(None) is None and after("soon") is None and after(" 7 ") == 7
    assert after(email.utils.formatdate(time.time() - 100, usegmt=True)) == 0
    assert 3000 < after(email.utils.formatdate(time.time() + 3600, usegmt=True)) <= 3600


@pytest.mark.parametrize("status, kind", [(400, gemmd.RequestError), (401, gemmd.AuthError), (403, gemmd.AuthError), (404, gemmd.RequestError), (429, gemmd.UnavailableError), (499, gemmd.RequestError),
                                          (500, gemmd.ServerError), (503, gemmd.UnavailableError), (504, gemmd.ServerError), (302, gemmd.ReplyError)])
def test_a_status_has_a_class(status, kind):
    error = gemmd.calls.Reply(status, httpx.Headers({"X-Request-Id": "r-2"}), np.frombuffer(b"<html>no</html>", "u1")).problem()
    assert type(error) is kind and error.request_id == "r-2"
    assert str(error) == f"{status}: a reply that is not gemmd's (no type): '<html>no</html>' (request r-2)"
    assert str(gemmd.Error("nobody is there")) == "nobody is there"
    assert gemmd.calls.Reply(200, httpx.Headers({"Gemmd-Stats": "{"}), np.empty(0, "u1")).account() == {}


def test_what_is_said_of_lost_connections():
    of_http, of_https = ("; does gemmd speak TLS there? Then its address begins with https://", "; does gemmd speak TLS there? If not, its address begins with http://")
    silent, behind = httpx.ReadError(""), httpx.ReadError("")
    behind.__cause__ = OSError("a reason")
    for error, where, said in (
        (httpx.ConnectTimeout("x"), "http://h", "no connection from http://h in time"), (httpx.PoolTimeout("x"), "http://h", "no free connection from http://h in time"),
        (httpx.ReadTimeout("x"), "http://h", "no reply from http://h in time"), (httpx.ConnectError("refused"), "http://h", "cannot connect to http://h: refused"),
        (httpx.ConnectError("reset by peer"), "HTTPS://h", f"cannot connect to HTTPS://h: reset by peer{of_https}"), (httpx.ConnectError("[SSL] wrong"), "https://h", f"cannot connect to https://h: [SSL] wrong{of_https}"),
        (httpx.ConnectError("[SSL] Certificate"), "https://h", "cannot connect to https://h: [SSL] Certificate"), (httpx.ReadError("reset"), "https://h", "the connection to https://h ended before its reply: reset"),
        (httpx.RemoteProtocolError("odd"), "h:1", f"the connection to h:1 ended before its reply: odd{of_http}"), (httpx.RemoteProtocolError("odd"), "unix:/s", "the connection to unix:/s ended before its reply: odd"),
        (behind, "h", "the connection to h ended before its reply: a reason"), (silent, "h", "the connection to h ended before its reply: ReadError"),
    ):
        made = gemmd.retries.transport_error(error, where)
        assert str(made) == said and isinstance(made, gemmd.TimeoutError) == isinstance(error, httpx.TimeoutException)


def test_no_longer_than_the_caller_waits(flip, relay):
    one = relay(refusals=[problem(503, "queue_full", Retry_After="30")] * 2)
    with pytest.raises(gemmd.UnavailableError):
        flip(at(one), retry_wait=29)
    assert one.connections == 1
    retries = gemmd.retries.Retries(gemmd.calls.document("/v1/stats"), 9, 2.5, True)
    error = gemmd.UnavailableError("full", status=429, code="quota", retry_after=1)
    assert all(1 <= retries.pause(error) <= 1.1 for _ in range(2))
    with pytest.raises(gemmd.UnavailableError):  # the two have taken up its time
        retries.pause(error)


def test_who_has_answered_is_waited_for(relay, monkeypatch):
    """By either client."""
    monkeypatch.setattr(gemmd.retries, "FIRST_RETRIES", 0)
    monkeypatch.setattr(gemmd.retries, "RETRIES", 2)
    one = relay(refusals=[None])
    with gemmd.Client(at(one)) as client, pytest.raises(gemmd.TransportError):
        client.flip(A)
    closes = (200, {"Gemmd-Shape": "30x20", "Gemmd-Dtype": "f64"}, A.tobytes())
    one.refusals = [closes, None, None]
    with gemmd.Client(at(one)) as client:
        assert client.flip(A).shape == A.shape and right(client.flip(A))

    async def work():
        async with gemmd.AsyncClient(at(one)) as client:
            return (await client.flip(A)).shape == A.shape and right(await client.flip(A))

    one.refusals = [closes, None, None]
    assert asyncio.run(work()) and one.connections == 9


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
            (lambda client: client.add(w, [[1.0]], keep="once_w"), False),
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
    # Where it cannot have been carried out it is: nobody listened, or the daemon itself refused it.
    call = gemmd.calls.Call("POST", "/v1/eval", lambda reply: None, once=True)
    refused, lost = gemmd.TransportError("refused"), gemmd.TransportError("lost")
    refused.__cause__, lost.__cause__ = httpx.ConnectError("refused"), httpx.ReadError("lost")
    full, of_proxy = gemmd.UnavailableError("full", status=503, code="queue_full", retry_after=0), gemmd.UnavailableError("no upstream", status=503, retry_after=0)
    for error, again in ((refused, True), (full, True), (lost, False), (of_proxy, False)):
        retries = gemmd.retries.Retries(call, 1, 60, True)
        if again:
            assert retries.pause(error) < 1
        else:
            with pytest.raises(type(error)):
                retries.pause(error)
    # By whatever name its owner, or another, calls it.
    for params, names, replaces in (({"keep": "w"}, ["ann.w"], True), ({"keep": "w", "b": "ref:ann.w"}, [None], True), ({"keep": "w"}, ["v", None], False), ({}, ["w"], False)):
        assert gemmd.calls._replaces(params, names) == replaces


# What a caller gives.

@pytest.mark.parametrize("kind, options", [
    (ValueError, {"timeout": 0}), (ValueError, {"timeout": -1}), (ValueError, {"timeout": float("nan")}), (ValueError, {"timeout": float("inf")}), (TypeError, {"timeout": True}),
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
