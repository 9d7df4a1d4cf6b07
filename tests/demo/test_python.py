"""A campaign from Python: its tables and runs are pandas frames that say what the commands say."""

import json
from pathlib import Path

import pytest

import nsw
from nsw.errors import CampaignError
from nsw.present.rows_view import unit_of
from nsw.tables.schema import TABLES

RECIPE = Path(__file__).parents[2] / "recipes" / "alexnet_scaling.yaml"


@pytest.fixture
def campaign(demo):
    return nsw.open(demo.folder)


def test_tables_are_frames_with_the_rows_of_the_campaign(demo, campaign):
    frame = campaign.tables.gpu_summary
    exported = json.loads(demo.nsw("summarize", str(demo.folder), "--table", "gpu_summary", "--json").stdout)["rows"]
    assert list(frame["name"]) == [row["name"] for row in exported]
    assert list(frame["total_ns"]) == [row["total_ns"] for row in exported]
    assert "gpu_summary" in dir(campaign.tables)


def test_a_table_that_nothing_filled_is_empty_with_its_columns(campaign):
    frame = campaign.tables.rules
    assert frame.empty
    assert [c for c in frame.columns if c not in {"gpus", "batch"}] == list(TABLES["rules"].column_names)
    assert "rules" not in dir(campaign.tables)


def test_each_row_has_the_parameters_of_its_run(campaign):
    params = {run["id"]: (run["gpus"], run["batch"]) for _, run in campaign.runs.iterrows()}
    frame = campaign.tables.gpu_summary
    assert list(frame.columns[:3]) == ["run", "gpus", "batch"]
    assert list(zip(frame["gpus"], frame["batch"], strict=True)) == [params[run] for run in frame["run"]]


def test_a_trace_that_is_asked_for_is_made(demo):
    """From the collected reports: the campaign's folder has no such table, and gets none."""
    one = min((demo.folder / "reports").glob("*/*.sqlite"), key=lambda p: p.stat().st_size)
    case = one.parent.name.split(".")[0]
    campaign = nsw.run(str(RECIPE), "demo", root=demo.root / "traced", case=case).wait()
    trace, direct = campaign.tables.gpu_trace, nsw.read(one).tables.gpu_trace
    assert len(trace) == len(direct) > 1000
    assert list(trace["start_ns"]) == list(direct["start_ns"])
    assert set(trace["run"]) == {one.parent.name}
    assert set(trace["gpus"]) == {int(case[5])}
    assert {"gpu_trace", "api_trace"} <= set(dir(campaign.tables))
    assert not (campaign.folder / "tables" / "gpu_trace.parquet").exists()
    assert campaign.tables.gpu_trace is not None
    assert len(campaign.tables.gpu_trace) == len(direct)


def test_answers_are_frames_and_sentences(demo, campaign):
    rows = json.loads(demo.nsw("summarize", str(demo.folder), "--table", "hotspots", "--json").stdout)["rows"]
    assert list(campaign.answers.hotspots["name"]) == [row["name"] for row in rows]
    answer = json.loads(demo.nsw("summarize", str(demo.folder), "--json").stdout)
    assert campaign.answers.headline == answer["headline"]
    assert campaign.answers.headline.startswith("90 % efficiency at gpus=4, batch=128; 67 % at batch=8")
    assert campaign.answers.findings == [finding["text"] for finding in answer["findings"]]
    assert any("NCCL alone" in text for text in campaign.answers.findings)
    assert {"hotspots", "findings", "headline"} <= set(dir(campaign.answers))


def test_a_name_that_is_no_table_is_told_with_the_nearest(campaign):
    with pytest.raises(AttributeError, match="gpu_summary"):
        _ = campaign.tables.gpu_sumary


def test_runs_have_their_parameters_and_their_state(demo, campaign):
    runs = campaign.runs
    status = json.loads(demo.nsw("status", str(demo.folder), "--json").stdout)["runs"]
    assert list(runs["id"]) == [run["id"] for run in status]
    assert set(runs["state"]) == {"done"}
    assert list(runs["batch"]) == [run["params"]["batch"] for run in status]


def test_a_campaign_is_found_by_its_id_or_as_the_newest(demo, campaign):
    for found in (nsw.open(root=demo.root), nsw.open(campaign.id[:-2], demo.root)):
        assert (found.id, found.site, found.note) == (campaign.id, "demo", campaign.note)
        assert "Recorded" in found.note
    assert campaign.id in repr(campaign)
    with pytest.raises(CampaignError):
        nsw.open("no-such-campaign", demo.root)


def test_frames_have_the_units_of_their_columns(campaign):
    for name in campaign.tables:
        units = campaign.tables[name].attrs["units"]
        assert units == {c.name: c.unit for c in TABLES[name].columns if c.unit}, name
    units = {"total_ns": "ns", "total_bytes": "byte", "bytes_per_s": "byte/s", "longest_ns": "ns"}
    assert campaign.answers.copies.attrs["units"] == units
    assert campaign.runs.attrs["units"]["seconds"] == "s"


def test_the_unit_that_a_name_ends_in_is_that_of_the_schema():
    """Tables of a summary have no schema: the unit is read from the name."""
    columns = [column for table in TABLES.values() for column in table.columns if unit_of(column.name)]
    assert len(columns) > 100
    assert not [column for column in columns if unit_of(column.name) != column.unit]


def test_all_campaigns_under_a_folder_are_one_frame_for_each_table(demo, campaign):
    every = nsw.open_all(demo.root)
    assert [one.id for one in every] == [campaign.id]
    combined, alone = every.tables.gpu_summary, campaign.tables.gpu_summary
    assert [name for name in combined.columns if name not in {"campaign", "pass"}] == list(alone.columns)
    assert set(combined["campaign"]) == {campaign.id}
    assert list(combined["total_ns"]) == list(alone["total_ns"])
    assert combined.attrs == alone.attrs
    assert every.tables.rules.empty
    assert len(every.runs) == len(campaign.runs)
    assert "1 nsw campaign" in repr(every)
    with pytest.raises(CampaignError, match="there is no campaign"):
        nsw.open_all(demo.root / "nothing")


def test_a_campaign_is_compared_as_the_command_does(demo, campaign):
    words = ("compare", str(demo.folder), f"{campaign.id}:gpus=2", "--json", "--root", str(demo.root))
    assert json.loads(demo.nsw(*words).stdout)["headline"] == campaign.compare(f"{campaign.id}:gpus=2").headline
