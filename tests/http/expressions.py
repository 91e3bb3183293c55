"""Expressions for /v1/eval, by hand and at random, and what NumPy makes of them. Plain Python and numpy."""

import contextlib
import io
import random

import numpy as np

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_}
NAMES = {name: getattr(np, name) for name in ("sum", "mean", "max", "min", "where", "exp", "log", "sqrt", "abs", "tanh",
                                              "maximum", "minimum", "transpose")}
NAMES |= {"abs": abs, "np": np, "numpy": np, "__builtins__": {"__import__": __import__}}
A = np.arange(6, dtype=np.float32).reshape(2, 3)


class Matrix(np.ndarray):
    """An array with .mT, which NumPy has from 2.0 on."""

    @property
    def mT(self):
        return self.swapaxes(-1, -2)


def where(condition, x, y):
    """np.where, which takes Python's numbers as weak from 2.0 on."""
    dtype = np.result_type(x, y)
    return np.where(condition, np.asarray(x, dtype), np.asarray(y, dtype))


@contextlib.contextmanager
def numpy_2():
    """NumPy with the promotion of version 2, which 1.24 to 1.26 have as an option."""
    with np.errstate(all="ignore"):
        if not hasattr(np, "_set_promotion_state"):
            yield
            return
        before = np._get_promotion_state()
        np._set_promotion_state("weak")
        try:
            yield
        finally:
            np._set_promotion_state(before)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def parts(expr, operands, **parameters):
    """(headers, body) of multipart/form-data."""
    lines = []
    for name, value in {"expr": expr, **operands, **parameters}.items():
        content = npy(value) if isinstance(value, np.ndarray) else str(value).encode()
        lines += [b"--B", f'Content-Disposition: form-data; name="{name}"'.encode(), b"", content]
    return {"Content-Type": "multipart/form-data; boundary=B"}, b"\r\n".join([*lines, b"--B--", b""])


def numpy_eval(expr, operands):
    with numpy_2():
        value = eval(expr, {**NAMES, "where": where}, {name: array.view(Matrix) for name, array in operands.items()})
        return np.asarray(value)


def as_matrix(array):
    return array if array.ndim == 3 else np.atleast_2d(array)


X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
Y = np.array([[0.5, 2, -1], [3, 0.25, 4]], np.float32)
S = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
OPERANDS = {"x": X, "y": Y, "s": S, "i": np.array([[7, -8, 9], [2 ** 31 - 1, 5, -2 ** 31]], np.int32),
            "l": np.array([[2 ** 40, -3, 11]], np.int64), "h": X.astype(np.float16) / 3, "d": Y.astype(np.float64),
            "t": X > 0, "c": np.array([[10.0], [20.0]], np.float32), "f": np.asfortranarray(X)}

