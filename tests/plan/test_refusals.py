"""What cannot be done is refused before anything runs, with the line that asks for it, all of it at once."""

import pytest

from nsw.errors import InputError
from nsw.plan.build import build_plan
from nsw.plan.model import SiteFacts
from nsw.recipe.load import load_recipe_text
from nsw.site.load import load_site

HEAD = "nsw: 1\nname: t\napp: {command: ./prog}\n"


def test_more_gpus_than_the_site_has_is_told_at_the_line_that_asks(planner):
    recipe = HEAD + "passes: [baseline]\nresources: {gpus: 8, time: 1m}\n"
    (fault,) = planner.faults(recipe, gpus_per_node=4)
    assert fault.message == "8 GPUs asked, but site here has 4"
    assert fault.mark.line == 5
    assert fault.source_line[fault.mark.column - 1 : fault.mark.end_column - 1] == "8"
    assert fault.render().splitlines()[-2].endswith(" " * 19 + "^")
    assert "--fit" in fault.hint


def test_gpus_by_expression_are_checked_case_by_case_and_the_most_is_told_once(planner):
    recipe = HEAD + 'passes: [baseline]\nmatrix: {gpus: [2, 4, 8], b: [1, 2]}\nresources: {gpus: "{{ gpus }}"}\n'
    faults = planner.faults(recipe, gpus_per_node=2)
    assert [f.message for f in faults] == ["8 GPUs asked, but site here has 2"]


def test_gpus_of_several_nodes_are_those_of_all_of_them(planner):
    recipe = HEAD + "passes: [baseline]\nresources: {gpus: 8, nodes: 2}\n"
    assert planner.plan(recipe, gpus_per_node=4).runs
    (fault,) = planner.faults(recipe, gpus_per_node=3)
    assert fault.message == "8 GPUs asked, but site here has 3 on each of the 2 nodes"


def test_of_a_batch_system_the_key_is_named_and_how_many_nodes_would_do(planner):
    recipe = HEAD + "passes: [baseline]\nresources: {gpus: 9}\n"
    (fault,) = planner.faults(recipe, "scheduler: slurm, gpus: {per_node: 4}", gpus_per_node=4)
    assert fault.message == "9 GPUs asked, but site here has 4 on a node (gpus.per_node: 4)"
    assert fault.hint.startswith("`nodes: 3` in resources spreads them over nodes; `--fit`")


@pytest.mark.parametrize("resources", ["resources: {gpus: 1}\n", ""])
@pytest.mark.parametrize("fit", [False, True])
def test_the_demo_is_offered_with_the_recipe_that_it_replays(resources, fit):
    recipe = load_recipe_text(HEAD + "passes: [baseline]\n" + resources)
    with pytest.raises(InputError) as caught:
        build_plan(recipe, load_site("local"), SiteFacts(gpus_per_node=0), fit=fit)
    (fault,) = caught.value.diagnostics
    assert "`nsw run alexnet_scaling --site demo` shows recorded results" in fault.hint
    assert ("resources: {gpus: 0}" in fault.hint) is not fit


def test_a_site_without_a_gpu_has_none_and_one_whose_gpus_are_unknown_is_not_judged(planner):
    recipe = HEAD + "passes: [baseline]\nresources: {gpus: 1}\n"
    (fault,) = planner.faults(recipe, gpus_per_node=0)
    assert fault.message == "1 GPU asked, but site here has none"
    assert planner.plan(recipe, gpus_per_node=None).runs


def test_a_gpu_that_is_asked_by_default_only_is_told_to_be_so(planner):
    (fault,) = planner.faults(HEAD + "passes: [baseline]\n", gpus_per_node=0)
    assert fault.message == "1 GPU asked, but site here has none, and a recipe that does not say how many asks for 1"
    assert fault.hint == "write `resources: {gpus: 0}` if the program needs none"


def test_all_faults_are_told_at_once_each_with_its_own_line(planner):
    recipe = """\
        nsw: 1
        name: t
        app: {command: ./prog}
        passes: [baseline, counters: {}]
        resources: {gpus: 3, time: 2h}
        """
    faults = planner.faults(recipe, "scheduler: local, limits: {max_walltime: 1h}", gpus_per_node=1)
    told = "\n".join(f.message for f in faults)
    for part in ("3 GPUs asked", "a job would need"):
        assert part in told
    assert all(f.mark is not None for f in faults)


def test_a_longer_walltime_than_the_site_allows_counts_all_runs_of_a_job(planner):
    recipe = HEAD + "passes: [baseline]\nresources: {gpus: 0, time: 20m}\nrepeats: 4\n"
    assert planner.plan(recipe, "scheduler: local, limits: {max_walltime: 1h}").runs
    (fault,) = planner.faults(recipe, "scheduler: local, limits: {max_walltime: 1h, runs_per_job: 4}")
    assert "a job would need 01:21:00 for 4 runs of 00:20:00, but site here allows 01:00:00" in fault.message
    assert fault.mark.line == 5


def test_a_recipe_of_which_nothing_is_possible_is_refused_with_the_reasons(planner):
    recipe = HEAD + "passes: [timeline: {tool: nvprof}]\nresources: {gpus: 0}\n"
    (fault,) = planner.faults(recipe, tools={}, missing={"nvprof": "nvprof was sold"})
    assert fault.message == "no run of this recipe is possible on site here: pass timeline: nvprof was sold"


def test_a_value_that_only_some_cases_get_wrong_names_the_case(planner):
    recipe = HEAD + 'passes: [baseline]\nmatrix: {n: [1, 2]}\nresources: {gpus: 0, nodes: "{{ n / 2 }}"}\n'
    (fault,) = planner.faults(recipe)
    assert "case n-1" in fault.message
    assert "expected a whole number of at least 1" in fault.message
    assert "0.5" in fault.message


def test_a_quote_that_is_never_closed_is_told_once_for_all_cases(planner):
    recipe = "nsw: 1\nname: t\napp:\n  command: echo 'hi {{ n }}\npasses: [baseline]\nmatrix: {n: [1, 2, 3]}\n"
    (fault,) = planner.faults(recipe)
    assert fault.message == "case n-1 and 2 more: the command opens a quote ' but never closes it"
    assert fault.mark.line == 4
    assert fault.hint == "close it, or write a literal one as \\'"


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ("passes: [baseline]\nrepeats: 100001\nmatrix: {n: [1, 2]}\n", 5),
        ("passes: [{baseline: {warmup: 200000}}]\n", 4),
    ],
)
def test_more_runs_than_anybody_wants_are_refused_before_any_is_made(planner, rest, line):
    (fault,) = planner.faults(HEAD + rest + "resources: {gpus: 0}\n")
    assert fault.message == "cases, passes and repeats make more than 200,000 runs"
    assert fault.mark.line == line
