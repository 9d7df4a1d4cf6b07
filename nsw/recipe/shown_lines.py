"""The lines of a YAML file as they may be shown: printable, of a sensible length, without secrets."""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum, auto
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.errors import Mark

__all__ = [
    "FORMS", "LINE_END", "ShownLines", "Span", "Within", "glued_name", "holds_password", "looks_secret",
    "may_hold_secrets", "secret_in_key", "secret_in_text", "span", "without_value",
]  # fmt: skip

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_PARTS = frozenset(
    [
        "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL",
        "CREDENTIALS", "CREDS", "APIKEY", "JWT", "PAT", "PGPASS", "COOKIE", "BEARER",
    ]
)  # fmt: skip
_PARTS_BEFORE_KEY = frozenset(
    [
        "API",
        "ACCESS",
        "AUTH",
        "PRIVATE",
        "ENCRYPTION",
        "SIGNING",
        "DEPLOY",
        "CLI",
        "WANDB",
        "STORAGE",
        "SERVICE",
        "MASTER",
    ]
)
_SECRET_ENDS = frozenset(["PASS", "PWD", "AUTH"])  # of a name of several parts: DB_PASS, but neither PASS nor PWD
# scheme://USER:PASSWORD@host; and https://TOKEN@host: an account's name is shorter than any of their tokens. No part of
# it can hold a slash, so that each character is looked at a few times at most
_PASSWORD = re.compile(r"(?:://[^\s/?#@:]*:|\bhttps?://(?=[^\s/?#@:]{20,}@))(?P<password>[^\s/?#@]++)(?=@)")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_NAMED = re.compile(r"(?<![A-Za-z0-9_])[0-9]*+([A-Za-z0-9_]++)[\"']?\s*+[:=]")
_GLUED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::(?!//)|=)\S")


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that its value is secret: by its parts, so that KEYBOARD and MAX_TOKENS do not."""
    parts = [part.upper() for part in _PART.findall(name)]
    if not _SECRET_PARTS.isdisjoint(parts) or (len(parts) > 1 and parts[-1] in _SECRET_ENDS):
        return True
    return any(after == "KEY" and before in _PARTS_BEFORE_KEY for before, after in pairwise(parts))


def holds_password(value: str) -> bool:
    """Whether a value is or contains a URL with a password or a token: `postgres://me:pass@host`, `https://ghp_...@host`."""
    return next(passwords(value), None) is not None


def may_hold_secrets(text: str) -> bool:
    """Whether a text that no parser understands has a key that looks secret, or a URL with a password."""
    return holds_password(text) or any(looks_secret(match[1]) for match in _NAMED.finditer(text))


def glued_name(text: str) -> str | None:
    """NAME of `NAME:VALUE`, which is one word to YAML, and of `NAME=VALUE`, as a shell has it."""
    glued = _GLUED.match(text)
    return glued[1] if glued else None


def without_value(key: str) -> str:
    """A key as a message may name it: `HF_TOKEN` of `HF_TOKEN:VALUE`."""
    name = glued_name(key)
    return name if name and looks_secret(name) else key


def passwords(text: str) -> Iterator[tuple[int, int]]:
    """Where passwords in URLs are, also those that are expressions, with whatever these hold."""
    yield from (match.span("password") for match in _PASSWORD.finditer(text))
    end = text.rfind("}}") + 2  # what is opened behind it is never closed
    if end > 1:
        plain = _EXPRESSION.sub(lambda match: "x" * len(match[0]), text[:end]) + text[end:]
        yield from (match.span("password") for match in _PASSWORD.finditer(plain))


Place: TypeAlias = "tuple[int, int]"  # line and column, from 0
Span: TypeAlias = "tuple[Place, Place]"  # the end is exclusive

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORMS = frozenset({"secret", "plain", "from_env"})  # the keys of a variable's value that is a map
_GLUED_WORD = re.compile(r"(?:^|\s)([A-Za-z0-9_]+):\S")


class Within(Enum):
    """What a node is, by the keys above it.

    Secret are values of keys that look so, wherever they are, values of `secret:`, and what stands in an environment
    as something else than a variable's text: there a slip of the pen may have made it of a secret.
    """

    ANY = auto()
    ENV = auto()  # the variables of an environment
    VARIABLE = auto()  # the value of one that does not look secret
    SECRET = auto()  # the value of one that does, or of `secret:`
    FROM_ENV = auto()  # the name of a variable, as it should be
    PLAIN = auto()  # said to be no secret
    MATRIX = auto()  # where `env` may be a parameter

    def below(self, key: str | None) -> Within:
        """What the value of a key is; None: an item of a list, or the value of a key that is no text."""
        if key is None or self is Within.PLAIN:
            return self if self in {Within.SECRET, Within.PLAIN, Within.MATRIX} else Within.ANY
        if self in {Within.SECRET, Within.VARIABLE} and key in {"plain", "from_env"}:
            return Within.PLAIN if key == "plain" else Within.FROM_ENV
        if looks_secret(key):
            return Within.SECRET
        if self is Within.ENV:
            return Within.VARIABLE
        if self is Within.MATRIX or key == "matrix":
            return Within.MATRIX
        return Within.ENV if key == "env" else Within.ANY


def secret_in_key(event: Any, kind: Within) -> list[Span]:
    """The secret place of a key in a map of some kind: `HF_TOKEN:VALUE` is one word to YAML."""
    name = glued_name(event.value)
    return [_behind(event, name)] if name and (kind is Within.ENV or looks_secret(name)) else []


def secret_in_text(event: Any, kind: Within) -> list[Span]:
    """The secret place of a scalar."""
    glued = None if event.style else _GLUED_WORD.search(event.value)
    if kind is Within.ENV:
        name = glued_name(event.value)
        return [_behind(event, name) if name and not event.style else span(event)]
    if (
        kind is Within.SECRET
        or (kind is Within.FROM_ENV and not _NAME.fullmatch(event.value))
        # the lines of others hide the password alone
        or (holds_password(event.value) and (kind is Within.VARIABLE or event.start_mark.line < event.end_mark.line))
    ):
        return [span(event)]
    if kind is not Within.PLAIN and glued and looks_secret(glued[1]):
        return [_behind(event, glued[1]) if event.value.startswith(glued[1]) else span(event)]
    return []


def span(event: Any, end: Any = None) -> Span:
    """The place of an event, or of all from it to another."""
    start, stop = event.start_mark, (end or event).end_mark
    return (start.line, start.column), (stop.line, stop.column)


def _behind(event: Any, name: str) -> Span:
    """The place of a text less the name at its start and the sign after that."""
    (line, column), end = span(event)
    return (line, column + len(name) + 1 + (1 if event.style else 0)), end


LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_LINE = 400  # a longer line is cut behind the fault when it is shown
_COMMENT = re.compile(r"(?<=\s)#.*")
# text: to compile it takes 5 ms, and only a line that is shown needs it
_UNPRINTABLE = r"[^\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\ue000-\ufefe\uff00-\U0010ffff]"


class ShownLines:
    """A text whose lines are shown beside faults.

    Attributes:
        below: The keys that the text stands below.
        secrets: Where its secrets are, once it is read; None: it is no YAML.

    Args:
        text: What is shown; what is parsed has the same columns.
        below: See above.
        hidden: What is secret whatever the text says.
    """

    def __init__(self, text: str, below: Sequence[str] = (), hidden: Sequence[Span] = ()) -> None:
        self._text = text
        self._hidden = hidden
        self.below = below
        self.secrets: list[Span] | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return LINE_END.split(self._text)

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        return [0, *(m.end() for m in LINE_END.finditer(self._text))]

    def hides(self, mark: Mark | None) -> bool:
        """Whether something secret stands at a place."""
        if mark is None:
            return False
        begin = (mark.line - 1, mark.column - 1)
        end = (mark.end_line - 1, mark.end_column - 1) if mark.end_line else begin
        return bool(self._overlapping(begin, max(end, (begin[0], begin[1] + 1))))

    def at(self, mark: Mark | None) -> str | None:
        """The line that a mark is on, fit for a terminal; None when it is hopelessly long."""
        if mark is None or mark.line > len(self.lines) or mark.column > _LONGEST_LINE:
            return None
        line = self._masked(mark.line - 1)[: _LONGEST_LINE + mark.column]
        return re.sub(_UNPRINTABLE, "\ufffd", line)

    def _masked(self, row: int) -> str:
        """A line with `*` for what is secret; columns stay."""
        line = self.lines[row]
        characters = list(line)
        last = None
        for begin, end in self._overlapping((row, 0), (row + 1, 0)):
            first = begin[1] if begin[0] == row else len(line) - len(line.lstrip())
            last = min(end[1], len(line)) if end[0] == row else len(line)
            characters[first:last] = "*" * max(0, last - first)
        if last is not None and (comment := _COMMENT.search(line, last)):  # it may tell of a secret that was or will be
            characters[comment.start() :] = "*" * (len(line) - comment.start())
        for first, end_ in passwords("".join(characters)):
            characters[first:end_] = "*" * (end_ - first)
        return "".join(characters)

    def _overlapping(self, begin: Place, end: Place) -> list[Span]:
        """The secret places that have something between two places."""
        spans = self._spans
        index = bisect_right(spans, begin, key=lambda span: span[1])  # the first that ends behind `begin`
        found = []
        while index < len(spans) and spans[index][0] < end:
            found.append(spans[index])
            index += 1
        return found

    @cached_property
    def _spans(self) -> list[Span]:
        """All secret places in the order of the text, none overlapping."""
        if self.secrets is None and may_hold_secrets(self._text):
            return [((0, 0), (len(self.lines), 0))]
        joined: list[Span] = []
        for begin, end in sorted(place for place in (*(self.secrets or ()), *self._hidden) if place[0] < place[1]):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        return joined
