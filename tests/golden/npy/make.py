#!/usr/bin/env python3
"""Makes the NPY files here, with numpy. index.txt says what the reader must find in each.

Element k (counted in row-major order) of every array is given by a formula, which
tests/unit/test_codec_npy.c repeats.
"""
import io
import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
index = []

DTYPES = {
    "f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "b1", "c64": "c8", "c128": "c16",
    "v1": "V1", "v2": "V2", "v4": "V4", "v8": "V8", "v16": "V16",
}


def elements(name, n):
    k = np.arange(n)
    if name == "bool":
        return k % 3 == 0
    if name[0] == "v":
        size = int(name[1:])
        table = (k[:, None] * 16 + np.arange(size) * 7 + 1) & 0xFF
        return np.ascontiguousarray(table.astype("u1")).view(f"V{size}").reshape(n)
    if name[0] == "c":
        return ((k * 0.75 - 3.5) + 1j * (k + 0.25)).astype(DTYPES[name])
    if name[0] == "f":
        return (k * 0.75 - 3.5).astype(DTYPES[name])
    signed = name[0] == "i"
    bits = int(name[1:])
    return np.array([(int(i) * 9 - (40 if signed else 0)) * 2 ** (bits - 8) for i in k],
                    dtype=DTYPES[name])


def array(name, shape, order="<", layout="rows"):
    a = elements(name, int(np.prod(shape, dtype=int))).reshape(shape)
    if a.dtype.kind != "V":
        a = a.astype(a.dtype.newbyteorder(order))
    return np.asfortranarray(a) if layout == "columns" else np.ascontiguousarray(a).reshape(shape)


def to_bytes(a, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, a, version=version)
    return out.getvalue()


def write(file, body, dtype, operands):
    """operands: (layout, shape) of each array in the file."""
    (here / file).write_bytes(body)
    what = " ".join(f"{layout}:{'x'.join(map(str, shape)) or '-'}" for layout, shape in operands)
    index.append(f"{file} {dtype} {what}\n")


for name, code in DTYPES.items():
    write(f"{name}_little.npy", to_bytes(array(name, (3, 4))), name, [("rows", (3, 4))])
    if np.dtype(code).itemsize > 1 and code[0] != "V":
        write(f"{name}_big.npy", to_bytes(array(name, (3, 4), ">")), name, [("rows", (3, 4))])
for name, order in (("f32", "<"), ("f64", ">"), ("c64", ">"), ("v16", "|"), ("bool", "|")):
    write(f"{name}_columns.npy", to_bytes(array(name, (3, 4), order, "columns")), name,
          [("columns", (3, 4))])

f32 = array("f32", (3, 4))
for version in ((1, 0), (2, 0), (3, 0)):
    write(f"version{version[0]}.npy", to_bytes(f32, version), "f32", [("rows", (3, 4))])

# The order in memory of these does not depend on the layout, whatever the file says.
for shape in ((), (5,), (1, 5), (5, 1), (1, 1), (0, 5), (5, 0), (1, 5, 1)):
    a = array("f32", shape, layout="columns").reshape(shape, order="F")
    text = "x".join(map(str, shape)) or "scalar"
    body = to_bytes(a).replace(b"'fortran_order': False", b"'fortran_order': True ")
    write(f"shape_{text}.npy", body, "f32", [("rows", shape)])
write("stack_rows.npy", to_bytes(array("i16", (2, 3, 2))), "i16", [("rows", (2, 3, 2))])
write("stack_columns.npy", to_bytes(array("i16", (2, 3, 2), ">", "columns")), "i16",
      [("columns", (2, 3, 2))])
write("stack_of_one.npy", to_bytes(array("i16", (1, 3, 2), "<", "columns")), "i16",
      [("columns", (1, 3, 2))])

# As ml_dtypes writes bfloat16, and as Python 2 wrote long integers.
write("bf16_ml_dtypes.npy", to_bytes(array("v2", (3, 4))).replace(b"|V2", b"<V2"), "bf16",
      [("rows", (3, 4))])
write("python2.npy", to_bytes(f32).replace(b"(3, 4), }  ", b"(3L, 4L), }"), "f32",
      [("rows", (3, 4))])

write("two.npy", to_bytes(f32) + to_bytes(array("f32", (4, 2), ">", "columns"), (2, 0)), "f32",
      [("rows", (3, 4)), ("columns", (4, 2))])
write("three.npy", to_bytes(f32) + to_bytes(array("f32", (4, 0))) + to_bytes(array("f32", ()), (3, 0)),
      "f32", [("rows", (3, 4)), ("rows", (4, 0)), ("rows", ())])

(here / "index.txt").write_text("".join(index))
