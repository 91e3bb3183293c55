#!/usr/bin/python3
"""Breaks the kernels on purpose, one small fault at a time, and looks whether a test notices.

    mutate.py --build DIR            three faults a kernel: a guard, a barrier, an index
    mutate.py --build DIR --all      every fault it can think of; the score per kernel and in total
    mutate.py --build DIR --kernel matmul_tiled ...
    mutate.py --build DIR --all --kinds barrier index ...

A fault is a change of a few characters in the .cu file that has GM_KERNEL(NAME): a comparison off by one, a guard
dropped, a barrier removed, indices exchanged, a sign or a stride changed. The changed file is
compiled as the simulator's build does it and linked into test_sim_variants, which runs that one
kernel against the oracle and ends at the first failure. A fault that no test notices has survived:
the test lacks a shape, or the fault changes nothing that can be seen. EQUIVALENT names those, each
with the reason. DIR is a build without sanitizers, where test_sim_variants is built.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from build_tree import BuildTree, run  # noqa: E402

# What a kernel may take before it is taken to go on for ever: a sound one takes some ten seconds,
# and most faults end a test at once.
SECONDS = 120

# (pattern, replacement, kind): each match of each pattern is a fault. Binary operators have spaces
# around them, brackets of templates have none.
FAULTS = [
    (r" < ", " <= ", "comparison"),
    (r" <= ", " < ", "comparison"),
    (r" >= ", " > ", "comparison"),
    (r" > ", " >= ", "comparison"),
    (r" == ", " != ", "comparison"),
    (r" != ", " == ", "comparison"),
    (r"(?<= < )([\w.]+)(?=[;) ])", r"\1 - 1", "bound"),
    (r"(?<= >= )([\w.]+)(?=[;) ])", r"\1 + 1", "bound"),
    (r"\bif \((?=[^\n]*\)\n)", "if (true || ", "guard"),
    (r"(?<=[(= ])([^()&|=?]+) && ([^()&|;?]+)", r"\1", "guard"),
    (r"(?<=[(= ])([^()&|=?]+) && ([^()&|;?]+)", r"\2", "guard"),
    (r"(?<=[(= ])([^()&|=?]+) \|\| ([^()&|;?]+)", r"\1", "guard"),
    (r"(?<=[(= ])([^()&|=?]+) \|\| ([^()&|;?]+)", r"\2", "guard"),
    (r"__syncthreads\(\);", ";", "barrier"),
    (r"\[([^\[\]]+)\]\[([^\[\]]+)\]", r"[\2][\1]", "index"),
    (r"\b(row|col) \* (\w*\.?)(rows|cols|M|N) \+ (row|col)\b", r"\4 * \2\3 + \1", "index"),
    (r"\* (\w*\.?)rows\b", r"* \1cols", "index"),
    (r"\* (\w*\.?)cols\b", r"* \1rows", "index"),
    (r"Idx\.x\b", "Idx.y", "index"),
    (r"Idx\.y\b", "Idx.x", "index"),
    (r"Dim\.x\b", "Dim.y", "stride"),
    (r"Dim\.y\b", "Dim.x", "stride"),
    (r" \+ ", " - ", "sign"),
    (r" - ", " + ", "sign"),
    (r" \+= ", " -= ", "sign"),
    (r" \* (?=\w)", " + ", "stride"),
    (r"(?<=\b)([234]) \* ", r"(\1 + 1) * ", "stride"),
    (r" \+ ([123])\b", r" + \1 - 1", "stride"),
    (r"\+= (\w+)(?=[;)])", r"+= \1 + 1", "stride"),
    (r"\+= (\w+)(?=[;)])", r"+= 2 * \1", "stride"),
    (r" \? ([^:;?]+) : ([^:;?)]+)", r" ? \2 : \1", "guard"),
]

# Faults that change nothing a test of results could see: (kernels; how Fault.about begins, or what
# the changed line has; why).
EQUIVALENT = [
    ("matmul_split_k_dot", r"<= (rounds|DOT_SPLITS_MAX)|(rounds|DOT_SPLITS_MAX) - 1|\? (rounds|DOT_SPLITS_MAX) :|splits >= 1",
     "into how many slices k is cut"),
    ("matmul_split_k_dot", r"THREADS \+ ahead", "more scratch than is used"),
    ("matmul_split_k_dot", r"k <= end|begin <= steps|row > ROWS|ROWS \+ 1",
     "what is asked again after it, or the same where they are equal"),
    ("matmul_(split_k_dot|batched)", r"SIDE_MAX|shared_per_block", "how much it accepts at most"),
    ("matmul_batched", r"y > rows|rows \+ 1\)|<= s\.c\.many|HUGE_VAL",
     "what is asked again after it, or the same where they are equal"),
    ("matmul_batched", r"true \|\| s\.p\.c\.data|s\.K >= 0|k_tile - 1|s\.K - 1\)",
     "the longer way to the same, or padding that no lane reads"),
    (".*", r"host sign: +[-+] (3 \* )?first\b|host stride: 3 \* first",
     "`first` is where a second launch begins, for 2^39 elements"),
    (".*", r"host guard: (if \(status| 0; i < 2 && status)",
     "what is done after a launch that failed does not matter"),
    (".*", r"host comparison: +== GM_OK\)\s+status = gm_begin_pass",
     "which pass a launch counts as is the figures', not the results'"),
    (".*", r"host stride: .* in dim3 grid = gm_resident_grid",
     "how many blocks go round does not change what they do"),
    ("add_.*", r"i != 0 \? (a|scratch_a) :|i == 0 \? (b|scratch_b) :", "a + b is b + a"),
    ("add_float3_.*", r"\((2|6) \+ 1\) \* sizeof", "more scratch than is used"),
    ("add_float3_(soa|aligned)", r"device comparison: +< points\) \{\s+(float4 point|span\[3)",
     "a point beyond the last is read from the padding, or of the other operand, and not stored"),
    ("add_float3_staged|flip_shared", r" <= (SPAN|blockDim\.x) \? ",
     "both ways the same where they are equal"),
    ("transpose_unaligned", r"pair\[S::n\]\[S::rounds\]", "as many, and handed on by their address"),
    ("transpose_packed_u8", r"device comparison: .{,9}i\+\+\)( \{)?\s+(if \(p\.inner\)|block\[i\] =|tile\[c|unsigned c = i)",
     "a step beyond the end of an array, which the compiler leaves out, or beyond the last column"),
    ("transpose_.*|add_vectorized", r" <= (ACROSS|N|many|length|S::rows|S::cols) \? ",
     "both ways the same where they are equal"),
    ("add_float3_staged", r"rest < SPAN - 1 \?|point < span - 1", "both are multiples of 3"),
    (".*_grid_stride", r"(next_col = |col \+= )gridDim\.(y \* |x \+ )(blockDim\.x|SIDE)",
     "a shorter stride does elements more than once"),
    ("copy_vector", r"stride = \(uint64_t\)gridDim\.(x \+|y \*) THREADS",
     "a shorter stride moves bytes more than once"),
    ("copy_vector", r"(i - 3|\(3 \+ 1\)) \* stride < vecs", "the loop after moves what is left"),
    ("matmul_(register_tiled|vector_loads)", r"acc\[(C::)?TN\]\[(C::)?TM\]", "as many rows as columns"),
    ("matmul_(tiled|dynamic_tile|vector_loads|warp_tiled)", r"first <= p\.K;",
     "one round more, of zeros"),
    ("matmul_double_buffered", r"next <= p\.K \+", "one round more, of zeros"),
    ("matmul_(vector_loads|warp_tiled|double_buffered)", r"p\.[KN] - 1\b",
     "rows are whole vectors, of which no edge cuts one"),
    ("matmul_grouped", r"if \(rows <= TILE \|\| cols < TILE|\|\| cols <= TILE \|\| min",
     "a whole tile cleared before it is filled"),
    ("transpose_grouped", r"sizeof\(T\) <= 4 \? 4 / sizeof\(T\) : 1", "both the same where it differs"),
    ("transpose_batched", r"host comparison",
     "other sizes are accepted, or shared out otherwise: either way is right"),
    ("transpose_vectorized", r"128 / BYTES <= SIDE", "both are the same where it differs"),
    ("matmul_dynamic_tile", r"\(2 \+ 1\) \* element", "more shared memory than is used"),
    ("matmul_skinny", r"if \(at \+ (SPANS|AHEAD) (\* stride <=|\+ stride)|true \|\| at \+ |(j|i) >= 0 && step|"
     r"if \(step >= k\.count\)",
     "loads ahead, or in a round more, what is not used"),
    ("matmul_skinny", r"step <= k\.count \? k\.count|line \+ mine <= s\.lines \?|at < s\.lines - 1 \?",
     "both the same where they are equal"),
    ("matmul_skinny", r"op->result\.(rows|cols) >= VECTORS_MAX|if \(op->result\.(rows|cols) > VECTORS_MAX\)",
     "how much it accepts"),
    ("matmul_skinny", r"splits >= 1 \?", "more scratch than is used"),
    ("matmul_skinny", r"blockIdx\.y - 1\)", "the first split sums all of K"),
    ("matmul_skinny", r"wide_log\) - 1, part_deep|\) \+ 1 - 1, part_deep", "the padding of shared memory"),
    ("matmul_skinny", r"true \|\| !op->gathered", "test_groups notices that rows have other bits in company"),
    ("matmul_dynamic_tile", r"host .*(busy|score_of|NARROWEST|gm_gpu_occupancy)",
     "another width does as well"),
]


def rows():
    """entry -> operation/name, of the list of variants."""
    text = (ROOT / "kernels/variants.def").read_text()
    found = re.findall(r'^GM_(?:SIMT|GROUPED)\(GM_OP_(\w+),\s*(\w+),\s*"(\w+)"', text, re.M)
    return {entry: f"{op.lower()}/{name}" for op, entry, name in found}


class Fault:
    """A change of the text from `begin` to `end`, for `piece`."""

    def __init__(self, kernel, kind, text, begin, end, piece):
        self.kernel, self.kind = kernel, kind
        self.text = text[:begin] + piece + text[end:]
        self.line = text.count("\n", 0, begin) + 1
        line_begin = text.rfind("\n", 0, begin) + 1
        self.before = text[line_begin:text.find("\n", end)].strip()
        self.after = self.text[line_begin:self.text.find("\n", begin + len(piece))].strip()
        # What it is about: the side it is on, the changed words and the next.
        side = "host" if text.find("GM_KERNEL") < begin or is_host(text, begin) else "device"
        self.about = f"{side} {kind}: {text[begin:end]}{text[end:end + 50]} in {self.before}"

    def __str__(self):
        return f"{self.kernel}:{self.line} {self.kind}: {self.before}  ->  {self.after}"

    def equivalent(self):
        for kernel, part, why in EQUIVALENT:
            if re.fullmatch(kernel, self.kernel) and (re.search(part, self.after) or
                                                      re.match(part, self.about, re.S)):
                return why
        return None


def code_begin(text):
    """Where the code begins: after the head comment, #include and #define."""
    return max(m.end() for m in re.finditer(r"^#(include|define)[^\n]*\n|\*/\n", text, re.M)
               if m.start() < text.index("__global__"))


