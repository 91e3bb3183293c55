"""The requests of a soak: each a function that sends one, or some, and says what is wrong with the answer.

An answer that is not what it should be raises Wrong. What is computed is compared with NumPy; the
elements are small whole numbers, so that every device and format gives the same.
"""

import concurrent.futures
import contextlib
import http.client
import io
import json
import socket
import ssl
import struct
import threading

import numpy as np

import gemmd
from keyring import basic, bearer

TYPES = {"json": "application/json", "csv": "text/csv", "npy": "application/x-npy", "raw": "application/octet-stream"}
TIMEOUT_S = 90


class Wrong(Exception):
    """An answer that should have been another."""


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)


def connection(place, way):
    """way: plain, tls or unix."""
    if way == "unix":
        return UnixConnection(place.unix)
    if way == "tls":
        return http.client.HTTPSConnection("127.0.0.1", place.tls, context=place.context, timeout=TIMEOUT_S)
    return http.client.HTTPConnection("127.0.0.1", place.plain, timeout=TIMEOUT_S)


def exchange(one, method, path, body=None, headers=None):
    one.request(method, path, body, headers or {})
    reply = one.getresponse()
    return reply.status, reply.headers, reply.read()


def expect(seen, status, what):
    if seen[0] not in (status if isinstance(status, tuple) else (status,)):
        raise Wrong(f"{what}: {seen[0]} {seen[2][:300]!r}")
    return seen


# ---- Operations, in every format. ----


def matrix(rng, *shape):
    return rng.integers(-9, 10, shape).astype(np.float32)


def operations(rng, size):
    a, b = matrix(rng, size, size), matrix(rng, size, size)
    row = matrix(rng, 1, size)
    return [("transpose", [a], a.T), ("matmul", [a, b], a @ b), ("add", [a, row], a + row), ("flip", [a], a[:, ::-1])]


def encode(fmt, operands):
    """Body, headers and query string."""
    shapes = "&".join(f"shape_{n}={'x'.join(map(str, m.shape))}" for n, m in zip("abc", operands))
    if fmt == "raw":
        return b"".join(m.tobytes() for m in operands), {"Content-Type": TYPES["raw"]}, f"?{shapes}"
    if fmt == "npy":
        out = io.BytesIO()
        for one in operands:
            np.save(out, one)
        return out.getvalue(), {"Content-Type": TYPES["npy"]}, ""
    if fmt == "json":
        document = {n: m.tolist() for n, m in zip("abc", operands)}
        return json.dumps(document).encode(), {"Content-Type": TYPES["json"]}, ""
    if fmt == "v2":
        inputs = [{"name": n, "shape": list(m.shape), "datatype": "FP32", "data": m.ravel().tolist()}
                  for n, m in zip("ABC", operands)]
        return json.dumps({"inputs": inputs}).encode(), {"Content-Type": TYPES["json"]}, ""
    parts = "".join(f"--cut\r\nContent-Disposition: form-data; name={n}\r\nContent-Type: text/csv\r\n\r\n{csv(m)}\r\n"
                    for n, m in zip("abc", operands))
    return (f"{parts}--cut--\r\n".encode(),
            {"Content-Type": "multipart/form-data; boundary=cut", "Accept": TYPES["csv"]}, "")


def csv(m):
    return "\n".join(",".join(f"{x:g}" for x in row) for row in m)


def decode(fmt, text, shape):
    if fmt == "raw":
        return np.frombuffer(text, np.float32).reshape(shape)
    if fmt == "npy":
        return np.load(io.BytesIO(text))
    if fmt == "json":
        return np.array(json.loads(text)["data"], np.float32)
    if fmt == "v2":
        (output,) = json.loads(text)["outputs"]
        return np.array(output["data"], np.float32).reshape(output["shape"])
    return np.loadtxt(io.StringIO(text.decode()), np.float32, delimiter=",", ndmin=2)


class Operation:
    def __init__(self, fmt, op, operands, result):
        self.fmt, self.result, self.operands = fmt, result, operands
        self.body, self.headers, query = encode(fmt, operands)
        self.op, self.path = op, f"/v2/models/{op}/infer" if fmt == "v2" else f"/v1/{op}{query}"

    def send(self, one, headers):
        seen = exchange(one, "POST", self.path, self.body, self.headers | headers)
        expect(seen, 200, self.path)
        if not np.array_equal(decode(self.fmt, seen[2], self.result.shape), self.result):
            raise Wrong(f"{self.path}: a wrong result")


