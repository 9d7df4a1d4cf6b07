"""Which version of the program each run of a campaign was done with.

`retry --update-app` and `run --into` copy the program again, so that one campaign can hold runs of several versions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.campaign import ledger_rows
from nsw.campaign.ledger_rows import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the program.

    Attributes:
        files: The application's files by name, with their SHA-256.
        build: Counts the builds of these same files with different commands, from 0.
        since: When the campaign copied it, in Unix seconds.
        runs: The runs that have it.
    """

    files: Mapping[str, str]
    build: int
    since: float
    runs: tuple[RunRow, ...]


def record(ledger: Ledger, home: Path, app: str, jobs: Iterable[str], *, copied: bool) -> None:
    """Write down which version the jobs run that are added now; to be called before APP_FOLDER changes.

    Args:
        ledger: The campaign's open ledger.
        home: The campaign's folder.
        app: The folder of the program's files in it, for these jobs.
        jobs: Names of the jobs.
        copied: Whether the program was copied again.
    """
    known = ledger.meta(ledger_rows.VERSIONS)
    if not known:
        known = [(_hashes(home / ledger.meta(ledger_rows.APP_FOLDER)), 0, ledger.created(), [])]
    if copied:
        files, (before, build, _, _) = _hashes(home / app), known[-1]
        # with the same files the command that builds them is a different one
        known.append((files, build + 1 if files == before else 0, time.time(), list(jobs)))
    else:
        known[-1][3].extend(jobs)
    ledger.set_meta(ledger_rows.VERSIONS, known)


def _hashes(folder: Path) -> dict[str, str]:
    from nsw.campaign.recipe_lock import files_in, hash_of  # here: a read-only command loads nothing of recipes

    return {name: hash_of(file) for file, name in files_in(folder, "")}


def versions_of(ledger: Ledger, runs: Sequence[RunRow]) -> list[Version]:
    """The versions of the program, the oldest first, with their runs; none where it was never copied again.

    Files that are as they once were are the version that they were then.
    """
    known = ledger.meta(ledger_rows.VERSIONS)
    of_job = {job: n for n, (_, _, _, jobs) in enumerate(known) for job in jobs}
    found: dict[tuple[Any, ...], Version] = {}
    for n, (files, build, since, _) in enumerate(known):
        key = (*sorted(files.items()), build)
        mine = tuple(run for run in runs if of_job.get(run.job, 0) == n)
        before = found.pop(key, None)  # the newest comes last
        found[key] = Version(files, build, before.since if before else since, (*(before.runs if before else ()), *mine))
    return list(found.values())


def done_versions(ledger: Ledger, runs: Sequence[RunRow]) -> list[Version]:
    """The versions that have runs which are done, with these runs."""
    made = [
        Version(one.files, one.build, one.since, tuple(run for run in one.runs if run.state is State.DONE))
        for one in versions_of(ledger, runs)
    ]
    return [one for one in made if one.runs]
