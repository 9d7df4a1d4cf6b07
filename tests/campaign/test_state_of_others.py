"""state.json of others: it becomes a ledger in memory, or an error says what in it nsw does not write."""

import json
import sqlite3
from contextlib import closing, suppress

import pytest

from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import STATE, CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SITE_DATA, State
from nsw.errors import CampaignError
from nsw.plan.model import Job, Plan, Resources, Run


def run(number):
    return Run(f"r{number}", f"case-{number}", {"n": number}, "p", "baseline", None, 1, ("true",), {}, Resources(), ())


@pytest.fixture
def path(tmp_path):
    plan = Plan("n", "s", ("c",), (Job("j", Resources(), tuple((run(n),) for n in range(300))),))
    with Ledger(tmp_path / "campaign.db", create=True) as made:
        made.add_plan(plan)
        made.set_meta(SITE_DATA, {"name": "a", "scheduler": "local", "transport": {"kind": "local"}})
    return tmp_path / "campaign.db"


def change(path, script):
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)


def written(path):
    """state.json of a ledger."""
    folder = CampaignFolder(path.parent)
    with Ledger(path) as ledger:
        (path.parent / STATE).write_text(ledger.dump())
    return folder


def test_who_looks_at_a_campaign_of_others_sees_it_by_state_json_and_opens_no_ledger(path):
    change(path, "UPDATE tasks SET state = 'done' WHERE id = 'r7'")
    folder = written(path)
    with Ledger(path, read_only=True) as ledger:
        runs, snapshot = ledger.runs(), ledger.dump()
    path.write_bytes(b"no database at all")
    with ledger_to_read(folder) as ledger:
        assert ledger.runs() == runs
        assert ledger.dump() == snapshot
        assert [run.id for run in ledger.runs(states=[State.DONE])] == ["r7"]


def test_what_an_older_nsw_made_is_read_from_the_bytes_of_its_ledger(path):
    with Ledger(path, read_only=True) as ledger:
        runs = ledger.runs()
    before = path.read_bytes()
    with ledger_to_read(CampaignFolder(path.parent)) as ledger:
        assert ledger.runs() == runs
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


