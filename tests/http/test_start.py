"""Options, the line that says it is ready, and the log."""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

import wire
from daemon import BINARY, DIE_WITH_PARENT, SLOW, STOP_S, environment, run
from jobs import wait_until

T = "/v1/transpose"
OPTIONS = ("--listen", "--backend", "--memory-limit", "--body-limit", "--queue-limit", "--threads",
           "--streams", "--timeout", "--drain-delay", "--drain-timeout", "--log-level", "--version",
           "--help")


def test_two_daemons_have_ports_of_their_own(start):
    first, second = start(), start()
    assert 0 < first.port < 65536 and first.port != second.port
    for daemon in (first, second):
        assert daemon.ready_line == f"listening on http://127.0.0.1:{daemon.port}"
        assert daemon.get("/readyz").status == 200


def test_only_one_line_on_standard_output(start):
    daemon = start()
    daemon.post(T, b"[[1]]").ok()
    daemon.stop()
    assert daemon.process.stdout.read() == b""


def descriptor_targets(pid):
    return [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)]


@pytest.mark.parametrize("closed", [(0,), (2,), (0, 2)])
def test_a_standard_stream_that_is_closed_is_nobody_elses(start, closed):
    """Else the first eventfds would be descriptors 0 to 2, and get what is logged."""
    closing = " ".join(f"{number}>&-" for number in closed)
    daemon = start("--log-level", "debug", under=("sh", "-c", f'exec "$@" {closing}', "sh"))
    targets = descriptor_targets(daemon.pid)
    for number in range(3):
        assert (targets[number] == "/dev/null") == (number in closed or number == 0), targets
    daemon.post(T, b"[[1]]").ok()


def test_all_standard_streams_closed():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = "127.0.0.1:%d" % probe.getsockname()[1]
    command = [*DIE_WITH_PARENT, "sh", "-c", 'exec "$@" 0>&- 1>&- 2>&-', "sh", BINARY, "--listen", listen]
    with subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: run("--probe", "--listen", listen).returncode == 0, "an answer")
            assert descriptor_targets(process.pid) == ["/dev/null"] * 3
            process.terminate()
            assert process.wait(STOP_S) == 0
        finally:
            process.kill()


def test_it_is_quick_to_start_and_to_stop(start):
    """Start-up measures ceilings, stopping waits for nobody: seconds, not tens of them."""
    began = time.monotonic()
    daemon = start()
    assert time.monotonic() - began < 5 * SLOW
    began = time.monotonic()
    daemon.stop()
    assert time.monotonic() - began < 2 * SLOW


@pytest.mark.parametrize(
    "option, value",
    [
        ("--listen", "127.0.0.1"),
        ("--listen", "127.0.0.1:65536"),
        ("--listen", "127.0.0.1:http"),
        ("--listen", ":8080"),
        ("--listen", ""),
        ("--backend", "cuda3"),
        ("--memory-limit", "lots"),
        ("--memory-limit", "-1"),
        ("--memory-limit", "0"),
        ("--memory-limit", "1X"),
        ("--memory-limit", "99999999999999999999G"),
        ("--body-limit", ""),
        ("--body-limit", "1.5.5G"),
        ("--queue-limit", "0"),
        ("--queue-limit", "ten"),
        ("--queue-limit", "99999999999999999999"),
        ("--threads", "-2"),
        ("--threads", "100000"),
        ("--streams", "x"),
        ("--timeout", "0"),
        ("--timeout", "soon"),
        ("--timeout", "2h"),
        ("--drain-delay", "-1"),
        ("--drain-timeout", "8 s"),
        ("--drain-timeout", "nan"),
        ("--log-level", "loud"),
    ],
)
def test_impossible_values_are_fatal_and_named(option, value):
    done = run("--listen", "127.0.0.1:0", option, value)
    assert done.returncode == 2, done
    assert option in done.stderr and value in done.stderr
    assert "listening" not in done.stdout
    # The environment is no more forgiving.
    variable = "GEMMD_" + option[2:].upper().replace("-", "_")
    done = run(env={"GEMMD_LISTEN": "127.0.0.1:0", variable: value})
    assert done.returncode == 2, done
    assert variable in done.stderr and value in done.stderr


