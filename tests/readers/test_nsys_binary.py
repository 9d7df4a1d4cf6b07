"""Reports that only nsys can open, with a stand-in for nsys."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from nsw.readers import installed_tools, read
from nsw.readers.model import Options
from nsw.readers.nsys.export import binary as nsys_binary

MAGIC = b"NVIDIA Tegra Profiler Report 1.\0\0"


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "run 1.nsys-rep"
    path.write_bytes(MAGIC)
    return path


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Makes NSW_NSYS a script with the given body; its arguments are in $@."""

    def make(body):
        tool = tmp_path / "nsys-stand-in"
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("NSW_NSYS", str(tool))
        return tool

    return make


@pytest.fixture
def no_nsys(monkeypatch):
    monkeypatch.delenv("NSW_NSYS", raising=False)
    monkeypatch.setattr(nsys_binary, "find_nsys", list)


def errors(report):
    return [p for p in report.problems if p.severity == "error"]


def test_the_export_of_a_found_nsys_is_read_and_removed(report, stand_in, typical_database, tmp_path):
    database = typical_database()
    log = tmp_path / "log"
    stand_in(
        f'echo "$@" > {shlex.quote(str(log))}; cp {shlex.quote(str(database))} "$7"; exit 1'
    )  # its status is no sign
    before = sorted(p.name for p in tmp_path.iterdir())
    found = read(report)
    assert not found.problems
    assert found.format == "nsys-binary"
    assert found.path == str(report)
    assert found.tables.keys() == read(database).tables.keys()
    said = log.read_text()
    assert said.startswith("export --type sqlite --force-overwrite true -o /")
    exported = said.split()[6]
    assert not Path(exported).exists()
    assert sorted(p.name for p in tmp_path.iterdir() if p != log) == before


def test_what_nsys_says_is_in_the_error(report, stand_in):
    stand_in("echo 'Processing: [==50%  ]'; echo 'Section Table Reference magic number mismatch.' >&2")
    found = read(report)
    assert not found.tables
    (error,) = errors(found)
    assert "Section Table Reference magic number mismatch." in error.message
    assert "50%" not in error.message


@pytest.mark.usefixtures("no_nsys")
def test_without_nsys_the_command_is_said(report):
    (error,) = errors(read(report))
    assert "no nsys is found" in error.message
    target = report.with_suffix(".sqlite")
    assert f"nsys export --type sqlite --force-overwrite true -o '{target}' '{report}'" in error.fix


RAW_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream 2024"


@pytest.mark.usefixtures("no_nsys")
@pytest.mark.parametrize("name", ["old.qdrep", "left.qdstrm"])
def test_without_nsys_the_command_for_every_kind_of_report_is_said(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(RAW_MAGIC if name.endswith(".qdstrm") else MAGIC)
    found = read(path)
    (error,) = errors(found)
    assert found.format == "nsys-binary"
    assert f"-o {path.with_suffix('.sqlite')} " in error.fix
    # `nsys export` refuses a .qdstrm: its importer makes a report of it first
    assert (f"QdstrmImporter -i {path} -o {path.with_suffix('.nsys-rep')} && nsys" in error.fix) == ("left" in name)


def test_a_qdstrm_is_imported_before_it_is_exported(tmp_path, stand_in, typical_database):
    database = typical_database()
    home = tmp_path / "nsight"
    tool = stand_in(f'grep -q imported "${{8}}" && cp {shlex.quote(str(database))} "$7"')
    (home / "bin").mkdir(parents=True)
    os.environ["NSW_NSYS"] = str(tool.rename(home / "bin" / "nsys"))
    path = tmp_path / "left.qdstrm"
    path.write_bytes(RAW_MAGIC)
    (error,) = errors(read(path))
    assert "no QdstrmImporter beside this nsys" in error.message
    importer = home / "host-linux-x64" / "QdstrmImporter"
    importer.parent.mkdir()
    importer.write_text('#!/bin/sh\necho "version mismatch"\n')
    importer.chmod(0o755)
    (error,) = errors(read(path))
    assert "QdstrmImporter: version mismatch" in error.message
    importer.write_text('#!/bin/sh\ntest "$1 $3" = "-i -o" && echo imported >"$4"\n')
    found = read(path)
    assert not found.problems
    assert "gpu_summary" in found.tables
    assert sorted(p.name for p in path.parent.glob("*.nsys-rep")) == []


def test_a_hanging_nsys_is_ended_with_its_children(report, stand_in, monkeypatch):
    monkeypatch.setattr(nsys_binary, "_TIMEOUT", 0.3)
    stand_in("sleep 60 & sleep 60")
    (error,) = errors(read(report))
    assert "no answer after" in error.message


def test_an_nsys_that_cannot_be_run_is_named(report, monkeypatch):
    monkeypatch.setenv("NSW_NSYS", "/no/such/nsys")
    (error,) = errors(read(report))
    assert "/no/such/nsys: cannot be run: No such file" in error.message


@pytest.mark.usefixtures("no_nsys")
@pytest.mark.parametrize("path", ["/opt/nvidia/nsight-systems/2031.4.2/target", "/a/NsightSystems-cli-2031.4.2/target"])
def test_the_nsys_that_made_a_report_is_named(report, path):
    report.write_bytes(MAGIC + b"\0Compute 2033.1.1\0" + 2 * f"{path}\0".encode() + b"/opt/nsight-systems/2030.1.1/x")
    (error,) = errors(read(report))
    assert "on a machine with nsys 2031.4.2 or newer, and read the .sqlite" in error.fix
    report.write_bytes(MAGIC)
    (error,) = errors(read(report))
    assert "on a machine with an nsys as new as the report, and" in error.fix


@pytest.mark.usefixtures("no_nsys")
@pytest.mark.parametrize("age", ["newer", "older"])
def test_an_export_beside_the_report_is_used_only_when_newer(report, typical_database, age):
    beside = typical_database().rename(report.with_suffix(".sqlite"))
    at = report.stat().st_mtime_ns + (10**9 if age == "newer" else -(10**9))
    os.utime(beside, ns=(at, at))
    found = read(report)
    if age == "newer":
        (problem,) = found.problems
        assert problem.severity == "warning"
        assert beside.name in problem.message
        assert "gpu_summary" in found.tables
    else:
        (problem,) = errors(found)
        assert "older than the report and not used" in problem.message
        assert not found.tables


def test_newer_versions_are_tried_first():
    paths = [f"/opt/nvidia/nsight-systems/{v}/bin/nsys" for v in ("2023.4.1", "2024.10.1", "2024.2.3")]
    assert "/2024.10.1/" in max(paths, key=installed_tools._version_numbers_in_path)


def test_a_text_with_the_suffix_is_not_given_to_nsys(tmp_path):
    path = tmp_path / "x.nsys-rep"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    (error,) = errors(read(path))
    assert "LFS" in error.message


def test_the_nsys_that_the_site_names_is_used(report, stand_in, typical_database, monkeypatch):
    tool = stand_in(f'cp {shlex.quote(str(typical_database()))} "$7"')
    monkeypatch.delenv("NSW_NSYS")
    monkeypatch.setattr(nsys_binary, "find_nsys", list)
    assert not read(report, Options(nsys=str(tool))).problems
    assert errors(read(report, Options(nsys="/nowhere/nsys")))
