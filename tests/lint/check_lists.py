"""What the program has a list of, the documents list too: options (its man page also), parameters,
errors, metrics, variants. And what must be one of a kind is: the weak functions of rows, of which a linker
keeps any."""
import re
import subprocess

import lint

PROTOCOL, README, KERNELS = "proto/PROTOCOL.md", "README.md", "kernels/README.md"
MANUAL = "server/gemmd.1"


def options(tree):
    done = subprocess.run([lint.daemon(), "--help"], env=lint.daemon_environment(),
                          capture_output=True, text=True, timeout=60)
    if done.returncode:
        yield f"gemmd --help ends with status {done.returncode}: {done.stderr}"
    said = sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", done.stdout)))
    if not said:
        yield "gemmd --help lists no options"
    documents = (tree.read(README) or "") + (tree.read(PROTOCOL) or "")
    for option in said:
        if not re.search(re.escape(option) + r"(?![\w-])", documents):
            yield f"{option} of gemmd --help is neither in {README} nor in {PROTOCOL}"
        if not re.search(rf"\bFl {re.escape(option[1:])}(?![\w-])", tree.read(MANUAL) or ""):
            yield f"{option} of gemmd --help is not in {MANUAL}"


def errors(tree):
    """Both ways: rows of status.h, and the table in which each HTTP status lists its codes."""
    rows = re.findall(r'X\(\w+, (\d{3}), "(\w+)"', tree.read("proto/status.h") or "")
    ours = {(http, code) for http, code in rows if http != "200"}
    if not ours:
        yield "no errors were found in proto/status.h"
    described = set()
    for _, line in tree.lines(PROTOCOL):
        row = re.match(r"\| *(\d{3}) *\|(.*)", line)
        if row:
            described |= {(row.group(1), c) for c in re.findall(r"`([a-z][a-z0-9_]*)`", row.group(2))}
    for http, code in sorted(ours - described):
        yield f"{PROTOCOL} does not list {code} in its row of {http}"
    for http, code in sorted(described - ours):
        yield f"{PROTOCOL} lists {code} in its row of {http}; proto/status.h does not"


def parameters(tree):
    rows = re.findall(r'(?:OWN|PART)\([^"\n]*"(\w+)"', tree.read("server/request/params.h") or "")
    if not rows:
        yield "no parameters were found in server/request/params.h"
    text = tree.read(PROTOCOL) or ""
    for name in rows:
        if f"`{name}`" not in text:
            yield f"{PROTOCOL} does not name the parameter `{name}`"


def metrics(tree):
    """Both ways: rows of stats.h and metrics.c with their types, and the table of PROTOCOL.md."""
    counters, others = tree.read("server/api/stats.h") or "", tree.read("server/api/metrics.c") or ""
    rows = {(name, "counter") for name in re.findall(r'X\(\w+, "\w+", "(gemmd_\w+)"', counters)}
    rows |= set(re.findall(r'(?:ONE|EACH|MANY)\("(\w+)", "(\w+)"', others))
    if not rows:
        yield "no metrics were found in server/api"
    described = set()
    for _, line in tree.lines(PROTOCOL):
        described |= set(re.findall(r"^\| *`((?:gemmd|process)_\w+)` *\| *(\w+) *\|", line))
    for name, kind in sorted(rows - described):
        yield f"{PROTOCOL} does not list the {kind} `{name}`"
    for name, kind in sorted(described - rows):
        yield f"{PROTOCOL} lists the {kind} `{name}`; server/api does not"
    reasons = re.findall(r'X\(\w+, "\w+", "(?!gemmd_)(\w+)"', counters)
    text = tree.read(PROTOCOL) or ""
    for reason in reasons:
        if f"`{reason}`" not in text:
            yield f"{PROTOCOL} does not name `{reason}`, for which connections are closed"


def sections(tree, path):
    """Heading -> text up to the next heading."""
    title, text = "", {}
    for _, line in tree.lines(path):
        if line.startswith("#"):
            title = line.lower()
        text[title] = text.get(title, "") + line + "\n"
    return text


def variants(tree):
    # Rows of kernels that are compiled for two devices name their function before their name.
    rows = re.findall(r'^GM_[A-Z]+\(\s*GM_OP_(\w+),\s*(?:\w+,\s*)?"(\w+)"',
                      tree.read("kernels/variants.def") or "", re.MULTILINE)
    if not rows:
        yield "no variants were found in kernels/variants.def"
    text = sections(tree, KERNELS)
    for op, name in rows:
        about = "".join(t for title, t in text.items() if re.search(rf"\b{op.lower()}\b", title))
        if f"`{name}`" not in about:
            yield f"{KERNELS} has no `{name}` under a heading that names {op.lower()}"


