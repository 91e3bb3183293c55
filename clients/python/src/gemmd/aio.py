"""The client for asyncio. What both clients share is in calls.py; this is Client with `await`."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import ssl
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import calls
from .address import resolve
from .arrays import Array, NamedMatrix, Operand, Result
from .calls import Call, ExplainedOp, Op, Operation, Parameter
from .client import CLIENTS, Client, give_back, given, headers_of, limits_of
from .errors import Error
from .lazy import Lazy
from .progress import Progress, ProgressOption, callback_of
from .reports import Choice, Comparison, Explanation
from .retries import Retries, checked_limits, count, transport_error
from .shared import SharedMemory, is_here

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


def _as_in(method: Callable[..., Any]) -> Callable[[Method], Method]:
    """Gives a method the documentation of its twin."""

    def document(twin: Method) -> Method:
        twin.__doc__ = re.sub(r"(>>> |= |print\()client\.", r"\1await client.", method.__doc__ or "")
        return twin

    return document


class AsyncClient:
    """Client for asyncio: the same arguments, the same methods, each of them awaited.

    >>> async with gemmd.AsyncClient("http://localhost:8080") as client:
    ...     product = await client.matmul(a, b)
    ...     both = await asyncio.gather(client.transpose(a), client.flip(a))

    See gemmd.Client for arguments, operands, results, parameters and errors. A progress callback is called in
    the event loop, and must not wait. Use a client in one event loop. `await client.aclose()` closes it.
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
        address = resolve(url, key, ca)
        self._address = address
        self._timeout, self._retries, self._retry_wait = checked_limits(timeout, retries, retry_wait)
        self._known = False  # whether the daemon has answered
        self._progress = callback_of(progress)
        self._connections, self._shares_memory = count("connections", connections, 1), shared_memory
        self._open()
        CLIENTS.add(self)

    def _open(self) -> None:
        address = self._address
        limits, uds = limits_of(self._connections), address.socket
        transport = (
            None if uds is None else httpx.AsyncHTTPTransport(uds=uds, limits=limits, verify=address.tls)
        )
        self._shared = SharedMemory(address, self._shares_memory)
        self._give_back = weakref.finalize(self, give_back, address, self._shared)
        self._http = httpx.AsyncClient(
            headers=headers_of(address.key),
            limits=limits,
            transport=transport,
            verify=address.tls,
            trust_env=not is_here(address),
        )

    def _after_fork(self) -> None:
        """See Client: in the child connections and shared memory are the parent's."""
        self._give_back.detach()
        self._parents = self._shared, self._http
        self._open()

    @_as_in(Client.transpose)
    async def transpose(
        self,
        a: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        return await self._operate(calls.operation("transpose", [a], parameters), timeout, progress)

    @_as_in(Client.matmul)
    async def matmul(
        self,
        a: Operand,
        b: Operand,
        c: Operand | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        operands = [a, b] if c is None else [a, b, c]
        return await self._operate(calls.operation("matmul", operands, parameters), timeout, progress)

    @_as_in(Client.add)
    async def add(
        self,
        a: Operand,
        b: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        return await self._operate(calls.operation("add", [a, b], parameters), timeout, progress)

    @_as_in(Client.flip)
    async def flip(
        self,
        a: Operand,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        return await self._operate(calls.operation("flip", [a], parameters), timeout, progress)

    @_as_in(Client.put)
    async def put(
        self,
        array: Operand,
        name: str | None = None,
        *,
        etag: str | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        return self._mine(await self._run(calls.put(array, name, etag, parameters), timeout, progress))

    @_as_in(Client.keep)
    async def keep(
        self,
        name: str,
        op: Op,
        *operands: Operand,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        return self._mine(await self._run(calls.kept(name, op, operands, parameters), timeout, progress))

    @_as_in(Client.eval)
    async def eval(
        self,
        expression: str | Lazy,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> Result:
        return await self._run(calls.evaluation(expression, operands or {}, parameters), timeout, progress)

    @_as_in(Client.keep_eval)
    async def keep_eval(
        self,
        expression: str | Lazy,
        name: str | None = None,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> NamedMatrix:
        call = calls.kept_evaluation(name, expression, operands or {}, parameters)
        return self._mine(await self._run(call, timeout, progress))

    @_as_in(Client.plan)
    async def plan(
        self,
        expression: str | Lazy,
        operands: Mapping[str, Operand] | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressOption = None,
        **parameters: Parameter,
    ) -> str:
        return await self._run(calls.plan(expression, operands or {}, parameters), timeout, progress)

    @_as_in(Client.get)
    async def get(
        self,
        matrix: str | NamedMatrix,
        *,
        rows: int | slice | None = None,
        cols: int | slice | None = None,
        timeout: float | None = None,
        progress: ProgressOption = None,
    ) -> Array:
        return await self._run(calls.get(matrix, rows, cols), timeout, progress)

    @_as_in(Client.delete)
    async def delete(self, matrix: str | NamedMatrix) -> None:
        await self._run(calls.delete(matrix))

    @_as_in(Client.matrices)
    async def matrices(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path: str | None = "/v1/matrices"
        while path is not None:
            page = await self._run(calls.page(path))
            found += page["matrices"]
            path = page.get("next")
        return found

    @_as_in(Client.compare)
    async def compare(
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
        return await self._run(calls.comparison(op, given(a, b, c), parameters), timeout, progress)

    @_as_in(Client.explain)
    async def explain(
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
        operands = given(a, b, c)
        figures = await self._run(calls.explanation(op, operands, parameters), timeout, progress)
        if not drawings:
            return figures
        svg = await self._run(calls.drawing(op, operands, parameters), timeout, progress)
        return Explanation(figures, svg)

    @_as_in(Client.choose)
    async def choose(self, op: Op, **parameters: Parameter) -> Choice:
        return await self._run(calls.choice(op, parameters))

    @_as_in(Client.kernels)
    async def kernels(self) -> list[dict[str, Any]]:
        return await self._run(calls.document("/v1/kernels", "kernels"))

    @_as_in(Client.devices)
    async def devices(self) -> list[dict[str, Any]]:
        return await self._run(calls.document("/v1/devices", "devices"))

    @_as_in(Client.gpus)
    async def gpus(self) -> list[dict[str, Any]]:
        return await self._run(calls.document("/v1/devices", "gpus"))

    @_as_in(Client.stats)
    async def stats(self) -> dict[str, Any]:
        return await self._run(calls.document("/v1/stats"))

    async def aclose(self) -> None:
        """Closes the connections."""
        CLIENTS.discard(self)
        await asyncio.to_thread(self._give_back)
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"gemmd.{type(self).__name__}({self._address.shown!r})"

    def _mine(self, matrix: NamedMatrix) -> NamedMatrix:
        return dataclasses.replace(matrix, _client=self)

    async def _operate(
        self, operation: Operation, timeout: float | None, progress: ProgressOption
    ) -> Result:
        steps = self._shared.steps(operation)
        try:
            call = next(steps)
            while True:
                try:
                    said = await self._run(call, timeout, progress)
                except BaseException as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(said)
        except StopIteration as end:
            made: Result = end.value
            return made

    async def _run(
        self, call: Call[T], timeout: float | None = None, progress: ProgressOption = None
    ) -> T:
        callback = callback_of(progress) if progress is not None else self._progress
        if call.silent:
            callback = None
        limit = call.timeouts(timeout if timeout is not None else self._timeout)
        retries = Retries(call, self._retries, self._retry_wait, self._known)
        while True:
            try:
                try:
                    async with self._http.stream(
                        call.method,
                        self._address.base + call.path,
                        params=call.params or None,  # {} would take away the query of the path
                        headers=call.headers,
                        content=_chunks(call, callback) if call.body else None,
                        timeout=limit,
                    ) as response:
                        self._known = True
                        receiver = calls.Receiver(response.status_code, response.headers, callback)
                        async for chunk in response.aiter_raw():
                            receiver.feed(chunk)
                except httpx.HTTPError as error:
                    raise transport_error(error, self._address.shown) from error
                return call.finish(receiver.reply())
            except Error as error:
                pause = retries.pause(error)
            await asyncio.sleep(pause)


async def _chunks(
    call: Call[Any], callback: Callable[[Progress], object] | None
) -> AsyncIterator[bytes]:
    for chunk in call.chunks(callback):
        yield chunk
