"""Whether two sides can be compared: what they were measured on, side by side, before any verdict.

Unlike chips are refused: their ratio says what the machine does, not the program. All else that differs is said above
the verdict, the program's own version last, since that is usually what is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.wording import and_more

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.analysis.sides import Side

__all__ = ["CHIP", "COMMIT", "FILES", "ORDER", "differences", "refusal"]

CHIP: Final = "chip"
COMMIT: Final = "commit"
FILES: Final = "files"
ORDER: Final = (
    CHIP, "driver", "SM clock, at most", "memory clock", "power limit", "persistence mode", "ECC", "MIG", "CPU",
    "modules", "site", "nodes", "layout", "nsys", "ncu", "nvprof", "nvcc", "nsw", "command", COMMIT, FILES,
)  # fmt: skip
_UNKNOWN: Final = "not known"
_SHOWN: Final = 2  # files by name


def refusal(first: Side, second: Side) -> str | None:
    """Why the two cannot be compared; None where they can."""
    chips = [side.conditions.get(CHIP) for side in (first, second)]
    if all(chips) and chips[0] != chips[1]:
        return f"the chips are unlike: {first.name} ran on {chips[0]}, {second.name} on {chips[1]}"
    return None


def differences(first: Side, second: Side) -> list[str]:
    """What differs between the two, a line each: `driver: 550.54 and 560.28`."""
    mine, theirs = first.conditions, second.conditions
    names = [*ORDER, *sorted({*mine, *theirs} - set(ORDER))]
    return [
        f"{name}: {mine.get(name, _UNKNOWN)} and {theirs.get(name, _UNKNOWN)}"
        for name in names
        if name != FILES and (name in mine or name in theirs) and mine.get(name) != theirs.get(name)
    ] + list(_of_files(mine.get(FILES), theirs.get(FILES)))


def _of_files(first: str | None, second: str | None) -> Iterator[str]:
    """Which of the program's files differ, by their hashes."""
    if first is None or second is None or first == second:
        return
    hashes: Sequence[Mapping[str, str]] = [
        dict(word.rsplit("=", 1) for word in text.split("\n")) for text in (first, second)
    ]
    changed = [name for name in sorted({*hashes[0], *hashes[1]}) if hashes[0].get(name) != hashes[1].get(name)]
    yield f"the program: {and_more(changed, _SHOWN)} changed"
