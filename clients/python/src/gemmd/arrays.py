"""Arrays to bytes and back: operands become .npy files, raw elements become results."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsFloat, Union

import numpy as np
import numpy.typing as npt

from .account import Account
from .errors import ReplyError
from .lazy import Lazy, compare

Array = npt.NDArray[Any]
Buffer = Union[bytes, memoryview]


class SupportsArrayInterface(Protocol):
    """An array by its `__array_interface__`."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class SupportsDLPack(Protocol):
    """An array by DLPack."""

    def __dlpack__(self, *, stream: None = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


@dataclass(frozen=True)
class NamedMatrix(Lazy):
    """A matrix that the daemon keeps under a name: an operand of any operation, in place of its elements.

    Operators, `.T`, slices and gemmd's functions make an `Expression` of it, which the daemon computes in one round trip.

    name:  what it is called there; "OWNER.NAME" for one that another key shares
    shape, dtype: of what was written; dtype is the daemon's name, as "f32"
    etag:  the version that was written. The name may have another one by now
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    etag: str
    _client: Any = field(default=None, repr=False, compare=False)

    def __eq__(self, other: Any) -> Any:
        """An Expression, as < is. Of two named matrices its truth is whether they are the same version."""
        if other is None or isinstance(other, str):
            return NotImplemented
        same = self._is_version(other)
        return compare(self, "==", other, same) if self._shares_daemon(other) else same

    def __ne__(self, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        differs = None if (same := self._is_version(other)) is None else not same
        return compare(self, "!=", other, differs) if self._shares_daemon(other) else differs

    def _shares_daemon(self, other: Any) -> bool:
        """Whether one client can compute with both."""
        clients = {id(one._client) for one in (self, other) if isinstance(one, NamedMatrix) and one._client is not None}
        return len(clients) < 2

    def _is_version(self, other: Any) -> bool | None:
        """Whether another named matrix is the same version; None: it is none."""
        if not isinstance(other, NamedMatrix):
            return None
        return (self.name, self.shape, self.dtype, self.etag) == (other.name, other.shape, other.dtype, other.etag)

    def __hash__(self) -> int:
        return hash((self.name, self.shape, self.dtype, self.etag))

    def __reduce__(self) -> Any:
        """For pickle: without the client, which is of this process."""
        return NamedMatrix, (self.name, self.shape, self.dtype, self.etag)

    def __copy__(self) -> NamedMatrix:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: Any) -> NamedMatrix:
        return self


# What may be an operand: a NumPy array, whatever converts itself to one (`__array__`,
# `__array_interface__`, DLPack: of PyTorch, JAX, pandas, ...), nested lists of numbers, a number.
Operand = Union[
    npt.ArrayLike, SupportsArrayInterface, SupportsDLPack, SupportsFloat, Sequence[object], NamedMatrix
]

# The daemon's names of element types, and NumPy's. bf16 is not NumPy's own: see bfloat16().
DTYPES = {
    "f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "?", "c64": "c8", "c128": "c16",
    "v1": "V1", "v2": "V2", "v4": "V4", "v8": "V8", "v16": "V16",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


class Result(np.ndarray[Any, np.dtype[Any]]):
    """A result: a NumPy array with the `account` of the request that made it.

    Views of it (slices, `.T`, `.reshape()`) keep the account. What is computed from it is a plain NumPy array.
    `numpy.asarray(result)` is the plain array itself.
    """

    account: Account
    """What ran, how long each stage took, and how close that came to the device's ceilings."""

    def __array_finalize__(self, obj: Any) -> None:
        self.account = getattr(obj, "account", Account({}))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:  # an in-place operation
            return array
        plain = np.asarray(array)
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def __reduce__(self) -> Any:
        whole: tuple[Any, ...] = tuple(super().__reduce__())
        return (*whole[:2], (whole[2], self.account))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[0])
        self.account = state[1]


def bfloat16() -> np.dtype[Any] | None:
    """NumPy's bfloat16, which the package ml_dtypes brings; None without it."""
    try:
        dtype: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None
    return dtype


