"""How much figures scatter where nothing changed, measured by pairs of the same program and kept for later verdicts.

`noise.json` in the user's state folder holds it by site, chip and recipe: a floor of another machine or program would
say nothing of this one.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass
from math import log
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.certainty import Floor
from nsw.errors import CampaignError
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Noise", "floors", "measure", "store"]

_FEWEST: Final = 3  # pairs


@dataclass(frozen=True, slots=True)
class Noise:
    """What pairs of the same program showed of a figure: standard deviations of logarithms, by so many pairs."""

    figure: str
    pair: float
    run: float
    pairs: int


def measure(figure: str, pairs: Sequence[tuple[float, float]]) -> Noise | None:
    """The scatter of a figure's pairs; None of fewer than three, whose scatter says little."""
    if len(pairs) < _FEWEST:
        return None
    ratios = [log(second / first) for first, second in pairs]
    logs = [[log(value) for value in side] for side in zip(*pairs, strict=True)]
    run = statistics.fmean(statistics.variance(side) for side in logs) ** 0.5
    return Noise(figure, statistics.stdev(ratios), run, len(pairs))


def store(site: str, chip: str | None, recipe: str, noises: Sequence[Noise]) -> Path:
    """Keep it, in place of what was known of this site, chip and recipe; the file."""
    file = user_folder("state") / "noise.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = _known()
    known[_key(site, chip, recipe)] = [asdict(noise) for noise in noises]
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(file)
    return file


def floors(site: str, chip: str | None, recipe: str) -> Mapping[str, Floor]:
    """The noise floor of each figure, as far as it was measured there."""
    return {
        noise["figure"]: Floor(noise["pair"], noise["run"], noise["pairs"] - 1)
        for noise in _known().get(_key(site, chip, recipe), ())
    }


def _key(site: str, chip: str | None, recipe: str) -> str:
    return f"{site} / {chip or 'no GPU'} / {recipe}"


def _known() -> dict[str, list[dict[str, Any]]]:
    try:
        file = user_folder("state") / "noise.json"
        text = file.read_text(encoding="utf-8")
    except OSError:  # nothing was measured yet, or there is no home
        return {}
    try:
        known: dict[str, list[dict[str, Any]]] = json.loads(text)
    except ValueError as fault:
        raise CampaignError(f"{file} is damaged: {fault}", hint="remove it; `nsw noise` measures again") from None
    return known
