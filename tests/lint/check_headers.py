"""Every header of ours can be included alone, twice, as C17; and as C++17 where C++ may see it. The
macros of the product's headers have the project's prefix.

Alone: so that the order of includes never matters. C++ sees the headers that say extern "C";
whatever a .cc or .cu file includes has to say so, with all that it includes in turn. Headers in
the language of kernels are compiled as the simulator compiles them; those that need CUDA's own are
left out where there is none.
"""
import os
import re
import subprocess

import check_arrows
import lint

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-fsyntax-only", "-D_GNU_SOURCE",
            '-DGM_VERSION="0"']
C = ["gcc", "-std=c17", "-x", "c", "-Wstrict-prototypes"]
CPP = ["g++", "-std=c++17", "-x", "c++"]

SIMT = "kernels/sim/include"
GPU_ALONE = re.compile(r"/sm[0-9]+[^/]*$") # in the instructions of one kind of GPU
# What g++ takes from the simulator's build of kernels (kernels/sim/simt.cmake).
KERNEL = CPP + ["-I", SIMT, "-Wno-unknown-pragmas", "-Wno-attributes"]
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"


DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)")
PREFIX = re.compile(r"_?(GM|GEMMD)_|gm_|gemmd_")
LANGUAGE = "kernels/sim/include/", "kernels/cuda/include/" # define the words of CUDA


def unprefixed(tree, header):
    """Macros that stay defined and could be anybody's."""
    text = tree.read(header) or ""
    for number, line in tree.lines(header):
        found = DEFINE.match(line)
        if found and not PREFIX.match(found.group(1)) and f"#undef {found.group(1)}" not in text:
            yield f"{header}:{number}: the macro {found.group(1)} has no prefix GM_"


def compile_alone(tree, compiler, header):
    """The compiler's complaint about a file that includes nothing else; "" if there is none."""
    source = f'#include "{header}"\n' * 2 + "int main(void);\n"
    command = compiler + WARNINGS + ["-I", str(tree.root), "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=tree.root)
    return done.stderr if done.returncode else ""


def included(tree, path):
    for _, line in tree.lines(path):
        found = check_arrows.INCLUDE.match(line)
        if found and found.group(1) == '"':
            yield check_arrows.resolve(tree, path, found.group(2))


def seen_by_cpp(tree):
    """Header -> the C++ or CUDA file that includes it, directly or not."""
    seen = {}
    todo = [(path, path) for path in tree.matching("*.cc", "*.cu", "*.cuh")]
    while todo:
        path, source = todo.pop()
        for header in included(tree, path):
            if header.endswith(".h") and header not in seen and tree.read(header) is not None:
                seen[header] = source
                todo.append((header, source))
    return seen


def reaches(tree, path, name, known):
    """Whether a header includes <name>, directly or not."""
    if path not in known:
        known[path] = False # until it is known: headers may include each other
        lines = (tree.read(path) or "").splitlines()
        found = [check_arrows.INCLUDE.match(line) for line in lines]
        known[path] = (any(one and one.groups() == ("<", name) for one in found) or
                       any(reaches(tree, other, name, known) for other in included(tree, path)))
    return known[path]


def check(tree):
    headers = tree.matching("proto/*.h", "kernels/*.h", "server/*.h", "clients/*.h", "tests/*.h")
    seen = seen_by_cpp(tree)
    simt, cuda = {}, {}
    for header in headers:
        if not header.startswith((*LANGUAGE, "tests/")):
            yield from unprefixed(tree, header)
        if header.startswith("kernels/cuda/include/") or GPU_ALONE.search(header):
            continue # nvcc's
        if header.startswith(SIMT) or reaches(tree, header, "simt.h", simt):
            complaint = compile_alone(tree, KERNEL, header)
            if complaint:
                yield f"{header} does not compile alone as a kernel's:\n{complaint}"
            continue
        if reaches(tree, header, "cuda_runtime.h", cuda):
            if os.path.exists(CUDA):
                complaint = compile_alone(tree, C + ["-I", CUDA], header)
                if complaint:
                    yield f"{header} does not compile alone as C17:\n{complaint}"
            continue
        complaint = compile_alone(tree, C, header)
        if complaint:
            yield f"{header} does not compile alone as C17:\n{complaint}"
        says_so = 'extern "C"' in tree.read(header)
        if header in seen and not says_so:
            yield f'{header} is included by {seen[header]} but does not say extern "C"'
        complaint = compile_alone(tree, CPP, header) if says_so else ""
        if complaint:
            yield f"{header} does not compile alone as C++17:\n{complaint}"


GUARDED = "#ifndef GM_A\n#define GM_A\n%s\n#endif\n"
EXTERN = '#ifdef __cplusplus\nextern "C" {\n#endif\n%s\n#ifdef __cplusplus\n}\n#endif\n'
PLANTED = [
    ({"proto/a.h": GUARDED % "size_t f(void);"}, "alone as C17"),
    ({"proto/a.h": "struct a {\n    int x;\n};\n"}, "alone as C17"),
    ({"kernels/a.h": GUARDED % EXTERN % "int f(int class);"}, "alone as C++17"),
    ({"proto/a.h": GUARDED % "int f(void);", "proto/a.cc": '#include "a.h"\n'}, "by proto/a.cc"),
    ({"proto/a.h": GUARDED % "int f(void);", "proto/b.h": '#include "a.h"\nextern "C" int x;\n',
      "kernels/cuda/k.cu": '#include "proto/b.h"\n'}, "proto/a.h is included by kernels/cuda/k.cu"),
    ({"server/a.h": GUARDED % "#define SIZE 4\nint f(void);"},
     "server/a.h:3: the macro SIZE has no prefix"),
]
CLEAN = [
    {"proto/a.h": GUARDED % EXTERN % "int f(void);", "proto/a.cc": '#include "a.h"\n'},
    {"server/a.h": GUARDED % "int f(int class);"},
    {"server/a.h": GUARDED % "#define X(name) GM_##name,\nenum { X(ONE) };\n#undef X\n#define GM_B 1"},
]
lint.main(globals())
