"""A small server before the daemon, as operators have: it speaks TLS or listens on a Unix socket, wants a key,
refuses when it is told to, and passes all else on, byte by byte."""

import contextlib
import http
import json
import socket
import threading


def problem(status, code, **headers):
    """(status, headers, body) of an error as the daemon says it."""
    said = {"status": status, "code": code, "detail": f"{code}, for a test", "request_id": "r-1"}
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": "application/problem+json", **fields}, json.dumps(said).encode()


class Relay:
    """port:        of the daemon
    unix:        the path to listen on, in place of a free port
    tls:         an ssl.SSLContext of a server
    key:         what clients must send, or they get 401
    refusals:    answers for the first requests, in order; None closes the connection without one. A header that is None is not sent
    silent:      never answer
    heads:       the request heads that came, as text
    connections: how many were accepted
    """

    def __init__(self, port, *, unix=None, tls=None, key=None, refusals=(), silent=False):
        self.target, self.tls, self.key, self.silent = port, tls, key, silent
        self.refusals = list(refusals)
        self.heads, self.connections = [], 0
        self.listener = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.listener.bind(str(unix) if unix else ("127.0.0.1", 0))
        self.listener.listen()
        self.port = None if unix else self.listener.getsockname()[1]
        self.open = {self.listener}
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in list(self.open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError):
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            self.open.add(client)
            with client:
                self._requests(client)

    def _requests(self, client):
        """The first request is looked at; what follows on the connection is passed on unseen."""
        came = b""
        while b"\r\n\r\n" not in came:
            more = client.recv(65536)
            if not more:
                return
            came += more
        head, _, body = came.partition(b"\r\n\r\n")
        head = head.decode("latin-1")
        self.heads.append(head)
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        if self.silent:
            while client.recv(65536):
                pass
        elif self.key and f"authorization: bearer {self.key}".lower() not in head.lower():
            self._answer(client, body, fields, problem(401, "no_key", WWW_Authenticate="Bearer"))
        elif self.refusals:
            refusal = self.refusals.pop(0)
            if refusal:
                self._answer(client, body, fields, refusal)
        else:
            with socket.create_connection(("127.0.0.1", self.target)) as daemon:
                daemon.sendall(came)
                threading.Thread(target=self._pump, args=(daemon, client), daemon=True).start()
                self._pump(client, daemon)

    def _answer(self, client, body, fields, refusal):
        left = int(fields.get("content-length", 0)) - len(body)
        while left > 0:
            left -= len(client.recv(min(left, 65536)))
        status, headers, text = refusal
        lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in {"Content-Length": len(text), **headers}.items() if value is not None]
        client.sendall("\r\n".join([*lines, "", ""]).encode() + text)

    @staticmethod
    def _pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
