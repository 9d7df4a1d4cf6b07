"""What nsw says first of recorded programs with known illnesses: bench/diagnosis has them, with the truth."""

import importlib.util
import re
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
    parts = {part: {case["cause"] for case in score.cases(held_out=held_out) if "cause" in case}
             for part, held_out in (("open", False), ("held-out", True))}  # fmt: skip
    assert len(parts["open"] & parts["held-out"]) >= 0.4 * len(parts["open"] | parts["held-out"])


def test_recordings_are_small_and_say_nothing_of_their_machine():
    files = list(recordings.FOLDER.iterdir())
    assert max(path.stat().st_size for path in files) <= 100_000
    assert sum(path.stat().st_size for path in files) <= 8_000_000
    for path in files[::10]:
        if path.name.endswith(".timeline.xz"):
            environment = recordings.tables_of(path).get("TARGET_INFO_SYSTEM_ENV")
            names, values = environment["values"][:2] if environment else ((), ())
            assert set(names) <= {"NvDriverVersion", "Hostname", "OsDescription", "CpuDescription", "CudaDriverVersion"}
            assert dict(zip(names, values, strict=True)).get("Hostname", "node") == "node"
