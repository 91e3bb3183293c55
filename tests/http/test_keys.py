"""Who may come in: keys, roles, reloads, and what the log says of it."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

import wire
from certificates import OPENSSL, Authority
from daemon import BINARY, Daemon, environment, run
from jobs import wait_until
from keyring import Keyring, basic, bearer

T = "/v1/transpose"
BODY = b"[[1,2],[3,4]]"
GEMMCTL = pathlib.Path(BINARY).parents[1] / "clients/c/gemmctl"


def make_ring(folder):
    ring = Keyring(str(folder / "keys"))
    ring.add("user")
    ring.add("reader", "read")
    ring.add("both", "use,read")
    ring.add("boss", "admin")
    return ring


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """What no test changes."""
    return make_ring(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def daemon(ring):
    started = Daemon("--keys", ring.path)
    yield started
    started.stop()
    started.kill()


@pytest.fixture
def own_ring(tmp_path):
    return make_ring(tmp_path)


def authenticate(reply):
    return ", ".join(value for name, value in reply.headers if name == "www-authenticate")


def refused(reply, status, code, v2=False):
    assert reply.status == status, reply
    if v2:
        assert list(reply.json()) == ["error"] and reply.header("content-type") == "application/json"
    else:
        assert reply.json()["code"] == code and reply.json()["error"] == reply.json()["detail"]
        assert reply.header("content-type") == "application/problem+json"


def reload(daemon, event="level=info event=reload"):
    before = daemon.log().count(event)
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: daemon.log().count(event) > before, "the reload")


def test_who_may_list_models(daemon, ring):
    for name in ("reader", "user"):
        daemon.post("/v2/repository/index", b"", bearer(ring.keys[name])).ok()
        daemon.get("/v2/models/matmul", bearer(ring.keys[name])).ok()
    refused(daemon.get("/v1/choose/flip", bearer(ring.keys["reader"])), 403, "forbidden")


def test_bearer_and_basic(daemon, ring):
    for headers in (bearer(ring.keys["user"]), basic(ring.keys["user"]), basic(ring.keys["user"], ""),
                    {"Authorization": f"bearer   {ring.keys['user']}  "},
                    {"Authorization": basic(ring.keys["user"])["Authorization"].replace("Basic", "BASIC")}):
        assert daemon.post(T, BODY, headers).ok().json()["data"] == [[1, 3], [2, 4]]


def wrong(ring):
    key = ring.keys["user"]
    name, _, secret = key.partition(".")
    other = ring.keys["reader"].partition(".")[0]
    digest = hashlib.sha256(key.encode()).hexdigest()
    return [key[:-1], key + "0", key.upper(), secret, name, name + ".", "." + secret, f"{other}.{secret}",
            f"unknown0.{secret}", f"{name}.{'0' * 64}", f"{name}.{digest}", digest, "", "x" * 5000, f"{key} {key}",
            f"{key},{key}", f"{key}\t{key}", "a.b.c", "é.é"]


def test_wrong_keys_are_alike(daemon, ring):
    """What is said of an unknown id is what is said of a wrong secret."""
    details = set()
    for key in wrong(ring):
        for make in (bearer, basic):
            reply = daemon.post(T, BODY, {k: v.encode().decode("latin-1") for k, v in make(key).items()})
            refused(reply, 401, "unauthorized")
            assert "error=\"invalid_token\"" in authenticate(reply)
            details.add(reply.json()["detail"])
    assert len(details) == 1


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic", "Basic !!!", "Basic YQ", "Basic YTpi=", "Digest x",
                                   "Basic " + "QUFB" * 400, "KEY", ".", "Basic Og=="])
def test_other_words_are_no_keys(daemon, value):
    refused(daemon.post(T, BODY, {"Authorization": value}), 401, "unauthorized")


def test_without_a_key(daemon):
    for path in (T, "/v1/kernels", "/metrics", "/v1/stats", "/healthz", "/readyz", "/docs", "/openapi.json", "/none", "/v1/requests"):
        reply = daemon.get(path)
        refused(reply, 401, "unauthorized")
        assert "Bearer" in authenticate(reply)
    refused(daemon.get("/v2/models/none"), 401, "unauthorized", v2=True)
    with daemon.raw() as raw:  # HEAD has no body, also of a refusal
        raw.send(wire.head("HEAD", "/healthz", "Connection: close"))
        assert raw.reply(to_head=True).status == 401 and raw.closed()


def test_two_headers_are_none(daemon, ring):
    with daemon.raw() as raw:
        line = "Authorization: Bearer " + ring.keys["user"]
        raw.send(wire.head("GET", "/v1/kernels", line, line, "Connection: close"))
        reply = raw.reply()
    assert reply.status == 400 and b"Authorization is stated twice" in reply.body


def test_roles(daemon, ring):
    operation, figures, any_key = ("POST", T), ("GET", "/metrics"), ("GET", "/v1/kernels")
    allowed = {"user": (operation, any_key), "reader": (figures, any_key), "both": (operation, figures, any_key),
               "boss": (operation, figures, any_key)}
    for name, may in allowed.items():
        for method, path in (operation, figures, any_key, ("GET", "/v1/stats"), ("POST", "/v2/models/add/infer"),
                             ("POST", "/v1/compare/add"), ("GET", "/v1/explain/add"), ("GET", "/healthz"),
                             ("POST", "/v2/systemsharedmemory/unregister")):
            reply = daemon.request(method, path, BODY if method == "POST" else None, ring.headers(name))
            like = (operation if path.startswith(("/v1/compare", "/v1/explain", "/v2")) else
                    figures if path == "/v1/stats" else any_key if path == "/healthz" else (method, path))
            if like in may:
                assert reply.status not in (401, 403), (name, path, reply)
            else:
                refused(reply, 403, "forbidden", path.startswith("/v2"))


def test_probes_may_stay_open(start, ring):
    daemon = start("--keys", ring.path, "--open-probes")
    for path in ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"):
        daemon.get(path).ok()
        daemon.get(path, bearer("what.ever")).ok()
    for path in ("/metrics", "/v1/stats", "/v2"):
        assert daemon.get(path).status == 401
    done = run("--probe", "--listen", f"127.0.0.1:{daemon.port}")
    assert done.returncode == 0, done.stderr


def test_a_daemon_that_asks_its_probe_for_a_key_is_alive(daemon):
    done = run("--probe", "--listen", f"127.0.0.1:{daemon.port}")
    assert done.returncode == 0, done.stderr
    assert not re.search('event=audit .*path="/healthz"', daemon.log())


def test_it_is_decided_before_the_body(daemon):
    """A gigabyte is announced; the answer comes before its first byte."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 1073741824", "Expect: 100-continue"))
        refused(raw.reply(), 401, "unauthorized")
    with daemon.client() as client:  # a short body is dropped, and the connection stays
        for _ in range(3):
            refused(client.request("POST", T, BODY), 401, "unauthorized")


