"""Measures again what was reached, and names the rows that fell by more than 5 %. Started by guard.

    guard [--only PART] [--record] [--rounds N]      PART: http, json, explain, start, ci, gpu

A row is a ratio, the larger the better, to something that is measured in turns with it: the HTTP
library by itself, jansson, a copy, cuBLAS, or a fixed piece of work. So another machine's speed does
not count. It is the median of several rounds. Baselines are kept for each kind of machine, in
results/guard_cpu.json or, with a GPU, guard_h200.json and the like; --record writes the file.

A row whose rounds differ by more than 5 % (the middle half of them), in the baseline or now, is
undecided. Exit status: 1 where a row fell, or is in the baseline and was not measured though its
part was; 2 where nothing could be measured.
"""

import argparse
import datetime
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FALL = 0.05
NOISE = 0.05
GEMMD = os.path.join(ROOT, "build/release/server/gemmd")
BENCHES = os.path.join(ROOT, "build/release/tests/bench")
CI_SECONDS = os.path.join(ROOT, "build/log/fresh-run-seconds")
REQUESTS = [("matmul", 64, "raw", 1), ("matmul", 64, "raw", 8), ("matmul", 64, "raw", 64),
            ("transpose", 8192, "raw", 1)]
EXPLAINS = ["transpose?kernel=naive", "matmul?kernel=tiled", "matmul?kernel=multistage"]
# In the format of gpu.shapes; the first says what 100 % is.
GPU_SHAPES = """copy f32 8192x8192
transpose f32 8192x8192
transpose f32 8191x8209
transpose u8 16384x16384
add f32 8192x8192 8192x8192
flip f32 8192x8192
matmul f32 1024x1024 1024x1024
matmul f32 4096x4096 4096x4096
matmul f32 4095x4097 4097x4093
matmul f32 4096x65x65 4096x65x65
"""


class LeftOut(Exception):
    """A part that cannot be measured here; says why."""


# ---- Judging ------------------------------------------------------------------------------------


def row_of(ratios):
    """The median of the rounds, and how far they differ: the middle half, as a share of it."""
    middle = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"ratio": round(middle, 5), "spread": round((high - low) / middle, 4),
            "rounds": [round(ratio, 5) for ratio in ratios]}


def judge(before, now):
    """A word about a row."""
    if max(before["spread"], now["spread"]) > NOISE:
        return "undecided"
    change = now["ratio"] / before["ratio"] - 1
    return "fell" if change < -FALL else "rose" if change > FALL else "kept"


def compare(before, now, parts):
    """Name -> word, of each row of the parts that were measured."""
    words = {name: judge(before[name], row) if name in before else "new" for name, row in now.items()}
    return words | {name: "missing" for name in before
                    if name not in now and name.partition(":")[0] in parts}


def self_test():
    def row(ratio, noise=0.0):
        return row_of([ratio * (1 + noise * i) for i in (-2, -1, 0, 1, 2)])

    before = {"http: a": row(0.8), "http: noisy then": row(1, 0.1), "gpu: b": row(1)}
    cases = [
        ({"http: a": row(0.8 * 0.94)}, "http: a", "fell"),
        ({"http: a": row(0.8 * 0.96)}, "http: a", "kept"),
        ({"http: a": row(0.8 * 1.04)}, "http: a", "kept"),
        ({"http: a": row(0.8 * 1.06)}, "http: a", "rose"),
        ({"http: a": row(0.8 * 0.94, 0.01)}, "http: a", "fell"),
        ({"http: a": row(0.8 * 0.94, 0.03)}, "http: a", "undecided"),
        ({"http: a": row(0.8, 0.03)}, "http: a", "undecided"),
        ({"http: noisy then": row(0.5)}, "http: noisy then", "undecided"),
        ({"http: c": row(1)}, "http: c", "new"),
        ({"http: c": row(1)}, "http: a", "missing"),
        ({"http: a": row(0.8)}, "gpu: b", None),  # its part was left out
    ]
    wrong = 0
    for now, name, word in cases:
        said = compare(before, now, {"http"}).get(name)
        if said != word:
            print(f"{name}: {now.get(name)} is said to be {said}, not {word}")
            wrong += 1
    for words, status in [(["kept", "undecided", "new"], 0), (["kept", "fell"], 1), (["missing"], 1)]:
        if status_of(words) != status:
            print(f"{words} do not end with status {status}")
            wrong += 1
    return 1 if wrong else 0


