"""A fake LSF for each test, and campaigns on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

FAKE = Path(__file__).parents[1] / "fakes" / "lsf" / "bin"


@dataclass(frozen=True)
class Place:
    """A folder to work in, with the fake's state in `state`."""

    work: Path
    state: Path
    scheduler_name: ClassVar[str] = "lsf"

    @property
    def env(self) -> dict[str, str]:
        return os.environ | {
            "NSW_FAKE_LSF": str(self.state), "NSW_FAKE_PYTHON": sys.executable, "COLUMNS": "160",
            "PATH": f"{FAKE}{os.pathsep}{os.environ['PATH']}", "LSB_DEFAULTQUEUE": "nosuch", "BSUB_QUIET": "y",
        }  # fmt: skip

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, "-m", "nsw", *words)
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False, cwd=self.work)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in self.env.items() if not name.startswith(("LSB_", "BSUB_"))}
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False, cwd=self.work)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen((sys.executable, "-m", "nsw", *words), env=self.env, cwd=self.work, **quiet)

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong: tests/fakes/machinery.py says how."""
        folder = self.state / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")

    def jobs(self) -> list[dict[str, object]]:
        return [json.loads(p.read_text()) for p in sorted(self.state.glob("jobs/*/job.json"))]

    def element(self, job: int, index: int, **changed: object) -> None:
        """Change what LSF knows of an element."""
        file = self.state / "jobs" / str(job) / f"{index}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changed))

    def forget(self, job: int) -> None:
        """bjobs does not know it any more; bhist does."""
        file = self.state / "jobs" / str(job) / "job.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"listed": False}))


@pytest.fixture
def lsf(tmp_path: Path) -> Place:
    place = Place(tmp_path / "w", tmp_path / "lsf")
    place.work.mkdir()
    place.state.mkdir()
    return place
