"""A fake PBS as a place where campaigns are carried out: its folder, its commands, what it says was submitted."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .double import Double


@dataclass(frozen=True)
class Pbs:
    """A folder to work in, with a fake PBS."""

    work: Path
    double: Double
    scheduler_name: ClassVar[str] = "pbs"
    submits: ClassVar[str] = "qsub"
    lists: ClassVar[str] = "qstat"

    @property
    def env(self) -> dict[str, str]:
        return os.environ | self.double.env | {"COLUMNS": "160"}

    def argv(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def start(self, *words: str) -> subprocess.Popen[str]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(words, env=self.env, text=True, cwd=self.work, stdout=quiet, stderr=quiet)

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (sys.executable, "-m", "nsw", *words), env=self.env, capture_output=True, text=True, check=False, cwd=self.work
        )  # fmt: skip

    def listed(self, campaign: str) -> dict[tuple[str, str], int]:
        """How many tasks each job has, by its name and id, as the server knows them."""
        del campaign  # nobody else uses it
        return {(name, str(seq)): tasks for seq, name, tasks in self.double.control("_jobs")["jobs"]}
