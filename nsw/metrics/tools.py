"""Which tool measures counters on which chip, and which of its versions, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from nsw.metrics.data_files import rows

if TYPE_CHECKING:
    from nsw.metrics.chips import Chip

Tool = Literal["ncu", "nvprof"]
_Version = tuple[int, ...]
_FIRST_OF_NCU: Final = (7, 0)  # below, nvprof is the better tool even where an old ncu would do


@dataclass(frozen=True, slots=True)
class Support:
    """Versions of a tool that measure a range of compute capabilities; `last` None: the newest does."""

    tool: Tool
    lowest: tuple[int, int]
    highest: tuple[int, int]
    first: str
    last: str | None


@cache
def support() -> tuple[Support, ...]:
    """What is known, oldest chips first."""
    return tuple(
        Support(
            tool_named(row["tool"]),
            _capability(row["from_capability"]), _capability(row["to_capability"]),
            row["first_version"], row["last_version"] or None,
        )
        for row in rows("tools.csv")
    )  # fmt: skip


def tool_named(name: str) -> Tool:
    """A tool by its name, which is checked elsewhere."""
    return "ncu" if name == "ncu" else "nvprof"


def tool_for(chip: Chip) -> Tool:
    """The tool that `auto` takes for counters: ncu from compute capability 7.0 on, nvprof below."""
    return "nvprof" if chip.capability is not None and chip.capability < _FIRST_OF_NCU else "ncu"


def tools_for(chip: Chip | None) -> tuple[Tool, ...]:
    """The tools that measure counters on a chip in some version, the one of `auto` first; all where it is not known."""
    if chip is None:
        return ("ncu", "nvprof")
    first = tool_for(chip)
    others: tuple[Tool, ...] = ("ncu", "nvprof")
    return (first, *(tool for tool in others if tool != first and _versions(tool, chip) is not None))


def unsupported(tool: Tool, chip: Chip, version: str | None = None) -> str | None:
    """Why a tool, or this version of it, does not measure a chip and what to do; None: it does, or nobody knows.

    Args:
        tool: The tool.
        chip: The chip.
        version: As the tool prints it: `2024.2.0.0` of ncu, `12.4.127` of nvprof (the toolkit's).
    """
    found = _versions(tool, chip)
    if found is None:
        if chip.capability is None or (tool == "ncu" and chip.capability > max(s.highest for s in support())):
            return None
        other = tool_for(chip)
        name = "{}.{}".format(*chip.capability)
        more = f": {other} does" if other != tool else ""
        return f"{tool} does not measure counters on {chip.name} (compute capability {name}){more}"
    mine = _numbers(version)
    if not mine:
        return None
    if mine < _numbers(found.first):
        return f"{tool} {version} is older than {chip.name}: {tool} {found.first} is the first that measures it"
    if found.last is not None and mine[: len(_numbers(found.last))] > _numbers(found.last):
        return f"{tool} {version} no longer measures {chip.name}: {tool} {found.last} is the last that does"
    return None


def _versions(tool: Tool, chip: Chip) -> Support | None:
    if chip.capability is None:
        return None
    return next((s for s in support() if s.tool == tool and s.lowest <= chip.capability <= s.highest), None)


def _capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _numbers(version: str | None) -> _Version:
    found = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(map(int, found[0].split("."))) if found else ()
