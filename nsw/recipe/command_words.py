"""A recipe's command line: its words as a shell would see them, and those of a launcher that it starts with."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.recipe.launcher_names import launcher_commands, load_launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.launchers.model import Launcher
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
    if not words or words[0] not in launcher_commands() or ":" in words:  # mpirun -np 1 a : -np 3 b
        return None
    launcher: Launcher = load_launcher(words[0])
    command = launcher.command or (words[0],)
    if tuple(words[: len(command)]) != command:
        return None
    processes, options, at = None, list[str](), len(command)
    while at < len(words) and words[at].startswith("-") and not (launcher.runs_modules and words[at] == "-m"):
        option_words = list(words[at : at + 1 + _values(launcher, words[at], words[at + 1 : at + 2])])
        count = _count(launcher, option_words)
        processes = processes if count is None else count
        options += option_words if count is None else []
        at += len(option_words)
    program = tuple(words[at:])
    if launcher.runs_modules and program and (program[0] == "-m" or program[0].endswith(".py")):
        program = ("python", *program)  # which the launcher does by itself
    return Launched(words[0], processes, tuple(options), program) if program else None


def _values(launcher: Launcher, option: str, after: Sequence[str]) -> int:
    """How many words after an option are its values."""
    if option in _PAIRED:
        return 2
    if "=" in option or not after:
        return 0
    return int(
        option in launcher.value_options.split()
        or option in launcher.count_options
        or _NUMBER.fullmatch(after[0]) is not None
    )


def _count(launcher: Launcher, option_words: Sequence[str]) -> int | None:
    """The number of processes, of `-n 4`, `-n4` and `--ntasks=4`."""
    option, _, value = option_words[0].partition("=")
    joined = re.fullmatch(r"(-n)(\d+)", option)
    if joined:
        option, value = joined.groups()
    value = value or "".join(option_words[1:])
    return int(value) if option in launcher.count_options and value.isdecimal() and int(value) > 0 else None
