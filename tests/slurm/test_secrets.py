"""Secrets in a campaign on Slurm: they reach the jobs, and nothing that nsw or Slurm keeps of them holds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.road.planted import APP_ENV, ENVIRONMENT, PROGRAM, SITE_ENV, expected, found_in, said

from .test_campaign import campaign

if TYPE_CHECKING:
    import pytest

    from .places import Fake, Real

RECIPE = f"""\
nsw: 1
name: t
resources: {{gpus: 0, time: 1m}}
matrix: {{n: [1, 2, 3]}}
passes: [baseline]
app:
  command: /usr/bin/env python3 program.py
  files: [program.py]
  env:
{APP_ENV}"""


def test_secrets_reach_jobs_and_stand_in_no_script_ledger_or_log(
    place: Fake | Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (place.work / "program.py").write_text(PROGRAM)
    (place.work / "recipe.yaml").write_text(RECIPE)
    keys = place.site_keys or f"    scratch: {place.work}/scratch\n"
    site = f"    scheduler: slurm\n    env: {SITE_ENV}\n    limits: {{runs_per_job: 2}}\n{keys}"
    (place.work / "sites.yaml").write_text(f"nsw: 1\nsites:\n  s:\n{site}")
    for file in place.work.glob("*.*"):
        file.chmod(0o644)
    done = place.nsw("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    assert done.returncode == 0, done.stderr
    here = campaign(place)
    for n in (1, 2, 3):
        assert (here / "reports" / f"n-{n}.baseline.r1" / "stdout").read_text() == expected(n)
    scratch = place.scratch(here) if place.site_keys else place.work / "scratch" / here.name
    kept = [here, scratch, *(place.work.glob("fake-slurm"))]
    assert found_in(*kept) == set()
    assert not said(done.stdout, done.stderr)
    assert here.stat().st_mode & 0o077 == 0
    assert scratch.stat().st_mode & 0o077 == 0
