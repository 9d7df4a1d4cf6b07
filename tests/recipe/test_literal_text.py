"""What a program gets of a value of the matrix: what stands in the file."""

import json

import pytest

from nsw.plan.command import command_words
from nsw.recipe.document import as_yaml
from nsw.recipe.expressions import Expression
from nsw.recipe.load import load_recipe_text

HEAD = "nsw: 1\nname: x\napp: {command: './a {{ n }}'}\n"


def cases(values: str, more: str = ""):
    return load_recipe_text(f"{HEAD}matrix: {{n: [{values}]{more}}}\n").cases


def got(case) -> tuple[str, ...]:
    return command_words(Expression.parse("./a {{ n }}"), case.params)[1:]


@pytest.mark.parametrize(
    "value",
    ["1e3", "0x10", "0o17", "1.10", "5.", ".5", "-0", "1E5", "1e-3", "010", "1_000", "yes", "off", "1:30", "true", "3"],
)
def test_a_value_reaches_the_program_as_it_is_written(value):
    (case,) = cases(value)
    assert got(case) == (value,)
    assert (
        Expression.parse("{% if n %}--n {{ n }}{% else %}--n {{ n }}{% endif %}").render(case.params) == f"--n {value}"
    )
    assert Expression.parse("{{ n }}").render(case.params) == value
    (again,) = load_recipe_text(HEAD + as_yaml({"matrix": {"n": [case.params["n"]]}})).cases
    assert (got(again), again.id) == (got(case), case.id)


def test_what_is_computed_is_a_number_like_any_other():
    (case,) = cases("1e3", ", m: '{{ n * 2 }}', k: '{{ n }}'")
    assert (case.params["m"], str(case.params["m"]), str(case.params["k"])) == (2000, "2000.0", "1e3")
    assert json.loads(json.dumps(case.params)) == {"n": 1000.0, "m": 2000.0, "k": 1000.0}


def test_a_range_is_counted_and_not_quoted():
    loaded = load_recipe_text(HEAD + "matrix: {n: {range: [0x10, 0x20, 8]}}\n")
    assert [got(case) for case in loaded.cases] == [("16",), ("24",), ("32",)]
    loaded = load_recipe_text(HEAD + "matrix: {n: {range: [0x10, 17.0, 5e-1]}}\n")
    assert [got(case) for case in loaded.cases] == [("16.0",), ("16.5",), ("17.0",)]


def test_equal_values_are_one_case_however_they_are_written():
    loaded = load_recipe_text(HEAD + "matrix: {n: [1e3, 1000.0, 16, 0x10]}\n")
    assert [case.id for case in loaded.cases] == ["n-1e3", "n-16"]
    assert [w.message for w in loaded.warnings] == ["1000.0 is listed a second time; it is one case",
                                                    "0x10 is listed a second time; it is one case"]  # fmt: skip


def test_a_text_that_looks_like_a_number_is_another_case():
    assert len({case.id for case in cases("0x10, '0x10', 1e3, '1e3', true, 'true'")}) == 6


def test_excludes_compare_values():
    assert [case.id for case in cases("1e3, 2e3", ", exclude: [{n: 1000}]")] == ["n-2e3"]


def test_words_of_python_are_yaml_s_and_that_is_said():
    loaded = load_recipe_text(HEAD + "matrix: {n: [True, 'False']}\n")
    assert [got(case) for case in loaded.cases] == [("true",), ("False",)]
    (warning,) = loaded.warnings
    assert "True reaches the program as true" in warning.render()
    assert "'True'" in warning.hint


def test_resources_are_plain_numbers():
    loaded = load_recipe_text(
        "nsw: 1\nname: x\napp: {command: ./a}\nresources: {gpus: 0x2, cpus_per_task: +4}\nrepeats: 0x1\n"
    )
    needs = loaded.recipe.resources
    assert (f"{needs.gpus} {needs.cpus_per_task} {loaded.recipe.repeats}") == "2 4 1"


def test_numbers_where_text_is_due_are_kept_too():
    loaded = load_recipe_text("nsw: 1\nname: x\napp: {command: [./a, 1.10, 0x10], env: {A: 1e3}}\n")
    assert (loaded.recipe.app.command, loaded.recipe.app.env) == (["./a", "1.10", "0x10"], {"A": "1e3"})
