"""The words before a program's own, by launcher, on one node and on several."""

import pytest

from nsw.launchers.model import (
    Launch,
    LayoutError,
    PlaceFacts,
    binding_option,
    command_once_per_node,
    launch_command,
    options_ask_for_cyclic_ranks,
    requested_process_count,
    shell_functions_setting_variables,
)
from nsw.launchers.mpi import mpi_family
from nsw.launchers.srun import check_slurm_line_against_layout
from nsw.plan.layout import Demand, compute_layout, layout_sentence
from nsw.profilers.model import MACHINERY

PROGRAM = ("./prog", "-x", "a b")


def started(kind, options=(), place=None, prefix=(), **asked):
    how = Launch(compute_layout(Demand(kind, **asked)), place or PlaceFacts(), tuple(options), prefix)
    words = launch_command(how, PROGRAM)
    assert words[-3:] == PROGRAM
    return " ".join(words[:-3])


ONE = {"processes": 4, "gpus": 4, "gpus_written": True, "cpus": 8}
TWO = {"nodes": 2, "processes": 8, "gpus": 8, "gpus_written": True, "cpus": 8}


@pytest.mark.parametrize(
    ("kind", "place", "one", "two"),
    [
        ("srun", PlaceFacts("slurm"),
         "srun --nodes=1 --ntasks=4 --ntasks-per-node=4 --cpus-per-task=8 --gpus-per-node=4 --cpu-bind=cores",
         "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --gpus-per-node=4 --distribution=block --cpu-bind=cores"),
        ("srun", PlaceFacts("slurm", gres="gpu:a100:4", steps_share_nodes=True),
         "srun --nodes=1 --ntasks=4 --ntasks-per-node=4 --cpus-per-task=8 --gres=gpu:a100:4 --cpu-bind=cores --exact",
         "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --gres=gpu:a100:4 --distribution=block --cpu-bind=cores --exact"),
        ("mpiexec", PlaceFacts("pbs", "pals"), "mpiexec -n 4 --ppn 4 --depth=8 --cpu-bind depth",
         "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth"),
        ("mpiexec", PlaceFacts("cobalt", "mpich"), "mpiexec -n 4 -bind-to core:8",
         "mpiexec -n 8 -ppn 4 -bind-to core:8 -f ${COBALT_NODEFILE}"),
        ("mpirun", PlaceFacts("pbs", "openmpi"), "mpirun -np 4 --map-by ppr:4:node:PE=8 --bind-to core",
         "mpirun -np 8 --map-by ppr:4:node:PE=8 --bind-to core --host ${nsw_hosts} ${nsw_x[@]}"),
        ("mpirun", PlaceFacts("slurm", "openmpi"), "mpirun -np 4 --map-by ppr:4:node:PE=8 --bind-to core",
         "mpirun -np 8 --map-by ppr:4:node:PE=8 --bind-to core ${nsw_x[@]}"),
        ("mpirun", PlaceFacts("slurm"), "mpirun -np 4", "mpirun -np 8"),
        ("aprun", PlaceFacts("cobalt"), "aprun -n 4 -N 4 -d 8 -cc depth", "aprun -n 8 -N 4 -d 8 -cc depth"),
        ("jsrun", PlaceFacts("lsf"), "jsrun -n 4 -r 4 -a 1 -c 8 -g 1", "jsrun -n 8 -r 4 -a 1 -c 8 -g 1"),
    ],
)  # fmt: skip
def test_each_launcher_gets_the_layout_in_its_own_words(kind, place, one, two):
    assert started(kind, place=place, **ONE) == one
    assert started(kind, place=place, **TWO) == two


def test_jsrun_has_a_resource_set_a_node_where_ranks_see_all_its_gpus():
    assert started("jsrun", sees="node", **TWO) == "jsrun -n 2 -r 1 -a 4 -c 32 -g 4"


def test_without_a_number_of_cores_nothing_is_bound():
    assert started("srun", processes=2) == "srun --nodes=1 --ntasks=2 --ntasks-per-node=2"
    assert "bind" not in started("mpirun", place=PlaceFacts("slurm", "openmpi"), nodes=2, processes=4)


