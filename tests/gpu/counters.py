#!/usr/bin/env python3
"""Sets the simulator's counts against those of a GPU, and writes what came of it.

    counters.py NCU.csv SIM.jsonl --json RESULT.json [--device NAME] [--driver D] [--date D] [--commit C]

NCU.csv: profile_gpu under Nsight Compute (ncu --csv --page raw --metrics ...: METRICS below);
SIM.jsonl: what profile_sim prints. tests/bench/tables.py makes a table of the result.
"""
import argparse
import csv
import json

# Of ours -> Nsight Compute's.
METRICS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_requests": "smsp__inst_executed_op_shared_ld.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_requests": "smsp__inst_executed_op_shared_st.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def read_ncu(path):
    """A dictionary a kernel that was launched, in order."""
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = list(csv.reader(lines))
    header = rows[0]
    # The second row has the units.
    return [dict(zip(header, row)) for row in rows[2:]]


def read_sim(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def number(text):
    return float(text.replace(",", "")) if text else 0.0


def pair(runs, kernels):
    """(run, its computing kernels' counters added up), and nothing left over."""
    at = 0
    for run in runs:
        counters = dict.fromkeys(METRICS, 0.0)
        for computes in run["computes"]:
            kernel = kernels[at]
            at += 1
            if computes:
                for ours, theirs in METRICS.items():
                    counters[ours] += number(kernel[theirs])
        yield run, counters
    if at != len(kernels):
        raise SystemExit(f"{len(kernels)} kernels were profiled, and the simulator has {at}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ncu")
    parser.add_argument("sim")
    parser.add_argument("--json", required=True)
    for name in ("device", "driver", "date", "commit"):
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args()
    rows = [{"run": run["run"], "sim": {name: run[name] for name in METRICS}, "gpu": counters}
            for run, counters in pair(read_sim(args.sim), read_ncu(args.ncu))]
    result = {"benchmark": "counters", "device": args.device, "driver": args.driver, "date": args.date,
              "commit": args.commit, "metrics": METRICS, "runs": rows}
    with open(args.json, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
