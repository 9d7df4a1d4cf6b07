"""What runs wrote about themselves on the site, read in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.judge_run_state import parse_status
from nsw.errors import UnreachableError
from nsw.transport.model import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.campaign.judge_run_state import Status
    from nsw.transport.model import Transport

_BYTES = 65536


def read_statuses(transport: Transport, homes: Iterable[str]) -> dict[str, Status | Unreadable | None]:
    """The status of each attempt by its folder: its end, else its claim; None before it began.

    Raises:
        UnreachableError: The site could not be asked.
    """
    folders = list(dict.fromkeys(homes))
    found = transport.read_many([f"{home}/{name}" for home in folders for name in ("status", "claim")], _BYTES)
    told: dict[str, Status | Unreadable | None] = {}
    for home in folders:
        ended, claim = found[f"{home}/status"], found[f"{home}/claim"]
        if isinstance(ended, Unreadable):
            told[home] = ended
        elif ended:
            told[home] = parse_status(ended)
        else:
            told[home] = claim if isinstance(claim, Unreadable) else parse_status(claim)
    return told


def read_status(transport: Transport, home: str) -> Status | None:
    """The status of one attempt.

    Raises:
        UnreachableError: It could not be told.
    """
    status = read_statuses(transport, [home])[home]
    if isinstance(status, Unreadable):
        raise UnreachableError(f"{home}/status cannot be read: {status.why}")
    return status
