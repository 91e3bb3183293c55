"""How long a client waits for a reply, and whether it sends a request again."""

from __future__ import annotations

import math
import numbers
import operator
import random
from typing import TYPE_CHECKING, Any

import httpx

from .errors import Error, TimeoutError, TransportError

if TYPE_CHECKING:
    from .calls import Call


def seconds(name: str, value: Any) -> float:
    """A time that a caller gave, checked."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} is a number of seconds, not {type(value).__qualname__}")
    given = float(value)
    if not 0 <= given < math.inf:
        raise ValueError(f"{name} is a number of seconds, and cannot be {given}")
    return given


def limit_of(timeout: Any) -> float:
    """A timeout that a caller gave, checked."""
    if seconds("timeout", timeout) == 0:
        raise ValueError("timeout is more than 0 seconds, or None for no limit")
    return float(timeout)


def checked_limits(timeout: Any, retries: Any, retry_wait: Any) -> tuple[float | None, int | None, float]:
    """The arguments of a client that say how long it waits, checked."""
    return (
        None if timeout is None else limit_of(timeout),
        None if retries is None else count("retries", retries, 0),
        math.inf if retry_wait == math.inf else seconds("retry_wait", retry_wait),
    )


def count(name: str, value: Any, least: int) -> int:
    """A whole number that a caller gave, checked."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {type(value).__qualname__}") from None
    if number < least:
        raise ValueError(f"{name} is at least {least}, and cannot be {number}")
    return number


# Where the caller does not say: 25 seconds in all, which a daemon takes to be started again; and less
# where nobody has answered yet, since the address may be wrong.
RETRIES, FIRST_RETRIES = 8, 4


class Retries:
    """Whether, and when, a request that failed is sent again. Operations have no effects, and writing a named matrix
    twice is writing it once, so any may be, unless the daemon may have carried out one that replaces its own operand.

    known: whether the daemon has answered before.
    """

    def __init__(self, call: Call[Any], attempts: int | None, wait_s: float, known: bool) -> None:
        self._unsaid, self._known, self._wait_s = attempts is None, known, wait_s
        self._left = attempts if attempts is not None else RETRIES if known else FIRST_RETRIES
        self._backoff, self._once = 0.1, call.once
        # The daemon says Retry-After where a request only waited until its time had passed. That is tried once more, as it
        # may take as long again; and not at all for who says how long it may take.
        self._late = 0 if "timeout_ms" in call.params else 1

    def pause(self, error: Error) -> float:
        """Seconds to wait before the next attempt; raises the error where there is none."""
        if error.status is not None and self._unsaid and not self._known:
            self._left, self._known = self._left + RETRIES - FIRST_RETRIES, True
        late = error.code == "deadline_passed"
        overloaded = error.status in (429, 503) and (error.retry_after is not None or error.code is None)
        disconnected = isinstance(error, TransportError) and not isinstance(error, TimeoutError)
        if self._once:
            disconnected = isinstance(error.__cause__, httpx.ConnectError)
            overloaded = overloaded and error.code is not None  # a proxy's may come after the work
        if not (overloaded or disconnected) or (late and self._late == 0) or self._left == 0:
            raise error
        # Somewhat later than asked for, so that clients that were refused together do not return together.
        least = error.retry_after if error.retry_after is not None else self._backoff
        wait = least * (1 + 0.1 * random.random())
        if wait > self._wait_s:
            raise error
        self._left -= 1
        self._late -= late
        self._wait_s -= wait
        self._backoff *= 2
        return wait


def words_of(error: BaseException) -> str:
    """What it says, or where that is nothing, what the error behind it says."""
    at: BaseException | None = error
    while at is not None and not str(at):
        at = at.__cause__ or at.__context__
    return str(at) if at is not None else type(error).__name__


def transport_error(error: httpx.HTTPError, where: str) -> TransportError:
    """Our exception for one of the HTTP library's."""
    said = words_of(error)
    if isinstance(error, httpx.TimeoutException):
        what = {httpx.ConnectTimeout: "connection", httpx.PoolTimeout: "free connection"}
        return TimeoutError(f"no {what.get(type(error), 'reply')} from {where} in time")
    tls = where.lower().startswith("https:")
    cure = ""
    reset = isinstance(error, httpx.ConnectError) and "reset" in said  # closed before all of the handshake was read
    if tls and (reset or "SSL" in said) and "certificate" not in said.lower():
        cure = "; does gemmd speak TLS there? If not, its address begins with http://"
    elif not tls and "unix:" not in where and isinstance(error, httpx.RemoteProtocolError):
        cure = "; does gemmd speak TLS there? Then its address begins with https://"
    if isinstance(error, httpx.ConnectError):
        return TransportError(f"cannot connect to {where}: {said}{cure}")
    return TransportError(f"the connection to {where} ended before its reply: {said}{cure}")