def test_cobalt_hands_out_nodes_in_a_file_and_the_mpi_must_be_known_to_give_it_that():
    with pytest.raises(LayoutError, match="which MPI this site's mpirun is of") as caught:
        started("mpirun", place=PlaceFacts("cobalt"), **TWO)
    assert "`mpi:`" in caught.value.hint
    assert started("mpirun", place=PlaceFacts("cobalt"), **ONE) == "mpirun -np 4"


def test_no_launcher_leaves_the_program_as_it_is():
    assert started("none") == ""


def test_a_custom_launcher_is_its_prefix():
    assert started("custom", prefix=("my launch", "-n", "2")) == "my launch -n 2"


# --- options of the recipe's own -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "place", "options", "words"),
    [
        ("mpiexec", PlaceFacts("pbs", "pals"), ["--ppn", "4", "--depth=8", "--cpu-bind", "numa"],
         "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind numa"),
        ("aprun", PlaceFacts("cobalt"), ["-N", "4", "-cc", "none"], "aprun -n 8 -d 8 -N 4 -cc none"),
        ("srun", PlaceFacts("slurm"), ["-n8", "--gpus-per-task=1", "--cpu-bind=none"],
         "srun --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --distribution=block -n8 --gpus-per-task=1 --cpu-bind=none"),
        ("mpirun", PlaceFacts("pbs", "openmpi"), ["--map-by", "node", "--hostfile", "mine"],
         "mpirun -np 8 --bind-to core ${nsw_x[@]} --map-by node --hostfile mine"),
        ("jsrun", PlaceFacts("lsf"), ["-n", "2", "-a", "4", "-g", "4"], "jsrun -n 2 -a 4 -g 4"),
    ],
)  # fmt: skip
def test_an_option_that_says_the_same_replaces_nsws(kind, place, options, words):
    assert started(kind, options, place, **TWO) == words


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("mpiexec", ["--ppn", "3"], "--ppn asks for 3 processes a node, and the recipe for 4"),
        ("aprun", ["-cc", "depth", "-N", "64"], "-N asks for 64 processes a node, and the recipe for 4"),
        ("srun", ["--ntasks=7"], "--ntasks=7 asks for 7 processes, and the recipe for 8"),
        ("srun", ["-G", "4"], "-G asks for 4 GPUs in all, and the recipe for 8"),
        ("srun", ["--cpus-per-task=4"], "asks for 4 CPU cores a process, and the recipe for 8"),
        ("torchrun", ["--nnodes=3"], "--nnodes=3 asks for 3 nodes, and the recipe for 2"),
        ("torchrun", ["--standalone"], "--standalone is for one node, and the run has 2"),
        ("jsrun", ["-n", "8", "-a", "4"], "8 resource sets of 4 are 32 processes, and the recipe asks for 8"),
    ],
)
def test_an_option_that_contradicts_is_refused_with_both_numbers(kind, options, said):
    with pytest.raises(LayoutError) as caught:
        started(kind, options, PlaceFacts("pbs", "pals"), **TWO)
    assert said in caught.value.message
    assert caught.value.path[:3] == ("app", "launcher", "options")
    assert options[caught.value.path[3]].startswith("-")


@pytest.mark.parametrize(
    ("kind", "options", "count"),
    [("srun", ["-n", "8"], 8), ("srun", ["--ntasks=8"], 8), ("mpirun", ["-np", "4"], 4), ("aprun", ["-n64"], 64),
     ("jsrun", ["-n", "4"], None), ("jsrun", ["-p", "4"], 4), ("srun", ["--exclusive"], None), ("none", ["-n4"], None)],
)  # fmt: skip
def test_an_option_may_count_the_processes(kind, options, count):
    assert requested_process_count(kind, options) == count


# --- torchrun --------------------------------------------------------------------------------------------------------


def torchrun(program, options=(), place=None, python=None, **asked):
    how = Launch(compute_layout(Demand("torchrun", **asked)), place or PlaceFacts(), tuple(options), python=python)
    return how, launch_command(how, program)


