"""The Python package as a thing to install: its wheel in a fresh environment, its types, its examples, its
notebook, and the examples in its documentation."""

import ast
import asyncio
import doctest
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import venv
import warnings
import zipfile

import numpy as np
import pytest
import wheel

import gemmd

NOTEBOOKS = sorted((wheel.PROJECT / "examples").glob("*.ipynb"))


def here(text, url):
    """An example, for the daemon of this test."""
    return text.replace("http://localhost:8080", url)


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Installed.

def test_what_is_in_the_wheel():
    with zipfile.ZipFile(wheel.PATH) as archive:
        names = archive.namelist()
        (about,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert "gemmd/py.typed" in names
    assert all(re.match(r"gemmd(-[\d.]+\.dist-info)?/", name) for name in names)
    needs = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", about, re.MULTILINE)
    assert sorted(name for name, rest in needs if "extra ==" not in rest) == ["httpx", "numpy"]
    assert f"Version: {gemmd.__version__}\n" in about


FRESH = """
import gemmd, numpy as np, sys
assert gemmd.__file__.startswith(sys.prefix), gemmd.__file__
with gemmd.Client(sys.argv[1]) as client:
    assert np.array_equal(client.matmul(np.eye(3), np.ones((3, 2))), np.ones((3, 2)))
    # There is no ml_dtypes here: bf16 is its bits. 0x3F80 is 1, 0x4000 is 2.
    sums = client.add(np.full((2, 3), 0x3F80, "u2"), np.full((2, 3), 0x3F80, "u2"), dtype="bf16")
    assert sums.dtype == np.uint16 and (sums == 0x4000).all() and sums.account.dtype == "bf16"
    try:
        client.add([[1.0]], [[2.0]], dtype="bf16")
    except TypeError as error:
        assert "ml_dtypes" in str(error)
    else:
        raise AssertionError("a list became bf16")
"""


def test_the_wheel_in_a_fresh_environment(url, tmp_path):
    venv.create(tmp_path / "fresh", with_pip=False)
    python = tmp_path / "fresh" / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", "--no-index",
         "--find-links", wheel.WHEELS, wheel.PATH])
    run([sys.executable, "-m", "pip", "--python", python, "check"])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GEMMD"))}
    run([python, "-W", "error", "-c", FRESH, url], cwd=tmp_path, env=clean)


# Types.

TYPED = """
import asyncio
import numpy as np
import gemmd

def other(done: int, total: int) -> None:
    print(done, total)

def waits() -> None:
    with gemmd.Client("http://localhost:8080", timeout=5, progress=True) as client:
        made = client.matmul(np.ones((2, 3), np.float32), [[1.0], [2], [3]], alpha=2, transa=False, dtype=np.float32)
        reveal_type(made)
        reveal_type(made.account)
        reveal_type(made.account.us["kernel"])
        reveal_type(client.compare("transpose", made).rows)
        reveal_type(client.explain("copy", shape=(64, 64)).sites)
        client.add(memoryview(b"12"), 3.5, progress=lambda step: print(step.fraction))
        client.compare("transposed", made)  # WRONG: arg-type
        x = client.put(made)
        reveal_type(gemmd.sum(gemmd.abs(x), axis=0) + gemmd.max(x) + gemmd.min(x))
        gemmd.Client(8080)  # WRONG: arg-type
        client.flip(made, progress=other)  # WRONG: arg-type
        made.account.kernels  # WRONG: attr-defined

async def awaits() -> None:
    async with gemmd.AsyncClient() as client:
        reveal_type(await client.transpose(np.ones((2, 2))))

asyncio.run(awaits())
"""


def test_types(tmp_path):
    """The sources are clean, and a program that uses the wheel is checked with its types."""
    program = tmp_path / "program.py"
    program.write_text(TYPED)
    cache = wheel.ROOT / "build" / "clients-venv" / "mypy"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, program, wheel.SITE / "gemmd"],
        capture_output=True, text=True, timeout=300, env={**os.environ, "MYPYPATH": str(wheel.SITE)}, cwd=tmp_path,
    )
    said = [re.sub(r"^.*?:(\d+): ", r"\1 ", line) for line in done.stdout.splitlines()[:-1]]
    revealed = [re.search('"(.*)"', line).group(1) for line in said if "Revealed" in line]
    assert revealed == [
        "gemmd.arrays.Result", "gemmd.account.Account", "float", "list[gemmd.reports.ComparedKernel]",
        "list[gemmd.reports.Site]", "gemmd.lazy.Expression", "gemmd.arrays.Result",
    ], done.stdout
    wrong = [(number, line.partition("# WRONG: ")[2]) for number, line in enumerate(TYPED.splitlines(), 1)
             if "# WRONG" in line]
    errors = [(int(line.split()[0]), re.search(r"\[([\w-]+)\]$", line).group(1)) for line in said if " error: " in line]
    assert errors == wrong, done.stdout


