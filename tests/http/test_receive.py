"""Bodies in any pieces, one request behind the other: each is read to where its operands are, and
every result is exact."""

import random
import threading
import time

import numpy as np
import pytest

import formats
import wire

T, M = "/v1/transpose", "/v1/matmul"
SIDES = (1, 7, 64, 100, 128, 256, 300)
POOL = 32768  # CONNECTION_POOL_BYTES, half of which is read at a time
PIECES = (1, 100, 5000, 16384, 16195, 40000, 70000)


def matrix(rng, rows, cols):
    return rng.integers(-8, 8, (rows, cols)).astype("<i4")


def request(draw, rng):
    """The bytes of a request, and of its result."""
    m, k, n = (draw.choice(SIDES) for _ in range(3))
    a, b = matrix(rng, m, k), matrix(rng, k, n)
    kind = draw.choice(("transpose", "raw", "npy", "swapped"))
    if kind == "transpose":
        path, media_type, body = f"{T}?shape={m}x{k}&dtype=i32", wire.RAW, a.tobytes()
    elif kind == "raw":
        path = f"{M}?shape_a={m}x{k}&shape_b={k}x{n}&dtype=i32"
        media_type, body = wire.RAW, a.tobytes() + b.tobytes()
    else:
        first = a.astype(">i4") if kind == "swapped" else a
        path, media_type, body = M, wire.NPY, formats.npy(first) + formats.npy(b)
    head = wire.head("POST", path, f"Content-Type: {media_type}", f"Accept: {wire.RAW}",
                     f"X-Pad: {'p' * draw.randrange(300)}", f"Content-Length: {len(body)}")
    return head + body, (a.T if kind == "transpose" else a @ b).tobytes()


def send(raw, draw, data):
    size = draw.choice(("whole", "pieces", "slow"))
    at = 0
    while at < len(data):
        step = len(data) if size == "whole" else draw.choice(PIECES)
        raw.send(data[at : at + step])
        at += step
        if size == "slow":
            time.sleep(0.0005)


@pytest.mark.parametrize("seed", range(3))
def test_any_pieces(daemon, seed):
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(8):
        with daemon.raw() as raw:
            for _ in range(6):
                requests = [request(draw, rng) for _ in range(draw.choice((1, 1, 2, 3, 5)))]
                data = b"".join(bytes_ for bytes_, _ in requests)
                sender = threading.Thread(target=send, args=(raw, draw, data))
                sender.start()
                for _, result in requests:
                    assert raw.reply().ok().body == result
                sender.join()


def test_exact_pieces(daemon):
    """Bodies that fill so many of the library's reads, or a byte less or more, with another
    request behind them."""
    for reads in (2, 3, 4, 5):
        for more in (-1, 0, 1):
            head = b"".ljust(200)
            while True:  # the length is in the head, whose length it depends on
                size = reads * (POOL // 2 - len(head)) + more
                made = wire.head("POST", f"{T}?shape=1x{size}&dtype=u8",
                                 f"Content-Type: {wire.RAW}", f"Content-Length: {size}")
                if len(made) == len(head):
                    break
                head = made
            body = bytes(i * 7 & 255 for i in range(size))
            with daemon.raw() as raw:
                raw.send((made + body) * 3)
                for _ in range(3):
                    assert raw.reply().ok().body == body


def test_refused_in_the_middle(daemon):
    """What lies behind a file is no file: said when it comes, whatever was read of it already."""
    a = formats.npy(np.zeros((300, 300), "<f4"))
    for rest in (b"x" * 100_000, a[:5] + b"x" * 100_000):
        body = a + rest
        with daemon.raw() as raw:
            raw.send(wire.head("POST", M, f"Content-Type: {wire.NPY}",
                               f"Content-Length: {len(body)}"), body)
            assert raw.reply().status == 400


def test_left_in_the_middle(daemon):
    """The client goes away while its body is read: nobody else notices."""
    body = np.zeros((512, 512), "<f4").tobytes()
    head = wire.head("POST", f"{T}?shape=512x512&dtype=f32", f"Content-Type: {wire.RAW}",
                     f"Content-Length: {len(body)}")
    for sent in (1, 20_000, 300_000, len(body) - 1):
        with daemon.raw() as raw:
            raw.send(head, body[:sent])
            raw.reset()
    with daemon.raw() as raw:
        raw.send(head, body)
        assert len(raw.reply().ok().body) == len(body)
