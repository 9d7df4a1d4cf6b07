"""A network that is cut, stalls, or loses half of what it carries, between nsw and a batch system behind a real sshd."""

from __future__ import annotations

import os

import pytest

from nsw.transport import ssh
from nsw.transport.model import connect
from tests.far.staged import Staged
from tests.remote.conftest import SSHD, Server, free_port

from . import figures
from .distant import Network, distant
from .systems import ways

EVERY = int(os.environ.get("NSW_SOAK_EVERY", "1"))  # of how many turns one is broken in the long form
MOST_NSW = 25  # that a campaign may take
WAYS = (
    {"what": "cut", "before": True},
    {"what": "truncate", "bytes": 20},
    {"what": "cut"},
    {"what": "late", "seconds": 0.5},
    {"what": "truncate", "bytes": 200},
)


@ways("slurm-openssh", "slurm-ssh", "pbs-openssh", "cobalt-ssh")
def test_a_network_that_breaks_again_and_again_loses_nothing(system, tmp_path, kind):
    with distant(kind, system, network=True) as it:
        turns = range(7, 1000, 13)
        it.network.order(*({**WAYS[number % len(WAYS)], "at": turn} for number, turn in enumerate(turns)))
        campaign = Staged(tmp_path / "campaigns", it.site())
        took = campaign.finish(MOST_NSW)
        row = figures.row(f"{system.name}, {kind}, network broken again and again")
        row.add(campaign, it, len(it.network.faults()), took)
        assert not row.wrong, (row.wrong, it.network.faults())
        assert row.submitted == row.runs
        assert row.faults >= 4, it.network.turns()


@ways("slurm-ssh")
def test_a_network_that_falls_silent_is_given_up_and_another_connection_made(system, tmp_path, kind):
    with distant(kind, system, network=True) as it:
        it.network.order({"what": "stall", "at": 18, "before": True}, {"what": "stall", "at": 40})
        campaign = Staged(tmp_path / "campaigns", it.site(hasty=True))
        took = campaign.finish(MOST_NSW)
        row = figures.row(f"{system.name}, {kind}, network silent")
        row.add(campaign, it, len(it.network.faults()), took)
        assert not row.wrong, (row.wrong, it.network.faults())
        assert row.faults == 2, it.network.turns()


@pytest.mark.soak
@pytest.mark.parametrize("way", ["cut before", "cut after", "truncated", "silent before", "silent after"])
@ways()
def test_the_network_breaks_at_each_turn_of_a_campaign(system, tmp_path, kind, way):
    """A campaign for every turn in which the client speaks, until one ends before its turn comes.

    Most of the turns of a connection are its login, so a silent network, which costs seconds, is tried at every fourth.
    """
    what, _, when = way.partition(" ")
    order = {"what": {"cut": "cut", "truncated": "truncate", "silent": "stall"}[what], "before": when == "before"}
    order |= {"bytes": 40}
    row, silent = figures.row(f"{system.name}, {kind}, {way} at each turn"), what == "silent"
    with distant(kind, system, network=True) as it:
        for at in range(1, 1000, EVERY * (4 if silent else 1)):
            it.network.order({**order, "at": it.network.turns() + at})
            before = len(it.network.faults())
            (it.folder / "begins").unlink(missing_ok=True)
            campaign = Staged(tmp_path / str(at), it.site(hasty=silent))
            took = campaign.finish(MOST_NSW)
            broken = len(it.network.faults()) - before
            if not broken:
                return
            row.add(campaign, it, broken, took)
            assert not row.wrong, (at, row.wrong, it.network.faults()[before:])
            assert row.submitted == row.runs, at


def test_a_connection_that_falls_silent_is_ended_by_ssh_itself_long_before_its_command_must_be(tmp_path, monkeypatch):
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    monkeypatch.setattr(ssh, "ASK_S", 1.0)
    monkeypatch.setattr(ssh, "SILENT_S", 5.0)  # a busy machine answers late
    server = Server(tmp_path / "sshd", port=free_port())
    network = Network(tmp_path / "network", server.port)
    server.through = network.port
    server.start()
    try:
        site = {"transport": {"kind": "ssh", "host": "far", "config": str(server.config)}}
        transport = connect(site, str(tmp_path / "scratch"))
        assert transport.run(["echo", "one"], timeout=60).stdout == "one\n"
        assert (
            transport.run(["bash", "-c", "sleep 8; echo slow"], timeout=60).stdout == "slow\n"
        )  # it answers questions
        network.order({"what": "stall", "at": 1})
        done = transport.run(["echo", "two"], timeout=600)
        assert done.timed_out
        assert done.stderr == "the connection was lost: the shell there ended"
        assert transport.run(["echo", "three"], timeout=60).stdout == "three\n"
        transport.close()
    finally:
        server.stop(sessions=True)
        network.stop()
