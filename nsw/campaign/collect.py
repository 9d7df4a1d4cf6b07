"""A run's files on the site -> the campaign's folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import RunRow
    from nsw.transport.model import Transport

_CLAIM = "claim"
AGAIN = "again"  # a line for each other job that found the run claimed
KEPT_FILES = ("stdout", "stderr", _CLAIM, "status", "after.log", AGAIN)


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """Where an attempt of a run stands on the site."""
    return f"{scratch}/runs/{run}/attempt-{attempt}"


def collect(
    folder: CampaignFolder, transport: Transport, scratch: str, runs: Sequence[RunRow], *, everything: bool = False
) -> None:
    """Bring the reports and the output of runs; those of earlier attempts move aside.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
    """
    sources = {run_folder(scratch, run.id, run.attempt): run for run in runs}
    more = ("*",) if everything else ()
    listed = transport.list_many({source: (*run.reports, *KEPT_FILES, *more) for source, run in sources.items()})
    wanted: list[tuple[str, Path]] = []
    for source, run in sources.items():
        target = folder.reports / run.id
        if run.attempt > 1:
            _set_aside(target, run.attempt)
        # which attempt the files are of stands in its claim: brought first, in case nsw is killed in between
        entries = sorted(listed[source], key=lambda entry: entry.name != _CLAIM)
        wanted += [(f"{source}/{entry.name}", target / entry.name) for entry in entries]
    transport.get_many(wanted)


def brought_folder(folder: CampaignFolder, run: str, attempt: int) -> Path | None:
    """Where the files of an attempt were brought to; None where they were not."""
    target = folder.reports / run
    return next((one for one in (target, target / f"attempt-{attempt}") if attempt_of(one) == attempt), None)


def started_again(folder: CampaignFolder, run: str) -> str | None:
    """Which other jobs started a run that was claimed already, as a sentence; None for none."""
    lines = (read_tail(folder.reports / run / AGAIN) or b"").decode(errors="replace").split()
    jobs = list(dict.fromkeys(lines))
    return f"job {', '.join(jobs)} started it a second time and left it alone" if jobs else None


def _set_aside(target: Path, attempt: int) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    number = attempt_of(target)
    if not old or number == attempt:  # an nsw that was killed had begun to bring this one
        return
    if number is None:
        number = 1
        while (target / f"attempt-{number}").exists():
            number += 1
    aside = target / f"attempt-{number}"
    aside.mkdir(exist_ok=True)
    for file in sorted(old, key=lambda file: file.name == _CLAIM):
        file.rename(aside / file.name)


def attempt_of(target: Path) -> int | None:
    """Which attempt the files in a run's folder here are of, by the claim among them."""
    claim = read_tail(target / _CLAIM) or b""
    found = re.search(rb"^attempt=(\d+)$", claim, re.MULTILINE)
    return int(found[1]) if found else None


def read_tail(path: Path, limit: int = 4096) -> bytes | None:
    """The last bytes of a collected file; None when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            return file.read(limit)
    except OSError:
        return None
