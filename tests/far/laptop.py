"""A folder with a recipe and a sites file, from which commands go to a site behind `far`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.laptop import LaptopWithoutNsys

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


class Laptop(LaptopWithoutNsys):
    """Such a folder.

    Args:
        far: The way to the site, and its orders.
        site: The site.
        folder: The folder.
        recipe: What recipe.yaml holds.
        profilers: The site's key, as YAML.
    """

    def __init__(self, far: Far, site: Site, folder: Path, recipe: str, profilers: str = "{}") -> None:
        super().__init__(folder, far.environment)
        self.far = far
        (folder / "recipe.yaml").write_text(recipe)
        keys = far.site.replace("}, scratch", "}\n    scratch")
        text = SITES.replace("SITE", keys, 1).replace("SCHEDULER", site.scheduler).replace("PROFILERS", profilers)
        (folder / "sites.yaml").write_text(text)

    def finish(self, *words: str) -> Path:
        """Carry out a command (by default the recipe), and resume as often as the connection wants."""
        words = words or ("run", "recipe.yaml", *AT, "--yes")
        for _ in range(12):
            done = self.nsw(*words)
            if done.returncode == 0:
                break
            words = ("resume", "--root", "campaigns") if (self.work / "campaigns").exists() else words
        assert done.returncode == 0, (done.stdout + done.stderr, self.far.faults())
        return self.folder
