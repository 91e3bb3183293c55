#!/usr/bin/python3
"""Draws operations at random, as a list for bench_gpu, so that choices are judged by shapes that nobody chose:

    tests/bench/fresh.py --seed 7 --count 300 > fresh.shapes
    bench_gpu --shapes fresh.shapes --seconds 0.01 --json fresh.json

Six tenths are products, two and a half transposes, the others sums and flips; of all types, by the logarithms of
their sides: squares and thin ones, single ones and stacks, a third of them whole vectors, and a third any number.
"""
import argparse
import math
import random

MOVED_BYTES = 400e6
MULTIPLY_ADDS = {"f32": 2e10, "f16": 4e9, "bf16": 4e9, "f64": 5e9, "i32": 5e9, "i64": 2e9}
SIZES = {"u8": 1, "f16": 2, "bf16": 2, "f32": 4, "i32": 4, "f64": 8, "i64": 8, "c128": 16}


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, low, high, multiple=1):
        value = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return max(multiple, round(value / multiple) * multiple)

    def side(self, low, high):
        return self.number(low, high, self.random.choices((1, 4, 16), (4, 3, 3))[0])

    def product(self):
        dtype = self.random.choices(("f32", "f64", "f16", "bf16", "i32", "i64"), (50, 12, 12, 8, 12, 6))[0]
        kind = self.random.choices(("single", "square", "thin", "stack", "thin stack", "inner"), (35, 15, 20, 18, 7, 5))[0]
        batch = self.number(2, 4000) if "stack" in kind else 1
        most = 320 if kind == "stack" else 1500 if kind == "thin stack" else 5000
        m, n, k = (self.side(8, most) for _ in range(3))
        if kind == "square":
            m = n = k
        if "thin" in kind:
            few, lines = self.random.randint(1, 8), self.number(8, 20000 if batch == 1 else 1500)
            m, n = (few, lines) if self.random.random() < 0.5 else (lines, few)
        if kind == "inner":
            m, n, k = self.random.randint(1, 4), self.random.randint(1, 4), self.number(100, 10000000)
        transposed = [self.random.random() < 0.2, self.random.random() < 0.2]
        a, b = (f"{k}x{m}" if transposed[0] else f"{m}x{k}"), (f"{n}x{k}" if transposed[1] else f"{k}x{n}")
        if batch > 1:
            a, b = f"{batch}x{a}", f"{batch}x{b}"
        small = batch * (m * k + k * n + m * n) * SIZES[dtype] <= MOVED_BYTES and batch * m * n * k <= MULTIPLY_ADDS[dtype]
        options = [name for name, is_set in zip(("transa", "transb"), transposed) if is_set]
        return " ".join(["matmul", dtype, a, b, *options]) if small else self.product()

    def matrix(self, low, high):
        kind = self.random.choices(("matrix", "thin", "stack"), (45, 35, 20))[0]
        rows, cols = self.side(low, high), self.side(low, high)
        if kind == "thin":
            rows, cols = self.number(2, 300), self.number(1000, 4000000)
            if self.random.random() < 0.5:
                rows, cols = cols, rows
        if kind == "stack":
            return self.number(2, 20000), self.number(2, 300), self.number(2, 300)
        return 1, rows, cols

    def moved(self, op):
        dtype = self.random.choice(("f32", "f32", "f16", "f64") + (("i32",) if op == "add" else ("u8", "c128")))
        batch, rows, cols = self.matrix(8, 12000)
        if not 1e3 < batch * rows * cols * SIZES[dtype] <= MOVED_BYTES:
            return self.moved(op)
        shape = f"{batch}x{rows}x{cols}" if batch > 1 else f"{rows}x{cols}"
        other = self.random.choices((shape, f"1x{cols}", f"{rows}x1"), (6, 2, 2))[0] if op == "add" else ""
        return f"{op} {dtype} {shape} {other}".rstrip()

    def line(self):
        op = self.random.choices(("matmul", "transpose", "add", "flip"), (60, 25, 8, 7))[0]
        return self.product() if op == "matmul" else self.moved(op)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    draw = Draw(args.seed)
    print(f"# {args.count} operations, drawn by tests/bench/fresh.py --seed {args.seed}.")
    for _ in range(args.count):
        print(draw.line())


if __name__ == "__main__":
    main()
