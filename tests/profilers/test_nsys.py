"""The command line of nsys: quiet unless asked, never under a name that is taken."""

from nsw.profilers import nsys
from nsw.profilers.model import MACHINERY, Request
from tests.jobs import in_a_job

PROGRAM = ("python", "train.py", "-b", "8")


def words(**how):
    return nsys.profile(Request("/opt/nsys", PROGRAM, **how)).command


def test_the_whole_command_line():
    assert words(trace=("cuda", "nvtx", "osrt")) == (
        "/opt/nsys", "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none",
        "--force-overwrite=true", "--output=timeline", *PROGRAM,
    )  # fmt: skip


def test_a_range_is_recorded_alone_and_the_program_runs_on():
    found = words(within=("step", None))
    assert {"--capture-range=nvtx", "--nvtx-capture=step", "--capture-range-end=stop"} < set(found)
    assert "--nvtx-capture=step@mine" in words(within=("step", "mine"))


def test_options_of_the_recipe_take_the_place_of_the_quiet_defaults():
    for option in (("--sample=cpu",), ("--sample", "cpu"), ("-s", "cpu")):
        found = words(options=option)
        assert "--sample=none" not in found
        assert "--cpuctxsw=none" in found
        assert found[found.index(option[0]) :][: len(option)] == option
    assert "--cpuctxsw=none" not in words(options=("--cpuctxsw=process-tree",))
    assert "--sample=none" in words(options=("--cpuctxsw=process-tree", "--stats=true"))


def test_options_stand_before_the_program_and_cannot_take_the_reports_name_or_the_overwriting():
    found = words(options=("--output=elsewhere", "--force-overwrite=false"))
    assert found.index("--output=timeline") > found.index("--output=elsewhere")
    assert found.index("--force-overwrite=true") > found.index("--force-overwrite=false")
    assert found[-len(PROGRAM) :] == PROGRAM


def test_each_process_of_a_launcher_has_a_report_of_its_own():
    done = nsys.profile(Request("nsys", PROGRAM, per_rank=True, rank_variable="SLURM_PROCID"))
    assert "--output=timeline.rank%q{SLURM_PROCID}" in done.command
    assert done.reports == ("timeline*.nsys-rep", "timeline*.qdstrm")


def test_reduced_where_it_is_made_only_the_export_is_brought_back():
    done = nsys.profile(Request("/my nsys", PROGRAM, export_here=True))
    assert done.reports == ("timeline*.sqlite",)
    assert done.after == (("bash", MACHINERY, "nsys_export", "/my nsys", "timeline"),)


def test_the_export_step_exports_every_report_and_fails_when_one_fails(tmp_path):
    fake = tmp_path / "my nsys"
    fake.write_text('#!/bin/sh\necho "$@" >> calls\ncase "$5" in *.1.*) exit 4;; esac\n')
    fake.chmod(0o755)
    for name in ("timeline.0.nsys-rep", "timeline.1.nsys-rep", "timeline.2.nsys-rep", "other.nsys-rep"):
        (tmp_path / name).touch()
    (after,) = nsys.profile(Request(str(fake), PROGRAM, export_here=True)).after
    done = in_a_job(after, cwd=tmp_path)
    assert done.returncode == 4
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"export --type=sqlite --force-overwrite=true --output=timeline.{n}.sqlite timeline.{n}.nsys-rep"
        for n in (0, 1)
    ]
