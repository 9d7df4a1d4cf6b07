"""The pages that `ncu --csv` prints, told by their header: which columns there are and which rows fit."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from nsw.readers.ncu.values import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.tables.data import Row

Kind = Literal["details", "summary", "raw", "source", "session"]

# Columns of the raw page that describe the launch; all others are metrics.
_LAUNCH: Final = frozenset(
    {
        "", "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
        "Stream", "Block Size", "Grid Size", "Device", "CC", "Unnamed: 0", "API Call ID",
        "Invocation", "Section Name",
    }
)  # fmt: skip
# Columns of every page that tell of the launch.
OWNER_COLUMNS: Final = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "NVTX", "NVTX 2",
)  # fmt: skip
# The columns with the NVTX ranges around a launch, by a part of their headings, count as columns of these names.
_RANGES: Final = (("NVTX", "Push/Pop_Range"), ("NVTX 2", "Start/Stop_Range"))
_RANGE: Final = re.compile(r'"(?:\d+:)?([^":]*):([^"]*)"')
_DEFAULT_DOMAIN: Final = "<default domain>"
_TELLING: Final = (("Kernel Name", "kernel"), ("Grid Size", "grid"), ("Block Size", "block_size"))
_SPREAD: Final = ("Minimum", "Maximum", "Average")
_VALUES: Final = frozenset({"Metric Unit", "Metric Value", *_SPREAD})  # titles of the pages with a metric a row
_OF_RULES: Final = frozenset({"Rule Type", "Rule Description"})
_DELIMITERS: Final = (",", ";", "\t")
_SESSION: Final = frozenset({"Launch Attribute", "Session Attribute", "Process Id", "Device Attribute"})
_SOURCE: Final = frozenset({"Address", "#", "Line", "Line No"})
# what one of the headers holds: looked for in every line, so plain texts and no expression
_HINTS: Final = ("Kernel Name", "Attribute", "Process Id", "Source")
# a header may be glued to the end of a progress line: `....100% - 8 passes"ID","Process ID",`
_GLUED: Final = re.compile(r'"ID"[,;\t]"Process ID"')


@dataclass(frozen=True)
class Page:
    """The header of one CSV: `quoted` when its fields are in quotes, as ncu writes them."""

    kind: Kind
    header: tuple[str, ...]
    delimiter: str
    quoted: bool

    @cached_property
    def at(self) -> dict[str, int]:
        """The place of each column, of the first one where a name repeats."""
        places = {name: i for i, name in reversed(list(enumerate(self.header)))}
        return places | {ours: i for ours, part in _RANGES for name, i in places.items() if part in name}

    @cached_property
    def least(self) -> int:
        """How many fields a row has at least: metric rows lack the columns of rules."""
        ends = {"details": ("Metric Value",), "summary": _SPREAD}.get(self.kind)
        return max(self.at[e] for e in ends) + 1 if ends else len(self.header)

    @cached_property
    def names_at(self) -> tuple[int, int]:
        """Where a details row's names begin, behind all that tells of the launch, and its value; zeros if mixed."""
        value = self.at["Metric Value"]
        named = [i for i in self._named if i < len(self.header)]
        owner = [self.at[c] for c in OWNER_COLUMNS if c in self.at]
        start = min(named, default=0)
        sorted_so = max(owner, default=0) < start and max(named, default=0) < value == self.least - 1
        return (start, value) if sorted_so and self.delimiter == "," else (0, 0)

    @cached_property
    def metrics(self) -> tuple[int, ...]:
        """The places of the metrics in a raw page; the columns of NVTX ranges are none."""
        return tuple(i for i, n in enumerate(self.header) if n not in _LAUNCH and "Domain:" not in n)

    def named(self, row: list[str]) -> list[str]:
        """Section, metric, label and unit of a row; empty where the page or the row lacks them."""
        return [row[i].strip() if i < len(row) else "" for i in self._named]

    def ruled(self, row: list[str]) -> list[str]:
        """Section, rule, type, description, kind and size of the speed-up; empty where there are none."""
        return [row[i].strip() if i < len(row) else "" for i in self._ruled]

    @cached_property
    def _named(self) -> tuple[int, ...]:
        return self._places("Section Name", "Metric Name", "Body Item Label", "Metric Unit")

    @cached_property
    def _ruled(self) -> tuple[int, ...]:
        return self._places(
            "Section Name", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"
        )

    def _places(self, *names: str) -> tuple[int, ...]:
        """Where columns are; a column that is missing is beyond every row."""
        return tuple(self.at.get(name, sys.maxsize) for name in names)

    def field(self, row: list[str], name: str) -> str | None:
        """A field by name; None where the row or the page lacks it or it is empty."""
        i = self.at.get(name)
        return (row[i].strip() or None) if i is not None and i < len(row) else None

    def is_sized(self, row: list[str]) -> bool:
        """Whether a row has as many fields as one of this page has.

        All of them, or (where the page has columns for rules) those up to the value and the empty one that a comma
        behind it makes. Any other number means that a field, or a word of the header, is missing.
        """
        size, width = len(row), len(self.header)
        if size >= width:
            return size == width or (self.kind == "raw" and not any(row[width:]))
        return size == self.least + 1 and not row[self.least] and self.kind == "details"

    def key(self, row: list[str]) -> tuple[str, str]:
        """What tells launches of one CSV apart: id and process."""
        at = self.at.get("Process ID")
        return row[self.at["ID"]].strip(), "" if at is None else row[at].strip()

    def is_of(self, row: list[str], launch: Row) -> bool:
        """Whether a row names the kernel and the sizes of a launch with its id."""
        return all(self.field(row, title) == launch.get(column) for title, column in _TELLING)

    def fits(self, row: list[str]) -> bool:
        """Whether these fields are a row of this page, not a line of the program that looks like one."""
        if not self.is_sized(row):
            return False
        pid = self.field(row, "Process ID")
        if pid is not None and whole(pid) is None:
            return False
        if self.kind == "summary":
            name, count = self.field(row, "Metric Name"), self.field(row, "Invocations")
            return name is not None and not name[0].isdigit() and whole(count) is not None
        return whole(self.field(row, "ID")) is not None

    def is_units(self, row: list[str]) -> bool:
        """Whether this is the second line of a raw page, which holds the units."""
        return len(row) == len(self.header) and not any(
            row[i] for i, n in enumerate(self.header) if n in _LAUNCH and n not in {"", "Unnamed: 0"}
        )

    def owner(self, row: list[str], block: int, rank: int | None) -> Row:
        """The columns of the launches table that a row tells."""
        return owner_of({name: self.field(row, name) for name in OWNER_COLUMNS}, block, rank)


