"""Rows of reports that a person asks for: `--where COLUMN=VALUE`, `--launch ID`, `--top N`."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import UsageError, did_you_mean
from nsw.tables import TABLES, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.readers.model import Report

_TEST: Final = re.compile(r"(\w+)\s*(!=|>=|<=|=|~|>|<)\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """A column, and what its value must be."""

    column: str
    holds: Callable[[Any], bool]


def condition(text: str) -> Condition:
    """`name=gemm`, `name~^void`, `calls>=10`: equal, a regular expression found in it, a comparison of numbers.

    Raises:
        UsageError: It is no test, or no table has such a column.
    """
    found = _TEST.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--where {text}: expected a test of a column", hint="such as kind=memcpy, name~gemm, calls>10"
        )
    column, sign, value = found[1], found[2], found[3].strip()
    columns = sorted({c for t in TABLES.values() for c in t.names})
    if column not in columns:
        raise UsageError(f"--where {text}: no table has a column {column}", hint=did_you_mean(column, columns))
    if sign == "~":
        try:
            pattern = re.compile(value)
        except re.error as fault:
            raise UsageError(f"--where {text}: this regular expression is not valid: {fault}") from None
        return Condition(column, lambda v: v is not None and pattern.search(str(v)) is not None)
    if sign in {"=", "!="}:
        return Condition(column, lambda v: _same(v, value) == (sign == "="))
    bound = _number(value)
    if bound is None:
        raise UsageError(f"--where {text}: {value!r} is not a number", hint="times are ns, sizes bytes")
    compare: Mapping[str, Callable[[float], bool]] = {
        ">": lambda v: v > bound, "<": lambda v: v < bound, ">=": lambda v: v >= bound, "<=": lambda v: v <= bound,
    }  # fmt: skip
    return Condition(column, lambda v: isinstance(v, int | float) and compare[sign](v))


def chosen(reports: Iterable[Report], where: Sequence[str], launch: int | None, top: int | None) -> Iterator[Report]:
    """The reports with the rows that hold; a table without one of the columns is left out.

    Args:
        reports: The reports.
        where: Tests; all of them must hold.
        launch: Only rows of this launch_id.
        top: At most so many rows of a table.
    """
    tests = [condition(text) for text in where]
    asked = [f"--where {shlex.quote(text)}" for text in where]
    if launch is not None:
        asked.append(f"--launch {launch}")
        tests.append(Condition("launch_id", lambda v: v == launch))
    for report in reports:
        if tests or top is not None:
            made = {}
            for name, data in report.tables.items():
                if {t.column for t in tests} <= set(TABLES[name].names):
                    some = (r for r in rows(name, data) if all(t.holds(r[t.column]) for t in tests))
                    if kept := list(islice(some, top)):
                        made[name] = kept
            if tests and report.tables and not made:
                report.warn(f"no row matches {' '.join(asked)}")
            report.tables = dict(made)
        yield report


def _same(value: Any, text: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _number(text)
        return number is not None and value == number
    return value is not None and str(value) == text


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
