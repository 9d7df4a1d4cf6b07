"""Which batch systems there are, which of them a machine has, and from a site's data to its scheduler."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from nsw.errors import NotYetError
from nsw.site.names import LOCAL, SUBMITS, adapter_path, schedulers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

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
    adapter: Adapter = resolve_name(path)()
    return adapter


def batch_commands_here() -> list[str]:
    """The commands of batch systems that this machine has, such as sbatch."""
    commands = dict.fromkeys(map(_submit_command, schedulers()))
    return [command for command in commands if command is not None and shutil.which(command)]


def _submit_command(scheduler: str) -> str | None:
    """The command that submits to a batch system; None for this machine, which has none."""
    if scheduler in SUBMITS:
        return SUBMITS[scheduler]
    adapter = adapter_of(scheduler)
    return adapter.submit if adapter is not None else None


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a command is: a product, and the scheduler that drives it, empty where nsw has none for it."""

    product: str
    scheduler: str


def adapters() -> dict[str, Adapter]:
    """Every batch system that a sites file may name."""
    return {name: adapter for name in schedulers() if (adapter := adapter_of(name)) is not None}


def commands() -> set[str]:
    """The commands whose presence says something."""
    return {command for adapter in adapters().values() for command in (adapter.submit, adapter.known_by) if command}


def is_shared(adapter: Adapter) -> bool:
    """Whether another system has a command of the same name as this one's for submission."""
    other_adapters = (
        other_adapter for other_adapter in adapters().values() if type(other_adapter) is not type(adapter)
    )
    return bool(adapter.relatives) or any(other_adapter.submit == adapter.submit for other_adapter in other_adapters)


def schedulers_of_commands(present_commands: Collection[str]) -> list[str]:
    """The schedulers whose command for submission is among these, those first that no other system could have.

    Slurm's package brings a qsub of its own, so a command that several systems have counts only where it is alone. Of
    those that share it one is certain whose `known_by` is there.
    """
    candidates = {name: adapter for name, adapter in adapters().items() if adapter.submit in present_commands}
    unshared = [name for name, adapter in candidates.items() if not is_shared(adapter)]
    return (
        unshared
        or [name for name, adapter in candidates.items() if adapter.known_by in present_commands]
        or list(candidates)
    )


def owner_of(submit: str, printed: str) -> Owner | None:
    """Whose command for submission prints this when it is asked for its version; None where that cannot be told."""
    signs = [
        (Owner(product, owner_name), sign)
        for name, adapter in adapters().items()
        if adapter.submit == submit
        for signs_of, owner_name in ((adapter.products, name), (adapter.relatives, ""))
        for product, sign in signs_of.items()
    ]
    signs.sort(key=lambda sign: not sign[0].scheduler)  # what nsw drives before what only looks like it
    return next((owner for owner, sign in signs if re.search(sign, printed, re.IGNORECASE | re.MULTILINE)), None)


def with_login_node(jobs: Scheduler, place_of: Callable[[str], str]) -> Scheduler:
    """A site's scheduler, and beside it the node where its commands are run, for tasks that are done there.

    Args:
        jobs: The site's scheduler, as `create` made it; one that is no batch system is given back as it is.
        place_of: Where the tasks of a job are done: job or login.
    """
    from nsw.schedulers.batch import ON_LOGIN, BatchScheduler, Limits, LoginAndJobs
    from nsw.schedulers.local import Host

    if not isinstance(jobs, BatchScheduler):
        return jobs
    return LoginAndJobs(jobs, jobs.for_adapter(Host(), Limits(in_flight=ON_LOGIN, array=1)), place_of)


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
        from nsw.schedulers.local import Host

        adapter = Host(limits.get("cpu_runs") or 1)  # `local` means that machine, and never this one
    if adapter is None:
        from nsw.schedulers.local import LocalScheduler, detect

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
        has_folder=True,  # nsw/engine/handover.py makes it with the campaign's
        say=say,
    )
