"""What is printed for bad recipes, to the character (bad_recipes.txt: name, recipe, expected text)."""

from pathlib import Path

import pytest

from nsw.errors import InputError
from nsw.recipe.load import load_recipe, load_recipe_text

CASES = [
    pytest.param(*rest.split("\n>>>\n"), id=name)
    for name, rest in (
        part.split("\n", 1) for part in Path(__file__).with_name("bad_recipes.txt").read_text().split("=== ")[1:]
    )
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_bad_recipe_is_told_with_place_and_remedy(text, expected):
    with pytest.raises(InputError) as caught:
        load_recipe_text(text + "\n")
    assert caught.value.render() == expected.removesuffix("\n")


def test_there_are_many_bad_recipes():
    assert len(CASES) > 60


def test_files_that_do_not_exist_are_named_with_the_nearest(tmp_path):
    (tmp_path / "train.py").touch()
    path = tmp_path / "r.yaml"
    path.write_text("nsw: 1\nname: x\napp: {command: ./a, files: [trian.py]}\n")
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    assert "there is no file 'trian.py'" in caught.value.render()
    assert "did you mean 'train.py'?" in caught.value.render()


def test_a_recipe_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_recipe(tmp_path / "none.yaml")


def test_a_recipe_in_latin1_names_the_line(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"nsw: 1\nname: x\ndescription: caf\xe9\n")
    with pytest.raises(InputError, match=":3: this is not UTF-8"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("extra", "warning"),
    [
        ("  exclude: [{gpus: 5}]\n", "this exclude matches no case"),
        ("  include: [{gpus: 2}]\n", "this case exists already"),
        ("  batch: 1,2\n", "this is one value, '1,2'"),
        ("  batch: 16 32\n", "this is one value, '16 32'"),
        ("  batch: 1-4\n", "this is one value, '1-4'"),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(extra, warning):
    loaded = load_recipe_text("nsw: 1\nname: x\napp: {command: './a {{ gpus }}'}\nmatrix:\n  gpus: [1, 2]\n" + extra)
    assert [w.message for w in loaded.warnings] == [warning]
    assert loaded.warnings[0].mark.line == 6
