"""--output: what is printed goes to the file, of each command; several tables need a folder."""

import csv
import json
import re
import time

import pyarrow.parquet as pq
import pytest

from nsw.cli.completion import load_commands
from nsw.cli.summarizing import first_rows

from .test_exit_codes import refused

COMMANDS = [
    ["status"], ["ls"], ["sites"], ["plan", "r.yaml", "-s", "here"], ["summarize", "--table", "figures"],
    ["read", "--formats"], ["read", "t.json", "--table", "operators"],
]  # fmt: skip


def rows(file):
    return list(csv.DictReader(file.read_text().splitlines()))


@pytest.fixture
def trace(home):
    """A report with two tables."""
    (home / "t.json").write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 1, "args": {"device": 0, "stream": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 5, "pid": 1, "tid": 1, "args": {}}]}))  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_form_goes_to_the_file_and_not_to_the_terminal(nsw, good, trace, home, words):
    for form in ("csv", "json", "table", "parquet"):
        printed = nsw(*words, "-f", form).out if form != "parquet" else None
        file = home / f"out.{form}"
        said = nsw(*words, "-f", form, "-o", file)
        assert (said.code, said.out.count("\n")) == (0, 1), said
        assert said.out.startswith(f"{file}: ")
        assert file.stat().st_size
        if form in {"csv", "json"}:
            assert file.read_text() == printed


def test_the_ending_of_the_file_says_the_format_where_no_option_does(nsw, good, home):
    assert nsw("status", "--runs", "-o", "a.csv").code == 0
    assert len(rows(home / "a.csv")) == 2
    assert nsw("status", "-o", "a.json").code == 0
    assert json.loads((home / "a.json").read_text())["nsw_json"] == 1
    assert nsw("status", "-o", "a.parquet").code == 0
    assert pq.read_table(home / "a.parquet").num_rows == 2


def test_several_tables_do_not_go_into_one_file_and_are_listed(nsw, good, trace, home):
    refused(nsw("read", "t.json", "-f", "csv"), "a csv file holds one table, but here are gpu_summary", "operators")
    refused(nsw("read", "t.json", "-f", "parquet", "-o", "x.parquet"), "a parquet file holds one table", "--output")
    assert nsw("read", "t.json", "-f", "csv", "-o", "tables").code == 0
    assert {"operators.csv", "gpu_summary.csv"} <= {file.name for file in (home / "tables").iterdir()}
    (row,) = rows(home / "tables" / "operators.csv")
    assert (row["name"], row["report"]) == ("aten::mm", "t.json")


def test_the_only_table_of_a_campaign_needs_no_name(nsw, good):
    found = csv.DictReader(nsw("summarize", "-f", "csv").out.splitlines())
    assert [(r["name"], r["median"]) for r in found] == [("f", "2.0")]


def test_a_summary_of_several_tables_is_refused_as_one_file(nsw, recipe, home):
    app = "{command: 'echo f={{ n }}', figures: {f: {regex: 'f=(.*)', unit: s}}}"
    more = "matrix: {n: [1, 2]}\nreport: {scaling: {axis: n, kind: weak, figure: f}}\n"
    assert nsw("run", recipe(app, more), "-s", "here").code == 0
    refused(nsw("summarize", "-f", "csv"), "a csv file holds one table, but here are scaling, figures", "--table")
    said = nsw("summarize", "-f", "csv", "-o", "tables", exits=0)
    assert "tables/scaling.csv: 2 rows" in said.out
    assert len(rows(home / "tables" / "scaling.csv")) == 2


def test_a_table_that_is_not_there_lists_each_name_once(nsw, good):
    for words in (["summarize", "--table", "x"], ["read", "y", "--table", "x"]):
        hint = nsw(*words).err
        assert hint.count(" figures") == hint.count(" functions") == 1


def test_a_file_that_cannot_be_written_is_said(nsw, good):
    for words in (["status", "--json"], ["ls", "-f", "csv"], ["summarize", "-f", "csv"]):
        refused(nsw(*words, "-o", "nowhere/x.txt"), "nowhere/x.txt cannot be written: No such file or directory")
    refused(nsw("read", "y", "-f", "csv", "-o", "r.yaml/x"), "r.yaml/x cannot be made")


def test_an_ending_that_is_no_format_is_refused_with_those_there_are(nsw, good, home):
    said = nsw("summarize", "-o", "out.xlsx", exits=2)
    assert "--output out.xlsx: there is no format .xlsx" in said.err
    assert ".json, .csv, .parquet" in said.err
    assert not (home / "out.xlsx").exists()
    assert nsw("summarize", "-o", "out.xlsx", "--format", "csv", "--table", "figures").code == 0
    assert nsw("summarize", "-o", "out.txt").code == 0


def test_a_dash_is_no_file(nsw, good, home):
    for command in ("summarize", "report"):
        said = nsw(command, "-o", "-")
        assert (said.code, said.out) == (2, "")
        assert "-o - names no file" in said.err
    assert not (home / "-").exists()


def test_a_command_that_writes_no_markdown_refuses_its_ending(nsw, good, home):
    said = nsw("status", "-o", "out.md", exits=2)
    assert "--output out.md: there is no format .md" in said.err
    assert not (home / "out.md").exists()
    assert nsw("summarize", "-o", "out.md").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [(["summarize"], "Rows behind the answer"), (["summarize", "--table", "runs"], ".baseline.r1"),
     (["read", "t.json"], "aten::mm"), (["read", "t.json", "--table", "operators"], "aten::mm"),
     (["read", "--formats"], "nsys"), (["read", "none.json"], "none.json")],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)  # fmt: skip
