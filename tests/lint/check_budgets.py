"""Sizes that keep a file and a function readable. Beyond the first number is a warning, beyond the
second a failure: look for the module that is missing.
"""
import re

import lint

FILES = [("*.cu", 200, 300), ("*.inc", 200, 300), ("*.c", 600, 750), ("*.cc", 600, 750),
         ("*.h", 120, 200), ("*CMakeLists.txt", 150, 225)]
FUNCTION = 70, 105


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


def check(tree):
    for pattern, budget, most in FILES:
        for path in tree.matching(pattern):
            yield from judged(path, sum(1 for _ in tree.lines(path)), budget, most)
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
]
CLEAN = [
    {"a.c": function(105) * 5, "b.h": "int x;\n" * 120},
    {"a.c": "static const int t[] = {\n" + "    1,\n" * 200 + "};\n" + function(20)},
]
lint.main(globals())
