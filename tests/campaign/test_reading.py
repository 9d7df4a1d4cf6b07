"""The reports of many runs become a campaign's tables: by several processes as by one, again when it was broken off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import Reading, State
from nsw.engine.read import reading
from nsw.engine.tables import load_rows
from nsw.plan.model import Job, Plan, Resources, Run
from nsw.readers import detect
from tests.readers.conftest import Database

SUMMARY = """==1== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  {n}.000ms         1  {n}.000ms  {n}.000ms  {n}.000ms  kernel_{n}
"""
RECIPE = """nsw: 1
name: n
app: {command: "true"}
passes: [{timeline: {name: p, ranks: [3]}}]
resources: {gpus: 1}
"""
COUNT = 12
RUNS = [f"r{n:02}" for n in range(1, COUNT + 1)]
DAMAGED, EMPTY, TWO = "r03", "r05", "r07"  # a file that is no report; no file at all; two reports, one of a rank


def campaign(path):
    """A campaign whose runs are done and whose reports are here, in a folder of its own."""
    folder = CampaignFolder(path)
    folder.tables.mkdir(parents=True)
    folder.recipe.write_text(RECIPE)
    for n, run in enumerate(RUNS, 1):
        home = folder.reports / run
        home.mkdir(parents=True)
        (home / "stdout").write_text("")
        if run != EMPTY:
            text = SUMMARY.format(n=n) if run != DAMAGED else "\0\1 nothing known"
            (home / "timeline.txt").write_text(text)
        if run == TWO:
            (home / "timeline.rank3.txt").write_text(SUMMARY.format(n=100))
    runs = tuple((Run(r, "c", {}, "p", "timeline", "nvprof", 1, ("true",), {}, Resources(), ("*.txt",)),) for r in RUNS)
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (Job("j", Resources(), runs),)))
        ledger.update_tasks(RUNS, state=State.DONE, reading=Reading.COLLECTED)
    return folder


def by(workers):
    """Read in so many processes."""

    def read_many(paths, options):
        return detect.read_many(paths, options, workers=workers)

    return read_many


def done(folder, read_many, progress=lambda _done, _all: None):
    with Ledger(folder.ledger) as ledger, pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsw.engine.read.read_many", read_many)
        for done, total in reading(folder, ledger):
            progress(done, total)


def held(folder):
    """All that reading leaves: rows, how each run was read, problems."""
    with Ledger(folder.ledger) as ledger:
        states = {run.id: run.reading for run in ledger.runs()}
        return load_rows(folder, "gpu_summary"), states, ledger.problems()


@pytest.fixture
def alone(tmp_path):
    """What one process makes of it."""
    folder = campaign(tmp_path / "alone")
    done(folder, by(1))
    return held(folder)


def test_what_one_process_reads_is_right(alone):
    rows, states, problems = alone
    assert {(r["run"], r["name"], r["rank"]) for r in rows} == {
        (run, f"kernel_{n}", None) for n, run in enumerate(RUNS, 1) if run not in {DAMAGED, EMPTY}
    } | {(TWO, "kernel_100", 3)}
    assert {r for r, state in states.items() if state is not Reading.READ} == {DAMAGED, EMPTY}
    assert {(run, severity) for run, _, severity, _, _ in problems} == {(DAMAGED, "error"), (EMPTY, "error")}


def test_notes_of_a_profiler_are_asides(tmp_path):
    folder = campaign(tmp_path / "c")
    (folder.reports / "r01" / "stdout").write_text("==1== Warning: No API activities were profiled.\n")
    done(folder, by(1))
    assert [(p.run, p.severity) for p in held(folder)[2] if "API" in p.message] == [("r01", "aside")]


def test_rows_are_added_to_a_table_that_an_earlier_nsw_wrote_without_a_column(alone, tmp_path):
    folder = campaign(tmp_path / "earlier")
    done(folder, by(1))
    file = folder.tables / "gpu_summary.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["med_ns", "total_bytes"]), file)
    with Ledger(folder.ledger) as ledger:
        ledger.update_tasks(RUNS[:1], reading=Reading.COLLECTED)
    done(folder, by(1))
    rows = {row["run"]: row for row in held(folder)[0]}
    assert set(rows) == {row["run"] for row in alone[0]}
    assert (rows["r01"]["med_ns"], rows["r02"]["med_ns"]) == (None, None)
    assert rows["r02"]["total_ns"] == 2e6
    assert "med_ns" in pq.read_table(file).column_names


def test_several_processes_leave_the_same(alone, tmp_path):
    folder = campaign(tmp_path / "several")
    done(folder, by(2))
    assert held(folder) == alone


def killing(paths, options):
    """Read by a pool in which the fourth file ends the process that reads it, as a fault in a native library does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "_read_within_limits"):
            patch.setattr(detect, name, ends_at_the_fourth)
        yield from detect.read_many(paths, options, workers=2)


