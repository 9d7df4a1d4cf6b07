"""A folder with a recipe and a sites file, from which commands go to a site behind `far`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Far
    from .staged import Site

SITES = """
nsw: 1
sites:
  cluster:
    SITE
    scheduler: SCHEDULER
    profilers: PROFILERS
    confirm_above: 100 node-hours
    limits: {lost_after: 20s}
"""
AT = ("--site", "cluster", "--sites", "sites.yaml")


class Laptop:
    """Such a folder, on a machine without an nsys.

    Args:
        far: The way to the site, and its orders.
        site: The site.
        folder: The folder.
        recipe: What recipe.yaml holds.
        profilers: The site's key, as YAML.
    """

    def __init__(self, far: Far, site: Site, folder: Path, recipe: str, profilers: str = "{}") -> None:
        self.far, self.work = far, folder
        (folder / "recipe.yaml").write_text(recipe)
        keys = far.site.replace("}, scratch", "}\n    scratch")
        text = SITES.replace("SITE", keys, 1).replace("SCHEDULER", site.scheduler).replace("PROFILERS", profilers)
        (folder / "sites.yaml").write_text(text)

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command, and what it printed."""
        environment = os.environ | self.far.environment | {"NSW_NSYS": "/nowhere/nsys"}
        return subprocess.run(
            [sys.executable, "-m", "nsw", *words], cwd=self.work, env=environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def finish(self, *words: str) -> Path:
        """Carry out a command (by default the recipe), and resume as often as the connection wants."""
        words = words or ("run", "recipe.yaml", *AT, "--yes")
        for _ in range(12):
            done = self.nsw(*words)
            if done.returncode == 0:
                break
            words = ("resume", "--root", "campaigns") if (self.work / "campaigns").exists() else words
        assert done.returncode == 0, (done.stdout + done.stderr, self.far.faults())
        (folder,) = (path for path in (self.work / "campaigns").iterdir() if not path.name.startswith("."))
        return folder