@pytest.mark.parametrize("variable, said", [
    ("GEMMD_QEUE_LIMIT", "the nearest is GEMMD_QUEUE_LIMIT"),
    ("GEMMD_BIN", "no option"),
])
def test_unknown_variables_are_fatal_and_named(variable, said):
    done = run("--listen", "127.0.0.1:0", env={variable: "7"})
    assert done.returncode == 2 and variable in done.stderr and said in done.stderr, done


def test_more_streams_than_a_cpu_has_are_fatal_too():
    done = run("--listen", "127.0.0.1:0", "--backend", "cpu", "--streams", "2")
    assert done.returncode == 2, done
    assert "--streams" in done.stderr and "2" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--colour", "red"), ("-x",), ("extra",), ("--listen",), ("--listenx", "127.0.0.1:0"), ("",)],
)
def test_unknown_options_are_fatal_and_named(arguments):
    done = run(*arguments)
    assert done.returncode == 2, done
    assert arguments[0] in done.stderr


def test_an_address_that_is_not_ours():
    done = run("--listen", "192.0.2.1:0")
    assert done.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), done
    assert "192.0.2.1" in done.stderr


def test_a_port_in_use_is_fatal_and_named(start):
    taken = start()
    done = run("--listen", f"127.0.0.1:{taken.port}")
    assert done.returncode > 0, done
    assert str(taken.port) in done.stderr and re.search("in use", done.stderr, re.IGNORECASE)
    assert taken.get("/healthz").status == 200


def test_a_port_that_was_just_given_up_can_be_had_again(start):
    """Connections of the former daemon linger in TIME_WAIT."""
    daemon = start()
    with daemon.client() as client:
        client.get("/healthz").ok()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
    again = start("--listen", f"127.0.0.1:{daemon.port}", listen=False)
    assert again.port == daemon.port


def test_options_from_the_environment(start):
    env = {"GEMMD_LISTEN": "127.0.0.1:0", "GEMMD_BODY_LIMIT": "1M", "GEMMD_LOG_LEVEL": "debug"}
    daemon = start(env=env, listen=False)
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {(1 << 20) + 1}"))
        assert raw.reply().status == 413


def test_the_command_line_wins(start):
    daemon = start("--body-limit", "2M", env={"GEMMD_BODY_LIMIT": "1M"})
    body = bytes(4 * 600 * 600)
    assert len(body) > 1 << 20
    reply = daemon.post(T + "?shape=600x600", body, {"Content-Type": wire.RAW})
    assert reply.status == 200


@pytest.mark.parametrize("size, limit", [("2048", 2048), ("512M", 512 << 20), ("4G", 4 << 30),
                                         ("2k", 2048)])
def test_sizes(start, size, limit):
    daemon = start("--body-limit", size)
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, f"Content-Length: {limit + (1 << 21)}"))
        reply = raw.reply()
        assert reply.status == 413 and str(limit) in reply.json()["detail"]


def test_an_option_with_an_equals_sign(start):
    assert start("--queue-limit=7").get("/healthz").status == 200


def test_backend_cpu(start):
    reply = start("--backend", "cpu").post(T, b"[[1]]").ok()
    assert reply.stats["device"].startswith("cpu")


def test_help():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for option in OPTIONS:
        assert re.search(rf"^\s*{option}\b.*\w", done.stdout, re.MULTILINE), option
    assert "GEMMD_LISTEN" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 400


def test_help_has_every_limit_with_its_reason(daemon):
    """The limits that the daemon reports are in --help too."""
    text = " ".join(run("--help").stdout.split())
    limits = daemon.get("/v1/stats").json()["limits"]
    assert len(limits) >= 10
    for name, limit in limits.items():
        assert name.upper() in text and f"{limit['value']} {limit['unit']}" in text, name
        assert " ".join(limit["reason"].split()) in text, name


def test_version():
    done = run("--version")
    assert done.returncode == 0 and re.fullmatch(r"gemmd \d+\.\d+\.\d+\n", done.stdout)


