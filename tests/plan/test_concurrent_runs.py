"""Runs on a machine without a batch system do not disturb each other unless its site asks for it."""

import pytest

from nsw.site.load import load_site

RECIPE = """
    nsw: 1
    name: t
    app: {command: './prog {{ n }}'}
    matrix: {n: [1, 2, 3]}
    passes: [baseline]
    resources: {gpus: GPUS, time: 1m}
"""
THERE = "scheduler: local, transport: {kind: openssh, host: box}, scratch: /tmp/nsw"


def notes(planner, site, gpus=0, **facts):
    return [note for note in planner.plan(RECIPE.replace("GPUS", str(gpus)), site, **facts).notes if "disturb" in note]


def test_runs_that_need_no_gpu_are_warned_of_on_a_machine_over_there(planner):
    (note,) = notes(planner, THERE)
    assert note.startswith("3 runs need no GPU, so up to 3 of them run at the same time on that machine")


@pytest.mark.parametrize(
    ("site", "gpus"),
    [(f"{THERE}, limits: {{max_in_flight: 2}}", 0), (THERE, 1), ("scheduler: local", 0), ("scheduler: slurm", 0)],
)
def test_not_where_it_is_asked_for_or_cannot_happen(planner, site, gpus):
    assert notes(planner, site, gpus, gpus_per_node=1) == []


@pytest.mark.parametrize(
    ("site", "most"),
    [
        ("scheduler: local", 1),
        ("scheduler: local, transport: local, limits: {max_array: 5}", 1),
        ("scheduler: local, limits: {max_in_flight: 4}", 4),
        (THERE, 20),
        ("scheduler: slurm", 20),
    ],
)
def test_on_this_machine_one_goes_after_the_other_unless_the_site_says_more(tmp_path, site, most):
    file = tmp_path / "sites.yaml"
    file.write_text(f"nsw: 1\nsites:\n  here: {{{site}}}\n")
    assert load_site("here", [file]).site.limits.max_in_flight == most
