"""Campaigns that others made, or broke, among one's own: each is named, and the others are listed."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import in_folder

ENDLESS = "CREATE VIEW runs AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS state FROM n"


def changed(campaign, name, script):
    """A campaign beside another, with its ledger changed."""
    other = campaign.with_name(name)
    shutil.copytree(campaign, other)
    with closing(sqlite3.connect(other / "campaign.db")) as db:
        db.executescript(script)
    return other


def test_ls_names_a_campaign_whose_ledger_never_ends_and_lists_the_others(good, home):
    bad = changed(good, "a-bad", f"DROP TABLE runs; {ENDLESS}")
    said = in_folder(home, "ls", "--json")
    by_name = {c["campaign"]: c for c in json.loads(said.out)["campaigns"]}
    assert by_name[good.name]["counts"] == {"done": 2}
    assert "view runs" in by_name[bad.name]["problem"]
    for word in ("status", "summarize"):
        told = in_folder(home, word, bad.name)
        assert (told.code, told.out) == (2, "")
        assert "view runs" in told.err


@pytest.mark.parametrize("words", [("status", "--runs"), ("summarize",), ("resume",)], ids=" ".join)
def test_bad_json_in_a_ledger_is_an_error_of_that_campaign(good, nsw, words):
    bad = changed(good, "a-bad", "UPDATE runs SET params = '{', state = 'planned'")
    said = nsw(*words, bad.name)
    assert said.code == 2
    assert "params is no JSON object" in said.err


@pytest.mark.parametrize("name", ["campaign.db", "recipe.lock.yaml", "lock", "log.txt"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(good, nsw, name):
    (good / name).unlink()
    os.mkfifo(good / name)
    said = nsw("summarize", good.name)
    assert said.code == 2
    assert f"{name} is no file" in said.err
