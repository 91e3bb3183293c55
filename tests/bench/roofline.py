#!/usr/bin/python3
"""Draws the kernels of a GPU under its roofline:

    ./tests/bench/roofline.py KERNELS.json COUNTERS.json > ROOFLINE.svg

Up: the GFLOP/s that bench_gpu measured on large f32 operands. Across: operations for each byte that
the kernel asks of global memory, which the GPU counted (COUNTERS.json, a smaller shape of whole
tiles, where the ratio is nearly the same). The roofs: what the copy reached, and the fp32 units'
peak. A kernel above the slope has its bytes from the caches.
"""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 460, 70, 50, 40, 20
X_MIN, X_MAX, Y_MIN, Y_MAX = 0.015, 300.0, 50.0, 200000.0
# (operation, shape that was timed, run that was counted)
SHOWN = [
    ("matmul", "8192x8192 8192x8192", "256x256 256x256"),
    ("add", "16777216x3 16777216x3", "262144x3 262144x3"),
]
# Their tiles depend on the shape.
UNLIKE = ("multistage_tuned", "small_tile")
# In print and without colours each operation has a mark of its own.
MARKS = {"matmul": "circle", "add": "square"}


def x_of(intensity):
    span = math.log10(X_MAX / X_MIN)
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(intensity / X_MIN) / span


def y_of(gflops):
    span = math.log10(Y_MAX / Y_MIN)
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * math.log10(gflops / Y_MIN) / span


def flops_of(run):
    op, _, _, shape = run.split()[:4]
    rows, cols = (int(n) for n in shape.split("x"))
    return 2 * rows * cols * rows if op == "matmul" else rows * cols


def points(kernels, counters):
    counts = {run["run"]: run["gpu"] for run in counters["runs"]}
    for op, shape, counted in SHOWN:
        for row in kernels["results"]:
            if (row["op"], row["dtype"], row["shape"]) != (op, "f32", shape):
                continue
            run = f"{op} {row['variant']} f32 {counted}"
            if run not in counts or row["variant"] in UNLIKE:
                continue
            moved = 32 * (counts[run]["global_load_sectors"] + counts[run]["global_store_sectors"])
            yield op, row["variant"], flops_of(run) / moved, row["gflops"]


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def mark(op, x, y):
    if MARKS[op] == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="black"/>'
    return (f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="white" '
            f'stroke="black" stroke-width="2"/>')


def grid():
    for power in range(-1, 3):
        x = x_of(10.0 ** power)
        yield f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ccc"/>'
        yield text(x, HEIGHT - BOTTOM + 18, f"{10.0 ** power:g}", "middle")
    for power in range(2, 6):
        y = y_of(10.0 ** power)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ccc"/>'
        yield text(LEFT - 8, y + 4, f"{10 ** power:,}", "end")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10,
               "operations for each byte asked of global memory", "middle")
    yield text(LEFT, TOP - 22, "GFLOP/s", "middle")


def roofs(kernels, peak):
    copy = max(row.get("gbs", 0) for row in kernels["results"] if row["op"] == "copy")
    ridge = peak / copy
    yield (f'<path d="M{x_of(X_MIN):.1f} {y_of(max(copy * X_MIN, Y_MIN)):.1f}L{x_of(ridge):.1f} '
           f'{y_of(peak):.1f}H{WIDTH - RIGHT}" fill="none" stroke="black" stroke-width="2"/>')
    yield text(x_of(2.4), y_of(copy * 2.4) - 10, f"copy: {copy:,.0f} GB/s", "end")
    yield text(WIDTH - RIGHT, y_of(peak) - 8, f"fp32 units: {peak:,.0f} GFLOP/s", "end")
    blas = [row["gflops"] for row in kernels["results"]
            if (row["op"], row["dtype"], row["variant"], row["shape"]) ==
            ("matmul", "f32", "cublas", "8192x8192 8192x8192")]
    if blas:
        y = y_of(blas[0])
        yield f'<path d="M{x_of(ridge):.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="black" stroke-dasharray="6 4"/>'
        yield text(WIDTH - RIGHT, y + 16, f"cuBLAS: {blas[0]:,.0f} GFLOP/s", "end")


def draw(kernels, counters):
    # 128 fp32 units a multiprocessor, each a multiplication and an addition a cycle.
    peak = kernels["multiprocessors"] * 128 * 2 * kernels["sm_clock_max_mhz"] / 1000
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           f'font-family="sans-serif" fill="black">')
    yield (f"<title>Roofline of {kernels['device']}</title><desc>Measured rates of matrix products "
           f"(discs) and sums (squares) in f32 against what they ask of memory.</desc>")
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield from grid()
    yield from roofs(kernels, peak)
    yield text(WIDTH / 2, TOP - 22, f"{kernels['device']}, {kernels['date'][:10]}", "middle", 14)
    shown = list(points(kernels, counters))
    for op, name, intensity, gflops in shown:
        x, y = x_of(intensity), y_of(gflops)
        yield mark(op, x, y)
        if op == "matmul":
            right = intensity < 10  # else the roofs' names are there
            yield text(x + 9 if right else x - 9, y + 4, f"matmul {name}", "start" if right else "end")
    # The sums are close together: their names go in a column beside them, with a line to each.
    column, at = x_of(0.2), y_of(1000)
    for op, name, intensity, gflops in sorted(shown, key=lambda point: -point[3]):
        if op != "add":
            continue
        x, y = x_of(intensity), y_of(gflops)
        yield text(column, at + 4, f"add {name}, {gflops:.0f}", size=11)
        yield f'<path d="M{x + 5:.1f} {y:.1f}L{column - 3:.1f} {at:.1f}" stroke="black" stroke-width="0.5"/>'
        at += 15
    yield "</svg>"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        kernels = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        counters = json.load(file)
    print("\n".join(draw(kernels, counters)))


if __name__ == "__main__":
    main()
