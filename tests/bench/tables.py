#!/usr/bin/python3
"""Rewrites the tables of BENCHMARKS.md and kernels/COUNTERS.md, between their markers, from result files:

    build/release/tests/bench/bench_kernels --json tests/bench/results/kernels_cpu.json
    bench_gpu --json tests/bench/results/kernels_h200.json              (on a machine with a GPU)
    bench_streams --json tests/bench/results/streams_h200.json          (there too)
    bench_groups --json tests/bench/results/groups_h200.json            (there too)
    bench_accuracy --json tests/bench/results/accuracy_h200.json        (there too)
    tests/gpu/counters.py ... --json tests/bench/results/counters_h200.json
    tests/gpu/limits.py ... --json tests/bench/results/limits_h200.json
    build/release/tests/bench/bench_json --json tests/bench/results/json.json
    tests/bench/load/run.sh --json tests/bench/results/load_cpu.json
    ./tests/bench/tables.py tests/bench/results/*.json
"""

import json
import os
import re
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
    ("transpose", "f32", "8191x8209"),
    ("matmul", "f32", "8192x8192 8192x8192"),
    ("add", "f32", "8192x8192 8192x8192"),
    ("add", "f32", "16777216x3 16777216x3"),
    ("flip", "f32", "8192x8192"),
]
# Of what `auto` takes.
AUTO = [
    ("transpose", "f32", "8192x8192"),
    ("transpose", "f32", "12000x12000"),
    ("transpose", "f32", "8191x8209"),
    ("transpose", "f16", "16384x8192"),
    ("transpose", "u8", "16384x16384"),
    ("transpose", "f64", "8192x4096"),
    ("transpose", "c128", "4096x4096"),
    ("transpose", "f32", "1024x1024"),
    ("transpose", "f32", "10000000x3"),
    ("transpose", "f32", "3x10000000"),
    ("transpose", "f32", "262144x16x16"),
    ("transpose", "f32", "100000x10x30"),
    ("add", "f32", "8192x8192 8192x8192"),
    ("flip", "f32", "8192x8192"),
    ("flip", "u8", "16384x16384"),
    ("matmul", "f32", "64x64 64x64"),
    ("matmul", "f32", "512x512 512x512"),
    ("matmul", "f32", "1024x1024 1024x1024"),
    ("matmul", "f32", "4096x4096 4096x4096"),
    ("matmul", "f32", "8192x8192 8192x8192"),
    ("matmul", "f32", "4095x4097 4097x4093"),
    ("matmul", "f32", "8192x8192 8192x1"),
    ("matmul", "f32", "64x262144 262144x64"),
    ("matmul", "f32", "1x10000000 10000000x1"),
    ("matmul", "f32", "4096x16x16 4096x16x16"),
    ("matmul", "f32", "4096x33x33 4096x33x33"),
    ("matmul", "f32", "4096x65x65 4096x65x65"),
    ("matmul", "f32", "512x128x128 512x128x128"),
    ("matmul", "f16", "4096x4096 4096x4096"),
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


# How the verdict of /v1/explain is told in a table, by words of it.
SAID = [
    ("Memory is the limit", "memory, which hides what is wasted"), ("bytes that must move take", "memory"), ("bytes that miss the caches take", "memory"), ("rate of cuBLAS", "as fast as cuBLAS"),
    ("wavefronts (passes", "bank conflict"), ("sectors of 32 bytes instead", "strided"), ("the grid has", "few blocks"),
    ("launch takes most", "the launch"), ("the rest is latency", "latency"), ("latency takes", "latency"), ("issuing takes", "issuing"),
    ("the data stage of", "data stage of L1 and shared"), ("the L2 cache takes", "the L2 cache"), ("arithmetic takes", "arithmetic"),
    ("in the traced part", "not traced to its end"),
]


def each(runs, variant, kind, unit):
    """Per request of the first run of a variant, in f32 if there is one, as the GPU counted it."""
    mine = [run for run in runs if run["run"].startswith(variant)]
    run = next((run for run in mine if " f32 " in run["run"]), mine[0] if mine else None)
    requests = run["gpu"][kind + "_requests"] if run else 0
    return f"{run['gpu'][f'{kind}_{unit}'] / requests:.3g}" if requests else "–"


def verdicts_table(document):
    with open(os.path.join(os.path.dirname(document["path"]), "kernels_h200.json"), encoding="utf-8") as file:
        times = {(row["op"], row["variant"], row["dtype"], row["shape"]): row for row in json.load(file)["results"]}
    yield "| operation | variant | shape | sectors | wavefronts | measured | estimate / time | stall | verdict | cure |\n"
    yield "|---|---|---|--:|--:|--:|--:|---|---|---|\n"
    for row in document["seen"]["rows"]:
        op, kernel, dtype, shape = row["run"].split(" ", 3)
        said, runs = row["timed"], document["runs"]
        verdict = next(words for phrase, words in SAID if phrase in said["problem"].split(", and the bytes that")[0])
        cure = re.search(r"see kernel=(\w+)", said["cure"])
        timed = times.get((op, kernel, dtype, shape), {})
        share = timed.get("percent_of_cublas" if op == "matmul" else "percent_of_copy")
        counts = [" / ".join(each(runs, f"{op} {kernel} ", f"{memory}_{kind}", unit) for kind in ("load", "store"))
                  for memory, unit in (("global", "sectors"), ("shared", "wavefronts"))]
        both = f"{number(said.get('us')) or '–'} / {number(timed.get('median_us')) or '–'}"
        stall = next(name for name in row["stalls_percent"] if name not in ("selected", "not_selected"))
        yield (
            f"| {op} | {kernel} | {dtype} {shape} | {counts[0]} | {counts[1]} | "
            f"{f'{share:.0f} % of ' + ('cuBLAS' if op == 'matmul' else 'a copy') if share else '–'} | {both} | "
            f"{stall} {row['stalls_percent'][stall]:.0f} % | {verdict} | {f'`{cure[1]}`' if cure and 'see kernel' in said['cure'] else ''} |\n"
        )


def percent(value):
    return "–" if value is None else f"{value:.0f}"


def seen_table(document):
    seen, link = document["seen"], "../tests/bench/results/" + document["file"]
    yield (
        f"Seen on {seen['date'][:10]} by Nsight Compute on {seen['device']}, driver {seen['driver']}, whose caches it "
        f"empties first. Of the time: warps that wait, and for what (`selected` and `not_selected` do not wait). Of their "
        f"peaks: instructions issued, the data stage of L1 and shared memory, DRAM. Hit rates of loads and the time in us: "
        f"what `/v1/explain` says / what was seen. All in [the result file]({link}).\n\n"
    )
    yield ("| run | registers | warps resident, % | stalls, % | issued, % | L1 and shared, % | DRAM, % | hit L1, % "
           "| hit L2, % | time |\n|---|--:|--:|---|--:|--:|--:|--:|--:|--:|\n")
    for row in seen["rows"]:
        ours = row.get("explained", {})
        stalls = ", ".join(f"{name} {value:.0f}" for name, value in list(row["stalls_percent"].items())[:3])
        hits = [f"{percent(ours.get(name))} / {percent(100 * row[hit] / row[of] if row[of] else None)}" for name, hit, of in
                (("l1_hit_percent", "l1_load_hits", "l1_load_sectors"), ("l2_hit_percent", "l2_read_hits", "l2_read_sectors"))]
        yield (
            f"| {row['run']} | {row['registers_per_thread']:.0f} | {row['occupancy_percent']:.0f} | {stalls} | "
            f"{row['issue_percent']:.0f} | {row['lsu_wavefronts_percent']:.0f} | {row['dram_percent']:.0f} | {hits[0]} | {hits[1]} | "
            f"{number(ours['us']) if 'us' in ours else '–'} / {number(row['us'])} |\n"
        )


def streams_table(document):
    link = "tests/bench/results/" + document["file"]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit'][:12]}: {document['device']}. "
        f"Microseconds from one job's end to the next one's, pinned memory to pinned memory; a job alone is "
        f"its stages, as events on its stream timed them. All in [the result file]({link}).\n\n"
    )
    streams = sorted({row["streams"] for row in document["results"]})
    yield "| job (f32) | kernel | copy in + kernel + copy out | "
    yield " | ".join(f"{n} stream{'s' * (n > 1)}" for n in streams) + " |\n"
    yield "|---|---|--:|" + "--:|" * len(streams) + "\n"
    for first in (row for row in document["results"] if row["streams"] == 1):
        stages = [first["h2d_us"], first["kernel_us"], first["d2h_us"]]
        cells = []
        for row in document["results"]:
            if (row["op"], row["side"]) == (first["op"], first["side"]):
                cells.append(f"{number(row['job_us'])} ({row['job_us'] / sum(stages):.2f})")
        yield (
            f"| {first['op']} {first['side']}x{first['side']} | {first['variant']} | "
            f"{' + '.join(number(us) for us in stages)} | {' | '.join(cells)} |\n"
        )


