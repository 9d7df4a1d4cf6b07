"""Whether two sides can be compared: what they were measured on, side by side, before any verdict.

Unlike chips are refused: their ratio says what the machine does, not the program. All else that differs is said above
the verdict, and apart from it how the programs differ, which is usually what is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.wording import and_more

if TYPE_CHECKING:
    from nsw.analysis.sides import Side

__all__ = ["CHIP", "COMMIT", "FILES", "ORDER", "differences", "programs", "refusal"]

CHIP: Final = "chip"
COMMIT: Final = "commit"
FILES: Final = "files"
ORDER: Final = (
    CHIP, "driver", "SM clock, at most", "memory clock", "power limit", "persistence mode", "ECC", "MIG", "CPU",
    "modules", "site", "nodes", "layout", "nsys", "ncu", "nvprof", "nvcc", "nsw", "command",
)  # fmt: skip
_UNKNOWN: Final = "not known"
_FILES_NAMED: Final = 2  # files by name


def refusal(first: Side, second: Side) -> str | None:
    """Why the two cannot be compared; None where they can."""
    chips = [side.conditions.get(CHIP) for side in (first, second)]
    if all(chips) and chips[0] != chips[1]:
        return f"the chips are unlike: {first.name} ran on {chips[0]}, {second.name} on {chips[1]}"
    return None


def differences(first: Side, second: Side) -> list[str]:
    """What differs between the two beside the program, a line each: `driver: 550.54 and 560.28`."""
    first_conditions, theirs = first.conditions, second.conditions
    names = [*ORDER, *sorted({*first_conditions, *theirs} - {*ORDER, COMMIT, FILES})]
    return [
        f"{name}: {first_conditions.get(name, _UNKNOWN)} and {theirs.get(name, _UNKNOWN)}"
        for name in names
        if first_conditions.get(name) != theirs.get(name)
    ]


def programs(first: Side, second: Side) -> str | None:
    """How the programs differ: their commits, and which files changed; None where they are the same, or not known."""
    commits = [side.conditions.get(COMMIT) for side in (first, second)]
    files = [side.conditions.get(FILES) for side in (first, second)]
    parts = [" and ".join(commit or _UNKNOWN for commit in commits)] if commits[0] != commits[1] else []
    if None not in files and files[0] != files[1]:
        hashes = [dict(line.rsplit("=", 1) for line in (text or "").split("\n")) for text in files]
        changed = [name for name in sorted({*hashes[0], *hashes[1]}) if hashes[0].get(name) != hashes[1].get(name)]
        parts.append(f"{and_more(changed, _FILES_NAMED)} changed")
    return ", ".join(parts) or None
