"""Named matrices in files (--matrix-dir): they outlive the daemon, however it ends, and NumPy reads them."""

import json
import os
import shutil
import signal
import stat
import subprocess
import threading
import time

import numpy as np
import pytest

import problems
from daemon import SLOW, Daemon, run
from keyring import Keyring
from test_matrices import A, M, fetch, listed, load, npy, put


@pytest.fixture
def folder(tmp_path):
    os.mkdir(tmp_path / "matrices")
    return tmp_path / "matrices"


def files(folder):
    return sorted(os.listdir(folder))


def test_across_restarts(start, folder):
    daemon = start("--matrix-dir", str(folder))
    said = put(daemon, "w", A).json()
    assert said["durable"] is True
    put(daemon, "w", 2 * A)
    put(daemon, "columns", np.asfortranarray(A))
    put(daemon, "stack", np.arange(24, dtype="i8").reshape(2, 3, 4), ttl=1000)
    put(daemon, "bits", np.arange(4, dtype="u2").view("V2").reshape(2, 2), dtype="bf16")
    gone = put(daemon, "gone", A).json()
    reply = daemon.post("/v1/add?a=ref:w&b=ref:w&keep=sum").ok()
    assert "durable=?1" in reply.header("Gemmd-Kept")
    assert daemon.request("DELETE", f"{M}/gone").status == 204
    before = listed(daemon)
    assert len(files(folder)) == 2 * len(before), files(folder)
    for name in before:
        (facts,) = [f for f in files(folder) if f.endswith(f".{name}.json")]
        facts = json.loads((folder / facts).read_text())
        assert facts["format"] == 1 and facts["etag"] == before[name]["etag"] and facts["dtype"] == before[name]["dtype"]
        assert list(np.load(folder / facts["file"]).shape) == before[name]["shape"]
    daemon.stop()
    daemon = start("--matrix-dir", str(folder))
    after = listed(daemon)
    for one in (*before.values(), *after.values()):
        one.pop("used")
    assert after == before
    assert np.array_equal(load(fetch(daemon, "w")), 2 * A) and np.array_equal(load(fetch(daemon, "sum")), 4 * A)
    assert np.array_equal(load(fetch(daemon, "columns")), A)
    assert np.array_equal(load(fetch(daemon, "stack"))[1], np.arange(12, 24).reshape(3, 4))
    assert daemon.post("/v1/add?a=ref:bits&b=ref:bits").ok().stats["dtype"] == "bf16"
    again = put(daemon, "w", A, {"If-Match": before["w"]["etag"].join('""')})
    assert again.status == 200
    # No tag comes again: who has one of before the restart must not replace what is new.
    assert again.json()["etag"] not in {one["etag"] for one in (said, gone, *before.values())}
    problems.check(put(daemon, "w", A, {"If-Match": before["w"]["etag"].join('""')}), 412, "precondition_failed")
    assert run("--listen", "127.0.0.1:0", "--matrix-dir", str(folder)).stderr.endswith("another gemmd uses it\n")
    for name in listed(daemon):
        assert daemon.request("DELETE", f"{M}/{name}").status == 204
    assert files(folder) == []


