"""What no file of the project says: places of one machine, work left undone, hosts of package
registries (the set-up uses the mirrors that a machine is set up with).
"""
import re

import lint

# Written so that this file does not match itself.
FORBIDDEN = [
    (r"(?<![\w.$})-])/wor[k]/", "names a folder of somebody's machine"),
    (r"/bash_job[s]", "names a folder of somebody's machine"),
    (r"/(home|Users)/[a-z]\w*[/]", "names a folder of somebody's machine"),
    (r"\b(TOD[O]|FIXM[E]|XX[X])\b", "leaves work undone"),
    (r"\bDESIGN[.]md\b", "names a document that is not part of the project"),
    (r"\b(deb[.]debian|archive[.]ubuntu|security[.]ubuntu|ports[.]ubuntu)\b", "names a registry"),
    (r"\b(pypi|pythonhosted|registry[.]npmjs|crates)[.](org|io)\b", "names a registry"),
    (r"\b(docker|ghcr|quay|nvcr)[.]io\b", "names a registry"),
]


def check(tree):
    for path in tree.paths:
        for number, line in tree.lines(path):
            for pattern, reason in FORBIDDEN:
                found = re.search(pattern, line)
                if found:
                    yield f"{path}:{number}: {found.group()!r} {reason}"


PLANTED = [
    ({"a.c": "// see /wor" + "k/main\n"}, "somebody's machine"),
    ({"a.md": "`/home/" + "ann/gemmd`\n"}, "somebody's machine"),
    ({"a.c": "/* TO" + "DO: the rest */\n"}, "leaves work undone"),
    ({"a.py": "# FIX" + "ME\n"}, "leaves work undone"),
    ({"README.md": "as DESIGN" + ".md says\n"}, "not part of the project"),
    ({"a.sh": "deb http://deb." + "debian.org/debian trixie main\n"}, "names a registry"),
    ({"Dockerfile": "FROM nvcr" + ".io/nvidia/cuda\n"}, "names a registry"),
]
CLEAN = [
    {"a.c": "int x;\n", "venv/pyvenv.cfg": "", "venv/lib/a.py": "# FIX" + "ME\n"},
    {"a.c": "int network; /* net/work, mktemp XXXXXX */\n", "a.npy": "\x93NUMPY"},
]
lint.main(globals())
