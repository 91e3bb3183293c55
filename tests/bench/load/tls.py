"""What TLS costs: the same gemmd with and without it, in turns, as load.py does with its servers.

    tls.py --gemmd GEMMD [--rounds N] [--seconds S] [--json FILE]

Small products over connections that are kept, and over one a request, which shows the handshake;
and a transpose of 256 MB. It takes openssl for a certificate (ECDSA, P-256), wrk and curl.
"""

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import tempfile

import numpy as np

import load

PLAIN, TLS = "plain", "TLS 1.3"
CASES = [("matmul", 64, "raw", 8, False), ("matmul", 64, "raw", 1, False), ("matmul", 64, "raw", 8, True),
         ("transpose", 1024, "raw", 8, False), ("transpose", load.BIG, "raw", 1, False)]


def start(path, folder):
    options = [path, "--listen", "127.0.0.1:0", "--backend", "cpu", "--log-level", "error"]
    plain = load.Server(PLAIN, options)
    yield plain
    secure = load.Server(TLS, [*options, "--tls-cert", f"{folder}/tls.pem", "--tls-key", f"{folder}/tls.key"])
    secure.scheme = "https"
    yield secure


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", f"{folder}/tls.key",
                    "-out", f"{folder}/tls.pem"], check=True, capture_output=True)


def measure(case, servers, options, rng):
    rounds = load.take_turns(case, servers, options, rng)
    row = {"op": case.op, "dtype": "f32", "size": case.size, "connections": case.connections,
           "kept": not case.closes, "request_bytes": os.path.getsize(case.file), "servers": {}}
    for name in (PLAIN, TLS):
        runs = [seen[name] for seen in rounds]
        row["servers"][name] = {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}
        row["servers"][name]["rates"] = [round(run["rate"], 2) for run in runs]
    row["of_plain"] = round(statistics.median(seen[TLS]["rate"] / seen[PLAIN]["rate"] for seen in rounds), 3)
    return row


def show(row):
    print(f"{row['op']} {row['size']}x{row['size']}, {row['connections']} connections, "
          f"{'kept' if row['kept'] else 'one a request'}: TLS serves {row['of_plain']:.2f} of plain")
    for name, seen in row["servers"].items():
        print(f"    {name:8s} {seen['rate']:10.1f} requests/s   p50 {seen['p50_us'] / 1e3:8.3f} ms   "
              f"{seen['cpu_us']:10.1f} us of CPU each", flush=True)


def main():
    parser = argparse.ArgumentParser(description="see the head of tls.py")
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    load_before, rows, servers = os.getloadavg()[0], [], []
    rng, shuffler = np.random.default_rng(1), random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        try:
            servers.extend(start(options.gemmd, folder))
            for *parameters, closes in CASES:
                case = load.Case(*parameters, rng, folder)
                case.closes = closes
                # Its replies are as long with TLS.
                rows.append(measure(case, servers, options, shuffler))
                show(rows[-1])
        finally:
            for server in servers:
                server.stop()
    if options.json:
        document = {"benchmark": "tls", "date": datetime.datetime.now(datetime.UTC).isoformat()[:19] + "Z",
                    "commit": load.commit(),
                    "device": load.machine(), "cores": os.cpu_count(), "load_before": round(load_before, 2),
                    "rounds": options.rounds, "seconds": options.seconds,
                    "wrk": load.first_line(["wrk", "-v"]).split(" [")[0], "results": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
