"""What is known of sites without reading a file: where sites files are looked for, and what they may name.

Schedulers and transports are a line each here, or an entry point of another package, which registers with
`[project.entry-points."nsw.schedulers"]` or `"nsw.transports"`; the values are as here. It imports little: completion
asks it at every Tab.

A sites file decides what is run: its transport has commands of its own, and its templates are job scripts. nsw reads
the user's own file, if no other user can have written it, and those that are asked for by name. One that merely lies in
the current folder, as a download may, is not opened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from nsw.resources import entry_points_of, user_folder
from nsw.safe_files import foreign_write_reason, user_name

BUILTIN: Final = Path(__file__).with_name("builtin.yaml")
FILE_NAME: Final = "sites.yaml"
ENVIRONMENT: Final = "NSW_SITES"  # files, separated as in PATH

# batch system -> its nsw.schedulers.adapter.Adapter; its job script is templates/job/NAME.sh.j2
ADAPTERS: Final = {
    "slurm": "nsw.schedulers.slurm:Slurm",
    "pbs": "nsw.schedulers.pbs:Pbs",
    "cobalt": "nsw.schedulers.cobalt:Cobalt",
    "lsf": "nsw.schedulers.lsf:Lsf",
    "sge": "nsw.schedulers.sge:Sge",
    "flux": "nsw.schedulers.flux:Flux",
}

# a copy of the adapters' `submit`, so that PATH is searched without loading them; a line that is missing costs the time
# to load that adapter, and tests/contract compares the others
SUBMITS: Final = {"slurm": "sbatch", "pbs": "qsub", "cobalt": "qsub", "lsf": "bsub", "sge": "qsub", "flux": "flux"}

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
    return (LOCAL, *ADAPTERS, *entry_points_of("nsw.schedulers"))


def transports() -> tuple[str, ...]:
    """The names that `transport` may have."""
    return (*TRANSPORTS, *entry_points_of("nsw.transports"))


def adapter_path(scheduler: str) -> str | None:
    """`module:name` of a batch system's adapter; None for what is none."""
    return ADAPTERS.get(scheduler) or entry_points_of("nsw.schedulers").get(scheduler)


def template_folders() -> list[Path]:
    """Where other packages have job scripts for their schedulers: the folder `templates` beside each adapter's module.

    In it are files such as `job/NAME.sh.j2`.
    """
    folders = []
    for path in entry_points_of("nsw.schedulers").values():
        spec = find_spec(path.partition(":")[0])
        if spec is not None and spec.origin is not None:
            folders.append(Path(spec.origin).parent / "templates")
    return folders


class Source(NamedTuple):
    """A sites file in the order of the search.

    `named` was asked for by --sites or $NSW_SITES; `unsafe` says why one is not read, as a sentence.
    """

    path: Path
    requested: bool = False
    unsafe: str | None = None


def searched_files(files: Sequence[Path] | None = None) -> list[Source]:
    """The files searched, in order: those given, $NSW_SITES, the user's, the built-in one.

    Files that were asked for by name are listed whether they exist or not. A FIFO or folder in the place of the user's
    is listed too, since ignoring it would choose another site: reading it is an error.
    """
    requested = [*(files or ()), *(Path(p) for p in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if p)]
    own_file = user_file()
    order = [
        *(Source(path, requested=True) for path in requested),
        *([Source(own_file, unsafe=untrusted_reason(own_file))] if own_file is not None and own_file.exists() else []),
        Source(BUILTIN),
    ]
    unique: dict[Path, Source] = {}
    for source in order:
        unique.setdefault(source.path.absolute(), source)
    return list(unique.values())


def unsearched_file_hint(files: Sequence[Path] | None = None) -> str | None:
    """What to do about a sites file of the current folder that no search reads; None: there is none."""
    local_file = Path(FILE_NAME).absolute()
    if not local_file.exists() or any(source.path.absolute() == local_file for source in searched_files(files)):
        return None
    return (
        f"{FILE_NAME} in the current folder is read only if you name it: `--sites {FILE_NAME}`, or"
        f' `export {ENVIRONMENT}="$PWD/{FILE_NAME}"`'
    )


def untrusted_reason(path: Path) -> str | None:
    """Why others may have written what a file holds: it, its folder, what these link to; or made a link on the way."""
    real = path.resolve()
    for link in filter(Path.is_symlink, (*path.absolute().parents, path.absolute())):
        if (owner := link.lstat().st_uid) not in {os.geteuid(), 0}:  # who could make it where others may write above
            return f"{link} is a link that {user_name(owner)} made"
    for checked_path in dict.fromkeys((real, real.parent, path.absolute().parent)):
        try:
            reason = foreign_write_reason(checked_path)
        except OSError as fault:
            reason = f"cannot be looked at ({fault.strerror})"
        if reason:
            return f"{'it' if checked_path == real else f'its folder {checked_path}'} {reason}"
    return None


def user_file() -> Path | None:
    """The sites file in the user's configuration folder, which need not be there; None for a user without a home."""
    with suppress(OSError):
        return user_folder("config") / FILE_NAME
    return None
