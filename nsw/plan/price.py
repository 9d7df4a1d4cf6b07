"""What a counters pass costs at most, before it is known how long its kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.metrics import find_chip, for_ncu, for_nvprof
from nsw.metrics.replay_passes import passes
from nsw.recipe.counters import AT_MOST, SAMPLE

_SHOWN = 6  # metrics that are left out for the same reason

if TYPE_CHECKING:
    from nsw.recipe.counters import CountersPass


def notes(one: CountersPass, tool: str | None, chip: str | None) -> list[str]:
    """What is worth knowing of a counters pass before it runs: its price, and metrics that this chip does not have."""
    asked = (for_nvprof if tool == "nvprof" else for_ncu)(one.metrics, find_chip(chip))
    reasons: dict[str, list[str]] = {}
    for name, why in asked.absent.items():
        reasons.setdefault(why, []).append(name)
    found = [
        f"{one.name}: left out ({why}): {', '.join(names[:_SHOWN])}"
        + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        for why, names in reasons.items()
    ]
    told = price(one, tool, chip)
    return [told, *found] if told else found


def price(one: CountersPass, tool: str | None, chip: str | None) -> str | None:
    """A sentence on launches, passes and time; None where nothing is known: nvprof, and ranges."""
    if tool != "ncu" or one.replay != "kernel":
        return None
    found = passes(one.metrics, find_chip(chip))
    where = "measured on gh100" if found.measured else "as on gh100: an estimate"
    most = f"at most {found.at_most} pass{'es' if found.at_most != 1 else ''} a launch ({where})"
    each = f"{one.name}: {most}, about {found.seconds_a_launch:.1g} s each"
    launches = _launches(one)
    if launches is None:
        return f"{each}, of every launch that its filter matches"
    seconds = launches * found.seconds_a_launch
    return f"{each}; some {launches} launches a run, {seconds:.0f} s and the program's own time"


def _launches(one: CountersPass) -> int | None:
    """How many launches are measured, as far as the recipe says; a guided pass's ordinals may bring more along."""
    kernels = one.kernels
    if one.is_guided:
        named = len(kernels.names) if kernels.names else None
        most = kernels.top or kernels.at_most or named or AT_MOST
        return most * (one.launches.sample or SAMPLE)
    if kernels.names and one.launches.count is not None:
        return len(kernels.names) * one.launches.count
    return None
