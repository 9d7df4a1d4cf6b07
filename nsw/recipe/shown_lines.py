"""The lines of a YAML file as they may be shown: printable, of a sensible length, without secrets."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from nsw.recipe.syntax import LOADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.errors import Mark


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

_DEEPEST = 80  # levels: a file with fewer is refused already, and the parser's time grows with their square
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORMS = frozenset({"secret", "plain", "from_env"})  # the keys of a variable's value that is a map
_GLUED_WORD = re.compile(r"(?:^|\s)([A-Za-z0-9_]+):\S")


class _In(Enum):
    """What a node is, by the keys above it."""

    ANY = auto()
    ENV = auto()  # the variables of an environment
    VARIABLE = auto()  # the value of one that does not look secret
    SECRET = auto()  # the value of one that does, or of `secret:`
    FROM_ENV = auto()  # the name of a variable, as it should be
    PLAIN = auto()  # said to be no secret
    MATRIX = auto()  # where `env` may be a parameter


@dataclass(slots=True)
class _Open:
    """A map or list whose end is not read yet."""

    kind: _In
    is_map: bool
    start: Place = (0, 0)
    is_flow: bool = False
    anchor: str | None = None
    keys: list[str] = field(default_factory=list)
    key: str | None = None
    key_event: Any = None
    at_key: bool = True
    behind_secret: bool = False  # what a comma cut off from a secret value stands there as a key


def secret_spans(text: str, below: Sequence[str] = ()) -> tuple[list[Span], bool]:
    """The places of secret values, in no order, and whether the text was YAML that was read to its end.

    Secret are values of keys that look so, wherever they are, values of `secret:`, and what stands in an environment
    as something else than a variable's text: there a slip of the pen may have made it of a secret.

    Args:
        text: YAML, or what should be.
        below: The keys that the whole text stands below.
    """
    walk = _Walk(below)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            walk.take(event)
            if walk.depth > _DEEPEST:
                return walk.spans, False
    except (yaml.YAMLError, UnicodeEncodeError):
        return walk.spans, False
    return walk.spans, True


class _Walk:
    """The parser's events, one after the other; no recursion, since a text may nest as deep as it likes."""

    def __init__(self, below: Sequence[str]) -> None:
        self.spans: list[Span] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, list[Span]] = {}  # what to hide of a node where an alias makes it a secret
        for key in below:
            self._open.append(_Open(self._kind(), is_map=True, key=key, at_key=False))

    @property
    def depth(self) -> int:
        """How many maps and lists are open."""
        return len(self._open)

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif isinstance(event, yaml.NodeEvent):
            top = self._open[-1] if self._open else None
            if top is not None and top.is_map and top.at_key:
                self._key(top, event)
            else:
                self._value(event)

    def _key(self, top: _Open, event: Any) -> None:
        if isinstance(event, yaml.CollectionStartEvent):
            top.key, top.key_event = None, None
            self._push(event, _In.SECRET if top.kind is _In.SECRET else _In.ANY)
            return
        is_text = isinstance(event, yaml.ScalarEvent)
        top.key, top.key_event = (event.value, event) if is_text else (None, None)
        top.keys.append(event.value if is_text else "")
        top.at_key = False
        name = glued_name(top.key or "")
        if name and (top.kind is _In.ENV or looks_secret(name)):
            self.spans.append(_behind(event, name))

    def _value(self, event: Any) -> None:
        kind = self._kind()
        if isinstance(event, yaml.CollectionStartEvent):
            self._push(event, kind)
            return
        if isinstance(event, yaml.AliasEvent):
            if kind in {_In.SECRET, _In.FROM_ENV}:
                self.spans += [_span(event), *self._anchors.get(str(event.anchor), ())]
        else:
            self._scalar(event, kind)
            if event.anchor is not None:
                self._anchors[event.anchor] = [_span(event)]
        self._finished(kind, event)

    def _scalar(self, event: Any, kind: _In) -> None:
        glued = None if event.style else _GLUED_WORD.search(event.value)
        if kind is _In.ENV:
            name = glued_name(event.value)
            self.spans.append(_behind(event, name) if name and not event.style else _span(event))
        elif (
            kind is _In.SECRET
            or (kind is _In.FROM_ENV and not _NAME.fullmatch(event.value))
            # the lines of others hide the password alone
            or (holds_password(event.value) and (kind is _In.VARIABLE or event.start_mark.line < event.end_mark.line))
        ):
            self.spans.append(_span(event))
        elif kind is not _In.PLAIN and glued and looks_secret(glued[1]):
            self.spans.append(_behind(event, glued[1]) if event.value.startswith(glued[1]) else _span(event))

    def _push(self, event: Any, kind: _In) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        start = (event.start_mark.line, event.start_mark.column)
        self._open.append(_Open(kind, is_map, start, bool(event.flow_style), event.anchor))

    def _close(self, event: Any) -> None:
        ended = self._open.pop()
        whole = (ended.start, (event.end_mark.line, event.end_mark.column))
        is_form = ended.is_map and _FORMS.issuperset(ended.keys)
        wrong_map = ended.is_map and ended.kind in {_In.SECRET, _In.VARIABLE} and not is_form
        wrong_list = not ended.is_map and ended.kind in {_In.SECRET, _In.ENV}
        if wrong_map or wrong_list or ended.kind is _In.FROM_ENV:
            self.spans.append(whole)
        if ended.anchor is not None:
            self._anchors[ended.anchor] = [] if is_form else [whole]
        self._finished(ended.kind, event)

    def _finished(self, kind: _In, event: Any) -> None:
        """The node is read; the next one of a map is a key after a value, and a value after a key."""
        if not self._open or not (top := self._open[-1]).is_map:
            return
        if top.at_key:
            top.at_key = False
            top.keys.append("")
            return
        top.at_key = True
        is_empty = isinstance(event, yaml.ScalarEvent) and not event.value and not event.style
        if kind is _In.SECRET:
            top.behind_secret = True
        elif top.behind_secret and top.is_flow and is_empty and top.key_event is not None:
            self.spans.append(_span(top.key_event))  # {HF_TOKEN: one,two}
        else:
            top.behind_secret = False

    def _kind(self) -> _In:
        """What the next node is."""
        if not self._open:
            return _In.ANY
        top, inherits = self._open[-1], {_In.SECRET, _In.PLAIN, _In.MATRIX}
        if not top.is_map or top.key is None or top.kind is _In.PLAIN:
            return top.kind if top.kind in inherits else _In.ANY
        if top.kind in {_In.SECRET, _In.VARIABLE} and top.key in {"plain", "from_env"}:
            return _In.PLAIN if top.key == "plain" else _In.FROM_ENV
        if looks_secret(top.key):
            return _In.SECRET
        if top.kind is _In.ENV:
            return _In.VARIABLE
        if top.kind is _In.MATRIX or top.key == "matrix":
            return _In.MATRIX
        return _In.ENV if top.key == "env" else _In.ANY


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return (start.line, start.column), (end.line, end.column)


