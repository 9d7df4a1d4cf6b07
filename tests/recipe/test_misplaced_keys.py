"""A key at the wrong place is told where it belongs."""

import pytest

from nsw.errors import InputError
from nsw.recipe.checks import paths_of_key
from nsw.recipe.load import load_recipe
from nsw.recipe.model import Recipe
from nsw.site.model import SitesFile

RECIPE = "nsw: 1\nname: t\napp: {command: 'true'}\n"


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("figures", ["app"]),
        ("gpus", ["resources"]),
        ("metrics", ["passes[].counters"]),
        ("regex", ["check[]"]),
        ("options", ["app.launcher", "app.container", "passes[].timeline"]),
        ("nonsense", []),
    ],
)
def test_a_key_has_the_homes_that_are_nearest_to_the_top(key, where):
    assert paths_of_key(Recipe, key) == where


def test_keys_of_sites_too():
    assert paths_of_key(SitesFile, "host") == ["sites.NAME.transport"]


def hint_of(tmp_path, text):
    file = tmp_path / "r.yaml"
    file.write_text(RECIPE + text)
    with pytest.raises(InputError) as caught:
        load_recipe(file)
    (fault,) = caught.value.diagnostics
    return fault.hint


def test_the_hint_says_where_a_key_belongs_and_what_there_is(tmp_path):
    hint = hint_of(tmp_path, "figures: {speed: {regex: '(x)', unit: s}}\n")
    assert hint.startswith("figures is a key of app; the keys here are nsw, name, ")


def test_a_misspelt_key_is_told_its_name(tmp_path):
    assert hint_of(tmp_path, "repeat: 2\n") == "did you mean 'repeats'?"


def test_a_key_of_nowhere_is_told_what_there_is(tmp_path):
    assert hint_of(tmp_path, "nonsense: 2\n").startswith("the keys here are nsw, name, ")
