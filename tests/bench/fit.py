#!/usr/bin/python3
"""Fits the numbers of the estimates to recorded times, and writes the table of a GPU model:

    tests/bench/fit.py --replay build/release/tests/bench/replay RESULTS.json... > kernels/choose/profiles/h200.inc
    tests/bench/fit.py --check ...        fits to one half of the shapes and judges by the other, twice

The model is the C code of kernels/choose, which `replay` evaluates. First the numbers of each variant are fitted
to its own times (least squares of the logarithms; the nearer a time is to the best of its shape, the more it
counts). Then all numbers together are moved to where the choice loses least. No number is set by hand: starting
values are the same for all variants. Kept from the table that exists are rows of variants without results, which
the new table names, and tile configs, because a result file has the time of one config a shape, that which was chosen.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIELDS = ("math", "shared", "l2", "dram", "step", "start", "pass")
START = {"math": 0.7, "shared": 0.7, "l2": 0.7, "dram": 0.85, "step": 400, "start": 500, "pass": 3000,
         "launch_us": 3, "pass_rate": 0.8}
# A share is of what the device can do at most, and no kernel does less than a hundredth. Cycles: up to some microseconds.
BOUNDS = {"step": (1, 2e4), "start": (50, 3e4), "pass": (500, 2e4), "launch_us": (0.5, 50)}
SHARES = (0.01, 1.15)
# Whose rows of the table a variant has, where the name of neither says so.
ROWS = {"transpose.skinny": ["transpose_tall", "transpose_wide"], "matmul.skinny": ["skinny_along", "skinny_across"]}
NEAR = 0.03


class Table:
    """The table as lines, and its numbers to be fitted as a vector."""

    def __init__(self, path):
        self.lines = path.read_text(encoding="utf-8").splitlines()
        listed = (ROOT / "kernels/choose/rates.def").read_text(encoding="utf-8")
        self.rates = re.findall(r"^GM_RATES_ROW\((\w+)\)", listed, re.M)
        self.names = ["launch_us", "pass_rate"] + [f"{row}.{field}" for row in self.rates for field in FIELDS]
        self.kept = [line for line in self.lines if line.startswith(("GM_TILE(", "GM_MULTISTAGE("))]
        self.measured = next(line for line in self.lines if line.startswith("GM_MEASURED_ON("))
        self.start = np.array([START[name.split(".")[-1]] for name in self.names])
        self.before = {}
        for row, numbers in re.findall(r"^GM_RATES\((\w+), (.*)\)$", "\n".join(self.lines), re.M):
            for field, number in zip(FIELDS, numbers.split(", ")):
                self.before[f"{row}.{field}"] = float(number)
        bounds = [BOUNDS.get(name.split(".")[-1], SHARES) for name in self.names]
        self.low, self.high = np.log(np.array(bounds)).T

    def text(self, numbers, head="", digits=17):
        values = dict(zip(self.names, numbers))
        out = [head] if head else []
        out.append(f"GM_LAUNCH({values['launch_us']:.{digits}g}, {values['pass_rate']:.{digits}g})")
        for row in self.rates:
            fields = ", ".join(f"{values[f'{row}.{field}']:.{digits}g}" for field in FIELDS)
            out.append(f"GM_RATES({row}, {fields})")
        return "\n".join(out + self.kept) + "\n"

    def rows_of(self, variant):
        op, name = variant.split(".")
        if variant in ROWS:
            return ROWS[variant]
        prefix = name if op == "matmul" else f"{op}_{name}"
        own = [row for row in self.rates if row == prefix or re.fullmatch(prefix + r"_(f64|half|shares|[0-9]+|vector|(f64|half)_\w+)", row)]
        return own if op != "matmul" else [row for row in own if not row.startswith(("transpose", "add", "flip", "copy"))]


class Data:
    """Recorded times, and the program that estimates them."""

    def __init__(self, replay, files, table):
        self.table, rows = table, []
        self.heads = []
        for number, path in enumerate(files):
            document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            self.heads.append({key: value for key, value in document.items() if key != "results"})
            rows += [(number, row) for row in document["results"]]
        self.process = subprocess.Popen([replay, "--serve", *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.us = np.array([row["median_us"] + row.get("prepare_us", 0) for _, row in rows])
        self.variant = np.array([f"{row['op']}.{row['variant']}" for _, row in rows])
        self.nothing = np.array([row["variant"] == "nothing" for _, row in rows])
        with_estimate = self.estimate(table.start) > 0
        self.used = with_estimate & ~self.nothing
        shapes = {}
        for index, (number, row) in enumerate(rows):
            if self.used[index]:
                shapes.setdefault((number, row["op"], row["dtype"], row["shape"]), []).append(index)
        self.shapes = list(shapes.values())
        self.labels = [" ".join(key[1:]) for key in shapes]
        self.width = max(len(shape) for shape in self.shapes)
        self.index = np.array([shape + [-1] * (self.width - len(shape)) for shape in self.shapes])
        self.there = self.index >= 0
        times = np.where(self.there, np.log(self.us[self.index]), np.inf)
        self.loss = np.where(self.there, times - times.min(1, keepdims=True), 0)
        self.best = np.full(len(rows), np.nan)
        for shape in self.shapes:
            self.best[shape] = self.us[shape].min()
        covered = {row for variant in set(self.variant[self.used]) for row in table.rows_of(variant)}
        self.unseen = [row for row in table.rates if row not in covered]
        for index, name in enumerate(table.names):
            if name.split(".")[0] in self.unseen and name in table.before:
                table.start[index] = table.before[name]

    def estimate(self, numbers, variant=""):
        """Of all rows, or of one variant's; 0 for the others."""
        text = self.table.text(numbers, self.table.measured).encode()
        self.process.stdin.write(f"{len(text)} {variant}\n".encode() + text)
        self.process.stdin.flush()
        return np.frombuffer(self.process.stdout.read(8 * len(self.us)))

    def logs(self, numbers, variant="", others=0.0):
        us = self.estimate(numbers, variant)
        return np.where(self.used & (us > 0), np.log(np.maximum(us, 1e-9)), others)

    def losses(self, numbers, shapes):
        logs = np.where(self.there, self.logs(numbers)[self.index], np.inf)[shapes]
        return np.expm1(self.loss[shapes][np.arange(len(shapes)), logs.argmin(1)])


