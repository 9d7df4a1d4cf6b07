"""`collect: tables | reports | everything` behind `far`: another user's machine, whose connection fails at each step of a reduction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import State
from nsw.engine.tables import load_rows
from tests.remote.reduced import make_nsys, recipe, verbs

from .laptop import AT, Laptop

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Far
    from .staged import Site


def reducing(far: Far, site: Site, folder: Path, collect: str = "tables") -> Laptop:
    """A laptop with three runs under an nsys, whose reports the site reduces where only tables are wanted."""
    (folder / "prog.sh").write_text('echo "$1" >residual.dat')
    return Laptop(far, site, folder, recipe(collect), f"{{nsys: '{make_nsys(far.folder / 'nsight')}'}}")


def nsys_of(laptop: Laptop) -> Path:
    return laptop.far.folder / "nsight" / "nsys"


def assert_reduced_once(laptop: Laptop, folder: Path) -> None:
    assert verbs(nsys_of(laptop)) == ["export"] * 3 + ["profile"] * 3
    with Ledger(folder / "campaign.db") as ledger:
        assert [(row.state, row.attempt) for row in ledger.reductions()] == [(State.DONE, 1)] * 3
        assert {run.reading for run in ledger.runs()} == {"read"}
    found = load_rows(CampaignFolder(folder), "gpu_summary")
    assert len({row["run"] for row in found}) == 3
    assert not (list((folder / "reports").rglob("*.nsys-rep")) + list((folder / "reports").rglob("*.[gx]z")))


def test_tables_come_and_the_reports_stay(far_site, tmp_path):
    laptop = reducing(*far_site, tmp_path)
    folder = laptop.finish()
    assert_reduced_once(laptop, folder)
    plan = json.loads(laptop.nsw("plan", "recipe.yaml", *AT, "--json").stdout)
    (reduction,) = plan["reductions"]
    assert reduction["where"] == ("login" if far_site[1].scheduler == "slurm" else "job")


@pytest.mark.parametrize("what", ["cut", "stall"])
def test_a_reduction_whose_submission_had_no_answer_is_adopted_and_not_made_again(far_site, tmp_path, what):
    far, site = far_site
    laptop = reducing(far, site, tmp_path)
    far.order(what, match=r"nsw submit .*-reduce-")
    folder = laptop.finish()
    assert far.faults(), far.commands()
    assert_reduced_once(laptop, folder)


def test_the_connection_ends_while_a_reduction_is_polled(far_site, tmp_path):
    far, site = far_site
    laptop = reducing(far, site, tmp_path)
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
    laptop = reducing(far, site, tmp_path, collect)
    far.order("cut", match=r"openssl_hashes")
    laptop.nsw("run", "recipe.yaml", *AT, "--yes")
    (folder,) = (path for path in (tmp_path / "campaigns").iterdir() if not path.name.startswith("."))
    for _ in range(3):
        if len(list((folder / "reports").rglob("*.nsys-rep"))) == 3:
            break
        laptop.nsw("resume", "--root", "campaigns")
    assert far.faults(), far.commands()
    assert verbs(nsys_of(laptop)) == ["profile"] * 3
    usual = {"stdout", "stderr", "claim", "status", "conditions.txt"}
    for run in (folder / "reports").iterdir():
        assert {path.name for path in run.iterdir()} - usual == brought
        (report,) = run.glob("*.nsys-rep")
        assert report.read_bytes() == (nsys_of(laptop).parent / "recorded").read_bytes()
