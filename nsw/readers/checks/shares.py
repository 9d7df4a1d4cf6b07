"""Shares of a table against its totals: rows of another table that are among its rows.

Every row of one table has the same whole, total_ns / time_pct, within the rounding of both. A row with another whole
lost a digit or is of another table, whose title is missing. Shares that add up to more than 100 % are of two tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.tables.data import Row

_MOST: Final = 100.0
_SLACK: Final = 1e-3  # of a whole: shares that were cut and not rounded
_LEAST_SHARE: Final = 1.0  # in %: below, a share has too few digits to tell a whole


def foreign_rows(rows: Sequence[Row]) -> dict[int, str]:
    """The rows, by their places, that cannot be of one table with the rest, and why.

    Args:
        rows: Those of one printed table, in its order, with time_pct and total_ns as printed.
    """
    found = _beyond_the_whole(rows)
    wholes = {at: span for at, row in enumerate(rows) if at not in found and (span := _whole(row)) is not None}
    if len(wholes) < 2:
        return found
    low, high, agreeing = _agreed(list(wholes.values()))
    if 2 * agreeing <= len(wholes):
        return found
    for at, (least, most) in wholes.items():
        if least > high or most < low:
            row = rows[at]
            found[at] = (
                f"{row['total_ns']:g} ns are not {row['time_pct']:g} % of what the other rows are shares of"
                f" ({low:.4g} ns)"
            )
    return found


def _beyond_the_whole(rows: Sequence[Row]) -> dict[int, str]:
    """The rows from where the shares add up to more than all there is."""
    found: dict[int, str] = {}
    total = width = 0.0
    for at, row in enumerate(rows):
        share = row.get("time_pct")
        if share is None or share < 0:
            continue
        half = row.get("time_pct_pm") or 0.0
        if found or total + share > _MOST * (1 + _SLACK) + width + half:
            found[at] = f"the shares of its table add up to {total + share:.1f} %: it is of another table"
        total, width = total + share, width + half
    return found


def _whole(row: Row) -> tuple[float, float] | None:
    """The least and the greatest whole that a row's total can be its share of, ns."""
    total, share = row.get("total_ns"), row.get("time_pct")
    if total is None or share is None or share < _LEAST_SHARE or total <= 0:
        return None
    half, width = row.get("time_pct_pm") or 0.0, row.get("total_ns_pm") or 0.0
    least = 100.0 * (total - width) / (share + half) * (1 - _SLACK)
    return least, 100.0 * (total + width) / max(share - half, 1e-9) * (1 + _SLACK)


def _agreed(spans: list[tuple[float, float]]) -> tuple[float, float, int]:
    """The span that most spans hold, and how many do."""
    ends = sorted([(low, 0) for low, _ in spans] + [(high, 1) for _, high in spans])
    best, open_ = (0.0, 0.0, 0), 0
    for at, (edge, closes) in enumerate(ends):
        open_ += -1 if closes else 1
        if not closes and open_ > best[2]:
            best = (edge, ends[at + 1][0], open_)
    return best