def load_table(document):
    link = "tests/bench/results/" + document["file"]
    versions = document["versions"]
    peers = [name for name in document["results"][0]["servers"] if name.startswith("FastAPI")]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit']}: {document['device']}, "
        f"{document['cores']} cores, which the load generator shares; load average at the start {document['load_before']:g}; FastAPI {versions['fastapi']}, uvicorn "
        f"{versions['uvicorn']}, NumPy {versions['numpy']}, {versions['wrk']}. Requests a second; times are "
        f"gemmd's latencies in milliseconds. All in [the result file]({link}).\n\n"
    )
    yield f"| f32 | format | connections | gemmd | p50 | p99 | library alone | {' | '.join(peers)} | gemmd / library | gemmd / best FastAPI |\n"
    yield "|---|---|--:|--:|--:|--:|--:|" + "--:|" * len(peers) + "--:|--:|\n"
    for row in document["results"]:
        if row["format"] == "v2":
            continue
        seen = row["servers"]
        ours = seen["gemmd"]
        p99 = number(ours["p99_us"] * 1e-3) if "p99_us" in ours else ""
        rates = " | ".join(number(seen[name]["rate"]) for name in ["bare"] + peers)
        yield (
            f"| {row['op']} {row['size']}x{row['size']} | {row['format']} | {row['connections']} | "
            f"{number(ours['rate'])} | {number(ours['p50_us'] * 1e-3)} | {p99} | {rates} | "
            f"{row['of_bare']:.2f} | {row['of_fastapi']:.1f} |\n"
        )


