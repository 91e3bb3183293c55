"""curl, as people use it."""

import json
import subprocess

import numpy as np
import pytest

import formats

def curl(*arguments, stdin=None):
    command = ["curl", "-sS", "--max-time", "60", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def files(tmp_path, rng):
    """a.npy and b.npy, and what is in them."""
    a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((30, 40), (40, 20)))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    return tmp_path, a, b


def test_curl_a_file(daemon, files):
    folder, a, _ = files
    out = folder / "t.npy"
    file = f"@{folder}/a.npy"
    curl("--data-binary", file, daemon.url("/v1/transpose"), "-o", str(out))
    assert formats.same_bits(np.load(out), formats.transposed(a))
    chunked = ("-H", "Transfer-Encoding: chunked")
    curl("--data-binary", file, *chunked, daemon.url("/v1/transpose"), "-o", str(out))
    assert formats.same_bits(np.load(out), formats.transposed(a))
    curl("-T", f"{folder}/a.npy", "-X", "POST", daemon.url("/v1/transpose"), "-o", str(out))
    assert formats.same_bits(np.load(out), formats.transposed(a))


def test_curl_two_files_back_to_back(daemon, files):
    folder, a, b = files
    both = (folder / "a.npy").read_bytes() + (folder / "b.npy").read_bytes()
    out = folder / "p.npy"
    curl("--data-binary", "@-", daemon.url("/v1/matmul"), "-o", str(out), stdin=both)
    formats.Product("f32", a, b).check(np.load(out))


def test_curl_a_line_of_json(daemon):
    reply = json.loads(curl("-d", "[[1,2],[3,4]]", daemon.url("/v1/transpose")))
    assert reply["data"] == [[1, 3], [2, 4]] and reply["stats"]["op"] == "transpose"
    text = '{"a": [[1, 2], [3, 4]], "b": [[5], [6]]}'
    assert json.loads(curl("-d", text, daemon.url("/v1/matmul")))["data"] == [[17], [39]]


def test_curl_a_large_file_that_it_asks_about_first(daemon, tmp_path, rng):
    """Beyond 1 MiB curl sends Expect: 100-continue."""
    array = formats.random_bits(rng, "f32", (1000, 900))
    np.save(tmp_path / "a.npy", array)
    out = tmp_path / "t.npy"
    curl("--data-binary", f"@{tmp_path}/a.npy", daemon.url("/v1/transpose"), "-o", str(out))
    assert formats.same_bits(np.load(out), formats.transposed(array))
