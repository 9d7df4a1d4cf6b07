"""One pass over a table of timed events: the durations by key, and who caused them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsw.readers.nsys_source import DURATION, NULL, TableFault, has_columns, require_integers
from nsw.readers.statistics import Grouped, group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nsys_source import Batch, IntArray, Source


@dataclass(slots=True)
class Collected:
    """What a pass found.

    `grouped` holds the durations by key in ns; `distinct` the values met in each column asked for;
    `companions` for each key the first value of the companion column, where it has one; `unended` counts the
    rows that have no end and were left out.
    """

    grouped: Grouped
    distinct: dict[str, set[int]]
    companions: dict[int, int] = field(default_factory=dict)
    unended: int = 0

    def only(self, column: str) -> int | None:
        """The value of a column that all rows share, or None."""
        values = self.distinct.get(column, set())
        return next(iter(values)) if len(values) == 1 and NULL not in values else None


def collect(
    source: Source,
    table: str,
    key: str,
    *,
    distinct: Sequence[str] = (),
    companion: str | None = None,
    may_be_unended: bool = False,
) -> Collected | None:
    """Durations of `table` by column `key`; None when there is no such table or it has no rows with an end.

    Raises:
        TableFault: The table is damaged.
    """
    import numpy as np

    if not has_columns(source, table, key, "start", "end"):
        return None
    extra = [companion] if companion else []
    keys: list[IntArray] = []
    durations: list[IntArray] = []
    found: dict[str, set[int]] = {c: set() for c in distinct}
    companions: dict[int, int] = {}
    unended = 0
    for whole in source.scan(table, [key, DURATION, *distinct, *extra]):
        batch = _ended(whole) if may_be_unended else whole
        unended += len(whole[key]) - len(batch[key])
        if not len(batch[key]):
            continue
        require_integers(table, batch, key, DURATION)
        keys.append(_narrow(batch[key]))
        durations.append(_narrow(batch[DURATION]))
        for column in distinct:
            found[column] |= distinct_values(batch[column])
        if companion:
            _remember(companions, batch[key], batch[companion])
    if not keys:
        return None
    all_keys = np.concatenate(keys)
    keys.clear()
    all_durations = np.concatenate(durations)
    durations.clear()
    try:
        return Collected(group(all_keys, all_durations), found, companions, unended)
    except OverflowError as fault:
        raise TableFault(table, str(fault)) from fault


def _ended(batch: Batch) -> Batch:
    """The rows that have an end."""
    ended = batch[DURATION] != NULL
    return batch if ended.all() else {name: values[ended] for name, values in batch.items()}


def distinct_values(column: IntArray) -> set[int]:
    """The different values of a column that has few."""
    import numpy as np

    low, high = int(column.min()), int(column.max())
    return {low, high} if low == high else set(np.unique(column).tolist())


def _narrow(values: IntArray) -> IntArray:
    """Integers in half the room where they fit: tens of millions are held at once."""
    import numpy as np

    fits = int(values.min()) >= -(2**31) and int(values.max()) < 2**31
    return values.astype(np.int32) if fits else values.copy()  # a copy frees the batch's other columns


def _remember(companions: dict[int, int], keys: IntArray, values: IntArray) -> None:
    import numpy as np

    fresh = ~np.isin(keys, np.fromiter(companions, np.int64, len(companions)), kind=None)
    if fresh.any():
        new, first = np.unique(keys[fresh], return_index=True)
        companions.update(zip(new.tolist(), values[fresh][first].tolist(), strict=True))
