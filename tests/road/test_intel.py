"""Campaigns under VTune and APS, with scripts in their places: on this machine, and where a task on the site reports."""

import csv
import io

import pyarrow.parquet as pq
import pytest

from tests.fakes import intel_reports as printed
from tests.fakes.intel_tools import make_aps, make_vtune

RECIPE = """\
nsw: 1
name: t
resources: {gpus: 0, time: 2m}
app: {command: [echo, hello]}
passes: [host: {tool: TOOL, ANALYSIS}]
collect: COLLECT
"""


def start(road, tool, analysis, collect="tables"):
    sites = road.home / "sites.yaml"
    sites.write_text(sites.read_text().replace("{scheduler", f"{{profilers: {{{tool.name}: '{tool}'}}, scheduler"))
    return road.run(RECIPE.replace("TOOL", tool.name).replace("ANALYSIS", analysis).replace("COLLECT", collect))


def run(road, *asked):
    done = start(road, *asked)
    assert done.returncode == 0, done.stderr
    [name] = road.runs()
    return road.campaign / "reports" / name


def table(road, name):
    return pq.read_table(road.campaign / "tables" / f"{name}.parquet").to_pylist()


def facts(road):
    found = [(row["key"], row["value"]) for row in table(road, "facts") if row["value"] is not None]
    assert len(dict(found)) == len(found), "each fact is there once"
    return dict(found)


@pytest.mark.far(quick=True)
def test_vtunes_tables_are_those_of_the_run(road):
    tool = make_vtune(road.home / "intel")
    reports = run(road, tool, "analysis: hotspots, knobs: {sampling-mode: hw}")
    assert {p.name for p in reports.glob("host*")} >= {"host.hotspots.csv", "host.summary.csv"}
    assert not list(reports.glob("*.tar.gz"))
    functions = table(road, "functions")
    assert [row["name"] for row in functions] == [
        row["Function"] for row in csv.DictReader(io.StringIO(printed.HOTSPOTS_CSV))
    ]
    found = facts(road)
    assert (found["elapsed_s"], found["memory_bound_pct"], found["vectorization_pct"]) == (24.75, 28.7, 61.8)
    assert "-knob sampling-mode=hw" in (tool.parent / "calls").read_text()


def test_the_result_itself_is_brought_with_everything(road):
    reports = run(road, make_vtune(road.home / "intel"), "analysis: uarch-exploration", "everything")
    assert (reports / "host.vtune.tar.gz").exists()
    assert (reports / "host.hotspots.csv").exists()


def test_aps_figures_are_those_of_the_run(road):
    run(road, make_aps(road.home / "intel"), "analysis: all")
    found = facts(road)
    assert not list((road.campaign / "reports").glob("*/aps_report*.html"))
    assert (found["mpi_imbalance_pct"], found["memory_stalls_pct"], found["ranks"]) == (18.91, 37, 16)


def test_an_analysis_that_vtune_does_not_have_is_refused_before_the_run(road):
    done = start(road, make_vtune(road.home / "intel"), "analysis: gpu")
    assert "VTune has no analysis 'gpu'" in done.stderr


def test_the_page_of_aps_beside_its_text_counts_once(road):
    reports = run(road, make_aps(road.home / "intel"), "options: []", "everything")
    assert list(reports.glob("aps_report*.html"))
    assert facts(road)["elapsed_s"] == 171.25
