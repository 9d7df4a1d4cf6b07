"""Campaigns that others made, or broke, among one's own: each is named, and the others are listed."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nsw as nsw_module
from nsw.engine import tables
from nsw.engine.folder import CampaignFolder
from nsw.errors import LimitError
from nsw.tables import parquet_tables, to_arrow
from tests.cli.conftest import in_folder

ENDLESS = (
    "CREATE VIEW absent (what, reason, runs) AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n)"
    " SELECT '', '', x FROM n"
)


def change(campaign, script):
    """Change the ledger of a campaign."""
    with closing(sqlite3.connect(campaign / "campaign.db")) as db:
        db.executescript(script)


def test_a_ledger_of_others_that_never_ends_is_not_opened(good, home):
    bad = good.with_name("a-bad")
    shutil.copytree(good, bad)  # a copy is nobody's own
    change(bad, f"DROP TABLE absent; {ENDLESS}")
    said = in_folder(home, "ls", "--json")
    by_name = {c["campaign"]: c for c in json.loads(said.out)["campaigns"]}
    assert by_name[good.name]["counts"] == by_name[bad.name]["counts"] == {"done": 2}
    for word in ("status", "summarize"):
        assert in_folder(home, word, bad.name).code == 0


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("params", "UPDATE tasks SET params = '{', state = 'planned'"),
        ("site_data", "UPDATE meta SET value = '{' WHERE key = 'site_data'"),
    ],
)
@pytest.mark.parametrize("words", [("status", "--runs"), ("summarize",)], ids=" ".join)
def test_a_damaged_value_in_a_ledger_is_an_error_of_that_campaign(good, nsw, words, name, script):
    change(good, script)
    said = nsw(*words, good.name, exits=2)
    assert "campaign.db is damaged: " in said.err
    assert f"{name} is not what nsw writes" in said.err


@pytest.mark.parametrize("name", ["campaign.db", "recipe.lock.yaml", "lock", "log.txt"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(good, nsw, name):
    (good / name).unlink()
    os.mkfifo(good / name)
    said = nsw("summarize", good.name)
    if name in {"lock", "log.txt"}:  # which hold nothing that is summarized
        assert said.code == 0
    else:
        assert said.code == 2
        assert f"{name} is not a file" in said.err or f"{name}: it is not a regular file" in said.err


KERNEL = {"run": "r", "report": "a", "kind": "kernel", "name": "k", "total_ns": 1, "calls": 1}


def put_table(campaign, table, name="gpu_summary"):
    pq.write_table(table, campaign / "tables" / f"{name}.parquet", compression="zstd")


@pytest.fixture
def bomb(good):
    """A table whose 200 kB are a gigabyte as Arrow has them."""
    put_table(good, to_arrow("gpu_summary", [KERNEL | {"name": "k" * 1_000_000}] * 100))
    with pq.ParquetFile(path := good / "tables" / "gpu_summary.parquet") as file:
        part = file.read()
    with pq.ParquetWriter(path, part.schema, compression="zstd") as file:
        for _ in range(10):
            file.write_table(part)
    return good


def test_a_table_of_others_that_takes_too_much_memory_is_refused_until_the_option_allows_it(
    good, nsw, bomb, monkeypatch
):
    monkeypatch.setattr(CampaignFolder, "trusted", False)  # tests/security has a second user
    monkeypatch.setattr(tables, "read_stored_rows", parquet_tables.read_stored_table)  # rows hold the text once
    said = nsw("summarize", good.name, "--max-memory", "900M", exits=2)
    assert "gpu_summary.parquet takes more than 900 MiB" in said.err
    assert f"`nsw summarize {good.name} --max-memory 64G" in said.err


def test_from_python_a_table_of_others_is_refused_too(bomb, monkeypatch):
    monkeypatch.setattr(CampaignFolder, "trusted", False)
    with pytest.raises(LimitError, match="takes more than 900 MiB"):
        nsw_module.open(bomb, max_memory=900 << 20).tables.gpu_summary  # noqa: B018


def test_a_long_name_in_many_rows_of_a_table_is_held_once(nsw, bomb):
    assert nsw("summarize", bomb.name).code == 0


def test_a_table_of_other_columns_is_damaged(good, nsw):
    put_table(good, to_arrow("gpu_summary", [KERNEL]).set_column(0, "run", pa.array([1])))
    assert "gpu_summary.parquet is damaged: its column run holds int64" in nsw("summarize", good.name).err
    put_table(good, pa.table({"run": ["r"], "report": ["a"], "name": pa.array([[1]])}))
    assert "its column name holds list" in nsw("summarize", good.name).err
    put_table(good, pa.table({"name": ["a"]}))
    assert "it has no column report" in nsw("summarize", good.name).err


@pytest.mark.parametrize("size", ["20", "x", "-1G"])
@pytest.mark.parametrize("option", ["--max-unpacked", "--max-memory", "--max-time"])
def test_a_limit_that_is_no_size_or_time_is_said(nsw, option, size):
    said = nsw("read", "a.csv", f"{option}={size}", exits=2)
    assert said.err.startswith(f"error: {option}: ")


STEERS = "c\x1b]0;owned\x07\u202e\x9b2J"  # the name of a folder may hold any of these


@pytest.mark.parametrize(
    "words", [("cancel",), ("throttle", "2", "-c"), ("status",), ("ls",), ("ls", "--format", "csv"), ("ls", "--json")],
    ids=" ".join,
)  # fmt: skip
def test_the_name_of_a_campaign_does_not_steer_the_terminal(good, nsw, words):
    evil = good.rename(good.with_name(STEERS))
    said = nsw(*words, *([evil.name] if words[0] != "ls" else []))
    text = said.out + said.err
    assert said.code == 0, text
    assert "owned" in text
    assert not [c for c in text if not (c.isprintable() or c in "\n\t")]
    if "--json" in words:
        assert json.loads(said.out)["campaigns"][0]["campaign"] == STEERS


def test_data_of_a_ledger_is_no_formula_in_csv(good, nsw):
    change(good, "UPDATE tasks SET host = '=1+1', detail = char(27) || '@a'")
    said = nsw("status", good.name, "--format", "csv")
    assert "'=1+1" in said.out
    assert "\x1b" not in said.out
