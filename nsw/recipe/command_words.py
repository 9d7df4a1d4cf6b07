"""A recipe's command line: its words as a shell would see them, and those of a launcher that it starts with."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.recipe.document import Document

__all__ = ["FILLED", "LONGEST", "SHELL", "Launched", "filled", "first_program", "launched", "split"]

FILLED: Final = "\0"  # stands where a template did
LONGEST: Final = 128 << 10  # characters of a command: no argument may be longer, and splitting takes their square
SHELL: Final = "();<>|&"  # signs that are words of their own
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FAILS_TOO: Final = frozenset({"|", "|&", "&&", ">", ">>", "<", ">&", "&>"})  # if the first program fails, so does all


def first_program(document: Document) -> list[str]:
    """The words of the program that the command starts first; none where the command may do without it."""
    command = document.get(("app", "command"))
    if not isinstance(command, str):
        return [filled(str(word)) for word in command]
    if "\n" in command.strip():
        return []
    words = split(command)
    operators = [n for n, word in enumerate(words) if not word.strip(SHELL)]
    if any(words[n] not in _FAILS_TOO for n in operators):
        return []
    return words[: operators[0]] if operators else words


def split(command: str) -> list[str]:
    """The words of a line of shell; none where a quote of it does not end, or where it is too long to be run."""
    if len(command) > LONGEST:
        return []
    lexer = shlex.shlex(filled(command), posix=True, punctuation_chars=SHELL)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end: the shell will say so
        return []


def filled(text: str) -> str:
    """The text with a sign in the place of each template."""
    return _TEMPLATE.sub(FILLED, text)


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
    " -rank-by --rank-by --cpu-bind --mem-bind --env -x -wdir --wdir -wd -rf --rankfile -launcher"
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
        option_words = list(words[at : at + 1 + _values(kind, words[at], words[at + 1 : at + 2])])
        count = _count(kind, option_words)
        processes = processes if count is None else count
        options += option_words if count is None else []
        at += len(option_words)
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


def _count(kind: str, option_words: Sequence[str]) -> int | None:
    """The number of processes, of `-n 4`, `-n4` and `--ntasks=4`."""
    option, _, value = option_words[0].partition("=")
    joined = re.fullmatch(r"(-n)(\d+)", option)
    if joined:
        option, value = joined.groups()
    value = value or "".join(option_words[1:])
    return int(value) if option in _COUNT[kind] and value.isdecimal() and int(value) > 0 else None
