"""Values as a ledger may hold them: SQLite holds no column to its type, and JSON in it may be anything."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, TypeVar

LATEST: Final = 1e11  # Unix seconds, beyond which is no time that a ledger holds
MAYBE_TEXT: Final = str | None
TIME: Final = float | int | None

_T = TypeVar("_T", dict[str, Any], list[Any])


def parsed(text: str, kind: type[_T]) -> _T:
    """JSON of this kind.

    Raises:
        ValueError: It is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise ValueError(f"is not a JSON {'object' if kind is dict else 'list'}")  # noqa: TRY004  the text's fault
    return found


def column_of(text: str, kind: type[_T], column: str) -> _T:
    """The JSON of a column.

    Raises:
        ValueError: It is none; the column is named.
    """
    try:
        return parsed(text, kind)
    except ValueError as fault:
        raise ValueError(f"{column} {fault}") from None


@lru_cache(maxsize=1024)
def texts(text: str, column: str) -> tuple[str, ...]:
    """The JSON of a column that holds a list of texts.

    Raises:
        ValueError: It holds another thing.
    """
    found = column_of(text, list, column)
    if not all(isinstance(each, str) for each in found):
        raise ValueError(f"{column} are not texts")
    return tuple(found)


def check_kinds(row: tuple[Any, ...], kinds: tuple[Any, ...], columns: str) -> None:
    """Hold a row to the kinds of its columns.

    Raises:
        ValueError: A value is of another.
    """
    if not all(map(isinstance, row, kinds)):
        names = (n.strip() for n in columns.split(","))
        wrong = next(n for n, value, kind in zip(names, row, kinds, strict=True) if not isinstance(value, kind))
        raise ValueError(f"{wrong} has another type than nsw writes")


def check_times(*times: float | None) -> None:
    """Hold times to what can be shown.

    Raises:
        ValueError: One is none.
    """
    if not all(when is None or -LATEST < when < LATEST for when in times):
        raise ValueError("started or ended is not a time")
