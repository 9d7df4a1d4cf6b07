"""Files beside each other: each row is wanted once."""

from nsw.profilers.files_of_one_recording import files_to_read


def test_pages_stand_for_the_report_that_they_were_exported_from():
    found = files_to_read(
        ["counters.rank0.ncu-rep", *(f"counters.rank0.{p}.csv" for p in ("raw", "details", "session"))]
    )
    assert {name: part.source for name, part in found.items()} == {
        f"counters.rank0.{page}.csv": "counters.rank0.ncu-rep" for page in ("details", "raw", "session")
    }
    assert [t for t in ("metrics", "rules", "facts") if found["counters.rank0.details.csv"].reads_table(t)] == ["rules"]
    assert [t for t in ("metrics", "rules", "facts") if found["counters.rank0.session.csv"].reads_table(t)] == ["facts"]
    assert found["counters.rank0.raw.csv"].reads_table("metrics")


def test_pages_alone_stand_for_themselves():
    assert files_to_read(["a.raw.csv", "a.details.csv"])["a.details.csv"].source == "a.raw.csv"
    assert files_to_read(["a.details.csv"])["a.details.csv"].reads_table("metrics")


def test_a_report_whose_pages_are_missing_is_read_itself():
    assert set(files_to_read(["a.ncu-rep", "b.ncu-rep", "b.raw.csv"])) == {"a.ncu-rep", "b.raw.csv"}


def test_operators_come_from_the_table_which_has_more_of_them():
    found = files_to_read(["host.rank1.pt.trace.json", "host.rank1.operators.txt", "host.rank2.pt.trace.json"])
    assert not found["host.rank1.pt.trace.json"].reads_table("operators")
    assert found["host.rank1.pt.trace.json"].reads_table("gpu_summary")
    assert found["host.rank2.pt.trace.json"].reads_table("operators")


def test_what_nvprof_printed_stands_for_its_file():
    assert set(files_to_read(["c.12.nvprof.csv", "c.12.nvvp", "c.13.nvvp"])) == {"c.12.nvprof.csv", "c.13.nvvp"}


def test_other_files_are_read_whole_in_order():
    assert list(files_to_read(["b.sqlite", "a.csv"])) == ["a.csv", "b.sqlite"]
    assert files_to_read(["b.sqlite"])["b.sqlite"].reads_table("gpu_summary")


def test_a_folder_is_read_without_reading_a_recording_twice(tmp_path):
    from nsw.readers.detect import find_files_and_report_folders

    for name in ("counters.ncu-rep", "counters.raw.csv", "counters.details.csv", "counters.session.csv", "other.csv"):
        (tmp_path / name).touch()
    assert [path.name for path in find_files_and_report_folders(tmp_path)] == ["counters.raw.csv", "other.csv"]
