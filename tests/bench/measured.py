#!/usr/bin/python3
"""Writes kernels/measured_h200.def from the times of bench_gpu, for reports that quote them:

    tests/bench/measured.py tests/bench/results/kernels_h200.json > kernels/measured_h200.def
"""
import json
import sys

HEAD = """/*
 * measured_h200.def - is what each variant took on an H200: one row for each operation, type and
 * shape.
 *
 * Made by tests/bench/measured.py from tests/bench/results/kernels_h200.json. Microseconds: medians,
 * passes before the kernel included. A copy is cudaMemcpy's of as many bytes.
 *
 * GM_MEASURED(operation, element type, shapes, a copy, times)
 */
"""
UNNAMED = ("nothing", "cudaMemcpy")


def number(value):
    return f"{value:.4g}" if value < 9999 else f"{value:.0f}"


def copy_us(rows):
    """What a copy of as many bytes takes, at the rate that it had; 0 where that was not timed."""
    for row in rows:
        if row.get("percent_of_copy"):
            return row["percent_of_copy"] / 100 * row["median_us"]
    return 0


def make(document):
    yield HEAD
    shapes = {}
    for row in document["results"]:
        shapes.setdefault((row["op"], row["dtype"], row["shape"]), []).append(row)
    for (op, dtype, shape), rows in shapes.items():
        times = " ".join(f"{row['variant']} {number(row['median_us'] + row.get('prepare_us', 0))}"
                         for row in rows if row["variant"] not in UNNAMED)
        yield (f'GM_MEASURED(GM_OP_{op.upper()}, GM_{dtype.upper()}, "{shape}", {number(copy_us(rows))},\n'
               f'            "{times}")\n')


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    sys.stdout.writelines(make(document))


if __name__ == "__main__":
    main()