def status_of(words):
    return 1 if {"fell", "missing"} & set(words) else 0


# ---- Measuring: each part yields names and the ratios of their rounds ---------------------------


def work_s():
    """How long a fixed piece of work takes one core: compressing digits, which is not our code."""
    digits = " ".join(str(i * 2654435761 % 2**32) for i in range(200000)).encode()
    begin = time.monotonic()
    zlib.compress(digits)
    return time.monotonic() - begin


def against_work(seconds_of, rounds):
    """Each round has the work before and after it."""
    ratios, before = [], work_s()
    for _ in range(rounds):
        seconds = seconds_of()
        after = work_s()
        ratios.append((before + after) / 2 / seconds)
        before = after
    return ratios


def load_laboratory():
    sys.path.insert(0, os.path.join(HERE, "load"))
    import load

    return load


def measure_http(options):
    import numpy as np

    load = load_laboratory()
    servers, rng = [], np.random.default_rng(1)
    try:
        servers.append(load.start_gemmd(GEMMD))
        servers.append(load.start_bare(os.path.join(BENCHES, "bench_bare")))
        with tempfile.TemporaryDirectory() as folder:
            for parameters in REQUESTS:
                case = load.Case(*parameters, rng, folder)
                rounds = load.take_turns(case, servers, options, random.Random(1))
                yield str(case), [seen["gemmd"]["rate"] / seen["bare"]["rate"] for seen in rounds]
    finally:
        for server in servers:
            server.stop()


