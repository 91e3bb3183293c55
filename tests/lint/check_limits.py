"""The name of a limit or a size has one value in the product: a macro that ends in _MAX, _MIN,
_BYTES and the like, defined in several files with several values, is read for the wrong one.
"""
import re

import lint

DEFINE = re.compile(r"\s*#\s*define\s+(\w+_(?:MAX|MIN|BYTES|EVERY|PERCENT|WANTED|ALIGNMENT))\s+(.+)")
UNDEF = re.compile(r"\s*#\s*undef\s+(\w+)")


def value(text):
    """Without its comment, spaces, and the suffix that says its type."""
    text = re.sub(r"/\*.*|//.*", "", text)
    return re.sub(r"(?<=[0-9])[uUlL]+\b|\s", "", text)


def check(tree):
    values, parameters = {}, set()
    for path in tree.matching("kernels/*.c", "kernels/*.cu", "kernels/*.h", "kernels/*.inc",
                              "server/*.c", "server/*.h", "clients/*.c", "clients/*.h", "proto/*.c", "proto/*.h", "proto/*.inc"):
        for number, line in tree.lines(path):
            if found := DEFINE.match(line):
                values.setdefault(found[1], {}).setdefault(value(found[2]), f"{path}:{number}")
            elif found := UNDEF.match(line):
                parameters.add(found[1])  # of a file that is included several times
    for name in sorted(values.keys() - parameters):
        if len(values[name]) > 1:
            yield f"{name} has several values: " + ", ".join(
                f"{text} ({place})" for text, place in values[name].items())


PLANTED = [
    ({"kernels/a.cu": "#define SLICES_MAX 256u\n", "kernels/b.h": "#define SLICES_MAX 128u\n"},
     "SLICES_MAX has several values: 256 (kernels/a.cu:1), 128 (kernels/b.h:1)"),
    ({"server/a.c": "#define WAIT_MIN 2 /* s */\n", "proto/b.c": "#  define WAIT_MIN 3\n"},
     "WAIT_MIN has several values"),
]
CLEAN = [
    {"kernels/a.c": "#define A_MAX 8u\n", "kernels/b.c": "#define A_MAX  8 /* why */\n"},
    {"kernels/a.c": "#define N_BYTES 1\n#include \"b.inc\"\n#define N_BYTES 2\n",
     "kernels/b.inc": "#undef N_BYTES\n"},
    {"kernels/a.c": "#define A_MAX 8u\n", "tests/b.c": "#define A_MAX 9\n"},
]
lint.main(globals())
