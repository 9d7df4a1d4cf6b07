"""The ranks whose reports a run is expected to leave follow from the recipe and the run's parameters alone."""

import pytest

from nsw.plan.expected_ranks import expected_ranks
from nsw.recipe.load import load_recipe_text

RECIPE = """\
nsw: 1
name: t
app: {{command: ./a.out, launcher: {launcher}}}
matrix: {{n: [2, 4]}}
passes: [baseline: {{}}, timeline: {{{more}}}, counters: {{metrics: [ipc]}}, host: {{tool: cprofile, ranks: all}}]
"""


def expected(launcher, of="timeline", more="", n=4):
    recipe = load_recipe_text(RECIPE.format(launcher=launcher, more=more), "r.yaml").recipe
    return expected_ranks(recipe, of, f"n-{n}", {"n": n})


@pytest.mark.parametrize(
    ("launcher", "ranks"),
    [
        ('{kind: mpirun, processes: "{{ n }}"}', {0, 1, 2, 3}),
        ("{kind: srun, processes: 2}", {0, 1}),
        ("{kind: torchrun, processes: 2, profiler: inside}", {0, 1}),
        ("{kind: torchrun, processes: 2, options: [--nnodes=2]}", None),
        ('{kind: mpirun, options: [-np, "4"]}', None),
        ('{kind: custom, prefix: "launch -n 4"}', None),
        ('{kind: mpirun, processes: "{{ site.name }}"}', None),  # what only the site knows
    ],
)
def test_all_ranks_are_counted_by_the_launcher(launcher, ranks):
    assert expected(launcher) == ranks


def test_a_pass_names_its_ranks():
    launcher = "{kind: mpirun, processes: 4}"
    assert expected(launcher, more="ranks: first") == {0}
    assert expected(launcher, more="ranks: [1, 3]") == {1, 3}
    assert expected(launcher, "counters") == {0}
    assert expected(launcher, "host") == {0, 1, 2, 3}
    assert expected(launcher, "baseline") is None
    assert expected(launcher, "another") is None
