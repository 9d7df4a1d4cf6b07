"""What a site says of itself, as a real Slurm sees it: its words for GPUs, its login shells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_campaign import campaign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Real

pytestmark = pytest.mark.slurm

SITES = """
nsw: 1
sites:
  plain: {scheduler: slurm}
  own: {scheduler: slurm, gres: "gpu:a100:{{ gpus }}", login_shell: true}
"""
RECIPE = """
nsw: 1
name: keys
app: {command: bash -c 'echo "$CUDA_VISIBLE_DEVICES on $SLURMD_NODENAME"; echo "$LOGIN"', setup: ["export LOGIN=$(shopt -q login_shell && echo yes || echo no)"]}
passes: [baseline]
resources: {gpus: 5, time: 1m}
"""


@pytest.fixture
def cluster(unaccounted: Real) -> Iterator[Real]:
    with unaccounted.in_folder() as place:
        (place.work / "sites.yaml").write_text(SITES)
        (place.work / "recipe.yaml").write_text(RECIPE)
        yield place


@pytest.mark.parametrize(("site", "login"), [("plain", "no"), ("own", "yes")])
def test_gpus_are_asked_for_as_the_site_does_and_the_job_s_shell_is_a_login_shell(cluster, site, login):
    words = ("--site", site, "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    cluster.nsw("run", "recipe.yaml", *words, exits=0)
    gpus, shell = (campaign(cluster) / "reports/case.baseline.r1/stdout").read_text().splitlines()
    assert len(gpus.partition(" on ")[0].split(",")) == 5
    assert gpus.partition(" on ")[2].startswith("ampere")
    assert shell == login
    script = (campaign(cluster) / "scripts/keys-j1.sh").read_text()
    assert ("#SBATCH --gres=gpu:a100:5" in script) == (site == "own")
