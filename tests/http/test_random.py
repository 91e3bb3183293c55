"""Requests at random: the fuzzers' inputs, whole and damaged, as bodies of every type, at every
operation. Each gets an answer, none is our fault, and the daemon is afterwards as it was.

GM_SEED gives others; GM_REQUESTS says how many."""

import os
import pathlib
import random

import problems
from conftest import SEED
from daemon import SLOW
from jobs import gauge, wait_until

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
# The bytes of an input that choose what the rest is tried with: see the targets' first comments.
CHOICES = {"json": 2, "csv": 2, "npy": 4, "format": 1, "multipart": 1}
TYPES = ["application/json", "text/csv", "application/x-npy", "application/octet-stream", "text/plain",
         "application/x-www-form-urlencoded", "multipart/form-data; boundary=B"]
PATHS = [f"/v1/{op}" for op in ("transpose", "matmul", "add", "flip")]
PATHS += [f"/v1/compare/{op}" for op in ("add", "transpose")] + ["/v1/explain/transpose"]
LIKELY = b"[]{},:\"\\ 0123456789.eE+-tfn\r\n;\x93-B\x00\xff"
REQUESTS = int(os.environ.get("GM_REQUESTS", 1000 // SLOW))


def inputs(target):
    paths = sorted((CORPUS / target).iterdir())
    assert paths, f"there is no corpus of {target}"
    return [path.read_bytes()[CHOICES.get(target, 1):] for path in paths]


def damage(rng, body, others):
    body = bytearray(body)
    for _ in range(rng.choice((0, 0, 1, 2, 4)) if body else 0):
        at = rng.randrange(len(body) + 1)
        what = rng.random()
        if what < 0.4:
            body[at:at + 1] = bytes([rng.choice(LIKELY)])
        elif what < 0.6:
            del body[at:at + rng.randrange(1, 9)]
        else:
            body[at:at] = rng.choice(others)[:rng.randrange(200)]
    return bytes(body)


def parts(rng, body, media_type):
    """The body as a part, perhaps beside another one."""
    name = rng.choice((b"a", b"a", b"b", b"kernel", b"shape_a", b"x"))
    text = b'--B\r\nContent-Disposition: form-data; name="' + name + b'"\r\n'
    text += b"Content-Type: " + media_type + b"\r\n\r\n" + body + b"\r\n"
    if rng.random() < 0.5:
        text += b'--B\r\nContent-Disposition: form-data; name="b"\r\n\r\n[[1]]\r\n'
    return text + b"--B--\r\n"


def header_value(line):
    return "".join(c for c in line.decode("latin1") if " " <= c <= "~")


def request(rng, corpora, queries):
    """(target, headers, body)"""
    kind = rng.choice(sorted(corpora))
    body = damage(rng, rng.choice(corpora[kind]), rng.choice(list(corpora.values())))
    media_type = rng.choice(TYPES)
    if kind in ("multipart", "format"):
        line, _, body = body.partition(b"\n")
        media_type = header_value(line)
    elif rng.random() < 0.7:
        media_type = {"json": TYPES[0], "csv": TYPES[1], "npy": TYPES[2]}[kind]
    if kind == "format" or rng.random() < 0.2:
        body, media_type = parts(rng, body, media_type.encode()), TYPES[-1]
    target = rng.choice(PATHS)
    if rng.random() < 0.2:
        target += "?" + "".join(f"%{byte:02X}" if byte < 33 or byte > 126 or byte in b"#%" else chr(byte)
                                for byte in rng.choice(queries))
    headers = {"Content-Type": media_type} if media_type else {}
    if rng.random() < 0.2:
        headers["Accept"] = rng.choice(TYPES)
    return target, headers, body


def test_every_request_gets_an_answer(start):
    rng = random.Random(SEED)
    corpora = {target: inputs(target) for target in CHOICES}
    queries = inputs("params")
    daemon = start()
    before = gauge(daemon, "gemmd_memory_used_bytes")
    with daemon.client() as client:
        for _ in range(REQUESTS):
            target, headers, body = asked = request(rng, corpora, queries)
            reply = client.post(target, body, headers)
            assert daemon.alive(), (asked, daemon.last_words())
            if reply.status == 200:
                continue
            assert reply.status in (400, 406, 413, 415, 422), (asked, reply)
            problems.check(reply, reply.status, reply.code)
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == before, "the memory back")
