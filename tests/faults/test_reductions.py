"""`collect: tables` on a real Slurm behind a real sshd: on its login node and as an array, and what may go wrong."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import State
from nsw.engine.tables import load_rows
from tests.recorded import alexnet
from tests.remote.reduced import recipe, verbs
from tests.remote.test_tables import expected

from .distant import distant
from .laptop import Laptop, kill
from .test_site import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slurm
TABLES = recipe("tables").replace("time: 1m", "time: 1m, memory: 50M")
RUNS = [f"n-{n}.timeline.r1" for n in (1, 2, 3)]
# it writes down what it was asked for; a report of it there is none, since nothing here reads one
NCU = """#!/bin/bash
[ "$1" != --version ] || { echo "Version 2024.1"; exit; }
[ "$1" != --import ] || exit 1
printf '%s\\n' "$@" >asked
"""
GUIDED = TABLES.replace(
    "passes: [timeline]",
    "passes:\n  - timeline: {tool: nsys}\n"
    "  - counters: {tool: ncu, kernels: {top: 2}, launches: {sample: 3}, metrics: [ipc]}",
).replace("[1, 2, 3]", "[1, 2]")

PLACES = pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("openssh", "login"),
        ("ssh", "job"),
        pytest.param("ssh", "login", marks=pytest.mark.soak),
        pytest.param("openssh", "job", marks=pytest.mark.soak),
    ],
)
MOST = {"login": 32, "job": 0}  # limits.login_reductions


@pytest.fixture
def laptop(slurm, tmp_path: Path, kind: str, place: str) -> Iterator[Laptop]:
    """A machine whose site's reports are reduced in that place."""
    with distant(kind, slurm) as it:
        yield Laptop(it, tmp_path / "laptop", TABLES, MOST[place])


def assert_reduced_once(laptop: Laptop, place: str, count: int = 3) -> None:
    """Each program and each reduction began once, and nothing else came here."""
    folder = laptop.folder
    assert verbs(laptop.nsys) == ["export"] * count + ["profile"] * count
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        reductions = ledger.reductions()
        assert [(row.state, row.attempt) for row in reductions] == [(State.DONE, 1)] * count
        assert {ledger.job_place(row.job) for row in reductions} == {place}
        assert {run.reading for run in ledger.runs()} == {"read"}
    assert laptop.it.system.tasks(folder.name) == count * (2 if place == "job" else 1)
    assert not [*(folder / "reports").rglob("*.nsys-rep"), *(folder / "reports").rglob("*.[gx]z")]


def all_done(laptop: Laptop) -> bool:
    """Whether the runs are, as the ledger knows it; their reductions need not have begun."""
    with Ledger(laptop.folder / "campaign.db", read_only=True) as ledger:
        return ledger.counts() == {"done": 3}


def assert_rows_of_the_export(laptop: Laptop, tmp_path: Path) -> None:
    for name, wanted in expected(tmp_path).items():
        rows = load_rows(CampaignFolder(laptop.folder), name)
        for run in RUNS:
            mine = [{k: v for k, v in row.items() if k not in {"run", "report"}} for row in rows if row["run"] == run]
            assert mine == [{k: v for k, v in row.items() if k not in {"run", "report"}} for row in wanted], name


@PLACES
def test_reports_are_reduced_beside_the_data_and_give_the_rows_of_the_export(laptop, place, tmp_path):
    laptop.run()
    assert_reduced_once(laptop, place)
    assert_rows_of_the_export(laptop, tmp_path)
    with Ledger(laptop.folder / "campaign.db", read_only=True) as ledger:
        assert len({row.submission for row in ledger.reductions()}) == (1 if place == "job" else 3)


def kill_while_exporting(laptop: Laptop) -> None:
    """Kill the nsw of the recipe's campaign while exports wait."""
    laptop.hold()
    process = laptop.begin()
    until(lambda: laptop.exports() > 0)
    kill(process)


@PLACES
def test_nsw_is_killed_while_reports_are_reduced_and_another_goes_on(laptop, place):
    kill_while_exporting(laptop)
    laptop.hold(on=False)
    laptop.resume()
    assert_reduced_once(laptop, place)


