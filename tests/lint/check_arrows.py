"""Who may include whom: clients -> proto; server -> kernels -> proto; tests anything.

The folders are layers, so an include in the wrong direction is the first step of a knot. A
library's header is confined to the files that deal with that library, and our own headers
include none, so that whoever uses them need not have it.
"""
import posixpath
import re

import lint

# What every part of the server may use.
BASE = ["server/clock.h", "server/limits.h", "server/log.h", "server/text.h"]

# Folder -> the headers of ours that its files may include. The server sees the kernels' general
# headers, and nothing of what is inside a backend but the oracle, which is of no device; no backend
# sees the inside of another.
MAY_INCLUDE = {
    "proto": ["proto/*"],
    "kernels/cpu": ["proto/*", "kernels/[!/]*.h", "kernels/cpu/*"],
    "kernels/cuda": ["proto/*", "kernels/[!/]*.h", "kernels/choose/choose.h", "kernels/cuda/*"],
    # The simulator computes on the processor: its threads, its facts, its way to rearrange operands.
    "kernels/sim": ["proto/*", "kernels/[!/]*.h", "kernels/sim/*", "kernels/cuda/*",
                    "kernels/cpu/backend/pool.h", "kernels/cpu/backend/facts.h",
                    "kernels/cpu/backend/rearrange.h"],
    "kernels": ["proto/*", "kernels/*"],
    # What serves requests of any kind knows none of them.
    "server/sched": ["proto/*", "kernels/[!/]*.h", "kernels/variants.def", "kernels/choose/choose.h", *BASE,
                     "server/access/quota.h", "server/sched/*"],
    "server/matrices": ["proto/*", "kernels/[!/]*.h", *BASE, "server/access/quota.h", "server/sched/*",
                        "server/matrices/*"],
    "server/eval": ["proto/*", "kernels/[!/]*.h", "kernels/choose/choose.h", *BASE, "server/eval/*"],
    "server": ["proto/*", "kernels/[!/]*.h", "kernels/variants.def", "kernels/choose/choose.h",
               "kernels/choose/fit.h", "kernels/cpu/reference.h",
               "server/*"],
    "clients": ["proto/*", "clients/*"],
}

# Header of a library -> the files that may include it. Tests may include anything.
CONFINED = {
    "microhttpd.h": ["server/http/http.c", "server/http/read_head.c", "server/http/library_log.c",
                     "server/http/send.c", "server/http/tls.c"],
    "x509.h": ["server/http/tls.c"],
    "abstract.h": ["server/http/tls.c"],
    "jansson.h": ["proto/*.c", "server/api/compare/json.c",
                  "server/api/choose.c", "server/api/explain/json.c", "server/api/info.c", "server/api/kserve/models.c",
                  "server/api/kserve/regions.c",
                  "server/api/matrices/matrices.c", "server/matrices/files.c",
                  "server/request/reply.c", "server/text.c",
                  "clients/c/lib/error.c", "clients/c/lib/operate.c", "clients/c/gemmctl/*"],
    "curl.h": ["clients/c/lib/*"],
    "cblas.h": ["kernels/cpu/*.c"],
    "cuda_runtime.h": ["kernels/cuda/*"],
}

SOURCES = ["*.c", "*.h", "*.cc", "*.cu", "*.cuh", "*.def", "*.inc"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer(path):
    """The longest folder of the table that the file is in, or None."""
    inside = [folder for folder in MAY_INCLUDE if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def matches(path, patterns):
    # Unlike fnmatch's, the pattern's [!/]* must keep out of sub-folders.
    for pattern in patterns:
        expression = re.escape(pattern).replace(r"\[!/\]\*", "[^/]*").replace(r"\*", ".*")
        if re.fullmatch(expression, path):
            return True
    return False


def resolve(tree, path, name):
    """The file of ours that a quoted include means: beside the includer, or from the root."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    return beside if beside in tree.paths else posixpath.normpath(name)


def check(tree):
    for path in tree.matching(*SOURCES):
        folder = layer(path)
        if folder is None:
            continue
        for number, line in tree.lines(path):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, name = found.groups()
            where = f"{path}:{number}"
            if quote == '"':
                target = resolve(tree, path, name)
                if target not in tree.paths:
                    yield f"{where}: there is no {name}"
                elif not matches(target, MAY_INCLUDE[folder]):
                    yield f"{where}: {folder}/ may not include {target}"
            base = posixpath.basename(name)
            if base in CONFINED and not matches(path, CONFINED[base]):
                if path.endswith(".h"):
                    yield f"{where}: no header of ours includes {base}"
                else:
                    yield f"{where}: {base} is for {', '.join(CONFINED[base])}"


def planted(path, line, **more):
    return {path: line + "\n", "proto/m.h": "", "kernels/backend.h": "", "kernels/cpu/in.h": "",
            "server/s.h": "", **more}


PLANTED = [
    (planted("server/sched/a.c", '#include "server/s.h"'), "server/sched/ may not include server/s.h"),
    (planted("proto/a.c", '#include "kernels/backend.h"'), "may not include kernels/backend.h"),
    (planted("proto/a.c", '#include "../server/s.h"'), "may not include server/s.h"),
    (planted("kernels/a.c", '#include "server/s.h"'), "may not include server/s.h"),
    (planted("server/a.c", '#include "kernels/cpu/in.h"'), "may not include kernels/cpu/in.h"),
    (planted("clients/c/a.c", '#include "kernels/backend.h"'), "may not include"),
    (planted("kernels/cuda/a.cu", '#include "../cpu/in.h"'), "may not include kernels/cpu/in.h"),
    (planted("server/a.c", '#include "server/gone.h"'), "there is no server/gone.h"),
    (planted("server/sched/sched.c", "#include <microhttpd.h>"), "is for server/http/http.c"),
    (planted("server/sched/sched.c", "# include <jansson.h>"), "jansson.h is for"),
    (planted("server/a.h", "#include <microhttpd.h>"), "no header of ours includes"),
    (planted("kernels/cpu/a.c", "#include <cuda_runtime.h>"), "cuda_runtime.h is for"),
]
CLEAN = [
    planted("proto/a.c", '#include "m.h"\n#include <jansson.h>'),
    planted("kernels/cpu/a.c", '#include "in.h"\n#include "proto/m.h"\n#include "kernels/backend.h"'),
    planted("server/http/http.c",
            '#include "server/s.h"\n#include "kernels/backend.h"\n#include <microhttpd.h>'),
    planted("tests/unit/a.c", '#include "kernels/cpu/in.h"\n#include <jansson.h>'),
]
lint.main(globals())
