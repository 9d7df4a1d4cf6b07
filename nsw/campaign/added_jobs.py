"""Adding to a campaign that there is already: jobs with scripts of their own, and the program copied again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.campaign import ledger_meta_keys, program_versions
from nsw.campaign.start import copy_files, write_scripts
from nsw.errors import UsageError
from nsw.plan.jobs import APP
from nsw.resources import reducer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.plan.model import Job, Part, Plan
    from nsw.transport.model import Transport

TOOLS: Final = "tools"  # folder of nsw's own programs in the campaign's on the site


def part_of(ledger: Ledger, runs: Iterable[str], *, new_app: bool, time_s: int | None = None) -> Part:
    """The next part of a campaign.

    Args:
        ledger: The campaign's open ledger.
        runs: The ids of the runs that it holds.
        new_app: Whether the program is copied again, into a folder of its own: runs in flight keep theirs.
        time_s: A time limit of its runs instead of the recipe's, in seconds.
    """
    from nsw.plan.model import Part

    number = ledger.meta(ledger_meta_keys.PARTS) + 2
    app = f"{APP}-{number}" if new_app else ledger.meta(ledger_meta_keys.APP_FOLDER)
    return Part(number, frozenset(runs), app, frozenset(build.app for build in ledger.builds()), time_s)


def add(
    folder: CampaignFolder,
    ledger: Ledger,
    transport: Transport,
    part: Part,
    plan: Plan,
    render: Callable[[Job, str, str], str],
    files: Iterable[tuple[str, str]] | None,
) -> None:
    """Put a part's scripts and files here and on the site, then its jobs into the ledger, all or nothing.

    A campaign of which nothing is on its site (it was cleaned, or never began) gets the part here alone: whoever drives
    it sends everything before the first submission.

    Args:
        folder: The campaign's folder, whose lock this process holds.
        ledger: Its ledger.
        transport: The way to the site.
        part: Which part.
        plan: The plan of the part alone.
        render: The script of a job for a campaign's id and its folder on the site.
        files: The application's files, where they are copied again.

    Raises:
        CampaignError: A file cannot be copied.
        UnreachableError, CommandError: They could not be brought to the site.
    """
    scratch = ledger.meta(ledger_meta_keys.SCRATCH)
    staged: list[tuple[Path, str]] = []
    if files is not None:
        here = folder.path / part.app
        shutil.rmtree(here, ignore_errors=True)  # of an nsw that was killed here
        here.mkdir()
        copy_files(files, here)
        apps = [build.runs[0].app for build in plan.builds] or [part.app]
        staged += [(here, f"{scratch}/{app}") for app in apps] if any(here.iterdir()) else []
    elif plan.builds:  # for parameters that had no build yet
        here = folder.path / part.app
        staged += [(here, f"{scratch}/{build.runs[0].app}") for build in plan.builds] if any(here.iterdir()) else []
    scripts = write_scripts(folder, plan, lambda job: render(job, folder.id, scratch))
    staged += [(script, f"{scratch}/scripts/{script.name}") for script in scripts[: None if transport.remote else 1]]
    if plan.reductions:
        staged.append(reducer_to(scratch))
    if ledger.meta(ledger_meta_keys.PREPARED):
        if staged:
            transport.stage(staged)
        transport.make_folders([f"{scratch}/{build.runs[0].app}" for build in plan.builds])
    with ledger.transaction():
        ledger.add_part(plan)
        names = [job.name for job in plan.jobs]
        program_versions.record(ledger, folder.path, part.app, names, copied=files is not None)
        ledger.set_meta(ledger_meta_keys.PARTS, part.number - 1)
        ledger.set_meta(ledger_meta_keys.APP_FOLDER, part.app)


def reducer_to(scratch: str) -> tuple[Path, str]:
    """The file that reduces reports, and where the scripts of reductions look for it in the folder there."""
    return reducer(), f"{scratch}/{TOOLS}/reduce_export.py"


def sources_of(ledger: Ledger) -> list[tuple[str, str]]:
    """Where the application's files came from, each with its name beside the program.

    Raises:
        UsageError: The campaign copied none, or one is gone.
    """
    recipe = ledger.meta(ledger_meta_keys.RECIPE)
    sources = [Path(source) for source, _ in ledger.meta(ledger_meta_keys.ORIGINS) if source != recipe]
    if not sources:
        raise UsageError(
            "the recipe lists no program files (app.files), so there is nothing to copy again",
            hint="leave out --update-app: a program that the command finds itself always runs as it is now",
        )
    for source in sources:
        if not source.exists():
            raise UsageError(f"{source} no longer exists, and the program was copied from it")
    return [(str(source), source.name) for source in sources]
