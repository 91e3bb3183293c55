"""Shared memory in place of a socket, where client and daemon are on one machine and the daemon allows it.

What a client does for that is a generator of calls, so that both clients take the same steps: the client makes
each call, and sends its result back in. Whatever stands in the way (a daemon that does not allow it, or sees
another /dev/shm, or has too little memory) is found out once, and the operands are sent.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import mmap
import os
import re
import secrets
import sys
import threading
from collections.abc import Generator
from typing import Any

import httpx
import numpy as np

from . import arrays, calls
from .address import Address
from .arrays import Array, Result
from .calls import Call, Operation, Reply
from .document import shape_text
from .errors import Error, ReplyError

FOLDER = "/dev/shm"
BYTES_MIN = 1 << 18  # of operands and result; 0.5 MB take 0.5 ms in place of 0.7 (measured), less gain nothing
ALIGNMENT = 4096  # of operands in a region: a page, as copies to a GPU like best
VANISHED = ("not_found", "region_conflict", "not_allowed")  # as with a daemon that was started anew
KEPT_MAX = 4  # regions that wait for the next call; others are given back


class Region:
    """An object of shared memory, mapped here, and registered with the daemon by register()."""

    def __init__(self, prefix: str, size: int) -> None:
        """OSError where there is no room for it."""
        self.name = f"py-{os.getpid()}-{secrets.token_hex(8)}"
        self.size = size
        self._key = prefix + self.name
        descriptor = os.open(FOLDER + self._key, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # or a write could find no room
            self._map = mmap.mmap(descriptor, size)
        except BaseException:
            self.unlink()
            raise
        finally:
            os.close(descriptor)

    def at(self, offset: int, size: int) -> Array:
        """A part of it, as bytes. It is mapped for as long as such a part is held."""
        return np.frombuffer(self._map, np.uint8, size, offset)

    def unlink(self) -> None:
        """Removes the name, once the daemon has opened it: nothing is left of a client that is killed."""
        os.unlink(FOLDER + self._key)

    def register(self) -> Call[None]:
        """The call that tells the daemon of it."""
        return calls.tell(f"{self._route}/register", {"key": self._key, "offset": 0, "byte_size": self.size})

    def unregister(self) -> Call[None]:
        """The call that takes it away."""
        return calls.tell(f"{self._route}/unregister", {})

    @property
    def _route(self) -> str:
        return f"/v2/systemsharedmemory/region/{self.name}"


class SharedMemory:
    """The regions of one client. Any thread may use it."""

    def __init__(self, address: Address, wanted: bool) -> None:
        near = wanted and os.path.isdir(FOLDER) and is_here(address)
        self._prefix: str | None = None if near else ""  # of objects' names; None: the daemon was not asked yet
        self._bytes_max = sys.maxsize  # less once a region of that size was refused
        self._kept: list[Region] = []
        self._lost: list[Region] = []  # of calls that were given up: the daemon may write into them
        self._lock = threading.Lock()

    def steps(self, operation: Operation) -> Generator[Call[Any], Any, Result]:
        """The calls that make an operation, through shared memory or not; returns its result."""
        size = _size(operation)
        if BYTES_MIN <= size <= self._bytes_max and self._prefix != "":
            if self._prefix is None:
                self._prefix = yield from _asked()
            yield from self._forget_lost()
            region = (yield from self._region(self._prefix, size)) if self._prefix else None
            if region is not None:
                try:
                    return (yield from self._through(region, operation))
                except ReplyError as error:
                    if error.code not in VANISHED:
                        raise
        made: Result = yield operation.call
        return made

    def _forget_lost(self) -> Generator[Call[Any], Any, None]:
        """Unregisters the regions of calls that were given up. A request that still runs keeps its own until it ends."""
        while self._lost:
            with self._lock:
                region = self._lost.pop() if self._lost else None
            if region is None:
                return
            done = False
            try:
                yield region.unregister()
                done = True
            except ReplyError:
                done = True  # the daemon does not know it
            except Error:
                return  # another time
            finally:
                if not done:
                    with self._lock:
                        self._lost.append(region)

    def take_all(self) -> list[Region]:
        """All regions that the daemon still knows, to be unregistered."""
        with self._lock:
            taken, self._kept, self._lost = self._kept + self._lost, [], []
        return taken

    def _region(self, prefix: str, size: int) -> Generator[Call[Any], Any, Region | None]:
        """A region of at least that size, or None where there can be none."""
        with self._lock:
            fitting = [region for region in self._kept if region.size >= size]
            if fitting:
                best = min(fitting, key=lambda region: region.size)
                self._kept.remove(best)
                return best
        try:
            region = Region(prefix, 1 << (size - 1).bit_length())
        except OSError:
            self._bytes_max = size - 1
            return None
        try:
            try:
                yield region.register()
            except ReplyError:
                if not (yield from _freed()):
                    raise
                yield region.register()
        except ReplyError:
            self._bytes_max = size - 1
            return None
        except BaseException:  # it was given up, and the daemon may know the region
            with self._lock:
                self._lost.append(region)
            raise
        finally:
            region.unlink()
        return region

    def _through(self, region: Region, operation: Operation) -> Generator[Call[Any], Any, Result]:
        known, ended = True, False
        try:
            made: Result = yield _call(region, operation)
            ended = True
        except ReplyError as error:
            known, ended = error.code not in VANISHED, True
            raise
        finally:
            with self._lock:
                if known:
                    (self._kept if ended else self._lost).append(region)
        with self._lock:
            spare = self._kept.pop(0) if len(self._kept) > KEPT_MAX else None
        if spare is not None:
            with contextlib.suppress(Error):
                yield spare.unregister()
        return made


def _asked() -> Generator[Call[Any], Any, str]:
    """The prefix of objects' names that the daemon takes; empty where it takes none."""
    try:
        prefix = str((yield calls.document("/v2"))["shared_memory_prefix"])
    except (ReplyError, KeyError, TypeError):
        return ""
    return prefix if prefix.startswith("/") and not prefix.startswith("/.") and "/" not in prefix[1:] else ""