def test_a_fault_in_the_file_changes_nothing(start, own_ring):
    daemon, good = start("--keys", own_ring.path), own_ring.headers("user")
    for count, other in enumerate((b"name=x id=1 sha256=00 roles=use\n", b"name=x\n", b"\xff\xfe\x00",
                                   b"secret=hunter2\n"), 1):
        own_ring.write()
        with open(own_ring.path, "ab") as file:
            file.write(other)
        reload(daemon, "level=error event=reload")
        daemon.post(T, BODY, good).ok()
        assert daemon.log().count("line 7") == count and "hunter2" not in daemon.log()
    os.unlink(own_ring.path)
    reload(daemon, "level=error event=reload")
    daemon.post(T, BODY, good).ok()


def test_faults_that_end_a_start(tmp_path):
    path = tmp_path / "keys"
    line = f"name=a id=1 sha256={'0' * 64} roles=use\n"
    faults = {"line 2: an earlier line has the same name": line + line.replace("id=1", "id=2"),
              "line 2: an earlier line has the same id": line + line.replace("name=a", "name=b"),
              "line 1: roles is missing": "name=a id=1 sha256=" + "0" * 64,
              "line 1: roles takes": line.replace("use", "use,root"),
              "line 3: name takes": "\n# x\n" + line.replace("name=a", "name=other"),
              "line 1: name is there twice": line.replace("id=1", "name=a id=1"),
              "sha256 takes 64": line.replace("00", "0"),
              "requests of quota takes": line[:-1] + " quota=requests=0\n",
              "quota has jobs twice": line[:-1] + " quota=jobs=1,jobs=2\n"}
    for words, text in faults.items():
        path.write_text(text)
        done = run("--listen", "127.0.0.1:0", "--keys", str(path))
        assert done.returncode == 2 and words in done.stderr, (words, done.stderr)
    path.write_text(line)
    path.chmod(0o666)
    done = run("--listen", "127.0.0.1:0", "--keys", str(path))
    assert done.returncode == 2 and "everybody may write" in done.stderr
    for what in (tmp_path / "none", tmp_path, "/dev/zero"):
        assert run("--listen", "127.0.0.1:0", "--keys", str(what)).returncode == 2
    os.mkfifo(tmp_path / "pipe")
    assert run("--listen", "127.0.0.1:0", "--keys", str(tmp_path / "pipe")).returncode == 2


