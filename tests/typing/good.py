"""A user's program that mypy --strict accepts: what nsw gives has types."""

from pathlib import Path
from typing import assert_type

import pandas as pd

import nsw
from nsw.events import (
    BuildChanged,
    Downloading,
    Finished,
    Message,
    Progress,
    ReportsRead,
    RunChanged,
    RunsEnded,
    Started,
)

running = nsw.run(
    Path("recipe.yaml"),
    site="mycluster",
    set={"gpus": [1, 2], "resources.time": "30m"},
    case=[{"gpus": 2}, "gpus-1_*"],
    passes="timeline",
    fit=True,
    note="after the fix",
)
assert_type(running, nsw.Running)
for event in running:
    match event:
        case RunChanged(run=run, over=over, total=total):
            assert_type(run.id, str)
            assert_type(over, int)
            print(run.id, run.state, f"{over}/{total}", run.params.get("gpus"))
        case Message(text=text, level=level):
            print(level, text)
        case Started() | BuildChanged() | Progress() | Downloading() | RunsEnded() | ReportsRead() | Finished():
            print(event)
assert_type(running.campaign, nsw.Campaign)

campaign = nsw.resume("recipe-2026").wait(print)
assert_type(campaign, nsw.Campaign)
assert_type(campaign.tables.gpu_summary, pd.DataFrame)
assert_type(campaign.tables["metrics"], pd.DataFrame)
assert_type(campaign.answers.hotspots, pd.DataFrame)
assert_type(campaign.answers.findings, list[str])
assert_type(campaign.runs, pd.DataFrame)
assert_type(campaign.good, bool)
assert_type(campaign.note, str | None)

for seen in campaign.watch(once=True):
    assert_type(seen, nsw.events.Event)
assert_type(campaign.fetch("gpus-2", "*.ncu-rep"), list[Path])
assert_type(campaign.clean(everything=True), int)
assert_type(nsw.attach("recipe-2026", "mycluster", root="campaigns").wait(), nsw.Campaign)

again = nsw.retry(campaign, runs=["gpus-2"], failed=True)
if again is not None:
    with again:
        assert_type(next(again), nsw.events.Event)

reports = nsw.read(["report.sqlite", Path("other.ncu-rep")], tables="launches")
assert_type(reports.tables.launches, pd.DataFrame)
assert_type(reports.problems, pd.DataFrame)
assert_type(nsw.dry_run("recipe.yaml").node_hours, float)
assert_type(nsw.open().id, str)

try:
    nsw.open("nothing")
except nsw.errors.CampaignError as fault:
    assert_type(fault.hint, str | None)
