#!/usr/bin/python3
"""Prints kernels/resources.def: what nvcc makes each kernel take that the simulator can run.

    tests/bench/resources.py . > kernels/resources.def.new && mv kernels/resources.def.new kernels/resources.def

Files that are as they were when the table was made keep their rows, which are read from the table that
is there: so do not write to that one. A changed file takes some seconds, and all together take a quarter of
an hour of a core. tests/lint/check_resources.py remakes a part of the table.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

CAPABILITIES = (75, 80, 86, 89, 90, 100, 120)
KERNELS = "kernels/cuda"
NONE = "GM_R(0, 0, 0)"
HEAD = """/*
 * resources.def - is what nvcc makes each kernel take: a row for each instance of a template, and in
 * it a column for each compute capability ({capabilities}).
 *
 * Made by tests/bench/resources.py with nvcc {version}. A file's number is that of its text without
 * comments and of what it includes; its rows follow. tests/lint/check_resources.py remakes those of
 * changed files.
 *
 * GM_RESOURCES(mangled name, columns); GM_R(registers per thread, bytes of static shared memory per
 * block, bytes per thread that did not fit in registers)
 */
"""


def nvcc():
    """The path of nvcc, or None."""
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def version(compiler):
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return re.search(r"release [\d.]+, V([\d.]+)", done.stdout)[1]


def kernels(root):
    """Those that the simulator can run; the others are named sm90_NAME.cu, or are part of the backend."""
    paths = sorted((pathlib.Path(root) / KERNELS).glob("*/*.cu"))
    return [path.relative_to(root).as_posix() for path in paths
            if not re.match(r"sm\d+_", path.name) and path.parent.name != "backend"]


def bare(text):
    """Without comments and white space."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text)


def closure(root, path, seen):
    """The texts of a file and of those that it includes of kernels/cuda."""
    if path in seen:
        return
    seen.add(path)
    text = (pathlib.Path(root) / path).read_text(encoding="utf-8")
    yield bare(text)
    for name in re.findall(r'#include ["<]([^">]+)[">]', text):
        name = "kernels/cuda/include/simt.h" if name == "simt.h" else name
        if name.startswith(KERNELS) and (pathlib.Path(root) / name).exists():
            yield from closure(root, name, seen)


def number(root, path):
    text = "\n".join(closure(root, path, set()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def same_everywhere(symbol):
    """g++'s name of what nvcc calls so: an unnamed namespace has the file's name in it."""
    out, at = "", 0
    for found in re.finditer(r"(\d+)(?=_GLOBAL__N_)", symbol):
        if found.start() < at:
            continue
        out += symbol[at:found.start()] + "12_GLOBAL__N_1"
        at = found.end() + int(found[1])
    return re.sub(r"^_ZL", "_Z", out + symbol[at:])


def resources(said):
    """{symbol: (registers, shared, spilled)} of what ptxas says."""
    found = {}
    for part in said.split("Compiling entry function '")[1:]:
        symbol = same_everywhere(part.split("'", 1)[0])
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        shared = re.search(r"(\d+) bytes smem", part)
        spilled = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", part)
        found[symbol] = (registers, int(shared[1]) if shared else 0, int(spilled[2]))
    return found


def compiled(root, compiler, path, capability):
    """The same of a file's kernels."""
    name = "90a" if capability == 90 else str(capability)
    done = subprocess.run(
        [compiler, "-std=c++17", "-O3", "-D_GNU_SOURCE", f"-DGM_HAVE_SM90A={int(name == '90a')}",
         "-gencode", f"arch=compute_{name},code=sm_{name}", "-I.", "-Ikernels/cuda/include", "-cubin",
         "--resource-usage", "-o", "/dev/null", path],
        cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"nvcc of {path} for {name}: {done.stderr}")
    return resources(done.stdout + done.stderr)


def cell(row):
    return f"GM_R({row[0]}, {row[1]}, {row[2]})" if row else NONE


def sections(text):
    """{file: (its number, its rows as text)} of a table."""
    parts = re.split(r"^/\* (\S+\.cu) ([0-9a-f]+) \*/\n", text, flags=re.M)
    return {name: (said, rows) for name, said, rows in zip(parts[1::3], parts[2::3], parts[3::3])}


def table(compiler, root, before=""):
    """The lines of the table. Rows of files that are as they were in the table before are taken from it."""
    known = sections(before) if f"with nvcc {version(compiler)}." in before else {}
    yield HEAD.format(version=version(compiler), capabilities=", ".join(map(str, CAPABILITIES)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {}
        for path in kernels(root):
            if known.get(path.removeprefix(KERNELS + "/"), ("", ""))[0] != number(root, path):
                jobs[path] = [pool.submit(compiled, root, compiler, path, c) for c in CAPABILITIES]
        for path in kernels(root):
            name = path.removeprefix(KERNELS + "/")
            yield f"/* {name} {number(root, path)} */\n"
            if path not in jobs:
                yield known[name][1]
                continue
            by_capability = [job.result() for job in jobs[path]]
            for symbol in sorted(set().union(*by_capability)):
                columns = ", ".join(cell(rows.get(symbol)) for rows in by_capability)
                yield f'GM_RESOURCES("{symbol}", {columns})\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    root = parser.parse_args().checkout
    if not kernels(root):
        parser.error(f"{root} has no kernels in {KERNELS}")
    compiler = nvcc()
    if not compiler:
        raise SystemExit("nvcc is not here")
    path = root / "kernels/resources.def"
    if path.exists() and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno())):
        parser.error(f"the output is {path} itself, whose rows are now lost: write to {path}.new, and "
                     f"get it back by `git checkout {path}`")
    sys.stdout.writelines(table(compiler, root, path.read_text(encoding="utf-8") if path.exists() else ""))


if __name__ == "__main__":
    main()
