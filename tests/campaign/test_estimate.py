"""How long a campaign will still take, by what its runs took."""

import random
import sqlite3
from contextlib import closing

import pytest

from nsw.engine.ledger import Ledger
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
    assert seconds_left(paces, 2) == pytest.approx((2 * 10 - 6 + 3 * 10 + 2 * 100) / 2)


def test_a_pass_of_which_none_is_done_takes_as_long_as_the_others_and_a_late_run_takes_nothing_more():
    paces = [
        Pace("a", State.DONE, 1, 10.0, 1),
        Pace("a", State.RUNNING, 1, 60.0, 1),
        Pace("b", State.PLANNED, 3, 0.0, 0),
    ]
    assert seconds_left(paces, 1) == pytest.approx(30)


def test_nothing_is_guessed_where_no_run_is_done_or_none_runs():
    assert seconds_left([Pace("a", State.RUNNING, 1, 5.0, 1), Pace("a", State.PLANNED, 9, 0.0, 0)], 1) is None
    assert seconds_left([Pace("a", State.DONE, 1, 5.0, 1), Pace("a", State.QUEUED, 9, 0.0, 0)], 0) is None


BEGAN, AWAY = 1e9, 50_000.0


def schedule(rng: random.Random, slots: int, gap: float) -> list[tuple[str, float, float]]:
    """Pass, start and end of 60 runs, of which so many go on at a time, with a gap between two in a slot."""
    free, runs = [BEGAN + rng.uniform(0, gap) for _ in range(slots)], []
    for number in range(60):
        name, usual = ("baseline", 10.0) if number % 2 else ("timeline", 35.0)
        slot = free.index(min(free))
        start = free[slot] + gap * rng.uniform(0.5, 1.5)
        free[slot] = start + usual * rng.uniform(0.7, 1.3)
        runs.append((name, start, free[slot]))
    return runs


@pytest.mark.parametrize("slots", [1, 2, 8])
@pytest.mark.parametrize("gap", [0.1, 5.0, 40.0])
@pytest.mark.parametrize("away", [0.0, AWAY])
def test_after_a_third_of_the_runs_the_estimate_is_within_a_factor_of_1_5(tmp_path, slots, gap, away):
    """Whatever goes on at a time, whatever lies between runs, and also where an nsw ended long before this one began."""
    earlier = [("baseline", BEGAN - away, BEGAN - away + 10.0)] * 3 if away else []
    runs = [*earlier, *schedule(random.Random(f"{slots} {gap}"), slots, gap)]
    now = sorted(end for _, _, end in runs)[len(runs) // 3]
    with Ledger(tmp_path / "campaign.db", create=True):
        pass
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db, db:
        for number, (name, start, end) in enumerate(runs):
            state = "done" if end <= now else "running" if start <= now else "planned"
            db.execute(
                "INSERT INTO tasks (id, kind, place, case_id, params, pass_name, pass_kind, repeat, job, task, gpus,"
                " reports, state, started, ended) VALUES (?, 'run', 'job', 'c', '{}', ?, 'baseline', 1, 'j', ?, 0, '[]',"
                " ?, ?, ?)",
                (f"r{number}", name, number, state, start if start <= now else None, end if end <= now else None),
            )  # fmt: skip
    with Ledger(tmp_path / "campaign.db", read_only=True) as ledger:
        left = ledger.seconds_left(now, BEGAN)
    actual = max(end for _, _, end in runs) - now
    assert actual / 1.5 < left < actual * 1.5
