"""`nsw fetch`: show what runs left on the site, ask, bring it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.errors import Exit, UsageError
from nsw.present.text_of_others import say
from nsw.service.fetching import on_site
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.selecting import Selection


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
    folder = folders.find(folders.root(root), campaign)
    with on_site(folder, runs, patterns, selection) as found:
        for file in found.files[:_SHOWN]:
            say(f"{_size(file.size):>12}  {file.name}", file=sys.stderr)
        if len(found.files) > _SHOWN:
            say(f"{'':12}  and {len(found.files) - _SHOWN} more", file=sys.stderr)
        missing = found.missing
        if not missing:
            say(f"{plural(len(found.files), 'file')}, all of them here", file=sys.stderr)
            return Exit.GOOD
        _confirm(f"{plural(len(missing), 'file')}, {_size(sum(file.size for file in missing))}", yes)
        found.bring()
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
