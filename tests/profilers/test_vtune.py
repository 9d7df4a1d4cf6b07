"""VTune's and APS' command lines, and what their jobs and their tasks on the site do, with scripts in their places."""

import gzip
import subprocess

import pytest

from nsw.profilers import aps, shell_functions_of_profiler, vtune
from nsw.profilers.files_of_one_recording import files_to_read
from nsw.profilers.model import Request
from tests.fakes import intel_reports as printed
from tests.fakes.intel_tools import make_aps, make_vtune

PROGRAM = ("bash", "-c", "echo out; exit 3", "my prog")


def words(**how):
    return vtune.profile(Request("vtune", ("./a", "b c"), **how)).command


def shell(module, place, *arguments):
    """One of a profiler's functions for the jobs, as a job calls it."""
    text = f'{shell_functions_of_profiler(module.TOOL)}\n"nsw_$1" "${{@:2}}"'
    done = subprocess.run(
        ["bash", "-c", text, "nsw", *arguments], cwd=place, capture_output=True, text=True, check=False
    )
    assert "command not found" not in done.stderr
    return done


def test_hotspots_in_software_is_what_it_collects_first():
    assert words() == (
        "vtune", "-collect", "hotspots", "-finalization-mode=deferred", "-result-dir", "host.vtune", "--", "./a", "b c",
    )  # fmt: skip


def test_knobs_and_options_are_passed_on_and_finalising_may_be_chosen():
    assert words(analysis="memory-access", knobs=(("sampling-interval", "100"),), options=("-finalization-mode=none",)) == (
        "vtune", "-collect", "memory-access", "-knob", "sampling-interval=100", "-finalization-mode=none",
        "-result-dir", "host.vtune", "--", "./a", "b c",
    )  # fmt: skip


def test_what_only_amplxe_cl_knows_is_asked_of_it_alone():
    assert "it does hotspots" in vtune.profile(Request("vtune", ("./a",), analysis="general-exploration")).impossible
    old = vtune.profile(Request("/opt/intel/amplxe-cl", ("./a",), analysis="general-exploration"))
    assert old.command[:3] == ("/opt/intel/amplxe-cl", "-collect", "general-exploration")


def test_of_a_gpu_analysis_the_summary_alone_is_read():
    asked = vtune.profile(Request("vtune", ("./a",), analysis="gpu-offload"))
    assert asked.command[:3] == ("vtune", "-collect", "gpu-offload")
    assert asked.reports == ("host*.summary.csv",)


def test_a_job_makes_tables_of_each_rank(tmp_path, monkeypatch):
    tool = str(make_vtune(tmp_path / "bin"))
    monkeypatch.setenv("NSW_RANK", "1")
    asked = vtune.profile(Request(tool, PROGRAM, per_rank=True, export_here=True))
    done = subprocess.run(asked.command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert [call[2:] for call in asked.after] == [("vtune_export", tool, "host")]
    assert shell(vtune, tmp_path, *asked.after[0][2:]).returncode == 0
    assert (tmp_path / "host.rank1.hotspots.csv").read_text() == printed.HOTSPOTS_CSV
    assert (tmp_path / "host.rank1.summary.csv").read_text() == printed.SUMMARY_CSV


def test_the_result_is_kept_in_one_file_where_reports_are_wanted(tmp_path):
    tool = str(make_vtune(tmp_path / "bin"))
    asked = vtune.profile(Request(tool, PROGRAM))
    subprocess.run(asked.command, cwd=tmp_path, capture_output=True, check=False)
    for call in asked.after:
        assert shell(vtune, tmp_path, *call[2:]).returncode == 0
    listed = subprocess.run(["tar", "-tzf", tmp_path / "host.vtune.tar.gz"], capture_output=True, text=True, check=True)
    assert "host.vtune/analysis" in listed.stdout.splitlines()


@pytest.fixture
def scratch(tmp_path):
    """A campaign's folder on a site, with a run of two ranks that is done."""
    home = tmp_path / "runs" / "a.host.r1" / "attempt-1"
    for rank in (0, 1):
        (home / f"host.rank{rank}.vtune").mkdir(parents=True)
        (home / f"host.rank{rank}.vtune" / "analysis").touch()
    (home / "status").write_text("state=done\n")
    (tmp_path / "runs" / "a.host.r1.reduce" / "attempt-1").mkdir(parents=True)
    return tmp_path


def test_a_task_on_the_site_finalises_and_packs_the_tables(scratch):
    tool = str(make_vtune(scratch / "bin"))
    asked = vtune.profile(Request(tool, PROGRAM, per_rank=True, export_here=True, reduce_there=True))
    assert asked.after == ()
    there = scratch / "runs" / "a.host.r1.reduce" / "attempt-1"
    done = shell(vtune, there, *asked.reduction[2:], "a.host.r1")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in there.iterdir()} == {
        f"host.rank{rank}.{what}.csv.gz" for rank in (0, 1) for what in ("hotspots", "summary")
    }
    assert gzip.decompress((there / "host.rank1.hotspots.csv.gz").read_bytes()).decode() == printed.HOTSPOTS_CSV


@pytest.mark.parametrize("what", ["broken", "not done", "no result"])
def test_a_task_that_fails_says_why(what, scratch):
    tool = make_vtune(scratch / "bin")
    home = scratch / "runs" / "a.host.r1" / "attempt-1"
    if what == "broken":
        (scratch / "bin" / "broken").touch()
    elif what == "not done":
        (home / "status").write_text("state=failed\n")
    else:
        for rank in (0, 1):
            (home / f"host.rank{rank}.vtune").rename(home / f"other{rank}")
    done = shell(vtune, scratch / "runs" / "a.host.r1.reduce" / "attempt-1", "vtune_reduce", tool, "host", "a.host.r1")
    said = {"broken": "no licence today", "not done": "no attempt of a.host.r1 is done", "no result": "left no result"}
    assert done.returncode != 0
    assert said[what] in done.stderr


def test_functions_come_from_the_table_that_has_all_of_them():
    both = files_to_read(["host.rank0.hotspots.csv", "host.rank0.summary.csv"])
    assert both["host.rank0.hotspots.csv"].reads_table("functions")
    assert [t for t in ("functions", "facts") if both["host.rank0.summary.csv"].reads_table(t)] == ["facts"]
    assert files_to_read(["host.summary.csv"])["host.summary.csv"].reads_table("functions")


def test_aps_is_started_for_each_process_and_reports_once(tmp_path):
    tool = str(make_aps(tmp_path / "bin"))
    asked = aps.profile(Request(tool, PROGRAM, analysis="mpi", knobs=(("stat-level", "4"),), per_rank=True))
    for rank in ("0", "1"):
        done = subprocess.run(
            asked.command, cwd=tmp_path, env={"NSW_RANK": rank, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (3, "out\n")
    [call] = asked.after
    assert shell(aps, tmp_path, *call[2:]).returncode == 0
    assert (tmp_path / "host.aps.txt").read_text() == printed.APS
    assert asked.reports == ("host.aps.txt",)
    assert "APS has no analysis 'io'" in aps.profile(Request(tool, PROGRAM, analysis="io")).impossible
