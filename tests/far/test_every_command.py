"""A connection that is cut, stalls, or gives half an answer at each remote command in turn: nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from .staged import Staged

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Far
    from .staged import Site

# what goes wrong, as orders to `far`
FAULTS = {
    "cut before": {"what": "cut", "before": True},
    "cut after": {"what": "cut"},
    "stalled before": {"what": "stall", "before": True},
    "stalled after": {"what": "stall"},
    "truncated at once": {"what": "truncate", "bytes_": 1},
    "truncated": {"what": "truncate", "bytes_": 70},
    "late": {"what": "late", "seconds": 0.3},
}
MOST_NSW = 25  # that a campaign may take


@pytest.mark.parametrize("offset", range(3))
def test_every_third_command_goes_wrong_in_one_way_after_another(far_site, tmp_path, offset):
    every_third(*far_site, tmp_path, offset)


@pytest.mark.parametrize(
    "offset", [1, pytest.param(0, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)]
)
def test_every_third_command_goes_wrong_on_pbs_and_cobalt(qsub_site, tmp_path, offset):
    every_third(*qsub_site, tmp_path, offset)


def every_third(far: Far, site: Site, tmp_path: Path, offset: int) -> None:
    for turn in range(12):
        how = list(FAULTS.values())[(turn * 3 + offset) % len(FAULTS)]
        far.order(at=2 + offset + 3 * turn, **how)
    campaign = Staged(tmp_path / "campaigns", site)
    campaign.finish(MOST_NSW)
    assert campaign.fault() is None, (campaign.fault(), far.faults())
    assert len(far.faults()) >= 5


def test_a_submission_whose_answer_is_lost_is_adopted_and_not_made_again(far_site, tmp_path):
    far, site = far_site
    submits = "sbatch" if site.scheduler == "slurm" else "nsw submit"
    for what in ("cut", "stall"):
        far.order(what, match=submits)
    campaign = Staged(tmp_path / "campaigns", site)
    campaign.finish(MOST_NSW)
    assert campaign.fault() is None, (campaign.fault(), far.faults())
    assert [line.split()[1] for line in far.faults()] == ["cut", "stall"]
    if site.scheduler == "slurm":
        assert len(list(far.folder.glob("fake-slurm/jobs/*/job.json"))) == 2


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_each_command_goes_wrong_alone(far_site, tmp_path, name):
    each_alone(*far_site, tmp_path, name)


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_each_command_goes_wrong_alone_on_pbs_and_cobalt(qsub_site, tmp_path, name):
    each_alone(*qsub_site, tmp_path, name)


def each_alone(far: Far, site: Site, tmp_path: Path, name: str) -> None:
    """One campaign for each remote command of a campaign, in which that command fails."""
    clean = Staged(tmp_path / "clean", site)
    assert clean.drive() == 0
    length, found = len(far.commands()), Counter()
    for number in range(1, length + 1):
        clean.begins.unlink()
        (far.control / "log").unlink()
        far.order(at=number, **FAULTS[name])
        campaign = Staged(tmp_path / str(number), site)
        took = campaign.finish(MOST_NSW)
        assert campaign.fault() is None, (number, campaign.fault(), far.faults())
        found["broken"] += len(far.faults())
        found["restarted"] += took > 1
        (far.control / "orders").unlink(missing_ok=True)
    print(
        f"{site.scheduler}, {name}: {length} campaigns, {found['broken']} commands went wrong, nsw ended and was"
        f" started again in {found['restarted']}; every run was done once"
    )
