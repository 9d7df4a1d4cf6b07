"""Where ranks are to be: what a recipe and a site say, as a layout, as a sentence, and what contradicts itself."""

import re
from dataclasses import replace
from itertools import product

import pytest

from nsw.plan.layout import Demand, LayoutError, compute_layout, layout_sentence

GPUS = {"gpus": 8, "gpus_written": True}


def layout(kind="srun", **more):
    return compute_layout(Demand(kind, **more))


@pytest.mark.parametrize(
    ("asked", "ranks"),
    [
        ({"nodes": 2, "processes": 8}, (4, 4)),
        ({"nodes": 2, "processes": 7}, (4, 3)),
        ({"nodes": 4, "processes": 10}, (3, 3, 3, 1)),
        ({"nodes": 2, "tasks_per_node": 4}, (4, 4)),
        ({"nodes": 2}, (1, 1)),
        ({}, (1,)),
        ({"processes": 16}, (16,)),
    ],
)
def test_ranks_fill_the_nodes_in_blocks(asked, ranks):
    found = layout(**asked)
    assert (found.ranks, found.tasks, found.total) == (ranks, sum(ranks), sum(ranks))


@pytest.mark.parametrize(
    ("asked", "path", "numbers"),
    [
        ({"nodes": 2, "processes": 8, "tasks_per_node": 3}, ("resources", "tasks_per_node"), ("8 processes", "3 have 6")),
        ({"nodes": 4, "processes": 2}, ("resources", "nodes"), ("2 processes on 4 nodes", "2 nodes would get none")),
        ({"nodes": 4, "processes": 9}, ("resources", "nodes"), ("9 processes on 4 nodes", "1 node would get none")),
        ({"nodes": 2, "processes": 16, **GPUS}, ("resources", "gpus"), ("8 processes would share the 4 GPUs", "16 processes, 8 GPUs")),
        ({"processes": 3, "gpus": 4, "gpus_written": True}, ("resources", "gpus"), ("3 processes cannot divide the 4 GPUs",)),
        ({"nodes": 2, "processes": 7, **GPUS}, ("resources", "gpus"), ("3 processes cannot divide the 4 GPUs of a node",)),
        ({"nodes": 2, "gpus": 3, "gpus_written": True}, ("resources", "gpus"), ("3 GPUs", "2 nodes")),
        ({"nodes": 2, "processes": 32, "cpus": 8, "node_cpus": 64}, ("resources", "cpus_per_task"), ("need 128 cores", "have 64")),
        ({"nodes": 2, "one_machine": True}, ("resources", "nodes"), ("2 nodes, but the site is one machine",)),
        ({"kind": "torchrun", "nodes": 2, "processes": 7}, ("app", "launcher", "processes"), ("7 processes", "2 nodes")),
    ],
)  # fmt: skip
def test_contradictions_are_refused_at_their_place_with_both_numbers(asked, path, numbers):
    with pytest.raises(LayoutError) as caught:
        layout(**asked)
    assert caught.value.path == path
    for text in numbers:
        assert text in caught.value.message
    assert caught.value.hint


def test_a_word_of_the_recipe_lets_ranks_share_gpus():
    assert layout(nodes=2, processes=16, share_gpus=True, **GPUS).ranks == (8, 8)
    assert layout(processes=3, gpus=4, gpus_written=True, share_gpus=True).ranks == (3,)


def test_recipes_that_leave_gpus_at_its_default_are_not_touched():
    assert layout(processes=64, gpus=1).ranks == (64,)
    assert layout(nodes=2, processes=8, gpus=1).node_gpus == 0


