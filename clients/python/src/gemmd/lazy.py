"""Expressions that are written down now and computed by the daemon later, in one round trip."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

# How tightly a piece of text binds, as in Python: a comparison the least, a name the most.
COMPARISON, SUM, TERM, SIGN, POWER, ATOM = range(6)

CHARACTERS_MAX = 4096  # of the text of an expression: what a daemon takes

# An index of an expression.
Index = Union[int, slice, tuple[Union[int, slice], ...]]


class Lazy:
    """What Python's operators make expressions of: a matrix that the daemon keeps, or an expression of such."""

    __array_ufunc__ = None  # NumPy's arrays leave operators to this class
    __hash__ = object.__hash__
    _client: Any

    def _of(self) -> Any:
        """The client that computes it."""
        return self._client

    def __add__(self, other: Any) -> Expression:
        return _binary(SUM, self, "+", other)

    def __radd__(self, other: Any) -> Expression:
        return _binary(SUM, other, "+", self)

    def __sub__(self, other: Any) -> Expression:
        return _binary(SUM, self, "-", other)

    def __rsub__(self, other: Any) -> Expression:
        return _binary(SUM, other, "-", self)

    def __mul__(self, other: Any) -> Expression:
        return _binary(TERM, self, "*", other)

    def __rmul__(self, other: Any) -> Expression:
        return _binary(TERM, other, "*", self)

    def __truediv__(self, other: Any) -> Expression:
        return _binary(TERM, self, "/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _binary(TERM, other, "/", self)

    def __matmul__(self, other: Any) -> Expression:
        return _binary(TERM, self, "@", other)

    def __rmatmul__(self, other: Any) -> Expression:
        return _binary(TERM, other, "@", self)

    def __pow__(self, other: Any) -> Expression:
        return Expression(POWER, (self, ATOM), " ** ", (other, SIGN))

    def __rpow__(self, other: Any) -> Expression:
        return Expression(POWER, (other, ATOM), " ** ", (self, SIGN))

    def __neg__(self) -> Expression:
        return Expression(SIGN, "-", (self, SIGN))

    def __pos__(self) -> Expression:
        return Expression(SIGN, "+", (self, SIGN))

    def __abs__(self) -> Expression:
        return call("abs", self)

    def __lt__(self, other: Any) -> Expression:
        return compare(self, "<", other)

    def __le__(self, other: Any) -> Expression:
        return compare(self, "<=", other)

    def __gt__(self, other: Any) -> Expression:
        return compare(self, ">", other)

    def __ge__(self, other: Any) -> Expression:
        return compare(self, ">=", other)

    @property
    def T(self) -> Expression:
        """Its transpose; of a stack see mT."""
        return Expression(ATOM, (self, ATOM), ".T")

    @property
    def mT(self) -> Expression:
        """Each matrix of a stack transposed."""
        return Expression(ATOM, (self, ATOM), ".mT")

    def __getitem__(self, index: Index) -> Expression:
        indices = index if isinstance(index, tuple) else (index,)
        return Expression(ATOM, (self, ATOM), "[" + ", ".join(_index(i) for i in indices) + "]")

    __iter__ = None  # else Python would try x[0], x[1], ... for ever

    if not TYPE_CHECKING:  # where it would be taken for an array

        def __array__(self, dtype=None, copy=None):
            """Raises: without it NumPy would make an array of this object as its only element."""
            raise TypeError("the elements are with the daemon: client.get(matrix) or expression.get() fetches them")

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
        """Sums along an axis, several, or all."""
        return reduction("sum", self, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
        """Means along an axis, several, or all."""
        return reduction("mean", self, axis, keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
        """The greatest elements along an axis, several, or all."""
        return reduction("max", self, axis, keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
        """The least elements along an axis, several, or all."""
        return reduction("min", self, axis, keepdims)


class Expression(Lazy):
    """An expression of matrices that the daemon keeps, arrays and numbers. Nothing is computed until `get`.

    >>> x, w = client.put(a), client.put(b)
    >>> y = gemmd.tanh(x @ w + 1)
    >>> y.get()

    It is made by the operators + - * / @ ** and comparisons, by .T, .mT, slices and the methods sum, mean, max and min of
    what `client.put` returns, and by gemmd's functions: exp, log, sqrt, tanh, abs, where, maximum, minimum, equal, ...

    Its operands are matrices: a vector, put or not, is one row (1xN), and m @ v of such is an error. m @ v.T is a column.

    It is sent as text, in which a part that is used twice is written twice. A daemon takes 4096 characters: what would make
    a longer expression is a ValueError at once. `keep` a part, and go on with the NamedMatrix that this returns:

    >>> for _ in range(24):
    ...     x = gemmd.tanh(x @ x).keep("power")
    """

    _truth: bool | None = None  # what bool() says before it is computed: of == and != of two named matrices

    def __init__(self, level: int, *pieces: Any) -> None:
        """pieces: text, and (operand, how tightly it must bind)"""
        self._level = level
        self._pieces = pieces
        clients = {client_of(piece[0]) for piece in pieces if isinstance(piece, tuple)} - {None}
        if len(clients) > 1:
            raise ValueError("the operands of an expression are kept by one daemon, and these by several clients")
        self._client = next(iter(clients), None)
        self._length = _checked(
            sum(len(piece) if isinstance(piece, str) else _length_of(*piece) for piece in pieces)
        )

    def get(self, **parameters: Any) -> Any:
        """Computes it: a Result, as of an operation; of an AsyncClient it is awaited. Parameters: device, precision, ..."""
        return self._made_by().eval(self, **parameters)

    def keep(self, name: str | None = None, **parameters: Any) -> Any:
        """Computes it, and has the daemon keep the result, which does not come back: a NamedMatrix."""
        return self._made_by().keep_eval(self, name, **parameters)

    def plan(self, **parameters: Any) -> Any:
        """What the daemon would do, as text; nothing is computed."""
        return self._made_by().plan(self, **parameters)

    def _made_by(self) -> Any:
        if self._client is None:
            raise TypeError("no operand of this expression is kept by a daemon: client.eval() computes it")
        return self._client

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        return compare(self, "==", other)

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        return compare(self, "!=", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self._truth is not None:
            return self._truth
        raise TypeError("an expression is neither true nor false before it is computed: see get()")

    def __repr__(self) -> str:
        return f"gemmd.Expression({text_of(self, {})!r})"


def client_of(operand: Any) -> Any:
    return operand._of() if isinstance(operand, Lazy) else None


def text_of(operand: Any, names: dict[int, tuple[str, Any]], least: int = COMPARISON) -> str:
    """The text of an operand, in parentheses if it binds less tightly. names: id -> (name, operand), which grows."""
    said: list[str] = []
    left: list[Any] = [(operand, least)]  # pieces, the last of them first: Python's stack is too small for a long chain
    while left:
        piece = left.pop()
        if isinstance(piece, str):
            said.append(piece)
        elif isinstance(piece[0], Expression):
            part, least = piece
            left += reversed(part._pieces if part._level >= least else ("(", *part._pieces, ")"))
        else:
            said.append(_number_in(*piece) or _name_of(piece[0], names))
    text = "".join(said)
    _checked(len(text))
    return text


def _name_of(operand: Any, names: dict[int, tuple[str, Any]]) -> str:
    taken = {name for name, _ in names.values()}
    free = next(name for i in itertools.count() if (name := f"v{i}") not in taken)
    return names.setdefault(id(operand), (free, operand))[0]


def _length_of(operand: Any, least: int) -> int:
    """How long the text of an operand is, if its names are as short as v0."""
    if isinstance(operand, Expression):
        return operand._length + (0 if operand._level >= least else len("()"))
    return len(_number_in(operand, least) or "v0")


def _checked(length: int) -> int:
    if length > CHARACTERS_MAX:
        raise ValueError(
            f"this expression would be {length} characters long, and a daemon takes {CHARACTERS_MAX}: a part that is used "
            "twice is written twice. keep() a part, as part = part.keep(), and go on with that"
        )
    return length


def call(function: str, *operands: Any) -> Expression:
    """A call of a function of the daemon's."""
    pieces: list[Any] = [function + "("]
    for i, operand in enumerate(operands):
        pieces += [", "] * (i > 0) + [(operand, COMPARISON)]
    return Expression(ATOM, *pieces, ")")


def reduction(function: str, operand: Any, axis: int | Sequence[int] | None, keepdims: bool) -> Expression:
    options = ""
    if axis is not None:
        axes = tuple(operator.index(n) for n in axis) if isinstance(axis, Sequence) else operator.index(axis)
        options += f", axis={axes}"
    if keepdims:
        options += ", keepdims=True"
    return Expression(ATOM, function + "(", (operand, COMPARISON), options + ")")


def _binary(level: int, left: Any, sign: str, right: Any) -> Expression:
    return Expression(level, (left, level), f" {sign} ", (right, level + 1))


def compare(left: Any, sign: str, right: Any, truth: bool | None = None) -> Expression:
    """left < right and others. truth: what bool() says of it; None: it raises"""
    expression = Expression(COMPARISON, (left, SUM), f" {sign} ", (right, SUM))
    expression._truth = truth
    return expression


def number(operand: Any) -> str | None:
    """The text of a Python number; None for all else. NumPy's numbers are matrices: they have a type."""
    if isinstance(operand, (np.generic, bool)):  # NumPy's bool is Python's
        return None
    if isinstance(operand, int):
        return str(int(operand))
    if isinstance(operand, float):
        return repr(operand) if math.isfinite(operand) else repr(operand).replace("inf", "np.inf").replace("nan", "np.nan")
    return None


def _number_in(operand: Any, least: int) -> str | None:
    """The same, in parentheses where a sign would bind otherwise."""
    text = number(operand)
    return text if text is None or text[0] != "-" or least <= SIGN else f"({text})"


def _index(index: int | slice) -> str:
    if not isinstance(index, slice):
        try:
            if isinstance(index, (bool, np.bool_)):
                raise TypeError
            return str(operator.index(index))
        except TypeError:
            raise TypeError("an index is an integer or a slice: for a condition there is gemmd.where") from None
    bounds = ["" if n is None else str(operator.index(n)) for n in (index.start, index.stop, index.step)]
    return ":".join(bounds if index.step is not None else bounds[:2])


def exp(x: Any) -> Expression:
    """e to the power of each element."""
    return call("exp", x)


def log(x: Any) -> Expression:
    """The natural logarithm of each element."""
    return call("log", x)


def sqrt(x: Any) -> Expression:
    """The square root of each element."""
    return call("sqrt", x)


def tanh(x: Any) -> Expression:
    """The hyperbolic tangent of each element."""
    return call("tanh", x)


def where(condition: Any, x: Any, y: Any) -> Expression:
    """Elements of x where the condition holds, else of y."""
    return call("where", condition, x, y)


def maximum(x: Any, y: Any) -> Expression:
    """The greater of each two elements; NaN if either is."""
    return call("maximum", x, y)


def minimum(x: Any, y: Any) -> Expression:
    """The lesser of each two elements; NaN if either is."""
    return call("minimum", x, y)


def equal(x: Any, y: Any) -> Expression:
    """Whether each two elements are equal."""
    return compare(x, "==", y)


def not_equal(x: Any, y: Any) -> Expression:
    """Whether each two elements differ."""
    return compare(x, "!=", y)


def absolute(x: Any) -> Expression:
    """The absolute value of each element."""
    return call("abs", x)


def total(x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
    """Sums along an axis, several, or all: gemmd.sum."""
    return reduction("sum", x, axis, keepdims)


def mean(x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
    """Means along an axis, several, or all."""
    return reduction("mean", x, axis, keepdims)


def greatest(x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
    """The greatest elements along an axis, several, or all: gemmd.max."""
    return reduction("max", x, axis, keepdims)


def least(x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expression:
    """The least elements along an axis, several, or all: gemmd.min."""
    return reduction("min", x, axis, keepdims)
