"""Stages on arrays and behind `far`, with nsw killed between them: the second measures what the first one found."""

from __future__ import annotations

import pytest

from .staged import Death, Staged

KILLED = -9
FETCHED = Death(1, since="get_many")  # what the first stage found is here, and was not read
CHOSEN = Death(1, since="/choices/")  # what it decides is on the site, and the second stage was not submitted
SUBMITTED = Death(2, since="/choices/")  # the second stage is submitted, and nobody knows its id


def between(campaign: Staged) -> bool:
    """Whether a first stage was done and a second one has not begun."""
    begun = campaign.begins.read_text()
    return ".look" in begun and begun.count(".measure") < len(campaign.runs) / 2


def killed_between(campaign: Staged) -> None:
    """Carry it out, and kill the nsw that does at each moment between the stages."""
    for death in (Death(4), FETCHED, CHOSEN):
        assert campaign.drive(death) == KILLED, death
    assert between(campaign)
    assert campaign.drive(SUBMITTED) == KILLED
    campaign.finish()
    assert campaign.fault() is None, campaign.fault()


def test_the_second_stage_measures_what_the_first_found_behind_far(far_site, tmp_path):
    far, site = far_site
    campaign = Staged(tmp_path / "campaigns", site)
    assert campaign.drive() == 0
    assert campaign.fault() is None, campaign.fault()
    assert not far.faults()


def test_nsw_is_killed_between_the_stages_behind_far(far_site, tmp_path):
    killed_between(Staged(tmp_path / "campaigns", far_site[1]))


def test_nsw_is_killed_between_the_stages_over_arrays(near_site, tmp_path):
    killed_between(Staged(tmp_path / "campaigns", near_site, cases=3, in_array=2))


def test_nsw_is_killed_between_the_stages_on_pbs_and_cobalt(near_qsub, tmp_path):
    killed_between(Staged(tmp_path / "campaigns", near_qsub))


@pytest.mark.soak
def test_nsw_is_killed_between_the_stages_on_pbs_and_cobalt_behind_far(qsub_site, tmp_path):
    killed_between(Staged(tmp_path / "campaigns", qsub_site[1]))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1, 9))
def test_nsw_is_killed_after_every_call_behind_far(far_site, tmp_path, first):
    killed_after_calls(Staged(tmp_path / "campaigns", far_site[1]), first)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1, 9))
def test_nsw_is_killed_after_every_call_on_pbs_and_cobalt_behind_far(qsub_site, tmp_path, first):
    killed_after_calls(Staged(tmp_path / "campaigns", qsub_site[1]), first)


def killed_after_calls(campaign: Staged, first: int) -> None:
    """Kill one nsw after another, each three calls later than the one before."""
    for step in range(0, 24, 3):
        if campaign.drive(Death(first + step)) == 0:
            break
    campaign.finish()
    assert campaign.fault() is None, campaign.fault()
