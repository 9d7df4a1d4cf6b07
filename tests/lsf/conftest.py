"""A fake LSF for each test, and campaigns on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


class Lsf(FakePlace):
    """The fake LSF; nsw must clear what a user's environment says to its commands."""

    scheduler_name, submits, lists, commands = "lsf", "bsub", "bjobs", "lsf/bin"

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"LSB_DEFAULTQUEUE": "nosuch", "BSUB_QUIET": "y"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run(words, {n: value for n, value in self.env.items() if not n.startswith(("LSB_", "BSUB_"))})

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
def lsf(tmp_path: Path) -> Lsf:
    place = Lsf(tmp_path / "w", tmp_path / "lsf")
    place.work.mkdir()
    place.state.mkdir()
    return place
