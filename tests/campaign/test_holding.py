"""`nsw throttle 0` and an nsw that is killed just after the scheduler held what waits: another one releases it."""

from types import SimpleNamespace

import pytest

from nsw.engine.ledger_rows import AT_A_TIME, HELD
from nsw.engine.loop import Holding


class Ledger:
    """The facts that a holding asks for."""

    def __init__(self):
        self.facts = {AT_A_TIME: 0, HELD: []}

    def meta(self, key):
        return self.facts[key]

    def set_meta(self, key, value):
        self.facts[key] = value


class Scheduler:
    """Holds what it is asked to, and ends its caller when `dies`."""

    def __init__(self):
        self.held, self.dies = set(), False

    def limit(self, _running):
        pass

    def hold(self, submissions, *, hold):
        names = {one.name for one in submissions}
        self.held = self.held | names if hold else self.held - names
        if self.dies:
            raise KeyboardInterrupt


def test_what_a_killed_nsw_had_held_is_released_by_the_next():
    one = SimpleNamespace(name="nsw-1")
    flight = SimpleNamespace(submissions=lambda: [one], submissions_with=lambda _wanted: [one])
    it = SimpleNamespace(ledger=Ledger(), scheduler=Scheduler(), say=lambda _text: None)
    it.scheduler.dies = True
    with pytest.raises(KeyboardInterrupt):
        Holding(it, flight).sync_throttle()
    assert it.scheduler.held == {"nsw-1"}
    it.scheduler.dies, it.ledger.facts[AT_A_TIME] = False, 16
    Holding(it, flight).sync_throttle()
    assert it.scheduler.held == set()
    assert it.ledger.facts[HELD] == []
