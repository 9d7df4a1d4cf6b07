"""What nsw says first of recorded programs with known illnesses: bench/diagnosis has them, with the truth."""

import contextlib
import importlib.util
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "diagnosis"


def loaded(name):
    """A file of the folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


recordings = loaded("recordings")
score = loaded("score")
OPEN = {case["id"]: case for case in score.cases()}
NAMED = score.NAMED.read_text().split()


@pytest.mark.parametrize("case", NAMED)
def test_a_cause_that_was_named_stays_named_and_a_healthy_program_stays_unblamed(case):
    result = score.score(OPEN[case])
    assert result.verdict in {"named", "quiet"}, result.said


@pytest.mark.parametrize("case", NAMED[::3])
def test_names_of_kernels_ranges_and_files_change_no_verdict(case):
    result = score.score(OPEN[case], seed=7)
    assert result.verdict in {"named", "quiet"}, result.said


def stretched(factor):
    return lambda database: change_times(
        database,
        f'UPDATE {{}} SET start = CAST(start * {factor} AS INTEGER), "end" = CAST("end" * {factor} AS INTEGER)',
    )


def cut(first, last):
    """Leave out what begins before and behind these shares of the kernels."""

    def cut_ends(database):
        starts = [row[0] for row in database.execute("SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")]
        low, high = (starts[int(share * (len(starts) - 1))] for share in (first, last))
        change_times(database, f"DELETE FROM {{}} WHERE start < {low} OR start > {high}")

    return cut_ends


def change_times(database, statement):
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if {"start", "end"} <= {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}:
            database.execute(statement.format(f'"{table}"'))


def without_system_calls(database):
    database.execute("DROP TABLE IF EXISTS OSRT_API")
    database.execute("DROP TABLE IF EXISTS NVTX_EVENTS")


CHANGES = {"half": stretched(0.5), "double": stretched(2), "end cut": cut(0, 0.7), "late": cut(0.3, 1),
           "few tables": without_system_calls}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("case", ["t01", "t04", "t09", "t10", "t18", "t60", "g01", "g02", "g54"])
def test_the_verdict_holds_at_another_speed_and_with_less_recorded(case, change, monkeypatch):
    unpack = recordings.unpack

    def changed(name, folder):
        timeline = unpack(name, folder)["timeline"]
        with contextlib.closing(sqlite3.connect(timeline)) as database:
            CHANGES[change](database)
            database.commit()
        return {"timeline": timeline}

    monkeypatch.setattr(score.recordings, "unpack", changed)
    assert score.score(OPEN[case]).verdict in {"named", "quiet"}


def test_other_names_reach_kernels_and_ranges(tmp_path):
    before = recordings.unpack("k06", tmp_path)
    assert "elementwise<" in before["counters"].read_text()
    after = score.renamed(before, 7)
    assert "elementwise" not in after["counters"].read_text()
    assert not re.search(rb"elementwise", after["timeline"].read_bytes())


def test_each_cause_has_a_case_and_each_case_a_cause():
    truth = score.truth()
    told = {case.get("cause") or case["healthy"] for case in truth["cases"]}
    assert told <= set(truth["causes"])
    assert set(truth["causes"]) <= score.cause_ids()
    assert set(truth["causes"]) == told


def test_each_case_has_an_id_of_its_own_and_many_causes_are_in_both_parts():
    every = score.truth()["cases"]
    assert max(Counter(case["id"] for case in every).values()) == 1
    parts = {part: {case["cause"] for case in score.cases(part) if "cause" in case} for part in ("open", "held-out")}
    assert len(parts["open"] & parts["held-out"]) >= 0.4 * len(parts["open"] | parts["held-out"])


def test_recordings_are_small_and_say_nothing_of_their_machine():
    files = list(recordings.FOLDER.iterdir())
    assert max(path.stat().st_size for path in files if "timeline" in path.name) <= 160_000
    assert sum(path.stat().st_size for path in files) <= 9_000_000
    for path in files[::10]:
        if path.name.endswith(".timeline.xz"):
            environment = recordings.tables_of(path).get("TARGET_INFO_SYSTEM_ENV")
            names, values = environment["values"][:2] if environment else ((), ())
            assert set(names) <= {"NvDriverVersion", "Hostname", "OsDescription", "CpuDescription", "CudaDriverVersion"}
            assert dict(zip(names, values, strict=True)).get("Hostname", "node") == "node"
