"""What a campaign was measured on and with, for comparisons and for the page of an answer."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from nsw.analysis.comparable import CHIP, COMMIT, FILES
from nsw.campaign.tables import lazily

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.summarize import Results
    from nsw.recipe.model import LockedGit, Recipe

__all__ = ["measured_conditions", "of_program"]


def measured_conditions(folder: CampaignFolder, results: Results, recipe: Recipe) -> dict[str, str]:
    """What the campaign was measured on, as far as its lock, ledger and tables say."""
    lock = recipe.lock
    hosts = sorted({run.host for run in results.runs if run.host})
    command = recipe.app.command
    conditions = {"site": results.site, "command": command if isinstance(command, str) else shlex.join(command)}
    if hosts and not results.is_recorded:
        conditions["nodes"] = ", ".join(hosts)
    resources = recipe.resources
    conditions["layout"] = f"{resources.nodes} nodes, {resources.gpus} GPUs, {recipe.app.launcher.kind}"
    if lock is not None:
        conditions |= {"nsw": lock.version, **({} if results.is_recorded else lock.tools | lock.machine)}
        conditions |= of_program(lock.git, lock.files)
    chips = {row["text"] for row in lazily(folder, "facts") if row["key"] == "gpu_name" and row.get("text")}
    if chips:
        conditions[CHIP] = " | ".join(sorted(chips))
    return {name: value for name, value in conditions.items() if value}


def of_program(git: LockedGit | None, files: Mapping[str, str]) -> dict[str, str]:
    """The program's commit and its files."""
    conditions = {} if git is None else {COMMIT: git.commit[:12] + (" with changes" if git.dirty else "")}
    if files:
        conditions[FILES] = "\n".join(f"{name}={digest}" for name, digest in sorted(files.items()))
    return conditions
