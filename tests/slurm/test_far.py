"""A real Slurm behind the transport `far`: a few of the tests of a Slurm of this machine; `make soak` has the others."""

from __future__ import annotations

import pytest

from . import test_both, test_campaign

pytestmark = pytest.mark.slurm


def test_twenty_runs_are_done_once_in_one_array(far):
    test_campaign.test_twenty_runs_are_done_once_in_one_array(far)


def test_a_job_is_found_by_its_name_while_it_waits_and_after_it_ended(far):
    test_both.test_a_job_is_found_by_its_name_while_it_waits_and_after_it_ended(far)
