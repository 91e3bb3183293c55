#!/usr/bin/python3
"""Draws what load.py measured, a line for each case:

    tests/bench/load/plot.py LOAD.json > LOAD.svg

Across: requests a second, on a logarithmic scale, so that equal distances are equal ratios.
"""

import json
import math
import sys

WIDTH, LEFT, RIGHT, TOP, BOTTOM, ROW = 760, 240, 30, 64, 50, 26
# In print and without colours each server has a mark of its own.
MARKS = [
    ("gemmd,", '<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="white" stroke="black" stroke-width="1.5"/>'),
    ("gemmd", '<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="black"/>'),
    ("bare, ", '<path d="M{x:.1f} {y:.1f}m-5-5h10v10h-10z" fill="#999" stroke="black" stroke-width="1.5"/>'),
    ("bare", '<path d="M{x:.1f} {y:.1f}m-5-5h10v10h-10z" fill="white" stroke="black" stroke-width="1.5"/>'),
    ("FastAPI, 1", '<path d="M{x:.1f} {y:.1f}m0-6l6 11h-12z" fill="white" stroke="black" stroke-width="1.5"/>'),
    ("FastAPI, ", '<path d="M{x:.1f} {y:.1f}m0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z" fill="#999" stroke="black"/>'),
    ("Triton", '<path d="M{x:.1f} {y:.1f}m-5-5l10 10m0-10l-10 10" stroke="black" stroke-width="2.5"/>'),
]
NAMES = {"bare": "the HTTP library alone", "bare, suspends": "the library, resuming requests",
         "gemmd, device=cuda": "gemmd, all on the GPU", "gemmd, /v1 raw": "gemmd, /v1 raw beside /v2"}


def mark_of(name):
    return next(shape for begin, shape in MARKS if name.startswith(begin))


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def label(row):
    connections = f"{row['connections']} connection{'s' * (row['connections'] > 1)}"
    return f"{row['op']} {row['size']}x{row['size']} {row['format']}, {connections}"


def draw(document):
    rows = document["results"]
    rates = [seen["rate"] for row in rows for seen in row["servers"].values()]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))
    height = TOP + ROW * len(rows) + BOTTOM

    def x_of(rate):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(rate) - low) / (high - low)

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
           f'font-family="sans-serif" fill="black">')
    yield ("<title>Requests a second of gemmd and others</title><desc>For each case the rates of gemmd, "
           "of the HTTP library by itself, of FastAPI with NumPy, and of Triton with NumPy.</desc>")
    yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    yield text(WIDTH / 2, 20, f"{document['device']}, {document['cores']} cores, {document['date'][:10]}",
               "middle", 14)
    at = 20
    for name in dict.fromkeys(name for row in rows for name in row["servers"]):
        yield mark_of(name).format(x=at, y=42)
        yield text(at + 10, 46, NAMES.get(name, name))
        at += 30 + 6 * len(NAMES.get(name, name))
    for power in range(low, high + 1):
        x = x_of(10.0**power)
        yield f'<path d="M{x:.1f} {TOP}V{height - BOTTOM}" stroke="#ccc"/>'
        yield text(x, height - BOTTOM + 18, f"{10.0**power:,g}" if power < 0 else f"{10**power:,}", "middle")
    yield text((LEFT + WIDTH - RIGHT) / 2, height - 12, "requests a second", "middle")
    for i, row in enumerate(rows):
        y = TOP + ROW * (i + 0.5)
        ends = [x_of(seen["rate"]) for seen in row["servers"].values()]
        yield text(LEFT - 12, y + 4, label(row), "end")
        yield f'<path d="M{min(ends):.1f} {y:.1f}H{max(ends):.1f}" stroke="#999"/>'
        # gemmd last, so that nothing lies over it.
        for name, seen in reversed(row["servers"].items()):
            yield mark_of(name).format(x=x_of(seen["rate"]), y=y)
    yield "</svg>"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(draw(json.load(file))))


if __name__ == "__main__":
    main()