def run_json(command):
    with tempfile.NamedTemporaryFile() as file:
        done = subprocess.run([*command, "--json", file.name], capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            raise SystemExit(f"{command[0]} ends with status {done.returncode}: {done.stdout}{done.stderr}")
        return json.load(file)["results"]


def measure_json(options):
    for row in run_json([os.path.join(BENCHES, "bench_json"), "--rounds", str(options.rounds)]):
        yield f"{row['direction']} {row['dtype']} {row['values']}", row["ratios"]


def measure_explain(options):
    def explain_s(port, what):
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/v1/explain/{what}")
        response = connection.getresponse()
        reply = response.read()
        connection.close()
        if response.status != 200:
            raise SystemExit(f"explain {what} answers {response.status}: {reply[:300]!r}")
        return time.monotonic() - begin

    server = load_laboratory().start_gemmd(GEMMD)
    try:
        for what in EXPLAINS:
            explain_s(server.port, what)
            yield what, against_work(lambda: explain_s(server.port, what), options.rounds)
    finally:
        server.stop()


def measure_start(options):
    load = load_laboratory()

    def start_s():
        begin = time.monotonic()
        server = load.start_gemmd(GEMMD)
        seconds = time.monotonic() - begin
        server.stop()
        return seconds

    start_s()
    yield "gemmd", against_work(start_s, options.rounds)


def measure_ci(options):
    if not os.path.exists(CI_SECONDS):
        raise LeftOut("tests/run.sh left no time here: it does when it ran the default suite in a fresh clone")
    with open(CI_SECONDS, encoding="ascii") as file:
        seconds = float(file.read())
    # The work a thousand times, so that the ratio is near 1.
    yield "a fresh clone", [1000 * work_s() / seconds for _ in range(options.rounds)]


def measure_gpu(options):
    if not gpu_name():
        raise LeftOut("there is no NVIDIA GPU")
    rounds = {}
    with tempfile.NamedTemporaryFile("w") as shapes:
        shapes.write(GPU_SHAPES)
        shapes.flush()
        for _ in range(min(options.rounds, 5)):
            for row in run_json(["build/gpu/bench_gpu", "--shapes", shapes.name, "--seconds", "0.05"]):
                share = row.get("percent_of_cublas" if row["op"] == "matmul" else "percent_of_copy")
                if row.get("auto") and share:
                    rounds.setdefault(f"{row['op']} {row['dtype']} {row['shape']}", []).append(share / 100)
    yield from rounds.items()


PARTS = {"http": measure_http, "json": measure_json, "explain": measure_explain, "start": measure_start,
         "ci": measure_ci, "gpu": measure_gpu}


# ---- The whole ----------------------------------------------------------------------------------


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.partition("\n")[0].strip()
    except OSError:
        return ""


def gpu_name():
    return first_line("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")


def machine():
    return {"device": first_line("sed", "-n", "s/^model name[^:]*: *//p", "/proc/cpuinfo"),
            "cores": os.cpu_count()} | ({"gpu": gpu_name()} if gpu_name() else {})


def measure(chosen, options):
    """Rows by their names, and the parts that were measured."""
    rows, parts = {}, set()
    for part in chosen:
        began = time.monotonic()
        try:
            rows |= {f"{part}: {name}": row_of(ratios) for name, ratios in PARTS[part](options)}
            parts.add(part)
            print(f"{part}: {time.monotonic() - began:.0f} s", flush=True)
        except LeftOut as reason:
            print(f"{part} is left out: {reason}", flush=True)
    return rows, parts


def record(path, rows, load_before):
    document = {"benchmark": "guard", "date": datetime.datetime.now(datetime.timezone.utc).isoformat()[:19] + "Z",
                "commit": first_line("git", "describe", "--always", "--dirty"), **machine(),
                "load_before": round(load_before, 2), "rows": rows}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    noisy = [name for name, row in rows.items() if row["spread"] > NOISE]
    for name, row in rows.items():
        print(f"{row['ratio']:9.3f}  rounds differ by {row['spread']:5.1%}  {name}")
    print(f"recorded in {path}" + (f"; {len(noisy)} rows are too noisy to decide anything: record them again "
                                   "on a quiet machine" if noisy else ""))


def report(path, rows, parts):
    """The exit status."""
    if not os.path.exists(path):
        print(f"there is no {path}: --record writes it")
        before = {"rows": {}}
    else:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        print(f"against commit {before['commit']}, {before['date'][:10]}")
        differs = [f"{key} {value}, then {before.get(key)}" for key, value in machine().items()
                   if value != before.get(key)]
        if differs:
            print("another machine than the baseline's: " + "; ".join(differs))
    words = compare(before["rows"], rows, parts)
    for name, word in words.items():
        old, now = before["rows"].get(name), rows.get(name)
        figures = " ".join(f"{row['ratio']:9.3f} +-{row['spread'] / 2:5.1%}" if row else " " * 17
                           for row in (old, now))
        change = f"{now['ratio'] / old['ratio'] - 1:+7.1%}" if old and now else " " * 7
        print(f"{word:9s} {figures} {change}  {name}")
    counts = ", ".join(f"{list(words.values()).count(word)} {word}" for word in sorted(set(words.values())))
    print(f"{len(words)} rows: {counts}")
    return status_of(words.values())


def main():
    parser = argparse.ArgumentParser(prog="guard", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", choices=PARTS, help="one part; with --record the file then has no other")
    parser.add_argument("--record", action="store_true", help="write the baseline of this kind of machine")
    parser.add_argument("--rounds", type=int, default=7, choices=range(3, 102), metavar="N")
    parser.add_argument("--seconds", type=int, default=1, help="of a server's turn in a round (1)")
    parser.add_argument("--self-test", action="store_true", help="whether it judges rightly")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    began, load_before = time.monotonic(), os.getloadavg()[0]
    rows, parts = measure([options.only] if options.only else PARTS, options)
    print(f"{time.monotonic() - began:.0f} s; load before {load_before:.1f}")
    if not rows:
        return 2
    kind = gpu_name().split()[-1].lower() if gpu_name() else "cpu"
    path = os.path.join(HERE, "results", f"guard_{kind}.json")
    if options.record:
        record(path, rows, load_before)
        return 0
    return report(path, rows, parts)


if __name__ == "__main__":
    sys.exit(main())
