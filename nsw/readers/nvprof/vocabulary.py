"""How nvprof names CUDA calls, GPUs, OpenACC events and samples of clocks, and what its clock can tell."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from nsw.readers.text.quantities import Quantity, duration, parse_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "QUANTITIES", "SAMPLES", "Api", "Sampled", "Sum", "api_name", "exact_to_a_ns", "is_call", "openacc_kind",
    "split_device", "system_rows", "whole_ns",
]  # fmt: skip

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
    minimum: float = float("inf")
    maximum: float = float("-inf")

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self.total += value
        self.minimum, self.maximum = min(self.minimum, value), max(self.maximum, value)


@dataclass(slots=True)
class Sampled:
    """Samples of the quantities of several GPUs, summed."""

    _sums: dict[tuple[tuple[tuple[str, Any], ...], str, str], Sum] = field(default_factory=dict)

    def add(self, origin: dict[str, Any], name: str, value: str) -> bool:
        """A row of a trace; whether its value is what its name says."""
        quantities = SAMPLES[name]
        read = [parse_integer(part) for part in value.split("/")]
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
        fact_rows = []
        for (origin, key, unit), quantity_sum in self._sums.items():
            values = [
                Quantity(v, None)
                for v in (quantity_sum.total / quantity_sum.count, quantity_sum.minimum, quantity_sum.maximum)
            ]
            fact_rows += system_rows(dict(origin), (key, unit), quantity_sum.count, values)
        return fact_rows


def system_rows(
    origin: dict[str, Any], quantity: tuple[str, str], count: int, values: list[Quantity]
) -> list[dict[str, Any]]:
    """The facts of a quantity; `values` are mean, least, greatest."""
    key, unit = quantity
    rows = [{**origin, "key": f"system_{key}_samples", "value": float(count)}]
    for statistic, value in zip(("avg", "min", "max"), values, strict=True):
        rows.append(
            {**origin, "key": f"system_{key}_{statistic}", "value": value.value, "value_pm": value.pm, "unit": unit}
        )
    return rows


_ORDINAL = re.compile(r"\((\d{1,4})\)\Z")
_CUT_ORDINAL = re.compile(r"\(\d{0,3}\Z")  # text traces print 15 characters of it
_LONGEST_ORDINAL = 4


@lru_cache(1024)
def split_device(text: str) -> tuple[str | None, int | None]:
    """`Tesla V100-SXM2-16GB (0)` as name and ordinal; the ordinal is None where it is not printed."""
    text = text.strip().strip('"')
    if text in {"", "-"}:
        return None, None
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ORDINAL:
        return None, int(text)  # of CUDA 5.0
    if (match := _ORDINAL.search(text)) is not None:
        return text[: match.start()].rstrip(), int(match[1])
    cut = _CUT_ORDINAL.search(text)
    return (text[: cut.start()].rstrip() if cut else text), None


def openacc_kind(name: str) -> str:
    """compute, data or other, by the event's name."""
    event = name.partition("@")[0].partition("[")[0]  # less the construct of --print-openacc-constructs
    if event in {"acc_compute_construct", "acc_enqueue_launch"}:
        return "compute"
    data = ("data", "upload", "download", "alloc", "create", "delete", "update")
    return "data" if any(word in event for word in data) else "other"


def whole_ns(text: str, unit: str | None = None) -> tuple[int | None, float | None]:
    """Nanoseconds as an integer, half to even where the print is finer, and the twin; None where there is no time.

    Args:
        text: As printed: `4.2567ms`, or `4.2567` with the unit given.
        unit: The unit of the column.
    """
    time = duration(text, unit)
    return (None, None) if time is None else (round(time.value), exact_to_a_ns(time.pm))


def exact_to_a_ns(pm: float | None) -> float | None:
    """None for a half-width that a clock of whole ns cannot have."""
    return None if pm is None or pm <= 0.5 else pm


Api: TypeAlias = Literal["runtime", "driver"]

_CALL_VERSION: Final = re.compile(r"_v\d+\Z")


def api_name(api: Api, cbid: Any) -> str:
    """The call behind a callback id; an id that CUDA 12.5 does not know is named by its number."""
    return _calls().get((api, cbid), f"cbid {cbid}")


@cache
def is_call(name: str) -> bool:
    """Whether this is the name of a CUDA runtime or driver call, not of a kernel."""
    return name.startswith("cu") and _CALL_VERSION.sub("", name) in _names()


@cache
def _names() -> frozenset[str]:
    return frozenset(_CALL_VERSION.sub("", name) for name in _calls().values())


@cache
def _calls() -> Mapping[tuple[str, int], str]:
    text = files("nsw.readers").joinpath("data/cuda_cbid.csv").read_text(encoding="ascii")
    return {(row["api"], int(row["cbid"])): row["name"] for row in csv.DictReader(text.splitlines())}