@pytest.mark.parametrize("python", ["python", "python3.11", "/opt/venv/bin/python3"])
def test_torchrun_of_a_python_script_is_started_by_that_python(python):
    _, words = torchrun((python, "train.py", "-b", "8"), processes=4)
    expected = (python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4", "train.py", "-b", "8")
    assert words == expected


@pytest.mark.parametrize("program", [("./prog",), ("python",), ("python", "-m", "train"), ("bash", "-c", "x", "nsw")])
def test_torchrun_of_another_program_starts_it_as_it_is(program):
    _, words = torchrun(program, processes=2)
    assert words == ("torchrun", "--standalone", "--nproc_per_node=2", "--no-python", *program)


@pytest.mark.parametrize("option", ["--rdzv_backend=c10d", "--rdzv-endpoint=h:1", "--master_port=1", "--nnodes=1"])
def test_torchrun_meets_where_the_recipe_says_and_else_on_a_port_of_its_own(option):
    assert "--standalone" in torchrun(PROGRAM, ("--max-restarts=0",), processes=2)[1]
    assert "--standalone" not in torchrun(PROGRAM, (option,), processes=2)[1]


AGENT = (
    "torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint ${nsw_meeting}"
    " --rdzv_id ${nsw_job_id} --no-python ./prog"
)
NODE = f"bash {MACHINERY} on_node"


@pytest.mark.parametrize(
    ("place", "starter"),
    [
        (PlaceFacts("slurm"), f"srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=32 --gpus-per-node=4 --distribution=block --cpu-bind=cores {NODE}"),
        (PlaceFacts("pbs", "pals"), f"mpiexec -n 2 --ppn 1 --depth=32 --cpu-bind depth {NODE}"),
        (PlaceFacts("cobalt", "mpich"), f"mpiexec -n 2 -ppn 1 -bind-to core:32 -f ${{COBALT_NODEFILE}} {NODE}"),
        (PlaceFacts("pbs", "openmpi"),
         f"mpirun -np 2 --map-by ppr:1:node:PE=32 --bind-to core --host ${{nsw_hosts}} ${{nsw_x[@]}} {NODE}"),
        (PlaceFacts("pbs"), f"pbsdsh -- {NODE} --from ${{nsw_environment}} 3"),
        (PlaceFacts("cobalt", node_launcher=("each-node",)), f"each-node {NODE}"),
    ],
)  # fmt: skip
def test_over_nodes_torchrun_is_started_once_on_each_and_meets_on_the_first(place, starter):
    how, words = torchrun(("./prog",), place=place, **TWO)
    assert " ".join(words) == AGENT
    assert " ".join(command_once_per_node(how, words, 3)) == f"{starter} {AGENT}"


def test_where_no_command_is_known_that_starts_it_on_each_node_the_recipe_is_refused():
    how, words = torchrun(("./prog",), place=PlaceFacts("cobalt"), **TWO)
    with pytest.raises(LayoutError, match="starts torchrun once on each of 2 nodes") as caught:
        command_once_per_node(how, words)
    assert "node_launcher" in caught.value.hint


def test_the_job_calls_what_sets_the_variables_of_a_command():
    how, words = torchrun(("./prog",), place=PlaceFacts("pbs", "openmpi"), **TWO)
    assert shell_functions_setting_variables(command_once_per_node(how, words)) == ("nsw_list_hosts", "nsw_forward")
    assert shell_functions_setting_variables(words) == ()


# --- in a plan -------------------------------------------------------------------------------------------------------


def test_torchrun_is_the_program_s_python_s_own_also_where_a_profiler_stands_before_it(planner):
    recipe = """\
        nsw: 1
        name: t
        app: {command: /v/python train.py, launcher: {kind: torchrun, processes: 2, profiler: inside}}
        passes: [timeline: {tool: nsys}]
        resources: {gpus: 0}
        """
    (run,) = planner.plan(recipe, "scheduler: slurm").runs
    assert run.command[:3] == ("/v/python", "-m", "torch.distributed.run")
    at = run.command.index("--no-python")
    assert run.command[at + 1 : at + 5] == ("bash", MACHINERY, "rank", "nsys")


def planned(planner, app: str, site="scheduler: slurm", resources="{gpus: 0, nodes: 3}"):
    recipe = f"nsw: 1\nname: t\nmatrix: {{gpus: [2]}}\napp: {app}\npasses: [baseline]\n"
    (run,) = planner.plan(f"{recipe}resources: {resources}\n", site).runs
    return run


def test_the_launchers_count_may_be_an_expression_and_tells_the_scheduler_its_tasks(planner):
    run = planned(planner, '{command: ./prog, launcher: {kind: srun, processes: "{{ gpus * 3 }}"}}')
    assert run.command[:3] == ("srun", "--nodes=3", "--ntasks=6")
    assert (run.resources.tasks, run.layout.ranks) == (6, (2, 2, 2))


def test_processes_are_those_in_all_for_torchrun_too(planner):
    run = planned(planner, '{command: python train.py, launcher: {kind: torchrun, processes: "{{ gpus * 3 }}"}}')
    assert "--nproc_per_node=2" in run.command
    assert (run.resources.tasks, run.resources.one_a_node) == (6, True)


def test_a_custom_prefix_is_filled_in(planner):
    run = planned(planner, "{command: ./prog, launcher: {kind: custom, prefix: \"go -n {{ gpus }} --name 'a b'\"}}")
    assert run.command[:5] == ("go", "-n", "2", "--name", "a b")


def test_a_run_of_one_process_pays_nothing(planner):
    run = planned(planner, "{command: ./prog, launcher: srun}", resources="{gpus: 0}")
    assert run.command == ("srun", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "./prog")


def test_a_contradiction_is_refused_at_its_line_with_the_cases(planner):
    recipe = (
        "nsw: 1\nname: t\nmatrix: {n: [8, 16]}\napp: {command: ./p, launcher: {kind: srun, processes: '{{ n }}'}}\n"
        "resources: {nodes: 2, gpus: 8}\n"
    )
    (fault,) = planner.faults(recipe, "scheduler: slurm")
    assert fault.message.startswith("case n-16: 8 processes would share the 4 GPUs of a node")
    assert fault.mark.line == 5
    (fault,) = planner.faults(
        recipe.replace("[8, 16]", "[8]").replace("}}\n", ", options: [-N3]}}\n", 1), "scheduler: slurm"
    )
    assert "-N3 asks for 3 nodes, and the recipe for 2" in fault.message
    assert (fault.mark.line, fault.source_line[fault.mark.column - 1 :][:3]) == (4, "-N3")


def test_a_recipe_s_lockfile_keeps_gpus_at_its_default(planner):
    """A lockfile writes every default out, and one process's default GPU would be shared by 64 ranks."""
    from nsw.recipe.load import load_recipe_text

    text = "nsw: 1\nname: t\napp: {command: ./p, launcher: {kind: mpirun, processes: 64}}\n"
    data = load_recipe_text(text).recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert "gpus" not in data["resources"]
    assert planner.plan(text).runs[0].resources.gpus == 1


@pytest.mark.parametrize(
    ("printed", "family"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", "openmpi"),
        ("mpirun.openmpi (OpenRTE) 4.1.4", "openmpi"),
        ("HYDRA build details:\n    Version:                                 4.0.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", "mpich"),
        ("PALS 1.3.4", "pals"),
        ("mpiexec: no such thing", None),
    ],
)
def test_the_family_of_an_mpirun_is_known_by_its_version(printed, family):
    assert mpi_family(printed) == family


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("srun", ["--gpus-per-task=2"], "asks for 2 GPUs a process, and the recipe for 1"),
        ("srun", ["--gres=gpu:1"], "asks for 1 GPUs a node, and the recipe for 4"),
        ("srun", ["--gres", "gpu:a100:2,fs:1"], "asks for 2 GPUs a node, and the recipe for 4"),
        ("srun", ["--gres=none"], "asks for 0 GPUs a node, and the recipe for 4"),
        ("srun", ["--gpus-per-node=a100:2"], "asks for 2 GPUs a node, and the recipe for 4"),
        ("srun", ["--ntasks-per-n=2"], "asks for 2 processes a node, and the recipe for 4"),
        ("srun", ["--tres-per-task=gres/gpu:2"], "asks for 2 GPUs a process, and the recipe for 1"),
        ("mpirun", ["--map-by", "ppr:2:node"], "asks for 2 processes a node, and the recipe for 4"),
        ("mpirun", ["--map-by=ppr:4:node:PE=2"], "asks for 2 CPU cores a process, and the recipe for 8"),
        ("mpirun", ["--pernode"], "asks for 1 processes a node, and the recipe for 4"),
    ],
)
def test_a_contradiction_is_refused_in_whatever_spelling(kind, options, said):
    with pytest.raises(LayoutError) as caught:
        started(kind, options, PlaceFacts("slurm", "openmpi"), **TWO)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("kind", "options", "mpi", "cyclic"),
    [
        ("srun", ["--distribution=cyclic"], None, True),
        ("srun", ["--distribution", "cyclic:block"], None, True),
        ("srun", ["-m", "cyclic"], None, True),
        ("srun", ["-mcyclic"], None, True),
        ("srun", ["--dist=cyclic"], None, True),
        ("srun", ["--distribution=block:cyclic"], None, False),
        ("mpirun", ["--map-by", "node"], "openmpi", True),
        ("mpirun", ["--bynode"], "openmpi", True),
        ("mpirun", ["--map-by", "ppr:4:node"], "openmpi", False),
        ("mpiexec", ["-map-by", "node"], "mpich", False),
        ("jsrun", ["-a", "1", "-d", "cyclic"], None, False),
    ],
)
def test_options_may_let_the_nodes_take_ranks_in_turn(kind, options, mpi, cyclic):
    assert options_ask_for_cyclic_ranks(kind, options, mpi) is cyclic


