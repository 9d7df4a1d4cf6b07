"""`ranks` of a pass: the named processes run under the profiler, the others alone; what cannot be is refused."""

import json
import os
import shlex
import sys

import pytest

from nsw.launchers.model import command_of_rank
from nsw.profilers.model import NODE_FOLDER
from nsw.recipe.passes import drawn_ranks
from tests.jobs import in_a_job

APP = "app: {command: python prog.py, launcher: {kind: KIND, processes: 4}}"
HEAD = "nsw: 1\nname: t\nresources: {gpus: 0}\n"


def recipe(app: str, ranks: str, one: str = "timeline: {tool: nsys, ranks: RANKS}") -> str:
    return f"{HEAD}{app}\npasses:\n  - baseline\n  - {one.replace('RANKS', ranks)}\n"


VARIABLES = {
    "srun": "SLURM_PROCID", "Open MPI": "OMPI_COMM_WORLD_RANK", "MPICH or Intel MPI": "PMI_RANK", "PMIx": "PMIX_RANK",
    "MVAPICH2": "MV2_COMM_WORLD_RANK", "PALS": "PALS_RANKID", "Flux": "FLUX_TASK_RANK", "torchrun": "RANK",
}  # fmt: skip
LOCAL = {"srun": "SLURM_LOCALID", "Open MPI": "OMPI_COMM_WORLD_LOCAL_RANK", "torchrun": "LOCAL_RANK",
         "MPICH or Intel MPI": "MPI_LOCALRANKID", "PALS": "PALS_LOCAL_RANKID"}  # fmt: skip
BARE = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}