EXACT = """
where(x > 0, x, -np.inf);x * np.nan;np.inf > x;np.inf > np.nan;np.nan != np.nan;np.nan == np.nan;np.inf - 1 + x;h + np.e
np.pi * x;maximum(y, -np.inf);i * np.inf;-np.inf;np.inf * 0;x + y;x - y;x * y;x / y;x / abs(-0.0);x / abs(0.0);-x;+x;x + 1;1 - x;2 / x;x ** 2;x ** 3.0 * 0;x ** 0.5 * 0 == 0;2 ** 10;2 ** -1;7 / 2;-3 ** 2
x @ y.T;x.T @ y;s @ y.T;y @ s.mT;s @ s.mT;(x @ y.T) @ x;x @ y.T @ x @ y.T @ x;2 * (x @ y.T) + 1
2 * (x @ y.T) + 3 * (x @ y.T);0.5 * (x.T @ y) - x.T @ y;(x @ y.T).T;(x @ y.T)[0, 1];sum(x @ y.T)
x > y;x >= 1;x == y;x != 3;1 < x;t * (x > 1);t + (x > 1);t == (x > 1);where(t, x, y);where(x, 1, y);where(t, 1, 2)
where(x > 2, x, 0) + where(t, i, l);sum(x);sum(x, axis=0);sum(x, 1);sum(x, axis=1, keepdims=True);sum(s, axis=(0, 1))
sum(s, axis=(0, 2));sum(s, axis=(1, 2), keepdims=True);sum(s, axis=-1);max(x);min(x, axis=0);max(s, axis=1);mean(s)
mean(x, axis=1);mean(i);sum(t);mean(t);max(t, axis=0);min(i);sum(i);sum(l);max(l);x.sum(axis=0);x.max();s.mean(axis=2)
sum(x, axis=1) + sum(x, axis=1);x - mean(x, axis=0);x - sum(x, axis=1, keepdims=True);sum(sum(x, axis=1))
sum(sum(x, axis=1), axis=0);x.T;x.T + y.T;f + x;f.T @ x;f @ x.T;f.T;x.T.T;s.mT;s.mT[1];x[0];x[:, 1];x[-1, ::-1]
x[0:1, :2];x[::-1];x[:, ::2];x[5:];x[:, 1:1];s[1];s[1:3, :, 1];s[::2, 1, ::-1];s[1, 1, 2];x[:, 1:] @ y[:, 1:].T
x[0] @ y[1];x @ y[0];x[:, 0] @ y;x[:, 1] + 1;x.T[1] + c[:, 0];x + c;x + x[0];s + x;s * c;s + s[0];c @ x[0:1]
i + i;i * i;i - 1;-i;abs(i);abs(x);abs(-3);i + l;i * x;i / i;i / 2;i ** 3;i ** 0;l ** 2;l - 2 ** 40;i + 1.5;t + 1;t * 2.5
t / t;h + h;h * 2;h * x;h + i;h / 3;h * d;h + 60000;x * d;sum(h);mean(h);h @ h.T;i @ i.T;l @ l.T;i @ l.T;i @ y.T * 0
maximum(x, y);minimum(x, 0);maximum(i, 0);minimum(h, x);maximum(0, minimum(x, 2));maximum(1, 2);maximum(t, x > 3)
np.maximum(x, np.abs(y));numpy.sum(x);transpose(x) @ x;(x + y) * (x + y);(x * x - (x + 1) * 2) / (x + 1)
where(x > 0, y + 1, (y + 1) * 2);where(x > 0, x + y, 0.5 * (x + y));(x + y) * (x - y) / (x + y + 100);x*x*x*x*x
((x + 1) * (y + 2)) - ((x + 3) * (y + 4)) + ((x + 5) * (y + 6)) * ((x + 7) * (y + 8));sum((x + y) * (x - y), axis=0)
3;3.5;1e3;.5;1 < 2;x * (1 < 2);h + (2.0 > 3);t * (1 == 1);(1 < 2) + (2 < 3);-(1 < 2);1.5 * (1 < 2)
where(t, x, -(1.0 * (2.0 > 3)));where(t, h, (1 == 1) * -2.5);maximum(x, (1 < 2) + 0.5);where(1 < 2, x, y);i * (1 < 2)
x[0, 0];sum(x[1:1]);mean(x[:, 5:], axis=0);sum(x[:, 5:], axis=1);x[:, 5:] @ y.T[5:];d.T @ i;s[1].T @ x
x[-2];x.T @ (x @ y.T) + x.T;s[::2] @ y.T;sum(s, axis=-3);sum(s, axis=(0, 2), keepdims=True);sum(x, 0, keepdims=True);l ** 1.0;i ** 2.0
l + 9007199254740993;+(1 < 2);+i;+x
x < 1e999;-1e400;x * 1_0.2_5e0_1;1_000;0.1000000000000000055511151231257827021181583404541015625000000001 * d;x[0,];x[+1];x[:, +0];x[:+1, ::+2,]
sum(x, axis=+1);1 / sum(-abs(x * 0), axis=0);1 / (-abs(x * 0)).sum();1 / mean(-abs(h * 0), axis=1);1 / sum(-abs(d * 0), axis=());1 / sum(-abs(c[:1] * 0))
""".replace("\n", ";").strip(";").split(";")


def names_of(expr):
    word = ""
    for c in expr + " ":
        if c.isalnum() or c in "_.":
            word += c
        elif word:
            yield word.split(".")[0]
            word = ""


