"""Rows of nvprof's traces that are no work of a GPU and no calls: OpenACC events, samples of clocks, marks of ranges.

A trace of OpenACC (--print-openacc-trace) does not name the threads of its events, so that it does not tell what is
within what: its events are summed in full, as under nvprof's title `OpenACC (incl)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.nvprof.system import SAMPLES, Sampled
from nsw.readers.nvprof.text.summary_rows import add_openacc

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import Sink
    from nsw.readers.nvprof.text.summary_rows import Figures

Time: TypeAlias = "tuple[int | None, float | None]"  # ns, and half of its last digit; None: exact
_OPENACC: Final = re.compile(r"acc_[a-z_]+(?:\[[\w ]+\])?(?:@|\Z)")
_MARKS: Final = ("[Range start]", "[Range end]", "[Marker]")


def is_aside(name: str) -> bool:
    """Whether the name of a row of a trace is of one of these."""
    if name[:1] == "[":
        return name in SAMPLES or name.startswith(_MARKS)
    return name.startswith("acc_") and _OPENACC.match(name) is not None


@dataclass(slots=True)
class _Sum:
    calls: int
    total: float
    half: float
    least: Time
    most: Time

    def figures(self, whole: float) -> Figures:
        """Calls, share of the whole, total, mean, least and greatest with their twins."""
        share = 100.0 * self.total / whole if whole else None
        total = (float(self.total), self.half or None)
        mean = (self.total / self.calls, self.half / self.calls or None)
        return (self.calls, share, None, *total, *mean, *self.least, *self.most)


class Asides:
    """What of one report's traces is of these kinds, summed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._openacc: dict[tuple[tuple[str, Any], ...], dict[str, _Sum]] = {}
        self._sampled = Sampled()

    def add(self, origin: dict[str, Any], name: str, took: Time, device: int | None, sample: str) -> bool:
        """One row; whether its cells are what its name says."""
        if name.startswith(_MARKS):
            return True  # a range begins or ends: there is no table of single ranges
        if name in SAMPLES:
            if device is None:
                self._sink.note("samples of clocks and temperatures in a trace: the GPU is not named")
            return self._sampled.add({**origin, "device": device}, name, sample)
        if took[0] is None:
            return False
        sums = self._openacc.setdefault(tuple(origin.items()), {})
        found = sums.get(name)
        if found is None:
            sums[name] = _Sum(1, took[0], took[1] or 0.0, took, took)
            return True
        found.calls += 1
        found.total += took[0]
        found.half += took[1] or 0.0
        found.least, found.most = min(found.least, took, key=_value), max(found.most, took, key=_value)
        return True

    def __call__(self) -> None:
        """Hand them over: the report is read."""
        for fact in self._sampled.facts():
            self._sink.add("facts", fact)
        for origin, sums in self._openacc.items():
            where = tuple(value for _, value in origin)
            if ("openacc", where) in self._sink.summed:
                continue  # the same report has nvprof's own summary
            self._sink.note("OpenACC events of a trace are summed in full: each with those that ran within it")
            whole = sum(s.total for s in sums.values())
            for name, of in sorted(sums.items(), key=lambda item: (-item[1].total, item[0])):
                add_openacc(self._sink, where, name, of.figures(whole))


def asides_of(sink: Sink) -> Asides:
    """Those of a report, which has one of them."""
    made = next((m for m in sink.at_end if isinstance(m, Asides)), None)
    if made is None:
        made = Asides(sink)
        sink.at_end.append(made)
    return made


def _value(time: Time) -> int:
    return time[0] or 0
