"""A fake Cobalt as a place where campaigns are carried out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.fakes.machinery import Fake, write_json
from tests.fakes.place import FAKES, FakePlace

BIN = FAKES / "cobalt" / "bin"


class Cobalt(FakePlace):
    """The fake Cobalt."""

    scheduler_name, submits, lists, commands = "cobalt", "qsub", "qstat", "cobalt/bin"

    def crash(self) -> None:
        """The queue manager is killed and started again, with what it had saved."""
        subprocess.run([sys.executable, str(BIN.parent / "cqm.py"), "crash"], env=self.env, check=True)

    def cqm(self) -> dict[str, Any]:
        file = self.state / "cqm.json"
        return json.loads(file.read_text()) if file.exists() else {"jobs": {}, "next": 1}

    def is_now(self, job: str, **other: str) -> None:
        """As every fake's."""
        with Fake(self.state, {}).locked():
            cqm = self.cqm()
            cqm["jobs"][job] |= {{"name": "jobname", "owner": "user"}[key]: value for key, value in other.items()}
            write_json(self.state / "cqm.json", cqm)

    def listed(self, campaign: str) -> dict[tuple[str, str], int]:
        """How many tasks each job has, by its name and id, as their .cobaltlog files say."""
        del campaign  # nobody else uses it
        found: dict[tuple[str, str], int] = {}
        for file in self.work.rglob("*.cobaltlog"):
            for line in file.read_text().splitlines():
                if line.startswith("Jobid: "):
                    found[file.stem, line.removeprefix("Jobid: ")] = 1
        return found
