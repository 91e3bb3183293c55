"""Sizes that keep a file and a function readable. Beyond the first number is a warning, beyond the
second a failure: look for the module that is missing.

The other way round: a header that one file includes is part of that file, unless it would be too
long with it. And there are no more headers, and files in a folder, than a reader can look through.
"""
import collections
import posixpath
import re

import check_cycles
import lint

FILES = [("*.cu", 200, 300), ("*.inc", 200, 300), ("*.c", 600, 750), ("*.cc", 600, 750),
         ("*.h", 120, 200), ("*CMakeLists.txt", 150, 225)]
FUNCTION = 70, 105
PRODUCT = ("proto/", "kernels/", "server/")
HEADERS_MOST, FOLDER_MOST = 120, 25  # of the product


def functions(tree, path):
    """(name, lines) of each function: from its opening brace to the closing one, which the
    project's formatting puts at the beginning of lines of their own."""
    start, name, before = None, "", ""
    for number, line in tree.lines(path):
        if line == "{" and "(" in before:
            start, name = number, before
        elif line.startswith("}") and start:
            yield re.sub(r"\(.*", "", name).split()[-1].lstrip("*"), number - start + 1
            start = None
        if line == "{" or line.startswith("}") or not line.strip():
            before = ""
        elif not line.startswith(("#", "//", "/*", " *")):
            # A signature may go on over several, indented, lines.
            before = before + " " + line.strip() if line.startswith(" ") else line


def judged(what, size, budget, most):
    """A sentence where it is a failure; a warning on the way there."""
    sentence = f"{what} has {size} lines; the budget is {budget}, and {most} is the most"
    if size > most:
        yield sentence
    elif size > budget:
        lint.warn(sentence)


def length(tree, path):
    return sum(1 for _ in tree.lines(path))


def crumbs(tree):
    """Headers of the product that one file alone includes, and that would fit into it."""
    users = collections.defaultdict(list)
    files = [p for p in tree.paths if p.endswith(check_cycles.SUFFIXES)]
    for path, targets in check_cycles.includes(tree, files).items():
        for target in targets:
            users[target].append(path)
    most = {pattern.lstrip("*"): most for pattern, _, most in FILES}
    for header in [p for p in users if p.startswith(PRODUCT) and p.endswith(".h")]:
        user, *others = users[header]
        suffix = posixpath.splitext(user)[1]
        if not others and length(tree, header) + length(tree, user) <= most.get(suffix, 0):
            yield f"{header} is included by {user} alone, and would fit into it"


def counts(tree):
    sources = [p for p in tree.paths if p.startswith(PRODUCT)
               and p.endswith((*check_cycles.SUFFIXES, ".inc", ".def"))]
    headers = sum(p.endswith(".h") for p in sources)
    if headers > HEADERS_MOST:
        yield f"there are {headers} headers; {HEADERS_MOST} is the most: join those of one idea"
    for folder, many in collections.Counter(map(posixpath.dirname, sources)).items():
        if many > FOLDER_MOST:
            yield f"{folder}/ has {many} source files; {FOLDER_MOST} is the most"


def check(tree):
    yield from crumbs(tree)
    yield from counts(tree)
    for pattern, budget, most in FILES:
        for path in tree.matching(pattern):
            yield from judged(path, length(tree, path), budget, most)
    for path in tree.matching("*.c", "*.cc", "*.cu", "*.inc"):
        for name, size in functions(tree, path):
            yield from judged(f"{path}: {name}()", size, *FUNCTION)


def function(lines, signature="static int f(int a)"):
    return f"/* what it does */\n{signature}\n{{\n" + "    a++;\n" * (lines - 2) + "}\n"


PLANTED = [
    ({"a.c": "int x;\n" * 751}, "a.c has 751 lines"),
    ({"a/b.h": "int x;\n" * 201}, "a/b.h has 201 lines"),
    ({"k.cu": "int x;\n" * 301}, "k.cu has 301 lines"),
    ({"k.inc": function(106)}, "k.inc: f() has 106 lines"),
    ({"a.c": function(10) + function(106)}, "a.c: f() has 106 lines"),
    ({"a.c": function(106, "static enum gm_status *f(int a,\n                         int b)")},
     "a.c: f() has 106 lines"),
    ({"proto/a.h": "int x;\n", "proto/a.c": '#include "a.h"\n'}, "included by proto/a.c alone"),
    ({"kernels/a.h": "int x;\n", "kernels/b.cu": '#include "kernels/a.h"\n' + "int y;\n" * 298},
     "kernels/a.h is included by kernels/b.cu alone"),
    ({f"server/{n % 9}/{n}.h": "" for n in range(HEADERS_MOST + 1)}, "headers; 120 is the most"),
    ({f"server/{n}.c": "" for n in range(26)}, "server/ has 26 source files"),
]
CLEAN = [
    {"a.c": function(105) * 5, "b.h": "int x;\n" * 120},
    {"proto/a.h": "int x;\n", "proto/a.c": '#include "a.h"\n', "tests/a.c": '#include "proto/a.h"\n'},
    {"kernels/a.h": "int x;\n", "kernels/b.cu": '#include "kernels/a.h"\n' + "int y;\n" * 299},
    {"a.c": "static const int t[] = {\n" + "    1,\n" * 200 + "};\n" + function(20)},
]
lint.main(globals())
