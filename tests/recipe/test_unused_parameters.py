"""Parameters that make no difference and values that stand twice are warned of, at their places."""

import pytest

from nsw.recipe.load import load_recipe_text

RECIPE = """\
nsw: 1
name: t
app: {command: "./prog APP", figures: {speed: {regex: '(x)', unit: 1/s}}, env: {A: "ENV"}}
passes: [baseline: {time: TIME}]
resources: {gpus: 0, memory: MEMORY}
matrix: {MATRIX}
report: {REPORT}
"""
PARTS = {"APP": "", "ENV": "", "TIME": "1m", "MEMORY": "1G", "REPORT": "", "MATRIX": "n: [1, 2]"}


def warned(**parts):
    text = RECIPE
    for name, part in (PARTS | parts).items():
        text = text.replace(name, part)
    return [(w.message, w.mark.line, w.mark.column) for w in load_recipe_text(text).warnings]


N = ("nothing uses n, so its cases are the same", 6, 10)


def test_a_parameter_that_no_text_uses_is_warned_of_at_its_line():
    assert warned() == [N]


@pytest.mark.parametrize("where", ["APP", "ENV", "TIME", "MEMORY"])
@pytest.mark.parametrize("text", ["{{ n }}m", "{{ case }}m"])
def test_any_text_is_a_use(where, text):
    assert warned(**{where: f"'{text}'" if where in {"TIME", "MEMORY"} else text}) == []


def test_axes_of_the_report_and_excludes_are_none():
    assert warned(REPORT="scaling: {axis: n, kind: weak, figure: speed}, compare: {parameter: n}") == [N]
    assert warned(MATRIX="n: [1, 2, 3], exclude: ['{{ n > 2 }}']") == [N]


@pytest.mark.parametrize(
    "matrix",
    [
        "n: [1]",  # a label
        "n: [1, 2], m: [3, 4], zip: [[n, m]]",  # a label of m
        "n: [1, 2], m: ['{{ n * 2 }}']",
        "include: [{n: 1, m: 5}, {n: 2, m: 6}]",
    ],
)
def test_what_names_cases_that_differ_is_no_fault(matrix):
    assert warned(MATRIX=matrix, APP="{{ m }}" if "m:" in matrix else "") == []


def test_a_label_beside_cases_that_are_the_same_is_told():
    assert warned(MATRIX="n: [1, 2], m: [3, 4]", APP="{{ m }}") == [N]


def test_a_value_that_stands_twice_is_told_at_its_place():
    assert warned(MATRIX="n: [1, 1, 2]", APP="{{ n }}") == [("1 is listed a second time; it is one case", 6, 17)]
    assert warned(MATRIX="n: [1, 1.0, true, '1'], m: [a, b, a]", APP="{{ n }} {{ m }}") == [
        ("'a' is listed a second time; it is one case", 6, 44)
    ]


def test_values_of_lists_that_vary_together_may_stand_twice():
    assert warned(MATRIX="n: [1, 1, 2], m: [3, 4, 4], zip: [[n, m]]", APP="{{ n }} {{ m }}") == []
