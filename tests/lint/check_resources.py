"""kernels/resources.def says what nvcc makes of the kernels as they are now. Rows of files that changed
since it was made are remade where the same nvcc is, for one compute capability; with GM_ALL=1 all are."""
import os
import pathlib
import re
import sys

import lint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import resources  # noqa: E402

TABLE = "kernels/resources.def"
REMAKE = f"run tests/bench/resources.py . > {TABLE}.new && mv {TABLE}.new {TABLE}"
USUAL = 90  # the compute capability of which the rows of changed files are remade
ALWAYS = "transpose/naive.cu"  # is remade even if nothing changed, and takes half a second


def rows(text):
    """{symbol: {capability: (registers, shared, spilled)}}"""
    found = {}
    for symbol, columns in re.findall(r'^GM_RESOURCES\("(\w+)", (.*)\)$', text, flags=re.M):
        cells = [tuple(map(int, cell)) for cell in re.findall(r"GM_R\((\d+), (\d+), (\d+)\)", columns)]
        found[symbol] = dict(zip(resources.CAPABILITIES, cells))
    return found


def changed(tree, text):
    """Files whose number is not that of the table."""
    said = {name: number for name, (number, _) in resources.sections(text).items()}
    for path in resources.kernels(tree.root):
        name = path.removeprefix(resources.KERNELS + "/")
        if said.get(name) != resources.number(tree.root, path):
            yield name


def remade(tree, text, compiler, names, capabilities):
    """What is otherwise now."""
    table = rows(text)
    for name in names:
        for capability in capabilities:
            found = resources.compiled(tree.root, compiler, f"{resources.KERNELS}/{name}", capability)
            for symbol, row in found.items():
                said = table.get(symbol, {}).get(capability)
                if said != row:
                    yield (f"{name}: {symbol} takes {row} for {capability}, and {TABLE} says {said}: "
                           f"{REMAKE}")


def check(tree):
    text = tree.read(TABLE) or ""
    if not rows(text):
        yield f"{TABLE} has no rows"
        return
    compiler, names = resources.nvcc(), sorted(set(changed(tree, text)))
    if not compiler:
        raise lint.Skip(f"nvcc is not here, to remake the rows of {names}" if names else "nvcc is not here")
    made_by = re.search(r"with nvcc ([\d.]+\d)", text)
    if not made_by or made_by[1] != resources.version(compiler):
        raise lint.Skip(f"nvcc {resources.version(compiler)} is here, and {TABLE} is of "
                        f"{made_by[1] if made_by else 'another'}")
    whole = bool(os.environ.get("GM_ALL"))
    if whole:
        names = [p.removeprefix(resources.KERNELS + "/") for p in resources.kernels(tree.root)]
    elif (tree.root / resources.KERNELS / ALWAYS).exists():
        names = sorted({*names, ALWAYS})
    yield from remade(tree, text, compiler, names, resources.CAPABILITIES if whole else [USUAL])


PLANTED = [
    ({"kernels/resources.def": "/* with nvcc 1.0 */\n"}, "has no rows"),
]
CLEAN = []
if resources.nvcc():
    PLANTED.append((
        {"kernels/cuda/transpose/naive.cu": "__global__ void naive(int *out)\n{\n    *out = 1;\n}\n",
         "kernels/resources.def": f"/* with nvcc {resources.version(resources.nvcc())} */\n"
                                  'GM_RESOURCES("_Z5naivePi", GM_R(250, 0, 0))\n'},
        "_Z5naivePi takes"))

lint.main(globals())
