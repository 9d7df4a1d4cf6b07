"""What a killed nsw leaves: no campaign or a whole one, and a ledger that whoever looks can read."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import NOTE, SITE, SITE_DATA
from nsw.plan.model import Plan

# one that is killed within a write: with a small cache SQLite has written some of it to the file already
KILLED = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.executemany("INSERT INTO meta VALUES (?, ?)", (("note" if n == 1 else str(n), "x" * 500) for n in range(500)))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def torn(tmp_path):
    ledger = tmp_path / "campaign.db"
    with Ledger(ledger, create=True) as book:
        book.add_plan(Plan("n", "s", (), ()))
        book.set_meta(SITE, "s")
        book.set_meta(SITE_DATA, {"name": "s", "scheduler": "local", "transport": {"kind": "local"}})
    killed = subprocess.run([sys.executable, "-c", KILLED, ledger], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "campaign.db-journal").stat().st_size > 0
    return ledger


def test_a_write_cut_short_by_a_kill_is_taken_back_by_whoever_only_looks(torn):
    folder = folders.CampaignFolder(torn.parent)
    folder.trust()
    with ledger_to_read(folder) as book:
        assert (book.meta(SITE), book.meta(NOTE)) == ("s", None)
    assert sqlite3.connect(torn).execute("SELECT count(*) FROM meta").fetchone() == (2,)


def test_a_write_cut_short_by_a_kill_is_taken_back_by_who_goes_on(torn):
    with Ledger(torn) as book:
        assert (book.meta(SITE), book.meta(NOTE)) == ("s", None)


def test_a_campaign_is_there_only_when_it_is_whole(tmp_path):
    with folders.make_campaign_folder(tmp_path, "alexnet") as (hidden, called):
        with Ledger(hidden.ledger, create=True):
            pass
        assert folders.existing(tmp_path) == []
        assert not called.path.exists()
    assert [f.id for f in folders.existing(tmp_path)] == [called.id]


def test_of_a_campaign_that_could_not_be_made_nothing_stays(tmp_path):
    with pytest.raises(KeyboardInterrupt), folders.make_campaign_folder(tmp_path, "alexnet") as (hidden, _):  # noqa: PT012  the block is what fails
        (hidden.scripts / "job.sh").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_nsw_left_half_made_is_cleared_away_later_but_not_what_is_being_made(tmp_path):
    left, fresh = tmp_path / ".old-20260101-000000-aaaa.part", tmp_path / ".new-20260101-000000-bbbb.part"
    for folder in (left, fresh):
        (folder / "scripts").mkdir(parents=True)
    os.utime(left, (1, 1))
    with folders.make_campaign_folder(tmp_path, "alexnet"):
        pass
    assert not left.exists()
    assert fresh.exists()


def test_git_ignores_the_folder_of_campaigns_that_nsw_makes_and_no_other(tmp_path):
    (tmp_path / ".git").mkdir()
    with folders.make_campaign_folder(tmp_path / "campaigns", "t"):
        pass
    assert (tmp_path / "campaigns" / ".gitignore").read_text() == "*\n"
    (tmp_path / "mine").mkdir()
    with folders.make_campaign_folder(tmp_path / "mine", "t"):
        pass
    assert not (tmp_path / "mine" / ".gitignore").exists()
    with pytest.raises(KeyboardInterrupt), folders.make_campaign_folder(tmp_path / "other", "t"):
        raise KeyboardInterrupt
    assert not (tmp_path / "other").exists()
