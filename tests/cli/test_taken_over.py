"""Who took a campaign over is written down when the site refuses this nsw, for `nsw status`, which asks no site."""

import json
from pathlib import Path

import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.handover import Handover
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import OWNED_BY, SCRATCH, TAKEN_OVER
from nsw.errors import FencedError
from nsw.transport.local import LocalTransport


@pytest.fixture
def former(nsw, recipe):
    """A campaign of which a run still waits, and that another machine drives."""
    assert nsw("run", recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 3]}\n"), "-s", "here").code == 1
    folder = CampaignFolder(next(Path("campaigns").iterdir()))
    with Ledger(folder.ledger) as ledger:
        ledger.set_meta(OWNED_BY, "1 aa")
        ledger.update_tasks(["n-0.baseline.r1"], state="planned")
        (Path(ledger.meta(SCRATCH)) / "owner").write_text("2 bb\nann@desk on 2026-11-23 10:00:00 UTC\n")
    return folder


def hold(folder):
    with Ledger(folder.ledger) as ledger:
        Handover(folder, ledger, LocalTransport(), ledger.meta(SCRATCH)).hold()


def test_status_names_the_owner_and_advises_no_resume(nsw, former):
    assert "nsw resume" in nsw("status").out
    with pytest.raises(FencedError, match="taken over by ann@desk"):
        hold(former)
    said = nsw("status").out
    assert "taken over by ann@desk on 2026-11-23 10:00:00 UTC: nsw does nothing for it from here" in said
    assert f"`nsw watch {former.id}` shows its progress there; `nsw attach {former.id}` takes it back" in said
    assert "nsw resume" not in said
    assert "nsw retry" not in said
    assert json.loads(nsw("status", "--json").out)["taken_over_by"].startswith("ann@desk")


def test_it_is_forgotten_once_the_campaign_is_this_nsws_again(former):
    with pytest.raises(FencedError):
        hold(former)
    with Ledger(former.ledger) as ledger:
        (Path(ledger.meta(SCRATCH)) / "owner").unlink()  # the other one has cleaned the site
    hold(former)
    with Ledger(former.ledger, read_only=True) as ledger:
        assert ledger.meta(TAKEN_OVER) is None