def test_an_answer_is_a_page_where_the_file_ends_so(nsw, good, trace, home, words, says):
    said = nsw(*words, "-o", "page.html")
    assert (said.code, said.out.partition(": ")[0]) == (1 if "none.json" in words else 0, "page.html")
    page = (home / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert says in page
    assert nsw(*words, "--format", "html").out == page


def test_a_report_is_named_after_its_campaign(nsw, good, home):
    said = nsw("report", exits=0)
    assert said.out.startswith(f"{good.name}.html: ")
    page = (home / f"{good.name}.html").read_text()
    assert f"nsw summarize {good.name} --full" in page
    assert "recipe.lock.yaml" in page
    refused(nsw("report", "--timeline", "x"), "--timeline x: there is no such case", "hint")


def test_a_slash_at_the_end_makes_a_folder(nsw, good, home):
    assert nsw("summarize", "-o", "new.d/").code == 0
    assert (home / "new.d/figures.csv").is_file()
    assert nsw("summarize", "--format", "parquet", "-o", "new.d").code == 0
    assert (home / "new.d/figures.parquet").is_file()
    refused(nsw("summarize", "--json", "-o", "new.d/"), "is a folder, but what is to be written is one file")
    said = nsw("status", "-o", "other.d/")
    assert (said.code, "is a folder, but what is to be written is one file" in said.err) == (2, True)
    assert not (home / "other.d").exists()


@pytest.mark.parametrize("command", ["read", "run", "summarize", "problems"])
def test_help_has_an_example_and_no_type_for_what_is_on_or_off(nsw, command):
    text = nsw(command, "--help").out
    assert f"For example: nsw {command} " in " ".join(text.split())
    assert "bool" not in text


@pytest.mark.parametrize("command", load_commands()[1])
def test_help_has_words_for_values_and_no_types(nsw, command):
    text = nsw(command, "--help").out
    assert not re.findall(r"<(?!ls\||table\||ncu\||recipe\||set\||case\||decided>)[^ ]*", text)


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("plan", "[OPTIONS] RECIPE"),
        ("read", "[OPTIONS] [FILE]..."),
        ("schema", "[OPTIONS] DOCUMENT"),
        ("metrics", "[OPTIONS] ACTION [NAME]..."),
        ("init", "[OPTIONS] [-- COMMAND]..."),
    ],
)
def test_the_usage_has_brackets_around_what_may_be_left_out_alone(nsw, command, usage):
    assert f"Usage: nsw {command} {usage}" in [line.strip() for line in nsw(command, "--help").out.splitlines()]


def test_moments_of_runs_are_those_of_the_clock_for_people_and_numbers_as_data(nsw, good, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    began = json.loads(nsw("summarize", "--table", "runs", "--json").out)["rows"][0]["started"]
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))
    assert isinstance(began, float)
    assert shown in nsw("summarize", "--table", "runs").out
    assert shown in nsw("summarize", "--table", "runs", "-f", "markdown").out
    assert str(int(began)) in nsw("summarize", "--table", "runs", "-f", "csv").out


def test_the_first_rows_of_a_table_are_those_of_each_run_or_case(nsw, good):
    assert len(json.loads(nsw("summarize", "--table", "runs", "--top", "1", "--json").out)["rows"]) == 1
    rows = [{"case": case, "name": name} for case in "ab" for name in "xyz"]
    assert [row["case"] + row["name"] for row in first_rows(rows, 2, "case")] == ["ax", "ay", "bx", "by"]
    assert [row["case"] + row["name"] for row in first_rows(rows, 2, None)] == ["ax", "ay"]
    said = nsw("summarize", "--top", "3")
    assert (said.code, "--top needs --table" in said.err) == (2, True)


def test_parameters_of_runs_are_fields_and_clash_with_nothing(nsw, recipe, home):
    import pyarrow.parquet as pq

    from nsw.api.results import open_campaign

    recipe("{command: 'echo {{ state }}'}", "matrix: {state: [a, 2]}\n")
    assert nsw("run", "r.yaml", "-s", "here").code == 0
    assert nsw("summarize", "--table", "runs", "-o", "runs.parquet").code == 0
    (one, two) = pq.read_table("runs.parquet").to_pylist()
    assert (one["state"], one["params"], two["params"]) == ("done", {"state": "a"}, {"state": "2"})
    assert ",params.state" in nsw("summarize", "--table", "runs", "-f", "csv").out.splitlines()[0]
    assert ",param_state" in nsw("status", "-f", "csv").out.splitlines()[0]
    runs = open_campaign().runs
    assert (*runs["state"], *runs["param_state"]) == ("done", "done", "a", 2)


@pytest.mark.parametrize("where", ["login", "job"])
def test_render_shows_the_scripts_of_builds_too(nsw, recipe, home, where):
    app = f"{{command: './program', build: {{command: 'make program', where: {where}}}}}"
    said = nsw("render", recipe(app), "-s", "batch", exits=0)
    assert "make program" in said.out
    assert nsw("render", "r.yaml", "-s", "batch", "--into", "scripts").err.startswith("2 scripts in")
    assert len(list((home / "scripts").iterdir())) == 3  # and what they share


def test_the_campaign_of_this_folder_has_its_name(nsw, good, home, monkeypatch):
    campaign = next(path for path in (home / "campaigns").iterdir() if path.is_dir())
    monkeypatch.chdir(campaign)
    assert json.loads(nsw("summarize", ".", "--json").out)["campaign"] == campaign.name
