"""Clocks, temperature, power and fan of the GPUs that nvprof sampled (--system-profiling on), as facts of each GPU.

Single samples are rows of a trace, `1312/877` as `[SM/Memory Clock (MHz)]`, or records of a database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from nsw.readers.text.quantities import Quantity, whole

# As the summary names it -> key and unit.
QUANTITIES: Final = {
    "SM Clock (MHz)": ("sm_clock", "MHz"),
    "Memory Clock (MHz)": ("memory_clock", "MHz"),
    "Temperature (C)": ("temperature", "C"),
    "Power (mW)": ("power", "mW"),
    "Fan (%)": ("fan", "%"),
}
# As a trace names it -> the quantities of its value, which a stroke parts.
SAMPLES: Final = {
    "[SM/Memory Clock (MHz)]": (("sm_clock", "MHz"), ("memory_clock", "MHz")),
    "[Temperature (C)]": (("temperature", "C"),),
    "[Power/Limit (mW)]": (("power", "mW"), ("power_limit", "mW")),
    "[Fan Speed (%)]": (("fan", "%"),),
}


@dataclass(slots=True)
class Sum:
    """Values that are only counted, added and compared."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)


@dataclass(slots=True)
class Sampled:
    """Samples of the quantities of several GPUs, summed."""

    _sums: dict[tuple[tuple[tuple[str, Any], ...], str, str], Sum] = field(default_factory=dict)

    def add(self, origin: dict[str, Any], name: str, value: str) -> bool:
        """A row of a trace; whether its value is what its name says."""
        quantities = SAMPLES[name]
        read = [whole(part) for part in value.split("/")]
        if len(read) != len(quantities) or None in read:
            return False
        for quantity, sample in zip(quantities, read, strict=True):
            self.add_sample(origin, quantity, float(sample or 0))
        return True

    def add_sample(self, origin: dict[str, Any], quantity: tuple[str, str], value: float) -> None:
        """One value of one quantity."""
        self._sums.setdefault((tuple(origin.items()), *quantity), Sum()).add(value)

    def facts(self) -> list[dict[str, Any]]:
        """How many, their mean, least and greatest of each quantity."""
        found = []
        for (origin, key, unit), of in self._sums.items():
            values = [Quantity(v, None) for v in (of.total / of.count, of.least, of.most)]
            found += system_rows(dict(origin), (key, unit), of.count, values)
        return found


def system_rows(
    origin: dict[str, Any], quantity: tuple[str, str], count: int, values: list[Quantity]
) -> list[dict[str, Any]]:
    """The facts of a quantity; `values` are mean, least, greatest."""
    key, unit = quantity
    rows = [{**origin, "key": f"system_{key}_samples", "value": float(count)}]
    for which, value in zip(("avg", "min", "max"), values, strict=True):
        rows.append(
            {**origin, "key": f"system_{key}_{which}", "value": value.value, "value_pm": value.pm, "unit": unit}
        )
    return rows
