"""A kernel file without a row in variants.def, or without a host function, stops the build; so does a
row without a file.

    test_rows.py CMAKE ROOT
"""

import pathlib
import subprocess
import sys
import tempfile

CMAKE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
ROWS = 'GM_SIMT(GM_OP_FLIP, flip_first, "first", ...)\nGM_CUDA(GM_OP_COPY,\n        copy_last, "last")\n'


def check(files, rows=ROWS):
    """What the check says of kernel files: {"flip/first": text}."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = pathlib.Path(folder)
        (kernels / "variants.def").write_text(rows)
        for name, text in files.items():
            path = kernels / "cuda" / f"{name}.cu"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([CMAKE, "-D", f"GM_KERNELS={kernels}", "-P",
                               ROOT / "kernels/check_rows.cmake"], capture_output=True, text=True)
        return done.returncode, " ".join(done.stderr.split())


def main():
    good = {"flip/first": "GM_KERNEL(flip_first)\n{\n}\n", "copy/last": "\nGM_KERNEL(copy_last)\n",
            "copy/own": 'extern "C" int GM_ENTRY(own)(void)\n'}
    assert check(good) == (0, ""), check(good)
    status, said = check(good | {"flip/mine": "GM_KERNEL(flip_mine)\n"})
    assert status == 1 and "kernels/cuda/flip/mine.cu has no row in kernels/variants.def" in said
    assert 'GM_SIMT(GM_OP_FLIP, flip_mine, "mine", GM_TYPES_ALL, GM_FOLDS_NOTHING,' in said, said
    status, said = check({"flip/first": good["flip/first"]})
    assert status == 1 and "has a row of copy_last, and no file" in said, said
    assert "GM_KERNEL(copy_last)" in said, said
    # A row of a longer name is not its row.
    status, said = check({"flip/fir": "GM_KERNEL(flip_fir)\n"})
    assert status == 1 and "has no row" in said, said
    status, said = check(good | {"add/empty": "// nothing\n"})
    assert status == 1 and "add/empty.cu has no function that runs it" in said, said
    assert "GM_KERNEL(add_empty)" in said, said


if __name__ == "__main__":
    main()
