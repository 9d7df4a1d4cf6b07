"""How long a campaign will still take, by what its runs took."""

import pytest

from nsw.engine.ledger_rows import Pace, State, seconds_left


def test_what_is_left_is_what_the_runs_of_each_pass_took_shared_by_those_that_run():
    paces = [
        Pace("baseline", State.DONE, 4, 40.0, 4),
        Pace("baseline", State.RUNNING, 2, 6.0, 2),
        Pace("baseline", State.QUEUED, 3, 0.0, 0),
        Pace("timeline", State.DONE, 1, 100.0, 1),
        Pace("timeline", State.PLANNED, 2, 0.0, 0),
        Pace("timeline", State.FAILED, 5, 1.0, 5),
    ]
    assert seconds_left(paces) == pytest.approx((2 * 10 - 6 + 3 * 10 + 2 * 100) / 2)


def test_a_pass_of_which_none_is_done_takes_as_long_as_the_others_and_a_late_run_takes_nothing_more():
    paces = [
        Pace("a", State.DONE, 1, 10.0, 1),
        Pace("a", State.RUNNING, 1, 60.0, 1),
        Pace("b", State.PLANNED, 3, 0.0, 0),
    ]
    assert seconds_left(paces) == pytest.approx(30)


def test_nothing_is_guessed_where_no_run_is_done_or_none_runs():
    assert seconds_left([Pace("a", State.RUNNING, 1, 5.0, 1), Pace("a", State.PLANNED, 9, 0.0, 0)]) is None
    assert seconds_left([Pace("a", State.DONE, 1, 5.0, 1), Pace("a", State.QUEUED, 9, 0.0, 0)]) is None
