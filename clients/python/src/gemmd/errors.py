"""What can go wrong, as exceptions.

    Error
      TransportError       no reply: refused, closed, TLS, a name that does not resolve
        TimeoutError       no reply in time
      ReplyError           a reply that is no result
        RequestError       4xx: the request must change
          AuthError        401, 403: no key, a wrong one, or one without this right
        UnavailableError   429, 503: the same request may succeed later
        ServerError        other 5xx
"""

from __future__ import annotations

import builtins
from typing import Any


class Error(Exception):
    """The base of all exceptions that a request to gemmd raises.

    status:      the HTTP status, or None where no reply came
    code:        gemmd's name of the error, e.g. "bad_shape" (all are in PROTOCOL.md), or None
    detail:      a sentence for people
    request_id:  the id of the request, which the daemon's log has too, or None
    retry_after: seconds after which the daemon says that a new attempt makes sense, or None
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        head = " ".join(str(part) for part in (self.status, self.code) if part is not None)
        tail = f" (request {self.request_id})" if self.request_id else ""
        return f"{head}: {self.detail}{tail}" if head else f"{self.detail}{tail}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.detail,), self.__dict__


class TransportError(Error, ConnectionError):
    """No reply: the connection was refused or closed, TLS failed, or the name does not resolve."""


class TimeoutError(TransportError, builtins.TimeoutError):
    """No reply in time. See `timeout` of Client; the daemon's own limit is `timeout_ms`."""


class ReplyError(Error):
    """A reply that is not the result. Of this class itself: one that is not gemmd's at all."""


class RequestError(ReplyError):
    """4xx: the request cannot be served as it is. `detail` says what was wrong and what is allowed."""


class AuthError(RequestError):
    """401 or 403: the key is missing or wrong, or does not allow this."""


class UnavailableError(ReplyError):
    """429 or 503: too busy, over a quota, draining, or too late. `retry_after` says when to try again."""


class ServerError(ReplyError):
    """500 and other 5xx: the fault is not the request's."""


def error_class(status: int) -> type[ReplyError]:
    """The class for an HTTP status."""
    if status in (401, 403):
        return AuthError
    if status in (429, 503):
        return UnavailableError
    if 400 <= status < 500:
        return RequestError
    return ServerError if status >= 500 else ReplyError