def _freed() -> Generator[Call[Any], Any, bool]:
    """Takes away the regions of processes that were killed, and says whether there were any. Where processes of
    other containers look dead, their next call finds its region gone, and goes by the socket."""
    gone = [one["name"] for one in (yield calls.document("/v2/systemsharedmemory/status")) if _is_left(one["name"])]
    for name in gone:
        with contextlib.suppress(ReplyError):
            yield calls.tell(f"/v2/systemsharedmemory/region/{name}/unregister", {})
    return bool(gone)


def _is_left(name: str) -> bool:
    """Whether it is the name of a region of a process that is no more."""
    found = re.fullmatch(r"py-([0-9]+)-[0-9a-f]+", name)
    return found is not None and not os.path.exists(f"/proc/{found[1]}")


def is_here(address: Address) -> bool:
    """Whether the address is one of this machine alone. (Behind it may be a tunnel: then registering fails.)"""
    host: str = httpx.URL(address.base).host
    try:
        loopback: bool = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    return loopback or address.socket is not None


def _size(operation: Operation) -> int:
    """Bytes that operands and result take in a region; 0 where they do not go into one."""
    given = operation.operands
    params = operation.call.params
    named = any(name.startswith(("region", "offset", "shape")) for name in params) or not params.keys().isdisjoint(
        ("a", "b", "c", "keep")
    )
    if named or not all(a.flags.c_contiguous and a.size and a.dtype.isnative for a in given):
        return 0
    # The daemon is told one type for all regions. By the socket it says what is wrong with several.
    types = {arrays.dtype_name(a.dtype) for a in given}
    name = types.pop()
    if types or name is None or params.get("dtype", name) not in ((name, "bf16") if name == "v2" else (name,)):
        return 0
    return sum(_aligned(a.nbytes) for a in given) + _result_bytes(operation)


def _result_bytes(operation: Operation) -> int:
    """At most so many; where the shapes do not fit the daemon says so."""
    op, params = operation.op, operation.call.params
    a, *others = operation.operands
    if any(array.ndim < 2 for array in operation.operands if op == "matmul"):
        return 0
    if op == "add":
        return math.prod(max(sizes) for sizes in _padded(a, others[0])) * a.itemsize
    if op == "matmul":
        b = others[0]
        rows: int = a.shape[-1] if params.get("transa") in ("true", "1") else a.shape[-2]
        columns: int = b.shape[-2] if params.get("transb") in ("true", "1") else b.shape[-1]
        stack = max(math.prod(a.shape[:-2]), math.prod(b.shape[:-2]))
        return rows * columns * stack * a.itemsize
    return a.nbytes


def _padded(*operands: Array) -> list[tuple[int, ...]]:
    """The sizes of each dimension, from the last one on."""
    most = max(array.ndim for array in operands)
    return list(zip(*((1,) * (most - array.ndim) + array.shape for array in operands)))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _call(region: Region, operation: Operation) -> Call[Result]:
    """The operation on operands that are put into the region; its result is taken from there."""
    params = dict(operation.call.params)
    params.setdefault("dtype", str(arrays.dtype_name(operation.operands[0].dtype)))
    at = 0
    for letter, array in zip("abc", operation.operands):
        region.at(at, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        shape = shape_text(array.shape if array.ndim >= 2 else (1, array.size))
        params |= {f"region_{letter}": region.name, f"offset_{letter}": str(at), f"shape_{letter}": shape}
        at += _aligned(array.nbytes)
    params |= {"region_result": region.name, "offset_result": str(at)}

    def read(reply: Reply) -> Result:
        said = reply.members("shape", "dtype")
        size = math.prod(said["shape"]) * operation.operands[0].itemsize
        data = region.at(at, size).copy()
        return operation.result(data, shape_text(said["shape"]), said["dtype"], reply.account())

    return Call("POST", operation.call.path, read, params, {"Accept": "application/json"}, silent=True)
