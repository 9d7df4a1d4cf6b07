"""What a read timeline decides for a guided run: arguments, launches on record, a time limit."""

import time

import pytest

from nsw.analysis.guided import TABLE
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import RECORDED, SITE_DATA, Choice, Reading, State
from nsw.engine.recipe_lock import Basis, lock_choices
from nsw.engine.tables import load_rows
from nsw.plan.model import Job, Plan, Resources, Run
from nsw.profilers.model import CHOSEN
from tests.campaign.stand_ins import Met
from tests.recorded import alexnet

RECIPE = """\
nsw: 1
name: t
app: {command: ./program}
passes:
  - timeline: {}
  - counters: {kernels: {top: 2}, launches: {sample: 3}, metrics: [ipc]}
resources: {gpus: 1, time: 2h}
"""
LOOK, COUNT, OTHER = "c.timeline.r1", "c.counters.r1", "c.counters.r2"


@pytest.fixture
def folder(tmp_path):
    folder = CampaignFolder(tmp_path)
    folder.tables.mkdir()
    (folder.reports / LOOK).mkdir(parents=True)
    (folder.reports / LOOK / "timeline.sqlite").write_bytes(alexnet("g1-b8"))
    folder.recipe.write_text(RECIPE)
    runs = [
        Run(LOOK, "c", {}, "timeline", "timeline", "nsys", 1, ("true",), {}, Resources(), ("*.sqlite",)),
        *(Run(id_, "c", {}, "counters", "counters", "ncu", n, ("ncu", CHOSEN), {}, Resources(time_s=7200), needs="c.timeline")
          for n, id_ in enumerate((COUNT, OTHER), 1)),
    ]  # fmt: skip
    with Ledger(folder.ledger, create=True) as ledger:
        ledger.add_plan(Plan("n", "s", ("c",), tuple(Job(run.id, Resources(), ((run,),)) for run in runs)))
        ledger.set_meta(SITE_DATA, {"name": "s", "gpus": {"chip": "gh100"}})
        ended(ledger, LOOK, 11.0)
    return folder


def ended(ledger, run, seconds):
    now = time.time()
    ledger.update_tasks([run], state=State.DONE, reading=Reading.READ, started=now - seconds, ended=now)


def test_the_launches_are_on_record_and_the_limit_follows_from_the_price_and_then_from_what_finished(folder):
    with Ledger(folder.ledger) as ledger:
        chooser = Met(folder, ledger, None)
        choose, lines = chooser.choose, chooser.said
        (source,) = ledger.runs_named([LOOK])
        first = choose(ledger.runs_named([COUNT])[0], [source])
        rows = load_rows(folder, TABLE)
        assert {row["run"] for row in rows} == {COUNT}
        assert len(rows) >= 6
        assert len({row["kernel"] for row in rows}) == 2
        assert {(row["chosen_from"], row["state"]) for row in rows} == {(LOOK, None)}
        assert "--kernel-id" in first.arguments
        assert 300 + 3 * 11 <= first.limit_s < 600  # a wide margin on the program and a few launches of one pass
        assert "by its price; limit" in lines[-1]

        ended(ledger, COUNT, 20.0)
        second = choose(ledger.runs_named([OTHER])[0], [source])
        assert second.limit_s == pytest.approx(1.5 * 20 + 120, abs=1)
        assert "expected to take 20 s by 1 finished run" in lines[-1]


def test_a_choice_of_the_lockfile_has_its_launches_on_record_as_this_timeline_has_them(folder):
    basis = Basis("NVIDIA H100")
    with Ledger(folder.ledger) as ledger:
        chooser = Met(folder, ledger, basis)
        lines, warned = chooser.said, chooser.warned
        run, (source,) = ledger.runs_named([COUNT])[0], ledger.runs_named([LOOK])
        choice = chooser.choose(run, [source])
        chosen = load_rows(folder, TABLE)
        locked = lock_choices({COUNT: choice}, basis, chosen).model_dump(mode="json")

        (folder.tables / f"{TABLE}.parquet").unlink()
        ledger.set_meta(RECORDED, locked)
        assert chooser.choose(run, [source]) == choice
        assert load_rows(folder, TABLE) == chosen
        assert "as the lockfile records it" in lines[-1]
        assert warned == []

        (folder.tables / f"{TABLE}.parquet").unlink()
        locked["runs"][COUNT] |= {"kernels": ["_Z4gonev"]}
        ledger.set_meta(RECORDED, locked)
        assert chooser.choose(run, [source]) == choice
        assert load_rows(folder, TABLE) == []
        assert warned == [f"what {COUNT} measures is not compared with {LOOK}: {LOOK} holds none of these launches"]


@pytest.mark.parametrize(("limit", "kept"), [(3600, 3600), (7200, None), (9000, None)])
def test_a_limit_of_the_lockfile_is_never_above_that_of_this_plan(folder, limit, kept):
    basis = Basis("NVIDIA H100")
    with Ledger(folder.ledger) as ledger:
        run, (source,) = ledger.runs_named([COUNT])[0], ledger.runs_named([LOOK])
        locked = lock_choices({COUNT: Choice(("--kernel-id", "x"), limit, LOOK, "note")}, basis).model_dump(mode="json")
        ledger.set_meta(RECORDED, locked)
        choice = Met(folder, ledger, basis).choose(run, [source])
        assert choice == Choice(("--kernel-id", "x"), kept, LOOK, "note")


@pytest.mark.parametrize(
    ("gpu", "metrics", "skipped", "warned"),
    [
        ("Tesla V100-SXM2-16GB", "[tensor_ops_bf16]", "tensor_ops_bf16 is not measured on gv100", ""),
        ("Tesla V100-SXM2-16GB", "[ipc, tensor_ops_bf16]", "", f"{COUNT}: tensor_ops_bf16 is not measured on gv100"),
        ("Tesla P100-PCIE-16GB", "[ipc]", "ncu does not measure counters on gp100", ""),
        ("NVIDIA H100 80GB HBM3", "[ipc]", "", ""),
        ("some new GPU", "[tensor_ops_bf16]", "", ""),
    ],
)
def test_where_the_site_names_no_chip_the_metrics_are_checked_on_the_one_that_the_jobs_met(
    folder, gpu, metrics, skipped, warned
):
    folder.recipe.write_text(RECIPE.replace("[ipc]", metrics))
    with Ledger(folder.ledger) as ledger:
        ledger.set_meta(SITE_DATA, {"name": "s", "gpus": {}})
        chooser = Met(folder, ledger, Basis(gpu))
        warnings = chooser.warned
        found = chooser.choose(ledger.runs_named([COUNT])[0], ledger.runs_named([LOOK]))
    if skipped:
        assert found.startswith(skipped)
        assert gpu in found
    else:
        assert "--kernel-id" in found.arguments
    assert len(warnings) == bool(warned)
    assert all(text.startswith(warned) for text in warnings)
