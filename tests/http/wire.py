"""HTTP as the tests speak it: http.client for well-behaved requests, a bare socket for
those that are not, and one Reply that both return."""

import http.client
import json
import socket
import struct
import time
from urllib.parse import urlencode

JSON = "application/json"
CSV = "text/csv"
NPY = "application/x-npy"
RAW = "application/octet-stream"
PROBLEM = "application/problem+json"


def target(path, **parameters):
    """A path with a query string; parameters that are None are left out."""
    query = {name: value for name, value in parameters.items() if value is not None}
    return path + ("?" + urlencode(query) if query else "")


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = [(name.lower(), value) for name, value in headers]
        self.body = body

    def header(self, name):
        values = [value for key, value in self.headers if key == name.lower()]
        assert len(values) <= 1, f"{name} is there {len(values)} times"
        return values[0] if values else None

    @property
    def media_type(self):
        return (self.header("Content-Type") or "").split(";")[0].strip().lower()

    @property
    def code(self):
        """The stable code of a problem document, or None."""
        return self.json()["code"] if self.media_type == PROBLEM else None

    def json(self):
        return json.loads(self.body)

    @property
    def stats(self):
        """The account, as the header has it."""
        return json.loads(self.header("Gemmd-Stats"))

    def ok(self):
        assert self.status == 200, self
        return self

    def __repr__(self):
        return f"<{self.status} {self.media_type} {self.body[:600]!r}>"


class Client:
    """A keep-alive connection."""

    def __init__(self, port, timeout):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        chunked = body is not None and not isinstance(body, (bytes, bytearray, memoryview))
        self.connection.request(method, path, body, headers or {}, encode_chunked=chunked)
        response = self.connection.getresponse()
        return Reply(response.status, response.getheaders(), response.read())

    def get(self, path, headers=None):
        return self.request("GET", path, None, headers)

    def post(self, path, body=b"", headers=None):
        return self.request("POST", path, body, headers)

    @property
    def socket(self):
        return self.connection.sock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def head(method, path, *headers, host=True):
    """The bytes of a request line and its headers, each "Name: value"."""
    lines = [f"{method} {path} HTTP/1.1", *(("Host: localhost",) if host else ()), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Raw:
    """A bare connection, for requests that no decent library would send."""

    def __init__(self, port, timeout):
        self.timeout = timeout
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()  # that adding to a large body does not copy it

    def send(self, *pieces):
        for piece in pieces:
            self.socket.sendall(piece)
        return self

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends the connection with a RST, as a client that was killed does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _more(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no whole reply in time; so far {bytes(self.buffer[:300])!r}")
        self.socket.settimeout(left)
        data = self.socket.recv(65536)
        self.buffer.extend(data)
        return data

    def _take(self, size, deadline):
        while len(self.buffer) < size:
            assert self._more(deadline), f"connection closed within a body: {bytes(self.buffer[:300])!r}"
        data = bytes(memoryview(self.buffer)[:size])
        del self.buffer[:size]
        return data

    def reply(self, to_head=False, timeout=None):
        """The next reply; a 100 Continue is one too."""
        deadline = time.monotonic() + (timeout or self.timeout)
        while b"\r\n\r\n" not in self.buffer:
            assert self._more(deadline), f"closed without a whole head: {bytes(self.buffer[:300])!r}"
        text, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        line, *fields = text.decode("latin-1").split("\r\n")
        version, status = line.split(" ")[:2]
        assert version in ("HTTP/1.1", "HTTP/1.0"), line
        headers = [tuple(part.strip() for part in field.split(":", 1)) for field in fields]
        reply = Reply(int(status), headers, b"")
        if not to_head and reply.status >= 200 and reply.status not in (204, 304):
            length = reply.header("Content-Length")
            assert length is not None, f"a reply without a length: {text!r}"
            reply.body = self._take(int(length), deadline)
        return reply

    def closed(self, timeout=None):
        """Whether the other end closes the connection (in time) with nothing more to say."""
        try:
            data = self._more(time.monotonic() + (timeout or self.timeout))
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        assert not data, f"unexpected bytes: {data[:300]!r}"
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
