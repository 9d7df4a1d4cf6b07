"""The last line that each running program printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.campaign.collect import run_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.ledger_rows import RunRow
    from nsw.transport.model import Transport

_BYTES: Final = 2048
_LONGEST: Final = 200  # characters
_SECONDS: Final = 30.0
MOST: Final = 16  # runs that are asked about
_BREAK: Final = re.compile(r"[\r\n]+")


def last_lines(transport: Transport, scratch: str, runs: Sequence[RunRow]) -> dict[str, str]:
    """The last line of each of these runs that printed one, by its id; bounded, and not yet safe for a terminal.

    A site that does not answer gives none: this is for looking only.
    """
    files = {run.id: f"{run_folder(scratch, run.id, run.attempt)}/stdout" for run in runs[:MOST] if run.attempt}
    found = {}
    for id_, text in zip(files, _ends(transport, list(files.values())), strict=True):
        lines = [line.strip() for line in _BREAK.split(text) if line.strip()]
        if lines:
            found[id_] = lines[-1][:_LONGEST]
    return found


def _ends(transport: Transport, files: Sequence[str]) -> list[str]:
    """The ends of files; empty where one is not there."""
    if not transport.remote:  # where runs are measured no process is started for it
        return [(transport.tail(file, _BYTES) or b"").decode(errors="replace") for file in files]
    commands = [["tail", "-c", str(_BYTES), "--", file] for file in files]
    return [done.stdout if done.returncode == 0 else "" for done in transport.run_many(commands, timeout=_SECONDS)]
