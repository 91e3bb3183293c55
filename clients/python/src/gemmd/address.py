"""Where the daemon is, and what it takes to speak with it: URL or Unix socket, key, CA."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import httpx

DEFAULT_URL = "http://localhost:8080"
UNIX = ("http+unix:", "unix:")


@dataclass(frozen=True)
class Address:
    """base: the URL that paths are appended to. socket: the Unix socket's path, or None."""

    shown: str
    base: str
    socket: str | None
    key: str | None = field(repr=False)
    tls: ssl.SSLContext | bool = field(repr=False)


def resolve(
    url: str | None, key: str | None, ca: str | os.PathLike[str] | ssl.SSLContext | None
) -> Address:
    """What a client was given, completed from the environment, and checked. ValueError if wrong."""
    if url is None:
        url = os.environ.get("GEMMD_URL") or DEFAULT_URL
    if not isinstance(url, str):
        raise TypeError(f"the address of a daemon is a text, as http://HOST:PORT, not {type(url).__qualname__}")
    if url.startswith(UNIX):
        base, socket = "http://localhost", _socket_path(url)
    else:
        base, socket = _base_url(url), None
    tls = _tls(ca) if base.lower().startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shown = url if socket else re.sub(r"//[^/@]*@", "//", url)  # without a key
    return Address(shown, base, socket, _key(key), tls)


def _base_url(url: str) -> str:
    full = url if "://" in url else f"http://{url}"
    try:
        parts = httpx.URL(full)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.host or (parts.port or 0) > 65535:
        raise ValueError(
            f"{url!r} is no address of a gemmd: http://HOST:PORT, https://HOST:PORT or unix:PATH"
        )
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r} has more than an address: parameters belong to each call")
    return full.rstrip("/")


def _socket_path(url: str) -> str:
    path = url[len(next(prefix for prefix in UNIX if url.startswith(prefix))) :]
    path = unquote(path[2:] if path.startswith("//") else path)
    if not path:
        raise ValueError(f"{url!r} names no socket: unix:/run/gemmd.sock")
    return path


def _key(key: str | None) -> str | None:
    """key, else GEMMD_KEY, else what the file GEMMD_KEY_FILE has; "" stands for none."""
    if key is None:
        key = os.environ.get("GEMMD_KEY") or None
    if key is None and os.environ.get("GEMMD_KEY_FILE"):
        file = os.environ["GEMMD_KEY_FILE"]
        key = (Path(file).read_text(encoding="utf-8", errors="replace").splitlines() or [""])[0].strip()
        if not key:
            raise ValueError(f"the key file {file} (GEMMD_KEY_FILE) is empty")
    if key is not None and not isinstance(key, str):
        raise TypeError(f"a key is a text, not {type(key).__qualname__}")
    key = key.strip() if key is not None else ""
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise ValueError("a key is one line of ASCII letters, digits and signs")
    return key or None


def _tls(ca: str | os.PathLike[str] | ssl.SSLContext | None) -> ssl.SSLContext | bool:
    """ca, else GEMMD_CA, else the certificates that httpx trusts by itself."""
    if isinstance(ca, ssl.SSLContext):
        return ca
    path = ca if ca is not None else os.environ.get("GEMMD_CA") or None
    if path is None:
        return True
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError as error:
        raise ValueError(f"{os.fspath(path)} has no certificate in PEM format: {error}") from None
    except OSError as error:  # which does not name the file
        error.filename = os.fspath(path)
        raise