# ---- The world: a place to ask, and keys to ask with. ----


class Traffic:
    """place: plain, tls (ports), unix (a path), context, region (a name, or None). ring: its keys "user",
    "reader", "boss", "crowd", "thin" (five requests a second), "small" (1 MB)."""

    def __init__(self, place, ring, seed):
        rng = np.random.default_rng(seed)
        self.place, self.ring = place, ring
        self.small = [Operation(fmt, *case) for size in (4, 24) for fmt in ("json", "npy", "raw", "v2", "parts")
                      for case in operations(rng, size)]
        self.large = [Operation(fmt, *case) for fmt in ("npy", "raw", "json") for case in operations(rng, 300)]
        self.big = Operation("raw", *operations(rng, 1024)[0])
        self.crowd = threading.Lock()
        self.python = gemmd.Client(f"https://127.0.0.1:{place.tls}", key=ring.keys["user"], ca=place.context)
        # What is sent, and how often of a thousand.
        self.kinds = [(480, self.small_operation), (60, self.large_operation), (3, self.big_operation),
                      (80, self.from_python), (40, self.from_region), (60, self.look), (4, self.explain),
                      (4, self.compare), (120, self.refused), (10, self.too_often), (8, self.too_much_memory),
                      (1, self.too_many_jobs), (90, self.leave), (40, self.no_handshake)]

    def one_of_them(self, rng, kept):
        send = rng.choices([kind for _, kind in self.kinds], [weight for weight, _ in self.kinds])[0]
        send(rng, kept)
        return send.__name__

    @contextlib.contextmanager
    def connected(self, rng, kept):
        """A connection that is kept, or for an eighth of requests a new one."""
        way = rng.choice(("plain", "tls", "unix"))
        new = rng.random() < 0.125 or way not in kept
        one = connection(self.place, way) if new else kept.pop(way)
        try:
            yield one
        except BaseException:
            one.close()
            raise
        if way in kept:
            one.close()
        else:
            kept[way] = one

    def small_operation(self, rng, kept):
        with self.connected(rng, kept) as one:
            rng.choice(self.small).send(one, self.ring.headers("user"))

    def large_operation(self, rng, kept):
        with self.connected(rng, kept) as one:
            rng.choice(self.large).send(one, self.ring.headers("user"))

    def big_operation(self, rng, kept):
        with self.connected(rng, kept) as one:
            self.big.send(one, self.ring.headers("user"))

    def from_python(self, rng, kept):
        case = rng.choice(self.small)
        if not np.array_equal(getattr(self.python, case.op)(*case.operands), case.result):
            raise Wrong(f"the Python client's {case.op}: a wrong result")

    def from_region(self, rng, kept):
        """The region has two rows of two, 0 to 3."""
        with self.connected(rng, kept) as one:
            seen = exchange(one, "POST", f"/v1/transpose?region_a={self.place.region}&shape_a=2x2", b"",
                            {"Accept": TYPES["raw"]} | self.ring.headers("user"))
            expect(seen, 200, "a region")
            if np.frombuffer(seen[2], np.float32).tolist() != [0, 2, 1, 3]:
                raise Wrong(f"a region: a wrong result {seen[2]!r}")

    def look(self, rng, kept):
        with self.connected(rng, kept) as one:
            path = rng.choice(("/metrics", "/v1/stats", "/v1/kernels", "/v1/devices", "/healthz", "/v2", "/openapi.json"))
            expect(exchange(one, "GET", path, None, self.ring.headers("boss")), 200, path)

    def explain(self, rng, kept):
        with self.connected(rng, kept) as one:
            path = f"/v1/explain/transpose?kernel={rng.choice(('naive', 'tiled', 'padded'))}&shape=64x64"
            expect(exchange(one, "GET", path, None, self.ring.headers("user")), 200, path)

    def compare(self, rng, kept):
        with self.connected(rng, kept) as one:
            case = rng.choice(self.small[:4])
            seen = exchange(one, "POST", f"/v1/compare/{case.op}?device=cpu", case.body,
                            case.headers | self.ring.headers("user"))
            expect(seen, 200, "compare")

    def refused(self, rng, kept):
        case, key = self.small[0], self.ring.keys["user"]
        status, method, path, body, headers = rng.choice((
            (401, "POST", case.path, case.body, bearer(key[:-1] + "g")),
            (401, "POST", case.path, case.body, basic("unknown." + "0" * 64)),
            (401, "GET", "/metrics", None, {}),
            (403, "POST", case.path, case.body, self.ring.headers("reader")),
            (403, "GET", "/metrics", None, self.ring.headers("user")),
            (404, "GET", "/none", None, self.ring.headers("user")),
            (405, "PUT", "/v1/add", b"", self.ring.headers("user")),
            (400, "POST", case.path, b"[[1,", self.ring.headers("user")),
            (415, "POST", case.path, b"\x1f\x8b\x08", self.ring.headers("user")),
            (422, "POST", "/v1/matmul", b'{"a":[[1,2]],"b":[[1,2]]}', self.ring.headers("user")),
            (403, "POST", case.path, case.body, {"Origin": "https://elsewhere.example"} | self.ring.headers("user")),
        ))
        with self.connected(rng, kept) as one:
            expect(exchange(one, method, path, body, headers), status, f"{method} {path}")

    # ---- Overload. ----

    def too_often(self, rng, kept):
        """Twelve at once of a key that has five a second."""
        with self.connected(rng, kept) as one:
            seen = [expect(exchange(one, "POST", self.small[0].path, self.small[0].body, self.ring.headers("thin")),
                           (200, 429), "a quota") for _ in range(12)]
        if not any(status == 429 and int(headers["Retry-After"]) >= 1 for status, headers, _ in seen):
            raise Wrong("a quota of five a second: twelve at once were let in")

    def too_much_memory(self, rng, kept):
        with self.connected(rng, kept) as one:
            expect(exchange(one, "POST", "/v1/transpose?shape=600x600", bytes(4 * 600 * 600),
                            {"Content-Type": TYPES["raw"]} | self.ring.headers("small")), 413, "a memory quota")

    def too_many_jobs(self, rng, kept):
        """Forty products at once, where twenty-four may wait: some are refused, all are answered, and other
        clients notice nothing."""
        body = bytes(8 * 400 * 400)
        headers = {"Content-Type": TYPES["raw"]} | self.ring.headers("crowd")

        def ask(_):
            with contextlib.closing(connection(self.place, "plain")) as one:
                return expect(exchange(one, "POST", "/v1/matmul?shape_a=400x400&shape_b=400x400&kernel=naive", body,
                                       headers), (200, 503), "a full queue")

        # Two crowds at once, as on a machine that is slow now: the second would be refused as a whole.
        with self.crowd, concurrent.futures.ThreadPoolExecutor(40) as pool:
            seen = {reply[0]: reply[2] for reply in pool.map(ask, range(40))}
        if set(seen) != {200, 503}:
            raise Wrong(f"a queue of twenty-four: forty at once had {sorted(seen)}, as {seen.get(503)!r}")

    # ---- Clients that leave. ----

    def leave(self, rng, kept):
        """Within a head, a body, a reply; with a FIN or a RST; some within TLS."""
        head = (f"POST /v1/transpose?shape=300x300 HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPES['raw']}\r\n"
                f"Authorization: Bearer {self.ring.keys['user']}\r\n").encode()
        text = rng.choice((b"GET / HT", head, head + b"Content-Length: 360000\r\n\r\n" + bytes(5000),
                           head + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n" + bytes(100),
                           head + b"Content-Length: 360000\r\n\r\n" + bytes(360000)))
        if rng.random() < 0.3:
            one = connection(self.place, "tls")
            one.connect()
            one = one.sock
        else:
            one = socket.create_connection(("127.0.0.1", self.place.plain), TIMEOUT_S)
        with one:
            one.sendall(text)
            if len(text) > 300000:
                one.recv(1)
            if rng.random() < 0.5:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def no_handshake(self, rng, kept):
        """Handshakes that stop, and what is none."""
        sent = ssl.MemoryBIO()
        halves = self.place.context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            halves.do_handshake()
        hello = sent.read()
        with socket.create_connection(("127.0.0.1", self.place.tls), TIMEOUT_S) as one:
            one.sendall(rng.choice((hello, hello[:50], b"GET /healthz HTTP/1.1\r\n\r\n", b"\x16\x03\x01")))