def files():
    """Entry -> its file; the device code of some is in headers that they share, and is not broken
    here."""
    found = {}
    for path in sorted(ROOT.glob("kernels/cuda/*/*.cu")):
        for entry in re.findall(r"GM_KERNEL\((\w+)\)", path.read_text()):
            found[entry] = path
    return found


FILES = files()


def source_of(kernel):
    return FILES[kernel].read_text()


def faults_of(kernel):
    text = source_of(kernel)
    begin, seen = code_begin(text), {text}
    for pattern, replacement, kind in FAULTS:
        for match in re.finditer(pattern, text):
            line = text[text.rfind("\n", 0, match.start()) + 1:text.find("\n", match.end())]
            if match.start() < begin or in_comment(text, match.start()) or is_declaration(line):
                continue
            fault = Fault(kernel, kind, text, match.start(), match.end(), match.expand(replacement))
            if fault.text not in seen:
                seen.add(fault.text)
                yield fault


def is_host(text, at):
    """In a function before the entry that is neither __global__ nor __device__."""
    head = text[:at].rfind("\n{")
    before = text[max(text[:head].rfind("\n}"), text[:head].rfind(";"), 0):head]
    return "__global__" not in before and "__device__" not in before


def in_comment(text, at):
    return text.rfind("/*", 0, at) > text.rfind("*/", 0, at)


