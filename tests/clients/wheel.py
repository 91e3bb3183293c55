"""The Python package as its users get it: this module builds the wheel and puts its contents on sys.path,
so that a test that imports it before gemmd tests the wheel and not the sources."""

import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = ROOT / "clients" / "python"
WHEELS = ROOT / "build" / "clients-wheels"  # what the package depends on
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="gemmd-wheel-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def build():
    """The path of a fresh wheel."""
    source = FOLDER / "source"  # a build leaves nothing in the checkout
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", FOLDER, source], check=True)
    (made,) = FOLDER.glob("gemmd-*.whl")
    return made


PATH = build()
SITE = FOLDER / "site"
subprocess.run([*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", SITE, PATH], check=True)
sys.path.insert(0, str(SITE))
