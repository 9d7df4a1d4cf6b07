"""What a counters pass costs, before it is known how long its kernels take: expected, and at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.metrics import find_chip
from nsw.metrics.replay_passes import passes
from nsw.plan.counters_request import WHOLE_PROGRAM, requested
from nsw.recipe.counters import AT_MOST, SAMPLE

_SHOWN: Final = 6  # metrics that are left out for the same reason
# launches measured for each chosen one, as ncu measures each ordinal of every kernel: usual, and most (docs/gpu.md)
_ALONG: Final = 1.6
_ALONG_AT_MOST: Final = 2.5

if TYPE_CHECKING:
    from nsw.recipe.counters import CountersPass


def notes(one: CountersPass, tool: str | None, chip: str | None) -> list[str]:
    """What is worth knowing of a counters pass before it runs: its price, and metrics that this chip does not have."""
    asked = requested(one, tool, chip)
    reasons: dict[str, list[str]] = {}
    for name, why in asked.absent.items():
        reasons.setdefault(why, []).append(name)
    found = [
        f"{one.name}: left out ({why}): {', '.join(names[:_SHOWN])}"
        + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        for why, names in reasons.items()
    ]
    if chip is not None and find_chip(chip) is None:
        found.append(f"{one.name}: nsw knows no chip {chip}: metrics are not checked before a run has met the GPU")
    return [price(one, tool, chip), *found]


def price(one: CountersPass, tool: str | None, chip: str | None) -> str:
    """A sentence on launches, passes and time, as far as they are known."""
    if tool != "ncu":
        return f"{one.name}: how often {tool} runs a launch again was not measured: only the limit bounds it"
    found = passes(one.metrics, find_chip(chip))
    if one.replay != "kernel":
        bound = f" to {found.at_most}" if found.at_most != found.expected else ""
        again = "the whole program is run" if one.replay in WHOLE_PROGRAM else "the range is run"
        return f"{one.name}: {again} some {found.expected}{bound} times (as a launch on gh100: an estimate)"
    where = "measured on gh100" if found.measured else "as on gh100: an estimate"
    count = f"{found.expected} pass{'es' if found.expected != 1 else ''}"
    bound = f", at most {found.at_most}" if found.at_most != found.expected else ""
    each = found.expected_s(1) - found.expected_s(0)
    head = f"{one.name}: {count}{bound} and about {each:.1g} s a launch ({where})"
    chosen = _launches(one)
    if chosen is None:
        return f"{head}, of every launch that its filter matches"
    some, most = (round(_ALONG * chosen), round(_ALONG_AT_MOST * chosen)) if one.is_guided else (chosen, chosen)
    seconds = f"about {found.expected_s(some):.0f} s and the program's own time, at most {found.at_most_s(most):.0f} s"
    if some == chosen:
        return f"{head}; {chosen} launches a run, {seconds}"
    return (
        f"{head}; {chosen} launches are chosen a run, and some {some} measured, since ncu takes one list of ordinals:"
        f" {seconds}"
    )


def _launches(one: CountersPass) -> int | None:
    """How many launches are chosen, as far as the recipe says."""
    kernels = one.kernels
    if one.is_guided:
        named = len(kernels.names) if kernels.names else None
        most = kernels.top or kernels.at_most or named or AT_MOST
        return most * (one.launches.sample or SAMPLE)
    if kernels.names and one.launches.count is not None:
        return len(kernels.names) * one.launches.count
    return None
