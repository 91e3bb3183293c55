"""lint.py - what the checks in this folder share.

A check is a file check_NAME.py that defines

    check(tree)    yields a sentence for each thing that is wrong;
    PLANTED        small trees with something wrong, as (files, words of the complaint);
    CLEAN          small trees with nothing wrong.

and ends with lint.main(globals()). It is run on a checkout, which must be clean, and with
--self-test on its own trees: a check that no longer complains is itself a failure.
"""
import fnmatch
import os
import pathlib
import sys
import tempfile

NOT_OURS = {".git", "build", "__pycache__", ".pytest_cache"}


class Skip(Exception):
    """The check cannot be made on this machine; says why."""


class Tree:
    """The files of a checkout, by their paths from its root."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.paths = sorted(self._walk())

    def _walk(self):
        for folder, folders, files in os.walk(self.root):
            if "pyvenv.cfg" in files:  # a virtual environment of the reader's
                folders.clear()
                continue
            folders[:] = [f for f in folders if f not in NOT_OURS and not f.startswith("build-")]
            for file in set(files) - NOT_OURS:  # in a worktree .git is a file
                yield (pathlib.Path(folder) / file).relative_to(self.root).as_posix()

    def matching(self, *patterns):
        """Paths that match one of the patterns, in which * also stands for slashes."""
        return [p for p in self.paths if any(fnmatch.fnmatchcase(p, q) for q in patterns)]

    def read(self, path):
        """The text of a file, or None where it is not text or not there."""
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            return None

    def lines(self, path):
        return enumerate((self.read(path) or "").splitlines(), 1)


def warn(sentence):
    print(f"warning: {sentence}")


def daemon():
    """The gemmd to try things with."""
    path = os.environ.get("GEMMD_BIN")
    if not path:
        raise Skip("GEMMD_BIN does not say where gemmd is")
    return path


def daemon_environment():
    """Ours, without what would be taken for an option of gemmd."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GEMMD_")}


def plant(files, root):
    """Files are texts, or pairs of a text and a mode; one that begins with #! can be executed."""
    for path, text in files.items():
        text, mode = text if isinstance(text, tuple) else (text, 0o755 if text[:2] == "#!" else 0o644)
        target = pathlib.Path(root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)


def complaints(module, files):
    """What the check says of a small tree. A file `gemmd` in it plays the daemon."""
    with tempfile.TemporaryDirectory() as root:
        plant(files, root)
        before = os.environ.get("GEMMD_BIN")
        os.environ["GEMMD_BIN"] = os.path.join(root, "gemmd")
        try:
            return list(module["check"](Tree(root)))
        finally:
            os.environ.pop("GEMMD_BIN")
            if before is not None:
                os.environ["GEMMD_BIN"] = before


def self_test(module):
    """Sentences on trees that the check judges wrongly."""
    for files, words in module["PLANTED"]:
        said = complaints(module, files)
        if not any(words in sentence for sentence in said):
            yield f"no complaint with {words!r} about {list(files)}, but {said}"
    for files in module["CLEAN"]:
        said = complaints(module, files)
        if said:
            yield f"a complaint about {list(files)}, which is in order: {said}"


def main(module):
    if module["__name__"] != "__main__":
        return
    try:
        if sys.argv[1:] == ["--self-test"]:
            wrong = list(self_test(module))
        elif len(sys.argv) == 2:
            wrong = list(module["check"](Tree(sys.argv[1])))
        else:
            sys.exit(f"usage: {sys.argv[0]} CHECKOUT | --self-test")
    except Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    for sentence in wrong:
        print(sentence)
    sys.exit(1 if wrong else 0)
