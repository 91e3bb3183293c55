#!/usr/bin/env python3
"""Torture: each allocation and each system call in a daemon's request path fails once, in turn.

For a kind of request and a class of calls, the n-th call from the moment the request is sent fails
as it may fail in earnest, for n = 1, 2, ... until there is no n-th call. Each time: the daemon
lives; the answer is right, or says in full why there is none (500, 503), or the connection is
closed; where the fault is one that is to be borne, like an interrupted call, it is right. The next
request, without a fault, is answered right; and memory, connections, descriptors, threads and the
blocks of the heap are what they were. In the same way each call of the daemon's start fails: it
says so and ends, or goes on.

usage: torture.py [--requests | --first-requests | --start-up] [--all | --seconds N] [--seed N]
       [--kind NAME] [--class NAME] [--at N] [--frames N]

Without --all it is a sample of that, which the seed chooses, for so many seconds.
GEMMD_BIN and GEMMD_TORTURE, the daemon and the library that makes its calls fail, are those of
build/release if they are not said.
"""

import argparse
import errno
import mmap
import os
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build/release"
os.environ.setdefault("GEMMD_BIN", str(BUILD / "server/gemmd"))
os.environ.setdefault("GEMMD_TORTURE", str(BUILD / "tests/libtorture.so"))
sys.path.insert(0, str(HERE.parent / "http"))

import wire  # noqa: E402
import keyring  # noqa: E402
from certificates import OPENSSL, Authority  # noqa: E402
from daemon import BINARY, SANITIZER, SLOW, Daemon, environment, sanitizer_of  # noqa: E402
from torture_kinds import HANDSHAKE, PREFIX, excused, kinds, sameness  # noqa: E402

LIBRARY = os.environ["GEMMD_TORTURE"]
KEPT_ROUNDS = 10  # after so many rounds of five, the magazines of the buffers are full
TIMEOUT_S = 10 * SLOW  # for an answer, and for all to be given back
SKIPPED = 77

# Fields of struct torture, by their order in torture.h.
ARMED, COUNTDOWN, ERROR, LASTING, FIRED, LIVE, FRAMES, FRAME = range(8)
FRAMES_MAX = 32
CALLS = FRAME + FRAMES_MAX
CLASSES = re.findall(r"^    X\((\w+)\)", (HERE / "torture.h").read_text(), re.MULTILINE)

# What each class of calls may fail with; "=": the daemon has to bear it, and answer right. What a
# socket that is watched for edges never does is not here: to take or give less than there is, or
# nothing (EAGAIN), and then not to tell when there is more. The large replies, and the requests in
# pieces, have such calls by themselves.
SHORT = "SHORT"
FAULTS = {
    "MEMORY": "ENOMEM ENOMEM+",
    "MAP": "ENOMEM",
    "THREAD": "EAGAIN",
    "LOCK": "ENOMEM",
    "EVENT": "EMFILE ENOMEM",
    "EPOLL_CTL": "ENOMEM ENOSPC",
    "EPOLL_WAIT": "=EINTR",
    "POLL": "=EINTR ENOMEM",
    "ACCEPT": "=EINTR =ECONNABORTED =EMFILE =ENFILE =ENOBUFS =ENOMEM =EAGAIN",
    "SOCKET": "ENOBUFS EADDRINUSE ENOTCONN",
    "OPTION": "EINVAL ENOBUFS",
    "RECEIVE": "=EINTR ECONNRESET ENOMEM",
    "PEEK": "=EINTR =ENOMEM",
    "SEND": "=EINTR ECONNRESET EPIPE ENOBUFS ENOMEM",
    "READ": "EINTR EIO SHORT",
    "WRITE": "=EINTR =EPIPE =ENOSPC =EAGAIN =SHORT",
    "STORE": "=EINTR =SHORT",
    "CLOSE": "=EINTR =EIO",
    "OPEN": "EMFILE ENFILE ENOMEM",
    "NAME": "ENOMEM",
    "RANDOM": "=EINTR =ENOSYS",
    "SLEEP": "=EINTR",
    "PROCESS": "EPERM",
}
assert list(FAULTS) == CLASSES, (list(FAULTS), CLASSES)
# Those that requests to a daemon that is warm need not make.
NOT_OF_REQUESTS = {"THREAD", "EVENT", "NAME", "RANDOM", "SLEEP", "PROCESS"}


