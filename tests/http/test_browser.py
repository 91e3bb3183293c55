"""A browser is no way in: Host, Origin, CORS, and the headers of pages."""

import gzip

import pytest

import wire

T = "/v1/transpose"
BODY = b"[[1,2],[3,4]]"
LAB = "https://lab.example"


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "LocalHost", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080",
                                  "10.0.0.7", "gemmd.localhost", "localhost."])
def test_names_of_this_machine(daemon, host):
    daemon.post(T, BODY, {"Host": host}).ok()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
                                  "evil.example@localhost", "[evil]", "[::1", "127.0.0.1x.example",
                                  "0x7f.1", "a" * 300])
def test_other_names(daemon, host):
    reply = daemon.get("/v1/kernels", {"Host": host})
    assert reply.status == 403 and reply.json()["code"] == "unknown_host", (host, reply)


def test_the_target_has_the_name(daemon):
    """In absolute form its host counts, and Host does not (RFC 9112, section 3.2.2)."""
    for url, host, status in (("http://evil.example/healthz", "localhost", 403), ("HTTPS://evil.example", "localhost", 403),
                              ("http://localhost@evil.example/healthz", "localhost", 403),
                              (f"http://localhost:{daemon.port}/healthz", "evil.example", 200), ("http://[::1]/healthz", "evil.example", 200)):
        with daemon.raw() as raw:
            reply = raw.send(wire.head("GET", url, f"Host: {host}", host=False)).reply()
        assert reply.status == status, (url, host, reply)
    page = "http://evil.example"
    with daemon.raw() as raw:
        reply = raw.send(wire.head("GET", "http://localhost/healthz", "Host: evil.example", f"Origin: {page}", host=False)).reply()
    assert reply.status == 403 and reply.json()["code"] == "cross_origin"


def test_names_of_a_proxy(start):
    daemon = start("--allow-host", "gemmd.example,other.example")
    for host in ("gemmd.example", "gemmd.example:443", "OTHER.example", "localhost"):
        daemon.post(T, BODY, {"Host": host}).ok()
    assert daemon.get("/healthz", {"Host": "gemmd"}).status == 403


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": "http://localhost.evil.example"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
])
def test_pages_of_others(daemon, headers):
    for method, path, body in (("POST", T, BODY), ("GET", "/v1/explain/transpose?shape=8x8", None),
                               ("OPTIONS", T, None), ("GET", "/none", None)):
        reply = daemon.request(method, path, body, headers)
        assert reply.status == 403 and reply.json()["code"] == "cross_origin", reply
        assert not any(name.startswith("access-control") for name, _ in reply.headers)


def test_its_own_pages_and_links(daemon):
    own = f"http://127.0.0.1:{daemon.port}"
    daemon.post(T, BODY, {"Host": f"127.0.0.1:{daemon.port}", "Origin": own, "Sec-Fetch-Site": "same-origin"}).ok()
    daemon.get("/openapi.json", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).ok()
    daemon.get("/openapi.json", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}).ok()
    assert daemon.post(T, BODY, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status == 403
    assert daemon.post(T, BODY, {"Origin": f"http://127.0.0.1:{daemon.port + 1}"}).status == 403


def test_cors(start):
    daemon = start("--cors", f"http://localhost:3000,{LAB}")
    reply = daemon.post(T, BODY, {"Origin": LAB, "Sec-Fetch-Site": "cross-site"}).ok()
    assert reply.header("access-control-allow-origin") == LAB and reply.header("vary") == "Origin"
    for name in ("RateLimit", "ETag", "Gemmd-Kept"):
        assert name in reply.header("access-control-expose-headers")
    assert reply.header("access-control-allow-credentials") is None
    reply = daemon.request("OPTIONS", T, None, {
        "Origin": LAB, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
    assert reply.status == 204 and reply.body == b""
    assert "Authorization" in reply.header("access-control-allow-headers")
    assert "If-Match" in reply.header("access-control-allow-headers")
    assert "POST" in reply.header("access-control-allow-methods")
    reply = daemon.post(T, b"[[", {"Origin": LAB})  # a page may read errors too
    assert reply.status == 400 and reply.header("access-control-allow-origin") == LAB
    for origin in ("https://lab.example.evil.example", "https://lab.exampl", "http://lab.example", "*", "null"):
        assert daemon.post(T, BODY, {"Origin": origin}).status == 403
        assert daemon.request("OPTIONS", T, None, {"Origin": origin, "Access-Control-Request-Method": "POST"}).status == 403
    assert daemon.post(T, BODY).ok().header("access-control-allow-origin") is None
    assert daemon.request("OPTIONS", T).status == 405


def test_cors_for_all(start, tmp_path):
    (tmp_path / "keys").write_text("")
    daemon = start("--cors", "*", "--keys", str(tmp_path / "keys"))
    ask = {"Origin": "https://any.example", "Access-Control-Request-Method": "POST"}
    assert daemon.request("OPTIONS", T, None, ask).status == 204  # browsers send no key with it
    reply = daemon.post(T, BODY, {"Origin": "https://any.example"})
    assert reply.status == 401 and reply.header("access-control-allow-origin") == "https://any.example"


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/licenses", "/v1/kernels", "/v1/explain/transpose?shape=8x8&format=svg"])
def test_pages_have_their_headers(daemon, path):
    reply = daemon.get(path)
    if reply.status == 404:
        pytest.skip("built without Swagger UI")
    assert reply.status == 200
    assert reply.header("x-content-type-options") == "nosniff" and reply.header("x-frame-options") == "DENY"
    assert reply.header("referrer-policy") == "no-referrer"
    assert reply.header("cross-origin-resource-policy") == "same-origin"
    if path == "/docs":
        assert "default-src 'none'" in reply.header("content-security-policy")


@pytest.mark.parametrize("takes", [[], ["identity"], ["gzip;q=0, *"], ["br", "gzip"], ["*"]])
def test_parts_of_the_console_as_the_client_takes_them(daemon, takes):
    with daemon.raw() as raw:
        reply = raw.send(wire.head("GET", "/console/app.js", *(f"Accept-Encoding: {line}" for line in takes))).reply()
    if reply.status == 404:
        pytest.skip("built without a console")
    packed = takes in (["br", "gzip"], ["*"])
    assert reply.ok().header("content-encoding") == ("gzip" if packed else None)
    assert reply.header("vary") == "Accept-Encoding" and reply.media_type == "text/javascript"
    assert (gzip.decompress(reply.body) if packed else reply.body).startswith(b"// app.js - ")
