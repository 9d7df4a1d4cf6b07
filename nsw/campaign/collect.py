"""A run's files on the site -> the campaign's folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import RunRow
    from nsw.transport.model import Transport

_CLAIM = "claim"
KEPT_FILES = ("stdout", "stderr", _CLAIM, "status", "after.log")


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """Where an attempt of a run stands on the site."""
    return f"{scratch}/runs/{run}/attempt-{attempt}"


def collect(folder: CampaignFolder, transport: Transport, scratch: str, run: RunRow) -> None:
    """Bring a run's reports and its output; an earlier attempt's move aside."""
    source = run_folder(scratch, run.id, run.attempt)
    target = folder.reports / run.id
    if run.attempt > 1:
        _set_aside(target, run.attempt)
    names = transport.glob(source, (*run.reports, *KEPT_FILES))
    # which attempt the files are of stands in its claim: brought first and moved last, in case nsw is killed in between
    for name in sorted(names, key=lambda name: name != _CLAIM):
        transport.get(f"{source}/{name}", target / name)


def _set_aside(target: Path, attempt: int) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    number = _attempt_of(target)
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


def _attempt_of(target: Path) -> int | None:
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
