"""A connection that is cut, stalls, or gives half an answer at each remote command in turn: nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter

import pytest

from .staged import Staged

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
    far, site = far_site
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
def test_each_command_goes_wrong_alone(far_site, tmp_path, name, record_property):
    """One campaign for each remote command of a campaign, in which that command fails."""
    far, site = far_site
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
    record_property("campaigns", length)
    print(
        f"{site.scheduler}, {name}: {length} campaigns, {found['broken']} commands went wrong, nsw ended and was"
        f" started again in {found['restarted']}; every run was done once"
    )
