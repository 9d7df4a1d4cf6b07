"""A place where campaigns are carried out on a fake batch system: a folder to work in, and one with the fake's state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.exits import with_exit
from tests.fakes.machinery import write_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FAKES = Path(__file__).parent
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@dataclass(frozen=True)
class FakePlace:
    """A subclass names its system, the commands that submit and list, and the folder of its commands in tests/fakes."""

    work: Path
    state: Path
    scheduler_name: ClassVar[str]
    submits: ClassVar[str]
    lists: ClassVar[str]
    commands: ClassVar[str]

    @property
    def variables(self) -> Mapping[str, str]:
        """What its commands need."""
        path = f"{FAKES / self.commands}{os.pathsep}{os.environ['PATH']}"
        name = f"NSW_FAKE_{self.scheduler_name.upper()}"
        return {name: str(self.state), "NSW_FAKE_PYTHON": sys.executable, "PATH": path}

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "COLUMNS": "160"}

    def argv(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        """Start nsw."""
        argv = (sys.executable, "-m", "nsw", *words)
        return subprocess.Popen(argv, env=self.env | env, cwd=self.work, **QUIET)

    def nsw(self, *words: str, exits: int | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run nsw to its end."""
        return with_exit(self._run((sys.executable, "-m", "nsw", *words), self.env | env), exits)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the batch system."""
        return self._run(words, self.env)

    def _run(self, words: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False, cwd=self.work)

    def settings(self, **values: object) -> None:
        """Change how the fake behaves; its server, which reads the file at any moment, never sees half of it."""
        write_json(self.state / "settings.json", values)

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong: tests/fakes/machinery.py says how."""
        folder = self.state / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")

    def is_now(self, job: str, **other: str) -> None:
        """An id is another job's now: its `name`, its `owner`."""
        change(self.state / "jobs" / job / "job.json", other)


def change(file: Path, other: Mapping[str, object]) -> None:
    """Change values of a file of a fake."""
    part = file.with_suffix(".other")
    part.write_text(json.dumps(json.loads(file.read_text()) | other))
    part.replace(file)


class Slurm(FakePlace):
    """The fake Slurm."""

    scheduler_name, submits, lists, commands = "slurm", "sbatch", "squeue", "bin"


class Sge(FakePlace):
    """The fake Grid Engine."""

    scheduler_name, submits, lists, commands = "sge", "qsub", "qstat", "sge/bin"

    def is_now(self, job: str, **other: str) -> None:
        """As every fake's."""
        change(self.state / f"job-{job}" / "job.json", other)


class Flux(FakePlace):
    """The fake Flux."""

    scheduler_name, submits, lists, commands = "flux", "flux", "flux jobs", "flux/bin"
