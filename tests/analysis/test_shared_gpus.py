"""Which runs were measured beside another one."""

import pytest

from nsw.analysis.placement import Pair, Span, find_runs_sharing_gpus, gpu_sharing_sentences

A, B = Span("a", "n1", 0.0, 10.0), Span("b", "n1", 5.0, 15.0)


def given(**names):
    return lambda run: names.get(run, frozenset())


@pytest.mark.parametrize(
    ("spans", "gpus", "found"),
    [
        ([A, B], given(a={"0"}, b={"0", "1"}), [Pair("a", "b", "n1", "0")]),
        ([A, B], given(a={"0"}, b={"1"}), []),
        ([A, B], given(), [Pair("a", "b", "n1", None)]),
        ([A, B], given(a={"0"}), []),
        ([A, B], given(a=None), []),
        ([A, Span("b", "n2", 5.0, 15.0)], given(), []),
        ([A, Span("b", "n1", 10.0, 15.0)], given(), []),
    ],
    ids=["the same", "others", "none given", "one was given", "not known", "another host", "later"],
)
def test_only_runs_on_one_gpu_at_the_same_time_are_pairs(spans, gpus, found):
    assert find_runs_sharing_gpus(spans, gpus) == found
    assert find_runs_sharing_gpus(reversed(spans), gpus) == found


def test_runs_that_nothing_overlapped_are_not_asked_for_their_gpus():
    def never(run):
        raise AssertionError(run)

    assert find_runs_sharing_gpus([Span(f"r{n}", "n1", n, n + 1) for n in range(5)], never) == []


def test_each_way_to_share_is_one_sentence():
    lines = gpu_sharing_sentences([Pair("a", "b", "n1", "0"), Pair("a", "c", "n1", None), Pair("b", "c", "n1", "0")])
    assert [line.split(":")[0] for line in lines] == [
        "a and b ran at the same time on GPU 0 of n1, as did 1 more pair",
        "a and c ran at the same time on n1, and neither was given a GPU of its own (CUDA_VISIBLE_DEVICES is not set)",
    ]
    assert gpu_sharing_sentences([]) == []