def robust(errors, knee=0.1):
    size = np.abs(errors)
    return np.where(size < knee, 0.5 * size**2, knee * (size - 0.5 * knee)).sum()


def fit_variant(data, numbers, variant, among, rounds=25):
    """Levenberg-Marquardt on the weighted logarithms of one variant's times."""
    table = data.table
    rows = np.flatnonzero(data.used & (data.variant == variant) & among)
    free = [table.names.index(f"{row}.{field}") for row in table.rows_of(variant) for field in FIELDS]
    if len(rows) == 0 or not free:
        return numbers
    weight = np.minimum(1, data.best[rows] / data.us[rows])

    def errors(x):
        return (data.logs(x, variant.split(".")[1])[rows] - np.log(data.us[rows])) * weight

    numbers, damping = numbers.copy(), 1e-2
    error = errors(numbers)
    cost = robust(error)
    for _ in range(rounds):
        slopes = np.empty((len(rows), len(free)))
        for column, number in enumerate(free):
            moved = numbers.copy()
            moved[number] *= 1.003
            slopes[:, column] = (errors(moved) - error) / np.log(1.003)
        root = np.sqrt(np.minimum(1, 0.1 / np.maximum(np.abs(error), 1e-9)))
        square = (slopes * root[:, None]).T @ (slopes * root[:, None])
        gradient = slopes.T @ (error * root**2)
        logs = np.log(numbers[free])
        held = ((logs <= table.low[free] + 1e-9) & (gradient > 0)) | ((logs >= table.high[free] - 1e-9) & (gradient < 0))
        for _ in range(7):
            step = np.zeros(len(free))
            part = np.flatnonzero(~held)
            matrix = square + np.diag(damping * np.diag(square) + 1e-6)
            step[part] = -np.linalg.solve(matrix[np.ix_(part, part)], gradient[part])
            moved = numbers.copy()
            moved[free] = np.exp(np.clip(logs + np.clip(step, -1, 1), table.low[free], table.high[free]))
            moved_error = errors(moved)
            if robust(moved_error) < cost:
                break
            damping *= 5
        else:
            break
        gain = cost - robust(moved_error)
        numbers, error, cost, damping = moved, moved_error, cost - gain, max(damping / 5, 1e-7)
        if gain < 1e-4 * cost:
            break
    return numbers


