"""`${{ x }}`, as other tools write it, is warned of at its place: the `$` would stay in the text."""

import pytest

from nsw.convert.starter import recipe_for
from nsw.recipe.load import load_recipe_text


def warned(app):
    text = f"nsw: 1\nname: t\napp: {app}\npasses: [baseline]\nresources: {{gpus: 0}}\nmatrix: {{n: [1, 2]}}\n"
    return load_recipe_text(text).warnings


@pytest.mark.parametrize(
    "app",
    ["{command: 'x ${{ n }} {{ n }}'}", "{command: [x, '${{ n }}']}", "{command: 'x {{ n }}', env: {A: '${{ n }}'}}"],
)
def test_a_dollar_before_an_expression_is_warned_of_at_its_place(app):
    (warning,) = warned(app)
    assert warning.message == "the $ before this expression is no part of it: it stays in the text"
    assert warning.hint == "write {{ n }}; for a $ before a value {{ '$' }}{{ n }}"
    assert warning.source_line[warning.mark.column - 1 : warning.mark.end_column - 1] == "${{ n }}"


@pytest.mark.parametrize("command", ["x ${HOME} {{ n }}", "x $ {{ n }}", "x {{ '$' }}{{ n }}"])
def test_what_is_meant_so_is_not_warned_of(command):
    assert warned(f'{{command: "{command}"}}') == []


def test_a_dollar_that_init_writes_is_not_warned_of():
    assert load_recipe_text(recipe_for(["echo", "${{ x }}"], [], gpus=False)).warnings == []