def row_functions(tree):
    """Their names are global and weak: of two with one name, one would silently serve both."""
    files = {}
    for path in tree.matching("kernels/cuda/*"):
        code = tree.read(path) or ""
        for name in re.findall(r"^GM_ROW_FUNCTION\s[^(]*?(\w+)\(", code, re.MULTILINE):
            files.setdefault(name, []).append(path)
    for name, paths in files.items():
        if len(paths) > 1:
            yield f"{name} is a row's function in {' and in '.join(sorted(paths))}"


def check(tree):
    yield from options(tree)
    yield from errors(tree)
    yield from parameters(tree)
    yield from metrics(tree)
    yield from variants(tree)
    yield from row_functions(tree)


METRICS = "| `gemmd_one_total` | counter | | `idle` |\n| `gemmd_queue_depth` | gauge | `device` | jobs |\n"
GOOD = {
    "gemmd": "#!/bin/sh\necho '  --listen ADDR  where (needs --threads)'\n",
    README: "`--listen`, `--threads`\n",
    MANUAL: ".It Fl -listen Ar address\n.It Fl -threads , Fl -version\n",
    "proto/status.h": 'X(OK, 200, "ok", "OK") \\\nX(BAD_JSON, 400, "bad_json", "...") \\\n',
    "server/request/params.h": 'OWN(uint64_t, repeat, "repeat", ALL, \\\nPART(op, "alpha", 1)\n',
    "server/api/stats.h": 'X(ONE, "one", "gemmd_one_total", \\\n "Help.") X(IDLE, "idle_ended", "idle", "Help.")\n',
    "server/api/metrics.c": 'EACH("gemmd_queue_depth", "gauge", "Jobs.", d->queued) \\\n',
    PROTOCOL: "`repeat`, `alpha`\n| status | codes |\n|---|---|\n| 400 | `bad_json`, with `Allow` |\n" + METRICS,
    "kernels/variants.def": 'GM_VARIANT(GM_OP_COPY, "naive", 1)\nGM_SIMT(GM_OP_MATMUL, f,\n "tiled", 1)\n',
    KERNELS: "## Copy\n`naive`: one loop\n## matmul\n`tiled`: tiles\n",
    "kernels/cuda/one.cu": "GM_ROW_FUNCTION enum gm_status\ngm_one_accepts(int a)\n",
    "kernels/cuda/two.cu": "GM_ROW_FUNCTION uint64_t gm_two_scratch(int a)\n",
}
TWICE = {"kernels/cuda/two.cu": "GM_ROW_FUNCTION uint64_t gm_one_accepts(int a)\n"}
PLANTED = [
    ({**GOOD, README: "`--listen`\n"}, "--threads of gemmd --help is neither"),
    ({**GOOD, README: "`--listen-on`, `--threads`\n"}, "--listen of gemmd --help is neither"),
    ({**GOOD, MANUAL: ".It Fl -listen\n"}, "--threads of gemmd --help is not in server/gemmd.1"),
    ({**GOOD, "gemmd": "#!/bin/sh\nexit 3\n"}, "ends with status 3"),
    ({**GOOD, PROTOCOL: "| 422 | `bad_json` |\n"}, "does not list bad_json in its row of 400"),
    ({**GOOD, PROTOCOL: "| 400 | `bad_json`, `bad_luck` |\n"}, "lists bad_luck in its row of 400"),
    ({**GOOD, "proto/status.h": ""}, "no errors were found"),
    ({**GOOD, PROTOCOL: "`repeat`\n| 400 | `bad_json` |\n"}, "does not name the parameter `alpha`"),
    ({**GOOD, "server/request/params.h": ""}, "no parameters were found"),
    ({**GOOD, "server/api/stats.h": "", "server/api/metrics.c": ""}, "no metrics were found"),
    ({**GOOD, PROTOCOL: METRICS.splitlines()[0]}, "does not list the gauge `gemmd_queue_depth`"),
    ({**GOOD, PROTOCOL: METRICS.replace("gauge", "counter")}, "lists the counter `gemmd_queue_depth`; server/api"),
    ({**GOOD, PROTOCOL: METRICS.replace("one_", "two_")}, "does not list the counter `gemmd_one_total`"),
    ({**GOOD, PROTOCOL: METRICS.replace("idle", "")}, "does not name `idle`"),
    ({**GOOD, KERNELS: "## copy\n`naive` `tiled`\n## matmul\n"}, "no `tiled` under a heading"),
    ({**GOOD, "kernels/variants.def": ""}, "no variants were found"),
    ({**GOOD, **TWICE}, "gm_one_accepts is a row's function in kernels/cuda/one.cu and in"),
]
CLEAN = [GOOD]
lint.main(globals())
