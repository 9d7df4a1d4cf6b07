"""Damaged nsys databases: no exception, no endless reading, no invented number."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import read
from nsw.readers.timeline.statistics import group_by_key
from nsw.tables import full_rows


def errors(report):
    return [p.message for p in report.problems if p.severity == "error"]


@pytest.fixture
def sound(typical_database):
    """The path, for hypothesis prints what it is given."""
    return typical_database()


def mutated(sound: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    damaged = bytearray(sound)
    if chance.random() < 0.4:
        del damaged[chance.randrange(1, len(damaged)) :]
    for _ in range(chance.choice((0, 1, 3, 20))):
        # half of the flips hit a page's head or the schema, where they do most harm
        reach = min(len(damaged), 4096) if chance.random() < 0.5 else len(damaged)
        damaged[chance.randrange(reach)] = chance.randrange(256)
    if chance.random() < 0.4:
        source, target, length = (chance.randrange(len(damaged)) for _ in range(3))
        damaged[target : target + length] = damaged[source : source + length]
    return bytes(damaged)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_mutated_bytes_never_escape_the_reader(sound, tmp_path, seed):
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(mutated(sound.read_bytes(), seed))
    report = read(path)
    assert report.tables or errors(report)
    for name, data_ in report.tables.items():
        for row in full_rows(name, data_):
            assert row.get("calls") is None or row["calls"] >= 0


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_a_cut_database_is_an_error(sound, tmp_path, keep):
    path = tmp_path / "cut.sqlite"
    whole = sound.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    assert errors(read(path))


def test_pages_of_noise_leave_the_other_tables(sound, tmp_path):
    want = {n: list(full_rows(n, t)) for n, t in read(sound).tables.items()}
    whole = sound.read_bytes()
    path = tmp_path / "noisy.sqlite"
    chance = random.Random(3)
    complete = 0
    for page in range(1, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
        path.write_bytes(damaged)
        report = read(path)
        assert errors(report)
        for name, data in report.tables.items():
            got = list(full_rows(name, data))
            complete += got == want[name]
    assert complete


@pytest.mark.parametrize("value", [None, 1.5, "text", 2**63 - 1, b"blob"])
@pytest.mark.parametrize("column", ["end", "demangledName"])
def test_a_value_that_is_no_time_or_id_spoils_its_table_only(nsys_database, column, value):
    database = nsys_database()
    database.call(0, 5)
    for index in range(5):
        database.kernel(index, 5)
    database.sql("CREATE TABLE copy AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
    database.sql("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")  # the copy's columns take any type
    database.sql(f'UPDATE copy SET "{column}" = ? WHERE rowid = 3', (value,))
    database.sql("ALTER TABLE copy RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
    report = read(database.done())
    assert "api_summary" in report.tables
    if column == "demangledName" and isinstance(value, int):
        names = {r["name"]: r["calls"] for r in full_rows("gpu_summary", report.tables["gpu_summary"])}
        assert names == {"gemm(float*)": 4, f"string {value}": 1}  # an id without a string
    else:
        assert "gpu_summary" not in report.tables
        assert any("CUPTI_ACTIVITY_KIND_KERNEL" in e for e in errors(report))


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-(2**50), 2**50)), max_size=200),
    st.sampled_from([1, 2**20]),
)
def test_grouping_is_the_same_packed_or_not(pairs, scale):
    import numpy as np

    keys = np.array([k // scale for k, _ in pairs], np.int64)
    values = np.array([v for _, v in pairs], np.int64)
    grouped = group_by_key(keys, values)
    want = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        want.setdefault(key, []).append(value)
    assert {k: grouped.values_of(i).tolist() for i, k in enumerate(grouped.keys)} == {
        k: sorted(v) for k, v in want.items()
    }


def test_durations_that_cannot_be_added_are_refused():
    import numpy as np

    with pytest.raises(OverflowError):
        group_by_key(np.array([1, 1]), np.array([2**62, 2**62]))
