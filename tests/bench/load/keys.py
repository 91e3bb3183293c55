"""What keys cost: the same gemmd with 10,000 keys and with none, in turns, as load.py does with its servers.

    keys.py --gemmd GEMMD [--rounds N] [--seconds S] [--json FILE]

Both get the same requests, with a key in each; gemmd without --keys ignores it. Small products: all with one
key, as of clients that keep their connections; and each with another of a thousand keys, as of a proxy that
mixes the requests of many clients on few connections. It takes wrk.
"""

import argparse
import datetime
import hashlib
import json
import os
import random
import statistics
import tempfile

import numpy as np

import load

KEYS, SENT = 10000, 1000
NONE, WITH = "no keys", "10,000 keys"
# size, connections, whether all requests have one key
CASES = [(16, 8, True), (16, 8, False), (16, 1, True), (64, 8, True)]


def make_keys(folder):
    """A keys file, a file of one of its keys, and one of a thousand from all over it."""
    rng = random.Random(1)
    keys = [f"{rng.getrandbits(64):016x}.{rng.getrandbits(256):064x}" for _ in range(KEYS)]
    with open(f"{folder}/keys", "w", encoding="ascii") as file:
        os.chmod(file.name, 0o600)
        for number, key in enumerate(keys):
            digest = hashlib.sha256(key.encode()).hexdigest()
            file.write(f"name=k{number} id={key.partition('.')[0]} sha256={digest} roles=use\n")
    for name, some in (("one", keys[:1]), ("many", rng.sample(keys, SENT))):
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write("".join(key + "\n" for key in some))
    return keys[0]


class Case(load.Case):
    def headers(self, server):
        return super().headers(server) | {"Authorization": f"Bearer {self.key}"}


def measure(case, servers, options, rng):
    rounds = load.take_turns(case, servers, options, rng)
    row = {"op": case.op, "dtype": "f32", "size": case.size, "connections": case.connections,
           "one_key": case.keys.endswith("one"), "servers": {}}
    for name in (NONE, WITH):
        runs = [seen[name] for seen in rounds]
        row["servers"][name] = {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}
        row["servers"][name]["rates"] = [round(run["rate"], 2) for run in runs]
    row["of_none"] = round(statistics.median(seen[WITH]["rate"] / seen[NONE]["rate"] for seen in rounds), 4)
    row["cpu_of_none"] = round(statistics.median(seen[WITH]["cpu_us"] / seen[NONE]["cpu_us"] for seen in rounds), 4)
    return row


def show(row):
    print(f"{row['op']} {row['size']}x{row['size']}, {row['connections']} connections, "
          f"{'one key' if row['one_key'] else 'a thousand keys'}: with keys {row['of_none']:.3f} of the rate without, "
          f"{row['cpu_of_none']:.3f} of the processor time")
    for name, seen in row["servers"].items():
        print(f"    {name:12s} {seen['rate']:10.1f} requests/s   p50 {seen['p50_us'] / 1e3:8.3f} ms   "
              f"{seen['cpu_us']:8.2f} us of CPU each", flush=True)


def main():
    parser = argparse.ArgumentParser(description="see the head of keys.py")
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    load_before, rows, servers = os.getloadavg()[0], [], []
    rng, shuffler = np.random.default_rng(1), random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        key = make_keys(folder)
        common = [options.gemmd, "--listen", "127.0.0.1:0", "--backend", "cpu", "--log-level", "error"]
        try:
            servers.append(load.Server(NONE, common))
            servers.append(load.Server(WITH, [*common, "--keys", f"{folder}/keys"]))
            for size, connections, one in CASES:
                case = Case("matmul", size, "raw", connections, rng, folder)
                case.key, case.keys = key, f"{folder}/{'one' if one else 'many'}"
                rows.append(measure(case, servers, options, shuffler))
                show(rows[-1])
        finally:
            for server in servers:
                server.stop()
    if options.json:
        document = {"benchmark": "keys", "date": datetime.datetime.now(datetime.UTC).isoformat()[:19] + "Z",
                    "commit": load.commit(),
                    "device": load.machine(), "cores": os.cpu_count(), "load_before": round(load_before, 2),
                    "rounds": options.rounds, "seconds": options.seconds, "keys": KEYS,
                    "wrk": load.first_line(["wrk", "-v"]).split(" [")[0], "results": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
