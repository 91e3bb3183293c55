"""Fixtures: one daemon that most tests share, and private ones with options of their own."""

import functools
import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))

from daemon import BINARY, IDLE, SLOW, Daemon  # noqa: E402

SEED = int(os.environ.get("GM_SEED", "20240607"))


def pytest_configure():
    if not os.access(BINARY, os.X_OK):
        raise pytest.UsageError(f"set GEMMD_BIN to the daemon to test; {BINARY!r} is none")


def pytest_report_header():
    return f"GEMMD_BIN={BINARY} GM_SEED={SEED} GM_SLOW={SLOW:g}"


@pytest.fixture(scope="session")
def shared_daemon():
    daemon = Daemon()
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    """The shared daemon, which must survive every test."""
    yield shared_daemon
    assert shared_daemon.alive(), (shared_daemon.process.returncode, shared_daemon.last_words())


@pytest.fixture
def start():
    """start(*options) gives a private daemon; all are stopped, and checked, at the end."""
    daemons = []

    def start_one(*options, **keywords):
        daemons.append(Daemon(*options, **keywords))
        return daemons[-1]

    yield start_one
    failures = []
    for daemon in daemons:
        try:
            daemon.stop()
        except AssertionError as failure:
            failures.append(str(failure))
        finally:
            daemon.kill()
    assert not failures, "\n".join(failures)


@pytest.fixture
def start_idle(start):
    """start(), but on a device that takes as long as a slow one and leaves the processor to others: for what
    a queue and a clock decide."""
    return functools.partial(start, **IDLE)


@pytest.fixture
def rng():
    """Random numbers that are the same in every run; GM_SEED gives others."""
    return np.random.default_rng(SEED)
