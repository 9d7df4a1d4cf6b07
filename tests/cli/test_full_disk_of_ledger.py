"""SQLite cannot write the ledger at a submission, a poll, a reading: what, where, what to do, and a resume goes on."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import as_campaign_error
from nsw.errors import CampaignError
from nsw.safe_files import open_plain

APP = "{command: 'echo f=2', figures: {f: {regex: 'f=(.*)', unit: s}}}"
STEPS = {
    "submit": r"INSERT INTO submissions",
    "poll": r"UPDATE tasks SET state",
    "submitted": r"UPDATE submissions SET native_id",
    "read": r"UPDATE tasks SET reading|DELETE FROM problems",
    "a key": r"INSERT OR REPLACE INTO meta",
}


def fill(db: sqlite3.Connection) -> None:
    """Meet the end of the disk, as SQLite does: it also rolls back what was begun."""
    (pages,) = sqlite3.Connection.execute(db, "PRAGMA page_count").fetchone()
    sqlite3.Connection.execute(db, f"PRAGMA max_page_count = {pages}")
    sqlite3.Connection.execute(db, "INSERT OR REPLACE INTO meta VALUES ('ballast', zeroblob(4000000))")


@pytest.fixture
def disk(monkeypatch):
    """`disk.full_at(pattern)`: from the first such statement on there is no room; `disk.roomy()`: there is again."""

    class Disk:
        pattern: str | None = None
        met = 0

        def full_at(self, pattern: str) -> None:
            self.pattern = pattern

        def roomy(self) -> None:
            self.pattern = None

        def look(self, db: sqlite3.Connection, statement: str) -> None:
            if self.pattern and re.search(self.pattern, statement):
                self.met += 1
                fill(db)

    found = Disk()

    class Connection(sqlite3.Connection):
        def execute(self, *args):
            found.look(self, args[0])
            return super().execute(*args)

        def executemany(self, *args):
            found.look(self, args[0])
            return super().executemany(*args)

    real = sqlite3.connect
    monkeypatch.setattr(
        "nsw.engine.ledger_file.sqlite3.connect", lambda *args, **how: real(*args, factory=Connection, **how)
    )
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_full_disk_ends_nsw_with_what_to_do_and_the_campaign_goes_on(nsw, recipe, disk, step):
    nsw("run", recipe(APP, "repeats: 2\n"), "-s", "here", exits=0)
    folder = CampaignFolder(next(Path("campaigns").iterdir()))
    with Ledger(folder.ledger) as ledger:
        ledger.update_tasks(["case.baseline.r2"], state="failed")
    disk.full_at(STEPS[step])
    said = nsw("retry")
    assert disk.met, "the step is one that a retry takes"
    assert said.code == 2, said
    assert f"{folder.id}/campaign.db cannot be written: database or disk is full" in said.err
    assert "free some space in" in said.err
    assert re.findall("`nsw resume ([^`]*)` continues", said.err) == [str(folder.path)]
    for word in ("rollback", "sqlite3.", "cannot be used"):
        assert word not in said.err
    disk.roomy()
    again = nsw("retry") if "failed" in nsw("status").out else nsw("resume")
    assert again.code == 0, again.err
    assert "2 runs: 2 done" in nsw("status").out


def test_a_campaign_that_could_not_be_made_is_not_one_to_resume(nsw, recipe, disk, home):
    disk.full_at("INSERT INTO tasks")
    said = nsw("run", recipe(APP), "-s", "here", exits=2)
    assert "campaign.db cannot be written" in said.err
    assert "then run the same command again" in said.err
    assert not list((home / "campaigns").glob("*"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, ("cannot be written", "free some space")),
        (sqlite3.SQLITE_IOERR | (3 << 8), ("cannot be read or written", "quota")),
        (sqlite3.SQLITE_BUSY, ("is locked by another process", "wait until that has ended")),
        (sqlite3.SQLITE_READONLY, ("cannot be used", "writable for you")),
        (
            sqlite3.SQLITE_READONLY_DBMOVED,
            ("was deleted or moved", "put it back, then", "`nsw attach x-1 --site SITE`"),
        ),
        (sqlite3.SQLITE_CANTOPEN, ("cannot be used", "writable for you")),
        (sqlite3.SQLITE_CORRUPT, ("is damaged", "recipe.lock.yaml")),
    ],
)
def test_each_kind_of_fault_says_what_to_do(code, words):
    fault = sqlite3.OperationalError("as SQLite says")
    fault.sqlite_errorcode = code
    text = as_campaign_error(fault, Path("/c/x-1/campaign.db")).render()
    assert text.startswith("/c/x-1/campaign.db ")
    for word in words:
        assert word in text


def test_a_state_that_is_deleted_while_nsw_drives_is_reported_as_such(nsw, recipe, home):
    said = nsw("run", recipe(f"{{command: \"rm '{home}'/campaigns/*/campaign.db\"}}"), "-s", "here", exits=2)
    assert "campaign.db was deleted or moved while nsw used it" in said.err, said
    assert "recipe.lock.yaml" in said.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_log_that_cannot_be_written_is_named_with_what_to_do(nsw, failing, monkeypatch):
    def opened(path, *flags):
        return os.open("/dev/full", os.O_WRONLY) if path.name == "log.txt" else open_plain(path, *flags)

    monkeypatch.setattr("nsw.engine.folder.open_plain", opened)
    said = nsw("resume", exits=2)
    assert f"{failing}/log.txt cannot be written here: No space left on device" in said.err
    assert f"`nsw resume {failing.name}`" in said.err


def test_a_ledger_that_cannot_be_opened_is_told_by_its_path(good, monkeypatch):
    def refuse(*_args, **_named):
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr("nsw.engine.ledger.sqlite3.connect", refuse)
    with pytest.raises(CampaignError, match=r"campaign\.db"):
        Ledger(good / "campaign.db", read_only=True)