def said(words, of: str, rank: int, each: int = 8, **env: str) -> str:
    """What one process runs: every program here is `echo`."""
    launcher = {"srun": "srun", "torchrun": "torchrun"}.get(of, "mpirun")
    local = {LOCAL[of]: str(rank % each)} if of in LOCAL else {}
    more = {"NSW_LAUNCHER": launcher, VARIABLES[of]: str(rank), **local, **env}
    done = in_a_job(words, env=BARE | more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_ranks(command, program="python"):
    return ["echo" if word == program else word for word in command[command.index("bash") :]]


@pytest.mark.parametrize(
    ("ranks", "named"), [("first", "0"), ("[2, 0, 2]", "02"), ("[3]", "3"), ("node", "02"), ("all", "0123")]
)
@pytest.mark.parametrize("kind", ["srun", "mpirun"])
def test_the_named_processes_run_under_the_profiler_and_the_others_alone(planner, ranks, named, kind):
    plan = planner.plan(recipe(APP.replace("KIND", kind), ranks), tools={"nsys": "echo"})
    command = plan.runs[1].command
    assert command[0] == kind
    of = "srun" if kind == "srun" else "Open MPI"
    for rank in range(4):
        told = said(of_ranks(command), of, rank, each=2)
        assert told.startswith("profile ") if str(rank) in named else told == "prog.py\n"


def test_a_share_of_the_ranks_is_drawn_by_the_recipes_name_and_named_in_the_plan(planner):
    app = APP.replace("KIND", "srun").replace("4", "256")
    plan = planner.plan(recipe(app, "5%"), tools={"nsys": "echo"})
    drawn = drawn_ranks("5%", 256, "t")
    assert (len(drawn), len({*drawn})) == (13, 13)
    assert f"timeline: 5% of 256 ranks profiled: ranks {', '.join(map(str, drawn))}" in plan.notes
    words = of_ranks(plan.runs[1].command)
    assert said(words, "srun", drawn[3]).startswith("profile ")
    assert said(words, "srun", next(rank for rank in range(256) if rank not in drawn)) == "prog.py\n"
    assert {*drawn} < {*drawn_ranks("10%", 256, "t")}
    assert drawn != drawn_ranks("5%", 256, "u")
    assert len(drawn_ranks("0.1%", 256, "t")) == 1
    assert drawn_ranks("100%", 4, "t") == [0, 1, 2, 3]


def test_a_share_of_an_unknown_number_of_ranks_is_refused(planner):
    app = "app: {command: python prog.py, launcher: {kind: custom, prefix: ./launch -n 3, profiler: inside}}"
    (fault,) = planner.faults(recipe(app, "5%"), tools={"nsys": "nsys"})
    assert "nsw does not know how many processes this launcher starts" in fault.message


NODES = "scheduler: slurm, gpus: {per_node: 2}"


def test_what_a_profiler_that_names_no_folder_leaves_is_not_packed(planner):
    app = APP.replace("KIND", "srun")
    head = "collect: node\nresources: {nodes: 2, gpus: 0}\n"
    text = f"nsw: 1\nname: t\n{head}{app}\npasses: [timeline: {{tool: nsys}}, host: {{tool: gprof}}]\n"
    timeline, host = planner.plan(text, site=NODES, tools={"nsys": "nsys", "gprof": "gprof"}).runs
    assert "reports.*.tar" in timeline.reports
    assert [words[:2] for words in timeline.after] == [("srun", "--nodes=2")]
    assert timeline.before[:2] == ("nsw_conditions", "nsw_reports_on_nodes")
    assert "reports.*.tar" not in host.reports
    note = "host: `collect: node` packs none of its reports: they are written to the run's folder"
    assert note in planner.plan(text, site=NODES, tools={"nsys": "nsys", "gprof": "gprof"}).notes


def test_nodes_that_nsw_can_start_nothing_on_are_refused_to_pack(planner):
    text = recipe(APP.replace("KIND", "aprun"), "all").replace("resources:", "collect: node\nresources:")
    (fault,) = planner.faults(text.replace("gpus: 0", "nodes: 2, gpus: 0"), "scheduler: cobalt", tools={"nsys": "nsys"})
    assert "nsw knows no command of this site that packs reports once on each of 2 nodes" in fault.message
    assert fault.source_line == "collect: node"


def test_a_rank_without_a_folder_on_its_node_fails_and_says_so():
    words = command_of_rank("first", ("echo", f"--output={NODE_FOLDER}x"), ("echo", "alone"))
    env = BARE | {"NSW_LAUNCHER": "srun", "NSW_REPORTS": "/dev/null/x"}
    done = in_a_job(words, env=env | {"SLURM_PROCID": "0"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "no folder /dev/null/x." in done.stderr
    assert in_a_job(words, env=env | {"SLURM_PROCID": "1"}).stdout == "alone\n"


def test_words_stay_what_they_are():
    words = command_of_rank("first", ("echo", "a b", "$HOME", "*"), ("echo", "", "'c'"))
    assert said(words, "Open MPI", 0) == "a b $HOME *\n"
    assert said(words, "Open MPI", 1) == " 'c'\n"


@pytest.mark.parametrize("of", VARIABLES)
def test_each_process_knows_its_rank_and_its_place_on_its_node(of):
    words = command_of_rank("all", ("bash", "-c", "echo $NSW_RANK $NSW_LOCAL_RANK"), ())
    assert said(words, of, 5, each=4, NSW_LAYOUT="4+4") == "5 1\n"


GPUS = command_of_rank(
    "all", ("bash", "-c", "echo $CUDA_VISIBLE_DEVICES $LOCAL_RANK $RANK $WORLD_SIZE $MASTER_ADDR"), ()
)
OWN = {"NSW_VISIBLE": "CUDA_VISIBLE_DEVICES", "NSW_MASTER_ADDR": "n1", "NSW_MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("layout", "gpus", "order", "given", "seen"),
    [
        ("4+4", 4, "", None, "0 1 2 3"),
        ("4+4", 4, "3,2,1,0", None, "3 2 1 0"),
        ("4+4", 4, "3,2,1,0", "0,1,2,3", "3 2 1 0"),
        ("2", 2, "3,2,1,0", "2,3", "3 2"),  # the lane of a shared node
        ("2", 2, "", "2,3", "2 3"),
        ("4", 4, "1,0,3,2", "GPU-a,GPU-b,GPU-c,GPU-d", "GPU-b GPU-a GPU-d GPU-c"),
        ("2", 2, "3,2,1,0", "MIG-a,MIG-b", "MIG-a MIG-b"),  # of another number: as they are
        ("2", 2, "3,2,1,0", None, "3 2"),  # two of a whole node's four
        ("4", 2, "", None, "0 0 1 1"),  # shared
        ("2", 4, "", None, "0,1 2,3"),
        ("4", 4, "", "7", "7 7 7 7"),  # the launcher gives each its own
    ],
)
def test_each_rank_sees_its_own_of_the_gpus_that_the_job_has(layout, gpus, order, given, seen):
    env = OWN | {"NSW_LAYOUT": layout, "NSW_NODE_GPUS": str(gpus), "NSW_ORDER": order}
    if given is not None:
        env["CUDA_VISIBLE_DEVICES"] = given
    counts = [int(one) for one in layout.split("+")]
    found = [said(GPUS, "Open MPI", rank, counts[0], **env).split() for rank in range(sum(counts))]
    assert [words[0] for words in found] == seen.split() * len(counts)
    assert [words[1:] for words in found] == [["0", str(rank), str(sum(counts)), "n1"] for rank in range(sum(counts))]


MPI = """#!/bin/bash
# as {mpi} starts its processes; a batch script's own rank is inherited by all of them
export SLURM_PROCID=0
shift 2
for rank in 0 1 2; do {variable}=$rank "$@" & done
wait
"""


@pytest.mark.parametrize("mpi", [name for name in VARIABLES if name not in {"srun", "torchrun"}])
@pytest.mark.parametrize("kind", ["mpirun", "mpiexec", "custom"])
@pytest.mark.parametrize("tool", ["nsys", "cprofile"])
def test_each_process_has_a_report_of_its_own_under_any_mpi(planner, tmp_path, mpi, kind, tool):
    launcher = (
        "{kind: custom, prefix: ./launch -n 3, processes: 3}" if kind == "custom" else f"{{kind: {kind}, processes: 3}}"
    )
    one = "timeline: {tool: nsys}" if tool == "nsys" else "host: {tool: cprofile}"
    command = json.dumps(f"{shlex.quote(sys.executable)} prog.py")
    app = f"app: {{command: {command}, launcher: {launcher}}}"
    (run,) = planner.plan(f"{HEAD}{app}\npasses: [{one}]\n", tools={"nsys": str(tmp_path / "nsys")}).runs
    start(tmp_path, kind, MPI.format(mpi=mpi, variable=VARIABLES[mpi]), run.command)
    names = [f"timeline.rank{n}.nsys-rep" if tool == "nsys" else f"host.rank{n}.pstats" for n in range(3)]
    assert sorted(p.name for p in tmp_path.glob("*.rank*")) == names


def test_a_step_of_srun_below_another_launcher_tells_the_rank():
    step = BARE | {"SLURM_PROCID": "5", "SLURM_STEP_ID": "0"}
    assert in_a_job(command_of_rank("all", ("bash", "-c", "echo $NSW_RANK"), ()), env=step).stdout == "5\n"


def test_a_single_process_without_a_rank_is_rank_0_and_of_several_all_but_one_fail(tmp_path):
    words = command_of_rank("all", ("bash", "-c", "echo $NSW_RANK"), ())
    first, second = (in_a_job(words, env=BARE | {"SLURM_PROCID": "0"}, cwd=tmp_path) for _ in range(2))
    assert (first.returncode, first.stdout) == (0, "0\n")
    assert second.returncode == 1
    assert "several processes, and no variable" in second.stderr


def start(folder, kind: str, launcher: str, command) -> None:
    """Run a command under a launcher that stands in for the real one, with an nsys that leaves what it is named."""
    tools = {"launch" if kind == "custom" else kind: launcher,
             "nsys": '#!/bin/bash\nfor w; do [[ $w = --output=* ]] && o=${w#*=}; done\n'
                     'v=${o#*%q\\{}; v=${v%\\}}; touch "${o%%\\%q*}${!v}.nsys-rep"\n'}  # fmt: skip
    for name, text in tools.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "prog.py").write_text("pass\n")
    done = in_a_job(command, cwd=folder, env=BARE | {"PATH": f"{folder}:{BARE['PATH']}", "NSW_LAUNCHER": kind})
    assert done.returncode == 0, done.stderr


def test_torchrun_s_processes_may_have_a_python_profiler_each(planner):
    text = recipe(APP.replace("KIND", "torchrun"), "[1]", "host: {tool: cprofile, ranks: RANKS}")
    command = planner.plan(text).runs[1].command
    assert command[command.index("--no-python") + 1] == "bash"
    assert command[-2:] == ("python", "prog.py")


@pytest.mark.parametrize(("kind", "outside"), [("torchrun", ""), ("srun", ", profiler: outside")])
@pytest.mark.parametrize("ranks", ["first", "[0]"])
def test_one_profiler_around_all_processes_cannot_leave_some_out(planner, kind, outside, ranks):
    app = APP.replace("KIND", kind).replace("4}", f"4{outside}}}")
    (fault,) = planner.faults(recipe(app, ranks), tools={"nsys": "nsys"})
    assert fault.message.endswith(f"one profiler runs around all processes of {kind}, so it profiles every rank")
    assert fault.mark.line == 7
    assert fault.source_line[fault.mark.column - 1 :].startswith(ranks)


def test_a_rank_beyond_the_processes_is_refused_at_its_line(planner):
    (fault,) = planner.faults(recipe(APP.replace("KIND", "srun"), "[0, 4, 9]"), tools={"nsys": "nsys"})
    assert fault.message == "case case: there is no rank 4, 9: the ranks are 0 to 3"
    assert fault.mark.line == 7


def test_without_a_launcher_there_is_rank_0_alone(planner):
    app = "app: {command: python prog.py}"
    for ranks in ("first", "[0]"):
        assert planner.plan(recipe(app, ranks), tools={"nsys": "nsys"}).runs[1].command[0] == "nsys"
    (fault,) = planner.faults(recipe(app, "[1]"), tools={"nsys": "nsys"})
    assert fault.message == "case case: there is no rank 1: there is one process, rank 0"


@pytest.mark.parametrize(
    "launcher",
    ["{kind: custom, prefix: go -n 8}", "{kind: srun, options: [-n8]}"],
)
def test_where_the_recipe_does_not_say_how_many_there_are_no_rank_is_refused(planner, launcher):
    app = f"app: {{command: python prog.py, launcher: {launcher}}}"
    assert planner.plan(recipe(app, "[7]"), tools={"nsys": "nsys"}).runs
