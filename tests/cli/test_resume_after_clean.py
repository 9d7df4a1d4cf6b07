"""`nsw resume` after `nsw clean`: where no run is left it puts nothing back on the site."""

from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SCRATCH


def left_on_site(folder):
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        there = Path(ledger.meta(SCRATCH))
    return sorted(path.relative_to(there).as_posix() for path in there.rglob("*")) if there.exists() else None


@pytest.mark.parametrize("everything", [True, False])
def test_nothing_comes_back_where_nothing_is_left_to_run(nsw, good, everything):
    assert nsw("clean", "--yes", *(["--everything"] if everything else [])).code == 0
    before = left_on_site(good)
    nsw("resume", exits=0)
    assert left_on_site(good) == before
    assert "2 runs: 2 done" in nsw("status").out


def test_a_failed_run_is_no_run_that_is_left_and_a_retry_puts_its_files_back(nsw, failing):
    assert nsw("clean", "--yes", "--everything").code == 0
    before = left_on_site(failing)
    assert nsw("resume").code == 1
    assert left_on_site(failing) == before
    assert nsw("retry").code == 1
    assert any(name.endswith("/status") for name in left_on_site(failing))
