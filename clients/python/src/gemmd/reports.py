"""The reports: a comparison of kernels, the explanation of one, and the choice of `auto`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

from .document import Document, html_table, shape_text, text_table, time_text


class ComparedKernel(Document):
    """A row of a comparison: one kernel, its times, its rates and its errors."""

    @property
    def kernel(self) -> str:
        """The variant's name, which `kernel=` takes."""
        return self._text("kernel")

    @property
    def note(self) -> str:
        """What it does, in a few words."""
        return self._text("note")

    @property
    def op(self) -> str:
        """The operation; "copy" for a baseline."""
        return self._text("op")

    @property
    def auto(self) -> bool:
        """Whether the daemon takes this kernel by itself."""
        return bool(self._members.get("auto", False))

    @property
    def baseline(self) -> bool:
        """Whether this is a copy of the bytes, not the operation."""
        return bool(self._members.get("baseline", False))

    @property
    def runs(self) -> int | None:
        """How often it was timed."""
        return self._integer("runs")

    @property
    def kernel_us_min(self) -> float | None:
        """The shortest time, in microseconds; None where nothing is timed, or it failed."""
        return self._number("kernel_us_min")

    @property
    def kernel_us_median(self) -> float | None:
        """The median of the times, in microseconds."""
        return self._number("kernel_us_median")

    @property
    def prepare_us(self) -> float | None:
        """Microseconds of rearranging operands for it, which are not in its times."""
        return self._number("prepare_us")

    @property
    def estimated_us(self) -> float | None:
        """What the daemon estimates beforehand, in microseconds."""
        return self._number("estimated_us")

    @property
    def effective_gbs(self) -> float | None:
        """10^9 bytes per second, of the bytes that must move."""
        return self._number("effective_gbs")

    @property
    def percent_of_copy(self) -> float | None:
        """effective_gbs as a share of what a copy reaches."""
        return self._number("percent_of_copy")

    @property
    def gflops(self) -> float | None:
        """10^9 operations per second."""
        return self._number("gflops")

    @property
    def percent_of_roofline(self) -> float | None:
        """gflops as a share of the ceiling at this intensity."""
        return self._number("percent_of_roofline")

    @property
    def speed(self) -> float | None:
        """The median of the operation's fastest kernel, divided by this one's: 1.0 is the fastest."""
        return self._number("speed")

    @property
    def error(self) -> Mapping[str, Any] | None:
        """error["verdict"]: "exact", "within" (the bound), "wrong" or "compared"; and by how much."""
        return self._members.get("error")

    @property
    def accesses(self) -> Mapping[str, Any] | None:
        """On a simulated device: e.g. accesses["global_sectors"], accesses["shared_wavefronts"]."""
        return self._members.get("accesses")

    @property
    def failure(self) -> str | None:
        """Why it has no result or no time, or None."""
        failure = self._members.get("failure")
        return None if failure is None else str(failure.get("detail", failure.get("code", "failed")))


class OnDevice(Document):
    """What is said of an operation on a device."""

    @property
    def op(self) -> str:
        """The operation."""
        return self._text("op")

    @property
    def device(self) -> str:
        """Where, e.g. "cpu:0"; the GPU model, where one was asked for."""
        return self._text("device")

    @property
    def dtype(self) -> str:
        """The element type in the daemon's words, e.g. "f32"."""
        return self._text("dtype")