@pytest.mark.parametrize(("kind", "options"), [("srun", ["-m", "arbitrary"]), ("jsrun", ["-d", "cyclic", "-a", "4"])])
def test_an_order_that_cannot_be_compared_is_refused(kind, options):
    with pytest.raises(LayoutError, match="cannot compare where ranks landed"):
        options_ask_for_cyclic_ranks(kind, options, None)


@pytest.mark.parametrize(
    ("kind", "options", "bound"),
    [
        ("srun", ["--cpu-bind=none"], "--cpu-bind=none"),
        ("srun", ["--cpu-bind=verbose,none"], "--cpu-bind=verbose,none"),
        ("srun", ["--cpu-bind", "sockets"], "--cpu-bind sockets"),
        ("srun", ["--cpu-bind=verbose"], ""),
        ("srun", ["--cpu-bind=v,cores"], ""),
        ("mpirun", ["--bind-to", "none"], "--bind-to none"),
        ("mpirun", ["--map-by", "node:PE=8"], ""),
        ("aprun", ["-cc", "depth"], ""),
    ],
)
def test_a_binding_of_the_recipes_own_is_shown(kind, options, bound):
    assert binding_option(kind, options) == bound
    shown = layout_sentence(compute_layout(Demand(kind, bound=bound, **TWO)))
    assert (f"bound to cores only as `{bound}` says" in shown) is bool(bound)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--ntasks-per-node=2", "asks for 2 processes a node, and the recipe for 4"),
        ("#SBATCH --gpus-per-node=2", "asks for 2 GPUs a node, and the recipe for 4"),
        ("#SBATCH --gres gpu:2", "asks for 2 GPUs a node, and the recipe for 4"),
        ("-N 3", "asks for 3 nodes, and the recipe for 2"),
        ("-m cyclic", "asks for the order cyclic, and srun is given block"),
        ("--mail-type=END", None),
        ("--gpus-per-node=4", None),
        ("--gres=fs:1", None),
    ],
)
def test_a_line_for_slurm_that_contradicts_the_layout_is_refused(line, said):
    layout = compute_layout(Demand("srun", **TWO))
    if said is None:
        check_slurm_line_against_layout(line, layout, ("resources", "extra", 0))
        return
    with pytest.raises(LayoutError) as caught:
        check_slurm_line_against_layout(line, layout, ("resources", "extra", 0))
    assert said in caught.value.message
    assert caught.value.path == ("resources", "extra", 0)