def load_gpu_table(document):
    link = "tests/bench/results/" + document["file"]
    versions = document["versions"]
    peers = [name for name in document["results"][0]["servers"] if name.startswith("FastAPI")]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit']}: {document['device']}, {document['cores']} cores, which "
        f"the load generator shares; FastAPI {versions['fastapi']}, uvicorn {versions['uvicorn']}, CuPy {versions['cupy']}, {versions['wrk']}. "
        f"Requests a second; times are gemmd's latencies in milliseconds. gemmd ran with `--backend {document['backend']}`"
        f"{', so all its products are the GPU' + chr(39) + 's' if document['backend'] == 'cuda' else ''}. All in [the result file]({link}).\n\n"
    )
    yield (
        f"| f32 | format | connections | gemmd | p50 | p99 | gemmd, `device=cuda` | library alone | library that resumes | "
        f"{' | '.join(peers)} | gemmd / library | gemmd / best FastAPI |\n"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|" + "--:|" * len(peers) + "--:|--:|\n"
    for row in document["results"]:
        seen = row["servers"]
        ours = seen["gemmd"]
        cells = [f"{row['op']} {row['size']}x{row['size']}", row["format"], row["connections"], number(ours["rate"])]
        cells += [number(ours[key] * 1e-3) if key in ours else "" for key in ("p50_us", "p99_us")]
        cells += [number(seen[name]["rate"]) if name in seen else ""
                  for name in ["gemmd, device=cuda", "bare", "bare, suspends"] + peers]
        cells += [f"{row['of_bare']:.2f}", f"{row['of_fastapi']:.1f}"]
        yield f"| {' | '.join(str(cell) for cell in cells)} |\n"


def tls_table(document):
    link = "tests/bench/results/" + document["file"]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit']}: {document['device']}, {document['cores']} cores, "
        f"which the load generator shares; load average at the start {document['load_before']:g}. Requests a "
        f"second, and microseconds of gemmd's processor time for each. All in [the result file]({link}).\n\n"
    )
    yield "| f32 | connections | plain | TLS 1.3 | TLS / plain | CPU, plain | CPU, TLS |\n|---|---|--:|--:|--:|--:|--:|\n"
    for row in document["results"]:
        plain, tls = row["servers"]["plain"], row["servers"]["TLS 1.3"]
        yield (
            f"| {row['op']} {row['size']}x{row['size']} | {row['connections']}, {'kept' if row['kept'] else 'one a request'} | "
            f"{number(plain['rate'])} | {number(tls['rate'])} | {row['of_plain']:.2f} | {number(plain['cpu_us'])} | "
            f"{number(tls['cpu_us'])} |\n"
        )


