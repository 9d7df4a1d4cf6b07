"""`collect: tables | reports | everything` on a site behind a real sshd; this machine has no nsys."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import State
from nsw.readers import read
from nsw.tables import full_rows

from .reduced import EXPORT, make_nsys, recipe, verbs
from .test_campaign import cluster  # noqa: F401  the fixture

if TYPE_CHECKING:
    from pathlib import Path

    from .test_campaign import Cluster

RUNS = [f"n-{n}.timeline.r1" for n in (1, 2, 3)]
SHOWN = ("gpu_summary", "api_summary", "phase_summary", "phases", "iterations", "facts")


@pytest.fixture
def site(cluster, monkeypatch):  # noqa: F811
    monkeypatch.setenv("NSW_NSYS", "/nowhere/nsys")  # this machine is a laptop
    nsys = make_nsys(cluster.server.folder.parent / "nsight")
    sites = cluster.work / "sites.yaml"
    sites.write_text(sites.read_text() + f"    profilers: {{nsys: {nsys}}}\n")
    cluster.nsys = nsys
    return cluster


def run(site: Cluster, collect: str, *more: str) -> Path:
    (site.work / "recipe.yaml").write_text(recipe(collect))
    done = site.nsw(*site.run_words(), *more)
    site.said = done.stdout + done.stderr
    assert done.returncode == 0, site.said
    (folder,) = (site.work / "campaigns").iterdir()
    return folder


def files(folder: Path) -> dict[str, set[str]]:
    """What came of each run, but for what every run leaves."""
    usual = {"stdout", "stderr", "claim", "status", "conditions.txt"}
    return {run: {p.name for p in (folder / "reports" / run).iterdir()} - usual for run in RUNS}


def expected(tmp_path: Path) -> dict[str, list[dict]]:
    export = tmp_path / "expected.sqlite"
    export.write_bytes(gzip.decompress(EXPORT.read_bytes()))
    report = read(export)
    return {name: list(full_rows(name, report.tables[name])) for name in SHOWN if name in report.tables}


def assert_equal_rows(folder: Path, tmp_path: Path) -> None:
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.tables import load_rows

    want = expected(tmp_path)
    assert {"gpu_summary", "api_summary", "facts"} <= want.keys()
    for name, some in want.items():
        for one in RUNS:
            mine = [r for r in load_rows(CampaignFolder(folder), name) if r["run"] == one]
            assert [{k: v for k, v in r.items() if k not in {"run", "report"}} for r in mine] == [
                {k: v for k, v in r.items() if k not in {"run", "report"}} for r in some
            ], name


def test_tables_are_made_on_the_login_node_and_equal_what_the_readers_make_of_the_export(site, tmp_path):
    folder = run(site, "tables")
    assert verbs(site.nsys) == ["export"] * 3 + ["profile"] * 3
    assert files(folder) == {run: {"timeline.sqlite"} for run in RUNS}
    assert_equal_rows(folder, tmp_path)
    with Ledger(folder / "campaign.db") as ledger:
        assert [row.state for row in ledger.reductions()] == [State.DONE] * 3
        assert {ledger.job_place(row.job) for row in ledger.reductions()} == {"login"}
    there = site.scratch / "root" / folder.name / "runs"
    packed = there / "n-1.timeline.r1.reduce" / "attempt-1" / "timeline.sqlite.xz"
    assert packed.stat().st_size < (there / "n-1.timeline.r1/attempt-1/timeline.nsys-rep").stat().st_size / 5
    assert {p.name for p in packed.parent.iterdir()} >= {"claim", "status", "stdout"}
    assert not list(packed.parent.glob("full.*"))
    status = site.nsw("status", "--root", "campaigns")
    assert "reports reduced on the site: 3 done" in status.stdout
    said = site.nsw("logs", "n-1.timeline.r1.reduce", "--root", "campaigns")
    assert "of the export's" in said.stdout, said.stderr
    # the report itself is for the GUI, later
    fetched = site.nsw("fetch", "n-1", "--root", "campaigns", "--yes")
    assert fetched.returncode == 0, fetched.stderr
    assert "n-1.timeline.r1/attempt-1/timeline.nsys-rep" in fetched.stderr
    assert (folder / "fetched/n-1.timeline.r1/timeline.nsys-rep").exists()
    again = site.nsw("reread", "--root", "campaigns")
    assert again.returncode == 0, again.stderr
    assert_equal_rows(folder, tmp_path)


def test_reports_are_brought_as_they_are_and_it_is_said_before_that_nothing_here_reads_them(site):
    (site.work / "recipe.yaml").write_text(recipe("reports"))
    plan = site.nsw("plan", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml")
    assert "this machine has no nsys" in plan.stdout + plan.stderr
    assert "collect: tables" in plan.stdout + plan.stderr
    done = site.nsw(*site.run_words())
    assert "this machine has no nsys" in done.stdout + done.stderr
    (folder,) = (site.work / "campaigns").iterdir()
    assert verbs(site.nsys) == ["profile"] * 3
    assert files(folder) == {run: {"timeline.nsys-rep"} for run in RUNS}


def test_everything_that_a_run_left_is_brought(site):
    (site.work / "prog.sh").write_text("echo 7 >residual.dat")
    (site.work / "recipe.yaml").write_text(recipe("everything"))
    site.nsw(*site.run_words())
    (folder,) = (site.work / "campaigns").iterdir()
    assert files(folder) == {run: {"timeline.nsys-rep", "residual.dat"} for run in RUNS}


def test_a_reduction_that_fails_fails_nothing_else_says_why_and_is_retried_alone(site, tmp_path):
    (site.nsys.parent / "broken").touch()
    (site.work / "recipe.yaml").write_text(recipe("tables"))
    failed = site.nsw(*site.run_words())
    assert failed.returncode == 1, failed.stdout + failed.stderr
    (folder,) = (site.work / "campaigns").iterdir()
    status = site.nsw("status", "--root", "campaigns", "--format", "json")
    found = json.loads(status.stdout)
    assert found["reductions"] == {"failed": 3}
    assert found["counts"] == {"done": 3}
    shown = site.nsw("status", "--root", "campaigns").stdout
    assert "its report was not reduced on the site" in shown
    assert "no licence today" in shown
    (site.nsys.parent / "broken").unlink()
    again = site.nsw("retry", "--root", "campaigns")
    assert again.returncode == 0, again.stdout + again.stderr
    assert site.ran() == ["1", "2", "3"]  # and not once more
    assert verbs(site.nsys).count("profile") == 3
    assert_equal_rows(folder, tmp_path)


def test_many_reports_are_an_array_of_the_scheduler(site):
    (site.work / "recipe.yaml").write_text(recipe("tables").replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]"))
    sites = site.work / "sites.yaml"
    sites.write_text(sites.read_text().replace("lost_after: 20s", "lost_after: 20s, login_reductions: 5"))
    plan = json.loads(site.nsw("plan", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--json").stdout)
    (reduction,) = plan["reductions"]
    assert (reduction["where"], reduction["tasks"]) == ("job", 6)
    done = site.nsw(*site.run_words())
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (site.work / "campaigns").iterdir()
    with Ledger(folder / "campaign.db") as ledger:
        reductions = ledger.reductions()
        assert {row.state for row in reductions} == {State.DONE}
        assert len({row.submission for row in reductions}) == 1  # one array, and not a job each
        assert {run.reading for run in ledger.runs()} == {"read"}
