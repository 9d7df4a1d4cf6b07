"""The causes that nsw names: what shows each, what looks alike, its remedies and its bound, read from causes.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cause", "Group", "causes"]

Group = Literal["kernels", "timeline", "gpus", "host", "healthy"]
_ANY: Final = "any"


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why a program is slow, or what binds a healthy one.

    Attributes:
        id: In kebab-case, the same in each version of nsw.
        group: What it is about; `healthy`: what binds where nothing is wasted.
        cause: What is wrong, in a sentence without its full stop.
        shows: What in the data shows it.
        alike: What looks alike, and how it is told from it; empty: nothing.
        measured_by: The kind of pass that gives the data: counters, timeline, host.
        bound: The most that a cure wins.
        do: What to try, in a few words.
        remedies: What to try, in whole sentences, by framework: cuda, openacc, openmp, pytorch, jax, python, triton, or
            of a library's kernel; `any` for all others.
        asks: What a second stage of counters measures of such a kernel, as a recipe's `metrics` name it; empty:
            it would tell nothing more.
        memory: The memory of whose accesses the worst is looked for in the source page: global, shared, local;
            empty: none.
    """

    id: str
    group: Group
    cause: str
    shows: str
    alike: str
    measured_by: str
    bound: str
    do: str
    remedies: Mapping[str, str]
    asks: tuple[str, ...]
    memory: str

    def remedy(self, framework: str = _ANY) -> str:
        """What to try, in whole sentences, in a framework's words where they differ."""
        return self.remedies.get(framework) or self.remedies[_ANY]


@cache
def causes() -> Mapping[str, Cause]:
    """Every cause by its id, in the order of the table."""
    table = tomllib.loads(files("nsw.analysis.rules").joinpath("causes.toml").read_text(encoding="utf-8"))
    return {
        name: Cause(
            name, row["group"], row["cause"], row["shows"], row["alike"], row["pass"], row["bound"], row["do"],
            row["remedy"], tuple(row.get("asks", ())), row.get("memory", ""),
        )
        for name, row in table.items()
    }  # fmt: skip
