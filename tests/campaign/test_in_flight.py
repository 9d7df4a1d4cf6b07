"""What is in flight, in memory: what is asked for shrinks with what is over, and a submission closes with its last."""

from pathlib import Path

from nsw.engine.ledger_rows import State, TaskInFlight
from nsw.engine.poll import InFlight
from nsw.schedulers.model import Submission


class Book:
    """Of a ledger what is asked here."""

    def __init__(self):
        self.closed = []

    def tasks_in_flight(self, submission):
        return [
            TaskInFlight(f"r{task}{x}", "j", task, 1, State.QUEUED, None) for task in submission.tasks for x in "ab"
        ]

    def finish_submission(self, name):
        self.closed.append(name)


def test_what_is_over_is_asked_for_no_more_and_the_last_one_closes_the_submission():
    book = Book()
    flight = InFlight(book)
    first, second, *rest = flight.add(Submission("s", "j", Path("j.sh"), 1, (0, 1, 2)))
    flight.finish("s", first)
    assert flight.submissions()[0].tasks == (0, 1, 2)
    flight.finish("s", second)
    assert flight.submissions()[0].tasks == (1, 2)
    assert flight.submissions()[0] is flight.submissions()[0]
    assert [s.tasks for s in flight.submissions_with(lambda one: one.id == "r2b")] == [(2,)]
    flight.close()
    assert book.closed == []
    assert flight.drop(lambda _one: True) == rest
    flight.close()
    assert book.closed == ["s"]
    assert not flight
