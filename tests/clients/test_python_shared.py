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
