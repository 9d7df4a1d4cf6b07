"""From a site's data, as a campaign keeps it, to its scheduler."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nsw.errors import NotYetError
from nsw.site.registered import BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.schedulers import slurm
    from nsw.schedulers.dialect import Dialect
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport

    _slurm: Dialect = slurm  # mypy says what is missing in a module that should be one


def dialect_of(scheduler: str) -> Dialect | None:
    """The words of a batch system; None for this machine, which has none."""
    if scheduler not in BATCH:
        return None
    found: Any = import_module(BATCH[scheduler])
    return cast("Dialect", found)


def create(
    site: Mapping[str, Any],
    transport: Transport,
    scratch: str,
    campaign: str,
    say: Callable[[str], object] = lambda _text: None,
) -> Scheduler:
    """The scheduler of a site.

    Args:
        site: The site as data, defaults left out or not.
        transport: The way to it.
        scratch: The campaign's folder there.
        campaign: The campaign's id.
        say: Prints a line for the user.

    Raises:
        NotYetError: This version does not know it.
    """
    limits = site.get("limits") or {}
    match site.get("scheduler", "local"):
        case "local":
            from nsw.schedulers.gpus import detect
            from nsw.schedulers.local import LocalScheduler

            replayed = bool(site.get("replay"))
            return LocalScheduler(
                Path(scratch),
                parallel=limits.get("max_in_flight") or 1,
                gpus=[] if replayed else detect(),
                share_gpus=replayed,
                login_shell=bool(site.get("login_shell")),
                say=say,
            )
        case name if words := dialect_of(name):
            from nsw.schedulers.batch import BatchScheduler, Limits

            return BatchScheduler(
                words,
                transport,
                scratch,
                campaign,
                Limits(in_flight=limits.get("max_in_flight") or 20, array=limits.get("max_array") or 1000),
                say=say,
            )
        case other:
            raise NotYetError(f"scheduler {other}: not yet")