def is_declaration(line):
    """What says what is there, not what is done: arrays, parameters, types, numbers of bytes."""
    return re.match(r"\s*(__shared__|#|template|extern|static|struct\b.*\{|using)", line) is not None


class Builder:
    """Compiles and links as the build in `build` does."""

    def __init__(self, build):
        tree = BuildTree(build)
        self.build, entries = tree.folder, {path: entry for entry, path in FILES.items()}
        self.commands = {entries[path]: words for path, words in tree.compilations()
                         if path in entries and "simt_kernels_code" in str(words)}
        self.link, self.link_folder = tree.link("tests/test_sim_variants")
        self.tools = [tree.cache(f"CMAKE_{name}") for name in (
            "C_COMPILER", "LINKER", "OBJCOPY", "READELF", "ADDR2LINE")]

    def make(self, fault, folder):
        """The test program with the fault in it, or None if that does not compile."""
        source = folder / f"{fault.kernel}.cu"
        source.write_text(fault.text)
        words = [w for w in self.commands[fault.kernel] if w != "-Werror"]
        words[words.index("-o") + 1] = str(folder / "mutant.o")
        words[words.index("-c") + 1] = str(source)
        if subprocess.run(words, capture_output=True, cwd=self.build).returncode != 0:
            return None
        run([ROOT / "kernels/sim/object.sh", *self.tools, ROOT, folder / "mutant.o",
             folder / "kernel.o"])
        words = list(self.link)
        words[words.index("-o") + 1] = str(folder / "test")
        # Before the archive, whose own kernel is then not wanted.
        archive = next(i for i, w in enumerate(words) if w.endswith("libgemmd_kernels.a"))
        words.insert(archive, str(folder / "kernel.o"))
        run(words, cwd=self.link_folder)
        return folder / "test"