def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """The daemon's name of an element type, or None where it has none."""
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None:
        return f"v{dtype.itemsize}"  # those of ml_dtypes too: they can be moved
    return NAMES.get(dtype.newbyteorder("="))


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's element type for the daemon's name. Without ml_dtypes, bf16 is its bits: uint16."""
    if name == "bf16":
        return bfloat16() or np.dtype(np.uint16)
    return np.dtype(DTYPES[name])


def is_array(operand: object) -> bool:
    """Whether it has an element type of its own, as opposed to lists and numbers."""
    return isinstance(operand, (np.generic, NamedMatrix)) or any(
        hasattr(operand, name) for name in ("__array_interface__", "__array__", "__dlpack__")
    )


def as_array(operand: Any) -> Array:
    """A NumPy array of the same memory where that is possible. TypeError if it is no array of numbers."""
    if isinstance(operand, NamedMatrix):  # its shape and type, without elements
        return np.broadcast_to(np.zeros((), dtype_of(operand.dtype)), operand.shape)
    if isinstance(operand, np.ma.MaskedArray):
        raise TypeError("a masked array has elements that are not there: fill it first, a.filled(0)")
    if isinstance(operand, Lazy):
        raise TypeError("an expression is no operand of this: keep() it first, or eval() what is to become of it")
    kind = type(operand)
    what = f"{kind.__module__}.{kind.__qualname__}"
    if not hasattr(operand, "__array__") and hasattr(operand, "__cuda_array_interface__"):
        raise TypeError(f"{what} is in a GPU's memory: copy it to the host first")
    if str(getattr(operand, "dtype", "")) == "torch.bfloat16":  # which NumPy cannot take by itself
        dtype = bfloat16()
        if dtype is None:
            raise TypeError("bfloat16 tensors can be sent only where the package ml_dtypes is installed")
        return np.asarray(operand.view(sys.modules["torch"].int16)).view(dtype)
    only_dlpack = hasattr(operand, "__dlpack__") and not (
        hasattr(operand, "__array_interface__") or hasattr(operand, "__array__")
    )
    try:
        array = np.from_dlpack(operand) if only_dlpack else np.asarray(operand)
    except (BufferError, RuntimeError) as error:  # in a GPU's memory, part of a graph, ...
        raise TypeError(f"{what} cannot be read as a NumPy array: {error}") from error
    if array.dtype.kind in "OUS" and not is_array(operand):
        if array.size and all(isinstance(element, int) for element in array.flat):
            most = max(array.flat, key=abs)
            raise ValueError(f"a whole number fits no type if it is beyond int64 and uint64, as {most} is")
        strange = [e for e in array.astype(object).flat if not isinstance(e, (int, float, complex))]
        inside = isinstance(operand, (list, tuple)) and strange
        cure = f": {strange[0]!r:.40} is in it. np.array(a, 'f8') converts what is a number" if inside else ""
        raise TypeError(f"{what} is no array of numbers{cure}")
    if array.dtype.hasobject:
        raise TypeError(f"{what} has Python objects as elements, not numbers: convert it, a.astype('f8')")
    return array


def as_arrays(operands: Sequence[Any], dtype: str | None) -> list[Array]:
    """All operands of a request as arrays of, where they have none of their own, one element type.

    Lists and numbers take `dtype`, or the type of the operand that is an array (integers any type of numbers,
    others where NumPy calls that the same kind; else they keep their own), or one that holds them all.
    """
    typed = [as_array(o) if is_array(o) else None for o in operands]
    target = _target([t.dtype for t in typed if t is not None], operands, dtype)
    arrays = []
    for operand, array in zip(operands, typed):
        if array is None:
            array = as_array(operand) if target is None else _made(operand, target)
        arrays.append(_as_bf16(array) if dtype == "bf16" else array)
    return arrays


def _made(operand: Any, target: np.dtype[Any]) -> Array:
    """An array of this type. ValueError where a number does not fit integers, or bool: NumPy would cut it off or wrap."""
    loose = np.asarray(operand)
    if target.kind not in "iub" or loose.dtype.kind not in "iufb":
        return np.asarray(operand, dtype=target)
    with np.errstate(invalid="ignore"):
        made = loose.astype(target)
    if not np.array_equal(made, loose):
        what = "a number of the list" if loose.ndim > 0 else str(operand)
        raise ValueError(f"{what} does not fit {target}, the type of the array beside it or of dtype=")
    return made


def _target(
    types: Sequence[np.dtype[Any]], operands: Sequence[Any], dtype: str | None
) -> np.dtype[Any] | None:
    """The element type for operands that have none of their own, or None: each its own."""
    loose = [as_array(o).dtype for o in operands if not is_array(o)]
    if not loose:
        return None
    if dtype == "bf16" and bfloat16() is None:
        raise TypeError("lists become bf16 only where the package ml_dtypes is installed")
    if dtype == "bf16" or dtype in DTYPES:
        return dtype_of(str(dtype))
    if not types:
        return np.result_type(*loose)
    return types[0] if all(_same_kind(kind, types[0]) for kind in loose) else None


def _same_kind(kind: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether numbers of a kind may become the target: by NumPy's rule, and integers any type of numbers."""
    if dtype_name(target) == "bf16":
        return kind.kind in "biuf"
    return np.can_cast(kind, target, "same_kind") or (kind.kind == "i" and target.kind == "u")


def _as_bf16(array: Array) -> Array:
    """With dtype="bf16", 2-byte voids and integers are the bits of bf16."""
    return array.view("V2") if array.dtype in (np.dtype("u2"), np.dtype("i2")) else array


def npy(array: Array) -> tuple[Buffer, ...]:
    """The array as a .npy file: a header, and its own memory where that is contiguous in some order."""
    fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    flat = array.T if fortran else np.ascontiguousarray(array)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": _descr(array.dtype), "fortran_order": fortran, "shape": array.shape}
    )
    return head.getvalue(), flat.reshape(-1).view(np.uint8).data


def _descr(dtype: np.dtype[Any]) -> Any:
    # ml_dtypes' own types are voids of their size to a .npy file.
    return dtype.str if dtype.names is None and dtype.subdtype is None else np.lib.format.dtype_to_descr(dtype)


def result(
    data: Array, shape_field: str, dtype_field: str, operand: np.dtype[Any], account: Account
) -> Result:
    """The raw elements of a reply, as an array of the operands' type. ReplyError if they do not fit."""
    try:
        shape = tuple(int(size) for size in shape_field.split("x"))
        same = dtype_name(operand) == dtype_field
        dtype = operand.newbyteorder("=") if same else dtype_of(dtype_field)
        elements = data.view(dtype).reshape(shape)
    except (ValueError, KeyError) as error:
        raise ReplyError(
            f"the reply of {data.nbytes} bytes is not {shape_field!r} elements of {dtype_field!r}: {error}"
        ) from error
    made = elements.view(Result)
    made.account = account
    return made
