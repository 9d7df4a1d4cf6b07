"""Choices that a lockfile records: whether those of an earlier campaign hold here, and what a later one gets.

They hold for the same chip, versions of tools and driver, files of the application, and passes of the recipe.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsw.campaign.ledger_needs import Choice
from nsw.recipe.model import LockedChoice, LockedChoices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NAME = 1  # column of gpus.csv


@dataclass(frozen=True, slots=True)
class Basis:
    """What a choice follows from beside the recipe.

    Attributes:
        chip: Names of the GPUs that the jobs met, else the site's; None where neither is known.
        tools: Versions of profilers and driver, by name.
        files: SHA-256 of each file of the application, by name.
        passes: The recipe's passes as data.
    """

    chip: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    passes: Sequence[Any] = ()


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()


def chips_of(provenance: str) -> str | None:
    """Names of GPUs in what the jobs wrote; None where no nvidia-smi answered."""
    rows = csv.reader(provenance.partition("\n=\n")[2].splitlines(), skipinitialspace=True)
    names = {row[_NAME] for row in rows if len(row) > _NAME and row[0].isdigit()}
    return " | ".join(sorted(names)) or None


def recorded(choices: Mapping[str, Choice], basis: Basis, launches: Sequence[Mapping[str, Any]] = ()) -> LockedChoices:
    """What a lockfile records of a campaign's choices.

    Args:
        choices: By run.
        basis: What they follow from.
        launches: The rows of table chosen_launches.
    """
    chosen = [row for row in launches if row.get("ordinal") is not None]
    return LockedChoices(
        chip=basis.chip,
        tools=dict(basis.tools),
        files=_digest(dict(basis.files)),
        passes=_digest(list(basis.passes)),
        runs={
            run: LockedChoice(
                arguments=list(one.arguments),
                limit_s=one.limit_s,
                source=one.source,
                note=one.note,
                kernels=list(
                    dict.fromkeys(row["mangled_name"] or row["short_name"] for row in chosen if row["run"] == run)
                ),
                ordinals=sorted({int(row["ordinal"]) for row in chosen if row["run"] == run}),
            )
            for run, one in choices.items()
        },
    )


def choice_of(found: LockedChoices, run: str) -> Choice | None:
    """What was chosen for a run of that id then; None where nothing was."""
    one = found.runs.get(run)
    return None if one is None else Choice(tuple(one.arguments), one.limit_s, one.source, one.note)


def why_not(found: LockedChoices, now: Basis) -> str | None:
    """Why recorded choices do not hold here; None where they do."""
    return "; ".join(_differences(found, now)) or None


def _differences(found: LockedChoices, now: Basis) -> Iterator[str]:
    if found.chip != now.chip:
        yield f"the chip was {found.chip or 'not known'}, and here it is {now.chip or 'not known'}"
    for name in sorted({*found.tools, *now.tools}):
        old, new = found.tools.get(name, "not known"), now.tools.get(name, "not known")
        if old != new:
            yield f"{name} was {old}, and here it is {new}"
    if found.files != _digest(dict(now.files)):
        yield "files of the application have changed"
    if found.passes != _digest(list(now.passes)):
        yield "the passes of the recipe have changed"
