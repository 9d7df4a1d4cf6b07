"""`nsw reread`: deleted or damaged tables come back, a corrected regex and a new figure count, and the change is named."""

import json
import re
from pathlib import Path
from shutil import rmtree

import pytest

APP = "{command: 'echo loss=4 time=9; echo n >>%s/ran', figures: {%s}}"
LOSS = "loss: {regex: 'loss=(\\d+)', unit: nats}"


@pytest.fixture
def carried_out(nsw, recipe, home):
    """A campaign of two runs whose figure is not found: the folder, and a function that rewrites the recipe."""

    def write(figures, more="repeats: 2\n"):
        recipe(APP % (home, figures), more)

    write(LOSS.replace("loss=", "los="))
    assert nsw("run", "r.yaml", "-s", "here").code == 1
    return next(Path("campaigns").iterdir()), write


def figures(nsw):
    rows = json.loads(nsw("summarize", "--table", "figures", "--json").out)["rows"]
    return {row["name"]: (row["median"], row["runs"]) for row in rows}


def test_a_corrected_regex_and_a_new_figure_are_taken_from_the_recipe_without_a_run(nsw, carried_out, home):
    folder, write = carried_out
    write(LOSS + ", t: {regex: 'time=(.*)', unit: s}")
    said = nsw("reread", exits=0)
    assert f"from {home}/r.yaml:" in said.out
    assert r"  app.figures.loss.regex: 'los=(\d+)' -> 'loss=(\d+)'" in said.out
    assert "  app.figures.t: new" in said.out
    assert "table figures: 4 rows (before: 0)" in said.out
    assert "figure loss: 2 values changed, such as case.baseline.r1: none -> 4" in said.out
    assert "case.baseline.r1 and 1 more: incomplete -> read" in said.out
    assert figures(nsw) == {"loss": (4, 2), "t": (9, 2)}
    assert (home / "ran").read_text() == "n\nn\n"
    assert json.loads(nsw("problems", "--json").out)["problems"] == []
    assert "t:\n" in (folder / "recipe.lock.yaml").read_text()
    assert "reread with " in (folder / "log.txt").read_text()
    again = nsw("reread")
    assert "nothing changed: the tables are as they were" in again.out
    assert nsw("run", folder / "recipe.lock.yaml", "-s", "here").code == 0  # the lockfile is a whole recipe still


def test_another_recipe_can_be_named_and_what_is_not_taken_is_said(nsw, carried_out, home):
    _, write = carried_out
    write(LOSS, "repeats: 2\nreport: {hotspots: {cover: 50%}}\n")
    (home / "r.yaml").rename(home / "other.yaml")
    text = (home / "other.yaml").read_text().replace("time: 1m", "time: 2m")
    (home / "other.yaml").write_text(text)
    said = nsw("reread", "--recipe", "other.yaml", exits=0)
    assert "report.hotspots.cover: '90%' -> '50%'" in said.out
    assert "other.yaml differs in resources too, which reading does not change" in said.err
    assert figures(nsw) == {"loss": (4, 2)}


def test_without_its_recipe_the_campaign_is_read_with_what_it_has(nsw, good, home):
    (home / "r.yaml").unlink()
    (good / "tables" / "figures.parquet").unlink()
    said = nsw("reread", exits=0)
    assert "r.yaml is gone: the figures are those of the campaign" in said.err
    assert "table figures: 2 rows (before: 0)" in said.out
    assert figures(nsw) == {"f": (2, 2)}


def test_a_damaged_table_is_put_aside(nsw, good):
    (good / "tables" / "figures.parquet").write_bytes(b"PAR1 no table")
    said = nsw("reread", exits=0)
    assert "table figures: 2 rows (before: a damaged file)" in said.out
    assert (good / "tables" / "figures.parquet.damaged").read_bytes() == b"PAR1 no table"


def test_a_removed_folder_of_tables_is_named_and_made_again(nsw, good):
    rmtree(good / "tables")
    assert re.search(r"tables is gone: `nsw reread.*` reads the reports again", nsw("summarize").out)
    nsw("reread", exits=0)
    assert figures(nsw) == {"f": (2, 2)}
    assert "is gone" not in nsw("summarize").out


def test_rows_stay_of_runs_whose_reports_are_gone(nsw, good):
    for path in (good / "reports" / "case.baseline.r1").iterdir():
        path.unlink()
    said = nsw("reread", exits=0)
    assert "not read again: case.baseline.r1: nothing is left in" in said.err
    assert figures(nsw) == {"f": (2, 2)}


def test_a_recipe_with_a_fault_changes_nothing(nsw, good, home):
    before = (good / "recipe.lock.yaml").read_text()
    (home / "bad.yaml").write_text((home / "r.yaml").read_text().replace("regex: 'f=(.*)'", "regex: 'f=('"))
    said = nsw("reread", "--recipe", "bad.yaml", exits=2)
    assert "bad.yaml:5" in said.err
    assert (good / "recipe.lock.yaml").read_text() == before
    assert figures(nsw) == {"f": (2, 2)}


def test_figures_of_the_named_runs_alone_are_read_again(nsw, carried_out):
    _, write = carried_out
    write(LOSS)
    said = nsw("reread", "--case", "case.baseline.r2")
    assert "figure loss: 1 value changed, such as case.baseline.r2: none -> 4" in said.out
    assert figures(nsw) == {"loss": (4, 1)}


def test_figures_of_another_recipe_stay_when_it_is_read_again_without_naming_it(nsw, carried_out, home):
    _, write = carried_out
    old = (home / "r.yaml").read_text()
    write(LOSS)
    (home / "r.yaml").rename(home / "other.yaml")
    (home / "r.yaml").write_text(old)
    assert nsw("reread", "--recipe", "other.yaml").code == 0
    assert "nothing changed" in nsw("reread").out
    assert figures(nsw) == {"loss": (4, 2)}


def test_passes_that_were_left_out_are_no_difference(nsw, recipe, home):
    name = recipe(APP % (home, LOSS))
    text = (home / name).read_text().replace("passes: [baseline]", "passes: [baseline, {host: {tool: cprofile}}]")
    (home / name).write_text(text)
    assert nsw("run", name, "-s", "here", "--pass", "baseline").code == 0
    assert "differs in" not in nsw("reread").err
    (home / name).write_text(text.replace("[baseline,", "[{baseline: {time: 2m}},"))
    assert "differs in passes too" in nsw("reread").err


def test_rows_stay_of_a_report_that_cannot_be_read_any_more(nsw, recipe, home):
    (home / "p.py").write_text("print(sum(range(1000)))\n")
    (home / "r.yaml").write_text(
        "nsw: 1\nname: profiled\napp: {command: python3 p.py, files: [p.py]}\n"
        "passes: [host: {tool: cprofile}]\nresources: {gpus: 0}\n"
    )
    said = nsw("run", "r.yaml", "-s", "here", exits=0)
    (campaign,) = (home / "campaigns").glob("*-*")
    (report,) = (campaign / "reports").rglob("*.pstats*")
    before = nsw("summarize", "--table", "functions", "--json").out
    report.write_bytes(b"no profile")
    said = nsw("reread", exits=1)
    assert "`nsw summarize" not in said.out  # the answer is that of before
    assert "cannot be read again: " in said.err
    assert "what was read before stays" in said.err
    assert nsw("summarize", "--table", "functions", "--json").out == before
    assert "warning" in nsw("problems").out
