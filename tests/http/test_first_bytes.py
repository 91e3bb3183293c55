"""Bodies whose format nobody stated: the first bytes decide, or the answer is a sentence that says
what to type instead. As far as curl can make such a body, it is curl that sends it."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import shutil
import subprocess
import time
import zipfile

import numpy as np
import pytest

import formats
import wire

T = "/v1/transpose"


def curl(daemon, *arguments, path=T, cwd=None, stdin=None):
    """The reply's document, whether it is a result or a problem."""
    command = ["curl", "-sS", "--max-time", "60", *arguments, daemon.url(path)]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def unsupported(answer, detail):
    assert (answer["status"], answer["code"]) == (415, "unsupported_media_type"), answer
    assert re.search(detail, answer["detail"]), answer["detail"]
    assert answer["detail"].isascii() and len(answer["detail"]) < 500


def files(folder):
    """A file of every kind, by name."""
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    npy = formats.npy(array)
    document = io.BytesIO()
    with zipfile.ZipFile(document, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    np.savez(folder / "a.npz", array)
    np.savetxt(folder / "a.csv", array, "%g", ",")
    np.savetxt(folder / "named.csv", array, "%g", ";", header="x;y;z;w", comments="")
    np.savetxt(folder / "a.txt", array)
    for name, data in {
        "a.npy": npy,
        "a.npy.gz": gzip.compress(npy),
        "a.npy.bz2": bz2.compress(npy),
        "a.npy.xz": lzma.compress(npy),
        "a.npy.zst": b"\x28\xb5\x2f\xfd" + bytes(60),
        "a.xlsx": document.getvalue(),
        "a.h5": b"\x89HDF\r\n\x1a\n" + bytes(600),
        "a.mat": b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(128) + bytes(600),
        "a.png": b"\x89PNG\r\n\x1a\n" + bytes(600),
        "a.jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(600),
        "a.pkl": pickle.dumps([[1.5, 2.5]], 4),
        "a.parquet": b"PAR1" + bytes(600),
        "bom.json": b"\xef\xbb\xbf[[1, 2], [3, 4]]",
        "utf16.csv": "1;2\r\n3;4\r\n".encode("utf-16"),
        "latin.npy": npy.decode("latin-1").encode("utf-8"),
        "page.html": b"<!doctype html><html><body>no</body></html>",
    }.items():
        (folder / name).write_bytes(data)


SAVED = r"np\.save\('a\.npy', .*--data-binary @a\.npy"
KINDS = [
    ("a.csv", r"CSV: .*-H 'Content-Type: text/csv'.*--data-binary @a\.csv.*-F a=@a\.csv"),
    ("named.csv", "CSV: .*-H 'Content-Type: text/csv'"),
    ("a.txt", "blanks.*tr -s ' ' ','.*text/csv"),
    ("a.npz", r"\.npz.*unzip -p"),
    ("a.xlsx", r"\.xlsx.*CSV"),
    ("a.npy.gz", "gzip.*gunzip -c .*curl --data-binary @-"),
    ("a.npy.bz2", "bunzip2"),
    ("a.npy.xz", "unxz"),
    ("a.npy.zst", "unzstd"),
    ("a.h5", "HDF5.*" + SAVED),
    ("a.mat", "MATLAB.*loadmat.*" + SAVED),
    ("a.png", "PNG.*" + SAVED),
    ("a.jpg", "JPEG.*" + SAVED),
    ("a.pkl", "pickle.*" + SAVED),
    ("a.parquet", "Parquet.*" + SAVED),
    ("bom.json", "byte order mark.*tail -c"),
    ("utf16.csv", "UTF-16.*iconv"),
    ("latin.npy", "NPY.*text.*--data-binary @a.npy"),
    ("page.html", "HTML.*JSON, CSV or NPY"),
]


@pytest.mark.parametrize("name, detail", KINDS)
def test_files_of_other_kinds(daemon, tmp_path, name, detail):
    files(tmp_path)
    unsupported(curl(daemon, "--data-binary", f"@{name}", cwd=tmp_path), detail)
    unsupported(curl(daemon, "-X", "POST", "-T", name, cwd=tmp_path), detail)
    chunked = ("-H", "Transfer-Encoding: chunked")
    unsupported(curl(daemon, "--data-binary", f"@{name}", *chunked, cwd=tmp_path), detail)


TO_NPY = "-H 'Content-Type: text/csv' -H 'Accept: application/x-npy'"
WORKING = [
    "gunzip -c a.npy.gz | curl -sS --data-binary @- $URL -o out.npy",
    "bunzip2 -c a.npy.bz2 | curl -sS --data-binary @- $URL -o out.npy",
    "unxz -c a.npy.xz | curl -sS --data-binary @- $URL -o out.npy",
    "/usr/bin/python3 -m zipfile -e a.npz . && curl -sS --data-binary @arr_0.npy $URL -o out.npy",
    f"curl -sS --data-binary @a.csv {TO_NPY} $URL -o out.npy",
    f"tr -s ' ' ',' < a.txt | curl -sS --data-binary @- {TO_NPY} $URL -o out.npy",
]


@pytest.mark.parametrize("command", WORKING)
def test_what_the_sentences_say_to_type_works(daemon, tmp_path, command):
    tool = command.split()[0]
    if not shutil.which(tool):
        pytest.skip(f"there is no {tool} here")
    files(tmp_path)
    command = command.replace("$URL", daemon.url(T))
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert np.load(tmp_path / "out.npy").tolist() == np.arange(12.0).reshape(3, 4).T.tolist()


def test_a_byte_order_mark_cut_off_as_the_sentence_says(daemon, tmp_path):
    files(tmp_path)
    command = f"tail -c +4 bom.json | curl -sS --data-binary @- {daemon.url(T)}"
    done = subprocess.run(command, shell=True, check=True, cwd=tmp_path, capture_output=True)
    assert json.loads(done.stdout)["data"] == [[1, 3], [2, 4]]


TYPED = [
    (["-d", "a=a.npy", "-d", "b=b.npy"], r"fields of a form.*curl -F a=@a\.npy -F b=@b\.npy"),
    (["-d", "file=@a.npy"], r"fields of a form.*curl -F a=@a\.npy"),
    (["--data-raw", "@a.npy"], r"the text '@a\.npy' and not the file.*--data-binary @a\.npy"),
    (["-d", "a.npy"], r"the text 'a\.npy'.*--data-binary @a\.npy"),
    (["-d", "data/a b.csv"], r"--data-binary @data/a b\.csv"),
    (["-d", "'[[1,2],[3,4]]'"], "quotes.*Windows"),
    (["--data-urlencode", "[[1,2],[3,4]]"], "percent-encoded.*-d or --data-binary"),
    (["--data-urlencode", "a=[[1,2]]"], "name=value.*parts"),
    (["-d", "a=[[1,2]]", "-d", "kernel=naive"], r"\?kernel=naive.*-F a=@a\.npy"),
    (["-d", "((1, 2), (3, 4))"], "Python.*square brackets"),
    (["-d", "np.array([[1, 2], [3, 4]])"], "Python.*square brackets"),
    (["-d", "1,2,3"], "CSV"),
    (["-d", "1 2 3"], "blanks.*tr"),
    (["-d", "5"], "CSV"),
    (["-d", "nonsense"], "neither like NPY nor like JSON.*text/csv.*octet-stream"),
    (["-d", "--"], "neither like NPY nor like JSON"),
    (["-d", "@a.csv"], "CSV: .*--data-binary @a.csv"),
    (["-d", "@a.npy.gz"], "gzip|neither"),
    (["-F", "a=@a.npy", "-F", "b=@a.npy", "-H", "Content-Type:"], "parts.*curl -F a=@a.npy"),
    (["-F", "a=@a.csv", "-H", "Content-Type: application/x-www-form-urlencoded"], "curl -F a=@"),
]


@pytest.mark.parametrize("arguments, detail", TYPED)
def test_what_people_type(daemon, tmp_path, arguments, detail):
    files(tmp_path)
    unsupported(curl(daemon, *arguments, cwd=tmp_path), detail)


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "i8", "c16"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (10, 10), (13, 10), (500, 500), (2, 3, 4)])
def test_an_npy_that_curl_d_damaged(daemon, tmp_path, rng, dtype, shape):
    """Line ends and NUL bytes are gone from it, in the header too."""
    np.save(tmp_path / "a.npy", rng.integers(0, 256, shape).astype(dtype))
    for more in ((), ("-H", "Content-Type: application/x-npy")):
        answer = curl(daemon, "-d", "@a.npy", *more, cwd=tmp_path)
        assert answer["status"] == 400, answer
        assert "--data-binary" in answer["detail"] and "-d" in answer["detail"], answer


