"""`nsw query`: a SELECT over the tables of campaigns, and nothing beside them."""

import csv
import json
import sqlite3
import sys

import pytest

from nsw.apart import Limits
from nsw.api import query
from nsw.api.combined import CombinedTables, known_tables
from nsw.engine.folder import CampaignFolder
from nsw.engine.tables import put_rows
from nsw.errors import LimitError
from nsw.tables import TABLES

pytest.importorskip("duckdb")

BY_CASE = (
    "select gpus, batch, count(*) as kernels, sum(total_ns) as total_ns from gpu_summary group by all order by 1, 2"
)


@pytest.fixture
def demo(nsw):
    assert nsw("run", "alexnet_scaling", "-s", "demo", "--yes", "--case", "gpus=1,2", "--case", "batch=8").code == 0
    return nsw


@pytest.fixture
def here(monkeypatch):
    """Queries are answered in this process, which is quicker."""
    monkeypatch.setattr(query, "run_isolated", lambda function, *args, **_: function(*args))


def rows(said):
    assert said.code == 0, said.err
    return json.loads(said.out)["rows"]


def test_the_answer_is_what_the_table_holds_with_parameters_as_columns(demo):
    table = rows(demo("summarize", "--table", "gpu_summary", "--json"))
    for row in rows(demo("query", BY_CASE, "--json")):
        mine = [r for r in table if r["run"] == f"gpus-{row['gpus']}_batch-{row['batch']}.timeline.r1"]
        assert row["kernels"] == len(mine) > 10
        assert row["total_ns"] == sum(r["total_ns"] for r in mine)


def test_several_campaigns_are_one_table(demo, home, here):
    (first,) = home.glob("campaigns/*")
    assert demo("run", "alexnet_scaling", "-s", "demo", "--yes", "--case", "gpus=4", "--case", "batch=8").code == 0
    (second,) = {*home.glob("campaigns/*")} - {first}  # names of one second end in random letters
    asked = "select campaign, gpus from runs join campaigns using (campaign) where site = 'demo' order by gpus"
    by_gpus = {row["param_gpus"]: row["campaign"] for row in
               rows(demo("query", asked.replace("gpus", "param_gpus"), first, second, "--json"))}  # fmt: skip
    assert by_gpus == {1: first.name, 2: first.name, 4: second.name}
    assert {row["gpus"] for row in rows(demo("query", BY_CASE, "--json"))} == {4}  # the newest alone


def test_tables_without_a_ledger_are_asked_for_by_their_folder_and_by_its_name(demo, home, here):
    (campaign,) = home.glob("campaigns/*")
    alone = home / "campaigns" / "alone"
    alone.mkdir()
    (campaign / "tables").rename(alone / "tables")
    asked = "select count(*) as n from gpu_summary"
    by_name, by_path = (rows(demo("query", asked, name, "--json")) for name in ("alone", str(alone)))
    assert by_name == by_path
    assert by_name[0]["n"] > 10
    assert "`nsw query 'SELECT ...' campaigns/alone` reads" in demo("summarize", "alone").err
    asked = "select distinct gpus from gpu_summary order by gpus"
    assert demo("query", asked, "alone").code == 2  # nothing tells the parameters
    (campaign / "recipe.lock.yaml").rename(alone / "recipe.lock.yaml")
    assert [row["gpus"] for row in rows(demo("query", asked, "alone", "--json"))] == [1, 2]


def test_figures_of_profiled_runs_are_parted_by_their_pass_and_a_query_that_mixes_them_says_so(demo, home, here):
    folder = CampaignFolder(*home.glob("campaigns/*"))
    asked = "select gpus, avg(value) as v from figures {} group by all order by all"
    assert "slowed" not in demo("query", asked.format("")).err  # the demo has profiled runs alone
    put_rows(folder, "figures", "gpus-1_batch-8.baseline.r1", [{"name": "images_per_sec", "value": 9.0}])
    folder.ledger.unlink()  # tables and a lockfile
    assert (
        "(pass timeline); `where pass = 'baseline'` has those without" in demo("query", asked.format(""), folder.id).err
    )
    said = demo("query", asked.format("where pass = 'baseline'"), folder.id, "--json")
    assert (rows(said), "slowed" in said.err) == ([{"gpus": 1, "v": 9.0}], False)


