"""`nsw fetch`: files of runs that were left on the site, such as reports for NVIDIA's own programs."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.collect import run_folder
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import Ledger
from nsw.campaign.meta import SCRATCH
from nsw.campaign.selecting import needed, selected
from nsw.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.selecting import Selection

# what Nsight Systems, Nsight Compute and the Visual Profiler open
GUI_FILES = ("*.nsys-rep", "*.qdrep", "*.ncu-rep", "*.nvvp")


def fetch(
    runs: Sequence[str],
    patterns: Sequence[str],
    campaign: str | None,
    root: Path | None,
    yes: bool,
    selection: Selection,
) -> int:
    """Bring files of runs into the campaign's folder `fetched`; their sizes are shown first.

    Raises:
        UsageError: No run has such a name, or nobody said yes.
        UnreachableError: The site cannot be reached.
    """
    from nsw.present.terminal import plural
    from nsw.present.text_of_others import say
    from nsw.transport.create import connect

    folder = folders.find(folders.root(root), campaign)
    with Ledger(folder.ledger, read_only=True) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        rows = selected(ledger, ledger.runs(), selection)
        jobs = job_ids(ledger, rows)
    if runs:
        meant = {row.id for name in runs for row in needed("nsw fetch", name, rows, jobs)}
        rows = [row for row in rows if row.id in meant]
    chosen = [row for row in rows if row.attempt]
    if not chosen:
        raise UsageError("none of these runs has begun", hint="`nsw status --runs` lists them")
    wanted = tuple(patterns) or GUI_FILES
    with closing(connect(site)) as transport:
        homes = {run_folder(scratch, row.id, row.attempt): row.id for row in chosen}
        listed = transport.list_many(dict.fromkeys(homes, wanted))
        files = [
            (f"{home}/{entry.name}", folder.path / "fetched" / homes[home] / entry.name, entry.size)
            for home, entries in listed.items()
            for entry in entries
        ]
        missing = [(there, here) for there, here, size in files if not here.exists() or here.stat().st_size != size]
        total = sum(size for there, here, size in files if (there, here) in missing)
        for there, _, size in files[:_SHOWN]:
            say(f"{_size(size):>12}  {there.removeprefix(scratch + '/runs/')}", file=sys.stderr)
        if len(files) > _SHOWN:
            say(f"{'':12}  and {len(files) - _SHOWN} more", file=sys.stderr)
        if not missing:
            say(f"{plural(len(files), 'file')}, all of them here", file=sys.stderr)
            return Exit.GOOD
        _confirm(f"{plural(len(missing), 'file')}, {_size(total)}", yes)
        transport.get_many(missing)
    say(str(folder.path / "fetched"))
    return Exit.GOOD


_SHOWN = 20


def _size(number: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.1f} {unit}" if unit != "B" else f"{number} B"
        number /= 1024  # type: ignore[assignment]
    return f"{number:.1f} GiB"


def _confirm(what: str, yes: bool) -> None:
    if yes or not sys.stdin.isatty():
        return
    import typer

    if not typer.confirm(f"Bring {what}?", default=True, err=True):
        raise UsageError("nothing was brought")