def test_expiry(start, folder):
    """What has expired is gone, with its files."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "short", A, ttl=1)
    put(daemon, "long", A, ttl=31536000)
    # Of the long one: on a slow machine the short one may be gone before this is read.
    daemon.post("/v1/flip?a=ref:long&keep=kept&ttl=1").ok()
    deadline = time.monotonic() + 10 * SLOW
    while daemon.get("/v1/stats").json()["matrices"]["used_bytes"] > 24 or len(files(folder)) > 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert set(listed(daemon)) == {"long"}
    problems.check(daemon.post("/v1/flip?a=ref:short"), 404, "not_found")
    assert put(daemon, "short", A, {"If-None-Match": "*"}).status == 201


def test_a_matrix_lives_as_long_as_it_says(daemon):
    """Also one that was made at the end of a second."""
    while time.time() % 1 < 0.9:
        time.sleep(0.01)
    begun = time.monotonic()
    put(daemon, "brief", A, ttl=1)
    time.sleep(0.3)
    reply = fetch(daemon, "brief")
    assert reply.status == 200 or time.monotonic() - begun >= 1, reply


def test_expired_while_no_daemon_ran(start, folder):
    """Its files are removed at the start: it takes no room from those that live."""
    daemon = start("--matrix-dir", str(folder))
    large = np.ones((512, 1024), np.float32)
    put(daemon, "live", large)
    daemon.stop()
    kept = files(folder)
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "brief", large, ttl=1)
    daemon.stop()
    time.sleep(2.5)
    daemon = start("--matrix-dir", str(folder), "--matrix-memory", "5M")
    assert set(listed(daemon)) == {"live"} and files(folder) == kept


def test_killed_at_any_moment(folder):
    """Each name has its last answered version, or one that was under way; all of it whole."""
    rng = np.random.default_rng(int(os.environ.get("GM_SEED", "1")))
    answered, asked = {f"n{i}": 0 for i in range(4)}, {f"n{i}": 0 for i in range(4)}
    shape, value = (100, 100), 0
    for _ in range(3):
        daemon = Daemon("--matrix-dir", str(folder))
        for name, least in answered.items():
            reply = fetch(daemon, name)
            if reply.status == 404:
                assert least == 0, name
                continue
            array = load(reply)
            assert array.shape == shape and array.min() == array.max(), name
            assert least <= array[0, 0] <= asked[name], (name, least, array[0, 0], asked[name])
            answered[name] = int(array[0, 0])
        assert len(files(folder)) == 2 * len(listed(daemon)), files(folder)

        def write(name):
            with daemon.client() as client:
                while True:
                    asked[name] += 1
                    body = npy(np.full(shape, asked[name], np.float32))
                    try:
                        reply = client.request("PUT", f"{M}/{name}", body)
                    except OSError:
                        return
                    except Exception: # http.client's, of a connection that ends
                        return
                    assert reply.status in (200, 201), reply
                    answered[name] = asked[name]

        threads = [threading.Thread(target=write, args=(name,)) for name in answered]
        for thread in threads:
            thread.start()
        time.sleep(float(rng.uniform(0.02, 0.15)))
        daemon.kill()
        for thread in threads:
            thread.join()
        value += sum(answered.values())
    assert value > 0 and all(answered.values())


def test_what_cannot_be_loaded(start, folder):
    daemon = start("--matrix-dir", str(folder))
    for name in ("whole", "short", "long", "type", "other", "text"):
        put(daemon, name, A)
    daemon.stop()
    owner = files(folder)[0].split(".")[0]

    def facts_of(name):
        return folder / f"{owner}.{name}.json"

    def elements_of(name):
        return folder / json.loads(facts_of(name).read_text())["file"]

    elements = {elements_of(name).name for name in ("whole", "short", "long", "type", "other", "text")}
    elements_of("short").write_bytes(elements_of("short").read_bytes()[:-1])
    with open(elements_of("long"), "ab") as file:
        file.write(b"x")
    np.save(elements_of("type"), A.astype("f8"))
    facts_of("text").write_text("{")
    said = json.loads(facts_of("other").read_text())
    facts_of("other").write_text(json.dumps({**said, "file": "../../etc/passwd"}))
    for name in ("left.0123456789abcdef.npy", "left.json", "whole.0123456789abcdef.npy"):
        (folder / f".{owner}.{name}.new").write_bytes(b"half, of a daemon that was killed")
    others = (f"{owner}.person.0123456789abcdef.npy", f"{owner}.whole.0123456789abcdef.npy",
              "quarterly_report_matrix.npy", "a.b.0123456789abcdeX.npy", ".left.new", "x.0123456789abcdef.npy",
              ".notes.json", "1.0123456789abcdef.npy")
    for name in others:
        (folder / name).write_bytes(b"somebody else's")
    daemon = start("--matrix-dir", str(folder))
    assert set(listed(daemon)) == {"whole"} and np.array_equal(load(fetch(daemon, "whole")), A)
    log = daemon.log()
    assert log.count("event=matrix_dir") == 7, log
    assert all(f".{name}." in log for name in ("short", "long", "type", "other", "text")), log
    assert all(f"{name} was not loaded, and stays as it is: no .json" in log for name in others[:2]), log
    left = set(files(folder))
    assert left > set(others), "files of others stay"
    assert left > elements, "and what is damaged"
    left -= set(others)
    assert not any(name.endswith(".new") for name in left) and len([n for n in left if n.endswith(".json")]) == 6
    # Who uses such a name does not lose what a person put there.
    for name in ("person", "whole"):
        assert put(daemon, name, A).status in (200, 201) and daemon.request("DELETE", f"{M}/{name}").status == 204
    assert put(daemon, "whole", A).status == 201 and set(others) < set(files(folder))
    daemon.stop()
    # A version that it does not know is not touched: it does not start.
    facts_of("whole").write_text(json.dumps({**json.loads(facts_of("whole").read_text()), "format": 2}))
    before = files(folder)
    done = run("--listen", "127.0.0.1:0", "--matrix-dir", str(folder))
    assert done.returncode == 2 and "has format 2" in done.stderr and files(folder) == before
    done = run("--listen", "127.0.0.1:0", "--matrix-dir", str(folder / "none"))
    assert done.returncode == 2 and "No such file" in done.stderr


def test_elements_under_their_other_name(start, folder):
    """A daemon that was killed just before or after the .json changed: what that names counts."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "w", A)
    daemon.stop()
    before = files(folder)
    (elements,) = [name for name in before if name.endswith(".npy")]
    os.rename(folder / elements, folder / f".{elements}.new")
    daemon = start("--matrix-dir", str(folder))
    assert np.array_equal(load(fetch(daemon, "w")), A) and files(folder) == before
    daemon.stop()
    os.rename(folder / elements, folder / f".{elements}.new")
    os.remove(folder / elements.replace(".npy", ".json").replace(elements.split(".")[-2] + ".", ""))
    daemon = start("--matrix-dir", str(folder))
    assert listed(daemon) == {} and files(folder) == []


