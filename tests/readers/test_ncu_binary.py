"""Nsight Compute's binary reports: a clear error without a reader, guarded processes, and the real ncu as oracle."""

import importlib.metadata
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from nsw.readers import installed_tools, read
from nsw.readers.model import Options
from nsw.readers.ncu import binary_reader as ncu_binary
from nsw.readers.ncu import binary_reader as ncu_tool
from nsw.tables.parquet_tables import full_rows

REPORT = b"NVR\0\x02\0\0\0\x08\x07" + b"2023.3.0.0 (build 1)" + bytes(200)


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "a b.ncu-rep"
    path.write_bytes(REPORT)
    return path


@pytest.fixture
def alone(monkeypatch):
    """Neither ncu_report nor an ncu."""
    monkeypatch.setattr(installed_tools, "csv_rows", lambda _: [])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("NSW_NCU", raising=False)
    monkeypatch.setattr(ncu_binary, "ncu_report_extract_command", lambda _: None)


def fake(tmp_path, body):
    tool = tmp_path / "ncu"
    tool.write_text("#!/bin/sh\n" + body)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return str(tool)


@pytest.mark.usefixtures("alone")
def test_without_a_reader_the_exact_command_is_told(report):
    found = read(report)
    assert found.tables == {}
    assert (found.format, found.tool_version) == ("ncu-binary", "2023.3.0.0")
    (problem,) = found.problems
    assert problem.severity == "error"
    assert f"ncu --import '{report}' --page raw --csv --print-units base > report.csv" in problem.fix
    assert "nsw[ncu]" in problem.fix


@pytest.mark.usefixtures("alone")
def test_a_crash_of_the_tool_spoils_nothing_but_the_file(report, tmp_path, monkeypatch):
    monkeypatch.setenv("NSW_NCU", fake(tmp_path, "kill -SEGV $$"))
    (problem,) = read(report).problems
    assert "SIGSEGV" in problem.message


@pytest.mark.usefixtures("alone")
def test_the_words_of_a_tool_that_fails_are_told(report, tmp_path, monkeypatch):
    monkeypatch.setenv("NSW_NCU", fake(tmp_path, "echo \"==ERROR== Failed to load report file 'x'.\"; exit 1"))
    (problem,) = read(report).problems
    assert "exit status 1: ==ERROR== Failed to load report file 'x'." in problem.message


@pytest.mark.usefixtures("alone")
def test_a_tool_that_never_ends_is_ended(report, tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_tool, "TIMEOUT", 0.2)
    monkeypatch.setenv("NSW_NCU", fake(tmp_path, "exec /bin/sleep 60"))
    (problem,) = read(report).problems
    assert "no answer after" in problem.message


@pytest.mark.usefixtures("alone")
def test_a_tool_that_is_not_there(report, monkeypatch):
    monkeypatch.setenv("NSW_NCU", "/no/such/ncu")
    assert "cannot be run" in read(report).problems[0].message


def test_a_file_of_another_kind_under_the_name_is_refused(tmp_path):
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(b"\x01\x02\0\x03 no report")
    assert "NVR" in read(path).problems[0].message


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("year", [2022, 2024])
def test_names_of_kernels_are_asked_for_in_full(report, tmp_path, monkeypatch, year):
    """An ncu that shortens them knows the option not to; an older one refuses it."""
    refusal = "echo \"==ERROR== unrecognised option '--rename-kernels'\"; exit 1"
    page = r"""printf '"ID","Process ID","Kernel Name","x.avg"\n"","","","%%"\n"0","5","%s","1.5"\n' """
    tool = fake(tmp_path, f'case "$*" in *rename-kernels*) {{page}} full ;; *) {page} short ;; esac\n'
                if year == 2024 else f'case "$*" in *rename-kernels*) {refusal} ;; esac\n{page} full\n')  # fmt: skip
    (tmp_path / "ncu").write_text((tmp_path / "ncu").read_text().replace("{page}", page))
    monkeypatch.setenv("NSW_NCU", tool)
    assert [r["kernel"] for r in full_rows("launches", read(report).tables["launches"])] == ["full"]