@PLACES
def test_nsw_is_killed_while_a_reduction_is_submitted_and_it_is_adopted(laptop, place):
    begun = laptop.it.folder / "plans" / "begun"
    laptop.it.plan("sbatch", *[f'[[ "$*" != *-reduce-* ]] || {{ touch {begun}; sleep 2; }}'] * 4)
    laptop.hold()
    process = laptop.begin()
    until(lambda: begun.exists() or laptop.exports() > 0)
    kill(process)
    laptop.hold(on=False)
    laptop.resume()
    assert begun.exists() == (place == "job")
    assert_reduced_once(laptop, place)


@PLACES
def test_reductions_that_are_cancelled_leave_their_runs_done_and_are_retried_alone(laptop, place, tmp_path):
    laptop.hold()
    process = laptop.begin()
    until(lambda: laptop.exports() > 0 and all_done(laptop))
    laptop.nsw("cancel", "--root", "campaigns", exits=0)
    said, _ = process.communicate()
    found = json.loads(laptop.nsw("status", "--root", "campaigns", "--format", "json").stdout)
    assert found["counts"] == {"done": 3}, said
    assert found["reductions"] == {"cancelled": 3}, said
    laptop.hold(on=False)
    laptop.nsw("retry", "--root", "campaigns", exits=0)
    assert verbs(laptop.nsys).count("profile") == 3
    assert_rows_of_the_export(laptop, tmp_path)


@PLACES
def test_the_reduction_of_one_run_is_cancelled_and_the_others_go_on(laptop, place):
    laptop.hold()
    process = laptop.begin()
    until(lambda: laptop.exports() > 1 and all_done(laptop))  # the one to cancel need not be exported yet
    cancelled = laptop.nsw("cancel", "--root", "campaigns", "--case", "n=1")
    assert "reports of 1 run were not reduced and stay on the site" in cancelled.stdout
    laptop.hold(on=False)
    process.communicate()
    with Ledger(laptop.folder / "campaign.db", read_only=True) as ledger:
        assert [row.state for row in ledger.reductions()] == [State.CANCELLED, State.DONE, State.DONE]


@PLACES
def test_runs_that_are_added_while_reports_are_reduced_are_reduced_too(laptop, place):
    kill_while_exporting(laptop)
    (laptop.work / "recipe.yaml").write_text(TABLES.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    laptop.hold(on=False)
    words = ("--into", laptop.folder.name, "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    laptop.nsw("run", "recipe.yaml", *words, exits=0)
    assert_reduced_once(laptop, place, 4)


def asked(file: Path) -> dict[str, str]:
    """The options that choose what is counted, as ncu was given them."""
    words = file.read_text().splitlines()
    pairs = dict(pairwise(words))
    return {name: pairs[name] for name in ("--kernel-name", "--kernel-name-base", "--kernel-id") if name in pairs}


@pytest.mark.parametrize(("kind", "place"), [("ssh", "login"), pytest.param("openssh", "job", marks=pytest.mark.soak)])
def test_counters_are_chosen_from_a_reduced_timeline_as_from_a_whole_one(slurm, tmp_path, kind, place):
    with distant(kind, slurm) as it:
        laptop = Laptop(it, tmp_path / "laptop", GUIDED, MOST[place], alexnet("g1-b8"))
        ncu = it.folder / "nsight" / "ncu"
        ncu.write_text(NCU)
        ncu.chmod(0o755)
        sites = laptop.work / "sites.yaml"
        text = sites.read_text().replace(
            "profilers: {", f"gpus: {{per_node: 0, chip: gh100}}\n    profilers: {{ncu: {ncu}, "
        )
        here = "  here:\n    scheduler: local\n    gpus: {per_node: 0, chip: gh100}\n    profilers: {ncu: NCU, nsys: NSYS}\n"
        sites.write_text(text + here.replace("NCU", str(ncu)).replace("NSYS", str(laptop.nsys)))
        laptop.hold()
        process = laptop.begin()
        until(lambda: laptop.exports() > 0)
        kill(process)  # the laptop is closed between the stages
        laptop.hold(on=False)
        laptop.nsw("resume", "--root", "campaigns")
        assert verbs(laptop.nsys) == ["export"] * 2 + ["profile"] * 2
        there = [asked(file) for file in sorted(it.scratch.rglob("asked"))]
        assert len(there) == 2
        laptop.nsw("run", "recipe.yaml", "--site", "here", "--sites", "sites.yaml", "--root", "beside", "--yes")
        assert [asked(file) for file in sorted((laptop.work / "beside").rglob("asked"))] == there
        assert all("--kernel-id" in words for words in there)
