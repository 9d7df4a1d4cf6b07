"""Files in place of reports, of whatever name: what they are, and how to get the report."""

import bz2
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from nsw.readers.detect import find_files_and_report_folders, is_meant_as_report, read

NAMES = [
    "a.nsys-rep", "a.qdrep", "a.ncu-rep", "a.sqlite", "a.json", "a.pt.trace.json", "a.json.gz", "a.csv", "a.txt", "a.nvvp",
    "a.nvprof", "a.pstats", "a.prof", "a.html", "a", "a.log", "a.parquet", "a.xml", "a.tar.gz", "a.ncu-repz", "a.qdstrm",
]  # fmt: skip
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body></body></html>\n"


def packed() -> bytes:
    return gzip.compress(bytes(range(256)) * 20, mtime=0)


def archive(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as made:
            made.writestr("a.nsys-rep", "x" * 100)
    else:
        with tarfile.open(fileobj=out, mode="w") as made:
            made.addfile(tarfile.TarInfo("a.nsys-rep"))
    return out.getvalue()


def told(path) -> tuple[str, str | None]:
    report = read(path)
    assert not report.tables
    (problem,) = [p for p in report.problems if p.severity == "error"]
    return problem.message, problem.fix


@pytest.mark.parametrize("name", NAMES)
def test_a_git_lfs_pointer_is_one_under_every_name(tmp_path, name):
    (tmp_path / name).write_bytes(LFS)
    message, fix = told(tmp_path / name)
    assert read(tmp_path / name).tool is None
    assert (message, "git lfs pull" in fix) == (
        "a Git LFS pointer to a file of 12,345 bytes, not the file itself",
        True,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_git_annex_pointer_or_link_is_one_under_every_name(tmp_path, name):
    (tmp_path / name).write_bytes(b"/annex/objects/SHA256E-s123--abc.nsys-rep\n")
    assert "git annex get" in told(tmp_path / name)[1]
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(".git/annex/objects/aa/bb/KEY/KEY")
    message, fix = told(tmp_path / name)
    assert (message, "git annex get" in fix) == ("a git-annex link to a file that is not here", True)


@pytest.mark.parametrize("name", NAMES)
def test_a_web_page_is_one_under_every_name(tmp_path, name):
    (tmp_path / name).write_bytes(HTML)
    assert told(tmp_path / name)[0] == "a web page (Sign in), not a report"


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_file_is_empty_under_every_name(tmp_path, name):
    (tmp_path / name).touch()
    assert told(tmp_path / name)[0] == "the file is empty"


@pytest.mark.parametrize(("name", "data", "message"), [
    ("a.zip", archive("zip"), "an archive of files"),
    ("a.nsys-rep", archive("zip"), "an archive of files"),
    ("a.tar", archive("tar"), "an archive of files"),
    ("a.tgz", packed(), "an archive of files"),
    ("a.json.gz", packed()[:5], "packed with gzip, and cut short: nothing can be unpacked from it"),
    ("a.json.gz", b"\x1f\x8b\x08\x00" + b"junk" * 20, "packed with gzip, and damaged"),
])  # fmt: skip
def test_archives_and_broken_packed_files_are_said_to_be_so(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    assert told(tmp_path / name)[0].startswith(message)


def test_a_link_that_leads_nowhere_says_where(tmp_path):
    (tmp_path / "a.json").symlink_to("/no/such/report.json")
    assert told(tmp_path / "a.json")[0] == "a link to /no/such/report.json, which is not there"


def test_pointers_and_links_below_a_folder_are_missing_reports_and_no_other_files(tmp_path):
    for name in ("a.json", "b.csv", "c.nsys-rep", "d.png"):
        (tmp_path / name).write_bytes(LFS)
    for name in ("e.json", "f.png"):
        (tmp_path / name).symlink_to(".git/annex/objects/x/y")
    meant = [path.name for path in find_files_and_report_folders(tmp_path) if is_meant_as_report(read(path))]
    assert meant == ["a.json", "b.csv", "c.nsys-rep", "e.json"]


def test_a_command_that_is_advised_names_the_file_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("the runs")
    folder.mkdir()
    (folder / "a.sqlite.bz2").write_bytes(bz2.compress(b"SQLite"))
    assert told(folder / "a.sqlite.bz2")[1] == "unpack it first: bunzip2 -k 'the runs/a.sqlite.bz2'"
    (folder / "a b.zip").write_bytes(archive("zip"))
    into = "'the runs/a b'"
    assert told(folder / "a b.zip")[1].endswith(f"`unzip 'the runs/a b.zip' -d {into} && nsw read {into}`")
    (folder / "a.tgz").write_bytes(packed())
    into = "'the runs/a'"
    tar = f"`mkdir {into} && tar -xf 'the runs/a.tgz' -C {into} && nsw read {into}`"
    assert told(folder / "a.tgz")[1].endswith(tar)
    (folder / "r.csv").write_text("nsw: 1\nname: t\napp: {command: ./a}\n")
    assert told(folder / "r.csv")[1] == "`nsw plan 'the runs/r.csv'` shows its plan"