def ends_at_the_fourth(path, options):
    from nsw.readers.detect import read

    if "r04" in path.parts:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(path, options)


def test_a_report_that_ends_its_reader_spoils_its_own_run_only(alone, tmp_path):
    folder = campaign(tmp_path / "killed")
    done(folder, killing)
    rows, states, problems = held(folder)
    before, states_before, problems_before = alone
    assert rows == [r for r in before if r["run"] != "r04"]
    assert states == states_before | {"r04": Reading.UNREADABLE}
    more = [p for p in problems if p not in problems_before]
    assert [(run, report) for run, report, *_ in more] == [("r04", "reports/r04/timeline.txt")]
    assert more[0][3].endswith("the process that did it was killed")


@pytest.mark.parametrize("workers", [1, 2])
def test_reading_that_was_broken_off_is_done_again(alone, tmp_path, workers, monkeypatch):
    monkeypatch.setattr("nsw.engine.read._FLUSH_EVERY_S", -1.0)  # each run is written down at once
    folder = campaign(tmp_path / "broken")

    def breaks(number, _):
        if number == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        done(folder, by(workers), breaks)
    states = held(folder)[1]
    assert [r for r in RUNS if states[r] is Reading.COLLECTED] == RUNS[5:]
    done(folder, by(workers))
    assert held(folder) == alone


def full_disk(*_):
    raise OSError("the disk is full")


def test_rows_that_were_written_before_the_run_counted_as_read_are_not_there_twice(alone, tmp_path, monkeypatch):
    folder = campaign(tmp_path / "torn")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "set_problems", full_disk)
        with pytest.raises(OSError, match="disk"):
            done(folder, by(1))
    rows, states, _ = held(folder)
    assert rows == alone[0]
    assert set(states.values()) == {Reading.COLLECTED}
    done(folder, by(1))
    assert held(folder) == alone


def test_what_a_failed_run_did_until_then_is_in_no_table(tmp_path):
    folder = campaign(tmp_path / "failed")
    with Ledger(folder.ledger) as ledger:
        ledger.update_tasks(["r01", DAMAGED], state=State.FAILED)
    done(folder, by(1))
    rows, states, problems = held(folder)
    assert "r01" not in {r["run"] for r in rows}
    assert {"r02", "r04"} <= {r["run"] for r in rows}
    assert (states["r01"], states[DAMAGED]) == (Reading.READ, Reading.UNREADABLE)
    assert (DAMAGED, "error") in {(run, severity) for run, _, severity, _, _ in problems}


def test_a_run_that_another_job_started_too_says_so_in_the_tables(tmp_path):
    folder = campaign(tmp_path / "twice")
    (folder.reports / RUNS[0] / "again").write_text("12_0\n")
    done(folder, by(1))
    said = [
        (row["run"], row["report"], row["text"]) for row in load_rows(folder, "facts") if row["key"] == "started_again"
    ]
    assert said == [(RUNS[0], f"reports/{RUNS[0]}/again", "job 12_0 started it a second time and left it alone")]


ADDED_TO = """
import os, sys
from pathlib import Path
from nsw.engine.folder import CampaignFolder
from nsw.engine.tables import put_rows
from nsw.engine.tables import row_count
folder = CampaignFolder(Path(sys.argv[1]))
for run in ("r1", "r2"):
    put_rows(folder, "figures", run, [{"report": "stdout", "name": "speed", "value": 1.0}])
    threads = {run: len(os.listdir("/proc/self/task")), **locals().get("threads", {})}
assert row_count(folder.tables / "figures.parquet") == 2
assert len(os.listdir("/proc/self/task")) == threads["r1"], "a thread of Arrow's began, which may end Python by SIGABRT"
"""


