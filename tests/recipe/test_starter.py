"""A first recipe for a command line: accepted as it is, and with every key that it proposes."""

import re
import shlex

import pytest

from nsw.convert.starter import recipe_for
from nsw.recipe.load import load_recipe_text
from nsw.recipe.program import files_of

COMMANDS = [
    ["python", "train.py", "--batch", "8"],
    ["python", "train.py", "--lr=0.1", "--name", "a b", "it's", "{{ x }}", "{# y", "#", "$HOME", "a\nb", "café"],
    ["./a.out"],
    ["mpirun", "-n", "4", "./solver", "-n", "100"],
    ["mpirun", "./solver"],
    ["mpiexec", "-np", "2", "-x", "A={{b}", "--map-by", "ppr:1:node", "-", "./solver"],
    ["cd x && ./run.sh --size 4 | tee log: # no comment"],
    ["python3.12 -m pkg 'quoted'"],
    ["../../odd name!/x"],
    ["true"],
    ["1.0", "--case", "3", "--if=4"],
]


@pytest.mark.parametrize("gpus", [True, False])
@pytest.mark.parametrize("words", COMMANDS)
def test_the_recipe_is_accepted_as_it_is_and_with_all_that_it_proposes(words, gpus):
    text = recipe_for(words, ["train.py"], gpus=gpus)
    loaded = load_recipe_text(text)
    assert loaded.recipe.passes[0].kind == "baseline"
    whole = re.sub(r"^( *)#- ", r"\1", text, flags=re.MULTILINE)
    assert "#-" not in whole.replace('"#- "', "")
    loaded = load_recipe_text(whole)
    assert loaded.recipe.matrix.parameters
    assert {one.kind for one in loaded.recipe.passes} >= {"baseline", "timeline", "counters"}
    assert loaded.recipe.report.compare.figure == "speed"


@pytest.mark.parametrize("words", [COMMANDS[1], ["echo", "{{", "%}"]])
def test_the_words_reach_the_program_as_they_were_typed(words):
    from nsw.recipe.expressions import Expression

    command = load_recipe_text(recipe_for(words, [], gpus=False)).recipe.app.command
    assert shlex.split(Expression.parse(command).render({})) == words


def test_the_option_with_a_number_is_the_parameter_that_is_proposed():
    text = recipe_for(["python", "t.py", "-v", "3", "--epochs", "2", "--batch-size", "8"], [], gpus=True)
    assert "#-   batch_size: [8, 16]" in text
    assert "parameter: batch_size" in text


def test_a_script_brings_the_modules_that_it_imports_from_beside_it(tmp_path):
    (tmp_path / "src/pack").mkdir(parents=True)
    (tmp_path / "src/train.py").write_text("import os, model\nfrom pack.x import y\n")
    (tmp_path / "src/model.py").write_text("import train, json\nimport (\n")
    (tmp_path / "src/pack/__init__.py").touch()
    words = ["python", "src/train.py", "/etc/hostname", "../x", "none.py"]
    files = files_of(words, tmp_path)
    assert files == ["src/train.py", "src/model.py", "src/pack"]
    assert "command: python train.py /etc/hostname" in recipe_for(words, files, gpus=True)


@pytest.mark.parametrize(
    ("line", "command", "launcher"),
    [
        ("mpirun -np 4 ./a.out", "./a.out", ("mpirun", 4, "")),
        (
            "mpirun --mca btl tcp -x A=b -np 4 ./a.out -n 2",
            "./a.out -n 2",
            ("mpirun", 4, "--mca btl tcp -x A=b"),
        ),
        (
            "mpiexec -n 8 --ppn 4 --cpu-bind depth ./a.out 3",
            "./a.out 3",
            ("mpiexec", 8, "--ppn 4 --cpu-bind depth"),
        ),
        ("srun --ntasks=8 --mpi pmix -c 4 python t.py", "python t.py", ("srun", 8, "--mpi pmix -c 4")),
        ("srun -n8 --exclusive ./a.out", "./a.out", ("srun", 8, "--exclusive")),
        ("aprun -n 4 -cc depth ./a.out", "./a.out", ("aprun", 4, "-cc depth")),
        ("jsrun -n 4 -a 1 -g 1 -b packed:2 ./a.out", "./a.out", ("jsrun", 4, "-a 1 -g 1 -b packed:2")),
        ("torchrun --nproc_per_node=4 train.py --lr 1", "python train.py --lr 1", ("torchrun", 4, "")),
        ("torchrun --nproc-per-node 2 --nnodes 1 -m p.q", "python -m p.q", ("torchrun", 2, "--nnodes 1")),
        ("mpirun ./a.out", "mpirun ./a.out", ("none", None, "")),  # as many as it thinks right
        ("mpirun -np 1 ./a.out : -np 3 ./b.out", "mpirun -np 1 ./a.out : -np 3 ./b.out", ("none", None, "")),
        ("/opt/bin/mpirun -np 4 ./a.out", "/opt/bin/mpirun -np 4 ./a.out", ("none", None, "")),  # not that of PATH
        ("cd x; mpirun -np 4 ./a.out", "cd x; mpirun -np 4 ./a.out", ("none", None, "")),
    ],
)
def test_a_launcher_becomes_the_key_with_its_processes_and_options(line, command, launcher):
    for words in (line.split(), [line])[";" in line :]:
        app = load_recipe_text(recipe_for(words, [], gpus=False)).recipe.app
        assert app.command == command
        assert (app.launcher.kind, app.launcher.processes, " ".join(app.launcher.options)) == launcher


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mpirun -np 4 ./a.out", "a.out"),
        ("mpirun ./a.out", "a.out"),
        ("/opt/bin/mpirun -np 4 ./a.out", "a.out"),
        ("srun -n 2 python sub/train.py --lr 1", "train"),
        ("torchrun --nproc_per_node=4 -m pkg.train", "pkg.train"),
        ("env OMP_NUM_THREADS=4 ./solver 3", "solver"),
        ("jsrun -n 4 ./a.out 4", "a.out"),
    ],
)
def test_the_recipe_is_named_after_the_program(line, name):
    assert load_recipe_text(recipe_for(line.split(), [], gpus=False)).recipe.name == name


def test_torchrun_asks_for_a_gpu_a_process_where_there_are_gpus():
    for gpus, asked in ((True, 4), (False, 0)):
        text = recipe_for(["torchrun", "--nproc_per_node=4", "t.py"], [], gpus=gpus)
        assert load_recipe_text(text).recipe.resources.gpus == asked


@pytest.mark.parametrize("option", ["-N 2", "-N2", "--nodes=2"])
def test_the_nodes_of_srun_are_those_of_the_job(option):
    words = f"srun {option} -n 8 ./a.out".split()
    for gpus, asked in ((True, 2), (False, 0)):
        resources = load_recipe_text(recipe_for(words, [], gpus=gpus)).recipe.resources
        assert (resources.nodes, resources.gpus) == (2, asked)
    assert (
        load_recipe_text(recipe_for(["aprun", "-N", "2", "-n", "8", "./a"], [], gpus=True)).recipe.resources.nodes == 1
    )
