"""Each pass becomes a command line under the tool that the site has, or is absent with its reason."""

import pytest

from nsw.errors import NswError
from nsw.profilers.model import MACHINERY

HEAD = "nsw: 1\nname: t\nresources: {gpus: 0}\n"
BOTH = {"nsys": "/opt/nsys", "nvprof": "/opt/nvprof"}


def runs(planner, app: str, passes: str, **facts):
    recipe = f"{HEAD}app: {{command: python prog.py, {app}}}\npasses: {passes}\n"
    return planner.plan(recipe, **{"tools": BOTH, **facts}).runs


def test_auto_takes_the_first_tool_that_the_site_has(planner):
    (run,) = runs(planner, "", "[timeline: {tool: auto}]")
    assert (run.tool, run.command[0]) == ("nsys", "/opt/nsys")
    (run,) = runs(planner, "", "[timeline: {tool: auto}]", tools={"nvprof": "/opt/nvprof"})
    assert (run.tool, run.command[0]) == ("nvprof", "/opt/nvprof")


def test_a_named_tool_is_that_tool_or_nothing(planner):
    (run,) = runs(planner, "", "[timeline: {tool: nvprof}]")
    assert run.tool == "nvprof"
    recipe = HEAD + "app: {command: ./p}\npasses: [baseline, timeline: {tool: nvprof}]\n"
    plan = planner.plan(recipe, tools={"nsys": "nsys"})
    assert [r.pass_name for r in plan.runs] == ["baseline"]


def test_a_site_that_cannot_be_looked_at_is_taken_at_its_word(planner):
    recipe = HEAD + "app: {command: ./p}\npasses: [timeline: {tool: nsys}]\n"
    (run,) = planner.plan(recipe, "scheduler: slurm, profilers: {nsys: /far/nsys}", tools=None).runs
    assert run.command[0] == "/far/nsys"
    (run,) = planner.plan(recipe, "scheduler: slurm", tools=None).runs
    assert run.command[0] == "nsys"


def test_a_missing_tool_makes_its_runs_absent_with_every_reason(planner):
    recipe = HEAD + "app: {command: ./p}\nmatrix: {n: [1, 2]}\nrepeats: 2\npasses: [baseline, timeline: {}]\n"
    plan = planner.plan(recipe, tools={}, missing={"nsys": "no nsys here", "nvprof": "nor nvprof"})
    assert {r.pass_name for r in plan.runs} == {"baseline"}
    (absent,) = plan.absent
    assert (absent.what, absent.reason) == ("pass timeline", "no nsys here; nor nvprof")
    assert absent.run_ids == ("n-1.timeline.r1", "n-1.timeline.r2", "n-2.timeline.r1", "n-2.timeline.r2")


def test_passes_of_one_kind_under_their_own_names_are_told_apart(planner):
    found = runs(planner, "", "[timeline: {name: short, trace: [cuda]}, timeline: {name: long, trace: [cuda, osrt]}]")
    assert [r.id for r in found] == ["case.short.r1", "case.long.r1"]
    assert "--trace=cuda,osrt" in found[1].command


def test_repeats_of_a_pass_take_the_place_of_the_recipes(planner):
    recipe = HEAD + "app: {command: ./p}\nrepeats: 3\npasses: [baseline, timeline: {tool: nsys, repeats: 1}]\n"
    plan = planner.plan(recipe, tools=BOTH)
    assert [r.id.split(".", 1)[1] for r in plan.runs] == ["baseline.r1", "baseline.r2", "baseline.r3", "timeline.r1"]


SRUN = "launcher: {kind: srun, processes: 2}"
TORCHRUN = "launcher: {kind: torchrun, processes: 2}"


def first_words(run):
    return run.command[:3]


