"""How much figures scatter where nothing changed, measured by pairs of the same program and kept for later verdicts.

`noise.json` in the user's state folder holds it by site, chip and recipe: a floor of another machine or program would
say nothing of this one.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass
from math import log
from typing import TYPE_CHECKING, Any, Final

from nsw import safe_files
from nsw.analysis.certainty import Floor
from nsw.errors import CampaignError
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["PAIRS", "Noise", "floors", "measure", "store"]

PAIRS: Final = 12  # of which a floor is measured, unless somebody asks for more


@dataclass(frozen=True, slots=True)
class Noise:
    """How much a figure scatters: standard deviations of logarithms of a pair's ratio and of a run."""

    figure: str
    pair: float
    run: float
    freedom: int


def measure(figure: str, cases: Sequence[Sequence[tuple[float, float]]]) -> Noise | None:
    """The scatter of a figure's pairs around the mean of their case; None where no case has two.

    Args:
        figure: Its name.
        cases: The values of the pairs of each case.
    """
    several = [pairs for pairs in cases if len(pairs) > 1]
    freedom = sum(len(pairs) - 1 for pairs in several)
    if not freedom:
        return None
    ratios = [[log(second / first) for first, second in pairs] for pairs in several]
    sides = [[log(pair[side]) for pair in pairs] for pairs in several for side in (0, 1)]
    return Noise(figure, _scatter(ratios), _scatter(sides), freedom)


def _scatter(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation within groups, all of them together."""
    squares = sum(statistics.variance(group) * (len(group) - 1) for group in groups)
    return math.sqrt(squares / sum(len(group) - 1 for group in groups))


def store(site: str, chip: str | None, recipe: str, noises: Sequence[Noise]) -> Path:
    """Keep it, in place of what was known of this site, chip and recipe; the file."""
    file = user_folder("state") / "noise.json"
    safe_files.make_folders(file.parent, 0o700)
    noises_by_key = _read_noises()
    noises_by_key[_key(site, chip, recipe)] = [asdict(noise) for noise in noises]
    safe_files.write_text(file, json.dumps(noises_by_key, indent=1, sort_keys=True) + "\n")
    return file


def floors(site: str, chip: str | None, recipe: str) -> Mapping[str, Floor]:
    """The noise floor of each figure, as far as it was measured there."""
    return {
        noise["figure"]: Floor(noise["pair"], noise["run"], noise["freedom"])
        for noise in _read_noises().get(_key(site, chip, recipe), ())
    }


def _key(site: str, chip: str | None, recipe: str) -> str:
    return f"{site} / {chip or 'no GPU'} / {recipe}"


def _read_noises() -> dict[str, list[dict[str, Any]]]:
    try:
        file = user_folder("state") / "noise.json"
        text = safe_files.read_text(file)
    except OSError:  # nothing was measured yet, or there is no home
        return {}
    try:
        noises: dict[str, list[dict[str, Any]]] = json.loads(text)
    except ValueError as fault:
        raise CampaignError(f"{file} is damaged: {fault}", hint="remove it; `nsw noise` measures again") from None
    return noises
