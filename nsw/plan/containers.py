"""Containers: the words that run a program in an image, with the run's folder and the application's inside.

These folders are known only where the job runs, so that a line of shell adds them; images, options and the program
travel as its arguments and no shell ever parses them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Runtime:
    """The words of one program that runs containers.

    `bind` and `workdir` are written before `FOLDER:FOLDER` and `FOLDER`; `environment` makes the job's variables
    known inside, where that is not done anyway; `image` is written before the image's name.
    """

    words: tuple[str, ...]
    bind: str
    workdir: str
    environment: tuple[str, ...] = ()
    image: str = ""


RUNTIMES: dict[str, Runtime] = {
    "apptainer": Runtime(("apptainer", "exec"), "--bind=", "--pwd="),
    "singularity": Runtime(("singularity", "exec"), "--bind=", "--pwd="),
    "shifter": Runtime(("shifter",), "--volume=", "--workdir=", image="--image="),
    # the image's own variables (its PATH, for one) still come before the job's
    "podman": Runtime(("podman", "run", "--rm"), "--volume=", "--workdir=", environment=("--env-host",)),
}

_RUN = '"$PWD"'
_CAMPAIGN = '"${PWD%/*/*/*}"'  # of runs/RUN/attempt-N; the application's folder is beside runs
# over the image's own, these would leave nothing of the image
_TOO_MUCH = frozenset({"/", "/usr", "/usr/local", "/opt", "/home", "/root"})


@dataclass(frozen=True, slots=True)
class Box:
    """A recipe's container for one case.

    `profiler_inside`: whether the profiler is the image's; `folders`: names of folders beside `runs` that it must see.
    """

    runtime: str
    image: str
    options: tuple[str, ...] = ()
    profiler_inside: bool = True
    folders: tuple[str, ...] = ()


def boxed(box: Box, program: Sequence[str], tools: Sequence[str] = ()) -> tuple[str, ...]:
    """The program's words inside its container.

    Args:
        box: The container.
        program: What runs inside.
        tools: Folders of this machine that it needs at the same place inside.
    """
    runtime = RUNTIMES[box.runtime]
    folders = [_RUN, *(f"{_CAMPAIGN}/{shlex.quote(name)}" for name in box.folders)]
    binds = " ".join(f"{runtime.bind}{folder}:{folder}" for folder in folders)
    fixed = " ".join((*runtime.words, *runtime.environment))
    text = f'exec {fixed} {binds} {runtime.workdir}{_RUN} "$@"'
    bound = tuple(f"{runtime.bind}{folder}:{folder}" for folder in tools)
    return ("bash", "-c", text, "nsw", *bound, *box.options, f"{runtime.image}{box.image}", *program)


def folder_of_tool(path: str) -> str | None:
    """The folder that holds all of a profiler, of the path it is called by; None when it cannot be told.

    `/opt/nvidia/nsight-systems/2024.2.1/bin/nsys` needs what is beside `bin`.
    """
    parent = PurePosixPath(path).parent
    if not parent.is_absolute():
        return None
    folder = parent.parent if parent.name == "bin" or parent.name.startswith("target-") else parent
    return None if str(folder) in _TOO_MUCH else str(folder)
