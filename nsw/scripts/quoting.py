"""The one place where values become shell text: nothing that a value holds can break out of its word or its comment."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from nsw.errors import UsageError
from nsw.profilers.model import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable


def quote(value: object) -> str:
    """One shell word, whatever the value holds; a variable of the job stays one."""
    text = str(value)
    if isinstance(value, Variable):
        plain = text[2:-1]
        return f'"${plain}"' if plain.isidentifier() else f'"{text}"'
    if "\0" in text:
        raise UsageError(f"a NUL character cannot be passed to a program: {text!r}")
    return shlex.quote(text)


def quote_all(values: Iterable[object]) -> str:
    """Several shell words, separated by spaces."""
    return " ".join(quote(v) for v in values)


def directive_value(option: str, value: str, plain: re.Pattern[str], reader: str) -> str:
    """The value of a directive's option, in quotes unless it is plain, for a reader that knows no escapes.

    Raises:
        UsageError: It holds a control character, or both kinds of quotes.
    """
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise UsageError(f"resources: -{option} holds a control character: {value!r}")
    if plain.fullmatch(value):
        return value
    mark = "'" if '"' in value else '"'
    if mark in value:
        raise UsageError(f"resources: -{option} holds both kinds of quotes, which {reader} cannot read: {value}")
    return f"{mark}{value}{mark}"


def comment(value: object) -> str:
    """Text that is safe behind `#`: on one line, without control characters."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", str(value)).strip()
