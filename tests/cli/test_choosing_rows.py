"""`nsw read --where --launch --top`: the rows that a person asks for, and nothing that is no row."""

import json
from pathlib import Path

import pytest

H200 = Path(__file__).parents[1] / "fixtures" / "h200"
TIMELINE = H200 / "tiled.sqlite.gz"
COUNTERS = H200 / "naive-details.csv"


@pytest.fixture
def timeline(tmp_path):
    import gzip

    path = tmp_path / "tiled.sqlite"
    path.write_bytes(gzip.decompress(TIMELINE.read_bytes()))
    return path


def tables(nsw, *words):
    said = nsw("read", "--json", *words)
    return said.code, json.loads(said.out)["reports"][0]["tables"]


def test_rows_by_value_by_expression_and_by_number(nsw, timeline):
    _, whole = tables(nsw, timeline, "--table", "api_summary")
    most = max(r["calls"] for r in whole["api_summary"])
    _, found = tables(nsw, timeline, "--table", "api_summary", "--where", f"calls>={most}")
    assert {r["calls"] for r in found["api_summary"]} == {most}
    _, found = tables(nsw, timeline, "--where", "kind=kernel", "--where", "name~.")
    assert set(found) <= {"gpu_summary", "phase_summary", "communication"}
    assert {r["kind"] for r in found["gpu_summary"]} == {"kernel"}


def test_a_launch_and_the_first_rows(nsw):
    _, found = tables(nsw, COUNTERS, "--launch", "0")
    assert {r["launch_id"] for rows in found.values() for r in rows} == {0}
    _, found = tables(nsw, COUNTERS, "--top", "3", "--table", "metrics")
    assert len(found["metrics"]) == 3


def test_no_row_is_said_and_no_empty_frame_is_drawn(nsw, timeline):
    said = nsw("read", timeline, "--where", "name=no thing", "--where", "calls=1")
    assert "no row matches --where 'name=no thing' --where calls=1\n" in said.out
    assert "───" not in said.out


@pytest.mark.parametrize(
    ("test", "words"),
    [("calls", "expected a test of a column"), ("colour=red", "no table has a column colour"),
     ("calls>many", "'many' is not a number"), ("name~(", "this regular expression is not valid")],
)  # fmt: skip
def test_what_is_no_test_is_refused_before_anything_is_read(nsw, test, words):
    said = nsw("read", "nowhere.sqlite", "--where", test)
    assert (said.code, words in said.err) == (2, True)


def test_a_launch_is_shown_with_its_grid_its_block_and_its_nvtx_ranges(nsw, home):
    head = ('"ID","Process ID","Process Name","Host Name","thread Domain:Push/Pop_Range:PL_Type:PL_Value",'
            '"Id:Domain:Start/Stop_Range:PL_Type:PL_Value","Kernel Name","Context","Stream","Block Size","Grid Size",'
            '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n')  # fmt: skip
    line = ('"{0}","7","prog","h","0 ""<default domain>:step {0}:none:none""","","gemm(float *)","1","7","(32, 1, 1)",'
            '"(8, 4, 1)","0","9.0","Speed","gpu__time_duration.sum","us","{0}.5"\n')  # fmt: skip
    (home / "ncu.csv").write_text(head + line.format(1) + line.format(2))
    said = nsw("read", "ncu.csv", "--launch", "2", exits=0)
    assert "launch 2: grid (8, 4, 1), block (32, 1, 1), NVTX step 2\n" in said.out
    explained = nsw("read", "ncu.csv", "--table", "launches").out
    assert "\nlaunches: " in explained
    assert "\n  launch_id: id of the profiled launch in its report" in explained
    assert "NVTX ranges: step 1 (1 launch), step 2 (1 launch)\n" in nsw("read", "ncu.csv", "--full").out
