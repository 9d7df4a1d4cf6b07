"""From a site's data, as a campaign keeps it, to its scheduler."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from nsw.errors import NotYetError
from nsw.site.scheduler_and_transport_names import LOCAL, SUBMITS, adapter_path, schedulers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.schedulers.adapter import Adapter
    from nsw.schedulers.model import Scheduler
    from nsw.transport.commands import Fence
    from nsw.transport.model import Transport

_LOST_AFTER = "2m"


def adapter_of(scheduler: str) -> Adapter | None:
    """The adapter of a batch system; None for this machine, which has none.

    Raises:
        NotYetError: This version does not know it.
    """
    if scheduler == LOCAL:
        return None
    path = adapter_path(scheduler)
    if path is None:
        raise NotYetError(f"scheduler {scheduler}: not yet")
    found: Adapter = resolve_name(path)()
    return found


def batch_commands_here() -> list[str]:
    """The commands of batch systems that this machine has, such as sbatch."""
    import shutil

    commands = dict.fromkeys(map(_submits, schedulers()))
    return [command for command in commands if command is not None and shutil.which(command)]


def _submits(scheduler: str) -> str | None:
    """The command that submits to a batch system; None for this machine, which has none."""
    if scheduler in SUBMITS:
        return SUBMITS[scheduler]
    adapter = adapter_of(scheduler)
    return adapter.submit if adapter is not None else None


def with_login_node(jobs: Scheduler, place_of: Callable[[str], str]) -> Scheduler:
    """A site's scheduler, and beside it the node where its commands are run, for tasks that are done there.

    Args:
        jobs: The site's scheduler, as `create` made it; one that is no batch system is given back as it is.
        place_of: Where the tasks of a job are done: job or login.
    """
    from nsw.schedulers.batch import BatchScheduler, Limits
    from nsw.schedulers.batch_and_login_node import ON_LOGIN, Places
    from nsw.schedulers.host import Host

    if not isinstance(jobs, BatchScheduler):
        return jobs
    return Places(jobs, jobs.beside(Host(), Limits(in_flight=ON_LOGIN, array=1)), place_of)


def create(
    site: Mapping[str, Any],
    transport: Transport,
    scratch: str,
    campaign: str,
    say: Callable[[str], object] = lambda _text: None,
    fence: Fence | None = None,
) -> Scheduler:
    """The scheduler of a site.

    Args:
        site: The site as data, defaults left out or not.
        transport: The way to it.
        scratch: The campaign's folder there.
        campaign: The campaign's id.
        say: Prints a line for the user.
        fence: Around commands that change something there.

    Raises:
        NotYetError: This version does not know it.
    """
    limits = site.get("limits") or {}
    adapter = adapter_of(site.get("scheduler", LOCAL))
    if adapter is None and transport.remote:
        from nsw.schedulers.host import Host

        adapter = Host(limits.get("cpu_runs") or 1)  # `local` means that machine, and never this one
    if adapter is None:
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
    from nsw.recipe.units import parse_duration
    from nsw.schedulers.batch import BatchScheduler, Limits

    return BatchScheduler(
        adapter,
        transport,
        scratch,
        campaign,
        Limits(
            in_flight=limits.get("max_in_flight") or 20,
            array=limits.get("max_array") or 1000,
            lost_after_s=parse_duration(limits.get("lost_after") or _LOST_AFTER),
        ),
        fence=fence,
        has_folder=True,  # nsw/campaign/private_folder.py makes it with the campaign's
        say=say,
    )