def _examples():
    ncu = shutil.which("ncu")
    if ncu is None:
        return []
    root = Path(ncu).resolve().parent
    places = (root.parent.parent / "share/doc/nsight-compute/examples", root / "extras/samples")
    # three of the six: each costs a dozen runs of ncu
    return sorted(p for place in places for p in place.glob("**/*.ncu-rep"))[::2]


def _printed(report, folder, *arguments):
    # a copy beside the output: ncu must not write beside the package's files
    path = folder / ("-".join(a.strip("-") for a in arguments) + ".out")
    command = ["ncu", "--import", str(report), *arguments]
    with path.open("wb") as out:
        subprocess.run(command, stdout=out, check=True, timeout=120, env={**os.environ, "LC_ALL": "C"})
    return path


def _values(found):
    return {m["metric"]: m for m in full_rows("metrics", found.tables["metrics"]) if m["value"] is not None}


def _agree(ours, exact):
    """Every number of `ours` lies within its half-width of the exact one; how many were compared."""
    compared = 0
    for name, metric in ours.items():
        other = exact.get(name)
        if other is None or metric["unit"] != other["unit"]:
            continue
        room = (metric["value_pm"] or 0) * 1.001 + (other["value_pm"] or 0) * 1.001 + abs(other["value"]) * 1e-9
        assert abs(metric["value"] - other["value"]) <= room, (name, metric["value"], other["value"])
        compared += 1
    return compared


@pytest.mark.parametrize("example", _examples() or [None], ids=lambda p: p.stem if p else "no ncu on PATH")
def test_every_page_of_a_real_report_tells_the_same(example, tmp_path, monkeypatch):
    if example is None:
        pytest.skip("no ncu on PATH with example reports beside it")
    base = read(_printed(example, tmp_path, "--page", "raw", "--csv", "--print-units", "base"))
    wide = read(_printed(example, tmp_path, "--page", "raw", "--csv"))
    text = read(_printed(example, tmp_path, "--page", "raw"))
    details = read(_printed(example, tmp_path, "--page", "details", "--csv"))
    boxes = read(_printed(example, tmp_path, "--page", "details"))
    session = read(_printed(example, tmp_path, "--page", "session"))
    assert _agree(_values(text), _values(wide)) > 600
    assert _agree(_values(base), _values(wide)) > 300
    assert _agree(_values(boxes), _values(details)) > 30
    launches = [next(full_rows("launches", r.tables["launches"])) for r in (base, wide, text, details, boxes)]
    (base_launch, *others) = launches
    for launch in others:
        same = (
            "kernel",
            "short_name",
            "grid",
            "block_size",
            "context",
            "stream",
            "device",
            "compute_capability",
            "pid",
        )
        assert {k: launch[k] for k in same} == {k: base_launch[k] for k in same}
        assert abs(launch["duration_ns"] - base_launch["duration_ns"]) <= (launch["duration_ns_pm"] or 0) + 0.001
    assert [r["type"] for r in full_rows("rules", details.tables["rules"])] == [
        r["type"] for r in full_rows("rules", boxes.tables["rules"])
    ]
    facts = {f["key"]: f for f in full_rows("facts", session.tables["facts"])}
    assert facts["gpu_name"]["text"] == base_launch["device_name"]

    monkeypatch.setattr(ncu_binary, "ncu_report_extract_command", lambda _: None)
    by_tool = read(example)
    assert _values(by_tool) == _values(base)
    assert by_tool.tool_version == session.tool_version


@pytest.mark.parametrize("example", _examples() or [None], ids=lambda p: p.stem if p else "no ncu on PATH")
def test_ncu_report_tells_the_same(example, tmp_path):
    if example is None:
        pytest.skip("no ncu on PATH with example reports beside it")
    try:
        importlib.metadata.version("ncu_report")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("ncu_report (nsw[ncu]) is not installed")
    exact = ncu_binary.read(example, Options())
    base = read(_printed(example, tmp_path, "--page", "raw", "--csv", "--print-units", "base"))
    assert _agree(_values(base), _values(exact)) > 600
    (ours,), (theirs,) = (list(full_rows("launches", r.tables["launches"])) for r in (exact, base))
    for column in (
        "launch_id",
        "duration_ns",
        "grid",
        "block_size",
        "device",
        "context",
        "stream",
        "device_name",
        "compute_capability",
    ):
        assert ours[column] == theirs[column], column
