"""The words before a program's own, by launcher."""

import pytest

from nsw.plan.launchers import Launch, launch, ranks_of

PROGRAM = ("./prog", "-x", "a b")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("srun", ("srun", "-n", "4")), ("mpirun", ("mpirun", "-np", "4")), ("mpiexec", ("mpiexec", "-n", "4")),
     ("aprun", ("aprun", "-n", "4")), ("jsrun", ("jsrun", "-n", "4"))],
)  # fmt: skip
def test_each_launcher_is_given_its_count_and_options_before_the_program(kind, words):
    assert launch(Launch(kind, 4, ("--bind-to", "none")), PROGRAM) == (*words, "--bind-to", "none", *PROGRAM)


def test_no_launcher_leaves_the_program_as_it_is():
    assert launch(Launch("none", 1), PROGRAM) == PROGRAM


def test_a_custom_launcher_is_its_prefix():
    assert launch(Launch("custom", 1, prefix=("my launch", "-n", "2")), PROGRAM) == ("my launch", "-n", "2", *PROGRAM)


@pytest.mark.parametrize("python", ["python", "python3.11", "/opt/venv/bin/python3"])
def test_torchrun_of_a_python_script_is_started_by_that_python(python):
    found = launch(Launch("torchrun", 4, ("--standalone",)), (python, "train.py", "-b", "8"))
    assert found == (
        python, "-m", "torch.distributed.run", "--nproc_per_node=4", "--standalone", "train.py", "-b", "8"
    )  # fmt: skip


@pytest.mark.parametrize("program", [("./prog",), ("python",), ("python", "-m", "train"), ("bash", "-c", "x", "nsw")])
def test_torchrun_of_another_program_starts_it_as_it_is(program):
    found = launch(Launch("torchrun", 2), program)
    assert found == ("torchrun", "--standalone", "--nproc_per_node=2", "--no-python", *program)


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
    assert run.command[run.command.index("--no-python") + 1] == "nsys"


def planned(planner, app: str, **facts):
    recipe = f"nsw: 1\nname: t\nmatrix: {{gpus: [2]}}\napp: {app}\npasses: [baseline]\n"
    (run,) = planner.plan(recipe + "resources: {gpus: 0, nodes: 3}\n", **facts).runs
    return run


def test_the_launchers_count_may_be_an_expression_and_tells_the_scheduler_its_tasks(planner):
    run = planned(planner, '{command: ./prog, launcher: {kind: srun, processes: "{{ gpus * 3 }}"}}')
    assert run.command == ("srun", "-n", "6", "./prog")
    assert run.resources.tasks == 6


def test_torchruns_processes_are_its_own_so_a_node_is_one_task(planner):
    run = planned(planner, '{command: python train.py, launcher: {kind: torchrun, processes: "{{ gpus }}"}}')
    assert run.resources.tasks == 3


def test_a_custom_prefix_is_filled_in(planner):
    run = planned(planner, "{command: ./prog, launcher: {kind: custom, prefix: \"go -n {{ gpus }} --name 'a b'\"}}")
    assert run.command == ("go", "-n", "2", "--name", "a b", "./prog")


def test_torchrun_gets_a_port_of_its_own_unless_the_recipe_says_where_to_meet():
    own = launch(Launch("torchrun", 2), ["python", "train.py"])
    assert "--standalone" in own
    given = launch(Launch("torchrun", 2, options=("--rdzv_endpoint=host:1234",)), ["python", "train.py"])
    assert "--standalone" not in given


@pytest.mark.parametrize("option", ["--rdzv_backend=c10d", "--rdzv-endpoint=h:1", "--master_port=1", "--nnodes=2"])
def test_torchrun_meets_where_the_recipe_says_and_else_on_a_port_of_its_own(option):
    assert "--standalone" in launch(Launch("torchrun", 2, ("--max-restarts=0",)), PROGRAM)
    assert "--standalone" not in launch(Launch("torchrun", 2, (option,)), PROGRAM)


@pytest.mark.parametrize(
    ("kind", "given", "options", "ranks"),
    [
        ("none", None, [], 1), ("srun", 4, ["--exclusive"], 4), ("srun", None, [], 1),
        ("srun", None, ["-n4"], None), ("custom", None, [], None), ("torchrun", None, [], 1),
        ("torchrun", 4, ["--max-restarts=0"], 4), ("torchrun", 4, ["--max-restarts=0", "--nnodes=2"], None),
    ],
)  # fmt: skip
def test_how_many_processes_there_are_in_all_is_known_or_left_open(kind, given, options, ranks):
    assert ranks_of(kind, given, options) == ranks
