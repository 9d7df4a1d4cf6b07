"""The site `local` in a shell of a real allocation: on its nodes, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .places import Real

pytestmark = pytest.mark.slurm

RECIPE = """nsw: 1
name: in
app: {command: [bash, -c, 'echo "on $SLURMD_NODENAME"']}
resources: {gpus: 0, time: 1m}
"""


def test_in_an_allocation_local_runs_on_its_node_and_is_refused_outside(unaccounted: Real, tmp_path: Path):
    (tmp_path / "in.yaml").write_text(RECIPE)
    env = unaccounted.env | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}

    def allocated(*words: str) -> subprocess.CompletedProcess[str]:
        nsw = [*words, sys.executable, "-m", "nsw", "run", "in.yaml", "--site", "local"]
        salloc = ["salloc", "--nodes=1", "--mem=500M", "--quiet", *nsw]
        return subprocess.run(salloc, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    outside = allocated()
    assert "is none of that job's nodes" in outside.stdout + outside.stderr
    assert "--overlap --pty bash` opens a shell on its first node" in outside.stdout + outside.stderr
    inside = allocated("srun")
    assert inside.returncode == 0, inside.stdout + inside.stderr
    printed = [path.read_text() for path in tmp_path.rglob("reports/*/stdout")]
    assert [text.strip() for text in printed] not in ([], ["on"])
