"""The ranks whose reports a run is expected to leave follow from the recipe and from where its ranks landed."""

import pytest

from nsw.engine.read import expected_ranks
from nsw.recipe.load import load_recipe_text
from nsw.recipe.passes import drawn_ranks

RECIPE = """\
nsw: 1
name: t
app: {{command: ./a.out, launcher: {{kind: srun, processes: 8}}}}
passes: [baseline: {{}}, timeline: {{{more}}}, counters: {{metrics: [ipc]}}, host: {{tool: cprofile, ranks: all}}]
"""
LANDED = {rank: rank % 4 for rank in range(8)}  # four on each of two nodes


def expected(of="timeline", more="", landed=LANDED):
    return expected_ranks(load_recipe_text(RECIPE.format(more=more), "r.yaml").recipe, of, landed)


@pytest.mark.parametrize(
    ("more", "ranks"),
    [("", {*range(8)}), ("ranks: first", {0}), ("ranks: [1, 3]", {1, 3}), ("ranks: node", {0, 4})],
)
def test_a_pass_names_its_ranks(more, ranks):
    assert expected(more=more) == ranks


def test_counters_are_of_the_first_rank_unless_the_recipe_says_otherwise():
    assert expected("counters") == {0}
    assert expected("host") == {*range(8)}


def test_a_share_draws_in_the_report_what_it_drew_in_the_plan():
    assert expected(more="ranks: 30%") == {*drawn_ranks("30%", 8, "t")}


def test_where_nobody_counted_them_they_are_not_known():
    assert expected(landed={}) is None
    assert expected(more="ranks: 5%", landed={}) is None
    assert expected("baseline") is None
    assert expected("another") is None
