"""The metric catalogue: portable names, their meaning and unit, and how each tool and chip measures them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from nsw.metrics.chips import Chip, chips
from nsw.metrics.data_files import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVEL = "level"  # nvprof prints 0 to 10, of which each step is a tenth of the peak


@dataclass(frozen=True, slots=True)
class Measured:
    """How ncu measures a metric on some chips.

    Attributes:
        expressions: Over ncu's names, in ncu's base units; the first is what is asked for, the others say the same of
            what a report has instead. None: not on these chips.
        why: Why it is not there, or why it differs from other chips; empty where it does not.
    """

    expressions: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Portable name; nvprof's where nvprof has it.
        family: What it is about: occupancy, dram, flop, stalls ...
        unit: Of the portable value: %, byte, byte/s, ns, inst/cycle ...; empty: a plain ratio.
        meaning: In a line.
        nvprof: nvprof's name, or an expression over several; None: nvprof does not measure it.
        times: What nvprof's value is multiplied by; `level`: it is one of 0 to 10.
        ncu: How ncu measures it where `by_chip` says nothing else.
        by_chip: How ncu measures it on chips that differ.
    """

    name: str
    family: str
    unit: str
    meaning: str
    nvprof: str | None
    times: str
    ncu: Measured
    by_chip: Mapping[str, Measured] = field(default_factory=dict)

    def on(self, chip: Chip | None) -> Measured:
        """How ncu measures it on a chip; None: on most."""
        if chip is None or chip.names is None:
            return self.ncu
        return self.by_chip.get(chip.names, self.ncu)


@dataclass(frozen=True, slots=True)
class Group:
    """A name for several metrics."""

    name: str
    meaning: str
    metrics: tuple[str, ...]


@cache
def catalogue() -> Mapping[str, Metric]:
    """Every metric by its portable name."""
    exceptions: dict[str, dict[str, Measured]] = {}
    for row in rows("by_chip.csv"):
        measured = Measured(_alternatives(row["ncu"]), row["why"])
        exceptions.setdefault(row["name"], {}).update(dict.fromkeys(row["chips"].split(), measured))
    found = {}
    for row in rows("catalogue.csv"):
        by_chip = exceptions.get(row["name"], {})
        everywhere = by_chip.pop("*", None) or Measured(_alternatives(row["ncu"]))
        found[row["name"]] = Metric(
            row["name"], row["family"], row["unit"], row["meaning"], row["nvprof"] or None, row["times"],
            everywhere, by_chip,
        )  # fmt: skip
    return found


def _alternatives(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())


@cache
def groups() -> Mapping[str, Group]:
    """Every group by its name."""
    return {r["group"]: Group(r["group"], r["meaning"], tuple(r["metrics"].split())) for r in rows("groups.csv")}


@cache
def aliases() -> Mapping[str, str]:
    """Other names of portable metrics, as ncu's pages and other tools call them."""
    return {row["alias"]: row["name"] for row in rows("aliases.csv")}


def find(name: str) -> Metric | None:
    """The metric of a portable name or an alias."""
    return catalogue().get(aliases().get(name, name))


def measured_chips() -> tuple[Chip, ...]:
    """The chips whose list of ncu's metric names nsw has, oldest first."""
    return tuple(chip for chip in chips().values() if chip.names == chip.name)
