"""The titles of printed tables and sections: data/printed_titles.csv says what each of them stands for."""

from __future__ import annotations

import re

from nsw.resources import csv_rows

__all__ = ["meaning_by_title", "patterns_by_title"]


def meaning_by_title(table: str) -> dict[str, str]:
    """What each title, or column, stands for: a column of nsw's tables, the key of a fact, a kind, a cell's pattern.

    Args:
        table: The table whose titles they are, or the tool's table of kinds, where `|` is between titles.
    """
    rows = csv_rows("readers/data/printed_titles.csv")
    return {row["title"]: row["meaning"] for row in rows if row["table"] == table}


def patterns_by_title(table: str, *, flags: re.RegexFlag = re.IGNORECASE) -> list[tuple[re.Pattern[str], str]]:
    """Of a table whose titles are regular expressions, each with what it stands for, in the order to try them."""
    return [(re.compile(title, flags), meaning) for title, meaning in meaning_by_title(table).items()]
