"""What schemathesis must know to make requests that are right: how matrices look in formats that a schema cannot
describe, and which parameters exclude each other."""

import io

import numpy as np
import schemathesis
from hypothesis import strategies as st
from schemathesis.core import NotSet

sizes = st.integers(0, 5)


@st.composite
def csv(draw):
    rows, columns, mark = draw(sizes), draw(st.integers(1, 5)), draw(st.sampled_from(",;\t"))
    numbers = st.integers(-100, 100).map(str) | st.floats(width=16).map(str)
    return "".join(mark.join(draw(numbers) for _ in range(columns)) + "\n" for _ in range(rows))


@st.composite
def npy(draw):
    """One file; map_body makes as many of it as the operation has operands."""
    dtype = draw(st.sampled_from(["<f2", "<f4", "<f8", "<i4", "<i8", ">f4", "|u1", "<c8", "|b1"]))
    file = io.BytesIO()
    np.save(file, np.zeros(draw(st.lists(sizes, max_size=3)), dtype), allow_pickle=False)
    return file.getvalue()


@st.composite
def expression(draw):
    """Over numbers, and names that may be operands."""
    parts = st.recursive(st.sampled_from(["1", "2.5", "x", "y.T", "x[0:2, ::-1]", "-3"]),
                         lambda one: st.builds("({} {} {})".format, one, st.sampled_from(["+", "*", "@", "<", "/"]), one) |
                         st.builds("{}({})".format, st.sampled_from(["sum", "tanh", "max", "np.abs"]), one), max_leaves=8)
    return draw(parts)


schemathesis.openapi.format("expression", expression())
schemathesis.openapi.format("csv", csv())
schemathesis.openapi.format("matrix", csv())
schemathesis.openapi.media_type("text/csv", csv().map(str.encode))
schemathesis.openapi.media_type("application/x-npy", npy())
# Whole elements of any type, for one operand or two.
schemathesis.openapi.media_type("application/octet-stream", st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(b"".join))


def operands(operation):
    """The letters of those that it must have."""
    return "a" if operation.path.endswith(("transpose", "flip", "copy", "{name}")) else "ab"


@schemathesis.hook
def map_body(context, body):
    is_npy = isinstance(body, bytes) and body.startswith(b"\x93NUMPY")
    return body * len(operands(context.operation)) if is_npy else body


@schemathesis.hook
def before_call(context, case, kwargs):
    """Takes from a right request what contradicts another part of it: see Parameters in PROTOCOL.md."""
    if case.meta is None or not case.path.startswith("/v1/") or case.operation.definition.raw.get("parameters") is None:
        return
    if not case.meta.generation.mode.is_positive:
        if isinstance(case.body, bytes):
            case.body = b"\0" + case.body  # made by the strategies above, which make only what is right
        return
    query, body = case.query or {}, case.body if isinstance(case.body, dict) else {}
    for name in ("If-Match", "If-None-Match"):  # with keep they must be lists of tags, which no schema says
        if "/matrices/" not in case.path and name in (case.headers or {}):
            case.headers[name] = "*"
    if "shape_a" in query:
        query.pop("shape", None)  # another name for it
    for name in list(query):
        if name in body or (name.startswith("shape") and case.method in ("POST", "PUT")) or excluded(name):
            del query[name]
        elif name in ("rows", "cols"):  # of a matrix that may be smaller
            query[name] = ":"
        elif name.startswith("shape"):  # no larger than is traced in a moment
            query[name] = "x".join(str(int(size) % 200) for size in query[name].split("x"))
    if case.method == "PUT" and isinstance(body.get("a"), dict) and "ref" in body["a"]:
        body["a"] = [[1]]  # it takes elements
    for name in list(body):
        if excluded(name) and name not in "abc":
            del body[name]
        elif name.startswith("shape") and case.media_type == "multipart/form-data":
            del body[name]
    if case.media_type == "application/octet-stream" and isinstance(case.body, bytes):
        letters = operands(case.operation)
        for letter in letters:
            elements = len(case.body) // len(letters) // size(query.get("dtype", "f32"))
            query[f"shape_{letter}"] = f"1x{elements}"
    elif case.path.startswith("/v1/explain/") and isinstance(case.body, NotSet):
        for letter in operands(case.operation):  # the default takes seconds, over all of these requests
            if letter != "a" or "shape" not in query:
                query.setdefault(f"shape_{letter}", "40x40")
    case.query = query


def excluded(name):
    """Operands are in the body; what is kept needs a name; only keys share."""
    return name.startswith(("region", "offset")) or name in ("a", "b", "c", "ttl", "share")


def size(dtype):
    """Bytes of an element."""
    if dtype == "bool":
        return 1
    return int("".join(filter(str.isdigit, dtype))) // (1 if dtype[0] == "v" else 8)
