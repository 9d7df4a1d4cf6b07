"""The titles of printed tables and sections: data/printed_titles.csv says what each of them stands for."""

from __future__ import annotations

from nsw.resources import csv_rows

__all__ = ["meaning_by_title"]


def meaning_by_title(table: str) -> dict[str, str]:
    """What each title stands for: a column of nsw's tables, the key of a fact, the kind of a section.

    Args:
        table: The table whose titles they are, or the tool's table of kinds, where `|` is between titles.
    """
    rows = csv_rows("readers/data/printed_titles.csv")
    return {row["title"]: row["meaning"] for row in rows if row["table"] == table}