def test_beyond_loopback_it_takes_keys_or_a_word(ring):
    """What it then logs: test_it_warns_of_keys_in_the_clear."""
    for env, options in (({}, ["--listen", "0.0.0.0:0"]), ({"GEMMD_LISTEN": "0.0.0.0:0"}, [])):
        done = run(*options, env=env)
        assert done.returncode == 2 and "--keys" in done.stderr and "--insecure" in done.stderr
        assert "listening" not in done.stdout
    assert "anyone who can reach http://0.0.0.0:" in log_of("--listen", "0.0.0.0:0", "--insecure")


def test_each_address_is_looked_at(ring, tmp_path):
    """A loopback address or a Unix socket beside it does not hide one that others reach."""
    local = ["--listen", "127.0.0.1:0", "--listen", f"unix:{tmp_path}/sock"]
    assert run("--check", *local).returncode == 0
    for check, status in (([], 2), (["--check"], 1)):
        done = run(*check, *local, "--listen", "0.0.0.0:0")
        assert done.returncode == status and "0.0.0.0" in done.stderr and "--insecure" in done.stderr
    for more in (["--keys", ring.path], ["--insecure"]):
        assert run("--check", *local, "--listen", "0.0.0.0:0", *more).returncode == 0


def test_check_reads_the_keys(own_ring):
    assert run("--check", "--keys", own_ring.path).returncode == 0
    own_ring.write(own_ring.text() + "name=eve\n")
    done = run("--check", "--keys", own_ring.path)
    assert done.returncode == 1 and own_ring.path in done.stderr and "could run" not in done.stdout


def log_of(*options):
    """What it logs at its start, which then ends."""
    with subprocess.Popen([BINARY, *options], env=environment(), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("listening on ")
        process.terminate()
        return process.stderr.read()


@pytest.fixture
def pair(tmp_path):
    if not OPENSSL:
        pytest.skip("no openssl")
    pair = Authority(tmp_path / "tls").sign("server")
    done = run("--check", "--tls-cert", pair[0], "--tls-key", pair[1])
    if "has no TLS" in done.stderr:
        pytest.skip(done.stderr.strip())
    return pair


def test_it_warns_of_keys_in_the_clear(ring, pair):
    words, tls = "travel unencrypted", ["--tls-cert", pair[0], "--tls-key", pair[1]]
    keys = ["--keys", ring.path]
    assert words in log_of("--listen", "0.0.0.0:0", *keys)
    assert words not in log_of("--listen", "127.0.0.1:0", *keys)
    assert words not in log_of("--listen", "0.0.0.0:0", *keys, *tls)
    assert words not in log_of("--listen", "0.0.0.0:0", "--listen", "127.0.0.1:0,plain", *keys, *tls)
    assert words in log_of("--listen", "0.0.0.0:0", "--listen", "0.0.0.0:0,plain", *keys, *tls)


def test_one_bad_file_keeps_the_old_of_its_kind(start, own_ring, pair):
    daemon = start("--keys", own_ring.path, "--listen", "127.0.0.1:0", "--tls-cert", pair[0], "--tls-key", pair[1],
                   "--listen", "127.0.0.1:0,plain", listen=False)
    good, bad = "level=info event=reload", "level=error event=reload"
    with open(pair[0]) as file:
        certificate = file.read()
    with open(pair[0], "w") as file:
        file.write("no certificate\n")
    own_ring.add("new")
    reload(daemon, bad)
    wait_until(lambda: f"{good} keys=5" in daemon.log(), "the keys")
    assert "outcome=done" not in daemon.log()
    with open(pair[0], "w") as file:
        file.write(certificate)
    own_ring.write("nonsense\n")
    reload(daemon, f"{good} outcome=done")
    assert daemon.log().count(bad) == 2


def test_keys_come_and_go_without_a_lost_request(start, own_ring):
    """Clients ask all the time, while the file changes under them: those whose key stays never fail, and
    those whose key goes are out from the reload on."""
    daemon = start("--keys", own_ring.path)
    own_ring.add("leaver")
    reload(daemon)
    faults, answers, stop = [], {"user": 0, "both": 0}, threading.Event()

    def ask(name):
        with daemon.client() as client:
            while not stop.is_set():
                reply = client.request("POST", T, BODY, own_ring.headers(name))
                if reply.status != 200:
                    faults.append((name, reply))
                answers[name] += 1

    leaver = own_ring.headers("leaver")
    threads = [threading.Thread(target=ask, args=(name,)) for name in answers for _ in range(2)]
    for thread in threads:
        thread.start()
    daemon.post(T, BODY, leaver).ok()
    for i in range(20):
        own_ring.add(f"guest-{i}")
        reload(daemon)
        daemon.post(T, BODY, own_ring.headers(f"guest-{i}")).ok()
        if i == 10:
            own_ring.remove("leaver")
            reload(daemon)
            refused(daemon.post(T, BODY, leaver), 401, "unauthorized")
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]
    assert min(answers.values()) > 0


