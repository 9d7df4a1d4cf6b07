"""Several ranges that nsys captured are several reports of one recording, and are read as one."""

import gzip
from pathlib import Path

import pytest

from nsw.profilers.files_of_one_recording import files_to_read, recording_files_from
from nsw.readers.detect import read
from nsw.readers.model import Options
from nsw.readers.nsys.export.source import SplicedSource, TableFault
from nsw.readers.nsys.export.sqlite import SqliteSource
from tests.readers.conftest import Database

STEP = 1_000
H200 = Path(__file__).parents[1] / "fixtures" / "h200"
TABLES = Options(tables=frozenset({"gpu_summary", "nvtx_trace", "iterations", "gpu_trace", "facts"}))


def ranges(folder, count=5, first_id=0):
    """A report a range: a step with a kernel of its own number and one of all, which have other ids in each report."""
    for number in range(1, count + 1):
        database = Database(folder / f"timeline.{number}.sqlite")
        for other in range(first_id + number):  # so that a name has another id in each
            database.string(f"other {other}")
        begin = 5_000 * number  # of its own recording: each begins anew
        database.range(begin, begin + STEP, "step")
        for at, name in ((100, "gemm"), (500, f"only {number}")):
            correlation = 10 * number + at
            database.call(begin + at, 50, correlationId=correlation)
            database.kernel(begin + at + 60, 300, name, correlationId=correlation)
        database.add("ANALYSIS_DETAILS", duration=2_000, startTime=0, stopTime=2_000)
        database.add("DIAGNOSTIC_EVENT", severity=2, text="Not all CUDA events might have been collected.")
        database.done()
    return folder / "timeline.1.sqlite"


def test_the_ranges_follow_each_other_without_the_time_in_which_nsys_halted_the_program(tmp_path):
    report = read(ranges(tmp_path), TABLES)
    assert [p.severity for p in report.problems] == ["warning"]  # what each of them says, once
    starts = [row["start_ns"] for row in report.tables["nvtx_trace"]]
    assert starts == [5_000 + STEP * n for n in range(5)]
    (row,) = report.tables["iterations"]
    assert (row["iterations"], row["name"], row["med_ns"]) == (5, "step", STEP)
    assert [row["value"] for row in report.tables["facts"] if row["key"] == "duration_ns"] == [10_000]


def test_a_kernel_is_one_kernel_though_each_report_numbers_its_names_itself(tmp_path):
    report = read(ranges(tmp_path), TABLES)
    counts = {row["name"]: row["calls"] for row in report.tables["gpu_summary"]}
    assert counts == {"gemm": 5} | {f"only {n}": 1 for n in range(1, 6)}


def test_of_a_recording_the_first_file_is_read_and_a_later_one_alone_where_it_is_named(tmp_path):
    first = ranges(tmp_path, 11)
    names = [f"timeline.{n}.sqlite" for n in range(1, 12)]
    assert [path.name for path in recording_files_from(first)] == names  # 10 behind 9
    assert list(files_to_read([*names, "timeline.rank0.2.sqlite", "timeline.rank0.1.sqlite", "other.2.sqlite"])) == [
        "other.2.sqlite", "timeline.1.sqlite", "timeline.rank0.1.sqlite"
    ]  # fmt: skip
    assert len(read(tmp_path / "timeline.11.sqlite", TABLES).tables["nvtx_trace"]) == 1


def test_five_ranges_of_an_h200_give_its_iteration():
    report = read(H200 / "ranges" / "timeline.1.sqlite.gz", TABLES)
    (row,) = report.tables["iterations"]
    assert (row["name"], row["iterations"], row["steady"]) == ("step", 5, 4)
    assert row["med_ns"] == pytest.approx(317.8e6, rel=0.002)  # what the program printed of steps that nsys let pass
    kernels = [row for row in report.tables["gpu_summary"] if row["kind"] == "kernel"]
    assert sum(row["calls"] for row in kernels) == 5 * 102
    assert not any(problem.is_loss for problem in report.problems)


def test_what_still_ran_at_the_end_of_a_range_is_lost_and_nsys_says_so_as_mere_information():
    report = read(H200 / "ranges-unfinished" / "timeline.1.sqlite.gz", TABLES)
    (problem,) = [problem for problem in report.problems if problem.is_loss]
    assert "incomplete CUPTI events dropped: 143" in problem.message
    assert "torch.cuda.synchronize()" in problem.fix


def test_packed_ranges_are_read_as_one_too(tmp_path):
    ranges(tmp_path)
    for number in range(1, 6):
        file = tmp_path / f"timeline.{number}.sqlite"
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert len(read(tmp_path / "timeline.1.sqlite.gz", TABLES).tables["nvtx_trace"]) == 5


def test_a_damaged_range_is_an_error_and_no_shorter_recording(tmp_path):
    first = ranges(tmp_path)
    (tmp_path / "timeline.3.sqlite").write_bytes(b"no database")
    assert any(p.severity == "error" for p in read(first, TABLES).problems)


def test_an_id_without_a_text_in_its_report_gets_none_of_another(tmp_path):
    first = ranges(tmp_path, 2)
    database = Database(tmp_path / "timeline.3.sqlite")
    database.kernel(0, 10, demangledName=105, shortName=105, mangledName=105)
    source = SplicedSource([SqliteSource(file) for file in (first, database.done())])
    ids = {
        int(i) for batch in source.scan("CUPTI_ACTIVITY_KIND_KERNEL", ["demangledName"]) for i in batch["demangledName"]
    }
    assert sorted(source.strings(sorted(ids)).values()) == ["gemm", "only 1"]
    assert source.contradictions.nameless == {-106}


def test_a_damaged_table_of_texts_is_named(tmp_path):
    first = ranges(tmp_path, 2)
    data = bytearray(first.read_bytes())
    source = SqliteSource(first)
    first.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(TableFault, match="StringIds"):
        SplicedSource([source, SqliteSource(tmp_path / "timeline.2.sqlite")])


def test_of_a_process_without_events_nsys_does_not_say_that_some_may_be_missing(tmp_path):
    database = Database(tmp_path / "report.sqlite")
    database.kernel(0, 10)
    for process, text in ((1, "Not all NVTX events might have been collected."), (1, "No NVTX events collected."),
                          (2, "Not all CUDA events might have been collected.")):  # fmt: skip
        database.add("DIAGNOSTIC_EVENT", severity=2, text=text, globalPid=process << 24)
    messages = [p.message for p in read(database.done()).problems]
    assert ["NVTX" in message for message in messages] == [True, False]
    assert "No NVTX" in messages[0]
    assert "the recording ended before this process did" in messages[1]
