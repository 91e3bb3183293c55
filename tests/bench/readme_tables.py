#!/usr/bin/python3
"""Rewrites the tables of README.md and kernels/README.md, between their markers, from result files:

    build/release/tests/bench/bench_kernels --json tests/bench/results/kernels_cpu.json
    bench_gpu --json tests/bench/results/kernels_h200.json              (on a machine with a GPU)
    tests/gpu/counters.py ... --json tests/bench/results/counters_h200.json
    ./tests/bench/readme_tables.py tests/bench/results/*.json
"""

import json
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))
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


# Of the GPU: what the textbook says, in numbers.
LESSON = [
    ("copy", "f32", "8192x8192"),
    ("transpose", "f32", "8192x8192"),
    ("transpose", "f32", "8191x8193"),
    ("matmul", "f32", "8192x8192 8192x8192"),
    ("matmul", "f32", "4096x4096 4096x4096^T"),
    ("matmul", "i32", "4096x4096 4096x4096"),
    ("add", "f32", "8192x8192 8192x8192"),
    ("add", "f32", "16777216x3 16777216x3"),
    ("flip", "f32", "8192x8192"),
]


def gpu_table(document):
    link = "tests/bench/results/" + document["file"]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit'][:12]}: "
        f"{document['device']}, driver {document['driver']}, SM clock {document['sm_clock_mhz']} MHz. "
        f"Copy is the better of cudaMemcpy and our copy kernels, beyond the L2 cache. "
        f"All shapes and types are in [the result file]({link}).\n\n"
    )
    yield "| operation | type | shape | kernel | time (us) | GB/s | % of copy | GFLOP/s | % of cuBLAS |\n"
    yield "|---|---|---|---|--:|--:|--:|--:|--:|\n"
    for op, dtype, shape in LESSON:
        rows = [row for row in document["results"]
                if (row["op"], row["dtype"], row["shape"]) == (op, dtype, shape)]
        assert rows, f"{op} {dtype} {shape} is not in the result file"
        for row in rows:
            prepare = f" + {number(row['prepare_us'])} to prepare" if row.get("prepare_us") else ""
            yield (
                f"| {op} | {dtype} | {shape} | {row['variant']} | {number(row['median_us'])}{prepare} | "
                f"{number(row.get('gbs'))} | {number(row.get('percent_of_copy'))} | "
                f"{number(row.get('gflops'))} | {number(row.get('percent_of_cublas'))} |\n"
            )


def counted(run, name):
    ours, theirs = run["sim"][name], run["gpu"][name]
    return f"{ours:,.0f}" if ours == theirs else f"{ours:,.0f} / **{theirs:,.0f}**"


def counters_table(document):
    link = "../tests/bench/results/" + document["file"]
    columns = [name for name in document["metrics"] if not name.endswith("_requests")]
    yield (
        f"Counted on {document['date'][:10]} at commit {document['commit'][:12]} by Nsight Compute on "
        f"{document['device']}, driver {document['driver']}. One number: both counted the same; two: the "
        f"simulator's, and the GPU's in bold. Requests are in [the result file]({link}).\n\n"
    )
    yield "| run | " + " | ".join(name.replace("_", " ") for name in columns) + " |\n"
    yield "|---|" + "--:|" * len(columns) + "\n"
    for run in document["runs"]:
        cells = [counted(run, name) for name in columns]
        yield f"| {run['run']} | {' | '.join(cells)} |\n"


# Kind of result file -> the file with its markers, and what goes between them.
TABLES = {
    "bench_kernels": ("README.md", table),
    "bench_gpu": ("README.md", gpu_table),
    "counters": ("kernels/README.md", counters_table),
}


def rewrite(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    document["file"] = os.path.basename(path)
    kind = document.get("benchmark", "bench_kernels")
    target, make = TABLES[kind]
    begin, end = f"<!-- {kind}: begin -->\n", f"<!-- {kind}: end -->\n"
    target = os.path.join(ROOT, target)
    with open(target, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert rest and after, f"{target} has no markers for {kind}"
    with open(target, "w", encoding="utf-8") as file:
        file.write(before + begin + "".join(make(document)) + end + after)


def main():
    for path in sys.argv[1:]:
        rewrite(path)


if __name__ == "__main__":
    main()