def tune(data, numbers, shapes, rounds, said):
    """Moves all numbers to where the choice loses least, by a choice that is blurred less and less; how far
    estimates are from the times counts too, so that they stay estimates."""
    table = data.table
    rows = np.concatenate([data.shapes[shape] for shape in shapes])
    weight = np.minimum(1, data.best[rows] / data.us[rows])
    times = np.log(data.us[rows])
    costs = np.minimum(data.loss[shapes], 0.7) + np.where(data.loss[shapes] > np.log1p(NEAR), 0.02, 0)

    def cost_of(logs, blur):
        choice = np.where(data.there, logs[data.index], np.inf)[shapes]
        part = np.exp(-(choice - choice.min(1, keepdims=True)) / blur)
        part /= part.sum(1, keepdims=True)
        return (part * costs).sum(1).mean() + 0.3 * robust((logs[rows] - times) * weight) / len(shapes)

    owner = {row: variant.split(".")[1] for variant in set(data.variant[data.used]) for row in table.rows_of(variant)}
    owners = [owner.get(name.split(".")[0], "") for name in table.names]
    base = data.logs(numbers)
    free = []
    for number in range(len(numbers)):
        moved = numbers.copy()
        moved[number] *= 1.05
        if np.abs(data.logs(moved, owners[number], base) - base).max() > 1e-4:
            free.append(number)
    first, second = np.zeros(len(free)), np.zeros(len(free))
    for turn in range(rounds):
        blur = 0.06 * (1 / 3) ** (turn / max(1, rounds - 1))
        logs = data.logs(numbers)
        here = cost_of(logs, blur)
        slope = np.empty(len(free))
        for column, number in enumerate(free):
            moved = numbers.copy()
            moved[number] *= 1.005
            slope[column] = (cost_of(data.logs(moved, owners[number], logs), blur) - here) / np.log(1.005)
        first = 0.9 * first + 0.1 * slope
        second = 0.95 * second + 0.05 * slope**2
        step = 0.03 * (first / (1 - 0.9 ** (turn + 1))) / (np.sqrt(second / (1 - 0.95 ** (turn + 1))) + 1e-8)
        step *= min(1, 0.1 + 3 * (1 - turn / rounds))
        numbers = numbers.copy()
        numbers[free] = np.exp(np.clip(np.log(numbers[free]) - step, table.low[free], table.high[free]))
        if said and turn % 20 == 19:
            print(f"  round {turn + 1}: cost {here:.5f}, {summary(data.losses(numbers, shapes))}", file=sys.stderr, flush=True)
    return numbers, free


def summary(losses):
    return (f"{len(losses)} shapes: {np.mean(losses <= NEAR):.1%} within {NEAR:.0%} of the best, "
            f"{np.mean(losses <= 0.15):.1%} within 15 %, the worst {1 + losses.max():.2f} times it")


def fit(data, shapes, rounds, said=True):
    numbers = data.table.start.copy()
    among = np.zeros(len(data.us), bool)
    among[np.concatenate([data.shapes[shape] for shape in shapes])] = True
    numbers[0] = np.median(data.us[data.nothing]) if data.nothing.any() else numbers[0]
    for variant in sorted(set(data.variant[data.used])):
        numbers = fit_variant(data, numbers, variant, among)
    return tune(data, numbers, shapes, rounds, said)


HEAD = """/*
 * {file} - what the kernels do on an {gpu}: the numbers of the estimates (estimate.h).
 *
{made}
 *
 * GM_RATES(row, math, shared, l2, dram, step, start, pass)
 * GM_TILE(config, rate_1, rate_2, rate_full, start, scalar_b)
 */
GM_MEASURED_ON("{gpu}", "{driver}", "{date}", "{commit}")"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", default=str(ROOT / "build/release/tests/bench/replay"))
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "kernels/choose/profiles/h200.inc")
    parser.add_argument("--check", action="store_true", help="cross-validate, and write nothing")
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("results", nargs="+")
    args = parser.parse_args()
    data = Data(args.replay, args.results, Table(args.table))
    shapes = np.arange(len(data.shapes))
    if args.check:
        order = np.random.default_rng(1).permutation(shapes)
        for half in (0, 1):
            judged = np.sort(order[1 - half::2])
            numbers, _ = fit(data, np.sort(order[half::2]), args.rounds, False)
            losses = data.losses(numbers, judged)
            print(f"fitted to one half, judged by the other: {summary(losses)}")
            for worst in np.argsort(-losses)[:5]:
                print(f"  {1 + losses[worst]:.2f} times the best: {data.labels[judged[worst]]}", flush=True)
        return
    numbers, free = fit(data, shapes, args.rounds)
    print(f"{len(free)} numbers; {summary(data.losses(numbers, shapes))}", file=sys.stderr)
    head = data.heads[0]
    made = f"Made by tests/bench/fit.py from {', '.join(pathlib.Path(path).name for path in args.results)}."
    if data.unseen:
        made += f" As before, without results: {', '.join(data.unseen)}."
    print(data.table.text(numbers, HEAD.format(
        file=args.table.name, gpu=head["device"], driver=head.get("driver", "unknown"), date=head["date"][:10],
        commit=head["commit"], made=textwrap.fill(made, 100, initial_indent=" * ", subsequent_indent=" * ")), 4), end="")


if __name__ == "__main__":
    main()
