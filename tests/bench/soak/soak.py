#!/usr/bin/env python3
"""The soak: hours of mixed load in one run, to see whether anything grows, and that nothing fails.

    soak.py --gemmd GEMMD --fake GEMMD_FAKE --json FILE [--minutes N] [--rate N] [--seed N] [--commit WORD]

Two daemons. One has all the load of traffic.py over plain connections, TLS and a Unix socket, while its
keys change every twenty seconds and its certificate every few minutes (SIGHUP); flat.py judges its
memory, descriptors, threads and latency. The other's device is lost again and again (gemmd_fake): it ends
with status 1, is started again after a second, as systemd would, and a Python client that knows nothing of
that must get an answer to each of its calls.

It takes the Python of build/clients-venv, openssl, and what the tests have built: tests/README.md has the
line to type. FILE is written anew each minute. The exit status is 0 if all was right and flat.
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "http"))

import numpy as np  # noqa: E402

import flat  # noqa: E402
import gemmd  # noqa: E402
import traffic  # noqa: E402
from certificates import Authority  # noqa: E402
from keyring import Keyring, bearer  # noqa: E402

SECONDS_A_SAMPLE, LOOKS_A_SAMPLE = 60, 12
WORKERS = 4
RESTART_S = 1  # deploy/gemmd.service
LOSE_AT = 200  # runs; nearly two minutes
GUESTS = 5
LOST = 1  # the exit status of a daemon whose device was lost

# Asked in turn with the daemon, so that what else the machine does is seen in both.
ECHO = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
one = listener.accept()[0]
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while piece := one.recv(65536):
    one.sendall(piece)
"""


