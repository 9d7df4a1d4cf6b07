"""Which processes of a run left no report."""

import pytest

from nsw.engine.read import missing_rank_severity, missing_ranks, missing_ranks_sentence

FOUR = range(4)


@pytest.mark.parametrize(
    ("reports", "expected", "missing"),
    [
        (["timeline.rank0.nsys-rep", "timeline.rank2.nsys-rep"], FOUR, ([1, 3], 4)),
        (["timeline.rank0.17.txt", "timeline.rank0.18.txt", "timeline.rank1.19.txt"], (0, 1), ([], 2)),
        (["timeline.rank3.sqlite.gz"], {1, 3}, ([1], 2)),  # as the recipe names them
        (["timeline.rank2.nsys-rep"], None, ([0, 1], 3)),  # how many there are only the launcher knows
        (["timeline.rank0.nsys-rep"], None, ([], 1)),
        (["timeline.nsys-rep", "other.rank.txt"], FOUR, ([], 0)),  # one report of all processes
        ([], FOUR, ([], 0)),  # that nothing was left is another message
    ],
)
def test_ranks_without_a_report(reports, expected, missing):
    assert missing_ranks(reports, expected) == missing


def test_the_sentence_names_a_few_and_counts_the_others():
    assert missing_ranks_sentence([1], 3) == "no report of rank 1: 2 of 3 processes left one"
    assert missing_ranks_sentence([1, 3], 4) == "no report of ranks 1, 3: 2 of 4 processes left one"
    assert (
        missing_ranks_sentence([*range(1, 1500)], 2000)
        == "no report of ranks 1, 2, 3, 4 and 1,495 more: 501 of 2,000 processes left one"
    )


def test_a_process_without_a_kernel_may_leave_none_to_a_tool_that_counts_kernels():
    assert [missing_rank_severity(tool) for tool in ("nsys", "cprofile", "ncu", "nvprof")] == [
        "error",
        "error",
        "warning",
        "warning",
    ]
