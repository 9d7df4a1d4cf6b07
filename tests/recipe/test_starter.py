"""A first recipe for a command line: accepted as it is, and with every key that it proposes."""

import shlex

import pytest

from nsw.recipe.imported_files import files_of
from nsw.recipe.load import load_recipe_text
from nsw.recipe.starter import recipe_for, with_all_keys

COMMANDS = [
    ["python", "train.py", "--batch", "8"],
    ["python", "train.py", "--lr=0.1", "--name", "a b", "it's", "{{ x }}", "{# y", "#", "$HOME", "a\nb", "café"],
    ["./a.out"],
    ["mpirun", "-n", "4", "./solver", "-n", "100"],
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
    whole = with_all_keys(text)
    assert "#-" not in whole.replace('"#-"', "")
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
