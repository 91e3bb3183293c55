#!/usr/bin/env python3
"""Sets the simulator's counts against those of a GPU, and writes what came of it.

    counters.py NCU.csv SIM.jsonl --json RESULT.json [--device NAME] [--driver D] [--date D] [--commit C]

NCU.csv: profile_gpu under Nsight Compute (ncu --csv --page raw --metrics ...: METRICS below);
SIM.jsonl: what profile_sim prints. tests/bench/tables.py makes a table of the result.

With --rows NCU.csv is what tests/gpu/stalls.sh wrote, and SIM.jsonl of profile_sim --rows: RESULT.json is
there already, and gets the stalls, hit rates and registers of each run beside the counts that it has, and
beside those what /v1/explain of the gemmd at --explain URL says of the run. With --explain alone only what it
says is asked for again, which takes no GPU:

    counters.py --explain http://127.0.0.1:8080 --json RESULT.json
"""
import argparse
import csv
import json
import re
import urllib.parse
import urllib.request

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


STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
# Warps that issue, or could have: they wait for nothing.
READY = "selected", "not_selected"
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
READS = "lts__t_sectors_srcunit_tex_op_read"
SUMS = {
    "us": "gpu__time_duration.sum",
    "instructions": "smsp__inst_executed.sum",
    "instructions_fma": "smsp__inst_executed_pipe_fma.sum",
    "instructions_alu": "smsp__inst_executed_pipe_alu.sum",
    "instructions_lsu": "smsp__inst_executed_pipe_lsu.sum",
    "lsu_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1_load_sectors": LOADS + ".sum",
    "l1_load_hits": LOADS + "_lookup_hit.sum",
    "l2_read_sectors": READS + ".sum",
    "l2_read_hits": READS + "_lookup_hit.sum",
    "l2_write_sectors": "lts__t_sectors_srcunit_tex_op_write.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
}
# Of the longest of several kernels.
FIGURES = {
    "registers_per_thread": "launch__registers_per_thread",
    "waves": "launch__waves_per_multiprocessor",
    "occupancy_percent": "sm__maximum_warps_per_active_cycle_pct",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_percent": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "lsu_wavefronts_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
}
UNITS = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
         "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "byte": 1}


def read_ncu(path):
    """A dictionary a kernel that was launched, in order."""
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = list(csv.reader(lines))
    header = rows[0]
    # The second row has the units.
    read_ncu.units = dict(zip(header, rows[1]))
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


def value(kernel, metric):
    return number(kernel[metric]) * UNITS.get(read_ncu.units[metric], 1)


def seen(run, kernels):
    """What Nsight Compute saw of the kernels of a run that compute."""
    row = {"run": run["run"]}
    row.update({name: sum(value(kernel, metric) for kernel in kernels) for name, metric in SUMS.items()})
    longest = max(kernels, key=lambda kernel: value(kernel, SUMS["us"]))
    row.update({name: value(longest, metric) for name, metric in FIGURES.items()})
    stalls = {STALL.fullmatch(name)[1]: number(text) for name, text in longest.items() if STALL.fullmatch(name)}
    total = sum(stalls.values())
    # A part of the time of a warp, on average, from one instruction to the next.
    row["stalls_percent"] = {name: round(100 * cycles / total, 2) for name, cycles in
                             sorted(stalls.items(), key=lambda stall: -stall[1]) if cycles > 0.005 * total}
    return row


def explained(url, gpu, name):
    """What /v1/explain says of a run that can be set beside what was seen."""
    op, kernel, dtype, shapes = name.split(" ", 3)
    query = {"format": "json", "gpu": gpu, "kernel": kernel, "dtype": dtype}
    query.update(zip(("shape_a", "shape_b"), shapes.split()))
    with urllib.request.urlopen(f"{url}/v1/explain/{op}?{urllib.parse.urlencode(query)}") as reply:
        document = json.load(reply)
    totals = document["totals"]
    row = {name: totals[name] for name in ("l1_hit_percent", "l2_hit_percent", "dram_bytes") if name in totals}
    if "estimate" in totals:
        row.update({name: totals["estimate"][name] for name in ("us", "bound", "parts_us")})
    row.update({name: totals["occupancy"][name] for name in ("percent", "registers_per_thread") if name in totals["occupancy"]})
    row.update(problem=document["problem"], cure=document["cure"])
    return row


def rows_of(runs, kernels):
    at = 0
    for run in runs:
        mine = kernels[at:at + len(run["computes"])]
        at += len(run["computes"])
        yield seen(run, [kernel for kernel, computes in zip(mine, run["computes"]) if computes])
    if at != len(kernels):
        raise SystemExit(f"{len(kernels)} kernels were profiled, and the simulator has {at}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ncu", nargs="?")
    parser.add_argument("sim", nargs="?")
    parser.add_argument("--json", required=True)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--explain", help="the address of a gemmd")
    parser.add_argument("--gpu", help="the GPU's name, as /v1/explain knows it")
    parser.add_argument("--timed", default="H200", help="that of the one whose times it has")
    for name in ("device", "driver", "date", "commit"):
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args()
    about = {"device": args.device, "driver": args.driver, "date": args.date, "commit": args.commit}
    if args.rows or not args.ncu:
        with open(args.json) as file:
            result = json.load(file)
        if args.ncu:
            result["seen"] = {**about, "gpu": args.gpu, "metrics": {**SUMS, **FIGURES},
                              "rows": list(rows_of(read_sim(args.sim), read_ncu(args.ncu)))}
        for row in result["seen"]["rows"] if args.explain else []:
            row["explained"] = explained(args.explain, result["seen"]["gpu"], row["run"])
            row["timed"] = explained(args.explain, args.timed, row["run"])
        return write(args.json, result)
    rows = [{"run": run["run"], "sim": {name: run[name] for name in METRICS}, "gpu": counters}
            for run, counters in pair(read_sim(args.sim), read_ncu(args.ncu))]
    write(args.json, {"benchmark": "counters", **about, "metrics": METRICS, "runs": rows})


def write(path, result):
    with open(path, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
