"""A fake Cobalt as a place where campaigns are carried out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

BIN = Path(__file__).parents[1] / "fakes" / "cobalt" / "bin"


@dataclass(frozen=True)
class Cobalt:
    """A folder to work in, and one with the state of a fake Cobalt."""

    work: Path
    state: Path
    scheduler_name: ClassVar[str] = "cobalt"
    submits: ClassVar[str] = "qsub"
    lists: ClassVar[str] = "qstat"

    @property
    def env(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        ours = {"NSW_FAKE_COBALT": str(self.state), "NSW_FAKE_PYTHON": sys.executable, "COLUMNS": "160"}
        return os.environ | ours | {"PATH": path}

    def settings(self, **values: object) -> None:
        (self.state / "settings.json").write_text(json.dumps(values))

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong."""
        folder = self.state / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")

    def argv(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(words, env=self.env | env, text=True, cwd=self.work, stdout=quiet, stderr=quiet)

    def nsw(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (sys.executable, "-m", "nsw", *words), env=self.env | env, capture_output=True, text=True, check=False,
            cwd=self.work,
        )  # fmt: skip

    def cobalt(self, *words: str) -> str:
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, check=False, cwd=self.work)
        return done.stdout

    def crash(self) -> None:
        """The queue manager is killed and started again, with what it had saved."""
        subprocess.run([sys.executable, str(BIN.parent / "cqm.py"), "crash"], env=self.env, check=True)

    def cqm(self) -> dict[str, Any]:
        file = self.state / "cqm.json"
        return json.loads(file.read_text()) if file.exists() else {"jobs": {}, "next": 1}

    def listed(self, campaign: str) -> dict[tuple[str, str], int]:
        """How many tasks each job has, by its name and id, as their .cobaltlog files say."""
        del campaign  # nobody else uses it
        found: dict[tuple[str, str], int] = {}
        for file in self.work.rglob("*.cobaltlog"):
            for line in file.read_text().splitlines():
                if line.startswith("Jobid: "):
                    found[file.stem, line.removeprefix("Jobid: ")] = 1
        return found
