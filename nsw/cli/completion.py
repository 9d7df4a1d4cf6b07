"""What a Tab gives: the shell asks through _NSW_COMPLETE, and is answered without loading the command-line parser.

The scripts that ask are typer's (`nsw --show-completion`). What they are answered becomes part of a command line, and
names come from folders and files of others: each is quoted for the shell that asks.
"""

from __future__ import annotations

import os
import shlex
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nsw.cli.command_words import Command, shipped
from nsw.cli.completion_values import values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.cli.command_words import Parameter


class Item(NamedTuple):
    """One completion of what is typed, and what it means."""

    value: str
    help: str = ""


def answer(asked: str) -> int | None:
    """Answer a shell on stdout; whatever goes wrong is no answer, and never a message in the middle of a line.

    Returns:
        The exit code; None where the question is not one of these.
    """
    shell = _SHELLS.get(asked)
    if shell is None:
        return None
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            return shell()
    except Exception:  # noqa: BLE001  the user types a command and has not asked for anything yet
        return 0


def completions(words: list[str], begun: str) -> list[Item]:
    """What may be typed at the cursor.

    Args:
        words: The words before it, without the program's name.
        begun: What of its word is typed.
    """
    root, commands = shipped()
    at = next((n for n, word in enumerate(words) if not word.startswith("-")), None)
    if at is None:
        known = [Item(name, one.help) for name, one in commands.items()]
        return _options(root, set(words), begun) if begun.startswith("-") else _beginning(known, begun)
    command = commands.get(words[at])
    return [] if command is None else _of_command(command, words[at + 1 :], begun)


def _of_command(command: Command, words: list[str], begun: str) -> list[Item]:
    given, place, open_option, ended = _parsed(command, words)
    if open_option is not None:
        return _values(command, open_option, given, begun)
    flag, equals, value = begun.partition("=")
    if equals and not ended and flag in command.options:
        found = _values(command, command.options[flag], given, value)
        return [Item(f"{flag}={item.value}", item.help) for item in found]
    if begun.startswith("-") and not ended:
        return _options(command, set(words), begun)
    if place < len(command.arguments):
        return _values(command, command.arguments[place], given, begun)
    return []


def _parsed(command: Command, words: list[str]) -> tuple[dict[str, list[str]], int, Parameter | None, bool]:
    """What the words before the cursor say.

    Returns:
        The values given so far, the number of the next argument, the option that waits for its value, and whether
        `--` has ended the options.
    """
    given: dict[str, list[str]] = {}
    place, waits, ended = 0, None, False
    for word in words:
        flag, equals, value = word.partition("=")
        if waits is not None:
            given.setdefault(waits.name, []).append(word)
            waits = None
        elif word == "--" and not ended:
            ended = True
        elif flag in command.options and not ended:
            option = command.options[flag]
            if equals:
                given.setdefault(option.name, []).append(value)
            elif option.takes:
                waits = option
        elif place < len(command.arguments) and (ended or not word.startswith("-")):
            argument = command.arguments[place]
            given.setdefault(argument.name, []).append(word)
            place += not argument.many
    return given, place, waits, ended


def _values(command: Command, parameter: Parameter, given: dict[str, list[str]], begun: str) -> list[Item]:
    if parameter.choices:
        return _beginning(map(Item, parameter.choices), begun)
    found = dict.fromkeys(values(command.name, parameter.name, given, begun))
    # no name may steer a terminal, or be taken for an option
    return [Item(value) for value in found if value.isprintable() and not value.startswith("-")]


def _options(command: Command, used: set[str], begun: str) -> list[Item]:
    """The options that may still be given, each by its long name unless its short one is typed."""
    free = [p for p in command.parameters if p.flags and (p.many or not used.intersection(p.flags))]
    long = _beginning((Item(p.flags[0], p.help) for p in free), begun)
    return long or _beginning((Item(flag, p.help) for p in free for flag in p.flags), begun)


def _beginning(items: Iterable[Item], begun: str) -> list[Item]:
    return [item for item in items if item.value.startswith(begun)]


# --- what the shells say and hear --------------------------------------------------------------------------


_PLAIN = "._/-+=,:@%"  # beside letters and digits, what no shell reads as anything else


def _ansi(text: str, also: str) -> str:
    """A text as `$'...'` of bash and zsh; only letters, digits and `also` stand for themselves there."""
    return "$'" + "".join(c if c.isalnum() or c in also else _escaped(c) for c in text) + "'"


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())


def _bash() -> int:
    typed = os.environ["COMP_WORDS"].split("\n")  # as they are written, quotes and all
    at = int(os.environ["COMP_CWORD"])
    words, last = ["".join(_split(word)) for word in typed[:at]], typed[at] if at < len(typed) else ""
    before, begun = words[1:], "".join(_split(last))
    # bash takes `--site=lo` apart into three words, and replaces the last of them
    if last == "=":
        last = begun = ""
    elif before[-1:] == ["="]:
        before.pop()
    found = [_of_bash(item.value, begun, last) for item in completions(before, begun)]
    print("\n".join(word for word in found if word is not None))
    return 0


def _of_bash(value: str, begun: str, typed: str) -> str | None:
    """A value as bash shall insert it, which expands file names in it before: None where it cannot be told how."""
    rest = value.removeprefix(begun)
    if all(c.isalnum() or c in _PLAIN for c in rest):
        return typed + rest if typed[:1] not in {"'", '"'} else value
    if typed[:1] in {"'", '"', "$"} or typed.endswith("\\"):
        return None
    return typed + _ansi(rest, _PLAIN + " $#&;|<>{}~!")


def _zsh() -> int:
    found = completions(*_typed())
    if not found:
        print("_files")
        return 0
    # evaluated by the script, word by word: compadd itself quotes what it inserts
    values = " ".join(_ansi(item.value, _PLAIN) for item in found)
    shown = " ".join(_ansi(f"{item.value}  -- {item.help}" if item.help else item.value, _PLAIN) for item in found)
    listed = "-l " if any(item.help for item in found) else ""
    print(f"local -a nsw_values nsw_shown; nsw_values=({values}); nsw_shown=({shown});"
          f" compadd {listed}-d nsw_shown -a nsw_values")  # fmt: skip
    return 0


def _fish() -> int:
    found = completions(*_typed())
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if found else 1  # 1: files
    print("\n".join(f"{item.value}\t{' '.join(item.help.split())}".rstrip("\t") for item in found))
    return 0


def _typed() -> tuple[list[str], str]:
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    return (words[:-1], words[-1]) if words and not line.endswith(" ") else (words, "")


def _split(line: str) -> list[str]:
    """The words of a line that may end in the middle of a quoted one."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


_SHELLS = {"complete_bash": _bash, "complete_zsh": _zsh, "complete_fish": _fish}