class Comparison(OnDevice):
    """Every kernel of an operation on the same operands. `print` it, show it in a notebook, or read `rows`.

    It has the documented members as attributes, and so have its rows. Those that were not said are None, texts "".
    """

    @property
    def id(self) -> str:
        """The request's id, which the daemon's log has too."""
        return self._text("id")

    @property
    def model(self) -> str:
        """What the device is."""
        return self._text("model")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the operands and of the result: {"a": (2, 3), "result": (3, 2)}."""
        return {name: tuple(shape) for name, shape in self._members.get("shapes", {}).items()}

    @property
    def bytes_min(self) -> int | None:
        """Bytes that must move: each input element read once, each output element written once."""
        return self._integer("bytes_min")

    @property
    def flops(self) -> int | None:
        """Arithmetic operations that the definition needs."""
        return self._integer("flops")

    @property
    def bound(self) -> str:
        """What limits the operation on this device: "memory" or "compute"."""
        return self._text("bound")

    @property
    def copy_gbs(self) -> float | None:
        """What a copy reaches on this device, in 10^9 bytes per second."""
        return self._number("copy_gbs")

    @property
    def roofline_gflops(self) -> float | None:
        """The ceiling at this intensity, in 10^9 operations per second."""
        return self._number("roofline_gflops")

    @property
    def reference(self) -> Mapping[str, Any] | None:
        """What results are checked against: reference["against"], and reference["what"] in words."""
        return self._members.get("reference")

    @property
    def us(self) -> Mapping[str, float]:
        """Microseconds: receive, decode, queue, runs (of the kernels), check (of their results) and total."""
        times: Mapping[str, float] = self._members.get("us", {})
        return times

    @property
    def rows(self) -> list[ComparedKernel]:
        """The kernels: the fastest first (on a simulated device: the one with the fewest sectors)."""
        return [ComparedKernel(row) for row in self._members.get("rows", [])]

    @property
    def fastest(self) -> ComparedKernel | None:
        """The fastest kernel of the operation itself, or None where nothing is timed."""
        return next((r for r in self.rows if not r.baseline and r.kernel_us_median is not None), None)

    def _headline(self) -> str:
        shapes = dict(self._members.get("shapes", {}))
        shapes.pop("result", None)
        operands = ", ".join(shape_text(shape) for shape in shapes.values())
        model = f" ({self['model']})" if "model" in self else ""
        return f"{self.op} of {operands}, {self.dtype}, on {self.device}{model}"

    def _table(self) -> list[list[str]]:
        table = [["kernel", "time", "speed", "GB/s", "% of copy", "GFLOP/s", "sectors", "error"]]
        for row in self.rows:
            time = row.kernel_us_median
            sectors = row.accesses["global_sectors"] if row.accesses is not None else None
            numbers = (row.speed, row.effective_gbs, row.percent_of_copy, row.gflops)
            table.append(
                [
                    ("copy/" if row.baseline else "") + row.kernel + (" *" if row.auto else ""),
                    "" if time is None else time_text(time),
                    *("" if number is None else f"{number:.4g}" for number in numbers),
                    "" if sectors is None else str(sectors),
                    row.failure or (row.error or {}).get("verdict", ""),
                ]
            )
        used = [i for i in range(len(table[0])) if any(line[i] for line in table[1:])] or [0]
        return [[line[i] for i in used] for line in table]

    def __repr__(self) -> str:
        table = self._table()
        return (
            f"{self._headline()}\n{text_table(table, [0, len(table[0]) - 1])}\n* is what the daemon takes by itself"
        )

    def _repr_html_(self) -> str:
        table = self._table()
        return (
            f"<div><b>{escape(self._headline())}</b>{html_table(table, [0, len(table[0]) - 1])}"
            "<p>* is what the daemon takes by itself</p></div>"
        )


class Site(Document):
    """A place in a kernel's source that accesses memory. What has no attribute is in the mapping: site["example"]."""

    @property
    def kind(self) -> str:
        """"global_load", "global_store", "global_atomic", "shared_load", "shared_store", "shared_atomic"."""
        return self._text("kind")

    @property
    def file(self) -> str:
        """The source file."""
        return self._text("file")

    @property
    def line(self) -> int:
        """The line in it."""
        return int(self._members["line"])

    @property
    def source(self) -> str:
        """That line; empty where the daemon has no source at hand."""
        return self._text("source")

    @property
    def memory(self) -> str:
        """"a", "b", "c", "result", "scratch", or a shared array's name."""
        return self._text("memory")

    @property
    def requests(self) -> int:
        """Requests: one is one instruction of one warp."""
        return int(self._members["requests"])

    @property
    def per_request(self) -> float:
        """What a request takes: sectors of 32 bytes (global memory), or wavefronts (shared memory)."""
        return float(self._either("sectors_per_request", "wavefronts_per_request"))

    @property
    def ideal_per_request(self) -> float:
        """What would do."""
        return float(self._either("ideal_sectors_per_request", "ideal_wavefronts_per_request"))

    @property
    def verdict(self) -> str:
        """A word or two, e.g. "coalesced", "strided", "32-way bank conflict"."""
        return self._text("verdict")

    def _either(self, *names: str) -> Any:
        return next(self._members[name] for name in names if name in self._members)