def test_an_npy_without_its_line_ends(daemon):
    """As other programs take them out, which leave the NULs."""
    body = formats.npy(np.arange(2560, dtype="<i4").reshape(256, 10)).replace(b"\n", b"")
    answer = daemon.post(T, body).json()
    assert answer["status"] == 400 and "--data-binary" in answer["detail"], answer


def test_an_empty_body(daemon):
    answer = curl(daemon, "-d", "")
    assert answer["status"] == 422 and "empty" in answer["detail"]


@pytest.mark.parametrize("size", [1, 5, 100, 511, 512, 513, 5000])
def test_the_sentence_does_not_depend_on_how_the_body_comes(daemon, size):
    text = b"\n" * 700 + b"x,y\r\n" + b"1.25,2.5\r\n" * 300
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {len(text)}"))
        raw.send(*(text[i : i + size] for i in range(0, len(text), size)))
        unsupported(raw.reply().json(), "CSV: ")


def test_a_body_that_is_large_is_answered_before_it_is_all_there(daemon):
    """As before any error: more than a MiB is not waited for."""
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 100000000"))
        raw.send(b"PK\x03\x04" + bytes(1000))
        start = time.monotonic()
        unsupported(raw.reply().json(), "zip")
        assert time.monotonic() - start < 5
        assert raw.closed()