def judge(builder, fault, variant):
    """'killed', 'survived' or 'not compiled', and how it was noticed."""
    with tempfile.TemporaryDirectory() as folder:
        program = builder.make(fault, pathlib.Path(folder))
        if program is None:
            return "not compiled", ""
        try:
            done = subprocess.run([program, "--only", variant], capture_output=True, text=True,
                                  timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "killed", "it went on for ever"
        if done.returncode == 0:
            return "survived", ""
        if done.returncode < 0:
            return "killed", f"THE SIMULATOR ENDED by signal {-done.returncode}"
        text = done.stderr
        report = re.search(r"kernel_fault, not ok: [^\n]*?: ([^\n]*)", text)
        return "killed", report.group(1) if report else "wrong results"


def sample(faults):
    """Of a kernel: a guard, a barrier, an index, as far as it has them."""
    chosen = []
    for kinds in (("comparison", "bound"), ("barrier",), ("index",)):
        chosen += [f for f in faults if f.kind in kinds and not f.equivalent()][:1]
    return chosen


def start(pool, builder, kernel, variant, everything, kinds):
    """(fault, job that judges it, or None where it changes nothing) of one kernel."""
    faults = [f for f in faults_of(kernel) if not kinds or f.kind in kinds]
    return [(f, None if f.equivalent() else pool.submit(judge, builder, f, variant))
            for f in (faults if everything else sample(faults))]


def finish(started, verbose):
    score = collections.Counter()
    for fault, job in started:
        outcome, how = job.result() if job else ("equivalent", "")
        score[outcome] += 1
        if verbose or outcome == "survived" or "SIMULATOR" in how:
            print(f"{outcome:9} {fault}" + (f"\n          {how}" if how else ""), flush=True)
    return score


def row(name, score):
    tried = score["killed"] + score["survived"]
    return (f"{name:20} {score['killed']:4} of {tried:4} faults noticed"
            f" ({100 * score['killed'] / max(tried, 1):5.1f} %), {score['equivalent']} change"
            f" nothing, {score['not compiled']} do not compile")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--kernel", nargs="*", action="extend", default=[])
    parser.add_argument("--kinds", nargs="*", default=[], choices=sorted({kind for _, _, kind in FAULTS}))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="how each was noticed")
    options = parser.parse_args()
    builder, variants = Builder(options.build), rows()
    kernels = options.kernel or sorted(k for k in builder.commands
                                       if k in variants and "__global__" in source_of(k))
    if not kernels:
        sys.exit("no kernels: is test_sim_variants built there?")
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {kernel: start(pool, builder, kernel, variants[kernel], options.all, options.kinds)
                for kernel in kernels}
        for kernel, started in jobs.items():
            score = finish(started, options.verbose)
            print(row(kernel, score), flush=True)
            total += score
    print(row("total", total))
    if total["killed"] == 0:
        sys.exit("nothing was tried")
    sys.exit(1 if total["survived"] else 0)


if __name__ == "__main__":
    main()