class Explanation(Document):
    """How a kernel accesses memory, what that costs, and the cure. A notebook shows it with its drawings.

    What the daemon says and has no attribute here is in the mapping: explanation["launches"].

    `print` it for a table; write `svg` to a file for the drawings:
    `pathlib.Path("tiled.svg").write_text(explanation.svg)`.
    """

    def __init__(self, members: Mapping[str, Any], svg: str = "") -> None:
        super().__init__(members)
        self._svg = svg

    @property
    def op(self) -> str:
        """The operation."""
        return self._text("op")

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self._text("kernel")

    @property
    def problem(self) -> str:
        """What is slow, and why, in a sentence."""
        return self._text("problem")

    @property
    def cure(self) -> str:
        """What cures it."""
        return self._text("cure")

    @property
    def sites(self) -> list[Site]:
        """The places in the source that access memory, in the order of their lines."""
        return [Site(site) for site in self._members.get("sites", [])]

    @property
    def totals(self) -> Mapping[str, Any]:
        """Sums: "global_sectors", "global_sectors_min", "shared_wavefronts", "shared_wavefronts_ideal",
        "barriers", "intensity", "occupancy", "roofline" and others (PROTOCOL.md)."""
        totals: Mapping[str, Any] = self._members.get("totals", {})
        return totals

    @property
    def svg(self) -> str:
        """The drawings, as one SVG document: which lane touches which sector or bank. "" if not asked for."""
        return self._svg

    def _headline(self) -> str:
        shapes = {name: shape_text(shape) for name, shape in self._members.get("shape", {}).items()}
        result = shapes.pop("result", "")
        return f"{self.op}, kernel {self.kernel}, {self._text('dtype')}: {', '.join(shapes.values())} -> {result}"

    def _table(self) -> list[list[str]]:
        table = [["line", "what", "memory", "requests", "each", "ideal", "verdict"]]
        for site in self.sites:
            each, ideal = f"{site.per_request:.4g}", f"{site.ideal_per_request:.4g}"
            table.append(
                [str(site.line), site.kind, site.memory, str(site.requests), each, ideal, site.verdict]
            )
        return table

    def __repr__(self) -> str:
        return "\n".join(
            [
                self._headline(),
                *(sentence for sentence in (self.problem, self.cure) if sentence),
                text_table(self._table(), [1, 2, 6]),
                "each, ideal: per request of a warp; sectors of 32 bytes, or wavefronts of shared memory",
            ]
        )

    def _repr_html_(self) -> str:
        # As an image, so that its styles and ids stay its own.
        data = base64.b64encode(self._svg.encode()).decode()
        alt = escape(f"memory accesses of {self.op}, kernel {self.kernel}")
        drawing = f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">' if data else ""
        return (
            f"<div><b>{escape(self._headline())}</b><p>{escape(self.problem)}</p><p>{escape(self.cure)}</p>"
            f"{html_table(self._table(), [1, 2, 6])}{drawing}</div>"
        )


class Candidate(Document):
    """A kernel, and what it is estimated to take. Its parts are in the mapping: candidate["dram"]."""

    @property
    def kernel(self) -> str:
        """The variant's name, which `kernel=` takes."""
        return self._text("kernel")

    @property
    def estimated_us(self) -> float | None:
        """Microseconds of the kernel alone; None where there is no estimate."""
        return self._number("estimated_us")

    @property
    def most(self) -> str:
        """The longest part: "launch", "math", "shared", "l2", "dram", "wait" or "passes"; "" without an estimate."""
        return self._text("most")

    @property
    def note(self) -> str:
        """Why there is no estimate; "" where there is one."""
        return self._text("note")


class Choice(OnDevice):
    """Which kernel `auto` takes for operands of some shapes, and why. `print` it, or read `candidates`."""

    @property
    def profile(self) -> str:
        """What the numbers of the estimates were measured on."""
        return self._text("profile")

    @property
    def kernel(self) -> str:
        """The kernel that `auto` takes."""
        return self._text("kernel")

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return self._text("reason")

    @property
    def candidates(self) -> list[Candidate]:
        """The kernels that could run: the least estimate first, then those without one."""
        return [Candidate(candidate) for candidate in self._members.get("candidates", [])]

    def _headline(self) -> str:
        shapes = ", ".join(self._members.get("shapes", []))
        return f"{self.op} of {shapes}, {self.dtype}, on {self.device}"

    def _table(self) -> list[list[str]]:
        table = [["kernel", "estimate", "most of it, or why there is none"]]
        for candidate in self.candidates:
            us = candidate.estimated_us
            table.append([candidate.kernel, "" if us is None else time_text(us), candidate.most or candidate.note])
        return table

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.reason}\n{text_table(self._table(), [0, 2])}"

    def _repr_html_(self) -> str:
        table = html_table(self._table(), [0, 2])
        return f"<div><b>{escape(self._headline())}</b><p>{escape(self.reason)}</p>{table}</div>"
