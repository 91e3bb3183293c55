"""How far a transfer is: for callbacks, and a bar that draws itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TextIO, Union

from .document import bytes_text

WIDTH = 30  # characters of the bar
REDRAW_S = 0.1


@dataclass(frozen=True)
class Progress:
    """What a progress callback gets: `done` of `total` bytes are sent, or received."""

    phase: Literal["send", "receive"]
    done: int
    total: int

    @property
    def fraction(self) -> float:
        """From 0 to 1."""
        return self.done / self.total if self.total else 1.0


# What `progress=` takes: a function that is called as bytes move (an exception in it ends the
# request), True for a bar on standard error, False or None for nothing.
ProgressOption = Union[Callable[[Progress], object], bool, None]


class ProgressBar:
    """A bar for `progress=`, on a terminal or in a notebook; transfers that end soon show none.

    file:  where it is drawn; default: standard error, if that is a terminal or a notebook's
    delay: seconds that a transfer takes before it gets a bar
    """

    def __init__(self, file: TextIO | None = None, *, delay: float = 0.5) -> None:
        self._file = file if file is not None else _standard_error()
        self._delay = delay
        self._phase = ""
        self._began = self._drawn_at = 0.0
        self._drawn = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.phase != self._phase:
            self._clear()
            self._phase, self._began, self._drawn_at = progress.phase, now, 0.0
        ends = progress.done >= progress.total
        if self._file is not None and now - self._began >= self._delay:
            if ends or now - self._drawn_at >= REDRAW_S:
                self._draw(progress, now)
        if ends:
            self._clear()
            self._phase = ""

    def _draw(self, progress: Progress, now: float) -> None:
        full = int(WIDTH * progress.fraction)
        rate = progress.done / max(now - self._began, 1e-6)
        verb = "sending" if progress.phase == "send" else "receiving"
        line = (
            f"{verb} {bytes_text(progress.total)} [{'#' * full}{'.' * (WIDTH - full)}] "
            f"{100 * progress.fraction:3.0f} % {bytes_text(rate)}/s"
        )
        self._write("\r" + line.ljust(self._drawn))
        self._drawn, self._drawn_at = len(line), now

    def _clear(self) -> None:
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _write(self, text: str) -> None:
        if self._file is not None:
            self._file.write(text)
            self._file.flush()


def _standard_error() -> TextIO | None:
    return sys.stderr if sys.stderr.isatty() or "ipykernel" in sys.modules else None


def callback_of(option: ProgressOption) -> Callable[[Progress], object] | None:
    """What to call, or None."""
    if option is True:
        return ProgressBar()
    if option is None or option is False:
        return None
    if not callable(option):
        raise TypeError("progress is a function of one argument, True or False")
    return option
