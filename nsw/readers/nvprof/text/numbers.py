"""Columns of numbers that nvprof printed -> values and twins, a column at a time.

What a number looks like, `00.00us` for 12.34us, tells its unit and its last digit, and there are few such shapes. One
of no known shape raises `OddRowsError`: rows with it are read one by one. For all others the answers are those of
`quantities`: a float of `12.34e3` is rounded once, as the quotient of whole numbers is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import repeat
from operator import mul
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.nvprof.text.times import exact_to_a_ns
from nsw.readers.text.quantities import TIME_UNITS, Digits, size_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Twins: TypeAlias = "list[float | None]"

_ZEROS: Final = str.maketrans("123456789", "000000000")
_TIME: Final = re.compile(r"0{1,15}(?:\.(0{1,15}))?([num]?s)?\Z")
_SIZE: Final = re.compile(r"0{1,15}(?:\.(0{1,15}))?([KMGT]?B(?:/s)?)?\Z")
_SHARE: Final = re.compile(r"0{1,15}(?:\.(0{1,15}))?(%?)\Z")
_OWN_UNITS: Final = {"ns": 0, "us": 3, "ms": 6, "s": 9}  # as text has them behind each time; "s" ends the others
_REMEMBERED: Final = 4096
_MOST_DIGITS: Final = 15  # whole numbers of as many are exact as floats
_OFTEN: Final = 4  # times that a cell occurs in a column, from which on it pays to look for equal ones
ABSENT: Final = frozenset(("", "-"))
_GREATEST: Final = 10**15  # ns


class OddRowsError(Exception):
    """Not all of these rows are as nvprof prints them: they are to be read one by one, each with care."""


def whole_times(cells: Sequence[str], unit: str | None) -> tuple[list[int], Twins]:
    """Nanoseconds and twins of times as traces have them: `nvprof_times.whole_ns` of each cell.

    Args:
        cells: As printed, at least one.
        unit: The unit of the column; None where each cell has its own.
    """
    values, twins = times(cells, unit)
    if max(values) >= _GREATEST:
        raise OddRowsError
    return list(map(round, values)), twins


def times(cells: Sequence[str], unit: str | None) -> tuple[list[float], Twins]:
    """The same of summaries: `quantities.duration` of each cell, its twin less what a clock of whole ns cannot have."""
    printed = "\n".join(cells)
    twins = list(map(_time_twin, shapes(printed), repeat(unit)))
    if unit is None:
        printed += "\n"
        for own, power in _OWN_UNITS.items():
            printed = printed.replace(f"{own}\n", f"e{power}\n")
        printed = printed[:-1]
    else:
        power = TIME_UNITS[unit]
        printed = printed.replace("\n", f"e{power}\n") + f"e{power}"
    return list(map(float, printed.split("\n"))), twins


def shares(cells: Sequence[str], sign: str) -> tuple[list[float], Twins]:
    """Per cent and twins: `quantities.percent` of each cell, which `sign` (% or nothing) must follow."""
    printed = "\n".join(cells)
    twins = list(map(_share_twin, shapes(printed), repeat(sign)))
    return list(map(float, printed.replace("%", "").split("\n"))), twins


def counts(cells: Sequence[str]) -> list[int]:
    """`quantities.whole` of each cell, which must be digits alone."""
    if not cells:
        return []
    printed = "".join(cells)
    if not (printed.isascii() and printed.isdigit()) or max(map(len, cells)) > _MOST_DIGITS or "" in cells:
        raise OddRowsError
    return list(map(int, cells))


def sizes(cells: Sequence[str], unit: str | None) -> tuple[list[float], Twins]:
    """Bytes and twins: `quantities.size` of each cell, of which a K is 1024."""
    return _amounts(cells, unit, "")


def rates(cells: Sequence[str], unit: str | None) -> tuple[list[float], Twins]:
    """Bytes a second and twins: `quantities.rate` of each cell, likewise."""
    return _amounts(cells, unit, "/s")


def _amounts(cells: Sequence[str], unit: str | None, per: str) -> tuple[list[float], Twins]:
    printed = "\n".join(cells)
    factors, twins, units = zip(*map(_size_look, shapes(printed), repeat(unit), repeat(per)), strict=True)
    return list(map(mul, less_units(printed, set(units)), factors)), list(twins)


def less_units(printed: str, units: Iterable[str]) -> list[float]:
    """The numbers that are before these units at the ends of lines; of the units some may end as others do."""
    printed += "\n"
    for unit in sorted(units, key=len, reverse=True):
        printed = printed.replace(f"{unit}\n", "\n") if unit else printed
    return list(map(float, printed[:-1].split("\n")))


def present(cells: Sequence[str]) -> list[str]:
    """The cells in which something is printed."""
    return [cell for cell in cells if cell not in ABSENT]


def spread(cells: Sequence[str], values: list[Any]) -> list[Any]:
    """The values of the cells that are present, and None beside the others."""
    if len(cells) == len(values):
        return values
    found = iter(values)
    return [None if cell in ABSENT else next(found) for cell in cells]


def where_present(
    read: Callable[[Sequence[str], str | None], tuple[list[Any], Twins]], cells: Sequence[str], unit: str | None
) -> tuple[list[Any], Twins]:
    """What `read` makes of the cells in which something is printed, None beside the others; of equal ones once."""
    different = set(cells)
    if len(different) * _OFTEN > len(cells) and ABSENT.isdisjoint(different):
        return read(cells, unit)
    known: dict[str, tuple[Any, float | None]] = dict.fromkeys(ABSENT, (None, None))
    if printed := list(different - ABSENT):
        known |= zip(printed, zip(*read(printed, unit), strict=True), strict=True)
    values, twins = zip(*map(known.__getitem__, cells), strict=True)
    return list(values), list(twins)


def shapes(printed: str) -> list[str]:
    """What each of these lines looks like: digits are zeros."""
    return printed.translate(_ZEROS).split("\n")


@lru_cache(_REMEMBERED)
def _time_twin(shape: str, unit: str | None) -> float | None:
    found = _TIME.match(shape)
    power = TIME_UNITS.get((found and found[2]) or unit or "")
    if found is None or power is None or (unit and found[2]):
        raise OddRowsError
    return exact_to_a_ns(Digits(0, power - len(found[1] or "")).scaled().pm)


@lru_cache(_REMEMBERED)
def _share_twin(shape: str, sign: str) -> float | None:
    found = _SHARE.match(shape)
    if found is None or found[2] != sign:
        raise OddRowsError
    return Digits(0, -len(found[1] or "")).scaled().pm


@lru_cache(_REMEMBERED)
def _size_look(shape: str, unit: str | None, per: str) -> tuple[int, float | None, str]:
    found = _SIZE.match(shape)
    if found is None or (unit and found[2]):
        raise OddRowsError
    of = found[2] or unit or ""
    factor = size_factor(of.removesuffix(per), 1024) if of.endswith(per) else None
    if factor is None:
        raise OddRowsError
    pm = Digits(0, -len(found[1] or "")).scaled().pm
    if pm is not None:
        pm = None if factor == 1 and not found[1] and not per else pm * factor
    return factor, pm, found[2] or ""
