#!/usr/bin/python3
"""Sets the estimates of /v1/explain against the times that a result file has of an H200:

    tests/bench/estimates.py http://127.0.0.1:8080 tests/bench/results/kernels_h200.json

It takes a quarter of an hour. The numbers of server/api/explain/estimate.c were fitted to one half of the
shapes and are judged by the other.
"""
import json
import math
import random
import sys
import urllib.error
import urllib.parse
import urllib.request

UNTRACED = ("nothing", "cublas", "cudaMemcpy")


def estimate_us(base, row):
    """None where the kernel runs too long to be traced to its end."""
    query = {"format": "json", "gpu": "H200", "kernel": row["variant"], "dtype": row["dtype"]}
    for name, shape in zip("ab", row["shape"].split()):
        query["shape_" + name] = shape.removesuffix("^T")
        if shape.endswith("^T"):
            query["trans" + name] = "true"
    url = f"{base}/v1/explain/{row['op']}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply)["totals"].get("estimate", {}).get("us")


def judge(name, pairs):
    """pairs: (shape, measured, estimated)."""
    near = sum(abs(estimated / measured - 1) < 0.25 for _, measured, estimated in pairs)
    shapes = {}
    for shape, measured, estimated in pairs:
        shapes.setdefault(shape, []).append((measured, estimated))
    right = total = 0
    for times in shapes.values():
        for i, (measured, estimated) in enumerate(times):
            for other_measured, other_estimated in times[:i]:
                if abs(math.log(measured / other_measured)) > math.log(1.1):
                    total += 1
                    right += (measured < other_measured) == (estimated < other_estimated)
    print(f"{name}: {near / len(pairs):.1%} of {len(pairs)} within 25 %; order right in {right / total:.1%} of {total} pairs")


def main():
    base, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["results"] if row["variant"] not in UNTRACED]
    shapes = sorted({(row["op"], row["dtype"], row["shape"]) for row in rows})
    fitted = set(random.Random(1).sample(shapes, len(shapes) // 2))
    halves = {True: [], False: []}
    for row in rows:
        try:
            us = estimate_us(base, row)
        except urllib.error.HTTPError:
            continue  # a variant that this build does not have
        if us:
            shape = row["op"], row["dtype"], row["shape"]
            halves[shape in fitted].append((shape, row["median_us"], us))
    judge("fitted to", halves[True])
    judge("not fitted to", halves[False])


if __name__ == "__main__":
    main()