def test_signals_without_keys_change_nothing(start):
    daemon = start()
    reload(daemon)
    daemon.post(T, BODY).ok()


def region(daemon, path, headers, body=b""):
    return daemon.request("POST" if path.endswith("register") else "GET",
                          f"/v2/systemsharedmemory{path}", body, headers)


def test_regions_belong_to_keys(start, own_ring):
    name = f"/gemmd-keys-{os.getpid()}"
    with open("/dev/shm" + name, "wb") as file:
        file.write(bytes(4096))
    try:
        daemon = start("--keys", own_ring.path, "--allow-shared-memory", "/gemmd-keys")
        body = json.dumps({"key": name, "offset": 0, "byte_size": 4096}).encode()
        both, user, boss = (own_ring.headers(n) for n in ("both", "user", "boss"))
        region(daemon, "/region/mine/register", user, body).ok()
        use = "?region_a=mine&shape_a=2x2"
        daemon.post(T + use, b"", user).ok()
        assert daemon.post(T + use, b"", both).status == 404  # the same address, another key
        assert daemon.post(T + use, b"", boss).status == 404
        assert region(daemon, "/region/mine/status", both).status == 404
        assert region(daemon, "/region/mine/unregister", both).status == 404
        assert region(daemon, "/status", both).ok().json() == []
        assert [r["name"] for r in region(daemon, "/status", user).ok().json()] == ["mine"]
        region(daemon, "/region/mine/register", both, body).ok()
        seen = region(daemon, "/status", boss).ok().json()
        assert sorted((r["name"], r["owner"]) for r in seen) == [("mine", "both"), ("mine", "user")]
        wait_until(lambda: re.search("event=audit .*key=boss ", daemon.log()), "a line, behind the reply")
        own_ring.remove("user")
        reload(daemon)
        assert [r["owner"] for r in region(daemon, "/status", boss).ok().json()] == ["both"]
    finally:
        os.unlink("/dev/shm" + name)


@pytest.mark.parametrize("fmt", ["logfmt", "json"])
def test_the_log_names_keys_and_never_has_them(start, ring, fmt):
    daemon = start("--keys", ring.path, "--log-level", "debug", "--log-format", fmt)
    secret = ring.keys["user"]
    daemon.post(T, BODY, bearer(secret)).ok()
    daemon.get("/metrics", bearer(secret))
    daemon.get("/metrics", basic(secret))
    daemon.get("/metrics", bearer(secret + "x"))
    daemon.post(T, b"[[", bearer(secret))
    daemon.get('/none?a=b"\\', {**bearer(secret), "X-Request-Id": "007"})
    daemon.stop()
    log = daemon.log()
    assert secret not in log and secret.partition(".")[2] not in log
    assert basic(secret)["Authorization"].partition(" ")[2] not in log
    if fmt == "logfmt":
        assert log.count("event=audit") == 3
        assert 'client=127.0.0.1 key=user method=GET path="/metrics" outcome=refused code=forbidden reason="' in log
        assert "key=none method=GET" in log
        return
    lines = [json.loads(line) for line in log.splitlines()]
    audits = [line for line in lines if line["event"] == "audit"]
    assert sorted((a["key"], a["code"], a["client"]) for a in audits) == [
        ("none", "unauthorized", "127.0.0.1"), ("user", "forbidden", "127.0.0.1"), ("user", "forbidden", "127.0.0.1")]
    assert all(a["reason"] and a["outcome"] == "refused" and a["level"] == "warn" for a in audits)
    requests = [line for line in lines if line["event"] == "request"]
    assert sorted(r["status"] for r in requests) == [200, 400, 401, 403, 403, 404]
    lost, = (r for r in requests if r["status"] == 404)
    assert lost["id"] == "007" and lost["key"] == "user" and isinstance(lost["total_us"], float)


needs_gemmctl = pytest.mark.skipif(not GEMMCTL.is_file(), reason="gemmctl was not built")


