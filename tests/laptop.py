"""A person's folder on a machine without an nsys, from which whole `nsw` commands go to a site elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, ClassVar

from tests.exits import with_exit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class LaptopWithoutNsys:
    """Such a folder.

    Args:
        work: The folder.
        environment: Variables of its commands, beside this process's.
    """

    stderr: ClassVar[int] = subprocess.PIPE  # subprocess.STDOUT: both streams as one

    def __init__(self, work: Path, environment: Mapping[str, str] | None = None) -> None:
        self.work = work
        self._environment = os.environ | (environment or {}) | {"NSW_NSYS": "/nowhere/nsys"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-m", "nsw", *words], cwd=self.work, env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.stderr,
        )  # fmt: skip

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        """A command, and what it printed."""
        process = self.start(*words)
        printed, errors = process.communicate()
        return with_exit(subprocess.CompletedProcess(words, process.returncode, printed, errors or ""), exits)

    @property
    def folder(self) -> Path:
        """The campaign's folder."""
        (found,) = (path for path in (self.work / "campaigns").iterdir() if not path.name.startswith("."))
        return found
