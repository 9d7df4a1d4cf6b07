"""What a recipe that adds to a campaign may change, and what would change the campaign's runs."""

import copy

import pytest

from nsw.recipe.load import extend_recipe
from nsw.recipe.model import Recipe

BEFORE = Recipe.model_validate(
    {
        "nsw": 1,
        "name": "small",
        "app": {"command": "prog {{ n }}", "launcher": "srun"},
        "matrix": {"n": [1, 2]},
        "passes": [{"baseline": {}}, {"timeline": {"time": "5m"}}],
        "resources": {"gpus": 1, "time": "10m"},
    }
).model_dump(mode="json", by_alias=True, exclude_none=True)
NOT_OF_A_RUN = {
    "name": "other", "description": "more", "collect": "tables", "canary": "on", "stop_after_failures": 3,
    "notify": "mail me", "app.files": ["a.py"], "app.figures": {"f": {"regex": "f=(.*)", "unit": "s"}},
    "resources.time": "1h", "passes.1.timeline.time": "1h", "report": {"hotspots": {"cover": "50%"}},
    "lock": {"version": "1", "site": "local", "date": "today"},
}  # fmt: skip
OF_A_RUN = {
    "app.command": "prog -v {{ n }}", "app.env": {"A": "1"}, "app.launcher.kind": "mpirun", "app.setup": ["true"],
    "resources.gpus": 2, "repeats": 2, "warmup": 1, "passes.1.timeline.trace": ["cuda"], "a_new_key": 1,
    "app.a_new_key": 1, "matrix.m": [1],
}  # fmt: skip


def changed(key, value):
    now = copy.deepcopy(BEFORE)
    *above, last = (int(word) if word.isdigit() else word for word in key.split("."))
    data = now
    for word in above:
        data = data[word]
    data[last] = value
    return now


@pytest.mark.parametrize("key", NOT_OF_A_RUN)
def test_what_decides_no_run_is_the_new_recipe_s(key):
    now = changed(key, NOT_OF_A_RUN[key])
    found = extend_recipe(BEFORE, now, [{"n": 3}])
    assert found is not None
    assert found["matrix"]["include"] == [{"n": 3}]


@pytest.mark.parametrize("key", OF_A_RUN)
def test_what_decides_how_a_run_is_done_cannot_be_joined_also_a_key_of_a_later_version(key):
    assert extend_recipe(BEFORE, changed(key, OF_A_RUN[key]), [{"n": 3}]) is None
