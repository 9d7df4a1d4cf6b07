"""A command line that starts with a launcher: its processes, its options, and the program's own words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT: Final = {
    "srun": ("-n", "--ntasks"),
    "mpirun": ("-np", "-n", "--np"),
    "mpiexec": ("-n", "-np", "--np"),
    "aprun": ("-n", "--pes"),
    "jsrun": ("-n", "--nrs"),
    "torchrun": ("--nproc_per_node", "--nproc-per-node"),
}
# options whose value is the next word, where it is no number
_MPI: Final = (
    "-H -host --host -hosts -hostfile --hostfile -machinefile --machinefile -f -bind-to --bind-to -map-by --map-by"
    " -rank-by --rank-by --cpu-bind --mem-bind -x -wdir --wdir -wd -rf --rankfile -launcher"
)
_VALUED: Final = {
    "srun": "-A -C -d -D -e -J -m -M -o -p -q -t -w -x -G --account --constraint --cpu-bind --cpu_bind --distribution"
    " --error --export --gpu-bind --gres --hint --job-name --mem --mem-bind --mpi --nodelist --output --partition"
    " --qos --time --chdir",
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "aprun": "-cc -L -m -e -E -p -r",
    "jsrun": "-b -d -l -L -m -e -E -M -o -k -t -S --bind --launch_distribution --smpiargs",
    "torchrun": "--nnodes --rdzv_backend --rdzv-backend --rdzv_endpoint --rdzv-endpoint --rdzv_id --rdzv-id --rdzv_conf"
    " --rdzv-conf --master_addr --master-addr --log_dir --log-dir --role --tee --redirects",
}
_PAIRED: Final = frozenset({"-env", "-genv", "-mca", "--mca", "-gmca", "--gmca"})  # two words follow
_NUMBER: Final = re.compile(r"\d[\d.,:]*")


class Launched(NamedTuple):
    """What a launcher starts: `kind` and `options` as `app.launcher` has them; `processes` is None where none says."""

    kind: str
    processes: int | None
    options: tuple[str, ...]
    program: tuple[str, ...]


def launched(words: Sequence[str]) -> Launched | None:
    """The command line as its launcher's and its program's words; None where it starts with no launcher of PATH."""
    if not words or words[0] not in _COUNT or ":" in words:  # mpirun -np 1 a : -np 3 b
        return None
    kind, processes, options, at = words[0], None, list[str](), 1
    while at < len(words) and words[at].startswith("-") and not (kind == "torchrun" and words[at] == "-m"):
        taken = list(words[at : at + 1 + _values(kind, words[at], words[at + 1 : at + 2])])
        count = _count(kind, taken)
        processes = processes if count is None else count
        options += taken if count is None else []
        at += len(taken)
    program = tuple(words[at:])
    if kind == "torchrun" and program and (program[0] == "-m" or program[0].endswith(".py")):
        program = ("python", *program)  # which torchrun does by itself
    return Launched(kind, processes, tuple(options), program) if program else None


def _values(kind: str, option: str, after: Sequence[str]) -> int:
    """How many words after an option are its values."""
    if option in _PAIRED:
        return 2
    if "=" in option or not after:
        return 0
    return int(option in _VALUED[kind].split() or option in _COUNT[kind] or _NUMBER.fullmatch(after[0]) is not None)


def _count(kind: str, taken: Sequence[str]) -> int | None:
    """The number of processes, of `-n 4`, `-n4` and `--ntasks=4`."""
    option, _, value = taken[0].partition("=")
    joined = re.fullmatch(r"(-n)(\d+)", option)
    if joined:
        option, value = joined.groups()
    value = value or "".join(taken[1:])
    return int(value) if option in _COUNT[kind] and value.isdecimal() and int(value) > 0 else None
