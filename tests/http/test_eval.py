"""POST /v1/eval: expressions in NumPy's notation against NumPy itself, written at random and by hand; what is refused,
and where; the plan; bounds; and the company of named matrices."""

import io
import json
import re
import socket
import struct
import threading
import time

import numpy as np
import pytest

import problems
import prometheus
import wire
from conftest import SEED
from daemon import SLOW, sanitizer_of
from expressions import A, EXACT, OPERANDS, X, S, as_matrix, names_of, npy, numpy_eval, parts, written
from formats import bf16_round, bf16_widen
from jobs import gauge, wait_until

EVAL = "/v1/eval"
arithmetic = pytest.mark.skipif(sanitizer_of() == "thread", reason="one request at a time: no threads meet")
# The simulator's kernels are the same machine code in every build.
DEVICES = ["cpu"] if sanitizer_of() else ["cpu", "sim"]


def post(daemon, expr, operands=None, headers=None, query=None, **parameters):
    own, body = parts(expr, operands or {}, **parameters)
    return daemon.post(wire.target(EVAL, **(query or {})), body, {**own, **(headers or {})})


def result(reply):
    return np.load(io.BytesIO(reply.ok().body))


def run(daemon, expr, operands=None, **parameters):
    return result(post(daemon, expr, operands, **parameters))


def same(got, expected, case=""):
    expected = as_matrix(expected)
    assert got.dtype == expected.dtype, (case, got.dtype, expected.dtype)
    assert got.shape == expected.shape, (case, got.shape, expected.shape)
    np.testing.assert_array_equal(got, expected, err_msg=str(case))


# ---- Single expressions, exactly as NumPy has them.


@arithmetic
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("expr", EXACT)
def test_single_expressions_have_the_bits_of_numpy(daemon, expr, device):
    """The simulator runs the code of the GPU's kernels, and finds accesses that they must not make."""
    used = {name: value for name, value in OPERANDS.items() if name in set(names_of(expr))}
    same(run(daemon, expr, used, query={"device": device}), numpy_eval(expr, used), expr)


@arithmetic
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh"])
@pytest.mark.parametrize("operand", ["x", "d", "h", "i", "t", "s", "f"])
@pytest.mark.parametrize("device", DEVICES)
def test_functions(daemon, name, operand, device):
    expr, used = f"{name}(abs({operand}) + {operand})", {operand: OPERANDS[operand]}
    if operand == "t":
        expr = f"{name}({operand})"
    got, expected = run(daemon, expr, used, query={"device": device}), as_matrix(numpy_eval(expr, used))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64),
                               rtol=4 * np.finfo(expected.dtype).eps)


@arithmetic
def test_not_a_number_and_infinity_go_where_numpy_sends_them(daemon):
    x = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]], np.float32)
    y = np.array([[1.0, np.nan, np.inf, 0.0, 1.0, np.nan]], np.float32)
    for expr in ("x + y", "x * y", "x / y", "maximum(x, y)", "minimum(x, y)", "x == y", "x != y", "x < y", "x >= y", "max(x)",
                 "min(y)", "sum(x)", "where(x, 1, 2)", "0 * (x.T @ y) + 0 * (x.T @ y)", "sqrt(x)", "abs(x)", "x ** 2", "x ** 0.5",
                 "exp(x)", "log(x)", "tanh(x)", "mean(y[:, 2:4])"):
        operands = {k: v for k, v in (("x", x), ("y", y)) if k in set(names_of(expr))}
        got, expected = run(daemon, expr, operands), as_matrix(numpy_eval(expr, operands))
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=expr)


# ---- Expressions at random.


COUNT = int(400 / SLOW)


