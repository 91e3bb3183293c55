"""What a build folder knows: how each source is compiled, and how a program is linked. For tests
that compile changed copies of sources and link them."""

import json
import pathlib
import re
import shlex
import subprocess
import sys


def run(words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{words[0]} failed:\n{done.stderr}")
    return done.stdout


class BuildTree:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()

    def compilations(self):
        """(source, command as words) of each file."""
        for row in json.loads((self.folder / "compile_commands.json").read_text()):
            yield pathlib.Path(row["file"]), shlex.split(row["command"])

    def cache(self, name):
        text = (self.folder / "CMakeCache.txt").read_text()
        return re.search(rf"^{name}:\w+=(.*)$", text, re.M).group(1)

    def link(self, program):
        """The command that links folder/program, as words, and where to run it: a file of make's,
        or as ninja says."""
        folder = self.folder / pathlib.Path(program).parent
        file = folder / f"CMakeFiles/{pathlib.Path(program).name}.dir/link.txt"
        if file.exists():
            return shlex.split(file.read_text()), folder
        commands = run([self.cache("CMAKE_MAKE_PROGRAM"), "-t", "commands", program],
                       cwd=self.folder)
        return shlex.split(commands.splitlines()[-1].split(" && ")[1]), self.folder
