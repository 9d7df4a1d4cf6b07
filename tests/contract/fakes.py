"""Each fake batch system as a place where campaigns are carried out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pbs.double import Double

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAKES = Path(__file__).parents[1] / "fakes"
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# batch system -> its submission command and the folder with its commands; PBS has a server of its own
SYSTEMS = {
    "slurm": ("sbatch", "bin"), "cobalt": ("qsub", "cobalt/bin"), "lsf": ("bsub", "lsf/bin"), "sge": ("qsub", "sge/bin"),
}  # fmt: skip
# one job or task at a time: the others wait. Slurm, LSF and Grid Engine do an array's tasks one after the other
ONE_AT_A_TIME = {"cobalt": {"nodes": 1}, "pbs": {"node": {"ncpus": 1, "ngpus": 0, "mem": "8gb"}}}


@dataclass(frozen=True)
class FakePlace:
    """A folder to work in, and one with the state of a fake."""

    work: Path
    state: Path
    scheduler_name: str
    submits: str
    variables: Mapping[str, str]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "COLUMNS": "160"}

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen((sys.executable, "-m", "nsw", *words), env=self.env, cwd=self.work, **QUIET)

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "nsw", *words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=self.env, capture_output=True, text=True, check=False, cwd=self.work)

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong: tests/fakes/machinery.py says how."""
        folder = self.state / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")


@contextmanager
def fake(name: str, root: Path) -> Iterator[FakePlace]:
    """A fake in a folder of its own, quick where the real system takes seconds."""
    work, state = root / "w", root / name
    work.mkdir()
    if name == "pbs":
        with Double(state, kill_delay=0.3, mom_poll=0.2, retry_delivery=0.3) as double:
            double.settings(**ONE_AT_A_TIME["pbs"])
            yield FakePlace(work, state, name, "qsub", double.env)
        return
    state.mkdir()
    submits, commands = SYSTEMS[name]
    settings = ONE_AT_A_TIME.get(name, {}) | ({"kill_s": 0.3} if name == "cobalt" else {})
    (state / "settings.json").write_text(json.dumps(settings))
    variables = {
        f"NSW_FAKE_{name.upper()}": str(state), "NSW_FAKE_PYTHON": sys.executable,
        "PATH": f"{FAKES / commands}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    yield FakePlace(work, state, name, submits, variables)
