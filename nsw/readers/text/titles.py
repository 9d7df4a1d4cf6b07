"""The titles of printed tables: data/printed_titles.csv says which column of nsw's tables each of them fills."""

from __future__ import annotations

from nsw.resources import csv_rows

__all__ = ["columns_by_title"]


def columns_by_title(table: str) -> dict[str, str]:
    """The column, or the key of the fact, that each title of a printed table fills."""
    return {row["title"]: row["column"] for row in csv_rows("readers/data/printed_titles.csv") if row["table"] == table}
