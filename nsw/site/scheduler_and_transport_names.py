"""The schedulers and transports that a sites file may name: a line each here, or an entry point of another package.

Another package registers with `[project.entry-points."nsw.schedulers"]` or `"nsw.transports"`; the values are as here.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from nsw.entry_points import registered

# batch system -> its nsw.schedulers.adapter.Adapter; its job script is templates/job/NAME.sh.j2
ADAPTERS: Final = {
    "slurm": "nsw.schedulers.slurm:Slurm",
    "pbs": "nsw.schedulers.pbs:Pbs",
    "cobalt": "nsw.schedulers.cobalt:Cobalt",
    "lsf": "nsw.schedulers.lsf:Lsf",
    "sge": "nsw.schedulers.sge:Sge",
}

# batch system -> its adapter's `submit`, which is looked for on PATH without loading an adapter; one may be left out
SUBMITS: Final = {"slurm": "sbatch", "pbs": "qsub", "cobalt": "qsub", "lsf": "bsub", "sge": "qsub"}

# kind of transport -> the function that gives a nsw.transport.model.Transport
TRANSPORTS: Final = {
    "local": "nsw.transport.local:connect",
    "ssh": "nsw.transport.ssh:connect",
    "openssh": "nsw.transport.openssh:connect",
}

FIRST_TRANSPORT: Final = "openssh"  # of a site elsewhere that `nsw init` writes

LOCAL: Final = "local"  # this machine, or the machine behind a transport, without a batch system


def schedulers() -> tuple[str, ...]:
    """The names that `scheduler` may have."""
    return (LOCAL, *ADAPTERS, *registered("nsw.schedulers"))


def transports() -> tuple[str, ...]:
    """The names that `transport` may have."""
    return (*TRANSPORTS, *registered("nsw.transports"))


def adapter_path(scheduler: str) -> str | None:
    """`module:name` of a batch system's adapter; None for what is none."""
    return ADAPTERS.get(scheduler) or registered("nsw.schedulers").get(scheduler)


def transport_path(kind: str) -> str | None:
    """`module:name` of a transport's `connect`; None for an unknown kind."""
    return TRANSPORTS.get(kind) or registered("nsw.transports").get(kind)


def template_folders() -> list[Path]:
    """Where other packages have job scripts for their schedulers: the folder `templates` beside each adapter's module.

    In it are files such as `job/NAME.sh.j2`.
    """
    folders = []
    for path in registered("nsw.schedulers").values():
        found = find_spec(path.partition(":")[0])
        if found is not None and found.origin is not None:
            folders.append(Path(found.origin).parent / "templates")
    return folders