FOLDER = tempfile.TemporaryDirectory()
KEYS = keyring.Keyring(os.path.join(FOLDER.name, "keys"))
KEYS.add("torture", "use,read", "requests=1000000,bytes=100G,device=3600,memory=100G,jobs=1000")
GUARDED = ("--keys", KEYS.path, "--cors", "https://lab.example")
LOGGER = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
LOGGER.bind(os.path.join(FOLDER.name, "log"))
TLS = ()
if OPENSSL:
    AUTHORITY = Authority(Path(FOLDER.name, "tls"))
    PAIR = AUTHORITY.sign("server")
    CONTEXT = ssl.create_default_context(cafile=AUTHORITY.file)
    TLS = ("--listen", "127.0.0.1:0", "--tls-cert", PAIR[0], "--tls-key", PAIR[1])


class Fault:
    """A class of calls, and the way one of them fails; or, with '+', all from then on."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.borne, self.lasting = text.startswith("="), text.endswith("+")
        word = text.strip("=+")
        self.number = 0 if word == SHORT else getattr(errno, word)

    def __str__(self):
        return f"{self.name} {self.text.strip('=')}"


def faults():
    return [Fault(name, text) for name, words in FAULTS.items() for text in words.split()]


class Board:
    """The file that the daemon shares with us."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(mmap.PAGESIZE)
        self.words = memoryview(mmap.mmap(self.file.fileno(), mmap.PAGESIZE)).cast("q")

    def environment(self):
        under = f"LD_PRELOAD={LIBRARY}", f"TORTURE_FILE={self.file.name}"
        if sanitizer_of() == "address":
            options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
            under += (f"ASAN_OPTIONS={options}",)
        return ("env", *under)

    def arm(self, fault, n):
        w = self.words
        w[ERROR], w[LASTING], w[FIRED], w[FRAMES] = fault.number, fault.lasting, 0, 0
        w[COUNTDOWN] = n
        w[ARMED] = 1 + CLASSES.index(fault.name)

    def disarm(self):
        """Whether there was a fault."""
        self.words[ARMED] = 0
        return self.words[FIRED] > 0

    def calls(self, name):
        return self.words[CALLS + CLASSES.index(name)]

    @property
    def live(self):
        return self.words[LIVE]

    def where(self, code):
        """The lines of source at which the fault was, the innermost first."""
        frames = [self.words[FRAME + i] & (1 << 64) - 1 for i in range(self.words[FRAMES])]
        return [symbol(path, address - low + offset - 1) for address in frames
                for low, high, offset, path in code
                if low <= address < high and path != os.path.realpath(LIBRARY)]


def code_of(pid):
    """Where a process has its code: (from, to, offset in the file, file)."""
    found = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, mode, offset, _, _, *path = line.split(maxsplit=5)
            low, high = (int(part, 16) for part in span.split("-"))
            if "x" in mode and path:
                found.append((low, high, int(offset, 16), path[0].strip()))
    return found


def symbol(path, at):
    line = subprocess.run(["addr2line", "-sfe", path, hex(at)], text=True, capture_output=True)
    name, _, place = line.stdout.strip().partition("\n")
    return f"{name} {place}" if name != "??" else f"{os.path.basename(path)}+{at:#x}"


# Talking.


class Closed:
    """A connection that was closed in place of an answer, behind so many bytes of it."""

    def __init__(self, got):
        self.got = got

    def __repr__(self):
        return f"<closed behind {self.got[:60]!r}>"


def with_key(request):
    """The request, with the victim's key."""
    line, _, rest = request.partition(b"\r\n")
    return line + b"\r\nAuthorization: Bearer " + KEYS.keys["torture"].encode() + b"\r\n" + rest


def converse(port, kind, before_last=lambda: None):
    """The last answer to a kind's requests on a connection of their own, or Closed. port: of TLS, if it
    takes that."""
    *first, last = kind.requests
    if kind.tls == HANDSHAKE:
        before_last()
    with wire.Raw(port, TIMEOUT_S) as raw:
        if kind.tls:
            try:
                raw.socket = CONTEXT.wrap_socket(raw.socket, server_hostname="localhost")
            except OSError:
                return Closed(raw.buffer)
        for request in first:
            raw.send(with_key(request))
            raw.reply()
        if kind.tls != HANDSHAKE:
            before_last()
        return ask(raw, kind, last if kind.keyless else with_key(last))


def put_back(port, kind):
    for request in kind.after:
        with wire.Raw(port, TIMEOUT_S) as raw:
            raw.send(with_key(request))
            raw.reply()


