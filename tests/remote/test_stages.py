"""Two stages over a real sshd, and the laptop is closed between them: nsw is killed at each moment, and goes on."""

from nsw.schedulers.slurm import Slurm
from nsw.transport.model import connect
from tests.far.staged import Site, Staged
from tests.far.test_stages import killed_between

from .test_campaign import cluster  # noqa: F401  a fixture


def test_nsw_is_killed_between_the_stages_and_the_second_measures_what_the_first_found(cluster, tmp_path):  # noqa: F811
    data = {"transport": {"kind": cluster.kind, "host": "far", "config": str(cluster.server.config)}}
    work = tmp_path / "work"
    work.mkdir()
    site = Site("slurm", Slurm(), lambda scratch, mark: connect(data, scratch, mark), str(cluster.scratch), work)
    killed_between(Staged(tmp_path / "campaigns", site))
