"""Requests and replies without a network: what both clients send, and how they read what comes back."""

from __future__ import annotations

import email.utils
import json
import operator
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, Union, cast

import httpx
import numpy as np

from . import arrays, lazy
from .account import Account
from .arrays import Array, Buffer, NamedMatrix, Operand
from .errors import ReplyError, error_class
from .lazy import Lazy
from .progress import Progress
from .reports import Choice, Comparison, Explanation
from .retries import limit_of

T = TypeVar("T")

# What a parameter of a call may be; each becomes a query parameter of its name. None is left out, a tuple
# of sizes becomes 2x3, an element type its name.
Parameter = Union[str, bool, int, float, np.generic, "np.dtype[Any]", type, Sequence[int], None]

Op = Literal["transpose", "matmul", "add", "flip"]
ExplainedOp = Literal["transpose", "matmul", "add", "flip", "copy"]

SEND_BYTES = 1 << 20  # of the body at a time, and between two calls of a progress callback
CONNECT_S = 10.0
SHOWN = 160  # characters of an expression in an error
GRACE_S = 10.0  # beyond timeout_ms, for the reply to arrive

# Parts of a request of an expression that are no operands.
RESERVED = (
    "expr", "device", "dtype", "precision", "keep", "return", "ttl", "share", "timeout_ms", "nonfinite", "header", "explain",
)  # fmt: skip


@dataclass
class Reply:
    """A whole reply."""

    status: int
    headers: httpx.Headers
    body: Array

    def json(self) -> Any:
        try:
            return json.loads(self.body.tobytes())
        except ValueError:
            raise self.not_ours() from None

    def members(self, *needed: str) -> dict[str, Any]:
        """The JSON object that it is, with these members."""
        said = self.json()
        if not isinstance(said, dict) or not said.keys() >= set(needed):
            raise self.not_ours()
        return said

    def kind(self) -> tuple[str, str]:
        """The daemon's words for the shape and the type of the elements that it has."""
        try:
            return self.headers["gemmd-shape"], self.headers["gemmd-dtype"]
        except KeyError:
            raise self.not_ours() from None

    def text(self) -> str:
        try:
            return self.body.tobytes().decode()
        except ValueError:
            raise self.not_ours() from None

    def account(self) -> Account:
        try:
            return Account(json.loads(self.headers.get("gemmd-stats", "{}")))
        except ValueError:
            return Account({})

    def problem(self, expression: str | None = None) -> ReplyError:
        """The error that it says, or an error that says that it is none of gemmd's.

        expression: the text to whose characters it may point, where its caller has not seen that
        """
        try:
            said = json.loads(self.body.tobytes())
            code, detail = str(said["code"]), str(said["detail"])
        except (ValueError, KeyError, TypeError):
            return self.not_ours()
        if expression is not None and isinstance(said.get("at"), int):
            detail += f"; the expression is {_around(expression, said['at'])!r}"
        return error_class(self.status)(
            detail,
            status=self.status,
            code=code,
            request_id=said.get("request_id"),
            retry_after=self._retry_after(),
        )

    def not_ours(self) -> ReplyError:
        """The error of a reply that no gemmd sends, as of a proxy."""
        kind = self.headers.get("content-type", "no type")
        start = self.body[:200].tobytes().decode("utf-8", "replace").strip()
        return error_class(self.status)(
            f"a reply that is not gemmd's ({kind}): {start!r}",
            status=self.status,
            request_id=self.headers.get("x-request-id"),
            retry_after=self._retry_after(),
        )

    def _retry_after(self) -> float | None:
        """Seconds, from a number or a date."""
        value = self.headers.get("retry-after")
        if value is None:
            return None
        if value.strip().isdigit():
            return float(value)
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError):
            return None


