"""The longest time without GPU work in each iteration."""

import numpy as np
import pytest

from nsw.readers.timeline.calls import Covered
from nsw.readers.timeline.phases import longest_gaps


def covered(*spans):
    start, end = (np.array([span[at] for span in spans], np.int64) for at in (0, 1))
    return Covered(start, end - start)


@pytest.mark.parametrize(
    ("spans", "edges", "gaps"),
    [
        pytest.param([(0, 10), (30, 40), (45, 50)], [0, 50], [20], id="between operations"),
        pytest.param([(0, 100), (10, 20), (50, 60), (130, 140)], [0, 140], [30], id="streams that overlap"),
        pytest.param([(50, 60), (0, 10)], [0, 60], [40], id="in any order"),
        pytest.param([(0, 10), (170, 180)], [0, 100, 200], [90, 70], id="a gap over an edge is two"),
        pytest.param([(0, 10), (40, 50)], [0, 20, 30, 50], [10, 10, 10], id="an iteration without work"),
        pytest.param([(0, 5), (500, 600)], [100, 200], [100], id="work around it alone"),
        pytest.param([(0, 200)], [0, 100, 200], [0, 0], id="none"),
        pytest.param([], [0, 100], [100], id="no work"),
    ],
)
def test_gaps_are_those_of_the_union_of_all_operations(spans, edges, gaps):
    assert longest_gaps(covered(*spans), np.array(edges, np.int64)).tolist() == gaps