def test_a_process_that_added_to_a_table_ends_as_it_should(tmp_path):
    done = subprocess.run([sys.executable, "-c", ADDED_TO, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


DROPPED = "==1== Warning: 3 records were dropped due to insufficient device buffer space.\n"


@pytest.mark.parametrize(("allowed", "outcome"), [("", Reading.UNREADABLE), ("allow_missing: 1\n", Reading.READ)])
def test_a_run_whose_profiler_dropped_records_lacks_a_report_unless_the_recipe_allows_it(tmp_path, allowed, outcome):
    folder = campaign(tmp_path / "c")
    folder.recipe.write_text(RECIPE + allowed)
    (folder.reports / RUNS[0] / "timeline.txt").write_text(DROPPED + SUMMARY.format(n=1))
    with Ledger(folder.ledger) as ledger:
        list(reading(folder, ledger))
        states = {run.id: run.reading for run in ledger.runs()}
        problems = {p.run: p for p in ledger.problems()}
    assert states[RUNS[0]] is outcome
    assert "records were dropped" in problems[RUNS[0]].message
    assert problems[RUNS[0]].report == f"reports/{RUNS[0]}/timeline.txt"
    assert states[RUNS[1]] is Reading.READ


def windowed(path, more=""):
    """A campaign of one run with a window of three ranges on two ranks, of which rank 1 captured two."""
    folder = CampaignFolder(path)
    folder.tables.mkdir(parents=True)
    folder.recipe.write_text(f"nsw: 1\nname: n\napp: {{command: 'true'}}\npasses: [timeline: {WINDOW}]\n{more}")
    (folder.reports / "r").mkdir(parents=True)
    for rank, count in ((0, 3), (1, 2)):
        for number in range(1, count + 1):
            database = Database(folder.reports / "r" / f"timeline.rank{rank}.{number}.sqlite")
            database.range(0, 1000, "step")
            text = "Not all NVTX events might have been collected."
            database.add("DIAGNOSTIC_EVENT", severity=2, text=text, globalPid=77 << 24)
            database.done()
    run = Run("r", "c", {}, "timeline", "timeline", "nsys", 1, ("true",), {}, Resources(), ("timeline*.sqlite",))
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (Job("j", Resources(), ((run,),)),)))
        ledger.update_tasks(["r"], state=State.DONE, reading=Reading.COLLECTED)
    return folder


WINDOW = "{within: {nvtx: step, count: 3}}"


@pytest.mark.parametrize(
    ("allowed", "outcome", "severity"),
    [("", Reading.UNREADABLE, "error"), ("allow_missing: 1\n", Reading.READ, "warning")],
)
def test_a_rank_whose_report_cannot_be_read_lacks_one_unless_the_recipe_allows_it(tmp_path, allowed, outcome, severity):
    folder = windowed(tmp_path / "c", allowed)
    for number in (1, 2):
        (folder.reports / "r" / f"timeline.rank1.{number}.sqlite").write_bytes(b"")
    done(folder, by(0))
    with Ledger(folder.ledger) as ledger:
        (run,), problems = ledger.runs(), ledger.problems()
    assert run.reading is outcome
    assert {(p.severity, p.report) for p in problems} == {(severity, "reports/r/timeline.rank1.1.sqlite")}


@pytest.mark.parametrize(
    ("allowed", "outcome", "severity"),
    [("", Reading.UNREADABLE, "error"), ("allow_missing: 1\n", Reading.READ, "warning")],
)
def test_the_rank_whose_window_caught_less_is_named(tmp_path, allowed, outcome, severity):
    folder = windowed(tmp_path / "c", allowed)
    done(folder, by(0))
    with Ledger(folder.ledger) as ledger:
        (run,), (problem,) = ledger.runs(), ledger.problems()
    assert (run.reading, problem.severity) == (outcome, severity)  # that the program ran on is no problem
    assert problem.message == "rank 1: nsys captured 2 of 3 ranges 'step': no more began and ended"
    assert problem.report == "reports/r/timeline.rank1.1.sqlite"
    rows = load_rows(folder, "nvtx_summary")
    assert {row["rank"]: row["calls"] for row in rows} == {0: 3, 1: 2}


@pytest.mark.parametrize(("busy_s", "outcome"), [(0.95, Reading.READ), (0.5, Reading.UNREADABLE)])
@pytest.mark.parametrize(
    "text",
    ["Number of CUPTI events produced: \t5000, CUPTI buffers: 48 of 50. Some CUPTI events might be missing.",
     "Number of incomplete CUPTI events dropped: 134. Incomplete events appear when GPU timestamp information"],
)  # fmt: skip
def test_a_window_by_the_clock_cuts_off_what_goes_on_and_has_lost_something_only_where_its_end_is_empty(
    tmp_path, text, busy_s, outcome
):
    folder = windowed(tmp_path / "c")
    folder.recipe.write_text(folder.recipe.read_text().replace(WINDOW, "{after: 1s, for: 1s}"))
    for report in (folder.reports / "r").iterdir():
        report.unlink()
    database = Database(folder.reports / "r" / "timeline.sqlite")
    for number in range(int(busy_s * 100)):
        database.kernel(number * 10_000_000, 9_000_000, "k")
    database.add("ANALYSIS_DETAILS", startTime=0, stopTime=10**9, duration=10**9)
    database.add("DIAGNOSTIC_EVENT", severity=2, text=text, globalPid=77 << 24)
    database.done()
    done(folder, by(0))
    with Ledger(folder.ledger) as ledger:
        (run,), problems = ledger.runs(), ledger.problems()
    assert run.reading is outcome
    assert bool(problems) is (outcome is Reading.UNREADABLE)
