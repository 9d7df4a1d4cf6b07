"""Ledgers that others wrote: the clean copy holds nsw's tables, or there is none and an error says why."""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from nsw.campaign import ledger_copy
from nsw.campaign import look as look_module
from nsw.campaign.ledger_copy import Strange, copy_ledgers
from nsw.campaign.look import look, prepare_to_look
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import SCHEMA
from nsw.engine.ledger_rows import SITE_DATA
from nsw.plan.model import Job, Plan, Resources, Run
from tests.fuzz.page_loops import with_page_loop

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
COMPUTED = "ALTER TABLE tasks ADD COLUMN more TEXT AS (zeroblob(100000000)) VIRTUAL"
STRANGE = {
    "a view in place of a table": f"DROP TABLE tasks; CREATE VIEW tasks (id) AS {ENDLESS}",
    "another view": f"CREATE VIEW more AS {ENDLESS}",
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON tasks BEGIN DELETE FROM meta; END",
    "another table": "CREATE TABLE more (x)",
    "another index": "CREATE INDEX more ON tasks (host)",
    "a virtual table": "CREATE VIRTUAL TABLE more USING fts5(x)",
    "a virtual table in place of one": "DROP TABLE absent; CREATE VIRTUAL TABLE absent USING fts5(x)",
    "a computed column": COMPUTED,
    "an index of an expression": "DROP INDEX tasks_state; CREATE INDEX tasks_state ON tasks (hex(params))",
}


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


def copied(path):
    """A clean copy, and what is wrong with the ledger where there is none."""
    copy = path.with_name("copy.db")
    (fault,) = copy_ledgers([Strange(path, str(path), None, copy)])
    return copy, fault


@pytest.mark.parametrize("what", STRANGE)
def test_code_in_a_ledger_does_not_reach_the_copy(path, what, monkeypatch):
    """It is left out, or takes its time apart and is an error of that ledger."""
    monkeypatch.setattr(ledger_copy, "_SECONDS", 0.5)
    change(path, STRANGE[what])
    copy, fault = copied(path)
    if fault is None:
        with closing(sqlite3.connect(copy)) as db:
            made = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        assert made == {statement.strip() for statement in SCHEMA.split(";") if statement.strip()}
        with Ledger(copy, read_only=True) as ledger:
            assert len(ledger.runs()) == 300
    else:
        assert what in {"a view in place of a table", "a virtual table in place of one"}
        assert str(path) in fault[0]


def test_a_ledger_whose_pages_point_to_each_other_is_an_error(path):
    """Such a file of 40 kB can hold more rows than a year has milliseconds."""
    path.write_bytes(with_page_loop(path, "tasks"))
    assert "cannot be read" in copied(path)[1][0]


def test_a_ledger_that_takes_its_process_along_costs_the_others_nothing(path, monkeypatch):
    """A value that takes all memory; SQLite may also crash on one."""
    monkeypatch.setattr(look_module, "_MEMORY", 256 << 20)
    strange, good = CampaignFolder(path.parent), CampaignFolder(path.parent.with_name("good"))
    shutil.copytree(path.parent, good.path)
    change(
        path, "DROP TABLE absent; CREATE VIEW absent (what, reason, runs) AS SELECT hex(zeroblob(200000000)), 'a', 1"
    )
    faults = prepare_to_look([strange, good])
    assert "takes more than 256 MiB" in faults[0].message
    assert faults[1] is None
    with look(good) as ledger:
        assert len(ledger.runs()) == 300


DEEP = "[" * 3_000_000
HELD = {
    "no JSON": ("UPDATE tasks SET params = 'x' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "JSON of another kind": ("UPDATE tasks SET params = '[1]' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "deep JSON": (f"UPDATE tasks SET params = '{DEEP}' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "reports that are not texts": (
        "UPDATE tasks SET reports = '[1]' WHERE id = 'r7'",
        "r7.*reports is not what nsw writes",
    ),
    "an unknown state": ("UPDATE tasks SET state = 'gone' WHERE id = 'r7'", "r7.*state is not what nsw writes"),
    "a text for a number": ("UPDATE tasks SET attempt = 'x' WHERE id = 'r7'", "r7.*attempt is not what nsw writes"),
    "bytes for a text": ("UPDATE tasks SET host = x'00ff' WHERE id = 'r7'", "r7.*host is not what nsw writes"),
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
    "a fact that is not text": (
        "UPDATE meta SET value = x'00' WHERE key = 'site_data'",
        "site_data'?: value is not what nsw writes",
    ),
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
    "a problem that is bytes": (
        "INSERT INTO problems VALUES ('r7', 'a', 'error', x'00', NULL, 0)",
        "r7.*message is not what nsw writes",
    ),
}


@pytest.mark.parametrize("what", HELD)
def test_what_a_ledger_cannot_hold_is_said(path, what):
    script, said = HELD[what]
    change(path, script)
    assert re.search(said, copied(path)[1][0])
