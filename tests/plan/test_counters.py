"""Counters passes: which tool measures, where its profiler stands, what is left out, what cannot be done."""

import os

import pytest

from nsw.profilers.model import CHOSEN, MACHINERY
from tests.jobs import in_a_job

HEAD = "nsw: 1\nname: t\nresources: {gpus: 0}\n"
BOTH = {"ncu": "/opt/ncu", "nvprof": "/opt/nvprof", "nsys": "/opt/nsys"}
NAMED = "kernels: {regex: gemm}, launches: {count: 2}, metrics: [ipc]"


def runs(planner, counters=NAMED, app="", site="scheduler: local", **facts):
    recipe = f"{HEAD}app: {{command: python prog.py, {app}}}\npasses: [counters: {{{counters}}}]\n"
    return planner.plan(recipe, site, **{"tools": BOTH, **facts}).runs


def words(run):
    """The command."""
    return run.command


@pytest.mark.parametrize(
    ("chip", "tool"), [("gp100", "nvprof"), ("gk210", "nvprof"), ("gv100", "ncu"), ("gh100", "ncu"), (None, "ncu")]
)
def test_the_chip_decides_the_tool(planner, chip, tool):
    site = "scheduler: local" + (f", gpus: {{chip: {chip}}}" if chip else "")
    (run,) = runs(planner, site=site)
    assert run.tool == tool


def test_the_gpu_of_this_machine_is_the_chip_where_the_site_names_none(planner):
    (run,) = runs(planner, chip="Tesla P100-PCIE-16GB")
    assert run.tool == "nvprof"
    (run,) = runs(planner, chip="NVIDIA H200", site="scheduler: local, gpus: {chip: gp100}")
    assert run.tool == "nvprof"


def test_another_tool_that_measures_the_chip_too_is_taken_where_the_first_is_missing(planner):
    (run,) = runs(planner, site="scheduler: local, gpus: {chip: gv100}", tools={"nvprof": "/opt/nvprof"})
    assert run.tool == "nvprof"


def test_portable_names_become_those_of_the_tool_and_the_chip(planner):
    (run,) = runs(planner, "kernels: {names: [k]}, launches: {count: 1}, metrics: [achieved_occupancy]")
    assert "sm__warps_active.avg.pct_of_peak_sustained_active" in run.command
    (run,) = runs(planner, "tool: nvprof, kernels: {names: [k]}, launches: {count: 1}, metrics: [achieved_occupancy]",
                  site="scheduler: local, gpus: {chip: gp100}")  # fmt: skip
    assert run.command[-4:] == ("--metrics", "achieved_occupancy", "python", "prog.py")


def test_nccl_is_left_out_where_kernels_are_run_again_by_themselves(planner):
    def kernel_id(counters):
        found = words(runs(planner, f"{counters}, metrics: [ipc]")[0])
        return found[found.index("--kernel-id") + 1] if "--kernel-id" in found else ""

    assert "(?!.*(nccl))" in kernel_id("launches: {skip: 3}")
    assert "(?!.*(nccl))" in kernel_id("kernels: {regex: Reduce}, launches: {skip: 3}")
    assert "nccl" not in kernel_id("kernels: {regex: Reduce, exclude: []}, launches: {skip: 3}")
    assert kernel_id("kernels: {names: [ncclKernel]}, launches: {skip: 3}").startswith("::regex:^(ncclKernel)$:")
    assert "nccl" not in kernel_id("replay: application, launches: {skip: 3}")


def test_a_range_is_measured_as_a_whole(planner):
    counters = (
        "within: {nvtx: train_step, instances: [5]}, replay: range, clocks: none, cache: none, metrics: ['set:full']"
    )
    (run,) = runs(planner, counters)
    assert words(run) == (
        "/opt/ncu", "--target-processes", "all", "--replay-mode", "range", "--clock-control", "none", "--cache-control",
        "none", "--nvtx", "--nvtx-include", "train_step/", "--range-filter", "::5", "--set", "full",
        "--force-overwrite", "--export", "counters", "python", "prog.py",
    )  # fmt: skip


TORCHRUN = "launcher: {kind: torchrun, processes: 4}"


