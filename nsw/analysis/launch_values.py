"""The metrics of every launch as columns: a portable metric a column, a launch (or a summary over several) a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.metrics import find_chip
from nsw.metrics.printed_metrics import computed, ncu_components, unit_of
from nsw.tables.data import coded, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.metrics.catalogue import Chip
    from nsw.readers.ncu.csv.find_plain_rows import Numbers
    from nsw.tables.data import TableData

# What tells launches apart, and summaries over launches, which have no id.
_MOST_UNNAMED: Final = 40
_OWNED: Final = ("run", "report", "block", "rank", "pid", "device", "launch_id", "kernel")


@dataclass(frozen=True, slots=True)
class LaunchValues:
    """What was measured of each launch.

    Attributes:
        kernels: The different kernel names.
        kernel: The place of each launch's kernel among them.
        calls: How many launches each stands for: 1, or those of a summary.
        values: By portable metric, a value a launch; NaN where there is none.
        others: Likewise by printed name, of metrics and events that have no portable one, in base units; none where
            they are more than a few dozen.
        chip: The chip, where the report tells it.
        device_name: The GPU's name, where the report tells it.
    """

    kernels: list[str]
    kernel: Numbers
    calls: Numbers
    values: dict[str, Numbers]
    others: dict[str, Numbers]
    chip: Chip | None
    device_name: str | None


def launch_values(metrics: TableData, launches: TableData | None = None) -> LaunchValues:
    """The columns of all launches that have metrics.

    Args:
        metrics: Rows of table metrics.
        launches: Rows of table launches, which may tell the chip.
    """
    import numpy as np

    kernels, kernel_of_row = coded(metrics, "kernel")
    owner, first = _owners(metrics)
    chip, device_name = _chip(metrics, launches)
    invocations = numbers(metrics, "invocations")[first]
    found = _direct(metrics, owner, len(first)) | _components(metrics, owner, len(first))
    with np.errstate(all="ignore"):
        for name, column in list(computed(found, chip)):
            clean = np.where(np.isfinite(column), column, np.nan)
            found[name] = np.where(np.isnan(found[name]), clean, found[name]) if name in found else clean
    return LaunchValues(
        [str(k) for k in kernels],
        kernel_of_row[first],
        np.where(np.isnan(invocations), 1.0, invocations),
        {name: column for name, column in found.items() if "__" not in name},
        _unnamed(metrics, owner, len(first)),
        chip,
        device_name,
    )


def _owners(metrics: TableData) -> tuple[Numbers, Numbers]:
    """The owner of each row, numbered from 0 in order of appearance, and the first row of each owner."""
    import numpy as np

    combined: Any = 0
    for column in _OWNED:
        words, codes = coded(metrics, column)
        if len(words) > 2 or (len(words) == 2 and len(codes) and codes.min() != codes.max()):
            _, combined = np.unique(combined * len(words) + codes, return_inverse=True)
    if isinstance(combined, int):
        combined = np.zeros(len(metrics), dtype=np.int64)
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[codes], np.sort(first)


def _direct(metrics: TableData, owner: Numbers, owners: int) -> dict[str, Numbers]:
    """The metrics that the readers gave a portable name."""
    words, codes = coded(metrics, "portable")
    return _matrix(words, codes, owner, numbers(metrics, "portable_value"), owners)


def _components(metrics: TableData, owner: Numbers, owners: int) -> dict[str, Numbers]:
    """The names of ncu that expressions are over, in base units."""
    words, codes = coded(metrics, "metric")
    wanted = [word if word in ncu_components() else None for word in words]
    return _matrix(wanted, codes, owner, _value(metrics), owners) if any(wanted) else {}


def _unnamed(metrics: TableData, owner: Numbers, owners: int) -> dict[str, Numbers]:
    """The metrics and events without a portable name that are numbers."""
    import numpy as np

    words, codes = coded(metrics, "metric")
    named, named_codes = coded(metrics, "portable")
    value = _value(metrics)
    unnamed = (named_codes == len(named) - 1) & ~np.isnan(value)
    there = np.unique(codes[unnamed])
    if not len(there) or len(there) > _MOST_UNNAMED:
        return {}
    return _matrix(words, np.where(unnamed, codes, len(words) - 1), owner, value, owners)


def _value(metrics: TableData) -> Numbers:
    """The value of a launch, or the mean of a summary, in base units."""
    import numpy as np

    printed, unit_codes = coded(metrics, "unit")
    factors = np.array([unit_of(u or "").factor for u in printed])
    value, mean = numbers(metrics, "value"), numbers(metrics, "avg")
    value = np.where(np.isnan(value), mean, value)
    scaled: Numbers = value * factors[unit_codes]
    return scaled


def _matrix(
    words: Sequence[str | None], codes: Numbers, owner: Numbers, values: Numbers, owners: int
) -> dict[str, Numbers]:
    """Values by word, a column of all owners each; of several of one owner the first counts."""
    import numpy as np

    found: dict[str, Numbers] = {}
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(words) + 1))
    for place, word in enumerate(words):
        rows = order[ends[place] : ends[place + 1]]
        if word is None or not len(rows):
            continue
        column = found.setdefault(word, np.full(owners, np.nan))
        column[owner[rows[::-1]]] = values[rows[::-1]]  # backwards, so that the first is what stays
    return found


def _chip(metrics: TableData, launches: TableData | None) -> tuple[Chip | None, str | None]:
    """The chip, by the device's name or its compute capability; None where they differ or are not told."""
    names = [name for name in coded(metrics, "device_name")[0] if name]
    if launches is not None and len(launches):
        names += [name for name in coded(launches, "device_name")[0] if name]
        capabilities = {c for c in coded(launches, "compute_capability")[0] if c}
    else:
        capabilities = set()
    different = set(names)
    name = different.pop() if len(different) == 1 else None
    chip = find_chip(name) or (find_chip(capabilities.pop()) if len(capabilities) == 1 else None)
    return chip, name