def triton_table(document):
    if "triton" not in document["versions"]:
        return
    yield (
        f"Measured in the same run: Triton {document['versions']['triton']} with an instance of the model for each core. Requests a second, "
        f"and latencies in milliseconds.\n\n"
    )
    yield "| f32 | connections | gemmd /v2 | p50 | p99 | gemmd /v1 raw | library alone | Triton | p50 | p99 | /v2 / raw | /v2 / Triton |\n"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    for row in document["results"]:
        if row["format"] != "v2":
            continue
        seen = row["servers"]
        cells = [row["connections"]]
        for name in ("gemmd", "gemmd, /v1 raw", "bare", "Triton"):
            cells.append(number(seen[name]["rate"]))
            if name in ("gemmd", "Triton"):
                cells += [number(seen[name][key] * 1e-3) for key in ("p50_us", "p99_us")]
        cells += [f"{row['of_raw']:.2f}", f"{row['of_triton']:.1f}"]
        yield f"| {row['op']} {row['size']}x{row['size']} | {' | '.join(str(cell) for cell in cells)} |\n"


def json_table(document):
    link = "tests/bench/results/" + document["file"]
    yield (
        f"Measured on {document['date'][:10]} at commit {document['commit']}: {document['device']}, one "
        f"thread, {document['elements']:,} random numbers, jansson {document['jansson']}. More digits and "
        f"exponents are in [the result file]({link}).\n\n"
    )
    yield "| | numbers | gemmd (ms) | MB/s | jansson (ms) | MB/s | times as fast |\n"
    yield "|---|---|--:|--:|--:|--:|--:|\n"
    for row in document["results"]:
        if row["values"] == "any":
            continue
        yield (
            f"| {'read' if row['direction'] == 'in' else 'write'} | {row['dtype']} | "
            f"{number(row['median_us'] * 1e-3)} | {number(row['mbs'])} | "
            f"{number(row['jansson_median_us'] * 1e-3)} | {number(row['jansson_mbs'])} | {row['ratio']:.1f} |\n"
        )


def auto_table(document):
    yield "| operation | type | shape | kernel | time (us) | % of copy | GFLOP/s | % of cuBLAS |\n"
    yield "|---|---|---|---|--:|--:|--:|--:|\n"
    for op, dtype, shape in AUTO:
        rows = [row for row in document["results"] if row.get("auto") and
                (row["op"], row["dtype"], row["shape"]) == (op, dtype, shape)]
        assert len(rows) == 1, f"what auto takes for {op} {dtype} {shape} is not in the result file"
        row = rows[0]
        of_copy = row.get("percent_of_copy") if op != "matmul" else None
        yield (
            f"| {op} | {dtype} | {shape} | {row['variant']} | {number(row['median_us'])} | {number(of_copy)} | "
            f"{number(row.get('gflops'))} | {number(row.get('percent_of_cublas'))} |\n"
        )


def limits_table(document):
    link = "../tests/bench/results/" + document["file"]
    yield (
        f"Seen on {document['date'][:10]} at commit {document['commit'][:12]}: {document['device']}, driver "
        f"{document['driver']}. All counters are in [the result file]({link}).\n\n"
    )
    yield "| run | figure | account | Nsight Compute |\n|---|---|--:|--:|\n"
    for run in document["runs"]:
        yield f"| {run['run']} | `{run['figure']}` | {run['account']:.1f} | {run['nsight']:.1f} |\n"


def accuracy_table(document):
    link = "../tests/bench/results/" + document["file"]
    side = document["side"]
    yield (
        f"Errors of `{document['variant']}` as multiples of those of cuBLAS's SGEMM in the same run, for results of {side} x {side}: "
        f"median of 5 seeds, and the most. First the Frobenius norm of the error, then its largest element over (|A| |B|). "
        f"Measured on {document['date'][:10]} at commit {document['commit']}: {document['device']}, driver {document['driver']}. "
        f"All are in [the result file]({link}).\n\n"
    )
    kinds = list(dict.fromkeys(row["inputs"] for row in document["results"]))
    yield "| K | " + " | ".join(kinds) + " |\n|--:|" + "---|" * len(kinds) + "\n"
    for k in sorted({row["k"] for row in document["results"]}):
        cells = []
        for kind in kinds:
            rows = [row for row in document["results"] if (row["k"], row["inputs"]) == (k, kind)]
            ratios = [sorted(row[norm] / row["cublas_" + norm] for row in rows) for norm in ("frobenius", "largest")]
            cells.append("; ".join(f"{r[len(r) // 2]:.2f}, {r[-1]:.2f}" for r in ratios))
        yield f"| {k} | " + " | ".join(cells) + " |\n"