def _around(text: str, at: int) -> str:
    """A text, or if it is long what is near a character, counted from 1."""
    first, last = max(0, at - 1 - SHOWN // 2), at - 1 + SHOWN // 2
    if len(text) <= SHOWN:
        return text
    return "..." * (first > 0) + text[first:last] + "..." * (last < len(text))


@dataclass
class Call(Generic[T]):
    """One request, and how its reply is read."""

    method: str
    path: str
    read: Callable[[Reply], T]
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: tuple[Buffer, ...] = ()
    silent: bool = False  # nothing moves of which a progress callback should hear
    expression: str | None = None  # the text of one that was made by operators
    once: bool = False  # its result takes the place of an operand: sent twice it would be applied twice

    def __post_init__(self) -> None:
        if self.method in ("POST", "PUT"):
            self.headers["Content-Length"] = str(self.length)

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(len(buffer) for buffer in self.body)

    def chunks(self, progress: Callable[[Progress], object] | None) -> Iterator[bytes]:
        """The body, in pieces, with a word to the callback after each."""
        sent = 0
        for buffer in self.body:
            for start in range(0, len(buffer), SEND_BYTES):
                chunk = buffer[start : start + SEND_BYTES]
                yield cast(bytes, chunk)  # the HTTP library takes any buffer
                sent += len(chunk)
                if progress is not None:
                    progress(Progress("send", sent, self.length))

    def timeouts(self, timeout: float | None) -> httpx.Timeout:
        """The client's limit, extended where the caller gives the daemon more time than that."""
        if timeout is None:
            return httpx.Timeout(None, connect=CONNECT_S)
        timeout = limit_of(timeout)
        asked = self.params.get("timeout_ms", "")
        allowed = int(asked) / 1000 + GRACE_S if asked.isdigit() else 0.0
        return httpx.Timeout(timeout, connect=min(timeout, CONNECT_S), read=max(timeout, allowed))

    def finish(self, reply: Reply) -> T:
        """The result, or the error, that a reply says."""
        if not 200 <= reply.status < 300:
            raise reply.problem(self.expression)
        return self.read(reply)


class Receiver:
    """Collects a reply's body, in memory of the size that its header says."""

    def __init__(
        self, status: int, headers: httpx.Headers, progress: Callable[[Progress], object] | None
    ) -> None:
        self._status, self._headers = status, headers
        self._progress = progress if status == 200 else None
        length = headers.get("content-length", "")
        self._total = int(length) if length.isdigit() else None
        self._body = np.empty(self._total or 0, np.uint8)
        self._rest = bytearray()  # of a body whose length is unsaid
        self._done = self._reported = 0

    def feed(self, chunk: bytes) -> None:
        if self._total is None:
            self._rest += chunk
            return
        self._body[self._done : self._done + len(chunk)] = np.frombuffer(chunk, np.uint8)
        self._done += len(chunk)
        if self._progress is not None:
            if self._done == self._total or self._done - self._reported >= SEND_BYTES:
                self._reported = self._done
                self._progress(Progress("receive", self._done, self._total))

    def reply(self) -> Reply:
        body = self._body if self._total is not None else np.frombuffer(self._rest, np.uint8)
        return Reply(self._status, self._headers, body)


def encode(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Query parameters from keyword arguments. TypeError for what cannot be one."""
    return {name: _encode(name, value) for name, value in parameters.items() if value is not None}


def _encode(name: str, value: Parameter) -> str:
    if name == "dtype":
        return _encode_dtype(value)
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in value):
        return "x".join(str(int(n)) for n in value)
    raise TypeError(f"{name} is a text, a number, a truth value or a shape, not {type(value).__qualname__}")


def _encode_dtype(value: Any) -> str:
    if isinstance(value, str) and (value == "bf16" or value in arrays.DTYPES):
        return value
    try:
        name = arrays.dtype_name(np.dtype(value))
    except TypeError:
        name = None
    if name is None and not isinstance(value, str):
        raise TypeError(f"the daemon has no element type for dtype={value!r}")
    return name if name is not None else str(value)


@dataclass
class Operation:
    """An operation: the call that sends its operands, and what it takes to pass them otherwise.

    result: makes the result of its raw elements, the daemon's words for their shape and type, and the account
    """

    op: Op
    operands: list[Array]
    call: Call[arrays.Result]
    result: Callable[[Array, str, str, Account], arrays.Result]


def operation(op: Op, operands: Sequence[Operand], parameters: Mapping[str, Parameter]) -> Operation:
    """POST /v1/{op}."""
    params = encode(parameters)
    if "keep" in params:
        params.setdefault("return", "result")
    given = arrays.as_arrays(operands, params.get("dtype"))
    shaped, finish = _as_matrices(op, given, params)
    names = _names(operands)

    def result(data: Array, shape: str, dtype: str, account: Account) -> arrays.Result:
        return finish(arrays.result(data, shape, dtype, given[0].dtype, account))

    def read(reply: Reply) -> arrays.Result:
        shape, dtype = reply.kind()
        return result(reply.body, shape, dtype, reply.account())

    call = _call("POST", f"/v1/{op}", shaped, params, "application/octet-stream", read, names)
    call.once = _replaces(params, names)
    return Operation(op, shaped, call, result)


def kept(name: str, op: Op, operands: Sequence[Operand], parameters: Mapping[str, Parameter]) -> Call[NamedMatrix]:
    """POST /v1/{op}, whose result gets a name and does not come back."""
    params = {**encode(parameters), "keep": name_of(name), "return": "account"}
    shaped, _ = _as_matrices(op, arrays.as_arrays(operands, params.get("dtype")), params)

    def read(reply: Reply) -> NamedMatrix:
        return _named(name, reply)

    names = _names(operands)
    call = _call("POST", f"/v1/{op}", shaped, params, "application/json", read, names)
    call.once = _replaces(params, names)
    return call


def put(
    array: Operand, name: str | None, etag: str | None, parameters: Mapping[str, Parameter]
) -> Call[NamedMatrix]:
    """PUT /v1/matrices/{name}; with an etag, only in place of that version; with "", only where there is none."""
    if isinstance(array, NamedMatrix):
        raise TypeError("put() takes elements, and the daemon has these: client.keep_eval(matrix, name) copies them")
    if name is None:
        name = f"m_{secrets.token_hex(8)}"
    params = encode(parameters)
    given = arrays.as_arrays([array], params.get("dtype"))

    def read(reply: Reply) -> NamedMatrix:
        return _named(name, reply)

    call = _call("PUT", _path_of(name), given, params, "application/json", read)
    if etag is not None:
        call.headers["If-Match" if etag else "If-None-Match"] = f'"{etag}"' if etag else "*"
    return call


def get(
    matrix: str | NamedMatrix, rows: int | slice | None, cols: int | slice | None
) -> Call[Array]:
    """GET /v1/matrices/{name}, or a part of it."""
    params = {name: _range(name, said) for name, said in (("rows", rows), ("cols", cols)) if said is not None}

    def read(reply: Reply) -> Array:
        shape, dtype = reply.kind()
        same = arrays.dtype_of(dtype) if dtype == "bf16" or dtype in arrays.DTYPES else np.dtype("V1")
        return np.asarray(arrays.result(reply.body, shape, dtype, same, Account({})))

    return Call("GET", _path_of(matrix), read, params, {"Accept": "application/octet-stream"})


def evaluation(
    expression: str | Lazy, operands: Mapping[str, Operand], parameters: Mapping[str, Parameter]
) -> Call[arrays.Result]:
    """POST /v1/eval."""
    params = encode(parameters)
    if "keep" in params:
        params.setdefault("return", "result")

    def read(reply: Reply) -> arrays.Result:
        shape, dtype = reply.kind()
        same = arrays.dtype_of(dtype) if dtype == "bf16" or dtype in arrays.DTYPES else np.dtype("V1")
        return arrays.result(reply.body, shape, dtype, same, reply.account())

    return _expression(expression, operands, params, "application/octet-stream", read)


def kept_evaluation(
    name: str | None, expression: str | Lazy, operands: Mapping[str, Operand], parameters: Mapping[str, Parameter]
) -> Call[NamedMatrix]:
    """POST /v1/eval, whose result gets a name and does not come back."""
    chosen = name_of(name) if name is not None else f"m_{secrets.token_hex(8)}"
    params = {**encode(parameters), "keep": chosen, "return": "account"}

    def read(reply: Reply) -> NamedMatrix:
        return _named(chosen, reply)

    return _expression(expression, operands, params, "application/json", read)


def plan(
    expression: str | Lazy, operands: Mapping[str, Operand], parameters: Mapping[str, Parameter]
) -> Call[str]:
    """POST /v1/eval?explain=plan."""

    def read(reply: Reply) -> str:
        steps = reply.text()
        if "\n\non " not in steps:  # the expression, and then the device
            raise reply.not_ours()
        return steps

    return _expression(expression, operands, {**encode(parameters), "explain": "plan"}, "text/plain", read)


def _expression(
    expression: str | Lazy,
    operands: Mapping[str, Operand],
    params: dict[str, str],
    accept: str,
    read: Callable[[Reply], T],
) -> Call[T]:
    for name in operands:
        if name in RESERVED:
            raise ValueError(
                f"an operand cannot be called {name!r}, which is a parameter: give it another name. "
                f"Reserved are {', '.join(RESERVED)}"
            )
    # No id is negative: operands that the caller names keep their names, and take none of another's.
    given: dict[int, tuple[str, Any]] = {~i: item for i, item in enumerate(operands.items())}
    text = expression if isinstance(expression, str) else lazy.text_of(expression, given)
    parts = dict(given.values())
    body: list[Buffer] = []
    for name, operand in (("expr", text), *parts.items()):
        body.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode())
        if name == "expr":
            body.append(text.encode())
        elif isinstance(operand, NamedMatrix):
            body.append(f"ref:{operand.name}".encode())
        elif (number := lazy.number(operand)) is not None and "np." not in number:
            body.append(number.encode())
        else:
            array = arrays.as_array(operand)
            if array.dtype.name == "bfloat16":
                params = {"dtype": "bf16", **params}  # a .npy file has no name for it
            body += arrays.npy(array)
        body.append(b"\r\n")
    body.append(f"--{BOUNDARY}--\r\n".encode())
    headers = {"Accept": accept, "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    names = [operand.name for operand in parts.values() if isinstance(operand, NamedMatrix)]
    # The text may name matrices of the daemon too.
    once = _replaces(params, [*names, *re.findall(r"[A-Za-z_]\w*", text)])
    made = None if isinstance(expression, str) else text
    return Call("POST", "/v1/eval", read, params, headers, tuple(body), expression=made, once=once)


def delete(matrix: str | NamedMatrix) -> Call[None]:
    """DELETE /v1/matrices/{name}."""

    def read(reply: Reply) -> None:
        if reply.status != 204:
            raise reply.not_ours()

    return Call("DELETE", _path_of(matrix), read, silent=True)


def _path_of(matrix: str | NamedMatrix) -> str:
    name = matrix.name if isinstance(matrix, NamedMatrix) else name_of(matrix)
    if not re.fullmatch(r"([A-Za-z0-9_.-]+\.)?[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} is no name of a matrix: a name has letters, digits and _, and no digit first")
    return f"/v1/matrices/{name}"


def name_of(name: Any) -> str:
    """The name of a matrix that a caller gave, checked."""
    if not isinstance(name, str):
        raise TypeError(f"a named matrix is a text or what put() and keep() return, not {type(name).__qualname__}")
    return name


def _named(name: str, reply: Reply) -> NamedMatrix:
    said = reply.members()
    try:
        return NamedMatrix(name, tuple(said["shape"]), str(said["dtype"]), reply.headers["etag"].strip('"'))
    except (KeyError, TypeError):
        raise reply.not_ours() from None


def _range(name: str, said: int | slice) -> str:
    if isinstance(said, slice):
        bounds = (said.start, said.stop)
        if said.step not in (None, 1) or any(n is not None and operator.index(n) < 0 for n in bounds):
            raise ValueError(f"{name} are one after the other, counted from 0: not {said}")
        return ":".join("" if n is None else str(operator.index(n)) for n in bounds)
    return str(operator.index(said))


def _replaces(params: Mapping[str, str], names: Sequence[str | None]) -> bool:
    """Whether a result that is kept takes the place of one of these, by whatever owner they are called."""
    said = [params[letter][len("ref:") :] for letter in "abc" if params.get(letter, "").startswith("ref:")]
    return params.get("keep") in [name.split(".")[-1] for name in (*names, *said) if name is not None]


def _names(operands: Sequence[Operand]) -> list[str | None]:
    """The names of those operands that have one."""
    return [operand.name if isinstance(operand, NamedMatrix) else None for operand in operands]


def comparison(
    op: Op, operands: Sequence[Operand], parameters: Mapping[str, Parameter]
) -> Call[Comparison]:
    """POST /v1/compare/{op}."""
    params = _report_params("compare", parameters)
    shaped, _ = _as_matrices(op, arrays.as_arrays(operands, params.get("dtype")), params)
    return _call(
        "POST",
        f"/v1/compare/{op}",
        shaped,
        params,
        "application/json",
        lambda reply: Comparison(reply.members("rows")),
        _names(operands),
    )


def explanation(
    op: ExplainedOp, operands: Sequence[Operand], parameters: Mapping[str, Parameter]
) -> Call[Explanation]:
    """GET or POST /v1/explain/{op}, as figures."""
    return _explain(op, operands, parameters, "application/json", lambda reply: Explanation(reply.members("sites")))


def drawing(op: ExplainedOp, operands: Sequence[Operand], parameters: Mapping[str, Parameter]) -> Call[str]:
    """The same, as a drawing."""

    def read(reply: Reply) -> str:
        drawn = reply.text()
        if "<svg" not in drawn:
            raise reply.not_ours()
        return drawn

    return _explain(op, operands, parameters, "image/svg+xml", read)


def choice(op: Op, parameters: Mapping[str, Parameter]) -> Call[Choice]:
    """GET /v1/choose/{op}."""
    return Call(
        "GET",
        f"/v1/choose/{op}",
        lambda reply: Choice(reply.members("candidates")),
        _report_params("choose", parameters),
        {"Accept": "application/json"},
    )


def page(path: str) -> Call[dict[str, Any]]:
    """GET of a page of the list of named matrices."""
    return Call("GET", path, lambda reply: reply.members("matrices"), {}, {"Accept": "application/json"}, silent=True)


def document(path: str, member: str | None = None) -> Call[Any]:
    """GET of a JSON document, or of one member of it."""

    def read(reply: Reply) -> Any:
        return reply.json() if member is None else reply.members(member)[member]

    return Call("GET", path, read, {}, {"Accept": "application/json"}, silent=True)


def tell(path: str, said: Mapping[str, Any]) -> Call[None]:
    """POST of a JSON document, to which nothing is replied."""
    body = json.dumps(said).encode()
    return Call("POST", path, lambda reply: None, {}, {"Content-Type": "application/json"}, (body,), silent=True)


def _explain(
    op: ExplainedOp,
    operands: Sequence[Operand],
    parameters: Mapping[str, Parameter],
    accept: str,
    read: Callable[[Reply], T],
) -> Call[T]:
    params = _report_params("explain", parameters)
    shaped, _ = _as_matrices(op, arrays.as_arrays(operands, params.get("dtype")), params)
    return _call(
        "POST" if shaped else "GET", f"/v1/explain/{op}", shaped, params, accept, read, _names(operands)
    )


def _report_params(route: str, parameters: Mapping[str, Parameter]) -> dict[str, str]:
    if "format" in parameters:
        raise TypeError(f"{route}() has no format: print what it returns, or read its members")
    return encode(parameters)


def _call(
    method: str,
    path: str,
    operands: Sequence[Array],
    params: dict[str, str],
    accept: str,
    read: Callable[[Reply], T],
    names: Sequence[str | None] = (),
) -> Call[T]:
    headers = {"Accept": accept}
    if any(name is not None for name in names):
        params = {**params, **{letter: f"ref:{name}" for letter, name in zip("abc", names) if name is not None}}
    sent = [i for i in range(len(operands)) if i >= len(names) or names[i] is None]
    if any(operands[i].dtype.name == "bfloat16" for i in sent):
        params = {"dtype": "bf16", **params}  # a .npy file has no name for it
    if len(sent) > 1 and sent != list(range(sent[0], sent[0] + len(sent))):
        # .npy files back to back are operands one after the other: these are parts.
        headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
        return Call(method, path, read, params, headers, _parts({"abc"[i]: operands[i] for i in sent}))
    operands = [operands[i] for i in sent]
    if operands:
        headers["Content-Type"] = "application/x-npy"
    body = tuple(buffer for array in operands for buffer in arrays.npy(array))
    return Call(method, path, read, params, headers, body)


BOUNDARY = f"gemmd-{secrets.token_hex(16)}"


def _parts(operands: Mapping[str, Array]) -> tuple[Buffer, ...]:
    """The body of multipart/form-data."""
    body: list[Buffer] = []
    for letter, array in operands.items():
        body.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{letter}"\r\n\r\n'.encode())
        body += [*arrays.npy(array), b"\r\n"]
    return (*body, f"--{BOUNDARY}--\r\n".encode())


def _as_matrices(
    op: str, given: Sequence[Array], params: Mapping[str, str]
) -> tuple[list[Array], Callable[[arrays.Result], arrays.Result]]:
    """Operands of one dimension as NumPy means them, where the daemon would read each as a row; and what
    makes NumPy's result of the daemon's."""
    if op == "matmul" and len(given) >= 2:
        return _as_products(given, params)
    most = max((array.ndim for array in given), default=2)
    if op in ("add", "flip") and most < 2:
        return list(given), lambda made: cast(arrays.Result, made.reshape(made.shape[2 - most :]))
    return list(given), lambda made: made


def _as_products(
    given: Sequence[Array], params: Mapping[str, str]
) -> tuple[list[Array], Callable[[arrays.Result], arrays.Result]]:
    a, b, *rest = given
    drop = tuple(axis for operand, axis in ((a, -2), (b, -1)) if operand.ndim == 1)
    # A vector is its own transpose, as in NumPy.
    if a.ndim == 1:
        a = a[:, None] if params.get("transa") in ("true", "1") else a[None, :]
    if b.ndim == 1:
        b = b[None, :] if params.get("transb") in ("true", "1") else b[:, None]
    rest = [np.expand_dims(c, drop) for c in rest]

    def finish(made: arrays.Result) -> arrays.Result:
        kept = [n for i, n in enumerate(made.shape) if i - made.ndim not in drop]
        return cast(arrays.Result, made.reshape(kept))

    return [a, b, *rest], finish
