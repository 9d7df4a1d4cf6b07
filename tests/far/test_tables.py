"""`collect: tables | reports | everything` behind `far`: another user's machine, whose connection fails at each step of a reduction."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nsw.campaign.folder import CampaignFolder
from nsw.campaign.ledger import Ledger, State
from nsw.campaign.reading import load_rows
from tests.remote.reduced import make_nsys, recipe, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Far
    from .staged import Site

SITES = """
nsw: 1
sites:
  cluster:
    SITE
    scheduler: SCHEDULER
    profilers: {nsys: 'NSYS'}
    confirm_above: 100 node-hours
    limits: {lost_after: 20s}
"""


class Laptop:
    """A folder with recipe and sites file, on a machine without an nsys."""

    def __init__(self, far: Far, site: Site, folder: Path, collect: str = "tables") -> None:
        self.far, self.work = far, folder
        self.nsys = make_nsys(far.folder / "nsight")
        (folder / "recipe.yaml").write_text(recipe(collect))
        (folder / "prog.sh").write_text('echo "$1" >residual.dat')
        keys = far.site.replace("}, scratch", "}\n    scratch")
        text = SITES.replace("SITE", keys, 1).replace("SCHEDULER", site.scheduler).replace("NSYS", str(self.nsys))
        (folder / "sites.yaml").write_text(text)

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | self.far.environment | {"NSW_NSYS": "/nowhere/nsys"}
        return subprocess.run(
            [sys.executable, "-m", "nsw", *words], cwd=self.work, env=environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def finish(self) -> Path:
        """Run, and resume as often as the connection wants."""
        words = ("run", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--yes")
        for _ in range(12):
            done = self.nsw(*words)
            if done.returncode == 0:
                break
            words = ("resume", "--root", "campaigns") if (self.work / "campaigns").exists() else words
        assert done.returncode == 0, (done.stdout + done.stderr, self.far.faults())
        (folder,) = (path for path in (self.work / "campaigns").iterdir() if not path.name.startswith("."))
        return folder


def assert_reduced_once(laptop: Laptop, folder: Path) -> None:
    assert verbs(laptop.nsys) == ["export"] * 3 + ["profile"] * 3
    with Ledger(folder / "campaign.db") as ledger:
        assert [(row.state, row.attempt) for row in ledger.reductions()] == [(State.DONE, 1)] * 3
        assert {run.reading for run in ledger.runs()} == {"read"}
    found = load_rows(CampaignFolder(folder), "gpu_summary")
    assert len({row["run"] for row in found}) == 3
    assert not (list((folder / "reports").rglob("*.nsys-rep")) + list((folder / "reports").rglob("*.gz")))


def test_tables_come_and_the_reports_stay(far_site, tmp_path):
    laptop = Laptop(*far_site, tmp_path)
    folder = laptop.finish()
    assert_reduced_once(laptop, folder)
    plan = json.loads(laptop.nsw("plan", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--json").stdout)
    (reduction,) = plan["reductions"]
    assert reduction["where"] == ("login" if far_site[1].scheduler == "slurm" else "job")


@pytest.mark.parametrize("what", ["cut", "stall"])
def test_a_reduction_whose_submission_had_no_answer_is_adopted_and_not_made_again(far_site, tmp_path, what):
    far, site = far_site
    laptop = Laptop(far, site, tmp_path)
    far.order(what, match=r"nsw submit .*-reduce-")
    folder = laptop.finish()
    assert far.faults(), far.commands()
    assert_reduced_once(laptop, folder)


def test_the_connection_ends_while_a_reduction_is_polled(far_site, tmp_path):
    far, site = far_site
    laptop = Laptop(far, site, tmp_path)
    far.order("cut", match=r"nsw list .*-reduce-", times=2)
    folder = laptop.finish()
    assert far.faults(), far.commands()
    assert_reduced_once(laptop, folder)


@pytest.mark.parametrize(
    ("collect", "brought"),
    [("reports", {"timeline.nsys-rep"}), ("everything", {"timeline.nsys-rep", "residual.dat"})],
)
def test_what_was_asked_for_is_brought_over_a_connection_that_ends_on_the_way(far_site, tmp_path, collect, brought):
    far, site = far_site
    laptop = Laptop(far, site, tmp_path, collect)
    far.order("cut", match=r"openssl_hashes")
    laptop.nsw("run", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--yes")
    (folder,) = (path for path in (tmp_path / "campaigns").iterdir() if not path.name.startswith("."))
    for _ in range(3):
        if len(list((folder / "reports").rglob("*.nsys-rep"))) == 3:
            break
        laptop.nsw("resume", "--root", "campaigns")
    assert far.faults(), far.commands()
    assert verbs(laptop.nsys) == ["profile"] * 3
    usual = {"stdout", "stderr", "claim", "status"}
    for run in (folder / "reports").iterdir():
        assert {path.name for path in run.iterdir()} - usual == brought
        (report,) = run.glob("*.nsys-rep")
        assert report.read_bytes() == (laptop.nsys.parent / "recorded").read_bytes()
