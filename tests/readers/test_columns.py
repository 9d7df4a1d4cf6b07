"""Columns in little memory, and what intervals cover, against their definitions."""

import numpy as np
import pytest

from nsw.readers.timeline import columns
from nsw.readers.timeline.calls import Covered
from nsw.readers.timeline.columns import GrowingColumn, RunningSums


@pytest.mark.parametrize(
    ("parts", "width", "takes_memory"),
    [
        pytest.param([[7, 7], [7]], np.int8, False, id="alike"),
        pytest.param([[7, 7], [8]], np.int8, True, id="alike at first"),
        pytest.param([[1, 2], [300], [-(2**40)]], np.int64, True, id="wider and wider"),
        pytest.param([[70_000], [1, 2]], np.int32, True, id="wide at first"),
        pytest.param([[0], [], [2**31 - 1] * 3], np.int32, True, id="an empty part"),
    ],
)
def test_a_column_grows_in_the_least_room(parts, width, takes_memory):
    column = GrowingColumn.of_parts(np.array(part, np.int64) for part in parts)
    assert column.tolist() == [value for part in parts for value in part]
    assert (column.dtype, column.strides != (0,)) == (width, takes_memory)


@pytest.mark.parametrize("largest", [1000, 2**31, 2**45])
def test_sums_are_exact_over_parts_and_beyond_four_bytes(largest, monkeypatch):
    monkeypatch.setattr(columns, "_AT_A_TIME", 16)
    monkeypatch.setattr(columns.row_slices, "__defaults__", (16,))
    values = np.random.default_rng(1).integers(0, largest, 100)
    counts = np.array([0, 1, 16, 17, 99, 100, 50])
    sums = RunningSums.of_values(values)
    assert sums.before(counts).tolist() == [int(values[:count].sum()) for count in counts]
    assert sums.total == values.sum()


@pytest.mark.parametrize("seed", range(4))
def test_covered_time_is_that_of_the_union(seed, monkeypatch):
    monkeypatch.setattr(columns, "_AT_A_TIME", 16)
    monkeypatch.setattr(columns.row_slices, "__defaults__", (16,))
    chance = np.random.default_rng(seed)
    start, duration = chance.integers(0, 400, 60), chance.integers(0, (3, 60)[seed % 2], 60)
    is_covered = np.zeros(500, np.int64)
    for first, length in zip(start, duration, strict=True):
        is_covered[first : first + length] = 1
    times = np.arange(-5, 490)
    assert Covered(start, duration.astype(np.int8)).covered_before(times).tolist() == [
        int(is_covered[: max(time, 0)].sum()) for time in times
    ]
