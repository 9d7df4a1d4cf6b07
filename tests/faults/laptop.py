"""A person's machine without an nsys, from which whole `nsw` commands go to a site behind a real sshd."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from tests.laptop import LaptopWithoutNsys
from tests.remote.reduced import make_nsys, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from .distant import Distant

SITES = """
nsw: 1
sites:
  cluster:
    scheduler: SCHEDULER
    transport: {kind: KIND, host: far, config: 'CONFIG'}
    scratch: 'SCRATCH'
    profilers: {nsys: 'NSYS'}
    confirm_above: 100 node-hours
    limits: {lost_after: 20s, login_reductions: MOST}
"""


class Laptop(LaptopWithoutNsys):
    """With recipe and sites file; a command's errors are among what it prints.

    Args:
        it: The site.
        folder: An empty folder.
        text: The recipe.
        login_reductions: How many reports the login node reduces at most.
        export: What the site's nsys exports.
    """

    stderr = subprocess.STDOUT

    def __init__(
        self, it: Distant, folder: Path, text: str, login_reductions: int = 32, export: bytes | None = None
    ) -> None:
        super().__init__(folder)
        self.it = it
        self.nsys = make_nsys(it.folder / "nsight", export)
        folder.mkdir()
        (folder / "recipe.yaml").write_text(text)
        (folder / "prog.sh").write_text('echo "$1"')
        sites = SITES.replace("SCHEDULER", it.system.name).replace("KIND", it.kind).replace("NSYS", str(self.nsys))
        sites = sites.replace("CONFIG", str(it.server.config)).replace("SCRATCH", str(it.scratch))
        (folder / "sites.yaml").write_text(sites.replace("MOST", str(login_reductions)))

    def begin(self) -> subprocess.Popen[str]:
        """Begin the recipe's campaign."""
        return self.start("run", "recipe.yaml", "--site", "cluster", "--sites", "sites.yaml", "--yes")

    def run(self) -> None:
        """Carry the recipe out."""
        process = self.begin()
        said, _ = process.communicate()
        assert process.returncode == 0, said

    def resume(self) -> None:
        """Go on with it."""
        done = self.nsw("resume", "--root", "campaigns")
        assert done.returncode == 0, done.stdout

    def hold(self, *, on: bool = True) -> None:
        """Let exports wait, or go on."""
        held = self.nsys.parent / "held"
        held.touch() if on else held.unlink()

    def exports(self) -> int:
        """How many exports have begun."""
        return verbs(self.nsys).count("export")


def kill(process: subprocess.Popen[str]) -> None:
    """End an nsw as a power cut does."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
