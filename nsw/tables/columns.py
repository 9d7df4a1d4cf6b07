"""Rows of a table as columns: what is summed up over many rows needs no object for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

__all__ = ["Columns"]


class Columns:
    """The columns of some rows, each a list that is made when it is looked at; what a row lacks is None."""

    def __init__(self, length: int, column: Callable[[str], list[Any]]) -> None:
        """Take how many rows there are, and what makes a column by its name."""
        self._length, self._column = length, column
        self._columns: dict[str, list[Any]] = {}

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Columns:
        """The columns of rows."""
        return cls(len(rows), lambda name: [row.get(name) for row in rows])

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """The rows of one after those of another."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        return cls(sum(map(len, parts)), lambda name: [*chain.from_iterable(part[name] for part in parts)])

    def __len__(self) -> int:
        """How many rows there are."""
        return self._length

    def __getitem__(self, name: str) -> list[Any]:
        """A column."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The values of some columns, row by row."""
        return zip(*map(self.__getitem__, names), strict=True)

    def at(self, positions: Sequence[int]) -> Columns:
        """The rows at these positions."""
        if len(positions) == self._length and [*positions] == [*range(self._length)]:
            return self
        first, end = (positions[0], positions[-1] + 1) if positions else (0, 0)
        if [*positions] == [*range(first, end)]:
            return Columns(len(positions), lambda name: self[name][first:end])
        return Columns(len(positions), lambda name: [*map(self[name].__getitem__, positions)])
