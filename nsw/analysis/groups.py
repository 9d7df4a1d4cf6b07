"""Items by a key: together, or as sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Key = TypeVar("Key")
    Item = TypeVar("Item")


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in the order in which the keys first come."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def sum_by(amounts: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """The sum of each key's amounts, in the order in which the keys first come."""
    sums: dict[Key, float] = {}
    for key, amount in amounts:
        sums[key] = sums.get(key, 0.0) + amount
    return sums


def sum_times_and_calls(amounts: Iterable[tuple[Key, float | None, float | None]]) -> dict[Key, tuple[float, float]]:
    """The sum of each key's times and of its calls; None counts as 0."""
    sums: dict[Key, tuple[float, float]] = {}
    for key, time, calls in amounts:
        before = sums.get(key, (0.0, 0.0))
        sums[key] = (before[0] + (time or 0.0), before[1] + (calls or 0.0))
    return sums
