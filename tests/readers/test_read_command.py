"""`nsw read` of folders and into files: every table as Parquet, one as CSV."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsw.cli.main import run
from nsw.readers import read
from nsw.tables import TABLES, row_count
from nsw.tables.parquet_tables import arrow_schema

H200 = Path(__file__).parents[1] / "fixtures" / "h200"


@pytest.fixture
def folder(tmp_path):
    """Two reports, one of them deeper, and three files that are none; one more report is hidden."""
    top = tmp_path / "reports"
    for place in ("deep/er", ".hidden"):
        (top / place).mkdir(parents=True)
    shutil.copy(H200 / "naive-details.csv", top)
    shutil.copy(H200 / "tiled-stats.txt", top / "deep" / "er")
    shutil.copy(H200 / "tiled-details.csv", top / ".hidden")
    for name in ("notes.md", "deep/run.sh", "deep/empty"):
        (top / name).write_text("hello\n" if name != "deep/empty" else "")
    return top


def test_a_folder_gives_the_reports_below_it_and_counts_the_rest(folder, capsys):
    assert run(["read", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    paths = [Path(r["path"]).relative_to(folder) for r in json.loads(out)["reports"]]
    assert paths == [Path("naive-details.csv"), Path("deep/er/tiled-stats.txt")]
    assert err == f"3 other files in {folder}: no known report format\n"


def test_what_nsys_printed_beside_its_reports_is_one_of_the_other_files(folder, capsys):
    for name in ("a.out", "b.txt"):
        (folder / name).write_text("Generating '/tmp/n.qdstrm'\nGenerated:\n    /scratch/u/run.nsys-rep\n")
    assert run(["read", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == f"5 other files in {folder}: no known report format\n"
    assert "/scratch" not in out
    (folder / "b.txt").write_text("Generating '/tmp/n.qdstrm'\nImporter error status: Importation failed.\n")
    assert run(["read", str(folder)]) == 1


def test_a_folder_without_a_report_is_said(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("hello\n")
    assert run(["read", str(tmp_path)]) == 1
    assert f"no report in {tmp_path}" in capsys.readouterr().err


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12345\n"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [("a.sqlite", b"", "is empty"), ("a.nsys-rep", b"", "is empty"), ("a.pstats", b"", "is empty"),
     ("a.nvvp", b"\1\2\3" * 99, "no known"), ("a.sqlite", b"\1\2\3" * 99, "no known"),
     ("a.sqlite", b"SQLite format 3\0" + bytes(99), ""), ("a.json.gz", gzip.compress(b"{}", mtime=0)[:12], "gzip"),
     ("a.ncu-rep", LFS, "Git LFS pointer"), ("a.json.gz", LFS, "Git LFS pointer")],
)  # fmt: skip
def test_a_broken_file_of_a_folder_with_the_name_of_a_report_is_an_error(folder, capsys, name, data, said):
    (folder / name).write_bytes(data)
    assert run(["read", str(folder), "--json"]) == 1
    out, err = capsys.readouterr()
    broken = json.loads(out)["reports"][0]
    assert broken["path"].endswith(name)
    assert said in broken["problems"][0]["message"]
    assert "3 other files" in err


def test_another_programs_database_in_a_folder_is_no_report(folder, capsys):
    with closing(sqlite3.connect(folder / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a)")
    (folder / "settings.json.gz").write_bytes(gzip.compress(b'{"a": 1}'))
    assert run(["read", str(folder), "--json"]) == 0
    assert "5 other files" in capsys.readouterr().err


def test_a_file_that_is_named_and_is_no_report_is_an_error_still(folder, capsys):
    assert run(["read", str(folder), str(folder / "notes.md"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["reports"][-1]["problems"][0]["severity"] == "error"


def test_every_table_goes_into_a_file_of_a_folder(folder, tmp_path, capsys):
    import pyarrow.parquet as pq

    target = tmp_path / "out"
    assert run(["read", str(folder), "--format", "parquet", "-o", f"{target}/"]) == 0
    wanted: dict[str, dict[str, int]] = {}
    for path in (folder / "naive-details.csv", folder / "deep/er/tiled-stats.txt"):
        for name, data in read(path).tables.items():
            if row_count(data):
                wanted.setdefault(name, {})[str(path)] = row_count(data)
    assert {p.name for p in target.iterdir()} == {f"{n}.parquet" for n in wanted}
    for name, reports in wanted.items():
        found = pq.read_table(target / f"{name}.parquet")
        assert found.schema.equals(arrow_schema(name))
        assert found.schema.field("report").metadata is not None
        column = found["report"].to_pylist()
        assert {r: column.count(r) for r in set(column)} == reports
    assert "out/launches.parquet: 2 rows" in capsys.readouterr().out


def test_one_table_goes_into_one_parquet_file(folder, tmp_path):
    import pyarrow.parquet as pq

    target = tmp_path / "rules.parquet"
    assert (
        run(["read", str(folder / "naive-details.csv"), "-t", "rules", "--format", "parquet", "-o", str(target)]) == 0
    )
    assert pq.read_table(target).num_rows == 30


def test_a_failure_leaves_the_file_of_before(folder, tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.mkdir()
    (target / "rules.parquet").write_bytes(b"before")
    monkeypatch.setattr("nsw.present.emit.to_arrow", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["read", str(folder), "--format", "parquet", "-o", str(target)])
    assert {p.name: p.read_bytes() for p in target.iterdir()} == {"rules.parquet": b"before"}


def test_one_table_goes_into_a_csv(folder, tmp_path):
    target = tmp_path / "launches.csv"
    assert run(["read", str(folder / "naive-details.csv"), "-t", "launches", "--format", "csv", "-o", str(target)]) == 0
    with target.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == list(TABLES["launches"].column_names)
    assert [r["short_name"] for r in found] == ["matmul_naive"] * 2


def test_csv_of_several_tables_is_refused(folder, capsys):
    assert run(["read", str(folder / "naive-details.csv"), "--format", "csv"]) == 2
    assert "--table" in capsys.readouterr().err


def test_parquet_wants_a_place(folder, capsys):
    assert run(["read", str(folder), "--format", "parquet"]) == 2
    assert "--output" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said(folder, capsys):
    assert run(["read", str(folder), "--format", "parquet", "-o", "/proc/nowhere"]) != 0
    assert "/proc/nowhere cannot be made" in capsys.readouterr().err


def test_a_table_that_a_file_has_not_is_named(folder, capsys):
    assert run(["read", str(folder / "naive-details.csv"), "-t", "operators", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert report["problems"][-1]["message"] == "holds nothing of operators"


@pytest.mark.parametrize("how", ["json", "table", "csv"])
def test_of_several_files_some_may_lack_the_table_and_are_named(folder, capsys, how):
    few = [str(folder / "naive-details.csv"), str(folder / "deep/er/tiled-stats.txt")]
    assert run(["read", *few, "-t", "api_summary", "--format", how]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    if how == "json":
        (problem,) = json.loads(said)["reports"][0]["problems"]
        assert (problem["severity"], problem["message"]) == ("warning", "holds nothing of api_summary")
    else:
        start = said.index("warning:")
        assert "holds nothing of api_summary" in said[start : start + 60 + len(few[0])]
        # a path that is longer than a line is broken
        assert "naive-details.csv" in said[: said.index("holds nothing")].replace(" ", "")


@pytest.mark.parametrize("how", ["json", "table", "csv", "parquet"])
def test_what_many_reports_say_alike_is_one_line_and_complete_in_json(folder, tmp_path, capsys, how):
    several = tmp_path / "several"
    several.mkdir()
    torn = (H200 / "naive-details.csv").read_text() + '"0","7","torn"\n'
    for number in range(5):
        (several / f"r{number}.csv").write_text(torn)
    into = ["-o", str(tmp_path / "out")] if how == "parquet" else []
    table = ["-t", "launches"] if how == "csv" else []
    assert run(["read", str(several), "--format", how, *table, *into]) == 1
    out, err = capsys.readouterr()
    said = "does not match the header"
    if how == "json":
        assert [sum(said in p["message"] for p in r["problems"]) for r in json.loads(out)["reports"]] == [1] * 5
        return
    lines = [line for line in (out + err).splitlines() if said in line]
    assert re.search(r"r0\.csv.* and 4 more: 1 row ", lines[-1])
    assert len(lines) == 1


def test_that_none_of_several_files_has_the_table_is_an_error(folder, capsys):
    few = [str(folder / "naive-details.csv"), str(folder / "deep/er/tiled-stats.txt")]
    assert run(["read", *few, "-t", "operators", "--json"]) == 1
    assert "none of the files has data for operators" in capsys.readouterr().err


def test_a_damaged_file_beside_one_that_has_the_table_is_an_error_still(folder, capsys):
    (folder / "bad.sqlite").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert run(["read", str(folder / "bad.sqlite"), str(folder / "naive-details.csv"), "-t", "launches", "--json"]) == 1