def owner_of(cells: dict[str, str | None], block: int, rank: int | None) -> Row:
    """The columns of the launches table from the cells of `OWNER_COLUMNS`."""
    device = cells["Device"]
    return {
        "block": block,
        "rank": rank,
        "host": cells["Host Name"],
        "pid": whole(cells["Process ID"]),
        "device": whole(device),
        "launch_id": whole(cells["ID"]),
        "kernel": cells["Kernel Name"],
        "process": cells["Process Name"],
        "device_name": device if whole(device) is None else None,
        "compute_capability": cells["CC"],
        "context": whole(cells["Context"]),
        "stream": whole(cells["Stream"]),
        "grid": cells["Grid Size"],
        "block_size": cells["Block Size"],
        "nvtx": range_names(cells["NVTX"], cells["NVTX 2"]),
    }


def range_names(*cells: str | None) -> str | None:
    """The NVTX ranges of a launch, outermost first: `step > forward` of `0 "<default domain>:step:none:none" ...`.

    What is no such list stays as it is, so that a cell may pass here twice.
    """
    return " > ".join(name for cell in cells for name in _ranges((cell or "").strip())) or None


def _ranges(cell: str) -> Iterator[str]:
    found = _RANGE.findall(cell)
    if not found and cell:
        yield cell
    for domain, rest in found:
        parts = rest.split(":")
        while len(parts) > 1 and parts[-1] in {"none", ""}:  # payload, colour and message that a range has not
            parts.pop()
        name = ":".join(parts)
        yield name if domain == _DEFAULT_DOMAIN else f"{name}@{domain}"


def page_of(line: str) -> Page | None:
    """The page whose header this line is, or None."""
    if not any(hint in line for hint in _HINTS):
        return None
    if glued := _GLUED.search(line):
        line = line[glued.start() :]
    line = line.strip().lstrip("\ufeff")
    for delimiter in _DELIMITERS:
        if delimiter in line and (fields := split(line, delimiter)) and (kind := _kind(fields)):
            return Page(kind, tuple(fields), delimiter, line.startswith('"'))
    return None


def _kind(fields: list[str]) -> Kind | None:
    names = set(fields)
    if fields[0] in _SESSION and len(fields) > 1:
        return "session"
    if fields[0] in _SOURCE and "Source" in names:
        return "source"
    if "Kernel Name" not in names:
        return None
    if "Metric Name" not in names:
        return "raw" if "ID" in names and not names & _VALUES else None
    if "Metric Unit" not in names or len(names) < len(fields):
        return None  # ncu writes each title once, and always the unit: this header is damaged
    if "Rule Name" not in names and not names.isdisjoint(_OF_RULES):
        return None  # likewise
    if names.issuperset(_SPREAD):
        return "summary"
    return "details" if {"ID", "Metric Value"} <= names else None


def split(line: str, delimiter: str) -> list[str] | None:
    """The fields of one row, or None when it is no CSV."""
    try:
        return next(csv.reader((line,), delimiter=delimiter), None)
    except csv.Error:
        return None