def ask(raw, kind, request):
    try:
        if kind.expects_100:
            head, _, body = request.partition(b"\r\n\r\n")
            raw.send(head + b"\r\n\r\n")
            reply = raw.reply()
            if reply.status != 100:
                return reply
            raw.send(body)
        else:
            size = -(-len(request) // kind.pieces)
            for at in range(0, len(request), size):
                raw.send(request[at:at + size])
                time.sleep(0.002 if kind.pieces > 1 else 0)
    except (ConnectionError, AssertionError, ssl.SSLError):
        pass # it may have answered before it closed
    try:
        return raw.reply(to_head=kind.to_head)
    except (ConnectionError, AssertionError, ssl.SSLError):
        return Closed(raw.buffer)


class Failure(Exception):
    pass


def expect(true, *what):
    if not true:
        raise Failure(" ".join(map(str, what)))


class Victim(Daemon):
    """A daemon that is hit, and what it is like when it is not: warm once it has answered every
    kind of request, cold while it has answered none."""

    expected = {}
    kinds = {kind.name: kind for kind in kinds() if TLS or not kind.tls}

    def __init__(self, cold=False):
        self.board = Board()
        super().__init__("--listen", "127.0.0.1:0,plain", "--log-level", "info", "--allow-shared-memory", PREFIX,
                         *GUARDED, *TLS, under=self.board.environment(), listen=False)
        if TLS:
            self.tls_port = int(self._first_line(time.monotonic() + TIMEOUT_S).rpartition(":")[2])
        self.cold, self.settled, self.live = cold, None, None
        try:
            for _ in range(0 if cold else 2 if self.expected else 4):
                for kind in self.kinds.values():
                    self.learn(kind, self.converse(kind))
                    put_back(self.port, kind)
            self.code = code_of(self.pid)
            self.rest()
        except BaseException:
            self.kill()
            raise

    def converse(self, kind, *before_last):
        return converse(self.tls_port if kind.tls else self.port, kind, *before_last)

    def learn(self, kind, reply):
        expect(isinstance(reply, wire.Reply), kind.name, "without a fault:", reply)
        expect(reply.status == kind.status, kind.name, "without a fault:", reply)
        exact, there = sameness(kind, reply)
        if kind.name in self.expected:
            before, before_there = self.expected[kind.name]
            expect(before == exact, kind.name, "differs without a fault:", before, exact)
            there &= before_there
        self.expected[kind.name] = exact, there

    # Checks.

    def check_right(self, kind, reply):
        exact, there = sameness(kind, reply)
        before, before_there = self.expected[kind.name]
        expect(exact == before, "another answer:", reply)
        without = excused(kind, reply, self.cold)
        missing = [name for name in before_there - there
                   if not any(part in name for part in without)]
        expect(not missing, "an answer with holes:", sorted(missing)[:5])

    def check_refusal(self, kind, reply):
        expect(reply.status in (500, 503), "no right answer, and no refusal:", reply)
        if kind.is_v2:
            expect(kind.to_head or list(reply.json()) == ["error"], "not an error:", reply)
            return
        expect(reply.media_type == wire.PROBLEM, "not a problem:", reply)
        expect(reply.status == 500 or reply.header("Retry-After"), "no Retry-After:", reply)
        if kind.to_head:
            return
        problem = reply.json()
        for name in ("type", "title", "status", "code", "detail", "error", "request_id"):
            expect(problem.get(name), "a problem without", name, reply)
        expect(problem["status"] == reply.status, reply)

    def check(self, kind, reply, fault):
        """What the answer was: right, refused or closed."""
        expect(self.alive(), "it died with", self.process.poll())
        if isinstance(reply, Closed):
            expect(not fault.borne, "closed for a fault that is to be borne", reply)
            # A record takes memory: over TLS, what was begun may end, and the client knows it.
            cut = fault.name in ("SEND", "EPOLL_CTL") or (kind.tls and fault.name == "MEMORY")
            expect(cut or not reply.got, "a part of an answer:", reply)
            return "closed"
        if not fault.borne and reply.status in (500, 503):
            self.check_refusal(kind, reply)
            return "refused"
        self.check_right(kind, reply)
        return "right"

    def rest(self):
        """Waits until nothing is left of what was. Answers how many blocks of
        the heap there are."""
        now = time.monotonic()
        deadline, blocks_deadline = now + TIMEOUT_S, now + 0.1
        while True:
            with wire.Raw(self.port, TIMEOUT_S) as raw:
                raw.send(with_key(wire.head("GET", "/v1/stats", "Connection: close")))
                stats = raw.reply().json()
            now = {"memory used": stats["memory"]["used_bytes"],
                   "requests": stats["requests_in_flight"] - 1,
                   "queued": sum(q["queued"] + q["running"] for q in stats["queues"].values()),
                   "descriptors": self.descriptors(), "threads": self.threads()}
            if self.settled is None and not any((now["memory used"], now["requests"])):
                time.sleep(0.3)
                now["descriptors"] = self.descriptors()
                self.settled, self.live = now, self.board.live
            if self.cold: # what is opened or made once, and kept, is not lost
                now["descriptors"] = min(now["descriptors"], self.settled["descriptors"])
            settled = self.settled and all(now[name] <= self.settled[name] for name in now)
            blocks = self.board.live
            if settled and (blocks <= self.live or time.monotonic() > blocks_deadline):
                return blocks
            expect(time.monotonic() < deadline, "left behind:", now, "instead of", self.settled)
            time.sleep(0.001)

    def begin_hit(self, kind, fault, n):
        self.board.arm(fault, n)
        if kind.reload: # main reads the keys, with the fault, before the request comes
            self.signal(signal.SIGHUP)
            time.sleep(0.005 * SLOW)

    def hit(self, kind, fault, n):
        """(whether there was an n-th call, what the answer was)"""
        answer = self.hit_once(kind, fault, n)
        blocks = self.board.live
        if blocks > self.live and not self.cold:
            # What is kept for later, on each processor, grows to a limit; what is lost, for ever.
            lost = blocks
            for _ in range(KEPT_ROUNDS):
                lost = self.board.live
                for _ in range(5):
                    self.hit_once(kind, fault, n)
                if self.board.live < lost + 5:
                    break
            expect(self.board.live < lost + 5, "each time", (self.board.live - lost) / 5,
                   "blocks of memory are lost")
            self.live = max(blocks, self.board.live)
        return answer

    def hit_once(self, kind, fault, n):
        board = self.board
        try:
            reply = self.converse(kind, lambda: self.begin_hit(kind, fault, n))
            outcome = self.check(kind, reply, fault)
            if board.words[FIRED] == 0:
                time.sleep(0.002) # it may come once the answer has gone
        finally:
            fired = board.disarm()
        put_back(self.port, kind)
        reply = self.converse(kind)
        put_back(self.port, kind)
        expect(isinstance(reply, wire.Reply), "the next request:", reply)
        self.check_right(kind, reply)
        self.rest()
        return fired, outcome


# The request path.


def applies(kind, fault):
    """GnuTLS's own libraries end the process where memory lacks within a handshake: libtasn1 does not look, GMP aborts."""
    return kind.tls != HANDSHAKE or fault.name != "MEMORY"


# The same as certificates are read again: known by the call that failed.
OF_GNUTLS = re.compile(r"asn1_|_?gnutls_|__gmp|lib(tasn1|gnutls|gmp|nettle|hogweed|p11-kit)\b")


def is_of_gnutls(victim, kind, fault):
    """Whether it is dead by memory that GnuTLS asked for, outside of what a daemon can do."""
    places = victim.board.where(victim.code)
    return kind.reload and fault.name == "MEMORY" and not victim.alive() and bool(places and OF_GNUTLS.match(places[0]))


def rounds_of(chosen, chosen_faults):
    return [(name, fault) for name in chosen for fault in chosen_faults if applies(Victim.kinds[name], fault)]


def report_in(text):
    """A sanitizer's report, out of the log that it is in."""
    found = SANITIZER.search(text)
    return "\n" + text[max(0, found.start() - 80):] if found else text[-2000:]


class Tormentor:
    def __init__(self, options):
        self.options = options
        self.victim = None
        self.hits, self.outcomes, self.failures, self.calls = 0, {}, {}, {}
        self.deadline = float("inf")

    def begin(self):
        """The time that is given begins when all is warm."""
        if not self.options.all:
            self.deadline = time.monotonic() + self.options.seconds

    def late(self):
        return time.monotonic() >= self.deadline

    def daemon(self):
        if not self.victim:
            self.victim = Victim()
        return self.victim

    def fail(self, what, fault, n, failure, victim=None):
        places = victim.board.where(victim.code) if victim else []
        key = (str(fault), str(failure)[:24], *places[:3])
        known = self.failures.setdefault(key, [])
        known.append((what, n))
        if len(known) == 1:
            print(f"FAILED {what}, {fault}, call {n}: {failure}")
            print("    ", "\n     ".join(places[:self.options.frames]))
            sys.stdout.flush()

    def one(self, name, fault, n, cold=False):
        """Whether there was an n-th call."""
        if cold:
            self.end()
            self.victim = Victim(cold=True)
        victim = self.daemon()
        fired = True
        try:
            fired, outcome = victim.hit(victim.kinds[name], fault, n)
            if fired:
                self.hits += 1
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        except (Failure, OSError, AssertionError, ValueError, KeyError) as failure:
            time.sleep(0.05) # it may be about to die of it
            died = "" if victim.alive() else f"died with {victim.process.poll()}; "
            if is_of_gnutls(victim, victim.kinds[name], fault):
                self.outcomes["dead by GnuTLS"] = self.outcomes.get("dead by GnuTLS", 0) + 1
            else:
                self.fail(name, fault, n, f"{died}{failure}", victim)
            self.end()
        return fired

    def end(self):
        """The next one begins with a daemon of its own. What a sanitizer says is a failure too."""
        if self.victim:
            victim, self.victim = self.victim, None
            try:
                if victim.alive():
                    victim.stop()
                expect(not SANITIZER.search(victim.log()), victim.log())
            except (Failure, AssertionError) as failure:
                self.fail("the end", "", 0, report_in(str(failure)))
            finally:
                victim.kill()

    def most(self, name, fault):
        """About how many calls of the class a request makes."""
        victim = self.daemon()
        if (name, victim.cold) not in self.calls:
            before = {each: victim.board.calls(each) for each in CLASSES}
            victim.converse(victim.kinds[name])
            time.sleep(0.003)
            self.calls[name, victim.cold] = {
                each: victim.board.calls(each) - before[each] for each in CLASSES}
            put_back(victim.port, victim.kinds[name])
        return self.calls[name, victim.cold][fault.name]

    def first_requests(self, chosen, chosen_faults):
        """The same, for the first request of all: what is made or read only then may fail too."""
        self.daemon() # what is right is known from one that is warm
        self.begin()
        rounds = rounds_of(chosen, chosen_faults)
        if not self.options.all:
            self.options.random.shuffle(rounds)
        for name, fault in rounds:
            if self.late():
                break
            if (name, True) not in self.calls:
                self.end()
                self.victim = Victim(cold=True)
            most = self.calls[name, True][fault.name] if (name, True) in self.calls else self.most(
                name, fault)
            numbers = range(1, most + 3)
            if self.options.at:
                numbers = [self.options.at]
            elif not self.options.all:
                numbers = [self.options.random.randint(1, most)] if most > 0 else []
            for n in numbers:
                if not self.one(name, fault, n, cold=True):
                    break

    def requests(self, chosen, chosen_faults):
        rounds = rounds_of(chosen, chosen_faults)
        if self.options.all or self.options.at:
            for name, fault in rounds:
                most = 2 * self.most(name, fault) + 3 # ticks of the daemon's own come between
                n = self.options.at or 1
                while self.one(name, fault, n) and n < most and not self.options.at:
                    n += 1
            return
        spans = [(name, fault, self.most(name, fault)) for name, fault in rounds]
        spans = [span for span in spans if span[2] > 0]
        unseen = set(CLASSES) - NOT_OF_REQUESTS - {fault.name for _, fault, _ in spans}
        if unseen and not self.options.kind and not self.options.classes:
            self.fail("requests", "none", 0, f"no call of {sorted(unseen)} is seen: are they made by other names now?")
        self.begin()
        while spans and not self.late():
            name, fault, most = self.options.random.choice(spans)
            self.one(name, fault, self.options.random.randint(1, most))


# The start.


def start_options(folder):
    """(without TLS, with it): all ways to listen, said in a file. The second logs to a socket, which nobody reads."""
    lines = ["listen = 127.0.0.1:0,plain", f"listen = unix:{folder}/socket,mode=0660"]
    plain, secure = Path(folder, "plain.conf"), Path(folder, "secure.conf")
    plain.write_text("\n".join(lines) + "\n")
    if not OPENSSL:
        return (["--config", str(plain)],) * 2
    pair = Authority(Path(folder)).sign("server")
    lines += ["listen = 127.0.0.1:0", f"tls-cert = {pair[0]}", f"tls-key = {pair[1]}",
              f"tls-client-ca = {folder}/ca.pem", f"log-to = syslog:{LOGGER.getsockname()}"]
    secure.write_text("\n".join(lines) + "\n")
    return ["--config", str(plain)], ["--config", str(secure)]


def start_once(board, fault, n, start):
    """How a daemon fares whose n-th call fails before it is ready: (whether one did, how)."""
    board.arm(fault, n)
    process = subprocess.Popen(
        [*board.environment(), BINARY, *start, *GUARDED], env=environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        line = process.stdout.readline() # to its end, if there is none
        fired = board.disarm()
        if line:
            ready = re.fullmatch(rb"listening on http://127\.0\.0\.1:(\d+)\n", line)
            expect(ready, "not a ready line:", line)
            with wire.Raw(int(ready.group(1)), TIMEOUT_S) as raw:
                raw.send(with_key(wire.head("POST", "/v1/transpose", "Content-Length: 9")), b"[[1],[2]]")
                reply = raw.reply()
            expect(reply.status == 200 and reply.json()["data"] == [[1, 2]], reply)
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure("it hangs") from None
    finally:
        process.kill()
        process.wait()
    said = said.decode("utf-8", "replace")
    expect(not SANITIZER.search(said), report_in(said))
    if line:
        expect(process.returncode == 0, "exit code", process.returncode, said)
        return fired, "went on"
    expect(fired, "it did not start without a fault:", said)
    expect(process.returncode > 0, "ended by signal", -process.returncode, said)
    expect(re.search(r"^gemmd: \S+ ", said, re.MULTILINE), "without a word:", repr(said))
    return fired, "refused to start"


def thinned(most):
    """1, 2, ... and, far on, fewer: of tens of thousands one is like the next."""
    n = 1
    while n <= most:
        yield n
        n += 1 + n // 500


def start_up(tormentor, chosen_faults):
    options = tormentor.options
    board = Board()
    folder = tempfile.TemporaryDirectory()
    plain, secure = start_options(folder.name) # applies() says why the first, where memory lacks
    watch = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(Failure("it hangs")))
    start_once(board, chosen_faults[0], 1 << 40, secure)
    spans = [(fault, board.calls(fault.name)) for fault in chosen_faults]
    rounds = [(fault, n) for fault, most in spans for n in thinned(most)]
    if options.at:
        rounds = [(fault, options.at) for fault, _ in spans]
    elif not options.all:
        options.random.shuffle(rounds)
    tormentor.begin()
    for fault, n in rounds:
        if tormentor.late():
            break
        signal.alarm(int(3 * TIMEOUT_S))
        try:
            fired, how = start_once(board, fault, n, plain if fault.name == "MEMORY" else secure)
            if fired:
                tormentor.hits += 1
                tormentor.outcomes[how] = tormentor.outcomes.get(how, 0) + 1
        except (Failure, OSError, AssertionError) as failure:
            tormentor.fail("the start", fault, n, failure)
        finally:
            signal.alarm(0)
    signal.signal(signal.SIGALRM, watch)
    folder.cleanup()


def parse_options():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].split("\n\n")[0])
    parser.add_argument("--requests", action="store_true") # the default
    parser.add_argument("--first-requests", action="store_true")
    parser.add_argument("--start-up", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kind")
    parser.add_argument("--class", dest="classes")
    parser.add_argument("--at", type=int)
    parser.add_argument("--frames", type=int, default=9)
    options = parser.parse_args()
    options.random = random.Random(options.seed)
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)) # so that what is made here is removed
    options = parse_options()
    if sanitizer_of() == "thread":
        print("ThreadSanitizer stands in front of the same calls itself")
        return SKIPPED
    if options.all:
        print("everything, in order")
    else:
        print(f"a sample of {options.seconds:.0f} seconds; again with --seed {options.seed}")
    tormentor = Tormentor(options)
    wanted = [fault for fault in faults()
              if not options.classes or str(fault).startswith(options.classes)]
    if options.start_up:
        start_up(tormentor, wanted)
    else:
        chosen = [name for name in Victim.kinds if not options.kind or name.startswith(options.kind)]
        if options.first_requests:
            tormentor.first_requests(chosen, wanted)
        else:
            tormentor.requests(chosen, wanted)
        tormentor.end()
    outcomes = ", ".join(f"{n} {name}" for name, n in sorted(tormentor.outcomes.items()))
    print(f"{tormentor.hits} calls failed: {outcomes}")
    print(f"{len(tormentor.failures)} kinds of failure")
    return 1 if tormentor.failures or tormentor.hits == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
