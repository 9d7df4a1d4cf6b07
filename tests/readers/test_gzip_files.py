"""A report of any format that is packed with gzip or xz is read straight away, within the limit, and leaves nothing behind."""

import gzip
import lzma
import tempfile
from pathlib import Path

import pytest

from nsw.readers import Options, read, untrusted_files
from nsw.readers.detect import find_files_and_report_folders
from nsw.tables import full_rows

H200 = Path(__file__).parents[1] / "fixtures" / "h200"
NO_REPORT = b"just a line of text\n" * 100


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """Where copies are unpacked: nothing may be left there."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not [*folder.iterdir()]


def packed(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(gzip.compress(data))
    return folder / name


@pytest.mark.parametrize("name", ["tiled.sqlite", "naive-raw.csv", "naive-details.txt", "range-raw.csv"])
def test_a_packed_report_has_the_tables_of_the_plain_one(tmp_path, name):
    stored = H200 / f"{name}.gz"
    data = gzip.decompress(stored.read_bytes()) if stored.exists() else (H200 / name).read_bytes()
    (tmp_path / name).write_bytes(data)
    plain, found = read(tmp_path / name), read(packed(tmp_path, f"{name}.gz", data))
    assert found.tables
    assert {n: [*full_rows(n, t)] for n, t in found.tables.items()} == {
        n: [*full_rows(n, t)] for n, t in plain.tables.items()
    }
    assert (found.tool, found.format, found.problems) == (plain.tool, plain.format, plain.problems)
    assert found.path == str(tmp_path / f"{name}.gz")


def test_the_name_of_the_file_does_not_matter(tmp_path):
    (tmp_path / "report").write_bytes((H200 / "tiled.sqlite.gz").read_bytes())
    assert read(tmp_path / "report").format == "nsys-sqlite"


def test_what_unpacks_to_more_than_is_allowed_is_refused_with_the_option(tmp_path):
    report = read(H200 / "tiled.sqlite.gz", Options(max_unpacked=50 << 10))
    (problem,) = report.problems
    assert not report.tables
    assert "unpack to more than 50.0 KiB" in problem.message
    assert "--max-unpacked" in problem.fix


def test_of_what_is_no_report_only_the_beginning_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted_files, "_LOOKED_AT", 64 << 10)
    report = read(packed(tmp_path, "a.gz", NO_REPORT * 1000), Options(max_unpacked=400 << 10))
    assert [p.message for p in report.problems] == ["packed with gzip: no known report format"]
    assert report.tool is None


def test_what_is_packed_twice_is_not_unpacked_twice(tmp_path):
    report = read(packed(tmp_path, "a.gz", gzip.compress(NO_REPORT)))
    assert [p.message for p in report.problems] == ["packed with gzip: packed with gzip"]


def test_a_report_that_is_cut_short_is_read_as_far_as_it_goes_and_that_is_an_error(tmp_path):
    data = (H200 / "naive-raw.csv.gz").read_bytes()
    (tmp_path / "a.csv.gz").write_bytes(data[: len(data) * 9 // 10])
    report = read(tmp_path / "a.csv.gz")
    assert report.tool == "ncu"
    assert any("damaged or cut short" in p.message for p in report.problems if p.severity == "error")


def test_advice_names_the_file_as_it_is_when_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nothing")
    path = packed(tmp_path, "a b.nsys-rep.gz", b"NVIDIA Tegra Profiler Report" + b"\x00" * 100)
    fixes = " ".join(p.fix or "" for p in read(path).problems)
    assert f"unpack it first: gunzip -k '{path}'; then: " in fixes
    assert "nsw-unpacked-" not in fixes


def test_no_room_for_the_copy_is_said_with_the_way_out(tmp_path, monkeypatch):
    path = packed(tmp_path, "a.gz", NO_REPORT)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", "/nothing")
        (problem,) = read(path).problems
    assert (problem.message, "TMPDIR" in problem.fix) == ("cannot be unpacked: No such file or directory", True)


def test_of_a_report_and_its_packed_export_in_a_folder_one_is_read(tmp_path):
    for name in ("a.nsys-rep", "a.sqlite.gz", "b.csv", "b.csv.gz", "c.sqlite.gz"):
        (tmp_path / name).touch()
    assert [path.name for path in find_files_and_report_folders(tmp_path) if path.is_file()] == [
        "a.sqlite.gz",
        "b.csv",
        "c.sqlite.gz",
    ]


@pytest.mark.parametrize("name", ["tiled.sqlite", "naive-details.csv"])
def test_a_report_that_is_packed_with_xz_has_the_tables_of_the_plain_one(tmp_path, name):
    stored = H200 / f"{name}.gz"
    data = gzip.decompress(stored.read_bytes()) if stored.exists() else (H200 / name).read_bytes()
    (tmp_path / name).write_bytes(data)
    half = len(data) // 2
    streams = [lzma.compress(data[:half]), lzma.compress(data[half:])]  # as parallel packers write them
    (tmp_path / f"{name}.xz").write_bytes(b"".join(streams) + bytes(4))
    plain, found = read(tmp_path / name), read(tmp_path / f"{name}.xz")
    assert found.tables
    assert {n: [*full_rows(n, t)] for n, t in found.tables.items()} == {
        n: [*full_rows(n, t)] for n, t in plain.tables.items()
    }
    assert found.problems == plain.problems


def test_xz_that_is_cut_short_damaged_or_too_large_is_reported(tmp_path):
    data = lzma.compress(gzip.decompress((H200 / "tiled.sqlite.gz").read_bytes()))
    file = tmp_path / "r.sqlite.xz"
    file.write_bytes(data[:-100])
    assert any("packed with xz, and damaged or cut short" in p.message for p in read(file).problems)
    file.write_bytes(data)
    (problem,) = read(file, Options(max_unpacked=50 << 10)).problems
    assert "unpack to more than 50.0 KiB" in problem.message
    file.write_bytes(lzma.compress(NO_REPORT))
    assert [p.message for p in read(file).problems] == ["packed with xz: no known report format"]
