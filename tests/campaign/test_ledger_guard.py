"""What a ledger may cost that others wrote: it is refused with a word, or it ends."""

import os
import sqlite3
from contextlib import closing

import pytest

from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_file import GuardedConnection, explained
from nsw.campaign.ledger_rows import HELD as HELD_JOBS
from nsw.campaign.ledger_rows import ORIGINS, PLACES, SITE, SITE_DATA, VERSIONS
from nsw.errors import CampaignError
from nsw.plan.model import Job, Plan, Resources, Run
from tests.fuzz.page_loops import with_page_loop

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
COMPUTED = "ALTER TABLE tasks ADD COLUMN more TEXT AS (zeroblob(100000000)) VIRTUAL"
STRANGE = {
    "a view in place of a table": (f"DROP TABLE tasks; CREATE VIEW tasks (id) AS {ENDLESS}", "view tasks"),
    "another view": (f"CREATE VIEW more AS {ENDLESS}", "view more"),
    "a trigger": ("CREATE TRIGGER t AFTER UPDATE ON tasks BEGIN DELETE FROM meta; END", "trigger t"),
    "another table": ("CREATE TABLE more (x)", "table more"),
    "another index": ("CREATE INDEX more ON tasks (host)", "index more"),
    "a virtual table": ("CREATE VIRTUAL TABLE more USING fts5(x)", "table more"),
    "a virtual table in place of one": ("DROP TABLE absent; CREATE VIRTUAL TABLE absent USING fts5(x)", "absent_data"),
    "a computed column": (COMPUTED, "table tasks"),
    "an index of an expression": (
        "DROP INDEX tasks_state; CREATE INDEX tasks_state ON tasks (hex(params))",
        "tasks_state",
    ),
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


@pytest.mark.parametrize("read_only", [True, False], ids=["looking", "driving"])
@pytest.mark.parametrize("what", STRANGE)
def test_a_ledger_with_code_in_it_is_refused_by_name(path, what, read_only):
    script, named = STRANGE[what]
    change(path, script)
    with pytest.raises(CampaignError, match=named):
        Ledger(path, read_only=read_only)


def test_a_ledger_whose_pages_point_to_each_other_is_refused(path):
    """Such a file of 40 kB can hold more rows than a year has milliseconds."""
    path.write_bytes(with_page_loop(path, "tasks"))
    with pytest.raises(CampaignError, match="damaged"):
        Ledger(path, read_only=True)


def test_a_statement_that_does_not_end_is_ended():
    with closing(sqlite3.connect(":memory:", factory=GuardedConnection)) as db:
        with pytest.raises(sqlite3.OperationalError) as fault:
            for _ in db.execute(ENDLESS):
                pass
        assert "more steps" in explained(fault.value)
        assert db.execute("SELECT 1").fetchall() == [(1,)]  # the next one has a budget of its own


DEEP = "[" * 3_000_000
HELD = {
    "no JSON": ("UPDATE tasks SET params = 'x' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "JSON of another kind": ("UPDATE tasks SET params = '[1]' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "deep JSON": (f"UPDATE tasks SET params = '{DEEP}' WHERE id = 'r7'", "r7.*params is not what nsw writes"),
    "reports that are not texts": (
        "UPDATE tasks SET reports = '[1]' WHERE id = 'r7'",
        "r7.*reports is not what nsw writes",
    ),
    "an unknown state": ("UPDATE tasks SET state = 'gone' WHERE id = 'r7'", "'gone': state is not what nsw writes"),
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
        "site_data is not a site",
    ),
    "a transport that is a text": (
        """UPDATE meta SET value = '{"name": "a", "scheduler": "local", "transport": "x"}' WHERE key = 'site_data'""",
        "site_data is not a site",
    ),
    "no site at all": ("DELETE FROM meta WHERE key = 'site_data'", "site_data is not a site"),
    "a fact that is not text": (
        "UPDATE meta SET value = x'00' WHERE key = 'site_data'",
        "site_data is not what nsw writes",
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


def look_at_all(ledger):
    for look in (
        ledger.runs,
        ledger.counts,
        ledger.checked_site,
        ledger.calls,
        ledger.created,
        ledger.absent,
        ledger.problems,
    ):
        look()
    for key in (HELD_JOBS, ORIGINS, PLACES, VERSIONS, SITE):
        ledger.meta(key)


@pytest.mark.parametrize("what", HELD)
def test_what_a_ledger_cannot_hold_is_said_with_the_run(path, what):
    script, said = HELD[what]
    change(path, script)
    with Ledger(path, read_only=True) as ledger, pytest.raises(CampaignError, match=said):
        look_at_all(ledger)


def test_a_ledger_that_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "campaign.db")
    with pytest.raises(CampaignError, match=r"campaign\.db is not a file"):
        Ledger(tmp_path / "campaign.db", read_only=True)
