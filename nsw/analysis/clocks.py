"""One clock for the reports of several nodes: a collective ends on all ranks together.

Each report has times since its own beginning. Its clock runs at its own rate beside that of the first one; offset and
drift follow from the ends of the collectives that both took part in. A collective's end scatters by some ten us between
ranks (33 us between four H200s), so that the median of many is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

__all__ = ["Clock", "clocks_by_report"]

_FEWEST: Final = 8  # collectives that two reports share
_SCATTER: Final = 1.4826  # standard deviations a median absolute deviation
_OUTLIER: Final = 4.0  # deviations


@dataclass(frozen=True, slots=True)
class Clock:
    """How a report's clock runs beside that of the first report.

    Attributes:
        offset_ns: How far it is ahead at `at_ns`.
        drift: By how much it gains, ns a ns.
        at_ns: The time by its own clock, in the middle of the collectives.
        error_ns: Of the offset, one standard deviation.
    """

    offset_ns: float
    drift: float
    at_ns: float
    error_ns: float

    def to_reference(self, ns: float) -> float:
        """The time by the first report's clock of a time by this one."""
        return ns - self.offset_ns - self.drift * (ns - self.at_ns)

    def from_reference(self, ns: float) -> float:
        """The time by this clock of a time by the first report's."""
        return (ns + self.offset_ns - self.drift * self.at_ns) / (1 - self.drift)


def clocks_by_report(collectives: Sequence[Row]) -> dict[str, Clock]:
    """The clock of each report of a run, the first with offset 0; empty where they share too few collectives.

    Args:
        collectives: Rows of table collectives of one run.
    """
    import numpy as np

    ends: dict[str, dict[tuple[int, int], int]] = {}
    for row in collectives:
        of_report = ends.setdefault(row["report"], {})
        of_report.setdefault((row["iteration"], row["number"]), row["start_ns"] + row["duration_ns"])
    reference = next(iter(ends.values()), {})
    clocks = {}
    for report, of_report in ends.items():
        common = sorted(reference.keys() & of_report.keys())
        if len(common) < _FEWEST:
            return {}
        own, theirs = (np.array([times[key] for key in common], np.float64) for times in (of_report, reference))
        at = float(np.median(own))
        drift, offset = _fit_line_without_outliers(own - at, own - theirs)
        rest = own - theirs - offset - drift * (own - at)
        deviation = _SCATTER * float(np.median(np.abs(rest)))
        clocks[report] = Clock(offset, drift, at, deviation / len(common) ** 0.5)
    return clocks


def _fit_line_without_outliers(x: Any, y: Any) -> tuple[float, float]:
    """Slope and height of a line through most of the points: least squares without outliers, twice."""
    import numpy as np

    rest = y - np.median(y)
    keep = np.ones(len(x), bool)
    slope = height = 0.0
    for _ in range(3):
        slope, height = np.polyfit(x[keep], y[keep], 1).tolist()
        rest = np.abs(y - height - slope * x)
        keep = rest <= max(_OUTLIER * _SCATTER * float(np.median(rest)), 1.0)
    return slope, height
