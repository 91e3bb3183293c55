"""The daemon under test is the one that tests/http start."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "http"))

import importlib.util  # noqa: E402

_spec = importlib.util.spec_from_file_location(
    "http_conftest", os.path.join(os.path.dirname(__file__), "..", "http", "conftest.py"))
_http = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_http)

daemon, shared_daemon, start, rng = _http.daemon, _http.shared_daemon, _http.start, _http.rng
pytest_configure = _http.pytest_configure

for _name in ("GEMMD_URL", "GEMMD_KEY", "GEMMD_KEY_FILE", "GEMMD_CA"):
    os.environ.pop(_name, None)  # somebody's own settings


@pytest.fixture(scope="session")
def url(shared_daemon):
    return shared_daemon.url("")
