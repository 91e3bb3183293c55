"""What README.md and the pages of the clients tell their reader to type is typed here: every ```sh
or ```python block that talks to a daemon at localhost:8080, or begins with gemmctl, is run against one, in the
order of the page and in
one scratch folder.

A command that fails fails the check, and so does an HTTP error or an exception. A block that is not meant to
be run stands below a comment  <!-- not run: why -->. Blocks of Python run with the sources of the package, in the
environment that tests/clients/venv.sh makes; without it a warning says so.
"""
import os
import re
import signal
import subprocess
import tempfile

import lint

PAGES = ["README.md", "clients/*/README.md"]
VENV = "build/clients-venv/bin/python"
VENV_WHOLE = "build/clients-venv/made"  # written last, when all packages are there
PACKAGE = "clients/python/src"
ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8080\b")
GEMMCTL = re.compile(r"^gemmctl ", re.MULTILINE)
SECONDS = 120
# The reader sees the body of an error reply; here it also ends the block.
PRELUDE = """set -eu -o pipefail
curl() { command curl --silent --show-error --fail-with-body "$@"; }
python3() { /usr/bin/python3 "$@"; }
"""


def blocks(tree, page):
    """(line number, language, text) of the blocks to run."""
    start, language, text, excused, before = None, "", [], False, ""
    for number, line in tree.lines(page):
        if start is None and line.strip() in ("```sh", "```python"):
            start, language, text, excused = number, line.strip()[3:], [], "<!-- not run:" in before
        elif start is not None and line.strip() == "```":
            block = "\n".join(text)
            if (ADDRESS.search(block) or GEMMCTL.search(block)) and not excused:
                yield start, language, block
            start = None
        elif start is not None:
            text.append(re.sub(r"^\$ ", "", line))
        if line.strip():
            before = line


def start_daemon():
    """(process, address) of a fresh gemmd on a free port. Its options come from here alone."""
    process = subprocess.Popen([lint.daemon(), "--listen", "127.0.0.1:0"],
                               env=lint.daemon_environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
    ready = re.match(r"listening on http://(\S+)$", process.stdout.readline())
    if not ready:
        process.kill()
        process.wait()
        raise RuntimeError("gemmd did not say where it listens")
    return process, ready.group(1)


def gemmctl_folder():
    """In the build that the daemon is of; None where that has no gemmctl."""
    folder = os.path.dirname(os.path.abspath(lint.daemon()))
    for build in (os.path.dirname(folder), folder):
        if os.path.exists(os.path.join(build, "clients/c/gemmctl")):
            return os.path.join(build, "clients/c")
    return None


def command(tree, language, text):
    """What runs a block, and with which variables; None, and why, where it cannot be run here."""
    if language == "sh":
        if GEMMCTL.search(text) and not gemmctl_folder():
            return None, "gemmctl is not in this build"
        return ["bash", "-c", PRELUDE + text], {}
    if (tree.root / VENV_WHOLE).exists():
        return [tree.root / VENV, "-W", "error", "-c", text], {"PYTHONPATH": str(tree.root / PACKAGE)}
    return None, f"there is no {VENV} (tests/clients/venv.sh)"


def environment(address):
    """gemmctl is found, and asks the daemon of the test."""
    path = [folder for folder in (gemmctl_folder(), os.environ["PATH"]) if folder]
    return {**lint.daemon_environment(), "PATH": os.pathsep.join(path), "GEMMD_URL": f"http://{address}",
            "PYTHONDONTWRITEBYTECODE": "1"}


def run_block(words, variables, folder, address):
    """(exit status, output) of a block; what it leaves behind is ended with it."""
    with subprocess.Popen(words, cwd=folder, env={**environment(address), **variables}, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "none: it took too long", process.communicate()[0]


def check(tree):
    todo = [(page, *block) for page in tree.matching(*PAGES) for block in blocks(tree, page)]
    if not any(page == "README.md" for page, *_ in todo):
        yield "README.md has no block of commands for a daemon at localhost:8080"
        return
    process, address = start_daemon()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for page, number, language, text in todo:
                words, variables = command(tree, language, ADDRESS.sub(address, text))
                if words is None:
                    lint.warn(f"{page}:{number}: not run: {variables}")
                    continue
                status, output = run_block(words, variables, folder, address)
                if status != 0:
                    yield f"{page}:{number}: exit status {status} of\n{text}\nwhich says\n{output[-2000:]}"
    finally:
        process.terminate()
        code = process.wait(60)
    if code != 0:
        yield f"gemmd ended with status {code} after these commands"


# A daemon that serves `/ok` and answers 400 to all else.
SERVER = """#!/usr/bin/python3
import http.server, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ok" else 400)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"yes")
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(STATUS))
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


# Python as the environment has it, without one.
PYTHON = """#!/bin/sh
exec /usr/bin/python3 "$@"
"""
# Does what it is told where it knows the daemon.
CLIENT = "#!/bin/sh\ncase $GEMMD_URL in http://127.0.0.1:*) exec $1 ;; esac\nexit 9\n"


def planted(text, status="0", **more):
    return {"gemmd": SERVER.replace("STATUS", status), "clients/c/gemmctl": CLIENT, "README.md": text, **more}


def python(text):
    return planted("```sh\ncurl localhost:8080/ok\n```\n", **{
        VENV: PYTHON, VENV_WHOLE: "so\n", f"{PACKAGE}/client.py": "from urllib.request import urlopen\n",
        "clients/python/README.md": f"```python\nimport client\n{text}\n```\n"})


PLANTED = [
    (planted("```sh\ncurl localhost:8080/bad\n```\n"), "README.md:1: exit status"),
    (planted("```sh\ncurl localhost:8080/bad | cat\n```\n"), "README.md:1: exit status"),
    (planted("```sh\nfalse; curl localhost:8080/ok\n```\n"), "README.md:1: exit status 1"),
    (planted("```sh\ncurl localhost:8080/ok\n```\n```sh\ncurl http://localhost:8080/ok --data-binary @none\n```\n"),
     "README.md:4: exit status"),
    (planted("```sh\ncurl localhost:8080/ok\n```\n", "9"), "ended with status 9"),
    (planted("no commands\n"), "has no block"),
    (python("client.urlopen('http://localhost:8080/bad')"), "clients/python/README.md:1: exit status 1"),
    (python("import none  # localhost:8080"), "clients/python/README.md:1: exit status 1"),
    (planted("```sh\n# so\ngemmctl false\n```\n"), "README.md:1: exit status 1"),
]
CLEAN = [
    planted("```sh\n$ curl localhost:8080/ok > file\n```\n```sh\ngrep yes file; curl 127.0.0.1:8080/ok\n```\n"
            "<!-- not run: it would fail -->\n```sh\ncurl localhost:8080/bad\n```\n"
            "```sh\n./deploy/nothing.sh\n```\n"),
    python("assert client.urlopen('http://localhost:8080/ok').read() == b'yes'"),
    planted("```sh\ngemmctl true\n```\n"),
]
lint.main(globals())
