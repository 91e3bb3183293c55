"""The Python package through shared memory, where the daemon allows it."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import wheel
from relay import Relay

import gemmd
from daemon import Daemon, run

pytestmark = pytest.mark.skipif(
    "--allow-shared-memory" not in run("--help").stdout, reason="this gemmd has no shared memory"
)

RNG = np.random.default_rng()
A, B = RNG.random((400, 300)), RNG.random((300, 500))


@pytest.fixture(scope="module")
def allowing():
    one = Daemon("--allow-shared-memory", "/gemmd-", "--memory-limit", "128M")
    yield one
    one.stop()


@pytest.fixture
def relay(allowing):
    """Before the daemon, so that it is seen what comes by the socket. No region is left after a test."""
    with Relay(allowing.port) as one:
        yield one
    assert regions(allowing) == []
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"gemmd-py-{os.getpid()}-")]


def at(relay):
    return f"http://127.0.0.1:{relay.port}"


def regions(daemon):
    return json.loads(daemon.get("/v2/systemsharedmemory/status").ok().body)


def sent(daemon):
    """Bytes of request bodies that the daemon has received."""
    return json.loads(daemon.get("/v1/stats").ok().body)["counters"]["request_body_bytes"]


def test_results_are_the_same(allowing, relay):
    stack, vector = RNG.random((3, 200, 300)), RNG.random(300)
    with gemmd.Client(at(relay)) as client:
        before = sent(allowing)
        assert np.allclose(client.matmul(A, B), A @ B)
        assert np.allclose(client.matmul(A, B, RNG.random((400, 500)), beta=0, alpha=2), 2 * A @ B)
        assert np.allclose(client.matmul(A.T.copy(), B, transa=True), A @ B)
        assert np.allclose(client.matmul(A, B.T.copy(), transb=True), A @ B)
        assert np.allclose(client.matmul(stack, B), stack @ B)
        assert np.allclose(client.matmul(A, vector), A @ vector)
        assert np.array_equal(client.add(A, A[:1]), A + A[:1])
        assert np.array_equal(client.add(3, stack), stack + 3)
        made = client.transpose(stack)
        assert np.array_equal(made, stack.swapaxes(1, 2)) and made.account.op == "transpose"
        assert client.flip(A.astype("f4")).dtype == np.float32
        whole = RNG.random(100_000)
        assert np.array_equal(client.flip(whole), whole[::-1])
        assert sent(allowing) - before < 2000  # what was said of regions
        assert 1 <= len(regions(allowing)) <= 4
        first = client.flip(A)
        client.flip(A + 1)
        assert np.array_equal(first, A[:, ::-1])  # a result is nobody else's memory
        with pytest.raises(gemmd.RequestError, match="columns of a"):
            client.matmul(A, A)


def test_calls_that_were_given_up_leave_no_region(allowing, relay):
    """Until the next call: the daemon may write into them as long as their requests run."""
    large = RNG.random((600, 600))
    with gemmd.Client(at(relay)) as client:
        for _ in range(6):
            with pytest.raises(gemmd.TimeoutError):
                client.matmul(large, large, kernel="naive", device="cpu", timeout=0.02)
        assert np.allclose(client.matmul(A, B), A @ B)
        assert len(regions(allowing)) <= 2


def test_async(allowing, relay):
    async def work():
        async with gemmd.AsyncClient(at(relay)) as client:
            before = sent(allowing)
            made = await asyncio.gather(*(client.add(A, n) for n in range(12)))
            assert all(np.array_equal(one, A + n) for n, one in enumerate(made))
            assert sent(allowing) - before < 4000 and len(regions(allowing)) <= 4
        assert regions(allowing) == []
        async with gemmd.AsyncClient(at(relay), shared_memory=False) as never:
            before = sent(allowing)
            assert np.array_equal(await never.flip(A), A[:, ::-1]) and sent(allowing) - before == A.nbytes + 128

    asyncio.run(work())


def test_what_is_sent_all_the_same(allowing, relay):
    with gemmd.Client(at(relay)) as client, gemmd.Client(at(relay), shared_memory=False) as never:
        for client, a in ((client, A[:10, :10]), (client, np.asfortranarray(A)), (client, A.astype(">f8")),
                          (client, np.empty((0, 10**6))), (never, A)):
            before = sent(allowing)
            assert np.array_equal(client.flip(a), a[:, ::-1])
            assert sent(allowing) - before == a.nbytes + 128
        assert regions(allowing) == []
        # A region would be more than half of the daemon's memory.
        large = RNG.random((4500, 1000))
        with gemmd.Client(at(relay)) as other:
            assert np.array_equal(other.flip(large), large[:, ::-1])
            assert np.array_equal(other.flip(A), A[:, ::-1]) and len(regions(allowing)) == 1


def test_other_ways_to_say_the_operands(allowing, relay):
    bits, bf16 = RNG.integers(0, 1 << 15, (400, 500)).astype("u2"), []
    with gemmd.Client(at(relay)) as client:
        before = sent(allowing)
        bf16.append(client.flip(bits, dtype="bf16"))
        assert sent(allowing) - before < 2000 and bf16[0].account.dtype == "bf16" and bf16[0].tobytes() == bits[:, ::-1].tobytes()
        before = sent(allowing)
        kept = client.flip(A, keep="shared_kept")  # which no region can do
        assert np.array_equal(kept, A[:, ::-1]) and np.array_equal(client.get("shared_kept"), kept) and sent(allowing) - before >= A.nbytes
        client.delete("shared_kept")
        with pytest.raises(gemmd.RequestError) as through:
            client.matmul(A, B, 1.0)
    with gemmd.Client(at(relay), shared_memory=False) as never, pytest.raises(gemmd.RequestError) as by_socket:
        never.matmul(A, B, 1.0)
    assert (through.value.code, through.value.detail) == (by_socket.value.code, by_socket.value.detail)


@pytest.fixture
def registered(monkeypatch):
    """The regions that are registered, by their sizes."""
    sizes, register = [], gemmd.shared.Region.register

    def counts(region):
        sizes.append(region.size)
        assert os.stat(gemmd.shared.FOLDER + region._key).st_mode & 0o777 == 0o600  # nobody else reads it
        return register(region)

    monkeypatch.setattr(gemmd.shared.Region, "register", counts)
    return sizes


def test_a_region_is_taken_that_fits(allowing, relay, registered):
    with gemmd.Client(at(relay)) as client:
        for rows in (400, 300, 400, 1600, 400):
            assert np.array_equal(client.flip(np.resize(A, (rows, 300))), np.resize(A, (rows, 300))[:, ::-1])
        assert len(regions(allowing)) == len(registered) == 2 and registered[1] == 4 * registered[0]
        client.flip(np.ones((10, 10)))  # too small to gain by it
        assert len(registered) == 2
        # The smallest that is large enough, so that the other is there for what needs it.
        (small, large) = sorted(client._shared._kept, key=lambda region: region.size)
        client._shared._kept[:] = [large, small]
        client.flip(A)
        assert client._shared._kept == [large, small]
    assert regions(allowing) == [] and client is not None  # with its end, and not with that of the program


def test_where_there_is_no_room_for_a_region(allowing, relay, registered, monkeypatch):
    tried = []

    def none_left(descriptor, offset, size):
        tried.append(size)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full, gemmd.Client(at(relay)) as client:
        full.setattr(os, "posix_fallocate", none_left)
        for _ in range(2):
            assert np.array_equal(client.flip(A), A[:, ::-1])
        assert len(tried) == 1 and registered == []
        full.undo()
        assert np.array_equal(client.flip(A[:200]), A[:200, ::-1]) and len(registered) == 1
    large = RNG.random((4500, 1000))  # more than half of the daemon's memory
    with gemmd.Client(at(relay)) as client:
        for _ in range(2):
            assert np.array_equal(client.flip(large), large[:, ::-1])
        assert len(registered) == 2


def test_a_region_that_is_gone_is_not_needed():
    """Its operands are sent; any other error of the operation is the caller's, and the region stays for the next."""
    for code, gone in (("not_found", True), ("region_conflict", True), ("not_allowed", True), ("bad_shape", False)):
        memory = gemmd.shared.SharedMemory(gemmd.address.resolve("http://localhost:9", None, None), True)
        operation = gemmd.calls.operation("flip", [A], {})
        steps = memory.steps(operation)
        assert next(steps).path == "/v2" and steps.send({"shared_memory_prefix": "/gemmd-"}).path.endswith("/register")
        assert steps.send(None).params["region_a"].startswith("py-")
        error = gemmd.RequestError("it is so", status=400, code=code)
        if gone:
            assert steps.throw(error) is operation.call and memory.take_all() == []
        else:
            with pytest.raises(gemmd.RequestError):
                steps.throw(error)
            assert len(memory.take_all()) == 1


