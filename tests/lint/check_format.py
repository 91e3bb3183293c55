"""The sources are as .clang-format says. clang-formats of different years differ in details, so
only the one the project is formatted with can fail; another one warns.
"""
import re
import shutil
import subprocess

import lint

VERSION = "14"


def check(tree):
    tool = shutil.which("clang-format-" + VERSION) or shutil.which("clang-format")
    if not tool:
        raise lint.Skip("there is no clang-format")
    said = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"version (\d+)", said).group(1)
    paths = tree.matching("*.c", "*.h", "*.cc", "*.cu", "*.cuh", "*.inc")
    # One process: to start one takes as long as ten files do.
    done = subprocess.run([tool, "--style=file", "--dry-run", "-Werror", *paths],
                          capture_output=True, text=True, cwd=tree.root)
    named = set(re.findall(r"^([^:\n]+):\d+:\d+: error", done.stderr, re.M))
    named &= set(paths)
    unlike = [f"{path} is not as clang-format {version} would have it (clang-format -i)" for path in paths if path in named]
    if version != VERSION:
        for sentence in unlike:
            lint.warn(sentence)
        raise lint.Skip(f"this is clang-format {version}, the project's is {VERSION}")
    if done.returncode and not named:
        yield f"{tool} failed: {done.stderr.strip()}"
    yield from unlike


STYLE = "BasedOnStyle: LLVM\nIndentWidth: 4\n"
PLANTED = [({".clang-format": STYLE, "a.c": "int  x ;\n"}, "a.c is not as clang-format"),
           ({".clang-format": "Nonsense: 1\n", "a.c": "int x;\n"}, "failed: "),
           ({".clang-format": STYLE, "a.inc": "int  x ;\n"}, "a.inc is not as clang-format")]
CLEAN = [{".clang-format": STYLE, "a.c": "int x;\n"}]
lint.main(globals())