# Logs.


TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PAIR = r' (\w+)=("(?:[^"\\]|\\.)*"|[^\s"]*)'  # a value may be quoted


def log_fields(line):
    """A line's key=value pairs, after its time."""
    match = re.fullmatch(f"{TIME}((?:{PAIR})+)", line)
    assert match, f"not a line of the log: {line!r}"
    return dict(re.findall(PAIR, match[1]))


def test_a_request_is_one_line_with_its_id(start):
    daemon = start()
    daemon.post(T, b"[[1]]", {"X-Request-Id": "served-1"}).ok()
    daemon.post(T, b"[[", {"X-Request-Id": "refused-1"})
    daemon.get("/none", {"X-Request-Id": "lost-1"})
    daemon.stop()
    lines = [log_fields(line) for line in daemon.log().splitlines()]
    for request_id, status in (("served-1", "200"), ("refused-1", "400"), ("lost-1", "404")):
        found = [fields for fields in lines if fields.get("id", "").strip('"') == request_id]
        assert len(found) == 1, daemon.log()
        assert found[0]["status"] == status and found[0]["level"] in ("info", "warn")


@pytest.mark.parametrize("host, listen, client", [
    ("127.0.0.1", "127.0.0.1:0", "127.0.0.1"), ("127.0.0.2", "0.0.0.0:0", "127.0.0.1"),
    ("::1", "[::1]:0", "::1"), ("127.0.0.1", "[::]:0", "127.0.0.1"),
])
def test_a_line_says_who_asked_what_and_for_how_long(tmp_path, host, listen, client):
    """Also where the path is unknown, or the method is none of HTTP's."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        try:
            one.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
    log = tmp_path / "log"
    with open(log, "wb") as file, subprocess.Popen(
            [*DIE_WITH_PARENT, BINARY, "--listen", listen, "--insecure"], env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=file, text=True) as process:
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            began = time.monotonic()
            for method, path in (("GET", "/none"), ("DELETE", T), ("BREW", "/x"), ('G"\\T=1', "/none")):
                with socket.create_connection((host, port), 10 * SLOW) as raw:
                    raw.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                    while raw.recv(65536):
                        pass
            elapsed_us = (time.monotonic() - began) * 1e6
            process.terminate()
            assert process.wait(STOP_S) == 0
        finally:
            process.kill()
    lines = [log_fields(line) for line in log.read_text().splitlines() if "event=request" in line]
    assert [line["method"] for line in lines] == ["GET", "DELETE", "BREW", r'"G\"\\T=1"']
    for line in lines:
        assert line["client"] == client
        assert 0 < float(line["total_us"]) < elapsed_us


def test_the_time_of_a_line_is_that_of_its_request(start):
    daemon = start()
    with daemon.raw() as raw:
        raw.send(wire.head("POST", T, "Content-Length: 5"), b"[[1")
        time.sleep(0.3)
        raw.send(b"]]").reply().ok()
    daemon.stop()
    line = next(log_fields(line) for line in daemon.log().splitlines() if "event=request" in line)
    assert 0.25e6 < float(line["total_us"]) < 0.3e6 + 5e6 * SLOW


def test_nobody_can_forge_a_line(start):
    daemon = start("--log-level", "debug")
    for path in (
        "/none%0alevel=error", "/none%0d%0a2026-01-01T00:00:00.000Z%20level=error", "/%22quote",
        "/%1b[31mred", "/%ff%00x", "/with%20space=1", T + "?x%0ay=1",
    ):
        daemon.get(path)
        daemon.post(path, b"[[1]]")
    daemon.stop()
    for line in daemon.log().splitlines():
        assert line.isascii() and line.isprintable(), line
        assert log_fields(line)["level"] != "error", line


@pytest.mark.parametrize("level, expected", [("error", False), ("warn", False), ("info", True)])
def test_log_levels(start, level, expected):
    daemon = start("--log-level", level)
    daemon.post(T, b"[[1]]", {"X-Request-Id": "look-for-me"}).ok()
    daemon.stop()
    assert ("look-for-me" in daemon.log()) == expected