def gemmctl(*arguments, env=None):
    return subprocess.run([GEMMCTL, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env=environment(env))


@needs_gemmctl
def test_gemmctl_makes_what_gemmd_reads(start, tmp_path):
    path = tmp_path / "keys"
    made = gemmctl("key", "new", "alice", "--keys", path, "--roles", "use,read", "--quota", "requests=1000,memory=1G")
    key = made.stdout.strip()
    assert made.returncode == 0 and len(key) == 16 + 1 + 64, made
    assert path.stat().st_mode & 0o777 == 0o600
    assert key.partition(".")[2] not in path.read_text()
    path.write_text("# ours\n" + path.read_text().rstrip("\n"))  # no newline at its end
    assert gemmctl("key", "new", "bob", env={"GEMMD_KEYS": str(path)}).returncode == 0
    assert gemmctl("key", "new", "bob", "--keys", path).returncode == 6
    assert gemmctl("key", "new", "other", "--keys", path).returncode == 2
    assert gemmctl("key", "new", "x", "--roles", "root", "--keys", path).returncode == 2
    assert gemmctl("key", "new", "x").returncode == 2
    listed = gemmctl("key", "list", "--keys", path)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["name", "alice", "bob"]
    assert "requests=1000" in listed.stdout and key not in listed.stdout
    assert [k["name"] for k in json.loads(gemmctl("key", "list", "--json", "--keys", path).stdout)] == ["alice", "bob"]
    daemon = start("--keys", str(path))
    done = gemmctl("stats", "-u", daemon.url(""), env={"GEMMD_KEY": key})
    assert done.returncode == 0, done
    assert gemmctl("stats", "-u", daemon.url("")).returncode == 7
    path.chmod(0o640)  # of a group that gemmd is in: it stays
    assert gemmctl("key", "revoke", "alice", "--keys", path).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text().startswith("# ours\nname=bob ")
    assert gemmctl("key", "revoke", "alice", "--keys", path).returncode == 6
    reload(daemon)
    assert gemmctl("stats", "-u", daemon.url(""), env={"GEMMD_KEY": key}).returncode == 7
    assert os.listdir(tmp_path) == ["keys"]


@needs_gemmctl
def test_gemmctls_at_once_lose_no_key(tmp_path):
    path = tmp_path / "keys"
    threads = [threading.Thread(target=gemmctl, args=("key", "new", f"k{i}", "--keys", path)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = sorted(line.partition(" ")[0] for line in path.read_text().splitlines())
    assert names == sorted(f"name=k{i}" for i in range(12))


def test_ten_thousand_keys(start, tmp_path):
    ring = Keyring(str(tmp_path / "keys"))
    lines, keys = [], []
    for i in range(10_000):
        key = f"{i:08x}.{'%064x' % (i * 7919)}"
        keys.append(key)
        lines.append(f"name=k{i} id={i:08x} sha256={hashlib.sha256(key.encode()).hexdigest()} roles=use,read\n")
    ring.write("".join(lines))
    daemon = start("--keys", ring.path)
    with daemon.client() as client:
        for i in (0, 1, 4999, 9998, 9999):
            client.request("POST", T, BODY, bearer(keys[i])).ok()
        assert client.request("POST", T, BODY, bearer(keys[5] + "0")).status == 401
        text = client.request("GET", "/metrics", None, bearer(keys[0])).ok().body.decode()
    assert text.count("gemmd_key_requests_total{") == 101  # a hundred, and all others
    assert 'gemmd_key_requests_total{key="other"} 3\n' in text
    assert 'gemmd_key_requests_total{key="k1"} 1\n' in text


def test_fairness_is_by_key(start, ring):
    """Two keys behind one address, as behind a proxy, are two clients."""
    daemon = start("--keys", ring.path, "--memory-limit", "128M", "--backend", "cpu")
    big, small = "?shape=10000x1000&dtype=f32", "?shape=2500x1000&dtype=f32"
    body = bytes(10_000_000)

    def ask(name):
        return daemon.post(T + small, body, {**ring.headers(name), "Content-Type": wire.RAW})

    with daemon.raw() as raw:  # 80 MB, for an operand that does not come and its result
        raw.send(wire.head("POST", T + big, "Content-Length: 40000000", "Content-Type: " + wire.RAW,
                           "Authorization: Bearer " + ring.keys["user"]) + bytes(1000))
        wait_until(lambda: daemon.get("/v1/stats", ring.headers("reader")).json()["memory"]["used_bytes"] >= 80_000_000,
                   "the memory of one client")
        assert ask("user").status == 503
        assert ask("user").json()["code"] == "memory_full"
        ask("both").ok()
