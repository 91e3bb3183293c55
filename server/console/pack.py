#!/usr/bin/env python3
"""pack.py FOLDER FILE... - compresses the console's files into FOLDER/0.gz, 1.gz, ...: a part of the build."""
import gzip
import pathlib
import sys

folder, *files = sys.argv[1:]
for number, path in enumerate(files):
    packed = gzip.compress(pathlib.Path(path).read_bytes(), 9, mtime=0)
    pathlib.Path(folder, f"{number}.gz").write_bytes(packed)
