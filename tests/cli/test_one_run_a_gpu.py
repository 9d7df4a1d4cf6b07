"""Runs that need the same GPU go one after the other, also where the site lets many run at a time."""

import os

from tests.cli.conftest import in_folder

RECIPE = """nsw: 1
name: t
app: {command: "bash -c 'mkdir HOME/busy || echo two at once; sleep 0.3; rmdir HOME/busy'"}
matrix: {n: [1, 2, 3, 4]}
passes: [baseline]
resources: {gpus: 1, time: 1m}
"""


def test_four_runs_never_share_the_gpu_of_this_machine(home, monkeypatch):
    smi = home / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\n[ \"$1\" = -L ] && echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    (home / "sites.yaml").write_text("nsw: 1\nsites:\n  mine: {scheduler: local}\n")
    (home / "r.yaml").write_text(RECIPE.replace("HOME", str(home)))
    done = in_folder(home, "run", "r.yaml", "--site", "mine", "--sites", "sites.yaml")
    assert done.code == 0, done.err
    printed = list(home.glob("campaigns/*/reports/*/stdout"))
    assert [file.read_text() for file in printed] == [""] * 4