def test_a_scheduler_launcher_starts_a_profiler_for_each_process(planner):
    (run,) = runs(planner, SRUN, "[timeline: {tool: nsys}]")
    at = run.command.index("bash")
    assert run.command[:3] == ("srun", "--nodes=1", "--ntasks=2")
    assert run.command[at : at + 5] == ("bash", MACHINERY, "rank", "/opt/nsys", "profile")
    assert "--output=timeline.rank%q{NSW_RANK}" in run.command


@pytest.mark.parametrize("kind", ["srun", "aprun", "jsrun", "torchrun", "mpirun"])
def test_the_report_of_each_process_has_its_rank_in_its_name(planner, kind):
    (run,) = runs(planner, f"launcher: {{kind: {kind}, processes: 2, profiler: inside}}", "[timeline: {tool: nsys}]")
    assert "--output=timeline.rank%q{NSW_RANK}" in run.command


def test_torchrun_is_profiled_as_a_whole(planner):
    (run,) = runs(planner, TORCHRUN, "[timeline: {tool: nsys}]")
    assert run.command[0] == "/opt/nsys"
    assert "--output=timeline" in run.command
    assert run.command[-11:] == (
        "python", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "--no-python",
        "bash", MACHINERY, "rank", "python", "prog.py",
    )  # fmt: skip
    assert "--output=timeline" in run.command


@pytest.mark.parametrize(
    ("app", "where", "first"),
    [(SRUN, "outside", "/opt/nsys"), (SRUN, "inside", "srun"), (TORCHRUN, "inside", "python"),
     (TORCHRUN, "outside", "/opt/nsys")],
)  # fmt: skip
def test_the_recipe_may_say_where_the_profiler_stands(planner, app, where, first):
    (run,) = runs(planner, app.replace("}", f", profiler: {where}}}"), "[timeline: {tool: nsys}]")
    assert run.command[0] == first


def test_a_profiler_of_one_process_is_always_started_by_the_launcher(planner):
    (run,) = runs(planner, SRUN.replace("}", ", profiler: outside}"), "[host: {tool: cprofile}]")
    assert run.command[:3] == ("srun", "--nodes=1", "--ntasks=2")


def test_reduced_reports_are_exported_where_they_are_made(planner):
    recipe = HEAD + "app: {command: ./p}\ncollect: tables\npasses: [timeline: {tool: nsys}]\n"
    (run,) = planner.plan(recipe, tools=BOTH).runs
    assert run.reports == ("timeline*.sqlite",)
    assert run.after


SAMPLED = HEAD + "app: {command: ./p}\npasses: [timeline: {gpu_metrics: 20 kHz}]\n"


def test_gpu_metrics_are_asked_of_nsys_as_often_as_the_recipe_says(planner):
    (run,) = planner.plan(SAMPLED, tools=BOTH).runs
    assert run.command[:5] == ("bash", MACHINERY, "nsys_sampled", "/opt/nsys", "20000")
    (run,) = runs(planner, "", "[timeline: {}]")
    assert run.command[0] == "/opt/nsys"


def test_a_site_that_forbids_gpu_metrics_refuses_the_pass_with_its_reason(planner):
    recipe = SAMPLED.replace("[", "[baseline, ")
    plan = planner.plan(recipe, "scheduler: local, gpus: {no_metrics: DCGM holds the counters}", tools=BOTH)
    assert [run.pass_name for run in plan.runs] == ["baseline"]
    (absent,) = plan.absent
    assert absent.reason == (
        "GPU metrics cannot be sampled here (DCGM holds the counters): take `gpu_metrics` out of the pass"
    )
    plan = planner.plan(recipe, tools={"nvprof": "nvprof"}, missing={"nsys": "no nsys"})
    assert plan.absent[0].reason == "nvprof does not sample GPU metrics: `gpu_metrics` needs nsys"


@pytest.mark.parametrize("frequency", ["10", "9Hz", "201kHz", "often", "10.0001kHz"])
def test_a_frequency_that_nsys_does_not_take_is_refused(planner, frequency):
    with pytest.raises(NswError, match="frequency"):
        planner.plan(SAMPLED.replace("20 kHz", frequency), tools=BOTH)
