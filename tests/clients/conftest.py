"""Fixtures of the clients' tests: one real daemon."""

import os
import sys

import pytest

for name in [name for name in os.environ if name.startswith("GEMMD_") and name != "GEMMD_BIN"]:
    del os.environ[name]  # somebody's own settings
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "http"))

from daemon import Daemon  # noqa: E402


@pytest.fixture(scope="session")
def daemon():
    one = Daemon()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def url(daemon):
    return daemon.url("")