def shares(document, columns):
    """{(type, shape): (cuBLAS's time, {variant: its speed as a share of cuBLAS's})}; passes that prepare count."""
    times = {}
    for row in document["results"]:
        us = row["median_us"] + row.get("prepare_us", 0)
        times.setdefault((row["dtype"], row["shape"]), {})[row["variant"]] = us
    return {of: (us["cublas"], {name: us["cublas"] / us[name] for name in columns if name in us}) for of, us in times.items()}


def tensor_table(document):
    """Of both GPUs, whichever document is given."""
    columns, seen, told = ("mma", "wgmma", "split_bf16", "multistage_tuned"), {}, []
    for gpu in ("h200", "h100"):
        name = f"tensor_{gpu}.json"
        with open(os.path.join(os.path.dirname(document["path"]), name), encoding="utf-8") as file:
            read = json.load(file)
        seen[gpu] = shares(read, columns)
        told.append(f"{read['device']}, driver {read['driver']}, on {read['date'][:10]} at commit {read['commit']} "
                    f"([result file](../tests/bench/results/{name}))")
    yield (
        f"Speed as a share of cuBLAS's, between two events, passes over the operands included. Measured on {told[0]}. "
        f"The last column is of the best of ours on {told[1]}, before the changes of 26 November.\n\n"
    )
    yield "| type | shape | cuBLAS (us) | " + " | ".join(columns) + " | H100 |\n|---|---|--:|" + "--:|" * (len(columns) + 1) + "\n"
    for (dtype, shape), (blas, share) in seen["h200"].items():
        cells = [f"{share[name]:.3g}" if name in share else "" for name in columns]
        before = seen["h100"].get((dtype, shape))
        cells.append(f"{max(before[1].values()):.3g}" if before else "")
        yield f"| {dtype} | {shape} | {number(blas)} | " + " | ".join(cells) + " |\n"


# Kind of result file -> markers, the file that has them, and what goes between them.
TABLES = {
    "bench_kernels": [("bench_kernels", "BENCHMARKS.md", table)],
    "bench_gpu": [("bench_gpu", "BENCHMARKS.md", gpu_table), ("auto", "BENCHMARKS.md", auto_table)],
    "bench_gpu_tensor": [("tensor", "kernels/EXPERIMENTS.md", tensor_table)],
    "bench_accuracy": [("accuracy", "kernels/EXPERIMENTS.md", accuracy_table)],
    "bench_gpu_random": [],  # for a test of auto's choices
    "bench_streams": [("bench_streams", "BENCHMARKS.md", streams_table)],
    "gemmd --tune": [],  # for the fit of kernels/choose
    "bench_choices": [],
    "guard": [],  # what guard compares with
    "soak": [],  # tests/README.md tells of it
    "bench_groups": [],  # for kernels/choose; kernels/EXPERIMENTS.md tells of it
    "bench_json": [("bench_json", "BENCHMARKS.md", json_table)],
    "load": [("load", "BENCHMARKS.md", load_table), ("load_triton", "BENCHMARKS.md", triton_table)],
    "load_gpu": [("load_gpu", "BENCHMARKS.md", load_gpu_table)],
    "tls": [("tls", "BENCHMARKS.md", tls_table)],
    "counters": [("counters", "kernels/COUNTERS.md", counters_table), ("verdicts", "kernels/COUNTERS.md", verdicts_table), ("seen", "kernels/COUNTERS.md", seen_table)],
    "limits": [("limits", "kernels/COUNTERS.md", limits_table)],
}


def rewrite(document, marker, target, make):
    begin, end = f"<!-- {marker}: begin -->\n", f"<!-- {marker}: end -->\n"
    target = os.path.join(ROOT, target)
    with open(target, encoding="utf-8") as file:
        text = file.read()
    before, begins, rest = text.partition(begin)
    _, ends, after = rest.partition(end)
    assert begins and ends, f"{target} has no markers for {marker}"
    made = "".join(make(document))
    with open(target, "w", encoding="utf-8") as file:
        file.write(before + begin + made + end + after)


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        document["path"], document["file"] = path, os.path.basename(path)
        for table_of in TABLES[document.get("benchmark", "bench_kernels")]:
            rewrite(document, *table_of)


if __name__ == "__main__":
    main()
