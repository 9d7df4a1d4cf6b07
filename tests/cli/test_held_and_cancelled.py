"""`nsw throttle 0` ends with the campaign that is cancelled: a later retry does not wait for a release."""

import io

import pytest

from nsw.cli.running import _report_interruption
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger


def test_a_retry_after_cancel_is_not_held(nsw, good):
    with Ledger(good / "campaign.db") as ledger:
        ledger.release(["case.baseline.r2"])
    assert nsw("throttle", "0").code == 0
    assert "held by `nsw throttle 0`" in nsw("status").out
    assert nsw("cancel").code == 0
    assert "held" not in nsw("status").out
    assert nsw("retry").code == 0


def test_an_interruption_with_nothing_in_flight_offers_no_cancel(good, capsys):
    _report_interruption(CampaignFolder(good))
    said = capsys.readouterr().err
    assert "ended; no run is in flight: `nsw resume" in said
    assert "cancel" not in said


class Typed(io.StringIO):
    """What a person types on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "state"), [("n", "planned"), ("y", "cancelled")])
def test_cancel_without_a_name_asks_on_a_terminal_with_what_it_would_end(nsw, good, monkeypatch, answer, state):
    with Ledger(good / "campaign.db") as ledger:
        ledger.release(["case.baseline.r2"])
    monkeypatch.setattr("sys.stdin", Typed(f"{answer}\n"))
    said = nsw("cancel")
    assert f"Cancel 1 run of {good.name}, the newest campaign (2 runs: 1 done, 1 planned)?" in said.out + said.err
    assert said.code == (0 if answer == "y" else 2)
    with Ledger(good / "campaign.db") as ledger:
        assert ledger.counts() == {"done": 1, state: 1}


def test_cancel_with_a_name_asks_nothing(nsw, good, monkeypatch):
    with Ledger(good / "campaign.db") as ledger:
        ledger.release(["case.baseline.r2"])
    monkeypatch.setattr("sys.stdin", Typed(""))
    assert nsw("cancel", good.name).code == 0
