"""Golden requests: bytes in tests/golden/http/NAME.request go out as they are, and what comes
back must be NAME.reply, byte for byte, but for what differs from run to run (dates, times,
rates). GM_GOLDEN_UPDATE=1 writes the replies instead: read the diff before you commit it."""

import glob
import os
import re
import socket

import pytest

from daemon import SLOW

FOLDER = os.path.join(os.path.dirname(__file__), "..", "golden", "http")
NAMES = sorted(
    os.path.basename(path).removesuffix(".request") for path in glob.glob(FOLDER + "/*.request")
)

NUMBER = rb"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
# Measured: the value goes, the name stays. Which of them are there depends on the machine too.
MEASURED = (
    rb"receive|decode|queue|kernel|prepare|encode|total|effective_gbs|copy_gbs|percent_of_copy|"
    rb"gflops|roofline_gflops|percent_of_roofline"
)
VOLATILE = [
    (rb"\r\nDate: [^\r]*", rb"\r\nDate: *"),
    (rb"\r\nServer-Timing: [^\r]*", rb"\r\nServer-Timing: *"),
    (rb'"(' + MEASURED + rb')":' + NUMBER, rb'"\1":0'),
    (rb'"bound":"[a-z]+","roof":"[^"]*"', rb'"bound":"*","roof":"*"'),
    # `auto` may choose another kernel on another machine.
    (rb'"kernel":"[^"]*"', rb'"kernel":"*"'),
    # The account's digits count into the length of a JSON reply.
    (rb"(?s)\r\nContent-Length: [0-9]+(\r\n.*\"stats\":)", rb"\r\nContent-Length: *\1"),
]


def exchange(daemon, request):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10 * SLOW) as connection:
        connection.sendall(request)
        reply = b""
        while not complete(reply, request.startswith(b"HEAD")):
            piece = connection.recv(65536)
            if not piece:
                break
            reply += piece
    return reply


def complete(reply, head_only):
    head, found, body = reply.partition(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: ([0-9]+)", head)
    return bool(found) and (head_only or (length and len(body) >= int(length.group(1))))


def settled(reply):
    for pattern, replacement in VOLATILE:
        reply = re.sub(pattern, replacement, reply)
    return reply


def test_there_are_golden_requests():
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_golden(daemon, name):
    path = os.path.join(FOLDER, name)
    with open(path + ".request", "rb") as file:
        reply = settled(exchange(daemon, file.read()))
    if os.environ.get("GM_GOLDEN_UPDATE"):
        with open(path + ".reply", "wb") as file:
            file.write(reply)
    with open(path + ".reply", "rb") as file:
        assert reply == file.read()