class Journal:
    """What happened: counts, times, and the first faults in words. Any thread may write."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts, self.times = collections.Counter(), collections.defaultdict(list)
        self.faults, self.fault_count = [], 0

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def time(self, what, seconds):
        with self.lock:
            self.times[what].append(seconds)

    def fault(self, text):
        with self.lock:
            self.fault_count += 1
            if len(self.faults) < 50:
                self.faults.append(f"{datetime.datetime.now(datetime.UTC).isoformat()[:19]}Z {text}")
        print(f"FAULT: {text}", file=sys.stderr, flush=True)

    def take_times(self):
        """The times since the last call, as quantiles in microseconds."""
        with self.lock:
            taken, self.times = self.times, collections.defaultdict(list)
        return {what: {"count": len(all_of), "p50": round(float(np.percentile(all_of, 50)) * 1e6, 1),
                       "p99": round(float(np.percentile(all_of, 99)) * 1e6, 1),
                       "max": round(max(all_of) * 1e6, 1)} for what, all_of in sorted(taken.items())}


def words_of_fault():
    """Of the exception that is handled: where it was raised, and what it says."""
    _, error, trace = sys.exc_info()
    place = traceback.extract_tb(trace)[-1]
    return f"{place.name}, {os.path.basename(place.filename)}:{place.lineno}: {type(error).__name__}: {error}"


class Process:
    """A daemon, whose log is read, counted by event, and of which the end is kept."""

    def __init__(self, command, lines, env=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("GEMMD_", "FAKE_"))}
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], env=clean | (env or {}),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.events, self.end = collections.Counter(), collections.deque(maxlen=40)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        self.listens = [self.process.stdout.readline().strip().removeprefix("listening on ") for _ in range(lines)]
        if not all(self.listens):
            raise SystemExit(f"{command[0]} did not start: {list(self.end)}")

    def read_log(self):
        for line in self.process.stderr:
            words = dict(word.partition("=")[::2] for word in line.split()[1:3])
            self.events[f"{words.get('level')} {words.get('event')}"] += 1
            if words.get("event") != "request":
                self.end.append(line.rstrip())

    @property
    def pid(self):
        return self.process.pid

    def figures(self):
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as file:
            memory = {line.split()[0]: int(line.split()[1]) for line in file if line.split()[0] in ("Rss:", "Pss:")}
        return {"rss_kb": memory["Rss:"], "pss_kb": memory["Pss:"],
                "descriptors": len(os.listdir(f"/proc/{self.pid}/fd")),
                "threads": len(os.listdir(f"/proc/{self.pid}/task"))}

    def cpu_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Place:
    """Where the first daemon is."""

    def __init__(self, process, folder, context):
        self.tls, self.plain = (int(address.rpartition(":")[2]) for address in process.listens[:2])
        self.unix = f"{folder}/sock"
        self.context, self.region = context, None


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.journal, self.stop, self.threads = Journal(), threading.Event(), []
        self.authority = Authority(folder / "tls")
        self.certificate = self.authority.sign("server")
        self.ring = Keyring(str(folder / "keys"))
        for name, roles, quota in (("user", "use", ""), ("reader", "read", ""), ("boss", "admin", ""),
                                   ("crowd", "use", ""), ("thin", "use", "requests=5"), ("small", "use", "memory=1M")):
            self.ring.add(name, roles, quota)
        self.object = f"/gemmd-soak-{os.getpid()}"
        with open("/dev/shm" + self.object, "wb") as file:
            file.write(np.arange(4, dtype=np.float32).tobytes() + bytes(4080))
        self.restarts, self.lost = [], None

    # ---- The daemon that stays. ----

    def start_steady(self):
        self.steady = Process([
            self.options.gemmd, "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0,plain",
            "--listen", f"unix:{self.folder}/sock", "--keys", self.ring.path, "--tls-cert", self.certificate[0],
            "--tls-key", self.certificate[1], "--threads", "1", "--queue-limit", "24", "--memory-limit", "256M",
            "--allow-shared-memory", "/gemmd-soak"], 3)
        self.place = Place(self.steady, self.folder, traffic.ssl.create_default_context(cafile=self.authority.file))
        self.register()
        self.traffic = traffic.Traffic(self.place, self.ring, self.options.seed)

    def register(self):
        body = json.dumps({"key": self.object, "offset": 0, "byte_size": 4096}).encode()
        with contextlib.closing(traffic.connection(self.place, "plain")) as one:
            traffic.expect(traffic.exchange(one, "POST", "/v2/systemsharedmemory/region/soak/register", body,
                                            self.ring.headers("user")), 200, "a region")
        self.place.region = "soak"

    def work(self, seed):
        """Requests at random times, a WORKERS-th of the rate."""
        rng, kept = random.Random(seed), {}
        while not self.stop.wait(rng.expovariate(self.options.rate / WORKERS)):
            began = time.monotonic()
            try:
                kind = self.traffic.one_of_them(rng, kept)
                self.journal.count(kind)
                self.journal.time(kind, time.monotonic() - began)
            except Exception:  # noqa: BLE001: whatever it is, it is a request that failed
                self.journal.fault(words_of_fault())

    def probe(self):
        """The times of the smallest request, beside an echo's."""
        body = self.traffic.small[0].body
        headers = {"Content-Type": "application/json"} | self.ring.headers("user")
        ways = {way: traffic.connection(self.place, way) for way in flat.LATENCIES}
        echo = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True)
        with socket.create_connection(("127.0.0.1", int(echo.stdout.readline()))) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.stop.wait(0.2):
                try:
                    began = time.monotonic()
                    line.sendall(body)
                    left = len(body)
                    while left > 0:
                        left -= len(line.recv(65536))
                    self.journal.time("echo", time.monotonic() - began)
                    for way, one in ways.items():
                        began = time.monotonic()
                        traffic.expect(traffic.exchange(one, "POST", "/v1/transpose", body, headers), 200, "the probe")
                        self.journal.time(way, time.monotonic() - began)
                except Exception:  # noqa: BLE001
                    self.journal.fault(words_of_fault())
        echo.wait(10)

    def change_keys(self):
        """A guest comes and another goes, while all others work; now and then a new certificate."""
        guests = []
        for number in range(1 << 30):
            if self.stop.wait(20):
                return
            try:
                guests.append(f"guest-{number}")
                self.ring.add(guests[-1])
                gone = None
                if len(guests) > GUESTS:
                    gone = self.ring.keys[guests[0]]
                    self.ring.remove(guests.pop(0))
                if number % 10 == 9:
                    self.authority.sign("server", serial=number)
                self.steady.process.send_signal(signal.SIGHUP)
                self.await_key(self.ring.keys[guests[-1]], 200)
                if gone:
                    self.await_key(gone, 401)
                self.journal.count("keys_changed")
            except Exception:  # noqa: BLE001
                self.journal.fault(words_of_fault())

    def await_key(self, key, status):
        until = time.monotonic() + 30
        with contextlib.closing(traffic.connection(self.place, "plain")) as one:
            while True:
                seen = traffic.exchange(one, "POST", "/v1/transpose", b"[[1,2]]", bearer(key))
                if seen[0] == status:
                    return
                if time.monotonic() > until:
                    raise traffic.Wrong(f"a key that changed 30 s ago is answered {seen[0]}, not {status}")
                time.sleep(0.05)

    # ---- The daemon that is lost. ----

    def supervise(self):
        """Starts it again whenever it ends, as systemd does."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.lost_port = free.getsockname()[1]
        while not self.stop.is_set():
            began = time.monotonic()
            self.lost = Process([self.options.fake, "--listen", f"127.0.0.1:{self.lost_port}", "--threads", "1"], 1,
                                {"FAKE_LOSE_AT": str(LOSE_AT), "FAKE_STREAMS": "2"})
            code = self.lost.process.wait()
            if self.stop.is_set():
                return
            self.restarts.append({"after_s": round(time.monotonic() - began, 1), "status": code})
            if code != LOST:
                self.journal.fault(f"the daemon with a lost device ended with {code}: {list(self.lost.end)}")
            time.sleep(RESTART_S)

    def use_lost(self):
        rng = np.random.default_rng(self.options.seed)
        with gemmd.Client(f"http://127.0.0.1:{self.lost_port}", retries=10) as client:
            while not self.stop.wait(0.5):
                began = time.monotonic()
                try:
                    a = rng.integers(0, 9, (16, 24)).astype(np.float32)
                    if not np.array_equal(client.transpose(a), a.T):
                        raise traffic.Wrong("a wrong result")
                    self.journal.count("of_the_lost")
                    self.journal.time("of_the_lost", time.monotonic() - began)
                except Exception:  # noqa: BLE001
                    if not self.stop.is_set():
                        self.journal.fault(f"a client of the lost: {words_of_fault()}")

    # ---- All of it. ----

    def go(self, function, *arguments):
        self.threads.append(threading.Thread(target=function, args=arguments, daemon=True))
        self.threads[-1].start()

    def sample(self, began, cpu_before):
        """A minute of figures: their medians."""
        looks = []
        for _ in range(LOOKS_A_SAMPLE):
            time.sleep(SECONDS_A_SAMPLE / LOOKS_A_SAMPLE)
            looks.append(self.steady.figures())
        sample = {name: sorted(look[name] for look in looks)[LOOKS_A_SAMPLE // 2] for name in looks[0]}
        with contextlib.closing(traffic.connection(self.place, "plain")) as one:
            stats = json.loads(traffic.exchange(one, "GET", "/v1/stats", None, self.ring.headers("boss"))[2])
        return {"minute": round((time.monotonic() - began) / 60, 2), **sample,
                "cpu_s": round(self.steady.cpu_s() - cpu_before, 2), "used_bytes": stats["memory"]["used_bytes"],
                "kept_bytes": stats["memory"]["kept_bytes"], "load": round(os.getloadavg()[0], 2),
                "latency_us": self.journal.take_times()}

    def write(self, samples, more):
        document = {
            "benchmark": "soak", "date": datetime.datetime.now(datetime.UTC).isoformat()[:19] + "Z",
            "commit": self.options.commit, "device": machine(), "cores": os.cpu_count(),
            "minutes": self.options.minutes, "rate": self.options.rate, "seed": self.options.seed,
            "requests": dict(self.journal.counts), "faults": self.journal.fault_count,
            "first_faults": self.journal.faults, "restarts": self.restarts,
            "log": dict(self.steady.events), **more, "samples": samples}
        new = f"{self.options.json}.new"
        with open(new, "w", encoding="utf-8") as file:
            file.write(flat.text_of(document))
        os.replace(new, self.options.json)

    def end(self):
        """Ends the daemons; the one that stays as it should."""
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        if self.lost:
            self.lost.process.terminate()
            self.lost.process.wait(60)
        self.steady.process.terminate()
        code = self.steady.process.wait(60)
        if code != 0:
            self.journal.fault(f"after SIGTERM it ended with {code}: {list(self.steady.end)}")
        os.unlink("/dev/shm" + self.object)

    def run(self):
        self.start_steady()
        for number in range(WORKERS):
            self.go(self.work, self.options.seed + number)
        self.go(self.probe)
        self.go(self.change_keys)
        supervisor = threading.Thread(target=self.supervise, daemon=True) # ends with its daemon
        supervisor.start()
        while not (self.lost and getattr(self.lost, "listens", None)):
            time.sleep(0.1)
        self.go(self.use_lost)
        samples, began = [], time.monotonic()
        while time.monotonic() - began < 60 * self.options.minutes:
            if self.steady.process.poll() is not None:
                self.journal.fault(f"the daemon died with {self.steady.process.returncode}: {list(self.steady.end)}")
                break
            try:
                samples.append(self.sample(began, self.steady.cpu_s()))
            except Exception:  # noqa: BLE001
                self.journal.fault(words_of_fault())
            self.write(samples, {})
        self.end()
        rows = flat.judge(samples) if len(samples) >= 8 else []
        self.write(samples, {"flatness": rows})
        flat.show(rows)
        print(f"{sum(self.journal.counts.values())} requests, {self.journal.fault_count} faults, "
              f"{len(self.restarts)} restarts")
        return self.journal.fault_count == 0 and all(row["flat"] for row in rows)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description="see the head of soak.py")
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--fake", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=float, default=20, help="requests a second, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default=subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True).stdout.strip())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gemmd-soak-") as folder:
        return 0 if Soak(options, Path(folder)).run() else 1


if __name__ == "__main__":
    sys.exit(main())
