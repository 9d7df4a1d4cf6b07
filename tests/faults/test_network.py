"""A network that is cut, stalls, or loses half of what it carries, between nsw and a real sshd with a real Slurm."""

from __future__ import annotations

import pytest

from tests.far.staged import Staged

from .distant import distant

MOST_NSW = 25  # that a campaign may take
WAYS = (
    {"what": "cut", "before": True},
    {"what": "truncate", "bytes": 20},
    {"what": "cut"},
    {"what": "late", "seconds": 0.5},
    {"what": "truncate", "bytes": 200},
)


@pytest.mark.slurm
@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_a_network_that_breaks_again_and_again_loses_nothing(slurm_conf, tmp_path, kind):
    with distant(kind, slurm_conf, network=True) as it:
        turns = range(7, 1000, 13)
        it.network.order(*({**WAYS[number % len(WAYS)], "at": turn} for number, turn in enumerate(turns)))
        campaign = Staged(tmp_path / "campaigns", it.site())
        campaign.finish(MOST_NSW)
        assert campaign.fault() is None, (campaign.fault(), it.network.faults())
        assert len(it.network.faults()) >= 4, it.network.turns()