def test_a_file_with_the_name_that_the_start_tries_is_left_alone(start, tmp_path):
    os.mkfifo(tmp_path / ".gemmd.new")
    start("--matrix-dir", str(tmp_path))
    assert stat.S_ISFIFO((tmp_path / ".gemmd.new").stat().st_mode)


def test_a_folder_that_cannot_be_written():
    done = run("--listen", "127.0.0.1:0", "--matrix-dir", "/proc")
    assert done.returncode == 2 and "--matrix-dir: /proc: " in done.stderr, done


def test_keys(start, folder, tmp_path):
    ring = Keyring(str(tmp_path / "keys"))
    for name in ("alice", "bob", ".dots.-"):
        ring.add(name, "use,read")
    options = "--keys", ring.path, "--matrix-dir", str(folder)
    daemon = start(*options)
    put(daemon, "w", A, ring.headers("alice"), share="bob")
    put(daemon, "w", 2 * A, ring.headers("bob"))
    put(daemon, "w", 3 * A, ring.headers(".dots.-"))
    daemon.stop()
    daemon = start(*options)
    assert np.array_equal(load(fetch(daemon, "alice.w", ring.headers("bob"))), A)
    assert np.array_equal(load(fetch(daemon, "w", ring.headers("bob"))), 2 * A)
    assert np.array_equal(load(fetch(daemon, "w", ring.headers(".dots.-"))), 3 * A)
    ring.remove(".dots.-")
    # A key that goes takes its own with it; one that was gone at the start leaves its files to the operator.
    ring.remove("bob")
    daemon.signal(signal.SIGHUP)
    deadline = time.monotonic() + 10 * SLOW
    while any(name.startswith("bob") for name in files(folder)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    daemon.stop()
    ring.remove("alice")
    ring.add("carol", "use,read")
    daemon = start(*options)
    assert "alice has no key" in daemon.log() and len(files(folder)) == 2
    assert daemon.get("/v1/stats", ring.headers("carol")).json()["matrices"]["count"] == 0


def test_addresses_and_keys(start, folder, tmp_path):
    """Where clients have keys nobody can name what an address has: its files wait for a start without."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "w", A)
    daemon.stop()
    kept, ring = files(folder), Keyring(str(tmp_path / "keys"))
    ring.add("root", "use,read,admin")
    daemon = start("--matrix-dir", str(folder), "--keys", ring.path)
    assert "is an address, and clients have keys" in daemon.log()
    assert daemon.get("/v1/stats", ring.headers("root")).json()["matrices"]["count"] == 0 and files(folder) == kept
    daemon.stop()
    daemon = start("--matrix-dir", str(folder))
    assert np.array_equal(load(fetch(daemon, "w")), A)


def test_quotas(start, folder):
    """What an address had before the start counts for it."""
    options = "--matrix-dir", str(folder), "--quota", "memory=1M"
    daemon = start(*options)
    for i in range(3):
        assert put(daemon, f"q{i}", np.zeros((65536,), np.float32)).status == 201
    for _ in range(2):
        assert put(daemon, "more", np.zeros((98304,), np.float32)).status in (413, 429)
        daemon.stop()
        daemon = start(*options)
    assert daemon.request("DELETE", "/v1/matrices/q0").status == 204
    assert put(daemon, "more", np.zeros((65536,), np.float32)).status == 201


def test_what_was_not_loaded_for_lack_of_room(start, folder):
    """It is there: nothing "only creates" over it, and a DELETE removes it."""
    large = np.ones((512, 1024), np.float32)
    daemon = start("--matrix-dir", str(folder))
    for name in ("x0", "x1", "x2", "x3"):
        assert put(daemon, name, large).status == 201
    tags = {name: one["etag"] for name, one in listed(daemon).items()}
    daemon.stop()
    daemon = start("--matrix-dir", str(folder), "--matrix-memory", "6M")
    (loaded,) = listed(daemon)
    log = daemon.log()
    first, second, third = sorted({"x0", "x1", "x2", "x3"} - {loaded})
    assert all(f".{name}." in log for name in (first, second, third)), log
    problems.check(put(daemon, first, A, {"If-None-Match": "*"}), 412, "precondition_failed")
    problems.check(put(daemon, first, A, {"If-Match": '"0123456789abcdef"'}), 412, "precondition_failed", tags[first])
    problems.check(daemon.request("DELETE", f"{M}/{first}", headers={"If-Match": '"0123456789abcdef"'}), 412, "precondition_failed")
    assert put(daemon, second, A, {"If-Match": tags[second].join('""')}).status in (200, 201)
    assert daemon.request("DELETE", f"{M}/{third}").status == 204
    problems.check(daemon.request("DELETE", f"{M}/{third}"), 404, "not_found")
    daemon.stop()
    daemon = start("--matrix-dir", str(folder))
    assert set(listed(daemon)) == {loaded, first, second} and len(files(folder)) == 6
    assert np.array_equal(load(fetch(daemon, first)), large) and np.array_equal(load(fetch(daemon, second)), A)


def test_what_cannot_be_removed(start, folder):
    """What would be there again after a restart is not said to be deleted."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "w", A)
    (facts,) = [name for name in files(folder) if name.endswith(".json")]
    os.rename(folder / facts, folder / "kept")
    os.mkdir(folder / facts)
    problems.check(daemon.request("DELETE", f"{M}/w"), 500, "internal", facts)
    assert np.array_equal(load(fetch(daemon, "w")), A)
    os.rmdir(folder / facts)
    os.rename(folder / "kept", folder / facts)
    assert daemon.request("DELETE", f"{M}/w").status == 204 and files(folder) == []


def test_expired_and_cannot_be_removed(start, folder):
    """Elements stay as long as their facts do."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "w", A, ttl=1)
    facts, elements = files(folder) if files(folder)[0].endswith(".json") else files(folder)[::-1]
    os.rename(folder / facts, folder / "kept")
    os.mkdir(folder / facts)
    deadline = time.monotonic() + 10 * SLOW
    while facts not in daemon.log():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert listed(daemon) == {} and elements in files(folder)
    daemon.stop()
    os.rmdir(folder / facts)
    os.rename(folder / "kept", folder / facts)
    daemon = start("--matrix-dir", str(folder))
    assert files(folder) == []


def test_a_write_that_waits_for_the_disk_too_long(start, folder):
    """503 at its deadline, and the matrix before is there still: else an older write could end after a newer one."""
    daemon = start("--matrix-dir", str(folder))
    put(daemon, "w", A)
    (facts,) = [name for name in files(folder) if name.endswith(".json")]
    pipe = folder / f".{facts.replace('.w.', '.stuck.')}.new"
    os.mkfifo(pipe)
    stuck = threading.Thread(target=put, args=(daemon, "stuck", A))
    stuck.start()
    time.sleep(0.3 * SLOW)
    replies = []
    late = threading.Thread(target=lambda: replies.append(put(daemon, "w", 2 * A, timeout_ms=100)))
    late.start()
    time.sleep(0.3 * SLOW)
    with open(pipe, "rb") as end:  # now the first goes on, and fails: a pipe is no disk
        end.read()
    late.join()
    stuck.join()
    problems.check(replies[0], 503, "deadline_passed")
    assert set(listed(daemon)) == {"w"} and np.array_equal(load(fetch(daemon, "w")), A)
    assert len(files(folder)) == 2


def test_full_disk(start, folder):
    """On a file system of 1 MB: 507, and what was there is there still."""
    mount = f'mount -t tmpfs -o size=1m none "{folder}" && exec "$@"'
    under = ("unshare", "-rm", "sh", "-c", mount, "sh")
    if not shutil.which("unshare") or subprocess.run([*under, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    daemon = start("--matrix-dir", str(folder), under=under)
    small, large = np.ones((256, 256), np.float32), np.zeros((512, 600), np.float32)
    assert put(daemon, "w", small).status == 201
    problems.check(put(daemon, "w", large), 507, "storage_full", "No space left")
    problems.check(put(daemon, "v", large), 507, "storage_full")
    problems.check(daemon.post("/v1/flip?keep=k", npy(large)), 507, "storage_full")
    assert set(listed(daemon)) == {"w"} and np.array_equal(load(fetch(daemon, "w")), small)
    assert put(daemon, "v", small).status == 201 # nothing half-written is in its way

