"""Campaigns of every state version since 3 are read, and migrated by the nsw that goes on with them."""

import re
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import MIGRATIONS, OLDEST, SCHEMA, STATE_VERSION, dump, migrate, restore
from nsw.engine.ledger_rows import Cause

FIXTURES = Path(__file__).parents[1] / "fixtures/campaigns"
STATES = sorted(int(path.name.split("-")[1].split(".")[0]) for path in FIXTURES.glob("state-*.tar.xz"))
OF_STATE_3 = Path(__file__).parents[3] / "shared/recorded/h100-2026-11-24/campaigns.tar.xz"


@pytest.fixture
def campaign(home):
    """Unpacks the campaign of a state."""

    def unpack(state, archive=None):
        with tarfile.open(archive or FIXTURES / f"state-{state}.tar.xz") as packed:
            packed.extractall(home, filter="data")
        ledgers = list(home.glob("**/campaign.db"))
        with closing(sqlite3.connect(ledgers[0])) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (state,)
        return ledgers[0].parent

    return unpack


def version(ledger):
    with closing(sqlite3.connect(ledger)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def columns(db):
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    indices = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    return {
        table: {(name, kind, needed) for _, name, kind, needed, *_ in db.execute(f"PRAGMA table_info({table})")}
        for table in tables
    }, indices


def test_each_state_since_the_oldest_has_a_campaign_here():
    assert list(range(OLDEST, max(STATE_VERSION, STATES[-1]) + 1)) == STATES


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_campaign_of_an_earlier_state_is_summarised_and_stays_as_it_is(nsw, campaign, state, trusted):
    folder = campaign(state)
    if trusted:
        CampaignFolder(folder).trust()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words in (
        ["status", folder], ["summarize", folder, "--full"], ["report", folder, "-o", "answer.html"],
        ["export", folder, "--csv", "tables"], ["compare", folder, folder],
        ["problems", folder], ["ls", "--root", folder.parent],
        ["report", folder, "--anonymous", "-o", "shared.html"], ["export", folder, "--share", "shared.zip"],
    ):  # fmt: skip
        done = nsw(*words)
        assert done.code in {0, 1}, (words, done.err)
        assert "error:" not in done.err, (words, done.err)
    assert Path("tables/figures.csv").read_text().count("\n") > 3
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", ["resume", "retry"])
def test_resume_and_retry_migrate_a_ledger_after_a_copy_that_they_name(nsw, campaign, state, command):
    folder = campaign(state)
    CampaignFolder(folder).trust()
    old = (folder / "campaign.db").read_bytes()
    done = nsw(command, "-c", folder)
    assert "error:" not in done.err, done.err
    assert version(folder / "campaign.db") == STATE_VERSION
    kept = folder / f"campaign.db.state-{state}"
    assert kept.exists() == (state < STATE_VERSION)
    if kept.exists():
        assert version(kept) == state
        with closing(sqlite3.connect(kept)) as copy, closing(sqlite3.connect(":memory:")) as before:
            before.deserialize(old)
            assert list(copy.iterdump()) == list(before.iterdump())
        assert str(kept) in done.out + done.err
        assert str(kept) in (folder / "log.txt").read_text()
    again = nsw("resume", "-c", folder)
    assert kept.name not in again.out + again.err


def test_a_retry_of_the_runs_that_failed_in_an_earlier_state_runs_them(nsw, campaign):
    folder = campaign(4)
    CampaignFolder(folder).trust()
    (folder / "app/steps.py").write_text("print('rate=7.5')\n")
    nsw("retry", "-c", folder)
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        assert {run.id: run.attempt for run in ledger.runs()} == {
            f"n-{n}.{name}.r1": 2 if n == 3 else 1 for n in (1, 2, 3) for name in ("baseline", "host")
        }


@pytest.mark.parametrize("state", STATES)
def test_an_adopted_campaign_of_an_earlier_state_keeps_its_ledger_too(nsw, campaign, state):
    folder = campaign(state)
    adopted = nsw("adopt", folder, "--yes", exits=0)
    assert "host: {" in adopted.err
    assert version(folder / "campaign.db") == state
    nsw("resume", "-c", folder)
    assert version(folder / "campaign.db") == STATE_VERSION
    if state < STATE_VERSION:
        assert version(folder / f"campaign.db.state-{state}") == state


@pytest.mark.parametrize("state", STATES)
def test_a_migrated_ledger_has_the_columns_of_a_new_one(campaign, state):
    with closing(sqlite3.connect(campaign(state) / "campaign.db", isolation_level=None)) as db:
        migrate(db)
        with closing(sqlite3.connect(":memory:")) as new:
            new.executescript(SCHEMA)
            assert columns(db) == columns(new)


@pytest.mark.parametrize("state", STATES)
def test_a_migrated_ledger_is_written_down_and_made_again_from_that(campaign, state):
    path = campaign(state) / "campaign.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db, closing(sqlite3.connect(":memory:")) as again:
        migrate(db)
        restore(again, dump(db).encode(), path)
        assert dump(again) == dump(db)


def test_sentences_of_state_3_become_causes_and_words(campaign):
    folder = campaign(3)
    reasons = {
        "exit status 1: no": (Cause.EXIT, "exit status 1: no"),
        "over its time limit of 60 s": (Cause.OVER_TIME, "over its time limit of 60 s"),
        "set-up failed: no module x": (Cause.SET_UP, "set-up failed: no module x"),
        "skipped: build failed": (Cause.SKIPPED, "build failed"),
        "not submitted, as far as is known, since it timed out": (Cause.DOUBT, "it timed out"),
        "the node failed": (None, "the node failed"),
    }
    with closing(sqlite3.connect(folder / "campaign.db")) as db, db:
        for seq, reason in enumerate(reasons, 1):
            db.execute("UPDATE tasks SET reason = ?, state = 'failed' WHERE seq = ?", (reason, seq))
        db.execute("INSERT INTO problems SELECT id, NULL, 'error', 'metric missing: x', NULL FROM tasks WHERE seq = 1")
        db.execute("INSERT INTO problems SELECT id, NULL, 'error', 'damaged', NULL FROM tasks WHERE seq = 1")
    with closing(sqlite3.connect(folder / "campaign.db", isolation_level=None)) as db:
        migrate(db)
    with Ledger(folder / "campaign.db") as ledger:
        runs = [run for run in ledger.runs() if run.detail]
        assert [(run.cause, run.detail) for run in runs] == list(reasons.values())
        assert [run.reason for run in runs] == list(reasons)
        assert [problem.message for problem in ledger.not_as_asked()] == ["metric missing: x"]
        ledger.set_problems(runs[0].id, [(None, "error", "new", "fix")])
        assert [problem.fix for problem in ledger.problems() if problem.run == runs[0].id] == ["fix"]


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(campaign, monkeypatch):
    def fail(db):
        db.execute("DROP TABLE needs")
        raise RuntimeError

    folder = campaign(3)
    monkeypatch.setattr("nsw.engine.ledger_file.MIGRATIONS", (*MIGRATIONS, fail))
    with closing(sqlite3.connect(folder / "campaign.db", isolation_level=None)) as db:
        before = list(db.iterdump())
        with pytest.raises(RuntimeError):
            migrate(db)
        assert list(db.iterdump()) == before


@pytest.mark.parametrize("state", [OLDEST - 1, STATE_VERSION + 1])
def test_a_state_that_this_nsw_does_not_know_is_refused_with_its_version(nsw, campaign, state):
    folder = campaign(3)
    CampaignFolder(folder).trust()
    with closing(sqlite3.connect(folder / "campaign.db")) as db:
        db.execute(f"PRAGMA user_version = {state}")
    for command in ("summarize", "resume"):
        done = nsw(command, folder, exits=2)
        age = "a newer" if state > STATE_VERSION else "an older"
        assert f"was written by {age} nsw (state version {state}" in done.err
        assert re.search(rf"hint: use {age} nsw for it, or begin again: `.* run ", done.err)


def test_a_command_that_does_not_hold_the_campaign_leaves_an_earlier_state_alone(nsw, campaign):
    folder = campaign(3)
    CampaignFolder(folder).trust()
    done = nsw("throttle", "2", "-c", folder, exits=2)
    assert "`nsw resume" in done.err
    assert "migrates it" in done.err
    assert version(folder / "campaign.db") == 3


@pytest.mark.skipif(not OF_STATE_3.exists(), reason="the recorded campaigns are not here")
def test_the_recorded_campaigns_of_an_h100_are_summarised(nsw, campaign):
    folder = campaign(3, OF_STATE_3)
    for one in folder.parent.iterdir():
        CampaignFolder(one).trust()
        done = nsw("summarize", one, exits=0)
        assert "H100" in done.out
