"""Units as the tools print them -> base units: byte, ns, and a second below a slash."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Base = Literal[1000, 1024]

_SECONDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
    **dict.fromkeys(("us", "usecond"), 1e-6),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
}
_PREFIXES: Final = "kmgtpe"
_SIZE: Final = re.compile(r"([kmgtpe]?)(?:b|byte|bytes)\Z", re.IGNORECASE)
_CLOCK: Final = re.compile(r"([kmgt]?)hz\Z", re.IGNORECASE)


class Unit(NamedTuple):
    """What a unit measures, and how many base units it is."""

    kind: str
    factor: float


@cache
def parsed(text: str, base: Base = 1000) -> Unit:
    """`Gbyte/second` as (byte/s, 1e9), `us` as (ns, 1000), `Ghz` as (cycle/s, 1e9), `inst` as (inst, 1).

    Args:
        text: As printed.
        base: What the tool's K of a size is: 1000 of ncu, 1024 of nvprof.
    """
    over, slash, under = text.strip().partition("/")
    top = _part(over.strip(), base)
    if not slash:
        return top
    name = under.strip().lower()
    if name in _SECONDS:
        return Unit(f"{top.kind}/s", top.factor / _SECONDS[name])
    bottom = _part(under.strip(), base)
    return Unit(f"{top.kind}/{bottom.kind}", top.factor / bottom.factor)


def _part(text: str, base: Base) -> Unit:
    lower = text.lower()
    if lower in _SECONDS:
        return Unit("ns", round(_SECONDS[lower] * 1e9))
    if found := _SIZE.match(text):
        return Unit("byte", float(base ** (_PREFIXES.index(found[1].lower()) + 1 if found[1] else 0)))
    if found := _CLOCK.match(text):
        return Unit("cycle/s", float(1000 ** (_PREFIXES.index(found[1].lower()) + 1 if found[1] else 0)))
    return Unit(lower, 1.0)
