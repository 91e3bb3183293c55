"""The console's scripts: node reads them, none is long, and none does what the page's policy forbids or what a hostile text could
make use of."""
import pathlib
import re
import shutil
import subprocess

import lint

MOST = 600  # lines
FORBIDDEN = [
    (r"\b(inner|outer)HTML\b|\binsertAdjacentHTML\b|\bdocument\.write\b", "takes text for markup"),
    (r"\beval\(|\bnew Function\b|\bset(Timeout|Interval)\(\s*[\"'`]", "takes text for a program"),
    (r"\b(localStorage|document\.cookie)\b", "keeps something beyond the tab"),
    (r"[\"'`]https?://(?!www\.w3\.org/2000/svg)", "names a place elsewhere"),
    (r"setAttribute\(\s*[\"'`]style", "sets a style that the policy forbids"),
]


def check(tree):
    node = shutil.which("node")
    for path in tree.matching("server/console/*.js"):
        text = tree.read(path)
        if text.count("\n") > MOST:
            yield f"{path} has {text.count(chr(10))} lines; {MOST} is the most"
        for number, line in tree.lines(path):
            for pattern, reason in FORBIDDEN:
                if re.search(pattern, line):
                    yield f"{path}:{number}: {reason}"
        for name in re.findall(r'\bfrom "(\.[^"]+)"', text):
            target = (tree.root / pathlib.Path(path).parent / name).resolve()
            if not target.is_file():
                yield f"{path} imports {name}, which is not there"
        if node:
            done = subprocess.run([node, "--check", "--input-type=module"], input=text, capture_output=True, text=True)
            if done.returncode:
                yield f"{path}: {done.stderr.strip()}"
    if not node:
        lint.warn("no node: the scripts of the console are not parsed")


def script(text):
    return {"server/console/a.js": text, "server/console/b.js": "export const b = 1;\n"}


PLANTED = [
    (script("x.innerHTML = text;\n"), "takes text for markup"),
    (script("eval(text);\n"), "takes text for a program"),
    (script('setTimeout("go()", 1);\n'), "takes text for a program"),
    (script("localStorage.key = 1;\n"), "beyond the tab"),
    (script('fetch("https://example.org/x");\n'), "names a place elsewhere"),
    (script('import { c } from "./c.js";\n'), "imports ./c.js"),
    (script("let x;\n" * 601), "has 601 lines"),
]
if shutil.which("node"):
    PLANTED.append((script("const = 1;\n"), "SyntaxError"))
CLEAN = [script('import { b } from "./b.js";\nsetTimeout(() => b, 1);\nconst svg = "http://www.w3.org/2000/svg";\n')]
lint.main(globals())