@arithmetic
@pytest.mark.parametrize("device, count", zip(DEVICES, [COUNT, COUNT // 2]))
def test_random_expressions_have_the_bits_of_numpy(daemon, device, count):
    computed = 0
    with daemon.client() as client:
        for k in range(count):
            expr, operands, expected = written(SEED * 100003 + k)
            headers, body = parts(expr, operands)
            reply = client.post(wire.target(EVAL, device=device), body, headers)
            case = f"seed {SEED * 100003 + k}: {expr} of { {n: (a.dtype.name, a.shape) for n, a in operands.items()} }"
            if isinstance(expected, Exception):
                assert reply.code in ("bad_shape", "bad_dtype", "out_of_range"), (case, reply, expected)
                continue
            if reply.status == 422 and reply.code == "cost_limit":
                continue  # more steps than an expression may take
            if reply.status != 200:  # NumPy takes axis=0 of a number, which has no dimension
                problems.check(reply, 422, "bad_shape", "axis 0 is out of bounds: there are 0 dimensions")
                continue
            with np.errstate(all="ignore"):
                if np.any(np.abs(expected.astype(np.float64)) > 2 ** 10) and expected.dtype == np.float16:
                    continue  # beyond that f16 rounds sums in another order
            same(result(reply), expected, case)
            computed += 1
    assert computed > 0.85 * count, computed


@arithmetic
def test_random_expressions_with_functions_are_as_close_as_numpy(daemon):
    """Each within a bound of the narrowest type's arithmetic; and nearly all within 4 roundings of twice NumPy's own error,
    the few others where that is 0 by luck."""
    computed = close = 0
    with daemon.client() as client:
        for k in range(COUNT):
            expr, operands, expected = written(SEED * 7919 + k, loose=True)
            if isinstance(expected, Exception) or expected.dtype.kind != "f" or "<" in expr or "==" in expr:
                continue
            headers, body = parts(expr, operands)
            reply = client.post(EVAL, body, headers)
            if reply.status == 422 and reply.code == "cost_limit":
                continue
            if reply.status != 200:
                problems.check(reply, 422, "bad_shape", "axis 0 is out of bounds: there are 0 dimensions")
                continue
            wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in operands.items()}
            exact = as_matrix(numpy_eval(expr, wide)).astype(np.float64)
            got, expected = result(reply), as_matrix(expected)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), expr
            narrow = [x.dtype if x.dtype.kind == "f" else np.float16 for x in operands.values() if x.dtype.kind in "fb"]
            eps = max(np.finfo(dtype).eps for dtype in [got.dtype, *narrow])  # functions of bool are f16
            scale = eps * (np.max(np.abs(exact), initial=0) + 64)
            allowed = 8 * np.abs(expected.astype(np.float64) - exact) + 64 * scale
            with np.errstate(all="ignore"):
                error, numpys = (np.abs(x.astype(np.float64) - exact) for x in (got, expected))
            both = np.isfinite(exact) & np.isfinite(expected)
            assert not np.any(both & ~(error <= allowed)), (expr, got, expected)
            few = 4 * np.finfo(got.dtype).eps * np.max(np.abs(exact), where=both, initial=1)
            computed += 1
            close += bool(np.max(error, where=both, initial=0) <= 2 * np.max(numpys, where=both, initial=0) + few)
    assert computed > 0.4 * COUNT and close >= 0.98 * computed, (close, computed)


@arithmetic
@pytest.mark.parametrize("shape", [(1000, 1000), (1, 300001), (300001, 1), (70001, 3), (3, 70001), (40, 50, 60)])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("device", DEVICES)
def test_large_reductions_keep_their_error_small(daemon, rng, shape, axis, device):
    if device == "sim":
        shape = tuple((size + 2) // 3 for size in shape)
    x = rng.standard_normal(shape).astype(np.float32)
    for function, ulps in (("sum", 1), ("mean", 2), ("max", 0), ("min", 0)):
        got = run(daemon, f"{function}(x * 2, axis={axis})", {"x": x}, query={"device": device})
        expected = as_matrix(getattr(np, function)(x.astype(np.float64) * 2, axis=axis))
        np.testing.assert_allclose(got, expected.astype(np.float32), rtol=2.0 ** -23 * ulps, atol=1e-9 * ulps, err_msg=function)


def test_large_elementwise_chains(daemon, rng):
    x, y = (rng.standard_normal((701, 1033)).astype(np.float32) for _ in range(2))
    row, column = rng.standard_normal((1, 1033)).astype(np.float32), rng.standard_normal((701, 1)).astype(np.float32)
    operands = {"x": x, "y": y, "row": row, "column": column}
    for expr in ("((x + row) * column - y) / 3 + x * y", "x.T * y.T + column.T", "where(x > y, row, column)", "x[::-1, ::-1] - y",
                 "(x > 0) == (y > 0)"):
        used = {n: v for n, v in operands.items() if n in set(names_of(expr))}
        same(run(daemon, expr, used), numpy_eval(expr, used), expr)


def test_the_same_bits_every_time_and_by_any_number_of_threads(daemon, start, rng):
    x = rng.standard_normal((900, 1100)).astype(np.float32)
    one = start("--threads", "1")
    for expr in ("sum(tanh(x))", "mean(x * x, axis=0)", "sum(x, axis=1)", "exp(x) - x"):
        results = [run(d, expr, {"x": x}) for d in (daemon, daemon, one)]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)


# ---- Types, bodies and replies.


def test_bf16_rounds_as_it_is_stored(daemon, rng):
    x, y = (rng.standard_normal((9, 17)).astype(np.float32) for _ in range(2))
    bits = [np.frombuffer((bf16_round(v)).tobytes(), dtype="V2").reshape(v.shape) for v in (x, y)]
    wide = [bf16_widen(bf16_round(v)) for v in (x, y)]
    got = run(daemon, "x * y + x", {"x": bits[0], "y": bits[1]}, dtype="bf16")
    product = bf16_widen(bf16_round((wide[0] * wide[1]).astype(np.float32)))
    expected = bf16_round((product + wide[0]).astype(np.float32))
    np.testing.assert_array_equal(np.frombuffer(got.tobytes(), np.uint16), expected.ravel())


def test_json_bodies(daemon):
    body = {"expr": "k * x + w.T", "operands": {"x": [[1, 2]], "k": 3, "w": {"shape": [2, 1], "dtype": "f64", "data": [5, 6]}}}
    reply = daemon.post(EVAL, json.dumps(body), {"Content-Type": wire.JSON}).ok().json()
    assert (reply["data"], reply["dtype"], reply["shape"]) == ([[8, 12]], "f64", [1, 2])
    assert [s["op"] for s in reply["stats"]["steps"]] == ["elementwise"] * 2, "f32, then f64"
    assert daemon.post(EVAL, '{"expr": "1 + 1"}').ok().json()["data"] == [[2]]
    assert daemon.post(EVAL, '{"expr": "2 > 1"}').ok().json()["data"] == [[True]]
    reply = daemon.post(EVAL, '{"dtype": "i64", "expr": "x // 2"}')
    problems.check(reply, 400, "bad_expression")
    reply = daemon.post(EVAL, '{"expr": "x + 1", "dtype": "i64", "operands": {"x": [[1, 2]]}}').ok().json()
    assert (reply["dtype"], reply["data"]) == ("i64", [[2, 3]])


def test_text_parts_and_numbers(daemon):
    got = run(daemon, "x * k + y", {"x": "1,2\n3,4\n", "k": "2", "y": "[[10, 20]]"})
    same(got, np.array([[12, 24], [16, 28]], np.float32))


@arithmetic
@pytest.mark.parametrize("text, value", [("7", 7), (" -7\r\n", -7), ("+7", 7), ("-0", 0), ("-0.0", -0.0), ("007", 7), ("2.5", 2.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1e3),
                                         ("1e-999", 0.0), ("0." + "1" * 500, 1 / 9), ("-9223372036854775808", -2 ** 63)])
def test_a_number_alone_has_no_type(daemon, text, value):
    """An integer stays one, and neither makes f16 wider."""
    same(run(daemon, "x * k", {"x": np.ones((2, 2), np.int64), "k": text}), np.ones((2, 2), np.int64) * value, text)
    if abs(value) < 1e5:
        same(run(daemon, "x * k", {"x": np.ones((2, 2), np.float16), "k": text}), np.full((2, 2), value, np.float16), text)


@arithmetic
@pytest.mark.parametrize("text", ["1e999", "-1e999", "inf", "-inf", "+Infinity", "nan", "NaN", "9223372036854775808",
                                  "-9223372036854775809", "9" * 3000])
def test_a_number_alone_is_in_range(daemon, text):
    """It is not read as elements instead, which have a type."""
    detail = "operand k is .*: a number alone is a whole one of i64, or a finite one of f64"
    problems.check(post(daemon, "x * k", {"x": A, "k": text}), 422, "out_of_range", detail)
    if text[-1].isdigit():
        problems.check(daemon.post(EVAL, f'{{"expr": "1 * k", "operands": {{"k": {text}}}}}'), 422, "out_of_range", detail)
    matrix = run(daemon, "x * 1", {"x": "inf,nan"})
    same(matrix, np.array([[np.inf, np.nan]], np.float32))


@arithmetic
@pytest.mark.parametrize("expr", ["21 / 9007199254740993", "1 / 2731", "0.7 / 384.7", "9007199254740993 / 3.0", "-9223372036854775807 / 3",
                                  "9007199254740993 / -9223372036854775807", "0 / -5", "9007199254740993 == 9007199254740992.0", "9007199254740993 > 9007199254740992.0",
                                  "1e308 * 10", "-1e308 - 1e308", "1e308 / 1e-308", "2 ** -2", "9 ** 0.5", "1 / 3 * 3", "7 == 7.0"])
def test_numbers_are_those_of_python(daemon, expr):
    same(run(daemon, expr), np.array([[eval(expr)]]), expr)


@arithmetic
@pytest.mark.parametrize("expr, detail", [("(-8) ** 0.5", "complex"), ("0 ** -1", "0 has no negative powers"), ("1 / 0.0", "division by 0"),
                                          ("10.0 ** 400", "greater than any of f64"), ("i ** 5000000000", "cannot hold it")])
def test_what_python_refuses(daemon, expr, detail):
    used = {"i": np.array([[3]], np.int32)} if "i" in expr else {}
    problems.check(post(daemon, expr, used), 422, "out_of_range", detail)


@arithmetic
@pytest.mark.parametrize("device", DEVICES)
def test_integers_are_compared_with_any_number(daemon, device):
    """NumPy 1 with the promotion of 2 does not."""
    i = np.array([[2 ** 31 - 1, -1, -2 ** 31]], np.int32)
    for expr, value in (("i < 2147483648", True), ("2147483648 <= i", False), ("i == 2 ** 40 - 1", False), ("i != -2147483649", True),
                        ("i > -4294967297", True), ("i == 4294967295", False)):
        same(run(daemon, expr, {"i": i}, query={"device": device}), np.full((1, 3), value), expr)


def test_formats_of_replies(daemon):
    for accept, read in ((wire.NPY, result), (wire.CSV, lambda r: np.loadtxt(io.StringIO(r.ok().body.decode()), delimiter=",", ndmin=2)),
                         (wire.JSON, lambda r: np.array(r.ok().json()["data"]))):
        reply = post(daemon, "x + 1", {"x": A}, headers={"Accept": accept})
        np.testing.assert_array_equal(read(reply), A + 1)
        assert reply.stats["op"] == "eval" and reply.stats["kernel"] == "graph"
    assert result(post(daemon, "x > 1", {"x": A})).dtype == np.bool_
    problems.check(post(daemon, "x + 1", {"x": A}, headers={"Accept": "image/png"}), 406, "not_acceptable")


def test_the_account_lists_the_steps(daemon):
    reply = post(daemon, "tanh(2 * (x @ x.T) + y) - mean(y)", {"x": A, "y": np.ones((2, 2), np.float32)})
    stats = reply.ok() and reply.stats
    assert [step["op"] for step in stats["steps"]] == ["matmul", "mean", "elementwise"]
    assert all(step["kernel"] and step["us"] >= 0 and len(step["shape"]) == 2 for step in stats["steps"])
    assert stats["shapes"] == {"result": [2, 2]} and stats["flops"] > 0 and stats["us"]["kernel"] > 0


# ---- The plan.


def plan(daemon, expr, operands):
    reply = post(daemon, expr, operands, headers={"Accept": wire.JSON}, query={"explain": "plan"})
    return reply.ok().json()


def test_transposes_factors_and_sums_are_folded_into_products(daemon):
    x, y, c = np.ones((30, 20), np.float32), np.ones((40, 20), np.float32), np.ones((30, 40), np.float32)
    steps = plan(daemon, "2 * (x @ y.T) + c * 3", {"x": x, "y": y, "c": c})["steps"]
    assert [(s["op"], s["operands"], s["alpha"], s["beta"], s.get("transb")) for s in steps] == \
        [("matmul", ["x", "y", "c"], 2, 3, True)]
    steps = plan(daemon, "c - x @ y.T", {"x": x, "y": y, "c": c})["steps"]
    assert [(s["op"], s["alpha"], s["beta"]) for s in steps] == [("matmul", -1, 1)]
    for expr in ("x @ y.T + 0 * c", "0 * (x @ y.T)", "x @ y.T + c[0]"):  # 0 would leave NaN unread; a row is no matrix
        used = {n: v for n, v in {"x": x, "y": y, "c": c}.items() if n in set(names_of(expr))}
        assert [s["op"] for s in plan(daemon, expr, used)["steps"]] == ["matmul", "elementwise"], expr


def test_common_parts_are_computed_once_and_chains_are_one_step(daemon):
    x = np.ones((20, 20), np.float32)
    assert [s["op"] for s in plan(daemon, "x @ x + (x @ x) * 2 - x @ x", {"x": x})["steps"]] == ["matmul", "elementwise"]
    assert [s["op"] for s in plan(daemon, "(x @ x) ** 1 * 2", {"x": x})["steps"]] == ["matmul"]  # a power of 1 is no pass
    steps = plan(daemon, "exp(x) * exp(x) + sum(exp(x))", {"x": x})["steps"]
    assert [(s["op"], "exp" in s["instructions"]) for s in steps] == [("elementwise", True), ("sum", False), ("elementwise", False)]
    steps = plan(daemon, "tanh(((x + 1) * 2 - x) / 3) + sqrt(x) * x", {"x": x})["steps"]
    assert len(steps) == 1 and "tanh" in steps[0]["instructions"]


def test_chains_of_products_take_the_cheapest_order(daemon):
    a, b, c = np.ones((100, 3), np.float32), np.ones((3, 100), np.float32), np.ones((100, 2), np.float32)
    shapes = lambda expr: [s["shape"] for s in plan(daemon, expr, {"a": a, "b": b, "c": c})["steps"]]
    assert shapes("a @ b @ c") == [[3, 2], [100, 2]]
    assert shapes("(a @ b) @ c") == [[100, 100], [100, 2]], "parentheses are kept"
    assert shapes("a @ b @ a @ b @ c")[-1] == [100, 2]


def test_the_plan_for_people(daemon):
    operands, accept = {"x": [[1, 2], [3, 4]], "k": 3}, {"Accept": "text/plain"}
    json_type = {"Content-Type": wire.JSON, **accept}
    ways = [post(daemon, "x @ x.T + k", {"x": "[[1, 2], [3, 4]]", "k": "3"}, query={"explain": "plan"}, headers=accept),
            post(daemon, "x @ x.T + k", {"x": "[[1, 2], [3, 4]]", "k": "3"}, explain="plan", headers=accept),
            post(daemon, "x @ x.T + k", {"explain": "plan", "x": "[[1, 2], [3, 4]]", "k": "3"}, headers=accept),
            daemon.post(EVAL, json.dumps({"expr": "x @ x.T + k", "operands": operands, "explain": "plan"}), json_type)]
    for reply in ways:
        assert reply.ok().media_type == "text/plain" and reply.body == ways[0].body
    assert re.match(r"""x @ x\.T \+ k

on .*, 2 steps, 256 bytes stored between them

 1\. t1 = matmul\(x, x, transb\)
    2x2 f32 by kernel ".*"; 16 operations on 48 bytes
 2\. result = elementwise\(t1\): load, add
    2x2 f32 by kernel "program"; 4 operations on 32 bytes
$""", ways[0].body.decode()), ways[0].body.decode()
    for expr, step in (("0.5 * (x @ x.T)", "matmul(x, x, transb, alpha 0.5)"),
                       ("(x + 1) * (x - 1)", "elementwise(x): load, subtract, load, add, multiply")):  # what is kept in between is no step
        assert f"result = {step}\n" in post(daemon, expr, {"x": A}, query={"explain": "plan"}, headers=accept).ok().body.decode()
    assert plan(daemon, "x + 1", {"x": A[None]})["steps"][0]["shape"] == [1, 2, 3]
    problems.check(post(daemon, "x", {"x": A}, query={"explain": "no"}), 400, "bad_parameter")


def test_a_plan_has_two_formats_and_a_result_others(daemon):
    for parameters in ({"query": {"explain": "plan"}}, {"explain": "plan"}):
        assert post(daemon, "x", {"x": A}, **parameters, headers={"Accept": wire.JSON}).ok().json()["shape"] == [2, 3]
        problems.check(post(daemon, "x", {"x": A}, **parameters, headers={"Accept": "image/png"}), 406, "not_acceptable")
    problems.check(post(daemon, "x", {"x": A}, headers={"Accept": "text/plain"}), 406, "not_acceptable", "a result can be written as")


# ---- What is refused, and where.

REFUSED = [
    ("", 400, "bad_expression", 1), ("x +", 400, "bad_expression", 4), ("x + * y", 400, "bad_expression", 5),
    ("(x", 400, "bad_expression", 3), ("x)", 400, "bad_expression", 2), ("x y", 400, "bad_expression", 3),
    ("x ! y", 400, "bad_expression", 3), ("x & y", 400, "bad_expression", 3), ("x = 1", 400, "bad_expression", 3),
    ("1 < x < 2", 400, "bad_expression", 7), ("foo(x)", 400, "bad_expression", 1), ("x.foo()", 400, "bad_expression", 3),
    ("exp(x, y)", 400, "bad_expression", 8), ("where(x, y)", 400, "bad_expression", 1), ("sum(x, axes=1)", 400, "bad_expression", 8),
    ("x[1.5]", 400, "bad_expression", 3), ("x[::0]", 400, "bad_expression", 3), ("x[1,2,3,4]", 400, "bad_expression", 9),
    ("012", 400, "bad_expression", 1), ("1__0", 400, "bad_expression", 1), ("1_", 400, "bad_expression", 1), ("2x", 400, "bad_expression", 1),
    ("99999999999999999999", 400, "bad_expression", 1), ("x // 2", 400, "bad_expression", 3), ("x + é", 400, "bad_expression", 5),
    ("q + 1", 422, "missing_operand", 1), ("x + (2 * q)", 422, "missing_operand", 10), ("x @ x", 422, "bad_shape", 3),
    ("x + y", 422, "bad_shape", 3), ("x[7]", 422, "bad_shape", 3), ("x[0, 0, 0]", 422, "bad_shape", 9),
    ("sum(x, axis=2)", 422, "bad_shape", 1), ("sum(x, axis=(0, 0))", 422, "bad_shape", 1), ("2 @ x", 422, "bad_shape", 3),
    ("s.T", 422, "kernel_unavailable", 3), ("max(x[:0])", 422, "bad_shape", 1), ("u + 1", 422, "bad_dtype", 1),
    ("-t", 422, "bad_dtype", 1), ("t - t", 422, "bad_dtype", 3), ("t @ t.T", 422, "bad_dtype", 3), ("t ** 2", 422, "kernel_unavailable", 3),
    ("i ** -1", 422, "out_of_range", 3), ("i ** i", 422, "kernel_unavailable", 3), ("i + 3000000000", 422, "out_of_range", 5),
    ("+t", 422, "bad_dtype", 1), ("2 * +t", 422, "bad_dtype", 5), ("x + (2).T", 422, "bad_dtype", 9), ("(1 < 2).sum()", 422, "bad_dtype", 9),
    ("np.pi.transpose()", 422, "bad_dtype", 7), ("max(x[:0, :0], axis=0)", 422, "bad_shape", 1), ("x[,]", 400, "bad_expression", 3),
    ("x[0,,]", 400, "bad_expression", 5), ("x + 1 / 0", 422, "out_of_range", 7), ("x + 9 ** 99", 422, "out_of_range", 7),
]


@arithmetic
@pytest.mark.parametrize("expr, status, code, at", REFUSED)
def test_refusals_name_the_place(daemon, expr, status, code, at):
    operands = {"x": X, "y": np.ones((4, 4), np.float32), "s": S, "u": np.ones((1, 1), np.uint8), "t": X > 0,
                "i": np.ones((2, 2), np.int32)}
    used = {n: v for n, v in operands.items() if n in set(names_of(expr.replace("é", "")))}
    headers, body = parts(expr, used)
    reply = daemon.post(EVAL, body.replace("é".encode("latin1"), b"\xc3\xa9") if "é" in expr else body, headers)
    problems.check(reply, status, code)
    assert reply.json()["at"] == at, reply
    assert f"character {at}:" in reply.json()["detail"]


def test_bodies_that_are_none(daemon):
    problems.check(daemon.post(EVAL, "{}"), 400, "bad_expression")
    problems.check(daemon.post(EVAL, "[1]"), 400, "bad_json")
    problems.check(daemon.post(EVAL, '{"expr": 3}'), 400, "bad_json")
    problems.check(daemon.post(EVAL, '{"expr": "x", "operands": {"x": "y"}}'), 400, "bad_json")
    problems.check(daemon.post(EVAL, '{"expr": "x", "operands": {"x": {"data": [1], "ref": "w"}}}'), 400, "bad_json")
    problems.check(daemon.post(EVAL, '{"expr": "x", "operands": {"x": [[1]], "y": 1}}'), 422, "extra_operand")
    problems.check(daemon.post(EVAL, '{"expr": "x", "operands": {"1x": [[1]]}}'), 400, "bad_parameter")
    problems.check(daemon.post(EVAL, '{"expr": "1", "kernel": "naive"}'), 400, "bad_parameter")
    for media_type in (wire.NPY, "application/x-other"):
        problems.check(daemon.post(EVAL, npy(A), {"Content-Type": media_type}), 415, "unsupported_media_type",
                       "/v1/eval takes application/json and multipart/form-data, which")
    problems.check(daemon.post(EVAL), 400, "bad_json")
    problems.check(daemon.get(EVAL), 405, "method_not_allowed")
    problems.check(post(daemon, "sum(x @ x)", {"x": np.ones((1000, 1000), np.float32)}, query={"device": "sim"}), 422, "cost_limit")
    problems.check(post(daemon, "x", {"x": ""}), 422, "missing_operand")
    problems.check(post(daemon, "x", {"x": "\x01\x02"}), 415, "unsupported_media_type")
    problems.check(post(daemon, "x", {"x": "ref:9"}), 400, "bad_parameter")
    truncated = parts("x", {"x": A})
    problems.check(daemon.post(EVAL, truncated[1][:-40], truncated[0]), 400, "body_truncated")


def test_limits_are_known_before_anything_runs(daemon):
    deep = "(" * 65 + "x" + ")" * 65
    for expr in (deep, "-" * 65 + "x", "x" + " + x" * 300, " " * 5000 + "x", "+".join(f"x{i}" for i in range(17)),
                 "x" + "[0:1]" * 65, "x" + " ** 1" * 65):
        reply = post(daemon, expr, {"x": A} if "x0" not in expr else {})
        problems.check(reply, 400, "bad_expression")
    same(run(daemon, "(" * 64 + "x" + ")" * 64, {"x": A}), A)
    same(run(daemon, "x" + " ** 1" * 64, {"x": A}), A)
    same(run(daemon, "x" + " + x" * 120, {"x": A}), 121 * A)
    steps = " + ".join(f"sum(x + {i})" for i in range(30))
    problems.check(post(daemon, steps, {"x": A}), 422, "cost_limit")
    wide = np.ones((1, 1 << 20), np.float32)
    problems.check(post(daemon, "sum(x.T @ x + 1)", {"x": wide}), 413, "too_large")


EMPTY = np.zeros((0, 1 << 30, 1 << 30), np.float32)  # 128 bytes of .npy


@arithmetic
@pytest.mark.parametrize("expr, value", [("sum(x)", 0), ("mean(x)", np.nan), ("max(sum(x, axis=0))", 0),
                                         ("sum(sum(x, axis=0)) + 3", 3), ("min(mean(x, axis=0, keepdims=True))", np.nan),
                                         ("sum((x.mT @ x + 1)[:, :, 5])", 0)])
@pytest.mark.parametrize("device", DEVICES)
def test_reductions_of_nothing_take_no_time(daemon, expr, value, device):
    same(run(daemon, expr, {"x": EMPTY}, query={"device": device, "timeout_ms": 20000}), np.full((1, 1), value, np.float32), expr)


@pytest.mark.parametrize("expr, operands", [
    ("sum(sum(x, axis=0) + 1)", {"x": EMPTY}), ("max(tanh(mean(x, axis=0)))", {"x": EMPTY}),
    ("sum(where(a, b, c))", {"a": np.ones((1 << 16, 1, 1), np.float32), "b": np.ones((1, 1 << 16, 1), np.float32),
                            "c": np.ones((1, 1, 1 << 16), np.float32)}),
    ("min(where(a < b, a, c), axis=1)", {"a": np.ones((1 << 16, 1, 1), np.int32), "b": np.ones((1, 1 << 16, 1), np.int32),
                                         "c": np.ones((1, 1, 1 << 16), np.int32)}),
])
@arithmetic
@pytest.mark.parametrize("query", [{}, {"device": "cpu"}, {"device": "sim"}, {"explain": "plan"}])
def test_work_is_bounded_before_anything_runs(daemon, expr, operands, query):
    """A few small operands stand for work of hours: it is refused at once, and a deadline has no part in that."""
    reply = post(daemon, expr, operands, query=query)
    problems.check(reply, 422, "cost_limit")
    assert "operations on" in reply.json()["detail"] and "at most" in reply.json()["detail"]


def test_memory_is_counted(start):
    daemon = start("--memory-limit", "100M")
    x = np.ones((1, 2048), np.float32)
    value = run(daemon, "sum(tanh(x.T @ x) @ (x.T @ x))", {"x": x})  # 16 MiB each, three of them
    np.testing.assert_allclose(value, [[2048 ** 3 * np.tanh(1)]], rtol=1e-5)
    problems.check(post(daemon, "sum(exp(y.T @ y) @ (y.T @ y))", {"y": np.ones((1, 3000), np.float32)}), 413, "too_large")
    # By itself as large as half of the limit, which leaves the other half for operands and results.
    problems.check(post(daemon, "sum(y.T @ y, axis=0)", {"y": np.ones((1, 4000), np.float32)}), 413, "too_large", "--memory-limit")
    wait_until(lambda: gauge(daemon, "gemmd_memory_used_bytes") == 0, "the memory back")


# ---- Named matrices.


@pytest.fixture
def named(daemon):
    """put(name, array); all are deleted at the end."""
    names = []

    def put(name, array):
        names.append(name)
        reply = daemon.request("PUT", f"/v1/matrices/{name}", npy(array), {"Content-Type": wire.NPY})
        assert reply.status in (200, 201), reply

    yield put
    for name in names:
        daemon.request("DELETE", f"/v1/matrices/{name}")


def test_durations_are_exported(daemon):
    def counted():
        return prometheus.total(prometheus.read(daemon), "gemmd_request_duration_seconds_count", op="eval")
    before = counted()
    run(daemon, "x + 1", {"x": A})
    wait_until(lambda: counted() == before + 1, "its duration")


@pytest.mark.parametrize("device", DEVICES)
def test_sums_along_the_first_and_the_last_axis_are_not_rounded_between(daemon, device):
    x = np.array([[[2**24, 1]], [[-2**24, 0]]], np.float32)
    for expr, shape in (("sum(x, axis=(0, 2))", (1, 1)), ("sum(x, axis=(0, 2), keepdims=True)", (1, 1, 1)),
                        ("4 * mean(x, axis=(2, 0))", (1, 1))):
        same(run(daemon, expr, {"x": x}, query={"device": device}), np.full(shape, 1, np.float32), expr)
    h = np.array([[[6e4, 6e4]], [[-6e4, -6e4]]], np.float16)
    same(run(daemon, "sum(h, axis=(0, 2))", {"h": h}, query={"device": device}), np.zeros((1, 1), np.float16))


@pytest.mark.parametrize("device", DEVICES)
def test_zeros_have_the_sign_of_the_second_operand(daemon, device):
    """Whether it is computed first or not."""
    of = {"x": np.zeros((1, 1), np.float32), "y": np.full((1, 1), -0.0, np.float32)}
    for expr, sign in (("1 / maximum(x, y)", -1), ("1 / maximum(x, -x)", -1), ("1 / minimum(-x, x)", 1),
                       ("1 / minimum(y, -y)", 1), ("1 / maximum(-y, y)", -1)):
        used = {name: of[name] for name in "xy" if name in expr.replace("maximum", "")}
        same(run(daemon, expr, used, query={"device": device}), np.full((1, 1), sign * np.inf, np.float32), expr)


def test_factors_of_products_wrap_around_as_numpy_does(daemon):
    a = np.array([[1, 2], [3, 4]], np.int32)
    same(run(daemon, "c - -2147483648 * (a @ a)", {"a": a, "c": a}), a - np.int32(-2**31) * (a @ a))


def test_identifiers_are_named_matrices_where_the_request_has_none(daemon, named):
    named("w", A)
    named("kept", A)
    same(run(daemon, "w @ w.T + b", {"b": np.ones((2, 2), np.float32)}), A @ A.T + 1)
    same(run(daemon, "w + 1", {"w": 10 * A}), 10 * A + 1)
    same(run(daemon, "x - w", {"x": "ref:w"}), 0 * A)
    reply = daemon.post(EVAL, '{"expr": "v * 2", "operands": {"v": {"ref": "w"}}}').ok()
    assert reply.json()["data"] == (A * 2).tolist()
    problems.check(daemon.post(EVAL, '{"expr": "v", "operands": {"v": {"ref": "nothing"}}}'), 422, "missing_operand",
                   "v is ref:nothing, and there is no such named matrix")
    problems.check(daemon.post(EVAL, '{"expr": "v"}'), 422, "missing_operand", "v is no operand of the request")


def test_results_are_kept(daemon, named):
    named("w", A)
    named("r", A)
    reply = post(daemon, "w * 2 > 5", query={"keep": "r"}, headers={"Accept": wire.JSON}).ok()
    assert "data" not in reply.json() and reply.json()["dtype"] == "bool" and reply.header("Location") == "/v1/matrices/r"
    same(run(daemon, "where(r, w, -1)"), np.where(A * 2 > 5, A, np.float32(-1)))
    same(result(post(daemon, "w + 1", query={"keep": "r", "return": "result"})), A + 1)
    same(run(daemon, "r + 1", query={"keep": "r", "return": "result"}), A + 2)


def test_races_of_use_replacement_and_deletion(daemon, named):
    """A user of a named matrix has one of its versions, whole, or none."""
    side, stop, failures, seen = 200, threading.Event(), [], set()
    named("race", np.full((side, side), 0, np.float32))

    def write():
        value = 0
        with daemon.client() as client:
            while not stop.is_set():
                value += 1
                client.request("PUT", "/v1/matrices/race", npy(np.full((side, side), value, np.float32)), {"Content-Type": wire.NPY})
                if value % 3 == 0:
                    client.request("DELETE", "/v1/matrices/race")

    def use():
        headers, body = parts("race + max(race) + min(race.T @ race) * 0", {})
        with daemon.client() as client:
            while not stop.is_set():
                reply = client.post(EVAL, body, headers)
                if reply.status == 422:
                    continue
                got = result(reply)
                seen.add(got[0, 0])
                if not np.all(got == got[0, 0]) or got[0, 0] % 2 != 0:
                    failures.append(got)

    threads = [threading.Thread(target=write)] + [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures and len(seen) > 1, seen


# ---- Company.


def test_a_client_that_leaves_ends_its_expression(start):
    """As with other operations: one that resets the connection, since one that closes may still read."""
    daemon = start()
    x = np.ones((2000, 2000), np.int64)
    headers, body = parts(" + ".join(f"sum((x + {i}) @ x)" for i in range(6)), {"x": x})
    with daemon.raw() as raw:
        raw.send(wire.head("POST", EVAL, f"Content-Type: {headers['Content-Type']}", f"Content-Length: {len(body)}"), body)
        wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 1, "the job to run")
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    left = time.monotonic()
    wait_until(lambda: gauge(daemon, "gemmd_jobs_running") == 0, "the job to end")
    assert time.monotonic() - left < 2 * SLOW


def test_a_deadline_ends_an_expression(daemon):
    x = np.ones((2000, 2000), np.float64)
    reply = post(daemon, " + ".join(f"sum((x + {i}) @ x)" for i in range(6)), {"x": x}, query={"timeout_ms": 60})
    problems.check(reply, 503, "deadline_passed")


def test_expressions_are_among_the_last_requests(daemon):
    post(daemon, "x + 1", {"x": A}).ok()
    records = daemon.get("/v1/requests?limit=100").ok().json()["requests"]
    assert any(record["account"]["op"] == "eval" for record in records)
    for picture in ("roofline", "waterfall", "streams"):
        assert b"<svg" in daemon.get(f"/v1/requests/{picture}.svg").ok().body
