"""nvprof's CPU samples from the top down: a time holds that of all callees, and a function is told for each way there.

The time of its own is what its callees leave of it. All times are of whole samples, and printed with five or six
digits: what is less than their rounding is no sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

_Key: TypeAlias = "tuple[str, str | None]"  # the function and its module
Function: TypeAlias = "tuple[str, str | None, float | None, float]"  # its own seconds, and with its callees
HALF_A_SHARE: Final = 0.005 + 1e-9  # %, of the printed two digits
_DEEPEST: Final = 4096


class Damaged(Exception):  # noqa: N818  it is caught next door, and says what is wrong with the table
    """The tree is not whole; the text says why."""


@dataclass(slots=True)
class _Open:
    key: _Key
    time: float
    half: float
    callees: float = 0.0


@dataclass(slots=True)
class _Sum:
    own: float = 0.0
    half: float = 0.0  # of all the digits that `own` comes from
    inclusive: float = 0.0


@dataclass(slots=True)
class CallTree:
    """A tree of calls, added line by line."""

    _path: list[_Open] = field(default_factory=list)
    _sums: dict[_Key, _Sum] = field(default_factory=dict)
    _roots: int = 0
    _share: float = 0.0  # of the roots of the first thread
    _threads: int = 0
    _fault: str = ""  # the first

    def begin_thread(self) -> None:
        """What follows is of another thread."""
        self._threads += 1
        self._leave(0)

    def add(self, depth: int, name: str, module: str | None, time: tuple[float, float], share: float) -> bool:
        """One line: its time and half of the last digit, in ns; whether that depth is possible here."""
        if depth > len(self._path) or depth > _DEEPEST:
            return False
        self._leave(depth)
        key = name, module
        total = self._sums.setdefault(key, _Sum())
        total.half += time[1]
        total.own += time[0]
        if all(key != above.key for above in self._path):
            total.inclusive += time[0]
        if self._path:
            caller = self._path[-1]
            caller.callees += time[0]
            caller.half += time[1]
            self._sums[caller.key].own -= time[0]
            self._sums[caller.key].half += time[1]
        elif self._threads <= 1:
            self._roots += 1
            self._share += share
        self._path.append(_Open(key, *time))
        return True

    def _leave(self, depth: int) -> None:
        for left in self._path[depth:]:
            if left.callees > left.time + left.half:
                self._fault = self._fault or f"the callees of {left.key[0][:80]!r} took more time than it did"
        del self._path[depth:]

    def functions(self, hertz: int) -> list[Function]:
        """The functions, the longest first; hertz is how often a sample was taken.

        Raises:
            Damaged: Lines are missing, or times do not add up.
        """
        self._leave(0)
        if self._fault:
            raise Damaged(self._fault)
        if abs(self._share - 100.0) > (self._roots + 1) * HALF_A_SHARE:
            raise Damaged(f"its outermost functions make {self._share:.2f} % of the time, lines are missing")
        sample = 1e9 / max(hertz, 1)
        found: list[Function] = []
        for (name, module), total in self._sums.items():
            found.append((name, module, _own(total, sample), round(total.inclusive, 3) / 1e9))
        return sorted(found, key=lambda f: -f[3])


def _own(total: _Sum, sample: float) -> float | None:
    """Seconds; None when the rounding of the digits could hide a sample."""
    if total.own > max(total.half, sample / 2):
        return round(total.own, 3) / 1e9
    return 0.0 if total.half < sample / 2 else None
