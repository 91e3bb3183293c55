"""Whatever the documents point to exists: links, their #anchors, and paths of the checkout that
stand in `code` or begin a command.
"""
import posixpath
import re

import lint

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:sudo )?(\./[\w./-]+)")
FOLDERS = r"(?:proto|kernels|server|clients|tests|deploy|\.ci)"
PATH = re.compile(rf"(?:\./)?({FOLDERS}/[\w./*-]*)\Z")


def prose_and_blocks(tree, path):
    """(number, line, inside a fenced block) for each line of a document."""
    fenced = False
    for number, line in tree.lines(path):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        else:
            yield number, line, fenced


def anchors(tree, path):
    """The anchors that a page's headings get when it is shown on the web."""
    for _, line, fenced in prose_and_blocks(tree, path):
        if not fenced and re.match(r"#+ ", line):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("# ").strip().lower())
            yield title.replace(" ", "-")


def exists(tree, path):
    path = path.rstrip("/")
    return bool(tree.matching(path, path + "/*"))


def link_complaint(tree, page, target):
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if not exists(tree, path):
        return f"the link goes to {path}, which is not there"
    if anchor and path.endswith(".md") and anchor not in anchors(tree, path):
        return f"{path} has no heading #{anchor}"
    return None


def named_paths(line, fenced):
    if fenced:
        found = COMMAND.match(line)
        return [found.group(1)] if found else []
    return [code.split()[0] for code in CODE.findall(line) if code.strip()]


def check(tree):
    for page in tree.matching("*.md"):
        for number, line, fenced in prose_and_blocks(tree, page):
            where = f"{page}:{number}"
            for target in [] if fenced else LINK.findall(line):
                complaint = link_complaint(tree, page, target)
                if complaint:
                    yield f"{where}: {complaint}"
            for name in named_paths(line, fenced):
                path = PATH.match(name)
                if path and not exists(tree, path.group(1)):
                    yield f"{where}: there is no {path.group(1)}"


PLANTED = [
    ({"README.md": "See [this](proto/GONE.md).\n"}, "goes to proto/GONE.md"),
    ({"proto/P.md": "See [this](README.md).\n", "README.md": ""}, "goes to proto/README.md"),
    ({"README.md": "# A title\nSee [it](#no-title).\n"}, "no heading #no-title"),
    ({"README.md": "[x](a.md#b)\n", "a.md": "# c\n```\n# b\n```\n"}, "a.md has no heading #b"),
    ({"README.md": "as `server/gone.c` does\n"}, "there is no server/gone.c"),
    ({"README.md": "```sh\n./deploy/gone.sh --once\n```\n"}, "there is no deploy/gone.sh"),
    ({"README.md": "`tests/http/test_*.py`\n", "tests/a.c": ""}, "there is no tests/http"),
]
CLEAN = [
    {"README.md": "# The title, here\n[a](#the-title-here) [b](proto/P.md) [c](https://x.org)\n"
                  "`server/` and `a/b` and `kernels/*.c`\n```sh\n./tests/run.sh --quick\n```\n",
     "proto/P.md": "", "server/a.c": "", "kernels/k.c": "", "tests/run.sh": ""},
]
lint.main(globals())
