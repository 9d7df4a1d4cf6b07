"""The words of a recipe's command as a shell would see them, each template of it a sign that is in no word."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsw.recipe.document import Document

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
