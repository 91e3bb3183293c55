#!/usr/bin/env python3
"""Makes one result file of several runs of bench_kernels --draw: the least time of each variant, a row for each shape.

least.py OUT.json RUN.json...  Runs of one seed have the same shapes; those of several seeds follow one another. All are of one
number of threads and one BLAS.
"""

import json
import sys

FACTS = ("device", "detail", "cores", "vector_bytes", "own_cache_bytes", "tuned_blas", "commit")


def main(out, *names):
    documents = []
    for name in names:
        with open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    head = {fact: documents[0][fact] for fact in FACTS}
    for name, document in zip(names, documents):
        if head != {fact: document[fact] for fact in FACTS}:
            sys.exit(f"{name} is of another device or commit than {names[0]}")
    shapes, runs = {}, {}
    for document in documents:
        seen = set()
        for row in document["results"]:
            key = (row["op"], row["dtype"], row["shape"])
            least = shapes.setdefault(key, {})
            least[row["variant"]] = min(row["least_us"], least.get(row["variant"], row["least_us"]))
            seen.add(key)
        for key in seen:
            runs[key] = runs.get(key, 0) + 1
    head = {"benchmark": "bench_kernels --draw", **head, "date": documents[0]["date"],
            "shapes": f"drawn at random; the least of {min(runs.values())} runs or more"}
    rows = [json.dumps({"op": op, "dtype": dtype, "shape": shape, "us": {k: float(f"{v:.4g}") for k, v in least.items()}},
                       separators=(",", ":")) for (op, dtype, shape), least in shapes.items()]
    with open(out, "w", encoding="utf-8") as file:
        file.write(json.dumps(head, indent=1)[:-2] + ',\n "results": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n")


main(*sys.argv[1:])
