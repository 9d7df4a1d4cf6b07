"""A ledger of version 2 is looked at as it is, and goes on as one of version 3."""

import json
import sqlite3
from contextlib import closing

import pytest

from nsw.campaign.ledger import Ledger, Reading, State
from nsw.campaign.ledger_meta_keys import AT_A_TIME, SITE
from nsw.campaign.ledger_needs import Choice
from nsw.campaign.ledger_rows import Met
from nsw.campaign.ledger_schema import SCHEMA_2
from nsw.errors import CampaignError

RUN = (
    "INSERT INTO runs (id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus, reports, state, attempt,"
    " reading, submission) VALUES (?, ?, '{\"n\": 1}', ?, 'timeline', NULL, 1, ?, ?, 2, ?, ?, ?, ?, ?)"
)
RUNS = [
    ("a.look.r1", "a", "look", "j", 0, '["*.x"]', "done", 1, "read", "nsw-1"),
    ("b.look.r1", "b", "look", "j", 1, '["*.x"]', "running", 1, "none", "nsw-1"),
    ("a.count.r1", "a", "count", "k", 0, '["*.x"]', "planned", 0, "none", None),
    ("b.count.r1", "b", "count", "k", 1, '["*.x"]', "planned", 0, "none", None),
    ("c.base.r1", "c", "base", "z", 0, "[]", "planned", 0, "none", None),
]


@pytest.fixture
def path(tmp_path):
    """Two runs and what waits for them; a run that waits for a build, which is queued."""
    path = tmp_path / "campaign.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA_2)
        db.execute("INSERT INTO meta VALUES ('site', 's'), ('canary', 'passed'), ('submitted again build', '2')")
        db.executemany(RUN, RUNS)
        db.execute(
            "INSERT INTO builds (id, job, app, place, command, seconds_limit, gpus, needed_by, state, attempt, submission)"
            " VALUES ('build', 'm', 'app', 'job', 'make', 60, 1, '[\"z\"]', 'queued', 1, 'nsw-2')"
        )
        db.execute("INSERT INTO needs VALUES ('a.count.r1', 'a.look', 1), ('b.count.r1', 'b.look', 0)")
        db.execute("INSERT INTO choices VALUES ('a.count.r1', '[\"-k\"]', 9, 'a.look.r1', 1.0, 'n')")
        for name, job, tasks, native in (("nsw-1", "j", [0, 1], "7"), ("nsw-2", "m", [0], "8")):
            db.execute(
                "INSERT INTO submissions (name, job, tasks, attempt, gpus, native_id, state, created)"
                " VALUES (?, ?, ?, 1, 2, ?, 'submitted', 1.0)", (name, job, json.dumps(tasks), native),
            )  # fmt: skip
        db.execute("INSERT INTO problems VALUES ('a.look.r1', 'r', 'warning', 'm', NULL)")
        db.commit()
    return path


def change(path, statement):
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


@pytest.mark.parametrize("read_only", [True, False], ids=["looking", "driving"])
def test_all_of_it_is_there(path, read_only):
    with Ledger(path, read_only=read_only) as ledger:
        runs = ledger.runs()
        assert [(r.id, str(r.state), r.attempt, r.gpus) for r in runs] == [
            ("a.look.r1", "done", 1, 2), ("b.look.r1", "running", 1, 2), ("a.count.r1", "planned", 0, 2),
            ("b.count.r1", "planned", 0, 2), ("c.base.r1", "planned", 0, 2),
        ]  # fmt: skip
        assert (runs[0].reading, runs[0].submission, runs[0].params) == (Reading.READ, "nsw-1", {"n": 1})
        (build,) = ledger.builds()
        assert (build.id, build.command, build.place, build.state, build.gpus) == (
            "build", "make", "job", State.QUEUED, 1,
        )  # fmt: skip
        assert ledger.needed_by() == {"build": ["z"]}
        assert ledger.waiting_for_stages() == {"b.look": ["b.count.r1"]}
        assert ledger.choices() == {"a.count.r1": Choice(("-k",), 9, "a.look.r1", "n")}
        assert (ledger.native_ids(), ledger.withdrawals("build")) == ({"nsw-1": "7", "nsw-2": "8"}, 2)
        assert [p[0] for p in ledger.problems()] == ["a.look.r1"]


def test_it_goes_on_where_it_was(path):
    with Ledger(path) as ledger:
        assert ledger.pending(9, leave_builds=True) == [("k", 0, 1, 2), ("z", 0, 1, 2)]
        assert ledger.pending(9, leave_builds=False) == [("k", 0, 1, 2)]
        assert ledger.dependency_of("z") == "8"
        assert [s.name for s in ledger.submissions("submitted", dict.fromkeys("jm"))] == ["nsw-1", "nsw-2"]
        assert [one.id for one in ledger.flying(ledger.submissions("submitted", dict.fromkeys("jm"))[1])] == ["build"]
        ledger.update_tasks(["build"], state=State.DONE)
    with Ledger(path) as ledger:
        ledger.meet_done()
        assert ledger.pending(9, leave_builds=False) == [("k", 0, 1, 2), ("z", 0, 1, 2)]


@pytest.mark.parametrize(("was", "met"), [("wanted", Met.OPEN), ("failed", Met.REFUSED), ("waived", None), ("", None)])
def test_a_canary_holds_the_rest_as_before(path, was, met):
    change(path, f"UPDATE meta SET value = '{was}' WHERE key = 'canary'")
    with Ledger(path) as ledger:
        assert ledger.canary() == (None if met is None else ("a.look.r1", met))
        assert (ledger.pending(9, leave_builds=True) == []) == (met is Met.OPEN)


def test_who_only_looks_or_sets_a_throttle_leaves_the_file_to_an_older_nsw_that_drives_it(path):
    before = path.read_bytes()
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.runs()) == 5
    assert path.read_bytes() == before
    with Ledger(path, beside=True) as ledger:
        ledger.set_meta(AT_A_TIME, 3)
        assert ledger.meta(SITE) == "s"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (5,)


def test_one_without_the_tables_of_stages_goes_on_too(path):
    change(path, "DROP TABLE needs")
    change(path, "DROP TABLE choices")
    with Ledger(path) as ledger:
        assert (ledger.waiting_for_stages(), ledger.choices(), len(ledger.runs())) == ({}, {}, 5)


@pytest.mark.parametrize(
    "wrong",
    ["UPDATE builds SET needed_by = '{'", "UPDATE builds SET id = 'a.look.r1'", "CREATE VIEW tasks AS SELECT 1"],
)
def test_one_that_cannot_be_upgraded_is_refused_and_stays_as_it_is(path, wrong):
    change(path, wrong)
    before = path.read_bytes()
    with pytest.raises(CampaignError, match=r"damaged|contains something that nsw never writes"):
        Ledger(path)
    assert path.read_bytes() == before