@pytest.mark.parametrize(
    ("asked", "variable"),
    [
        ({"nodes": 2, "processes": 8, **GPUS}, "CUDA_VISIBLE_DEVICES"),
        ({"nodes": 2, "processes": 8, "chip": "gfx90a", **GPUS}, "ROCR_VISIBLE_DEVICES"),
        ({"nodes": 2, "processes": 8, "chip": "pvc", **GPUS}, "ZE_AFFINITY_MASK"),
        ({"nodes": 2, "processes": 8, "sees": "node", **GPUS}, ""),
        ({"kind": "torchrun", "nodes": 2, "processes": 8, **GPUS}, ""),
        ({"nodes": 2, "processes": 2, **GPUS}, ""),  # four GPUs a rank
        ({"nodes": 2, "processes": 2, "sees": "own", **GPUS}, "CUDA_VISIBLE_DEVICES"),
        ({"processes": 1, "gpus": 1, "gpus_written": True}, ""),  # one process has what the job has
        ({"kind": "none", **GPUS}, ""),
        ({"kind": "custom", "processes": 8, **GPUS}, ""),
        ({"processes": 4}, ""),
    ],
)
def test_each_rank_sees_its_own_gpu_where_it_has_exactly_one(asked, variable):
    assert layout(**asked).variable == variable


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"nodes": 2, "processes": 8, **GPUS}, "8 ranks: 4 on each of 2 nodes, one GPU each"),
        ({"nodes": 2, "processes": 7}, "7 ranks: 4 + 3 on 2 nodes"),
        ({"processes": 4, "gpus": 4, "gpus_written": True, "cpus": 8}, "4 ranks on one node, one GPU each, 8 CPU cores each"),
        ({"kind": "torchrun", "processes": 4, "gpus": 4, "gpus_written": True},
         "4 ranks on one node, one GPU each (each sees all 4 of its node and picks by LOCAL_RANK)"),
        ({"nodes": 2, "processes": 16, "share_gpus": True, **GPUS},
         "16 ranks: 8 on each of 2 nodes, 4 GPUs of a node shared by 8 ranks (each sees all 4 of its node and picks by its local rank)"),
        ({"nodes": 2, "processes": 2, **GPUS}, "2 ranks: one on each of 2 nodes, 4 GPUs each (each sees all 4 of its node and picks by its local rank)"),
        ({"processes": 1}, None),
        ({"kind": "none"}, None),
        ({"kind": "none", "nodes": 2}, "one process, on the first of 2 nodes: what it starts on the others is its own, and is not checked"),
        ({"kind": "custom", "nodes": 2, "processes": 8}, "a custom launcher places its processes on 2 nodes itself: that is not checked"),
    ],
)  # fmt: skip
def test_a_layout_is_a_sentence_for_a_person(asked, said):
    assert layout_sentence(layout(**asked)) == said


# what a hint says, as what it changes
CHANGES = {
    "nodes": "nodes",
    "processes": "processes",
    "tasks_per_node": "tasks_per_node",
    "gpus": "gpus",
    "cpus_per_task": "cpus",
}


def applied(demand: Demand, way: str) -> Demand:
    changes = {CHANGES[name]: int(number) for name, number in re.findall(r"`(\w+): (\d+)`", way)}
    if "leave out tasks_per_node" in way:
        changes["tasks_per_node"] = None
    return replace(demand, share_gpus="share_gpus: true" in way, **changes)


@pytest.mark.parametrize("kind", ["srun", "torchrun"])
def test_what_a_hint_says_is_accepted(kind):
    tried = 0
    for nodes, processes, each, gpus, cpus in product(
        (1, 2, 3), (None, 1, 6, 7), (None, 1, 3), (0, 1, 4, 8), (None, 4)
    ):
        demand = Demand(
            kind, nodes=nodes, processes=processes, tasks_per_node=each, gpus=gpus, gpus_written=True, cpus=cpus,
            node_cpus=16, site_gpus=4,
        )  # fmt: skip
        try:
            compute_layout(demand)
        except LayoutError as fault:
            for way in (fault.hint or "").split(", or "):
                if way:
                    compute_layout(applied(demand, way))
                    tried += 1
    assert tried > 100


def test_a_launcher_is_missed_where_the_job_has_room_for_several_processes():
    assert "one process, in a job with room for 4" in layout_sentence(layout("none", tasks_per_node=4))


def test_nodes_that_take_ranks_in_turn_are_a_sentence_and_differ_by_one_rank_at_most():
    found = layout(nodes=3, processes=7, cyclic=True)
    assert found.ranks == (3, 2, 2)
    assert "which take them in turn (0, 3, ... on the first)" in layout_sentence(found)


def test_a_hint_names_every_change_where_a_single_change_leads_to_the_next_contradiction():
    demand = Demand("srun", processes=6, gpus=4, gpus_written=True, cpus=4, node_cpus=16, site_gpus=4)
    with pytest.raises(LayoutError) as caught:
        compute_layout(demand)
    assert caught.value.hint == "`nodes: 2` spreads them and `gpus: 6` gives each its own"