def test_columns_without_values_and_paths_are_the_first_to_go_on_a_narrow_screen(demo, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    heads = demo("query", "select * from figures").out.split("\n")[1].split()
    assert heads[:4] == ["run", "pass", "gpus", "batch"]
    assert {"name", "value", "unit"} <= {*heads}
    assert "report" not in heads


def test_csv_and_the_terminal_have_the_columns_in_their_order(demo, home, here):
    said = demo("query", BY_CASE, "--format", "csv", "-o", "a.csv")
    assert said.code == 0, said.err
    assert next(csv.reader((home / "a.csv").read_text().splitlines())) == ["gpus", "batch", "kernels", "total_ns"]
    shown = demo("query", "select batch as b, gpus as a, gpus as a from figures order by gpus desc").out.split()
    assert shown[:3] == ["b", "a", "a_1"]
    assert shown[-6:] == ["8", "2", "2", "8", "1", "1"]
    assert demo("query", "select * from rules").err.strip() == "no rows"  # a table that no campaign has


def test_the_schema_has_units_and_meanings(demo):
    schema = rows(demo("query", "--schema", "--json"))
    (total,) = [row for row in schema if (row["table"], row["column"]) == ("gpu_summary", "total_ns")]
    assert (total["type"], total["unit"], total["meaning"]) == ("float64", "ns", "sum of the durations")
    assert {"campaign", "gpus", "batch"} <= {row["column"] for row in schema if row["table"] == "figures"}
    assert "gpu_summary: one row a kernel name" in demo("query", "--schema").out
    assert {row["table"] for row in rows(demo("query", "--schema", "figures", "--json"))} == {"figures"}
    assert "has no table functions" in demo("query", "--schema", "functions", exits=2).err


REFUSED = [
    "COPY gpu_summary TO 'stolen.csv'", "COPY runs FROM 'secret.csv'", "ATTACH 'other.db'", "DETACH memory",
    "EXPORT DATABASE 'stolen'", "IMPORT DATABASE 'stolen'", "INSTALL httpfs", "LOAD httpfs", "LOAD 'x.duckdb_extension'",
    "PRAGMA version", "PRAGMA database_list", "SET memory_limit = '900GB'", "SET enable_external_access = true",
    "RESET lock_configuration", "CALL pragma_version()", "CREATE TABLE t AS SELECT 1", "CREATE SECRET s (TYPE s3)",
    "DROP VIEW runs", "DELETE FROM runs", "USE memory", "CHECKPOINT", "EXPLAIN SELECT 1", "SELECT 1; SELECT 2",
    "SELECT * FROM read_csv('secret.csv')", "SELECT * FROM 'secret.csv'", 'SELECT * FROM "secret.csv"',
    "SELECT * FROM read_parquet('secret.csv')", "SELECT * FROM read_json('secret.csv')",
    "SELECT * FROM read_text('secret.csv')", "SELECT * FROM read_blob('secret.csv')",
    "SELECT * FROM sniff_csv('secret.csv')", "SELECT * FROM glob('*')", "SELECT * FROM parquet_metadata('secret.csv')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')", "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT getenv('HOME')", "SELECT * FROM duckdb_secrets()", "SELECT * FROM query('COPY runs TO ''stolen.csv''')",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': 'stolen'})",
    "SELECT * FROM pandas_scan(1)", "SELECT * FROM arrow_scan(1, 2, 3)", "SELECT * FROM tables", "SELECT * FROM table",
    "WITH x AS (SELECT * FROM read_csv('secret.csv')) SELECT * FROM x",
    "SELECT (SELECT content FROM read_text('secret.csv'))",
]  # fmt: skip


def test_a_query_reaches_no_file_network_extension_setting_or_variable(demo, home, here):
    (home / "secret.csv").write_text("a\nsecret-token\n")
    before = sorted(path.name for path in home.iterdir())
    for sql in REFUSED:
        said = demo("query", sql)
        assert said.code == 2, sql
        assert said.out == "", sql
        assert "secret-token" not in said.err, sql
        assert "error: " in said.err, f"{sql}: {said.err}"
    assert sorted(path.name for path in home.iterdir()) == before


WRONG = {
    "select totl_ns from gpu_summary": ("SQL:1:8: Referenced column", "^^^^^^^", "did you mean 'total_ns'?"),
    "select 'é',\n  totl_ns\nfrom gpu_summary": ("SQL:2:3: ", "  2 |   totl_ns\n    |   ^^^^^^^\n", "'total_ns'"),
    "select batsh from figures": ("SQL:1:8: ", "^^^^^", "did you mean 'batch'?"),
    "select * from gpu_sumary": ("SQL:1:15: Table with name gpu_sumary", "^^^^^^^^^^", "did you mean 'gpu_summary'?"),
    "select * from kernels": ("SQL:1:15: ", "`nsw summarize --table kernels`", "a query has `launches` and `metrics`"),
    "select case_id from figures": ("SQL:1:8: ", "a query has `run`", "a column for each parameter"),
    "alexnet": ("'alexnet' is no SELECT", "the SELECT comes first", ""),
    "selct 1": ("SQL:1:1: syntax error", "^", ""),
    "select name, sum(value)\nfrom figures": ("SQL:1:8: ", "^", "GROUP BY list"),
}


def test_an_error_shows_its_line_and_the_name_that_was_meant(demo, here):
    for sql, parts in WRONG.items():
        said = demo("query", sql)
        assert said.code == 2, sql
        for part in parts:
            assert part in said.err, f"{sql}: {said.err}"


@pytest.mark.parametrize(
    "sql",
    [
        "select sleep_ms(600000)",
        f"select sum(a.total_ns) from gpu_summary {', gpu_summary '.join('abcdefg')}",
    ],
)
def test_a_query_that_would_not_end_is_stopped(demo, sql):
    said = demo("query", sql, "--max-time", "1s")
    assert said.code == 2
    assert "takes more than 1 s" in said.err
    assert "--max-time" in said.err


@pytest.mark.parametrize("sql", ["select list(x) from range(100000000) r(x)", "select length(repeat('x', 4000000000))"])
def test_a_query_that_takes_too_much_memory_is_stopped(demo, sql):
    said = demo("query", sql, "--max-memory", "200M")
    assert said.code == 2
    assert "takes more than" in said.err
    assert "--max-memory" in said.err


def test_numbers_that_are_none_are_absent_and_others_are_plain(demo, here):
    sql = (
        "select 0.0/0 as nan, 1.0/0 as inf, 1.5 as d, sum(170141183460469231731687303715884105726) as h, [1, null] as l"
    )
    (row,) = rows(demo("query", sql, "--json"))
    assert row == {"nan": None, "inf": None, "d": 1.5, "h": 170141183460469231731687303715884105726, "l": [1, None]}


def test_a_missing_duckdb_is_reported_with_the_command_that_installs_it(demo, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    said = demo("query", "select 1")
    assert said.code == 2
    assert "pip install 'nsw[sql]'" in said.err


def test_parameters_with_the_names_of_columns_or_of_several_types_stay_apart(nsw, recipe, here):
    matrix = "matrix: {Name: [a, b], campaign: [1], mixed: [1, x], size: [1, 2.5]}\n"
    assert (
        nsw("run", recipe("{command: 'echo f=2', figures: {f: {regex: 'f=(.*)', unit: s}}}", matrix), "-s", "here").code
        == 0
    )
    found = rows(nsw("query", "select distinct param_Name as n, param_campaign as c, mixed, size from figures order by all",
                     "--json"))  # fmt: skip
    assert {(row["n"], row["c"]) for row in found} == {("a", 1), ("b", 1)}
    assert {row["mixed"] for row in found} == {"1", "x"}
    assert {row["size"] for row in found} == {1.0, 2.5}


def test_a_sqlite_file_holds_the_same_tables_with_their_units(demo, home, here):
    said = demo("export", "--sqlite", "a.db")
    assert said.code == 0, said.err
    with sqlite3.connect(home / "a.db") as database:
        found = database.execute(BY_CASE.replace("all", "gpus, batch")).fetchall()
        assert found == [tuple(row.values()) for row in rows(demo("query", BY_CASE, "--json"))]
        unit = "select unit from columns where \"table\" = 'gpu_summary' and \"column\" = 'avg_ns'"
        assert database.execute(unit).fetchall() == [("ns",)]
        assert "Recorded on" in database.execute("select note from campaigns").fetchone()[0]
    assert demo("export", "--sqlite", "a.db", "--case", "gpus=2").code == 0  # the file is replaced
    with sqlite3.connect(home / "a.db") as database:
        assert database.execute("select distinct gpus from gpu_summary").fetchall() == [(2,)]
        assert database.execute("select count(*) from runs").fetchall() == [(1,)]
    said = demo("export", "--sqlite", "no/such/a.db")
    assert said.code == 2
    assert "no/such/a.db cannot be written: No such file" in said.err
    assert [path.name for path in home.glob(".nsw-*")] == []


def test_every_table_can_be_asked_for(demo, home, here):
    (folder,) = home.glob("campaigns/*")
    tables = CombinedTables([CampaignFolder(folder)])
    asked = " union all ".join(f"select '{name}' as name, count(*) as rows from {name}" for name in known_tables())
    counted = {row["name"]: row["rows"] for row in rows(demo("query", asked, "--json"))}
    assert counted == {name: len(tables.table(name)) for name in known_tables()}
    assert set(TABLES) < set(known_tables())


def test_limits_hold_where_no_process_apart_can_be(demo, home, here):
    (folder,) = home.glob("campaigns/*")
    with pytest.raises(LimitError, match="takes more than 1 s"):
        query.query("select sleep_ms(600000)", [CampaignFolder(folder)], Limits(seconds=1))
