"""The launchers that a recipe may name: a line each here, or an entry point of another package.

Another package registers a subclass of `nsw.launchers.model.Launcher` under the name of its command:

    [project.entry-points."nsw.launchers"]
    flux = "flux_nsw:Flux"
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import Any, Final

from nsw.resources import entry_points_of

GROUP: Final = "nsw.launchers"
NONE: Final = "none"  # starts one process
CUSTOM: Final = "custom"  # the recipe's own words

LAUNCHERS: Final = {
    NONE: "nsw.launchers.model:NoLauncher",
    "srun": "nsw.launchers.srun:Srun",
    "mpirun": "nsw.launchers.mpi:Mpirun",
    "mpiexec": "nsw.launchers.mpi:Mpiexec",
    "torchrun": "nsw.launchers.torchrun:Torchrun",
    "aprun": "nsw.launchers.aprun:Aprun",
    "jsrun": "nsw.launchers.jsrun:Jsrun",
    CUSTOM: "nsw.launchers.model:CustomLauncher",
}


def launchers() -> tuple[str, ...]:
    """The names that `app.launcher.kind` may have."""
    return tuple(dict.fromkeys((*LAUNCHERS, *entry_points_of(GROUP))))


def launcher_commands() -> tuple[str, ...]:
    """Those that are commands of their own."""
    return tuple(name for name in launchers() if name not in {NONE, CUSTOM})


@cache
def load_launcher(name: str) -> Any:
    """The `nsw.launchers.model.Launcher` of this name."""
    return resolve_name(LAUNCHERS.get(name) or entry_points_of(GROUP)[name])()
