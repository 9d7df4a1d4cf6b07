"""A campaign from Python: its tables and runs are pandas frames that say what the commands say."""

import json

import pytest

import nsw
from nsw.errors import CampaignError
from nsw.tables.schema import TABLES


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
    assert list(frame.columns) == list(TABLES["rules"].names)
    assert "rules" not in dir(campaign.tables)


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