def test_the_end_after_that_of_the_daemon(start):
    daemon = start("--allow-shared-memory", "/gemmd-")
    client, other = gemmd.Client(daemon.url("")), gemmd.AsyncClient(daemon.url(""))
    client.flip(A)

    async def work():
        await other.flip(A)
        assert len(regions(daemon)) == 2
        daemon.stop()
        await other.aclose()

    asyncio.run(work())
    client.close()


def test_prefixes_that_lead_elsewhere():
    def taken(prefix):
        steps = gemmd.shared._asked()
        next(steps)
        with pytest.raises(StopIteration) as end:
            steps.send({"shared_memory_prefix": prefix} if prefix else {})
        return end.value.value

    for prefix, expected in (("/gemmd-", "/gemmd-"), ("", ""), ("gemmd-", ""), ("/../tmp/", ""), ("/.hidden", ""), ("/a/b", "")):
        assert taken(prefix) == expected, prefix


def test_regions_of_lost_calls_are_given_back_when_that_is_possible():
    memory = gemmd.shared.SharedMemory(gemmd.address.resolve("http://localhost:9", None, None), True)

    class Lost:
        def unregister(self):
            return "unregister"

    def forget(said):
        """What is left, when this is what comes of it."""
        memory._lost = [Lost()]
        steps = memory._forget_lost()
        assert next(steps) == "unregister"
        with pytest.raises(StopIteration if said is None or isinstance(said, gemmd.Error) else type(said)):
            steps.send(None) if said is None else steps.throw(said)
        return len(memory._lost)

    assert forget(None) == forget(gemmd.RequestError("unknown", status=404)) == 0
    assert forget(gemmd.TransportError("refused")) == forget(KeyboardInterrupt()) == 1
    assert memory.take_all() and memory.take_all() == []


