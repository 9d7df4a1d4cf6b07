"""`--against`: the cases of a recipe get two sides, whatever its matrix is made of."""

import pytest
import yaml

from nsw.errors import UsageError
from nsw.recipe.document import as_yaml, parse
from nsw.recipe.load import Before, load_recipe_text, with_sides

HEAD = "nsw: 1\nname: t\napp: {command: './p {{ n }} {{ m }}'}\n"


def sided(text: str, **values):
    """The recipe as it becomes."""
    document = with_sides(parse(HEAD + text, "r.yaml"), Before("REF", values))
    return load_recipe_text(as_yaml(document.data))


def cases(text: str, **values) -> list[str]:
    return [case.id for case in sided(text, **values).cases]


def test_each_case_is_there_on_both_sides():
    assert cases("matrix: {n: [1, 2], m: [3]}") == [
        "n-1_m-3_side-before", "n-1_m-3_side-after", "n-2_m-3_side-before", "n-2_m-3_side-after",
    ]  # fmt: skip


def test_other_values_are_of_the_side_before():
    assert cases("matrix: {n: 1, m: [3, 4]}", n=7) == [
        "n-7_m-3_side-before", "n-7_m-4_side-before", "n-1_m-3_side-after", "n-1_m-4_side-after",
    ]  # fmt: skip


def test_parameters_that_vary_together_still_do():
    assert cases("matrix: {n: [1, 2], m: [3, 4], zip: [n, m]}") == [
        "n-1_m-3_side-before", "n-1_m-3_side-after", "n-2_m-4_side-before", "n-2_m-4_side-after",
    ]  # fmt: skip


def test_what_follows_from_a_value_follows_on_each_side():
    assert cases("matrix: {n: [1], m: '{{ n * 2 }}'}", n=5) == ["n-5_m-10_side-before", "n-1_m-2_side-after"]


@pytest.mark.parametrize("lists", ["", "n: [9], m: [9], "])
def test_cases_that_are_included_have_both_sides_too(lists):
    found = cases("matrix: {" + lists + "include: [{n: 1, m: 2}]}")
    assert found[-2:] == ["n-1_m-2_side-before", "n-1_m-2_side-after"]
    assert len(found) == (4 if lists else 2)


def test_a_number_stays_as_it_is_written():
    assert "n-1e3" in cases("matrix: {n: [1e3], m: [1]}", m=2)[1]


def test_what_a_recipe_says_of_repeats_order_and_comparison_stays():
    written = "repeats: 5\ninterleave: {seed: 7}\nmatrix: {n: [1], m: [2, 3]}\nreport: {compare: {parameter: m}}\n"
    recipe = sided(written).recipe
    assert (recipe.repeats, recipe.interleave.seed, recipe.report.compare.parameter) == (5, 7, "m")
    recipe = sided("interleave: false\nmatrix: {n: [1], m: [2]}\n").recipe
    assert (recipe.repeats, recipe.report.compare.parameter, recipe.report.compare.baseline) == (3, "side", "before")
    assert recipe.interleave is not None


def test_a_recipe_with_a_side_of_its_own_is_refused():
    with pytest.raises(UsageError, match="a parameter side of its own"):
        sided("matrix: {n: [1], m: [2], side: [left, right]}")


def test_the_program_of_the_side_before_reaches_the_recipe():
    text = "nsw: 1\nname: t\napp: {command: ./p, files: [new/p]}\n"
    document = with_sides(parse(text, "r.yaml"), Before("REF", files=("/old/p",)))
    assert yaml.safe_load(as_yaml(document.data))["app"] == {"command": "./p", "files": ["new/p"], "before": ["/old/p"]}
