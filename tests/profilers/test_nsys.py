"""The command line of nsys: quiet unless asked, never under a name that is taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from nsw.profilers import nsys
from nsw.profilers.model import MACHINERY, Request
from nsw.readers.messages import known_problems_in_text
from nsw.recipe.passes import TimelinePass
from tests.jobs import in_a_job

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = ("python", "train.py", "-b", "8")


def words(**how):
    return nsys.profile(Request("/opt/nsys", PROGRAM, **how)).command


def test_the_whole_command_line():
    assert words(trace=("cuda", "nvtx", "osrt")) == (
        "/opt/nsys", "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none",
        "--force-overwrite=true", "--output=timeline", *PROGRAM,
    )  # fmt: skip


def window(**keys):
    return [word for word in words(window=TimelinePass.model_validate(keys)) if word not in words()]


def test_a_range_is_recorded_alone_and_the_program_runs_on():
    unregistered = "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"
    assert window(within="step") == [
        "--capture-range=nvtx", "--nvtx-capture=step", "--capture-range-end=stop", unregistered
    ]  # fmt: skip
    assert "--nvtx-capture=step@mine" in window(within={"nvtx": "step", "domain": "mine"})
    assert "--capture-range-end=repeat:5" in window(within={"nvtx": "step", "count": 5})
    assert window(within="cuda_profiler_api") == ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]


def test_a_stretch_of_time_is_recorded_and_the_program_runs_on():
    waiting, program = ["bash", MACHINERY, "nsys_then_program"], ["bash", MACHINERY, "nsys_program"]
    options = ["--delay=60", "--duration=10", "--kill=none"]
    assert window(after="60s", **{"for": "10s"}) == [*waiting, *options, *program]
    assert window(after="1m") == ["--delay=60"]
    assert window(**{"for": "10s"}) == [*waiting, *options[1:], *program]


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


ANSWERS = {  # to --gpu-metrics-devices=help, as recorded on an H100 and without a GPU, or as nsys documents it
    "H100": "Possible {option} values are:\n\t0: NVIDIA H100 80GB HBM3 PCI[0000:00:06.0]\n\tall: Select all supported GPUs\n"
    "\tnone: Disable GPU Metrics [Default]",
    "none": "Possible {option} values are:\n\tNVIDIA GPUs not found, feature is not available",
    "forbidden": "Possible {option} values are:\n\tnone: Disable GPU Metrics [Default]\nSome GPUs are not supported:\n"
    "\tNVIDIA A100 PCI[0000:65:00.0]\n\t\tInsufficient privilege, see https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    "held": "Illegal {option} arguments.\nNone of the installed GPUs are supported. See the user guide: https://docs",
}


def sampled(folder: Path, answer: str, *, option: str = "--gpu-metrics-devices", **environment: str) -> Any:
    """What a run with samples does under an nsys that answers so, and knows this spelling alone."""
    fake, reply = folder / "my nsys", folder / "reply"
    reply.write_text(ANSWERS[answer].format(option=option) + "\n")
    fake.write_text(
        f"""#!/bin/sh
        case "$2" in {option}=help) cat "{reply}";; --gpu-metrics*=help) echo "unrecognised option '$2'"; exit 1;;
        *) for word; do echo "$word"; done;; esac
        """
    )
    fake.chmod(0o755)
    done = nsys.profile(Request(str(fake), PROGRAM, gpu_metrics=20_000))
    return in_a_job(done.command, cwd=folder, env={**os.environ, **environment})


@pytest.mark.parametrize("option", ["--gpu-metrics-devices", "--gpu-metrics-device"])
def test_gpu_metrics_are_sampled_under_the_name_that_this_nsys_has(tmp_path, option):
    done = sampled(tmp_path, "H100", option=option)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["profile", f"{option}=all", "--gpu-metrics-frequency=20000"]
    assert done.stdout.split()[-len(PROGRAM) :] == list(PROGRAM)
    assert not done.stderr


@pytest.mark.parametrize(
    ("answer", "why"), [("none", "samples no GPU metrics"), ("forbidden", "ERR_NVGPUCTRPERM"), ("held", "DCGM")]
)
def test_where_nsys_cannot_sample_the_rest_is_recorded_and_the_reason_is_a_problem(tmp_path, answer, why):
    done = sampled(tmp_path, answer)
    assert done.returncode == 0
    assert "--gpu-metrics" not in done.stdout
    assert done.stdout.split()[-len(PROGRAM) :] == list(PROGRAM)
    problems = known_problems_in_text("nsys", done.stderr)
    assert any("nsys samples no GPU metrics here" in problem.message for problem in problems)
    assert any(why in f"{problem.message} {problem.fix}" for problem in problems)


def test_one_rank_of_a_node_samples_all_its_gpus(tmp_path):
    done = sampled(tmp_path, "H100", NSW_LOCAL_RANK="1")
    assert "--gpu-metrics" not in done.stdout
    assert not done.stderr
