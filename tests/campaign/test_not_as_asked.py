"""What a counters pass was asked for and did not measure: in the problems, in the summary, in a table."""

from pathlib import Path

import pytest

from nsw.analysis.guided import TABLE, Picked, chosen_launch_rows
from nsw.campaign.answers import _unmeasured_lines
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import Reading, State
from nsw.engine.read import reading
from nsw.engine.tables import load_rows, put_rows
from nsw.plan.model import Job, Plan, Resources, Run

REPORT = Path(__file__).parents[1] / "fixtures" / "h200" / "ncu-mixed.csv"  # dram__bytes.sum, a duration, occupancy
RECIPE = """\
nsw: 1
name: t
app: {command: ./program}
passes:
  - timeline: {}
  - counters: {from: timeline, metrics: [ipc, dram__bytes.sum]}
resources: {gpus: 1}
"""


MEASURED = 11  # launches in it
KERNEL = "matmul_coalesced(const float *, const float *, float *, int)"


def picked(ordinal, grid="(8, 8, 1)"):
    return Picked(KERNEL, "matmul_coalesced", None, ordinal, grid, "(32, 32, 1)", 10)


@pytest.fixture
def folder(tmp_path):
    folder = CampaignFolder(tmp_path)
    folder.tables.mkdir()
    folder.recipe.write_text(RECIPE)
    home = folder.reports / "c.counters.r1"
    home.mkdir(parents=True)
    (home / "counters.csv").write_bytes(REPORT.read_bytes())
    run = Run("c.counters.r1", "c", {}, "counters", "counters", "ncu", 1, ("true",), {}, Resources(), ("*.csv",))
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), (Job("j", Resources(), ((run,),)),)))
        ledger.update_tasks([run.id], state=State.DONE, reading=Reading.COLLECTED)
    return folder


def read_and_check(folder):
    with Ledger(folder.ledger) as ledger:
        list(reading(folder, ledger))
        return ledger.problems(), _unmeasured_lines(ledger, ledger.runs()), ledger.runs()[0].reading


def test_a_metric_that_the_report_lacks_is_a_warning_and_in_the_summary(folder):
    problems, missing, reading = read_and_check(folder)
    (ours,) = [(severity, text) for _, _, severity, text, _ in problems if text.startswith("metric missing")]
    assert ours == ("warning", "metric missing: ipc, of all 1 kernels: ncu left it out and gave no reason")
    assert missing == [f"{ours[1]} (pass counters, 1 run)"]
    assert reading is Reading.READ  # the rest is good


def test_launches_that_were_chosen_are_matched_again_whenever_the_report_is_read(folder):
    chosen = [picked(3, "(9, 9, 1)"), *(picked(3 * n) for n in range(2, MEASURED + 2))]
    put_rows(folder, TABLE, "c.counters.r1", chosen_launch_rows(chosen, "c.timeline.r1"))
    for _ in range(2):
        problems, missing, _ = read_and_check(folder)
        rows = load_rows(folder, TABLE)
        assert [row["ordinal"] for row in rows] == [one.ordinal for one in chosen]
        assert [row["state"] for row in rows] == ["other shape", *["measured"] * 10, "missing"]
        assert {row["run"] for row in rows} == {"c.counters.r1"}
        assert any("1 of 12 launches chosen from c.timeline.r1 were not measured" in text for *_, text, _ in problems)
        assert sum(text.startswith("launches moved") for text in missing) == 2
        with Ledger(folder.ledger) as ledger:
            ledger.update_tasks(["c.counters.r1"], reading=Reading.COLLECTED)
