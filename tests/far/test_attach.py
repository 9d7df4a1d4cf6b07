"""`nsw attach` behind `far`, on PBS and Cobalt: who takes a campaign over adopts its jobs, and none runs twice."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from tests.contract.campaigns import PATIENCE_S, wait_until

from .laptop import AT, Laptop

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """
nsw: 1
name: taken
app: {command: "bash -c 'echo {{ n }} >>FOLDER/ran; until [ -e FOLDER/go ]; do sleep 0.1; done'"}
matrix: {n: [1, 2]}
passes: [baseline]
resources: {gpus: 0, time: 4m}
"""


def states(campaign: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{campaign}/campaign.db?mode=ro", uri=True)) as ledger:
        return [state for (state,) in ledger.execute("SELECT state FROM tasks ORDER BY seq")]


def test_who_takes_a_campaign_over_adopts_its_jobs_and_lets_the_group_read_it_and_its_first_owner_gives_up(
    qsub_site, tmp_path
):
    far, site = qsub_site
    laptop = Laptop(far, site, tmp_path, RECIPE.replace("FOLDER", str(site.work)))
    sites = tmp_path / "sites.yaml"
    sites.write_text(sites.read_text() + "    share: group\n")
    ran, elsewhere = site.work / "ran", tmp_path / "elsewhere"
    first = laptop.start("run", "recipe.yaml", *AT, "--yes")
    try:
        wait_until(
            lambda: ran.exists() and len(ran.read_text().split()) == 2 and set(states(laptop.folder)) == {"running"}
        )
        mask = os.umask(0o077)
        try:
            second = laptop.start("attach", laptop.folder.name, "--yes", *AT, "--root", "elsewhere")
        finally:
            os.umask(mask)
        _, said = first.communicate(timeout=PATIENCE_S)
        assert first.returncode == 2, said
        assert "was taken over by" in said
    finally:
        (site.work / "go").touch()
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, said
    assert states(elsewhere / laptop.folder.name) == ["done", "done"]
    assert sorted(ran.read_text().split()) == ["1", "2"]
    campaign = elsewhere / laptop.folder.name
    files = ("campaign.db", "recipe.lock.yaml", "state.json", "scripts", "log.txt")
    shown = [campaign, *(campaign / name for name in files)]
    assert [path.name for path in shown if not path.stat().st_mode & 0o040] == []


def test_a_campaign_whose_folder_was_deleted_is_attached_again(qsub_site, tmp_path):
    far, site = qsub_site
    laptop = Laptop(far, site, tmp_path, RECIPE.replace("FOLDER", str(site.work)))
    first = laptop.start("run", "recipe.yaml", *AT, "--yes")
    try:
        wait_until(lambda: (site.work / "ran").exists() and set(states(laptop.folder)) == {"running"})
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=PATIENCE_S)
        campaign = laptop.folder
        shutil.rmtree(campaign)
    finally:
        (site.work / "go").touch()
    done = laptop.nsw("attach", campaign.name, "--yes", *AT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(campaign) == ["done", "done"]
    assert sorted((site.work / "ran").read_text().split()) == ["1", "2"]
