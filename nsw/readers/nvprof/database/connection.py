"""What the readers of single tables ask of nvprof's database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.model import Report


class Database(Protocol):
    """One database being read into a report."""

    report: Report

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """What a query finds."""

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with such columns."""

    def text(self, code: Any) -> str:
        """A string by its code; of an unknown one the code."""

    def union(self, tables: tuple[str, ...], *columns: str) -> str:
        """The rows of several tables of one kind as one source; "" when there is none."""
