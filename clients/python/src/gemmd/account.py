"""The account: what ran, how long each stage took, how close that came to the device's ceilings."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from .document import Document, bytes_text, shape_text, time_text

STAGES = ("receive", "decode", "queue", "h2d", "prepare", "kernel", "d2h", "encode")


class Account(Document):
    """What the daemon says of one request: `result.account`.

    It is a mapping of what the daemon said, and has the documented members as attributes. What was not said is None,
    or "" where it is a text (but for `placed` and `doubt`). `print(account)` shows it as a table; a notebook shows it
    with a bar for each stage.
    """

    @property
    def id(self) -> str:
        """The request's id, which the daemon's log has too."""
        return self._text("id")

    @property
    def op(self) -> str:
        """The operation: "transpose", "matmul", "add" or "flip"; "eval" of an expression."""
        return self._text("op")

    @property
    def kernel(self) -> str:
        """The variant that ran, e.g. "blocked": one of `Client.kernels()`."""
        return self._text("kernel")

    @property
    def device(self) -> str:
        """Where it ran, e.g. "cpu:0", in the name that `device=` takes."""
        return self._text("device")

    @property
    def placed(self) -> str | None:
        """Why it ran there: "asked", "shape" or "load"."""
        return self._members.get("placed")

    @property
    def dtype(self) -> str:
        """The element type in the daemon's words, e.g. "f32"."""
        return self._text("dtype")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the operands and of the result: {"a": (2, 3), "result": (3, 2)}."""
        return {name: tuple(shape) for name, shape in self._members.get("shapes", {}).items()}

    @property
    def us(self) -> Mapping[str, float]:
        """Microseconds of each stage that was measured: `us["kernel"]`, `us.get("h2d")`, `us["total"]`.

        receive (the request's bytes), decode (text to elements), queue (waiting), h2d and d2h (copies to the
        device and back), prepare (rearranging operands), kernel, encode (elements to text), total.
        """
        times: Mapping[str, float] = self._members.get("us", {})
        return times

    @property
    def batch(self) -> int | None:
        """Jobs in the launch, whose time and rates the figures are."""
        return self._integer("batch")

    @property
    def concurrent(self) -> bool:
        """Whether other jobs used the device meanwhile."""
        return bool(self._members.get("concurrent", False))

    @property
    def repeat(self) -> int | None:
        """With `repeat=`: how many times the kernel ran. `us["kernel"]` is then the median."""
        return self._integer("repeat")

    @property
    def kernel_us_min(self) -> float | None:
        """With `repeat=`: the shortest of its times, in microseconds."""
        return self._number("kernel_us_min")

    @property
    def kernel_us_median(self) -> float | None:
        """With `repeat=`: the median of its times, in microseconds."""
        return self._number("kernel_us_median")

    @property
    def bytes_min(self) -> int | None:
        """Bytes that must move: each input element read once, each output element written once."""
        return self._integer("bytes_min")

    @property
    def effective_gbs(self) -> float | None:
        """bytes_min / kernel time, in 10^9 bytes per second."""
        return self._number("effective_gbs")

    @property
    def copy_gbs(self) -> float | None:
        """What a copy reaches on this device, in 10^9 bytes per second."""
        return self._number("copy_gbs")

    @property
    def percent_of_copy(self) -> float | None:
        """effective_gbs as a share of copy_gbs; may pass 100 for what fits into a cache."""
        return self._number("percent_of_copy")

    @property
    def percent_of_link(self) -> float | None:
        """Of a kernel that uses the host's memory itself: the least time that the link takes, as a share of the kernel's."""
        return self._number("percent_of_link")

    @property
    def doubt(self) -> str | None:
        """The ceiling that was measured too low ("copy_gbs", "roofline_gflops"), or None."""
        return self._members.get("doubt")

    @property
    def flops(self) -> int | None:
        """Arithmetic operations that the definition needs."""
        return self._integer("flops")

    @property
    def gflops(self) -> float | None:
        """flops / kernel time, in 10^9 operations per second."""
        return self._number("gflops")

    @property
    def intensity(self) -> float | None:
        """flops / bytes_min."""
        return self._number("intensity")

    @property
    def bound(self) -> str:
        """What limits the operation on this device: "memory" or "compute"."""
        return self._text("bound")

    @property
    def roof(self) -> str:
        """The name of that ceiling, e.g. "fp32" or "dram"."""
        return self._text("roof")

    @property
    def roofline_gflops(self) -> float | None:
        """The ceiling at this intensity, in 10^9 operations per second."""
        return self._number("roofline_gflops")

    @property
    def percent_of_roofline(self) -> float | None:
        """gflops as a share of roofline_gflops."""
        return self._number("percent_of_roofline")

    @property
    def steps(self) -> list[Mapping[str, Any]] | None:
        """Of an expression: each step's "op", "kernel", "shape" and "us"."""
        return self._members.get("steps")

    @property
    def accesses(self) -> Mapping[str, int] | None:
        """On a simulated device: what the kernel did to memory, e.g. accesses["global_sectors"]."""
        return self._members.get("accesses")

    def _headline(self) -> str:
        shapes = dict(self.shapes)
        result = shapes.pop("result", ())
        operands = " " + ", ".join(shape_text(shape) for shape in shapes.values()) if shapes else ""
        return f"{self.op}{operands} -> {shape_text(result)}, {self.dtype}, {self.kernel} on {self.device}"

    def _rates(self) -> list[str]:
        """Sentences on how good that was."""
        said = []
        if self.gflops is not None and self.percent_of_roofline is not None:
            said.append(
                f"{self.gflops:.4g} GFLOP/s, {self.percent_of_roofline:.3g} % of the roofline ({self.bound})"
            )
        if self.effective_gbs is not None and self.percent_of_copy is not None:
            said.append(f"{self.effective_gbs:.4g} GB/s, {self.percent_of_copy:.3g} % of a copy")
        if self.accesses is not None:
            moved, least = self.accesses["global_sectors"], self.accesses["global_sectors_min"]
            said.append(f"{moved} sectors of global memory, where {least} must move")
            passes, ideal = self.accesses["shared_wavefronts"], self.accesses["shared_wavefronts_ideal"]
            said.append(f"{passes} wavefronts of shared memory, where {ideal} would do")
        if self.doubt is not None:
            said.append(f"{self.doubt} was measured too low")
        return said

    def _stages(self) -> list[tuple[str, float]]:
        return [(stage, self.us[stage]) for stage in STAGES if stage in self.us]

    def __repr__(self) -> str:
        if not self._members:
            return "<Account: none>"
        said = [self._headline()]
        times = [f"{name} {time_text(self.us[name])}" for name in ("kernel", "total") if name in self.us]
        said += [", ".join(times)] if times else []
        said += self._rates()[:1]
        return f"<Account {'; '.join(said)}>"

    def __str__(self) -> str:
        if not self._members:
            return repr(self)
        lines = [self._headline()]
        stages = [*self._stages(), *(("total", us) for us in [self.us.get("total")] if us is not None)]
        lines += [f"  {name:8}{time_text(us):>9}" for name, us in stages]
        lines += [f"  {sentence}" for sentence in self._rates()]
        if self.bytes_min is not None:
            lines.append(f"  {bytes_text(self.bytes_min)} must move")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self._members:
            return escape(repr(self))
        longest = max((us for _, us in self._stages()), default=0.0) or 1.0
        rows = "".join(
            f'<tr><td style="text-align:left">{stage}</td><td>{escape(time_text(us))}</td>'
            f'<td style="text-align:left"><div style="background:#4477aa;height:0.8em;'
            f'width:{max(1, round(200 * us / longest))}px"></div></td></tr>'
            for stage, us in self._stages()
        )
        total = f"<p>total {escape(time_text(self.us['total']))}</p>" if "total" in self.us else ""
        rates = "".join(f"<p>{escape(sentence)}</p>" for sentence in self._rates())
        return f"<div><b>{escape(self._headline())}</b><table>{rows}</table>{total}{rates}</div>"
