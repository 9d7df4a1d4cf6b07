"""Where ranks were, and ranks that crowd one GPU beside idle ones, as sentences."""

import pytest

from nsw.analysis.placement import StrayContext, crowded_gpu_sentences, find_stray_contexts, node_sentences_by_case

CASES = {"a.r1": "a", "a.r2": "a", "b.r1": "b"}


def ranks(run, nodes, each, gpus):
    """Rows of table ranks; `gpus` of a local rank."""
    return [
        {"run": run, "rank": at * each + local, "host": node, "gpus": gpus(node, local)}
        for at, node in enumerate(nodes) for local in range(each)
    ]  # fmt: skip


def kernels(run, *devices, known=True):
    """Rows of phase_summary: the GPU that each process used, by its number."""
    return [
        {"run": run, "report": "r", "rank": at if known else None, "pid": at, "summary": "gpu_summary", "kind": "kernel",
         "device": device}
        for at, device in enumerate(devices)
    ]  # fmt: skip


def all_four(node, _local):
    return ",".join(f"GPU-{node}-{n}" for n in range(4))


def test_each_case_names_its_nodes():
    rows = [
        *ranks("a.r1", ["n1", "n2"], 4, all_four),
        *ranks("a.r2", ["n3", "n2"], 4, all_four),
        *ranks("b.r1", ["n1"], 2, all_four),
    ]
    assert node_sentences_by_case(rows, CASES) == [("a", "8 ranks (4 + 4) on n1, n2, n3"), ("b", "2 ranks on n1")]


@pytest.mark.parametrize("known", [True, False])  # by rank, or one report of all processes, as of torchrun
def test_ranks_that_share_a_gpu_beside_idle_ones_are_named(known):
    ((case, text),) = crowded_gpu_sentences(
        ranks("a.r1", ["n1"], 4, all_four), kernels("a.r1", 0, 0, 0, 0, known=known), CASES
    )
    assert case == "a"
    assert text.startswith("4 ranks worked on one GPU of n1 (GPU-n1-0), and 3 of its 4 GPUs had nothing to do:")
    assert "`launcher: {gpus: own}`" in text


def test_of_two_nodes_the_crowded_one_is_named():
    rows = ranks("a.r1", ["n1", "n2"], 4, all_four)
    ((_, text),) = crowded_gpu_sentences(rows, kernels("a.r1", 0, 1, 2, 3, 0, 0, 1, 2), CASES)
    assert text.startswith("2 ranks worked on one GPU of n2 (GPU-n2-0), and 1 of its 4 GPUs")


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        (all_four, (0, 1, 2, 3)),  # each its own
        (lambda node, local: f"GPU-{node}-{local}", (0, 0, 0, 0)),  # number 0 of each is another
        (lambda node, _: f"GPU-{node}-0", (0, 0, 0, 0)),  # all share the one that there is
        (all_four, (0,)),  # one process was profiled
        (lambda *_: None, (0, 0, 0, 0)),  # a program without GPUs
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(gpus, devices):
    assert crowded_gpu_sentences(ranks("a.r1", ["n1"], 4, gpus), kernels("a.r1", *devices), CASES) == []


def test_a_context_on_the_gpu_of_another_rank_is_no_work_there():
    rows = [row | {"total_ns": 1e9} for row in kernels("a.r1", 0, 1, 2, 3)]
    stray = [row | {"device": 0, "total_ns": 2e3} for row in rows[1:]]
    assert crowded_gpu_sentences(ranks("a.r1", ["n1"], 4, all_four), [*stray, *rows, *stray], CASES) == []


def on_gpu(pid, device, kernels, *, works, run="a.r1", rank=None):
    return {"run": run, "report": "r", "pid": pid, "rank": rank, "device": device, "works": works, "kernels": kernels,
            "copies": 0, "gpu_ns": 3e3 * kernels, "iteration_gpu_ns": None}  # fmt: skip


def test_contexts_beside_the_work_are_those_of_one_run():
    rows = [on_gpu(7, 0, 2, works=False, run=run, rank=1) for run in ("a.r1", "a.r2")]
    rows += [on_gpu(7, 1, 900, works=True, run=run, rank=1) for run in ("a.r1", "a.r2")]
    assert find_stray_contexts(rows) == (StrayContext("rank 1", 0, 2, 0, 6e3, None),)


def test_a_process_that_works_nowhere_has_no_stray_context():
    assert find_stray_contexts([on_gpu(7, 0, 0, works=False)]) == ()
    assert find_stray_contexts([on_gpu(7, device, 5, works=True) for device in (0, 1)]) == ()