class Writer:
    """Writes expressions whose values are whole or quarters, and small: NumPy and gemmd must give the same bits."""

    def __init__(self, rng, loose=False):
        self.rng, self.loose = rng, loose
        self.operands, self.before = {}, {}
        self.m, self.n = rng.randint(1, 9), rng.randint(1, 9)

    def matrix(self, shape, dtype=None):
        dtype = DTYPES[dtype or self.rng.choice(["f32", "f32", "f64", "f16", "i32", "i64", "bool"])]
        values = np.array([self.rng.randint(-6, 6) for _ in range(int(np.prod(shape)))]).reshape(shape)
        array = (values > 0) if dtype is np.bool_ else values.astype(dtype) / (1 if np.dtype(dtype).kind == "i" else 2)
        array = array.astype(dtype)
        name = f"v{len(self.operands)}"
        if len(self.operands) == 16:
            return "1"
        self.operands[name] = np.asfortranarray(array) if self.rng.random() < 0.2 else array
        return name

    def like(self, shape):
        """A shape that broadcasts to this one."""
        return tuple(1 if self.rng.random() < 0.25 else size for size in shape)

    def leaf(self, shape):
        what = self.rng.random()
        if what < 0.15 or len(self.operands) >= 12:
            return self.rng.choice(["1", "2", "-3", "0.5", "2.0", "(1 + 2)"])
        if what < 0.3 and len(shape) == 2:
            return self.matrix(shape[::-1]) + ".T"
        if what < 0.45:
            more = tuple(size + self.rng.randint(0, 3) for size in shape)
            first = [self.rng.randint(0, m - s) for m, s in zip(more, shape)]
            return self.matrix(more) + "[" + ", ".join(f"{f}:{f + s}" for f, s in zip(first, shape)) + "]"
        return self.matrix(self.like(shape))

    def write(self, shape, depth):
        """Now and then something that was written before: a value with several uses."""
        before = self.before.setdefault(shape, [])
        known = [text for text, its_depth in before if its_depth <= depth]
        if known and self.rng.random() < 0.3:
            return self.rng.choice(known)
        text = self.anew(shape, depth)
        if len(text) <= 40:  # so that the whole stays below the limits of an expression
            before.append((text, depth))
        return text

    def anew(self, shape, depth):
        rng = self.rng
        if depth == 0:
            return self.leaf(shape)
        kind = rng.random()
        sub = lambda: self.write(shape, depth - 1)
        if kind < 0.35:
            return f"({sub()} {rng.choice('+-*')} {sub()})" if rng.random() < 0.9 else f"(-{self.float(sub())})"
        if kind < 0.45:
            return f"{rng.choice(['maximum', 'minimum'])}({sub()}, {sub()})"
        if kind < 0.55:
            return f"where({sub()} {rng.choice(['<', '>=', '==', '!='])} {sub()}, {sub()}, {sub()})"
        if kind < 0.62:
            return f"abs({sub()})" if rng.random() < 0.5 else f"({sub()} {rng.choice(['<', '>', '==', '<='])} {sub()})"
        if kind < 0.78 and len(shape) == 2:
            k = rng.randint(1, 6)
            left, right = self.write((shape[0], k), 0), self.write((k, shape[1]), 0)
            return f"(({left} + 0 * {self.matrix((shape[0], k), 'f32')}) @ ({right} + 0 * {self.matrix((k, shape[1]), 'f32')}))"
        if kind < 0.92:
            axis = rng.randrange(len(shape))
            more = list(shape)
            more[axis] = rng.randint(1, 5)
            return f"{rng.choice(['sum', 'max', 'min'])}({self.write(tuple(more), depth - 1)} + 0 * {self.matrix(tuple(more))}, " \
                   f"axis={axis}, keepdims=True)"
        if self.loose:
            return rng.choice(["tanh({})", "exp(-abs({}))", "({} / 3)", "sqrt(abs({}))", "log(abs({}) + 1.5)"]).format(sub())
        return sub()

    def float(self, text):
        return f"(1.0 * {text})"


def written(seed, loose=False):
    """(expression, operands, what NumPy makes of it); None: NumPy refuses it."""
    rng = random.Random(seed)
    writer = Writer(rng, loose)
    shape = (writer.m, writer.n) if rng.random() < 0.8 else (rng.randint(1, 4), writer.m, writer.n)
    expr = writer.write(shape, rng.randint(1, 4))
    used = {name: value for name, value in writer.operands.items() if name in set(names_of(expr))}
    try:
        return expr, used, numpy_eval(expr, used)
    except (TypeError, OverflowError, ValueError) as failure:
        return expr, used, failure
