"""A gemmd under test: started on a free port of 127.0.0.1, always ended, and never forgiven
a crash, an unclean exit or a sanitizer's report."""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from wire import Client, Raw

BINARY = os.environ.get("GEMMD_BIN", "")
# gemmd with a device that takes as long as a slow one and leaves the processor to others.
IDLE = {"binary": os.environ.get("GEMMD_FAKE_BIN", ""), "env": {"FAKE_GFLOPS": "0.05"}}
SLOW = 10.0 if os.environ.get("GM_SLOW", "0") not in ("", "0") else 1.0

START_S = 20 * SLOW  # until the ready line: start-up measures ceilings
STOP_S = 15 * SLOW  # from SIGTERM to the exit of an idle daemon
READY = re.compile(r"listening on https?://127\.0\.0\.1:(\d+)\Z")
SANITIZER = re.compile(r"(AddressSanitizer|ThreadSanitizer|LeakSanitizer|runtime error:)")
# So that a daemon ends with the tests, even if they are killed. (A preexec_fn could say the same,
# but is not safe beside threads.)
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


def sanitizer_of(binary=BINARY):
    """'address', 'thread' or None: what the binary was built with."""
    with open(binary, "rb") as file:
        content = file.read()
    for name, symbol in (("address", b"__asan_init"), ("thread", b"__tsan_init")):
        if symbol in content:
            return name
    return None


def environment(extra=None):
    """Ours, without any setting meant for gemmd, plus what the test wants."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GEMMD_")}
    env.update(extra or {})
    return env


def run(*options, env=None, timeout=START_S):
    """Runs gemmd to its end: for options that make it refuse or print and exit."""
    return subprocess.run(
        [BINARY, *options], env=environment(env), timeout=timeout, text=True, capture_output=True
    )


class Daemon:
    def __init__(self, *options, env=None, listen=True, under=(), binary=None):
        listen_option = ("--listen", "127.0.0.1:0") if listen else ()
        command = [*DIE_WITH_PARENT, *under, binary or BINARY, *listen_option, *options]
        self.log_file = tempfile.TemporaryFile()
        self.checked = False
        self.process = subprocess.Popen(
            command,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log_file,
        )
        try:
            self.ready_line = self._first_line(time.monotonic() + START_S)
            match = READY.match(self.ready_line)
            assert match, f"not a ready line: {self.ready_line!r}; {self.last_words()}"
            self.port = int(match.group(1))
        except BaseException:
            self.kill()
            raise

    def _first_line(self, deadline):
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            assert left > 0, f"no ready line in time; {self.last_words()}"
            if select.select([self.process.stdout], [], [], left)[0]:
                byte = os.read(self.process.stdout.fileno(), 1)
                assert byte, f"gemmd ended before it was ready; {self.last_words()}"
                line += byte
        return line[:-1].decode()

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        size = os.fstat(self.log_file.fileno()).st_size
        return os.pread(self.log_file.fileno(), size, 0).decode("utf-8", "replace")

    def last_words(self):
        """The end of the log, for a message: what led to a fault is there."""
        return "\n".join(["the log ends:", *self.log().splitlines()[-12:]])

    def alive(self):
        return self.process.poll() is None

    # Talking to it.

    def client(self, timeout=30):
        return Client(self.port, timeout * SLOW)

    def raw(self, timeout=10):
        return Raw(self.port, timeout * SLOW)

    def request(self, method, path, body=None, headers=None, timeout=30):
        """One request on a connection of its own."""
        with self.client(timeout) as client:
            return client.request(method, path, body, headers)

    def get(self, path, headers=None):
        return self.request("GET", path, None, headers)

    def post(self, path, body=b"", headers=None, timeout=30):
        return self.request("POST", path, body, headers, timeout)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    # Looking at it.

    def status_field(self, name):
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        raise AssertionError(f"no {name} in /proc")

    def rss_bytes(self):
        return 1024 * self.status_field("VmRSS")

    def threads(self):
        return self.status_field("Threads")

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def has_open(self, path):
        """Whether it holds this file open, or one that had this name and is deleted."""
        def target(fd):
            try:
                return os.readlink(f"/proc/{self.pid}/fd/{fd}")
            except FileNotFoundError: # closed in the meantime
                return None

        return any(target(fd) in (path, path + " (deleted)") for fd in os.listdir(f"/proc/{self.pid}/fd"))

    # Ending it.

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=STOP_S):
        """Its exit code. A daemon that does not end is killed, and the test fails."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running {timeout} s later; {self.last_words()}") from None
        self.checked = True
        assert not SANITIZER.search(self.log()), self.log()
        return code

    def stop(self):
        """SIGTERM, and whatever a good daemon must then do."""
        if self.checked:
            return
        died = self.process.poll()
        assert died is None, f"gemmd died with {died}; {self.last_words()}"
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"exit code {code} after SIGTERM; {self.last_words()}"

    def kill(self):
        self.checked = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
