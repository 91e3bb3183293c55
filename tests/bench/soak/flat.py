"""Whether figures of a soak stay flat: the medians of its second and last quarter are compared. The first
quarter is left out, since buffers and caches fill in it.

    flat.py --self-test
    flat.py RESULT.json    judges again what soak.py has written
"""

import argparse
import json
import statistics

# name: (how it is compared, by how much it may rise, why)
BOUNDS = {
    "rss_kb": ("share", 0.03, "what an allocator keeps differs by so much between two minutes"),
    "pss_kb": ("share", 0.03, "the same"),
    "descriptors": ("more", 3, "so many connections come and go at a time"),
    "threads": ("more", 0, "they are all made at the start"),
    "plain_p50": ("share", 0.25, "as a multiple of an echo's in the same minute; the machine has others"),
    "tls_p50": ("share", 0.25, "the same"),
    "plain_p99": ("share", 0.50, "the same, of the slowest hundredth"),
    "tls_p99": ("share", 0.50, "the same"),
}
LATENCIES = ("plain", "tls")


def value_of(sample, name):
    """Latencies as multiples of the echo's: what else the machine does delays both."""
    kind, _, part = name.rpartition("_")
    if kind in LATENCIES:
        return sample["latency_us"][kind][part] / sample["latency_us"]["echo"][part]
    return sample[name]


def slope(values):
    """The median of all slopes between two samples (Theil and Sen), a sample."""
    slopes = [(values[j] - values[i]) / (j - i) for i in range(len(values)) for j in range(i + 1, len(values))]
    return statistics.median(slopes)


def judge(samples):
    """A row for each figure, with "flat": whether it rose by no more than its bound."""
    quarter = len(samples) // 4
    if quarter < 2:
        raise ValueError(f"{len(samples)} samples are too few to judge")
    rows = []
    for name, (how, most, why) in BOUNDS.items():
        values = [value_of(sample, name) for sample in samples]
        second = statistics.median(values[quarter:2 * quarter])
        last = statistics.median(values[-quarter:])
        rise = last - second if how == "more" else last / second - 1
        rows.append({"figure": name, "second_quarter": round(second, 3), "last_quarter": round(last, 3),
                     "rise": round(rise, 4), "as": how, "bound": most, "why": why,
                     "slope_a_sample": round(slope(values[quarter:]), 4), "flat": rise <= most})
    return rows


def text_of(document):
    """The result as JSON, a line for each sample."""
    head = json.dumps({name: value for name, value in document.items() if name != "samples"}, indent=1)
    samples = ",\n".join("  " + json.dumps(sample, separators=(",", ":")) for sample in document["samples"])
    return f'{head[:-2]},\n "samples": [\n{samples}\n ]\n}}\n'


def show(rows):
    for row in rows:
        print(f"{row['figure']:12s} {row['second_quarter']:>12} -> {row['last_quarter']:>12}   "
              f"{'by' if row['as'] == 'more' else 'share'} {row['rise']:+.4f} of at most {row['bound']}"
              f"   {'flat' if row['flat'] else 'NOT FLAT'}")


def self_test():
    def made(change):
        return [{"rss_kb": 50000 + (i % 3) * 200, "pss_kb": 49000, "descriptors": 40 + i % 2, "threads": 12,
                 "latency_us": {kind: {"p50": us, "p99": 4 * us} for kind, us in
                                (("echo", 50 + i % 7), ("plain", 2 * (50 + i % 7)), ("tls", 3 * (50 + i % 7)))}}
                | change(i) for i in range(120)]

    def fallen(change):
        return {row["figure"] for row in judge(made(change)) if not row["flat"]}

    def slower(i):
        echo, tls = {"p50": 50, "p99": 200}, {"p50": 150 + i, "p99": 600}
        return {"latency_us": {"echo": echo, "plain": echo, "tls": tls}}

    assert fallen(lambda i: {}) == set()
    assert fallen(lambda i: {"rss_kb": 50000 + 50 * i}) == {"rss_kb"}
    assert fallen(lambda i: {"pss_kb": 50000 - 50 * i}) == set()
    assert fallen(lambda i: {"rss_kb": 20000 + min(i, 20) * 5000}) == set(), "it fills in the first quarter"
    assert fallen(lambda i: {"descriptors": 40 + i // 10}) == {"descriptors"}
    assert fallen(lambda i: {"threads": 12 + (i > 100)}) == {"threads"}
    assert fallen(slower) == {"tls_p50"}
    assert slope([1, 2, 3, 40, 5]) == 1
    document = {"benchmark": "soak", "samples": made(lambda i: {})}
    assert json.loads(text_of(document)) == document
    try:
        judge(made(lambda i: {})[:7])
    except ValueError:
        pass
    else:
        raise AssertionError("seven samples were judged")


def main():
    parser = argparse.ArgumentParser(description="see the head of flat.py")
    parser.add_argument("result", nargs="?")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
    else:
        with open(options.result, encoding="utf-8") as file:
            show(judge(json.load(file)["samples"]))


if __name__ == "__main__":
    main()