def test_a_daemon_that_forgets(allowing, relay):
    with gemmd.Client(at(relay)) as client:
        client.flip(A)
        allowing.post("/v2/systemsharedmemory/unregister").ok()  # as one that was started anew
        assert np.array_equal(client.flip(A), A[:, ::-1]) and regions(allowing) == []
        assert np.array_equal(client.flip(A), A[:, ::-1]) and len(regions(allowing)) == 1


def test_prefixes(start):
    for prefix in ("/other-", "other"):
        daemon = start("--allow-shared-memory", prefix)
        with gemmd.Client(daemon.url("")) as client:
            assert np.array_equal(client.flip(A), A[:, ::-1])
            assert [region["key"] for region in regions(daemon)] == [f"/{prefix.lstrip('/')}{regions(daemon)[0]['name']}"]
    daemon = start()
    with gemmd.Client(daemon.url("")) as client:
        assert np.array_equal(client.flip(A), A[:, ::-1])


def test_a_program_that_closes_nothing(allowing, relay):
    program = (
        "import gemmd, numpy, sys, urllib.request as web\n"
        "gemmd.Client(sys.argv[1]).flip(numpy.ones((500, 500)))\n"
        "client = gemmd.Client(sys.argv[1])\n"
        "client.flip(numpy.ones((500, 500)))\n"
        "print(web.urlopen(sys.argv[1] + '/v2/systemsharedmemory/status').read().decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, at(relay)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(wheel.SITE)})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert len(json.loads(done.stdout)) == 1


def test_programs_that_are_killed(allowing, relay):
    """What they leave is taken away when there is no room beside it."""
    program = (
        "import gemmd, numpy, os, signal, sys\n"
        "client = gemmd.Client(sys.argv[1])\n"
        "client.flip(numpy.ones((1500, 1000)))\n"  # a region of 32 MB
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, at(relay)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": str(wheel.SITE)})
        assert done.returncode == -signal.SIGKILL, done.stderr
    left = {region["name"] for region in regions(allowing)}
    assert len(left) == 2
    with gemmd.Client(at(relay)) as client:
        before = sent(allowing)
        assert np.array_equal(client.flip(A), A[:, ::-1])
        assert sent(allowing) - before < 2000
        assert len(regions(allowing)) == 1 and not left & {region["name"] for region in regions(allowing)}


def test_operands_of_several_types_go_by_the_socket(allowing, relay):
    """Where the daemon says what is wrong: regions have one type for all."""
    a = np.ones((300, 300), np.float32)
    with gemmd.Client(at(relay)) as client:
        for other in (np.full_like(a, 7, np.int32), np.full_like(a, 7, np.float64)):
            for op in (client.add, client.matmul):
                with pytest.raises(gemmd.RequestError, match="is f32 and b is|b is"):
                    op(a, other)
        with pytest.raises(gemmd.RequestError):
            client.add(a, a, dtype="i32")


def test_a_child_that_ends_takes_nothing_from_its_parent(allowing, relay):
    """With what Python does at the end of a program; for either client."""
    program = (
        "import asyncio, gemmd, numpy, os, sys\n"
        "ones = numpy.ones((500, 500))\n"
        "client, other = gemmd.Client(sys.argv[1]), gemmd.AsyncClient(sys.argv[1])\n"
        "client.flip(ones)\n"
        "asyncio.run(other.flip(ones))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert (asyncio.run(other.flip(ones)) == 1).all() and (client.flip(ones) == 1).all()\n"
        "    sys.exit(0)\n"
        "ended = os.waitpid(child, 0)[1]\n"
        "import urllib.request as web\n"
        "print(ended, web.urlopen(sys.argv[1] + '/v2/systemsharedmemory/status').read().decode())\n"
        "client.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, at(relay)], capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(wheel.SITE)})
    assert done.returncode == 0, done.stderr
    ended, _, left = done.stdout.partition(" ")
    assert ended == "0" and len(json.loads(left)) == 2, done.stderr


def test_children_have_connections_and_regions_of_their_own(allowing):
    """The parent's are in use while a forked child computes."""
    client = gemmd.Client(f"http://127.0.0.1:{allowing.port}")
    ones = np.ones((300, 300), np.float32)

    def wrong(seed, count=40):
        return sum(not (client.add(ones * (seed + i), ones) == seed + i + 1).all() for i in range(count))

    assert wrong(0, 2) == 0
    children = []
    for seed in (1000, 2000):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if wrong(seed) == 0 else 2
                client.close()
            finally:
                os._exit(status)
        children.append(child)
    assert wrong(3000) == 0
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    client.close()
    assert regions(allowing) == []
