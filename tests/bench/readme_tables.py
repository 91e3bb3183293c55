#!/usr/bin/python3
"""Rewrites the table of README.md between its bench_kernels markers from a result file:

    build/release/tests/bench/bench_kernels --json tests/bench/results/kernels_cpu.json
    ./tests/bench/readme_tables.py tests/bench/results/kernels_cpu.json
"""

import json
import os
import sys

README = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")
BEGIN, END = "<!-- bench_kernels: begin -->\n", "<!-- bench_kernels: end -->\n"
# What a reader wants to see first; the file has the rest.
SHOWN = [
    ("copy", "u8", "1x134217728"),
    ("transpose", "f32", "4096x4096"),
    ("transpose", "u8", "4096x4096"),
    ("matmul", "f32", "64x64 64x64"),
    ("matmul", "f32", "1024x1024 1024x1024"),
    ("matmul", "f64", "1024x1024 1024x1024"),
    ("matmul", "bf16", "1024x1024 1024x1024"),
    ("matmul", "i32", "1024x1024 1024x1024"),
]


def number(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}" if value < 1000 else f"{value:,.0f}"


def table(document):
    link = "tests/bench/results/" + document["file"]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit'][:12]}: "
        f"{document['device']}, {document['cores']} cores, {document['detail']}. "
        f"Copy ceiling {number(document['copy_gbs'])} GB/s, "
        f"arithmetic ceiling {number(document['peak_gflops_f32'])} GFLOP/s in f32. "
        f"All shapes are in [the result file]({link}). A star marks what `auto` chooses.\n\n"
    )
    yield "| operation | type | shape | kernel | time (us) | GB/s | % of copy | GFLOP/s | % of peak |\n"
    yield "|---|---|---|---|--:|--:|--:|--:|--:|\n"
    for op, dtype, shape in SHOWN:
        rows = [
            row
            for row in document["results"]
            if (row["op"], row["dtype"], row["shape"]) == (op, dtype, shape)
        ]
        assert rows, f"{op} {dtype} {shape} is not in the result file"
        for row in rows:
            star = " *" if row["auto"] else ""
            yield (
                f"| {op} | {dtype} | {shape} | {row['variant']}{star} | {number(row['median_us'])} | "
                f"{number(row.get('gbs'))} | {number(row.get('percent_of_copy'))} | "
                f"{number(row.get('gflops'))} | {number(row.get('percent_of_peak'))} |\n"
            )


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    document["file"] = os.path.basename(sys.argv[1])
    with open(README, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert rest and after, "README.md has no markers"
    with open(README, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "".join(table(document)) + END + after)


if __name__ == "__main__":
    main()
