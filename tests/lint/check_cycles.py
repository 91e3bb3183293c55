"""No circle of includes: of headers, nor of modules.

A module is a source with the header of its name. A header without a source of its own, such as the
internal one of a folder, is part of each module that includes it. In a circle no module can be read,
tested or changed without all others.
"""
import posixpath
import re

import lint

FOLDERS = ["proto", "kernels", "server", "clients"]
SUFFIXES = (".c", ".h", ".cc", ".cu", ".cuh")
SOURCES = (".c", ".cc", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def includes(tree, paths):
    """File -> the files of ours that it includes."""
    known = set(paths)
    graph = {}
    for path in paths:
        graph[path] = set()
        for name in INCLUDE.findall(tree.read(path) or ""):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            target = beside if beside in known else posixpath.normpath(name)
            if target in known and target != path:
                graph[path].add(target)
    return graph


def modules(files):
    """Module -> the modules that it needs, through headers that are no module's own."""
    stem = {path: posixpath.splitext(path)[0] for path in files}
    with_source = {stem[path] for path in files if path.endswith(SOURCES)}

    def reached(path, seen):
        for target in files[path] - seen:
            seen.add(target)
            if stem[target] in with_source:
                yield stem[target]
            else:
                yield from reached(target, seen)

    graph = {name: set() for name in with_source}
    for path in files:
        if stem[path] in with_source:
            graph[stem[path]].update(set(reached(path, {path})) - {stem[path]})
    return graph


def circle(graph):
    """The nodes of one circle in order, or None."""
    done, way = set(), []

    def visit(node):
        if node in way:
            return way[way.index(node):]
        if node in done:
            return None
        way.append(node)
        for target in sorted(graph[node]):
            found = visit(target)
            if found:
                return found
        done.add(way.pop())
        return None

    for node in sorted(graph):
        found = visit(node)
        if found:
            return found
    return None


def check(tree):
    paths = [p for p in tree.matching(*(f"{folder}/*" for folder in FOLDERS))
             if p.endswith(SUFFIXES)]
    files = includes(tree, paths)
    for what, graph in (("files", files), ("modules", modules(files))):
        found = circle(graph)
        if found:
            yield f"{what} include each other in a circle: {' -> '.join(found + found[:1])}"


PLANTED = [
    ({"server/a.h": '#include "server/b.h"\n', "server/b.h": '#include "server/a.h"\n'},
     "files include each other in a circle: server/a.h -> server/b.h -> server/a.h"),
    ({"server/a.c": '#include "server/b.h"\n', "server/a.h": "",
      "server/b.c": '#include "a.h"\n', "server/b.h": ""},
     "modules include each other in a circle: server/a -> server/b -> server/a"),
    ({"kernels/a.cu": '#include "kernels/in.h"\n', "kernels/a.h": "",
      "kernels/in.h": '#include "kernels/b.h"\n',
      "kernels/b.cc": '#include "kernels/c.h"\n', "kernels/b.h": "",
      "kernels/c.c": '#  include "kernels/a.h"\n', "kernels/c.h": ""},
     "modules include each other in a circle: kernels/a -> kernels/b -> kernels/c -> kernels/a"),
]
CLEAN = [
    # An internal header that includes its folder's public one is no circle.
    {"server/a.c": '#include "server/internal.h"\n', "server/a.h": "",
     "server/internal.h": '#include "server/a.h"\n', "server/b.c": '#include "server/internal.h"\n'},
    {"proto/a.c": '#include "proto/a.h"\n', "proto/a.h": '#include "proto/b.h"\n', "proto/b.h": ""},
    {"tests/a.h": '#include "tests/b.h"\n', "tests/b.h": '#include "tests/a.h"\n'},
]
lint.main(globals())