def test_of_torchruns_processes_the_first_has_a_profiler(planner):
    (run,) = runs(planner, app=TORCHRUN)
    assert run.command[:5] == ("python", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4")
    assert "counters.rank%q{NSW_RANK}" in run.command
    at = run.command.index("--profile")
    assert run.command[at - 3 : at + 3] == ("bash", MACHINERY, "rank", "--profile", "0", "2")


def test_all_ranks_have_one_profiler_around_torchrun_or_one_each(planner):
    (run,) = runs(planner, f"ranks: all, {NAMED}", TORCHRUN)
    assert words(run)[0] == "/opt/ncu"
    (run,) = runs(planner, f"ranks: all, {NAMED}", TORCHRUN.replace("}", ", profiler: inside}"))
    assert run.command[0] == "python"
    (run,) = runs(planner, app=TORCHRUN.replace("}", ", profiler: outside}"))
    assert words(run)[0] == "/opt/ncu"
    assert "counters" in run.command


def test_a_program_that_is_run_again_as_a_whole_is_so_with_all_its_processes(planner):
    (run,) = runs(planner, f"replay: application, {NAMED}", TORCHRUN)
    assert words(run)[0] == "/opt/ncu"
    recipe = f"{HEAD}app: {{command: ./p, launcher: {{kind: srun, processes: 2}}}}\npasses: [baseline, counters: {{replay: application, {NAMED}}}]\n"
    (absent,) = planner.plan(recipe, tools=BOTH).absent
    assert absent.reason.startswith("replay: application starts the program again for each pass, which srun cannot do")


def test_srun_starts_a_profiler_for_its_first_process(planner):
    (run,) = runs(planner, app="launcher: {kind: srun, processes: 2}")
    assert run.command[:3] == ("srun", "--nodes=1", "--ntasks=2")
    assert "counters.rank%q{NSW_RANK}" in run.command


def test_what_the_chip_does_not_measure_is_told_at_its_line(planner):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [counters: {{{NAMED.replace('ipc', 'flop_count_sp_special')}}}]\n"
    (fault,) = planner.faults(recipe, "scheduler: local", tools=BOTH, chip="NVIDIA H200")
    assert "flop_count_sp_special is not measured on gh100" in fault.message


def test_what_the_tool_cannot_do_makes_the_pass_absent_and_the_rest_goes_on(planner):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [baseline, counters: {{clocks: base, {NAMED}}}]\n"
    plan = planner.plan(recipe, "scheduler: local, gpus: {chip: gp100}", tools=BOTH)
    assert [run.pass_name for run in plan.runs] == ["baseline"]
    assert plan.absent[0].reason.startswith("nvprof cannot lock clocks")


def test_host_torch_stands_before_the_script_of_each_process(planner):
    recipe = f"{HEAD}app: {{command: python train.py, {TORCHRUN}}}\npasses: [host: {{tool: torch, steps: {{skip: 1, count: 2}}, record: [memory]}}]\n"
    (run,) = planner.plan(recipe, tools={}).runs
    assert "host:NSW_RANK:1:2:memory" in run.command
    assert run.command[-1] == "train.py"


GUIDED = "kernels: {cover: 90%}, metrics: [ipc]"


def test_a_guided_pass_waits_for_the_timeline_and_gets_its_arguments_from_it(planner):
    recipe = f"{HEAD}app: {{command: ./p}}\nmatrix: {{n: [1, 2]}}\npasses: [timeline: {{}}, counters: {{{GUIDED}}}]\n"
    found = planner.plan(recipe, tools=BOTH).runs
    needs = {run.id: run.needs for run in found}
    assert needs == {
        f"n-{n}.{kind}.r1": needed
        for n in (1, 2)
        for kind, needed in (("timeline", ""), ("counters", f"n-{n}.timeline"))
    }
    of = {run.id: run.command for run in found}
    assert of["n-1.counters.r1"].count(CHOSEN) == 1
    assert "--cuda-graph-trace=node" in of["n-1.timeline.r1"]


def test_a_recipe_without_a_timeline_gets_one_where_it_is_needed(planner):
    passes = [run.pass_name for run in runs(planner, GUIDED)]
    assert sorted(passes) == ["counters", "timeline"]
    (run,) = runs(planner)
    assert (run.needs, CHOSEN in run.command) == ("", False)


def test_from_names_the_timeline(planner):
    recipe = (
        f"{HEAD}app: {{command: ./p}}\npasses: [timeline: {{name: a}}, timeline: {{name: b, options: [--cuda-graph-trace=graph]}},"
        " counters: {from: b, metrics: [ipc]}]\n"
    )
    found = {run.pass_name: run for run in planner.plan(recipe, tools=BOTH).runs}
    assert found["counters"].needs == "case.b"
    assert "--cuda-graph-trace=node" not in (*found["a"].command, *found["b"].command)
    (fault,) = planner.faults(recipe.replace("from: b", "from: c"), tools=BOTH)
    assert fault.message == "there is no timeline pass c"


def test_launches_are_chosen_from_a_timeline_of_the_whole_program(planner):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [timeline: {{within: step}}, counters: {{{GUIDED}}}]\n"
    found = {run.pass_name: run for run in planner.plan(recipe, tools=BOTH).runs}
    assert found.keys() == {"timeline", "timeline-for-counters", "counters"}
    assert found["counters"].needs == "case.timeline-for-counters"
    (fault,) = planner.faults(recipe.replace(GUIDED, "from: timeline, metrics: [ipc]"), tools=BOTH)
    assert fault.message == "timeline pass timeline has a window, and ncu counts launches from the program's start"


def test_without_its_timeline_a_guided_pass_is_absent_too(planner):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [baseline, timeline: {{}}, counters: {{{GUIDED}}}]\n"
    plan = planner.plan(recipe, tools={"ncu": "/opt/ncu"}, missing={"nsys": "no nsys", "nvprof": "no nvprof"})
    assert [run.pass_name for run in plan.runs] == ["baseline"]
    assert "pass timeline, which chooses its kernels, is not here either: no nsys" in plan.absent[1].reason


def test_nvprof_keeps_every_launch_of_a_timeline_that_chooses(planner):
    found = runs(
        planner, f"tool: nvprof, {GUIDED}", site="scheduler: local, gpus: {chip: gp100}", tools={"nvprof": "nvprof"}
    )
    assert any("timeline.%p.nvvp" in run.command for run in found)


def test_of_several_ranks_only_the_first_has_the_chosen_arguments(planner):
    found = runs(planner, GUIDED, TORCHRUN, tools=BOTH | {"ncu": "echo"})
    (run,) = [run for run in found if run.pass_kind == "counters"]
    assert run.command[-2:] == ("python", "prog.py")
    of_ranks = ["echo" if word == "python" else word for word in run.command[run.command.index("--no-python") + 1 :]]
    said = {
        rank: in_a_job(
            of_ranks,
            functions="nsw_chosen=(--kernel-id 'X  Y' Z)",
            env={"RANK": rank, "LOCAL_RANK": rank, "NSW_LAUNCHER": "torchrun", "PATH": os.environ["PATH"]},
        ).stdout
        for rank in "01"
    }
    assert said["1"] == "prog.py\n"
    assert " --kernel-id X  Y Z " in said["0"]
    assert said["0"].endswith("counters.rank%q{NSW_RANK} echo prog.py\n")


def test_a_timeline_chooses_inside_a_range_and_ncu_counts_there(planner):
    found = runs(planner, f"within: {{nvtx: step, instances: [5, 6]}}, {GUIDED}")
    (run,) = [run for run in found if run.pass_kind == "counters"]
    assert CHOSEN in run.command
    at = run.command.index("--nvtx-include")
    assert run.command[at : at + 4] == ("--nvtx-include", "step/", "--range-filter", "::5|6")


def test_the_timeline_that_chooses_inside_a_range_must_trace_it(planner):
    passes = f"[timeline: {{trace: [cuda]}}, counters: {{within: step, {GUIDED}}}]"
    (fault,) = planner.faults(f"{HEAD}app: {{command: ./p}}\npasses: {passes}\n")
    assert "timeline pass timeline does not trace NVTX ranges" in fault.message
    assert "trace: [cuda, nvtx]" in fault.hint


OLD, NEW = "/opt/nvidia/nsight-compute/2021.2.0/ncu", "/opt/nvidia/nsight-compute/2025.4.0/ncu"


@pytest.mark.parametrize(
    ("chip", "path", "why"),
    [
        ("gv100", NEW, "ncu 2025.4 no longer measures gv100: ncu 2025.2 is the last that does"),
        ("gh100", OLD, "ncu 2021.2 is older than gh100: ncu 2022.3 is the first that measures it"),
    ],
)
def test_a_version_whose_folder_tells_that_it_does_not_measure_the_chip_is_not_run(planner, chip, path, why):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [baseline, counters: {{{NAMED}}}]\n"
    plan = planner.plan(recipe, f"scheduler: slurm, gpus: {{chip: {chip}}}, profilers: {{ncu: {path}}}")
    assert [run.tool for run in plan.runs] == [None]
    assert [one.reason for one in plan.absent] == [why]


def test_another_tool_that_is_there_measures_a_chip_that_the_first_dropped(planner):
    both = f"profilers: {{ncu: {NEW}, nvprof: /opt/nvprof}}"
    (run,) = runs(planner, site=f"scheduler: slurm, gpus: {{chip: gv100}}, {both}", tools=None)
    assert run.tool == "nvprof"
    (run,) = runs(planner, site="scheduler: local, gpus: {chip: gv100}", tools={**BOTH, "ncu": NEW})
    assert run.tool == "nvprof"


def test_a_range_is_not_asked_for_what_ncu_refuses_of_it(planner):
    (run,) = runs(planner, "within: step, replay: range")
    assert "smsp__sass_" not in " ".join(run.command)
    assert "dram__bytes.sum" in " ".join(run.command)


def second_stages(planner, counters, chip="gh100", passes="", **facts):
    recipe = f"{HEAD}app: {{command: ./p}}\npasses: [counters: {{{counters}}}{passes}]\n"
    plan = planner.plan(recipe, f"scheduler: local, gpus: {{per_node: 0, chip: {chip}}}", **{"tools": BOTH} | facts)
    return plan, [run for run in plan.runs if run.pass_name.startswith("counters-")]


def test_a_second_stage_waits_for_the_counters_and_what_it_measures_is_decided_by_them(planner):
    plan, (run,) = second_stages(planner, "kernels: {top: 2}, repeats: 3")
    assert (run.id, run.needs) == ("case.counters-2.r1", "case.counters")  # once, however often the first is done
    assert CHOSEN in run.command
    assert not {"--metrics", "--section"} & set(run.command)
    assert "counters*.source.csv" in run.reports
    (first,) = (run for run in plan.runs if run.id == "case.counters.r1")
    assert "counters*.source.csv" not in first.reports
    assert any(note.startswith("counters-2: at most 5 passes more of a launch") for note in plan.notes)


@pytest.mark.parametrize(
    ("counters", "chip"),
    [
        ("stages: 1", "gh100"),
        ("metrics: [ipc]", "gh100"),  # whoever names metrics wants those
        ("launches: {skip: 2, count: 3}", "gh100"),  # without a timeline that chooses
        ("replay: application", "gh100"),
        ("tool: nvprof", "gv100"),
        ("{}", "gp100"),  # which nvprof measures
    ],
)
def test_only_guided_counters_of_ncu_that_measure_for_diagnosis_have_a_second_stage(planner, counters, chip):
    plan, second = second_stages(planner, "" if counters == "{}" else counters, chip)
    assert plan.runs
    assert second == []


def test_a_name_that_a_recipe_has_is_not_given_to_a_second_stage(planner):
    _, found = second_stages(planner, "", passes=", counters: {name: counters-2, stages: 1}")
    assert [run.pass_name for run in found] == ["counters-2", "counters-2-2"]


def test_an_ncu_that_is_too_old_for_a_second_stage_makes_it_absent(planner):
    plan, second = second_stages(planner, "", "gv100", tools=BOTH | {"ncu": "/opt/2020.3.0/ncu"})
    assert second == []
    assert [absent.what for absent in plan.absent] == ["pass counters-2"]
    assert plan.absent[0].reason == "a second stage of counters needs ncu 2021.1, and the site's is 2020.3"
