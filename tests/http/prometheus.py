"""A strict reader of Prometheus' text format 0.0.4: whatever the format forbids, and whatever
its conventions advise against, is an error."""

import math
import re

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


class Metric:
    def __init__(self, name):
        self.name, self.help, self.type = name, None, None
        self.samples = {}  # (name, sorted labels) -> value


def value_of(text):
    assert re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|\+Inf|-Inf|NaN", text), text
    return float(text)


def labels_of(text):
    labels, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, text[at:]
        labels.append((match[1], match[2]))
        at = match.end()
        assert at == len(text) or text[at] == ",", text[at:]
        at += 1
    assert len(dict(labels)) == len(labels), f"a label twice: {text}"
    return tuple(sorted(labels))


def family_of(name, metrics):
    """The metric that a sample belongs to: a histogram's samples have endings."""
    for ending in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(ending)
        if base != name and base in metrics and metrics[base].type in ("histogram", "summary"):
            return metrics[base]
    return metrics.get(name)


def parse(text):
    """name -> Metric."""
    assert text.endswith("\n") and "\r" not in text
    metrics, current = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            _, what, name, rest = line.split(" ", 3)
            if current is None or current.name != name:
                assert name not in metrics, f"{name} is in two places"
                current = metrics[name] = Metric(name)
            assert not current.samples, f"{what} after samples of {name}"
            if what == "HELP":
                assert current.help is None and rest, line
                assert not re.search(r"\\(?![\\n])", rest), line
                current.help = rest
            else:
                assert current.type is None and rest in TYPES, line
                current.type = rest
            continue
        match = SAMPLE.fullmatch(line)
        assert match, f"not a sample: {line!r}"
        metric = family_of(match[1], metrics)
        assert metric is current and metric is not None, f"{match[1]} is not among its own"
        key = (match[1], labels_of(match[2] or ""))
        assert key not in metric.samples, f"twice: {line}"
        metric.samples[key] = value_of(match[3])
    for metric in metrics.values():
        check(metric)
    return metrics


def check(metric):
    name = metric.name
    assert metric.help and metric.type in TYPES, name
    assert not re.search(r"_(ms|us|milliseconds|microseconds|kb|mb)(_|\Z)", name), name
    assert name.endswith("_total") == (metric.type == "counter"), f"{name} is a {metric.type}"
    if metric.type == "counter":
        assert all(value >= 0 for value in metric.samples.values()), name
    if metric.type == "histogram":
        assert name.endswith(("_seconds", "_bytes")), name
        check_histogram(metric)


def check_histogram(metric):
    series = {}
    for (name, labels), value in metric.samples.items():
        rest = tuple(label for label in labels if label[0] != "le")
        entry = series.setdefault(rest, {"buckets": [], "_sum": None, "_count": None})
        if name == metric.name + "_bucket":
            entry["buckets"].append((value_of(dict(labels)["le"]), value))
        else:
            assert len(rest) == len(labels), f"le on {name}"
            entry[name.removeprefix(metric.name)] = value
    for rest, entry in series.items():
        bounds = [bound for bound, _ in entry["buckets"]]
        counts = [count for _, count in entry["buckets"]]
        assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, (metric.name, rest)
        assert counts == sorted(counts), f"{metric.name}{rest} is not cumulative"
        assert counts[-1] == entry["_count"], (metric.name, rest)
        assert entry["_sum"] is not None and entry["_sum"] >= 0, (metric.name, rest)
        assert (entry["_sum"] == 0) or entry["_count"] > 0, (metric.name, rest)


def fetch(daemon):
    reply = daemon.get("/metrics")
    assert reply.status == 200, reply
    kind = reply.header("Content-Type").replace(" ", "").lower()
    assert kind.startswith("text/plain;version=0.0.4"), kind
    return reply.body.decode("utf-8")


def read(daemon):
    return parse(fetch(daemon))


def total_in(text, name, **labels):
    """As `total`, of this metric alone: for loops that wait, in which reading all strictly takes longer than the daemon takes."""
    assert f"# TYPE {name} " in text, f"there is no {name}"
    samples = (SAMPLE.fullmatch(line) for line in text.split("\n") if line.startswith((name + " ", name + "{")))
    wanted = set(labels.items())
    return sum(value_of(one[3]) for one in samples if wanted <= set(labels_of(one[2] or "")))


def total(metrics, name, **labels):
    """The sum of a metric's samples that have these labels; 0 where there are none yet."""
    wanted = set(labels.items())
    found = metrics[family_name(metrics, name)].samples.items()
    return sum(value for (key, have), value in found if key == name and wanted <= set(have))


def family_name(metrics, name):
    metric = family_of(name, metrics)
    assert metric, f"there is no {name}"
    return metric.name
