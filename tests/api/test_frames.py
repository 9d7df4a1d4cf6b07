"""Tables have the parameters of their runs as columns, under names of their own."""

import pandas as pd
import pytest

import nsw
from nsw.api.results import with_parameters


def test_parameters_are_columns_behind_the_run():
    frame = pd.DataFrame({"run": ["a", "b", "a"], "calls": [1, 2, 3]})
    found = with_parameters(frame, {"a": {"gpus": 1, "size": "small"}, "b": {"gpus": 2, "size": "large"}})
    assert list(found.columns) == ["run", "gpus", "size", "calls"]
    assert list(found["gpus"]) == [1, 2, 1]
    assert found["gpus"].dtype == "int64"
    assert list(frame.columns) == ["run", "calls"]


def test_a_parameter_called_as_a_column_gets_a_prefix(recipe):
    app = "{command: 'echo f=2', figures: {f: {regex: 'f=(.*)', unit: s}}}"
    campaign = nsw.run(recipe(app, "matrix: {unit: [ms]}\n"), "here").wait()
    figures = campaign.tables.figures
    assert (list(figures["unit"]), list(figures["param_unit"])) == (["s"], ["ms"])


def test_an_empty_table_has_the_parameters_too(recipe):
    campaign = nsw.run(recipe("{command: 'true'}", "matrix: {n: [1]}\n"), "here").wait()
    assert "n" in campaign.tables.gpu_summary.columns
    assert campaign.tables["gpu_summary"].empty
    assert campaign.tables.gpu_trace.empty
    with pytest.raises(KeyError, match="gpu_summary"):
        campaign.tables["gpu_sumary"]


def test_files_are_read_with_their_problems(home):
    (home / "empty.sqlite").write_text("")
    (home / "notes.txt").write_text("nothing of a profiler")
    found = nsw.read([home / "empty.sqlite", home / "missing"])
    assert not found.good
    assert list(found.problems["report"]) == [str(home / "empty.sqlite"), str(home / "missing")]
    assert set(found.problems["severity"]) == {"error"}
    assert found.tables.gpu_summary.empty
    assert repr(found) == "<2 reports, 2 with errors; tables: none>"
    with pytest.raises(nsw.errors.UsageError, match="there is no table gpu_sumary"):
        nsw.read("x", tables="gpu_sumary")


def test_files_left_on_the_site_are_brought(recipe):
    campaign = nsw.run(recipe("{command: 'echo {{ n }} > left.txt'}", "matrix: {n: [1, 2]}\n"), "here").wait()
    (brought,) = campaign.fetch("n-2", "left.txt")
    assert brought.read_text() == "2\n"
    with pytest.raises(nsw.errors.UsageError, match="no run matches"):
        campaign.fetch("n-3")


def test_reports_are_read_again_with_a_corrected_figure(recipe):
    name = recipe("{command: 'echo f=2', figures: {f: {regex: 'g=(.*)', unit: s}}}")
    campaign = nsw.run(name, "here").wait()
    assert not campaign.good
    recipe("{command: 'echo f=2', figures: {f: {regex: 'f=(.*)', unit: s}}}")
    assert any("figures" in line for line in nsw.reread(campaign, recipe=name))
    assert campaign.good
    assert list(campaign.tables.figures["value"]) == [2.0]
