"""TAU's timers of one thread as functions: without call paths, and without counting twice what was sampled.

A call path (`main => f`) repeats the time of its last timer. With event-based sampling the time of a timer is there
three times: in the timer, in its [CONTEXT], and in the [SAMPLE] or [SUMMARY] of the functions that were hit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.tables import Row

__all__ = ["Timer", "functions"]

_PATH: Final = " => "
_KIND: Final = re.compile(r"\[(SAMPLE|SUMMARY|CONTEXT|UNWIND|CALLSITE)\] ")
# NAME [LANGUAGE] [{FILE} {LINE,COLUMN}-{LINE,COLUMN}]
_LOCATION: Final = re.compile(
    r"(.{1,8000}?)(?: C)? {0,2}\[\{([^{}]{0,4000})\} ?(?:\{(\d{1,9})(?:,\d{1,9})?\}(?:-\{\d{1,9},\d{1,9}\})?)?\]"
)
_UNRESOLVED: Final = "UNRESOLVED "


class Timer(NamedTuple):
    """One line of a profile; times or counts are in its metric's own unit."""

    name: str
    calls: float
    own_amount: float
    total: float
    pm: float | None = None


def functions(timers: Sequence[Timer], amount: Callable[[Timer], Row]) -> list[Row]:
    """The rows of a thread's timers.

    Args:
        timers: As the file has them.
        amount: The columns that hold a timer's own and whole time or count.
    """
    flat = [timer for timer in timers if _PATH not in timer.name and "  => " not in timer.name]
    of_kind: dict[str, list[Timer]] = {}
    for timer in flat:
        match = _KIND.match(timer.name)
        of_kind.setdefault(match[1] if match else "", []).append(timer)
    sampled = {_bare(timer.name): timer.total for timer in of_kind.get("CONTEXT", ())}
    rows = [
        {
            **_name_columns(timer.name),
            **_counts(timer),
            **amount(timer._replace(own_amount=_less(timer, sampled.get(timer.name)))),
        }
        for timer in of_kind.get("", ())
    ]
    return rows + [
        {**_name_columns(name), "samples": round(timer.calls), **amount(timer), "line": None}
        for name, timer in _summed(of_kind.get("SUMMARY", of_kind.get("SAMPLE", []))).items()
    ]


def _less(timer: Timer, sampled: float | None) -> float:
    """A timer's own time less what its samples say of the functions in it."""
    return timer.own_amount if sampled is None else max(0.0, timer.own_amount - sampled)


def _summed(timers: Iterable[Timer]) -> dict[str, Timer]:
    """The samples of each function, which TAU tells apart by their line."""
    merged: dict[str, Timer] = {}
    for timer in timers:
        name = re.sub(r" ?\{\d{1,9}\}\]$", "]", _bare(timer.name))
        existing = merged.get(name, Timer(name, 0, 0, 0))
        merged[name] = Timer(
            name, existing.calls + timer.calls, existing.own_amount + timer.own_amount, existing.total + timer.total
        )
    return merged


def _bare(name: str) -> str:
    return _KIND.sub("", name, count=1)


def _name_columns(name: str) -> Row:
    """Function, file and line, or module."""
    if name.startswith(_UNRESOLVED):
        return {"name": name.split(maxsplit=1)[0], "module": name.removeprefix(_UNRESOLVED).strip()}
    match = _LOCATION.fullmatch(name.strip())
    if match is None:
        return {"name": name.strip()}
    return {"name": match[1], "file": match[2] or None, "line": int(match[3]) if match[3] else None}


def _counts(timer: Timer) -> Row:
    return {"calls": round(timer.calls)} if float(timer.calls).is_integer() else {}
