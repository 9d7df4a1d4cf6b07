"""The demo's campaign, made once: what `nsw run recipes/alexnet_scaling.yaml --site demo` leaves and prints."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.exits import with_exit

RECIPE = Path(__file__).parents[2] / "recipes" / "alexnet_scaling.yaml"


@dataclass(frozen=True)
class Demo:
    root: Path
    folder: Path
    stdout: str
    stderr: str
    returncode: int

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        return with_exit(nsw(self.root, *words), exits)


def nsw(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NSW_ROOT": str(root), "COLUMNS": "160"}
    return subprocess.run(
        [sys.executable, "-m", "nsw", *words], capture_output=True, text=True, env=environment, check=False, cwd=root
    )


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> Demo:
    root = tmp_path_factory.mktemp("campaigns of the demo")
    done = nsw(root, "run", str(RECIPE), "--site", "demo")
    folders = [p for p in root.iterdir() if p.is_dir()]
    return Demo(root, folders[0], done.stdout, done.stderr, done.returncode)
