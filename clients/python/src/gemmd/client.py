"""The client that waits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import ssl
import time
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import calls
from .address import Address, resolve
from .arrays import Array, NamedMatrix, Operand, Result
from .calls import Call, ExplainedOp, Op, Operation, Parameter
from .errors import Error
from .lazy import Lazy
from .progress import ProgressOption, callback_of
from .reports import Choice, Comparison, Explanation
from .retries import Retries, checked_limits, count, transport_error
from .shared import SharedMemory, is_here

T = TypeVar("T")

VERSION = "0.1.0"
IDLE_S = 30.0  # a connection is kept for; the daemon closes those idle for a minute


class Client:
    """A connection to a gemmd daemon: matrices in, matrices out, each with an account of its cost.

    >>> import gemmd, numpy as np
    >>> with gemmd.Client("http://localhost:8080") as client:
    ...     product = client.matmul(np.ones((2, 3)), np.ones((3, 4)))
    >>> product.shape, product.account.kernel, product.account.us["total"]

    url:         "http://HOST:PORT", "https://HOST:PORT", with a path if a proxy has the daemon below one;
                 "unix:/run/gemmd.sock" or "http+unix:///run/gemmd.sock" for a Unix socket; default: the
                 variable GEMMD_URL, else http://localhost:8080
    key:         sent as `Authorization: Bearer KEY`; default: the variable GEMMD_KEY, else what the file
                 named by GEMMD_KEY_FILE has; "" for none
    ca:          for https: a file (or folder) of certificates in PEM format to trust, or an ssl.SSLContext;
                 default: the file GEMMD_CA, else the well-known authorities
    timeout:     the most seconds to wait for the next bytes of a reply (connecting: 10), or None. The daemon
                 itself gives a request up after 60 s unless it was told otherwise
    retries:     how often a request is sent again: after 503 and 429, when `Retry-After` says, and after a
                 connection that was refused or lost (no operation has effects). After 503 `deadline_passed`
                 once at most, and not with `timeout_ms`: it had its time. 0 for never; default: 8, which is half
                 a minute, but 4 until the daemon has answered once
    retry_wait:  the most seconds that a call waits between its attempts, in all
    connections: the most connections at a time; they are kept and used again
    shared_memory: True to pass operands and results of a quarter of a megabyte and more through shared memory, where the
                 daemon is on this machine and was started with `--allow-shared-memory`; such transfers
                 call no progress callback. False for never
    progress:    for every call that states none: a function that gets a `gemmd.Progress` as bytes move,
                 or True for a bar on standard error

    **Operands** are NumPy arrays; objects that convert themselves to one (`__array__`, `__array_interface__`
    or DLPack: of PyTorch, JAX, pandas, ...) from the host's memory; nested lists; numbers. They are matrices,
    or stacks of matrices (three dimensions). All operands of a call have one element type: float16, float32,
    float64, int32, int64 and bfloat16 (of the package ml_dtypes) for arithmetic; any of 1, 2, 4, 8 or 16 bytes
    for transpose and flip. Lists and numbers take the type of `dtype=`, or of an array beside them: whole numbers any
    type that holds them, others a type of floating-point numbers (beside an array of integers [1.0] is an error). Without
    either they have NumPy's own (float64, int64). Column-major (Fortran) arrays are sent as they are; others that are not
    contiguous are copied first.

    **Results** (`gemmd.Result`) are NumPy arrays of the operands' type, in row-major order, with the attribute
    `account` (`gemmd.Account`). bfloat16 without ml_dtypes: send its bits as uint16 with `dtype="bf16"`;
    the result is its bits as uint16.

    **Named matrices** (`gemmd.NamedMatrix`) are operands that the daemon keeps: see `put()` and `keep()`.

    **Parameters**: each method passes keyword arguments that it does not know on to the daemon as query
    parameters. Those of every operation:

    kernel:      "auto", or the name of a variant: see `kernels()`
    device:      "cpu", "cuda", "cuda:1", "sim" (the simulated GPU): see `devices()`
    precision:   "fp32", "ieee", "tf32" or "bf16": what the daemon may use for float32 products
    repeat:      run the kernel that many times, alone on the device; the account has minimum and median
    timeout_ms:  give up after so many milliseconds: UnavailableError with code "deadline_passed"
    dtype:       the element type, for lists: "f32", numpy.float32, ...

    Two keywords are for the call itself and are not sent: `timeout` and `progress`, as above.

    **Errors** are subclasses of `gemmd.Error`, with `status`, `code`, `detail` and `request_id`:
    `RequestError` (4xx), `UnavailableError` (429, 503), `ServerError`, `TransportError` (no reply),
    `TimeoutError`. A TypeError or ValueError means that nothing was sent.

    A client may be used by several threads. `close()` it, or use it in a `with` statement.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        ca: str | os.PathLike[str] | ssl.SSLContext | None = None,
        timeout: float | None = 90.0,
        retries: int | None = None,
        retry_wait: float = 60.0,
        connections: int = 10,
        progress: ProgressOption = None,
        shared_memory: bool = True,
    ) -> None:
        self._address = resolve(url, key, ca)
        self._timeout, self._retries, self._retry_wait = checked_limits(timeout, retries, retry_wait)
        self._known = False  # whether the daemon has answered
        self._progress = callback_of(progress)
        self._connections, self._shares_memory = count("connections", connections, 1), shared_memory
        self._open()
        CLIENTS.add(self)

    def _open(self) -> None:
        self._shared = SharedMemory(self._address, self._shares_memory)
        self._http = http_of(self._address, self._connections)
        self._give_back = weakref.finalize(self, give_back, self._address, self._shared)

    def _after_fork(self) -> None:
        """In the child: connections and shared memory are the parent's, which goes on with them."""
        self._give_back.detach()
        self._parents = self._shared, self._http  # not closed here, where that might say something to the daemon
        self._open()

    def transpose(
        self,
        a: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        """The transpose of a; of a stack, the transpose of each matrix. Any element type.

        One dimension is a row: its transpose is a column. Parameters are those of every operation (see Client).

        >>> client.transpose([[1, 2, 3], [4, 5, 6]])
        >>> counted = client.transpose(a, kernel="tiled", device="sim")
        >>> counted.account.accesses["global_sectors"]
        """
        return self._operate(calls.operation("transpose", [a], parameters), timeout, progress)

    def matmul(
        self,
        a: Operand,
        b: Operand,
        c: Operand | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        """The product alpha * op(a) @ op(b) + beta * c.

        Shapes are as in numpy.matmul: a vector (one dimension) is a row as a and a column as b, and the result
        lacks that dimension; a matrix is repeated for a stack. c has the shape of the result.

        alpha, beta:    numbers; alpha is 1 by default, beta is 1 with a c and else 0
        transa, transb: True to multiply with the transpose of a, of b
        and the parameters of every operation (see Client)

        >>> client.matmul(a, b, alpha=2, transb=True, precision="tf32")
        >>> client.matmul(a, b, c, beta=0.5)
        """
        operands = [a, b] if c is None else [a, b, c]
        return self._operate(calls.operation("matmul", operands, parameters), timeout, progress)

    def add(
        self,
        a: Operand,
        b: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        """The sum a + b. A number, row, column or matrix is repeated, as in numpy.add.

        Parameters are those of every operation (see Client).

        >>> client.add(a, 1)
        >>> client.add([[1, 2, 3], [4, 5, 6]], [10, 20, 30])
        """
        return self._operate(calls.operation("add", [a, b], parameters), timeout, progress)

    def flip(
        self,
        a: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        """Each row of a reversed, as numpy.flip(a, axis=-1). Any element type.

        Parameters are those of every operation (see Client).

        >>> client.flip([[1, 2, 3], [4, 5, 6]])
        """
        return self._operate(calls.operation("flip", [a], parameters), timeout, progress)

    def put(
        self,
        array: Operand,
        name: str | None = None,
        *,
        etag: str | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        """Has the daemon keep a matrix, which is then an operand of any operation without being sent again.

        name:  letters, digits and _; one that nobody has by default. What had it before is replaced
        etag:  only in place of that version (`RequestError` with status 412 otherwise); "": only if there is none
        ttl:   seconds after which it is forgotten; by default with the daemon
        share: keys that may read it, as "bob,carol", or "*"

        It has two dimensions, or three: a vector is kept as one row (1xN). A column is `put(v[:, None])`, and in an
        expression `v.T`.

        >>> weights = client.put(a, "weights")
        >>> client.matmul(b, weights)
        >>> client.put(2 * a, "weights", etag=weights.etag, ttl=60)
        """
        return self._mine(self._run(calls.put(array, name, etag, parameters), timeout, progress))

    def keep(
        self,
        name: str,
        op: Op,
        *operands: Operand,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        """Runs an operation, and has the daemon keep the result under a name; it does not come back.

        >>> layer = client.keep("layer", "matmul", a, b, alpha=2)
        >>> client.add(layer, 1)
        """
        return self._mine(self._run(calls.kept(name, op, operands, parameters), timeout, progress))

    def eval(
        self,
        expression: str | Lazy,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        """Computes an expression in NumPy's notation, in one round trip; the result's shape has two dimensions, or three.

        operands: what its names mean; those that are missing are named matrices. `NamedMatrix` has operators, and
                  `Expression.get` does the same without text. The names of parameters are reserved: expr, device,
                  dtype, precision, keep, return, ttl, share, timeout_ms, nonfinite, header and explain

        >>> client.eval("tanh(x @ x.T + k)", {"x": a, "k": 1})
        >>> client.eval("sum(x, axis=0)", {"x": a}, device="cpu")
        """
        return self._run(calls.evaluation(expression, operands or {}, parameters), timeout, progress)

    def keep_eval(
        self,
        expression: str | Lazy,
        name: str | None = None,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        """Computes an expression, and has the daemon keep the result under a name; it does not come back.

        >>> layer = client.keep_eval("tanh(x @ x.T)", "layer", {"x": a})
        """
        call = calls.kept_evaluation(name, expression, operands or {}, parameters)
        return self._mine(self._run(call, timeout, progress))

    def plan(
        self,
        expression: str | Lazy,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> str:
        """The steps by which the daemon would compute an expression, as text. Nothing is computed.

        >>> print(client.plan("x @ x.T + 1", {"x": a}))
        """
        return self._run(calls.plan(expression, operands or {}, parameters), timeout, progress)

    def get(
        self,
        matrix: str | NamedMatrix,
        *,
        rows: int | slice | None = None,
        cols: int | slice | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
    ) -> Array:
        """The elements of a named matrix, or some of its rows and columns.

        >>> x = client.put(a)
        >>> client.get(x)
        >>> client.get(x.name, rows=slice(0, 2), cols=3)
        """
        return self._run(calls.get(matrix, rows, cols), timeout, progress)

    def delete(self, matrix: str | NamedMatrix) -> None:
        """Has the daemon forget a named matrix. What still uses it goes on.

        >>> x = client.put(a)
        >>> client.delete(x)
        """
        self._run(calls.delete(matrix))

    def matrices(self) -> list[dict[str, Any]]:
        """The named matrices that this client may read: "name", "shape", "dtype", "bytes", "device", "etag" and others."""
        found: list[dict[str, Any]] = []
        path: str | None = "/v1/matrices"
        while path is not None:
            page = self._run(calls.page(path))
            found += page["matrices"]
            path = page.get("next")
        return found

    def compare(
        self,
        op: Op,
        a: Operand,
        b: Operand | None = None,
        c: Operand | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Comparison:
        """Runs every kernel of an operation on the same operands, and reports times, rates and errors.

        op is "transpose", "matmul", "add" or "flip"; the operands and parameters are those of op. `repeat` says
        how often each kernel is timed, `kernel` that only this one runs.

        >>> report = client.compare("transpose", a)
        >>> print(report)
        >>> report.fastest.kernel, [(row.kernel, row.kernel_us_median) for row in report.rows]
        """
        return self._run(calls.comparison(op, given(a, b, c), parameters), timeout, progress)

    def explain(
        self,
        op: ExplainedOp,
        a: Operand | None = None,
        b: Operand | None = None,
        c: Operand | None = None,
        *,
        drawings: bool = True,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Explanation:
        """Says how a kernel accesses memory, line by line, what that costs, and the cure. It takes no GPU.

        op is "transpose", "matmul", "add", "flip" or "copy". The shapes are those of the operands, or `shape_a`,
        `shape_b` and `shape_c`; each is 1024 x 1024 by default, and `shape` alone is that of all. Nothing is computed.

        kernel:   the name of a variant that runs on the simulated GPU; "auto" by default
        gpu:      the GPU whose limits are used, e.g. "H100" or "rtx4090"; `gpus()` lists them
        dtype:    the element type where there are no operands; "f32" by default
        drawings: whether to fetch the drawings too (a second request); else `svg` is ""

        >>> why = client.explain("transpose", kernel="tiled", shape=(8192, 8192))
        >>> print(why.problem, why.cure)
        >>> pathlib.Path("tiled.svg").write_text(why.svg)
        """
        operands = given(a, b, c)
        figures = self._run(calls.explanation(op, operands, parameters), timeout, progress)
        if not drawings:
            return figures
        svg = self._run(calls.drawing(op, operands, parameters), timeout, progress)
        return Explanation(figures, svg)

    def choose(self, op: Op, **parameters: Parameter) -> Choice:
        """Says what each kernel is estimated to take, and which one `auto` takes and why. Nothing runs.

        op is "transpose", "matmul", "add" or "flip". The shapes are those of `shape_a`, `shape_b` and `shape_c`; each
        is 1024 x 1024 by default, and `shape` alone is that of all.

        dtype:  the element type; "f32" by default
        device: where it would run; by default the daemon's first
        gpu:    instead, a GPU model, e.g. "H100"; `gpus()` lists them

        >>> choice = client.choose("matmul", shape_a=(64, 4096), shape_b=(4096, 4096), gpu="H200")
        >>> choice.kernel, choice.reason, [(c.kernel, c.estimated_us) for c in choice.candidates]
        """
        return self._run(calls.choice(op, parameters))

    def kernels(self) -> list[dict[str, Any]]:
        """The variants there are: each with "op", "name", "devices", "dtypes", "needs" and "note"."""
        return self._run(calls.document("/v1/kernels", "kernels"))

    def devices(self) -> list[dict[str, Any]]:
        """The devices: each with "name" (what `device=` takes), "kind", "default", "model", "copy_gbs" and others.

        That of kind "sim" has "gpu", the GPU that it simulates.
        """
        return self._run(calls.document("/v1/devices", "devices"))

    def gpus(self) -> list[dict[str, Any]]:
        """The GPUs whose limits are known: each with "name", which `explain(gpu=)` takes, and its limits."""
        return self._run(calls.document("/v1/devices", "gpus"))

    def stats(self) -> dict[str, Any]:
        """The daemon's counters, gauges, options and limits."""
        return self._run(calls.document("/v1/stats"))

    def close(self) -> None:
        """Closes the connections."""
        CLIENTS.discard(self)
        self._give_back()
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"gemmd.{type(self).__name__}({self._address.shown!r})"

    def _mine(self, matrix: NamedMatrix) -> NamedMatrix:
        return dataclasses.replace(matrix, _client=self)

    def _operate(self, operation: Operation, timeout: float | None, progress: ProgressOption) -> Result:
        steps = self._shared.steps(operation)
        try:
            call = next(steps)
            while True:
                try:
                    said = self._run(call, timeout, progress)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(said)
        except StopIteration as end:
            made: Result = end.value
            return made

    def _run(self, call: Call[T], timeout: float | None = None, progress: ProgressOption = None) -> T:
        callback = callback_of(progress) if progress is not None else self._progress
        if call.silent:
            callback = None
        limit = call.timeouts(timeout if timeout is not None else self._timeout)
        retries = Retries(call, self._retries, self._retry_wait, self._known)
        while True:
            try:
                try:
                    with self._http.stream(
                        call.method,
                        self._address.base + call.path,
                        params=call.params or None,  # {} would take away the query of the path
                        headers=call.headers,
                        content=call.chunks(callback) if call.body else None,
                        timeout=limit,
                    ) as response:
                        self._known = True
                        receiver = calls.Receiver(response.status_code, response.headers, callback)
                        for chunk in response.iter_raw():
                            receiver.feed(chunk)
                except httpx.HTTPError as error:
                    raise transport_error(error, self._address.shown) from error
                return call.finish(receiver.reply())
            except Error as error:
                pause = retries.pause(error)
            time.sleep(pause)


def given(*operands: Operand | None) -> list[Operand]:
    """Those operands that there are. TypeError where one is missing before another."""
    there = [operand for operand in operands if operand is not None]
    if any(operand is None for operand in operands[: len(there)]):
        raise TypeError("an operand is missing: b is given without a, or c without b")
    return there


CLIENTS: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(CLIENTS):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def http_of(address: Address, connections: int = 1) -> httpx.Client:
    """The HTTP library's client for an address."""
    limits, uds = limits_of(connections), address.socket
    transport = None if uds is None else httpx.HTTPTransport(uds=uds, limits=limits, verify=address.tls)
    return httpx.Client(
        headers=headers_of(address.key),
        limits=limits,
        transport=transport,
        verify=address.tls,
        trust_env=not is_here(address),  # a proxy is for other machines
    )


def give_back(address: Address, shared: SharedMemory) -> None:
    """Unregisters what a client has registered, as far as that is possible: it may be the program's end."""
    regions = shared.take_all()
    if regions:
        with contextlib.suppress(httpx.HTTPError), http_of(address) as http:
            for region in regions:
                call = region.unregister()
                http.post(address.base + call.path, content=b"".join(call.body), headers=call.headers, timeout=1)


def limits_of(connections: int) -> httpx.Limits:
    """How many connections there may be, and for how long they are kept."""
    return httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=IDLE_S
    )


def headers_of(key: str | None) -> dict[str, str]:
    """What every request says."""
    headers = {"Accept-Encoding": "identity", "User-Agent": f"gemmd-python/{VERSION}"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return headers
