#!/usr/bin/env python3
"""Sets the account's percent_of_copy and percent_of_roofline against Nsight Compute's figures.

    limits.py URL NCU.csv NAMES --json RESULT.json [--device NAME] [--driver D] [--date D] [--commit C]

URL: a gemmd on the same GPU, which is sent each run; NCU.csv and NAMES: what Nsight Compute and
profile_gpu say of it,

    ncu --csv --page raw --clock-control none --log-file NCU.csv --metrics METRICS \\
        profile_gpu --limits >NAMES

METRICS being what `limits.py metrics` prints. A kernel's share of a copy is, by Nsight, its DRAM
throughput by that of the second run, a copy behind another; its share of the arithmetic roof is how busy
its multiply-adds keep the FP32 lanes. tests/bench/tables.py makes a table of the result.
"""
import argparse
import io
import json
import sys
import urllib.request

import counters

DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
BYTES = "dram__bytes.sum"
FMA = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.pct_of_peak_sustained_elapsed"
TIME = "gpu__time_duration.sum"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
METRICS = [DRAM, BYTES, FMA, TIME, SM]
TYPES = {"f16": "f2", "f32": "f4", "f64": "f8"}
REPEAT = 20


def account(url, name):
    """The account of the run: op, variant, element type, shapes of the operands."""
    import numpy
    op, kernel, dtype, *shapes = name.split()
    body = io.BytesIO()
    random = numpy.random.default_rng(1)
    for shape in shapes:
        sides = [int(side) for side in shape.split("x")]
        numpy.save(body, random.standard_normal(sides, dtype="f4").astype(TYPES[dtype]))
    request = urllib.request.Request(f"{url}/v1/{op}?kernel={kernel}&repeat={REPEAT}", body.getvalue(),
                                     {"Content-Type": "application/x-npy"})
    with urllib.request.urlopen(request) as reply:
        reply.read()
        return json.loads(reply.headers["Gemmd-Stats"])


def row(name, stats, kernel, copy):
    ours = "percent_of_roofline" if stats["bound"] == "compute" else "percent_of_copy"
    theirs = kernel[FMA] if stats["bound"] == "compute" else 100 * kernel[DRAM] / copy[DRAM]
    return {"run": name, "figure": ours, "account": stats[ours], "nsight": theirs,
            "kernel_us": stats["us"]["kernel"], "stats": stats, "counters": kernel}


def main():
    if sys.argv[1:] == ["metrics"]:
        return print(",".join(METRICS))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("url", "ncu", "names"):
        parser.add_argument(name)
    parser.add_argument("--json", required=True)
    for name in ("device", "driver", "date", "commit"):
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args()
    kernels = [{metric: counters.number(kernel[metric]) for metric in METRICS}
               for kernel in counters.read_ncu(args.ncu)]
    with open(args.names) as file:
        names = [line.strip() for line in file if "==" not in line]
    if len(names) != len(kernels):
        raise SystemExit(f"{len(names)} runs, and {len(kernels)} kernels were profiled")
    rows = [row(name, account(args.url, name), kernel, kernels[1])
            for name, kernel in list(zip(names, kernels))[2:]]
    for each in rows:
        print(f"{each['run']}: {each['figure']} {each['account']:.1f}, Nsight {each['nsight']:.1f}")
    result = {"benchmark": "limits", "device": args.device, "driver": args.driver, "date": args.date,
              "commit": args.commit, "runs": rows}
    with open(args.json, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
