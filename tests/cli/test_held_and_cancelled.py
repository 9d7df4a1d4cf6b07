"""`nsw throttle 0` ends with the campaign that is cancelled: a later retry does not wait for a release."""

from nsw.cli.running import _tell_of_interruption
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
    _tell_of_interruption(CampaignFolder(good))
    said = capsys.readouterr().err
    assert "ended; no run is in flight: `nsw resume" in said
    assert "cancel" not in said