STRANGE = {
    "a view": ("CREATE VIEW evil AS SELECT 1", "contains 'evil', which nsw does not write"),
    "a trigger": (
        "CREATE TRIGGER evil AFTER UPDATE ON tasks BEGIN DELETE FROM meta; END",
        "contains 'evil', which nsw does not write",
    ),
    "bytes for a text": ("UPDATE tasks SET detail = x'00' WHERE id = 'r7'", "campaign.db cannot be read"),
    "a newer state": ("PRAGMA user_version = 99", "was written by a newer nsw"),
    "a text for a number": ("UPDATE tasks SET attempt = 'x' WHERE id = 'r7'", "r7.*attempt is not what nsw writes"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_ledger_of_an_older_nsw_with_anything_else_in_it_is_refused(path, what):
    script, said = STRANGE[what]
    change(path, script)
    with pytest.raises(CampaignError, match=said), ledger_to_read(CampaignFolder(path.parent)):
        pass


def test_a_ledger_of_an_older_nsw_with_a_journal_is_not_opened(path):
    path.with_name("campaign.db-journal").write_bytes(b"")
    with (
        pytest.raises(CampaignError, match="an older nsw was killed while it wrote"),
        ledger_to_read(CampaignFolder(path.parent)),
    ):
        pass


DEEP = "[" * 3_000_000
HELD = {
    "no JSON": ("UPDATE tasks SET params = 'x' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "JSON of another kind": ("UPDATE tasks SET params = '[1]' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "deep JSON": (f"UPDATE tasks SET params = '{DEEP}' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "reports that are not texts": (
        "UPDATE tasks SET reports = '[1]' WHERE id = 'r7'",
        "r7.*reports is not what nsw writes",
    ),
    "an unknown state": (
        "UPDATE tasks SET state = 'gone' WHERE id = 'r7'",
        "a run is 'gone', which nsw .* does not know",
    ),
    "a text for a number": ("UPDATE tasks SET attempt = 'x' WHERE id = 'r7'", "r7.*attempt is not what nsw writes"),
    "no time": ("UPDATE tasks SET started = 9e999 WHERE id = 'r7'", "r7.*started is not what nsw writes"),
    "a site that is no JSON": (
        "UPDATE meta SET value = '{' WHERE key = 'site_data'",
        "site_data is not what nsw writes",
    ),
    "deep JSON of a site": (
        f"UPDATE meta SET value = '{DEEP}' WHERE key = 'site_data'",
        "site_data is not what nsw writes",
    ),
    "a site without a scheduler": (
        """UPDATE meta SET value = '{"name": "a", "transport": {"kind": "local"}}' WHERE key = 'site_data'""",
        "site_data is not what nsw writes",
    ),
    "a transport that is a text": (
        """UPDATE meta SET value = '{"name": "a", "scheduler": "local", "transport": "x"}' WHERE key = 'site_data'""",
        "site_data is not what nsw writes",
    ),
    "no site at all": ("DELETE FROM meta WHERE key = 'site_data'", "site_data is missing"),
    "a site's name that fills a screen": (
        "INSERT OR REPLACE INTO meta VALUES ('site', printf('%.*c', 4097, 'x'))",
        "site is not what nsw writes",
    ),
    "calls that are not numbers": (
        "INSERT INTO meta VALUES ('calls', '{\"a\": []}')",
        "calls is not what nsw writes",
    ),
    "held jobs that are not texts": (
        "INSERT INTO meta VALUES ('held', '[[1]]')",
        "held is not what nsw writes",
    ),
    "origins that are not pairs": (
        "INSERT INTO meta VALUES ('origins', '[[\"a\"]]')",
        "origins is not what nsw writes",
    ),
    "a place that is no text": ("INSERT INTO meta VALUES ('places', '{\"time\": 1}')", "places is not what nsw writes"),
    "a version without its jobs": (
        "INSERT INTO meta VALUES ('versions', '[[{}, 0, 1.5]]')",
        "versions is not what nsw writes",
    ),
    "a beginning that is not a time": ("INSERT INTO meta VALUES ('created', 'nan')", "created is not what nsw writes"),
    "a distant beginning": ("INSERT INTO meta VALUES ('created', '1e300')", "created is not what nsw writes"),
    "an absence without a number": ("INSERT INTO absent VALUES ('a', 'b', 'c')", "'a': runs is not what nsw writes"),
}


@pytest.mark.parametrize("what", HELD)
def test_what_a_ledger_cannot_hold_is_said(path, what):
    script, said = HELD[what]
    change(path, script)
    with pytest.raises(CampaignError, match=said), ledger_to_read(written(path)):
        pass


DEEP_STATE = b"[" * 3_000_000
STATES = {
    "no JSON": b"{",
    "deep JSON": DEEP_STATE,
    "another kind of JSON": b"[1]",
    "another version": b'{"version": 99, "tables": {}}',
    "no tables": b'{"version": 4}',
}


@pytest.mark.parametrize("what", STATES)
def test_a_state_that_nsw_does_not_write_is_an_error_that_names_it(path, what):
    folder = written(path)
    (folder.path / STATE).write_bytes(STATES[what])
    with pytest.raises(CampaignError, match=r"state\.json"), ledger_to_read(folder):
        pass


@pytest.mark.parametrize("value", [[1], {"a": 1}, True, 1e300, 1 << 99, "\ud800"])
def test_a_value_that_sqlite_cannot_hold_is_an_error(path, value):
    folder = written(path)
    state = json.loads((folder.path / STATE).read_text())
    for column in range(3, len(state["tables"]["tasks"][7])):
        changed = json.loads(json.dumps(state))
        changed["tables"]["tasks"][7][column] = value
        (folder.path / STATE).write_text(json.dumps(changed))
        with suppress(CampaignError), ledger_to_read(folder) as ledger:
            assert len(ledger.runs()) == 300