def _behind(event: Any, name: str) -> Span:
    """The place of a text less the name at its start and the sign after that."""
    (line, column), end = _span(event)
    return (line, column + len(name) + 1 + (1 if event.style else 0)), end


LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_LINE = 400  # a longer line is cut behind the fault when it is shown
_COMMENT = re.compile(r"(?<=\s)#.*")
# text: to compile it takes 5 ms, and only a line that is shown needs it
_UNPRINTABLE = r"[^\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\ue000-\ufefe\uff00-\U0010ffff]"


class ShownLines:
    """A text whose lines are shown beside faults; where its secrets are is found once, for the first of them.

    Args:
        text: What is shown.
        source: What was parsed, if it is another text with the same columns.
        below: The keys that `source` stands below.
        hidden: What is secret whatever the text says.
    """

    def __init__(
        self, text: str, source: str | None = None, below: Sequence[str] = (), hidden: Sequence[Span] = ()
    ) -> None:
        self._text = text
        self._source = text if source is None else source
        self._below = below
        self._hidden = hidden

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
        spans, is_yaml = secret_spans(self._source, self._below)
        spans += self._hidden
        if not is_yaml and may_hold_secrets(self._text):
            return [((0, 0), (len(self.lines), 0))]
        joined: list[Span] = []
        for begin, end in sorted(span for span in spans if span[0] < span[1]):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        return joined
