"""Launchers: the words that start a program's processes, and which variable tells each its rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.profilers.cprofile import is_python

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Launch:
    """How a recipe's launcher starts the program.

    `prefix` are the words of kind `custom`; `python` is the interpreter that a program starts with, also where a
    profiler is before it. `ranks` is how many processes there are in all; None where the recipe does not say.
    """

    kind: str
    processes: int
    options: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    python: str | None = None
    ranks: int | None = None


# processes -> words; the count's flag differs, the rest is the same
_COUNT = {"srun": "-n", "mpirun": "-np", "mpiexec": "-n", "aprun": "-n", "jsrun": "-n"}
STARTS_TASKS = frozenset({*_COUNT, "custom"})  # through the scheduler, which must know their number beforehand
# what tells a process its rank; launchers that several MPIs have are asked in the process itself (ranks.py)
RANK_VARIABLE = {
    "srun": "SLURM_PROCID",
    "aprun": "ALPS_APP_PE",
    "jsrun": "OMPI_COMM_WORLD_RANK",
    "torchrun": "RANK",
}


def ranks_of(kind: str, given: int | None, options: Sequence[str]) -> int | None:
    """How many processes there are in all: options may count them, and torchrun's count is a node's."""
    if kind == "none":
        return 1
    elsewhere = any(option.replace("_", "-").startswith("--nnodes") for option in options)
    if kind == "torchrun":
        return None if elsewhere else given or 1
    return 1 if given is None and kind != "custom" and not options else given


def launch(how: Launch, program: Sequence[str]) -> tuple[str, ...]:
    """The program's words under its launcher."""
    words = tuple(program)
    if how.kind == "none":
        return words
    if how.kind == "custom":
        return (*how.prefix, *words)
    if how.kind == "torchrun":
        return _torchrun(how, words)
    return (how.kind, _COUNT[how.kind], str(how.processes), *how.options, *words)


def _torchrun(how: Launch, words: tuple[str, ...]) -> tuple[str, ...]:
    """`python train.py` is started by that same python: the torchrun on PATH may be another's."""
    count = (*_own_port(how), f"--nproc_per_node={how.processes}")
    if words and is_python(words[0]) and len(words) > 1 and not words[1].startswith("-"):
        return (words[0], "-m", "torch.distributed.run", *count, *how.options, *words[1:])
    own = ("torchrun",) if how.python is None else (how.python, "-m", "torch.distributed.run")
    return (*own, *count, *how.options, "--no-python", *words)


def _own_port(how: Launch) -> tuple[str, ...]:
    """Without it torchrun listens on port 29500, and of two runs that share a node one fails."""
    meeting = ("--standalone", "--rdzv", "--master", "--nnodes", "--node")
    return () if any(option.replace("_", "-").startswith(meeting) for option in how.options) else ("--standalone",)
