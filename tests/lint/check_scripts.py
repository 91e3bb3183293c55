"""Scripts parse, and what begins with #! may be executed, and the other way round."""
import os
import subprocess

import lint


def check(tree):
    for path in tree.paths:
        text = tree.read(path)
        script = text is not None and text.startswith("#!")
        executable = os.access(tree.root / path, os.X_OK)
        if script and not executable:
            yield f"{path} begins with #! but may not be executed"
        if executable and not script:
            yield f"{path} may be executed but does not begin with #!"
        if path.endswith(".sh") or script and text.split("\n")[0].endswith("sh"):
            done = subprocess.run(["bash", "-n", str(tree.root / path)], capture_output=True, text=True)
            if done.returncode:
                yield f"{path} does not parse: {done.stderr}"
        elif path.endswith(".py"):
            try:
                compile(text, path, "exec")
            except SyntaxError as error:
                yield f"{path} does not parse: {error}"


PLANTED = [
    ({"a.sh": "if true; then\n"}, "a.sh does not parse"),
    ({"run": "#!/bin/sh\ncase x in\n"}, "run does not parse"),
    ({"a.py": "def f(:\n"}, "a.py does not parse"),
    ({"run": ("#!/bin/sh\n", 0o644)}, "run begins with #! but"),
    ({"a.c": ("int x;\n", 0o755)}, "a.c may be executed but"),
]
CLEAN = [{"a.sh": "echo yes\n", "run": "#!/bin/sh\nexit 0\n", "a.py": "x = 1\n"}]
lint.main(globals())
