"""`nsw sites check NAME` over a real sshd."""

import json

import pytest

from nsw.campaign.site_check import Verdict, check_site
from nsw.schedulers.slurm import Slurm

from .test_campaign import cluster  # noqa: F401  a fixture


def test_a_site_that_works_is_told_line_by_line(cluster):  # noqa: F811
    done = cluster.nsw("sites", "check", "cluster", "--sites", "sites.yaml", "--json")
    found = {one["what"]: one for one in json.loads(done.stdout)["checks"]}
    assert found["connection"]["verdict"] == "good", done.stdout + done.stderr
    assert found["scheduler"]["found"].startswith("Slurm")
    assert found["scratch"]["verdict"] == "good"
    assert str(cluster.scratch) in found["scratch"]["found"]
    assert done.returncode == 0


def test_a_site_that_cannot_be_reached_is_one_line_with_what_to_do(cluster):  # noqa: F811
    cluster.server.stop(sessions=True)
    done = cluster.nsw("sites", "check", "cluster", "--sites", "sites.yaml")
    assert done.returncode == 3
    assert done.stdout.startswith("bad      connection")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("ahead", "verdict"), [(0, Verdict.GOOD), (120, Verdict.WARNING)])
def test_a_clock_that_is_wrong_is_told(far, ahead, verdict):
    import time

    checks = list(check_site({}, far, None, now=lambda: time.time() - ahead))
    assert next(one for one in checks if one.what == "clock").verdict is verdict


def test_a_scheduler_that_is_not_there_is_told_with_what_to_do(far):
    checks = {one.what: one for one in check_site({"scratch": "/proc/none"}, far, Slurm())}
    if checks["scheduler"].verdict is Verdict.BAD:
        assert "login_shell" in checks["scheduler"].fix
    assert checks["scratch"].verdict is Verdict.BAD