# Examples.

def cells(notebook):
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def run_cell(text, names):
    """Runs a cell as a notebook does: the value of its last line, if that is one, is shown."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def run_notebook(name, url):
    """What its cells define, and what they show: (type, HTML)."""
    (notebook,) = (path for path in NOTEBOOKS if path.stem == name)
    names, shown = {}, []
    for text in cells(notebook):
        value = run_cell(here(text, url), names)
        if hasattr(value, "_repr_html_"):
            shown.append((type(value).__name__, value._repr_html_()))
    return names, shown


def test_the_staircase(url, capsys):
    names, shown = run_notebook("staircase", url)
    assert [kind for kind, _ in shown] == ["Account"] + 4 * ["Explanation"] + ["Comparison"]
    assert all("data:image/svg+xml" in page for kind, page in shown if kind == "Explanation")
    # What its words say, the daemon says, too.
    assert "1 of the 32 banks" in shown[2][1]
    steps = ["naive", "tiled", "padded", "vectorized"]
    sectors, conflicts, requests = ([names[n][s] for s in steps] for n in ("sectors", "conflicts", "requests"))
    assert sectors[0] > 4 and sectors[1:] == [1, 1, 1]
    assert conflicts[0] == 0 and conflicts[1] > 0 and conflicts[2:] == [0, 0]
    assert requests[1] == requests[2] == 2 * requests[3]
    assert len(capsys.readouterr().out.splitlines()) == 4
    names["client"].close()


def test_the_training(url, capsys):
    names, shown = run_notebook("training", url)
    assert [kind for kind, _ in shown] == ["Account"]
    losses = names["losses"]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.2 < 1 < losses[0]
    assert "6 steps" in capsys.readouterr().out
    assert names["client"].matrices() == []
    names["client"].close()


def test_a_notebook_has_no_output_in_the_checkout():
    for notebook in NOTEBOOKS:
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs") and cell.get("execution_count") is None


def documented(kind):
    yield kind.__name__, inspect.getdoc(kind)
    for name, member in vars(kind).items():
        if callable(member) and not name.startswith("_"):
            yield f"{kind.__name__}.{name}", inspect.getdoc(member)


@pytest.mark.parametrize("kind", [gemmd.Client, gemmd.AsyncClient])
def test_the_documentation_of_a_client(kind, url, tmp_path, monkeypatch):
    """Every method is described, and every example works."""
    monkeypatch.chdir(tmp_path)
    a = np.ones((4, 4), "f4")
    ran = []

    async def work():
        async with gemmd.AsyncClient(url) as other:
            with gemmd.Client(url) as one:
                client = one if kind is gemmd.Client else other
                for place, text in documented(kind):
                    assert text, f"{place} says nothing"
                    names = {"gemmd": gemmd, "np": np, "asyncio": asyncio, "pathlib": pathlib, "client": client,
                             "a": a, "b": 2 * a, "c": 3 * a}
                    for example in doctest.DocTestParser().get_examples(here(text, url)):
                        code = compile(example.source, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                        waiting = eval(code, names)
                        if inspect.iscoroutine(waiting):
                            await waiting
                        ran.append(place)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(work())
    assert [str(one.message) for one in said if "never awaited" in str(one.message)] == []
    assert {f"{kind.__name__}.{op}" for op in ("transpose", "matmul", "add", "flip", "compare", "explain")} <= set(ran)
    assert kind.__name__ in ran and (tmp_path / "tiled.svg").read_text().startswith("<?xml")


def test_the_documentation_of_the_package(url):
    names = {}
    for example in doctest.DocTestParser().get_examples(here(gemmd.__doc__, url)):
        exec(example.source, names)
    names["client"].close()
    for name in gemmd.__all__:
        assert name == "Operand" or inspect.getdoc(getattr(gemmd, name)), f"{name} says nothing"


def test_both_clients_take_the_same():
    ours, theirs = ({name: inspect.signature(member).replace(return_annotation=None)
                     for name, member in vars(kind).items() if callable(member) and not name.startswith("__")}
                    for kind in (gemmd.Client, gemmd.AsyncClient))
    ours["aclose"] = ours.pop("close")
    assert ours == theirs
    assert inspect.signature(gemmd.Client) == inspect.signature(gemmd.AsyncClient)
