"""The base of accounts and reports: a read-only mapping of what the daemon said, and how to show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any


class Document(Mapping[str, Any]):
    """What the daemon said, as a mapping: `document["member"]`, `dict(document)`.

    A member that the daemon did not measure is absent from the mapping, and None as an attribute. A newer
    daemon may say more than this class has attributes for: that is in the mapping.
    """

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = dict(members)

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._members!r})"

    def _text(self, name: str) -> str:
        return str(self._members.get(name, ""))

    def _integer(self, name: str) -> int | None:
        value = self._members.get(name)
        return None if value is None else int(value)

    def _number(self, name: str) -> float | None:
        value = self._members.get(name)
        return None if value is None else float(value)


def shape_text(shape: Sequence[int]) -> str:
    """2x3, or 5x2x3 for a stack."""
    return "x".join(str(size) for size in shape)


def time_text(us: float) -> str:
    """Microseconds, in a unit that people read."""
    for size, unit in ((1, "us"), (1e3, "ms")):
        if us < 999.5 * size:
            return f"{us / size:.3g} {unit}"
    return f"{us / 1e6:.3g} s" if us < 999.5e6 else f"{us / 1e6:.0f} s"


def bytes_text(count: float) -> str:
    """Bytes, in a unit that people read (powers of 1000)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def text_table(rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Rows, the first of them a heading, in aligned columns; those numbered in `left` begin at the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(widths[i]) if i in left else cell.rjust(widths[i]) for i, cell in enumerate(row)
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def html_table(rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """The same for a notebook."""

    def line(row: Sequence[str], tag: str) -> str:
        cells = (
            f'<{tag} style="text-align:{"left" if i in left else "right"}">{escape(cell)}</{tag}>'
            for i, cell in enumerate(row)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    return f"<table><thead>{line(rows[0], 'th')}</thead><tbody>{body}</tbody></table>"
