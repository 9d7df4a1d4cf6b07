"""A YAML file as data whose every key and value still knows its line and column.

The tree is made from the parser's events and not by `yaml.compose`, whose C version overflows the stack
on deeply nested input. Plain values follow YAML 1.2: `on`, `off`, `yes` and `no` are text, `1:30:00` is
text, `010` is text, `1e-3` is a number.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from nsw.errors import Diagnostic, InputError, Mark
from nsw.recipe.secrets import holds_secret, looks_secret, named_secrets, secret_parts
from nsw.recipe.units import WrittenFloat, WrittenInt, keep_text, plain, show_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


__all__ = [
    "LARGEST", "MOST_KEYS", "Document", "KeyPath", "Node", "SourceText", "as_yaml", "in_order", "merged", "parse",
    "replaced",
]  # fmt: skip

Scalar: TypeAlias = "str | int | float | bool | None"
KeyPath: TypeAlias = "tuple[str | int, ...]"


@dataclass(slots=True, eq=False)
class Node:
    """One value of a YAML file.

    Attributes:
        value: A scalar, a map of nodes or a list of nodes; never changed once made (aliases share nodes).
        span: The place of the value.
        keys: Of a map: the place of each key.
        style: Of a scalar: `'`, `"`, `|`, `>`, or empty for a plain one.
        text: Of a scalar: what is in the file, without quotes.
        size: How many nodes this one stands for, aliases counted each time.
    """

    value: Scalar | dict[str, Node] | list[Node]
    span: Mark
    keys: dict[str, Mark] = field(default_factory=dict)
    style: str = ""
    text: str = ""
    size: int = 1

    def child(self, part: str | int) -> Node | None:
        """The value below a key or at an index, or None."""
        if isinstance(self.value, dict):
            return self.value.get(part) if isinstance(part, str) else None
        if isinstance(self.value, list) and isinstance(part, int) and 0 <= part < len(self.value):
            return self.value[part]
        return None


def plain_data(node: Node) -> Any:
    """The tree as plain data: dict, list, str, int, float, bool, None."""
    if isinstance(node.value, dict):
        return {key: plain_data(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain_data(child) for child in node.value]
    return node.value


def merged(base: Node, over: Node) -> Node:
    """`over` laid on `base`: maps are merged key by key, everything else is replaced."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    value = dict(base.value)
    for key, child in over.value.items():
        value[key] = merged(value[key], child) if key in value else child
    return Node(value, base.span, base.keys | over.keys)


def replaced(root: Node, path: KeyPath, change: Callable[[Node], Node]) -> Node:
    """The tree with the node at `path` changed; the places stay as they are."""
    if not path:
        return change(root)
    part, rest = path[0], path[1:]
    if isinstance(root.value, list) and isinstance(part, int):
        items = list(root.value)
        items[part] = replaced(items[part], rest, change)
        return Node(items, root.span)
    if not isinstance(root.value, dict) or part not in root.value:
        return root
    value = {k: replaced(v, rest, change) if k == part else v for k, v in root.value.items()}
    return Node(value, root.span, root.keys)


def renamed(root: Node, path: KeyPath, key: str) -> Node:
    """The tree with the last key of `path` called `key`; the places stay as they are."""
    last = path[-1]

    def call(node: Node) -> Node:
        if not isinstance(node.value, dict) or last not in node.value:
            return node
        value = {key if k == last else k: v for k, v in node.value.items()}
        return Node(value, node.span, {key if k == last else k: m for k, m in node.keys.items()})

    return replaced(root, path[:-1], call)


MOST_ALIASED = 20_000  # nodes that all aliases together may stand for
MOST_KEYS = 50_000  # of one map: a lock has a key for each file of the program
_TAG = "tag:yaml.org,2002:"

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_INT_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Stop(Exception):  # noqa: N818  # it ends the composing; what went wrong is the diagnostic it holds
    """A fault after which the rest of the file has no meaning."""

    def __init__(self, mark: Mark, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = Diagnostic(message, mark, hint=hint)


class _Composer:
    """Makes the tree of the only document, and gathers faults that do not end the reading."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self._events = events
        self._file = file
        self._anchors: dict[str, Node | None] = {}  # None while the anchored node is being made
        self._aliased = 0
        self.faults: list[Diagnostic] = []

    def document(self) -> Node | None:
        """The tree; None: there is none.

        Raises:
            yaml.YAMLError: The text is not YAML.
            Stop: It is YAML that nsw does not take (two documents, recursion, too deep).
        """
        root: Node | None = None
        seen = False
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent) and seen:
                raise Stop(self._mark(event), "a second document starts here", "keep one document in a file")
            if isinstance(event, yaml.NodeEvent):
                root, seen = self._node(event, 0), True
        return root

    def _mark(self, event: Any, end: Any = None) -> Mark:
        start, stop = event.start_mark, (end or event).end_mark
        return Mark(self._file, start.line + 1, start.column + 1, stop.line + 1, stop.column + 1)

    def _fault(self, mark: Mark, message: str, hint: str | None = None) -> None:
        self.faults.append(Diagnostic(message, mark, hint=hint))

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > DEEPEST:
            raise Stop(self._mark(event), TOO_DEEP)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._list(event, depth)
        else:
            node = self._map(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> Node:
        mark = self._mark(event)
        if event.anchor not in self._anchors:
            raise Stop(
                mark, f"no anchor '&{event.anchor}' is defined above", "quote the value if the * is meant as text"
            )
        node = self._anchors[event.anchor]
        if node is None:
            raise Stop(mark, f"'*{event.anchor}' is inside the node that it refers to")
        self._aliased += node.size
        if self._aliased > MOST_ALIASED:
            raise Stop(mark, f"the aliases stand for more than {MOST_ALIASED} values")
        return node

    def _scalar(self, event: Any) -> Node:
        mark = self._mark(event)
        style = event.style or ""
        try:
            value = scalar(event.value, event.tag, plain=not style)
        except ValueError as fault:
            self._fault(mark, str(fault))
            value = event.value
        return Node(value, mark, style=style, text=event.value)

    def _list(self, event: Any, depth: int) -> Node:
        self._collection_tag(event, "seq")
        items: list[Node] = []
        while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(inner, depth + 1))
        return Node(items, self._mark(event, inner), size=1 + sum(n.size for n in items))

    def _map(self, event: Any, depth: int) -> Node:
        self._collection_tag(event, "map")
        value: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        inherited: list[Node] = []
        entries = 0
        while not isinstance(inner := next(self._events), yaml.MappingEndEvent):
            key, mark = self._key(inner, event, depth)
            child = self._node(next(self._events), depth + 1)
            self._check_dash(child, mark)
            if key == "<<" and isinstance(inner, yaml.ScalarEvent) and not inner.style:
                inherited += self._inherited(child, mark)
            elif key in value:
                self._fault(
                    mark, f"the key {show_value(key)} is set twice; the first is at {keys[key]}", "keep one of them"
                )
            elif key is not None:
                value[key], keys[key] = child, mark
            entries += 1
            if entries > MOST_KEYS:
                raise Stop(mark, f"a map has more than {MOST_KEYS:,} keys")
        for node in inherited:
            assert isinstance(node.value, dict)
            value = {k: v for k, v in node.value.items() if k not in value} | value
            keys = node.keys | keys
        return Node(value, self._mark(event, inner), keys, size=1 + sum(n.size for n in value.values()))

    def _check_dash(self, child: Node, key: Mark) -> None:
        """Refuse a text on lines of its own that begins with a dash: `-1` and `-2` below a key are one text to YAML."""
        if not child.style and child.span.line > key.line and DASHED.match(child.text):
            line, column = child.span.line, child.span.column
            self._fault(Mark(self._file, line, column, line, column + 1), MISSING_SPACE, with_space(child.text))

    def _key(self, event: Any, parent: Any, depth: int) -> tuple[str | None, Mark]:
        """A key as text, or None (noted as a fault) where it is a map or a list."""
        if isinstance(event, yaml.ScalarEvent):
            mark = self._mark(event)
            if not event.style and DASHED.match(event.value):
                raise Stop(mark, MISSING_SPACE, with_space(f"{event.value}:"))
            return event.value, mark
        node = self._node(event, depth + 1)
        mark = self._mark(event)
        if not isinstance(node.value, dict | list):
            return str(node.value), mark
        if isinstance(node.value, dict) and event.start_mark.index == parent.start_mark.index + 1:  # {{
            self._fault(self._mark(parent, event), "an expression must be quoted", 'such as "{{ batch }}"')
        else:
            self._fault(node.span, "a key must be text, but found " + show_value(node.value))
        return None, mark

    def _inherited(self, node: Node, mark: Mark) -> list[Node]:
        """The maps that a merge key `<<` brings, the most important first."""
        nodes = node.value if isinstance(node.value, list) else [node]
        if all(isinstance(n.value, dict) for n in nodes):
            return nodes
        self._fault(mark, "'<<' takes an alias of a map, or a list of them", "such as <<: *defaults")
        return []

    def _collection_tag(self, event: Any, kind: str) -> None:
        if event.tag not in {None, "!", _TAG + kind}:
            self._fault(self._mark(event), f"the tag {show_value(event.tag)} is not allowed here", "remove it")


def scalar(text: str, tag: str | None, *, plain: bool) -> Scalar:
    """The value of a scalar.

    Args:
        text: Its text without quotes.
        tag: An explicit tag in full, or None.
        plain: Whether it stood without quotes.

    Raises:
        ValueError: The tag is not a safe one, or the text is not what the tag says.
    """
    if tag is None:
        return _resolved(text) if plain else text
    kind = tag.removeprefix(_TAG)
    if kind in {"str", "!"}:
        return text
    types: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (float, int),
        "bool": (bool,),
        "null": (type(None),),
    }
    if kind not in types:
        raise ValueError(f"the tag {show_value(tag)} is not allowed here: only str, int, float, bool and null are")
    value = _resolved(text)
    if not isinstance(value, types[kind]) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"the tag !!{kind} does not fit {show_value(text)}")
    return keep_text(float(value), text) if kind == "float" and isinstance(value, int) else value


def _resolved(text: str) -> Scalar:
    """The value of a plain scalar without a tag (YAML 1.2 core schema, less leading zeros); numbers keep their text."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if not (text[0].isdigit() or text[0] in "+-."):
        return text
    if _INT.fullmatch(text):
        return _parse_integer(text, 10)
    if _INT_BASE.fullmatch(text):
        return _parse_integer(text, 0)
    if _FLOAT.fullmatch(text):
        return keep_text(float(text), text)
    special = _SPECIAL.fullmatch(text)
    if special:
        return math.nan if special[1] is None else float(special[1] + "inf")
    return text


def _parse_integer(text: str, base: int) -> int | float:
    number = int(text, base) if len(text) <= 24 else 1 << 64
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"the number {show_value(text)} does not fit into 64 bits; quote it if it is meant as text")
    return keep_text(number, text)


LARGEST = 4 << 20  # characters of a file
LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_LINE = 400  # a longer line is cut behind the fault when it is shown
# text: to compile it takes 5 ms, and only a line that is shown needs it
_UNPRINTABLE = r"[^\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\ue000-\ufefe\uff00-\U0010ffff]"
_TELLING = 6  # characters of a secret that a message must not repeat
_SECRET_IN_TEXT = re.compile(r"(?<!\S)(\w++)[\"']?[:=]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_REPEATED = "what is here is not as it should be, and is not repeated because it may be secret"


class SourceText:
    """A text whose faults are shown with their lines; of one that holds a secret no line is shown.

    Attributes:
        text: The text, of which what is parsed has the same columns.
        root: What it says, once it is parsed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: Node | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return LINE_END.split(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        return [0, *(m.end() for m in LINE_END.finditer(self.text))]

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The secrets that stand in the text, or the beginnings of them, as messages would repeat them."""
        secrets_found = [*named_secrets(self.text), *secret_parts(self.text)]
        if self.root is not None:
            secrets_found += _secrets(self.root)
        return frozenset(plain(secret).casefold() for secret in secrets_found)

    def diagnostic(self, mark: Mark | None, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic at a place, with its line; where the text holds a secret, without the line and the secret."""
        if not self.secrets:
            return self.with_line(Diagnostic(message, mark, hint=hint))
        if self._repeats(message):
            message = _without_quotes(message)
        message = _NOT_REPEATED if self._repeats(message) else message
        return Diagnostic(message, mark, hint=None if hint and self._repeats(hint) else hint, line_is_secret=True)

    def with_line(self, fault: Diagnostic) -> Diagnostic:
        """A fault with the line that its mark is on, fit for a terminal; without it when it is hopelessly long."""
        mark = fault.mark
        if mark is None or mark.line > len(self.lines) or mark.column > _LONGEST_LINE:
            return fault
        line = self.lines[mark.line - 1][: _LONGEST_LINE + mark.column]
        return replace(fault, source_line=re.sub(_UNPRINTABLE, "\ufffd", line))

    def _repeats(self, message: str) -> bool:
        """Whether a message has a secret in it, or enough of one."""
        text = message.casefold()
        if any(f"'{secret}'" in text for secret in self.secrets if 0 < len(secret) < _TELLING):
            return True
        return any(text[at : at + _TELLING] in self._all_secrets for at in range(len(text) - _TELLING + 1))

    @cached_property
    def _all_secrets(self) -> str:
        return "\0".join(self.secrets)


def _secrets(node: Node, is_secret: bool = False) -> Iterator[str]:
    """The texts of the secrets in a tree: whatever is below a key that looks so, less what is marked as none.

    In an environment they are also what is no text: a slip of the pen may have made it of `{secret: VALUE}`.
    """
    behind = False
    for key, child in _children(node):
        is_secret_name = isinstance(key, str) and looks_secret(key)
        behind = is_secret_name or (behind and child.value is None and not child.text)
        if behind and not is_secret_name:  # a comma made a key of the rest of a value: `{HF_TOKEN: one,two}`
            yield str(key)
        if key == "plain" or (key == "from_env" and _VARIABLE.fullmatch(child.text)):
            continue
        yield from _secrets(child, is_secret or is_secret_name)
        if key == "env":
            for _, value in _children(child):
                yield from _secrets(value, isinstance(value.value, dict | list) or holds_secret(value.text))
    if is_secret and node.value is not None and node.text:
        yield node.text
    yield from secret_parts(node.text)
    # `HF_TOKEN:VALUE` is one word to YAML
    yield from (node.text[name.end() :] for name in _SECRET_IN_TEXT.finditer(node.text) if looks_secret(name[1]))


def _without_quotes(text: str) -> str:
    return re.sub(r"'.{3,}'", "'***'", text, flags=re.DOTALL)  # a sign in quotes is no secret


@dataclass(frozen=True, eq=False)
class Document:
    """A parsed file: plain data beside the tree that knows the places."""

    file: str
    root: Node
    source: SourceText
    options: dict[str, SourceText] = field(default_factory=dict)  # laid over it: by the file of their marks

    @cached_property
    def data(self) -> Any:
        """The whole file as dict, list, str, int, float, bool and None."""
        return plain_data(self.root)

    def node(self, path: KeyPath) -> Node | None:
        """The node at `path`, or None."""
        node: Node | None = self.root
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def get(self, path: KeyPath) -> Any:
        """The plain data at `path`, or None."""
        node = self.node(path)
        return plain_data(node) if node is not None else None

    def find(self, *pattern: str | int) -> Iterator[tuple[KeyPath, Any]]:
        """Every path that fits `pattern`, where `*` stands for any key or index, with its data."""
        for path, node in _find(self.root, pattern, ()):
            yield path, plain_data(node)

    def mark(self, path: KeyPath, key: bool = False) -> Mark | None:
        """The place of a value, or of its key; of the nearest ancestor that exists when `path` does not."""
        node, at_key = self.root, _first(self.root.span)
        for part in path:
            child = node.child(part)
            if child is None:
                return at_key
            at_key = node.keys.get(part, child.span) if isinstance(part, str) else child.span
            node = child
        starts_below = isinstance(node.value, dict | list) and node.span.line > at_key.line
        return at_key if key or not path or starts_below or node.value is None else node.span

    def raw(self, path: KeyPath) -> str:
        """The text of the value at `path` as it is in the file, quotes and all; empty without one."""
        node = self.node(path)
        if node is None or node.value is None:
            return ""
        starts, span = self.source.starts, node.span
        return self.source.text[
            starts[span.line - 1] + span.column - 1 : starts[span.end_line - 1] + span.end_column - 1
        ]

    def mark_in_raw(self, path: KeyPath, offset: int, length: int = 1) -> Mark | None:
        """The place of `length` characters from `offset` of `raw(path)`."""
        node = self.node(path)
        if node is None:
            return self.mark(path)
        before = LINE_END.split(self.raw(path)[:offset])
        line = node.span.line + len(before) - 1
        column = len(before[-1]) + (node.span.column if len(before) == 1 else 1)
        return Mark(node.span.file, line, column, line, column + max(1, length))

    def mark_in_value(self, path: KeyPath, offset: int | None, length: int = 1) -> Mark | None:
        """The place of `length` characters from `offset` of a text; of all of it where escapes hide them."""
        node = self.node(path)
        if offset is None or node is None or not isinstance(node.value, str):
            return self.mark(path)
        quote = len(node.style) if node.style in {"'", '"'} else 0
        raw = self.raw(path)
        if raw[quote : len(raw) - quote] != node.value:
            return self.mark(path)
        return self.mark_in_raw(path, quote + offset, length)

    def at(self, mark: Mark | None, message: str, *, hint: str | None = None) -> Diagnostic:
        """A diagnostic at a place of this file, with its line."""
        source = self.options.get(mark.file, self.source) if mark is not None else self.source
        return source.diagnostic(mark, message, hint)

    def diagnostic(self, path: KeyPath, message: str, *, hint: str | None = None, key: bool = False) -> Diagnostic:
        """A diagnostic at a value, or at its key."""
        return self.at(self.mark(path, key), message, hint=hint)

    def overlaid(self, path: KeyPath) -> Document:
        """This document with the map at `path` laid over the whole: maps merged, everything else replaced."""
        over = self.node(path)
        return self if over is None or over.value is None else replace(self, root=merged(self.root, over))

    def with_root(self, root: Node) -> Document:
        """This file with another tree made of its nodes; places stay true to the file."""
        return replace(self, root=root)

    def renamed(self, path: KeyPath, key: str) -> Document:
        """This document with one key called otherwise; places stay true to the file."""
        return replace(self, root=renamed(self.root, path, key))


def parse(text: str, file: str, source: SourceText | None = None) -> Document:
    """Parse YAML.

    Args:
        text: The file's text.
        file: Its name, for the marks.
        source: What is shown of it; None: its lines.

    Raises:
        InputError: Not YAML, empty, too large, or with keys set twice; every such fault found.
    """
    text = text.removeprefix("\ufeff")
    source = source or SourceText(text)
    root, faults = _composed(text, file)
    if root is None and not faults:
        faults = [Diagnostic("the file is empty", Mark(file, 1, 1, 1, 2))]
    if root is None or faults:
        raise InputError(in_order(map(_without_words if source.secrets else source.with_line, faults)))
    source.root = root
    return Document(file, root, source)


def _without_words(fault: Diagnostic) -> Diagnostic:
    """A fault of YAML without words of the text: what of it is secret is not known for sure."""
    hint = None if fault.hint and "'" in fault.hint else fault.hint
    message = _without_quotes(fault.message.partition(": ")[0])
    return replace(fault, message=message, hint=hint, line_is_secret=True)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Each diagnostic once, in the order of the file."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.mark.line, d.mark.column) if d.mark else (0, 0))


def _composed(text: str, file: str) -> tuple[Node | None, list[Diagnostic]]:
    if len(text) > LARGEST:
        return None, [Diagnostic(f"the file has more than {LARGEST} characters", Mark(file, 1, 1, 1, 2))]
    composer = _Composer(yaml.parse(text, Loader=LOADER), file)
    try:
        root = composer.document()
    except Stop as stop:
        return None, [stop.fault]
    except yaml.YAMLError as fault:
        return None, [explain(fault, text, LINE_END.split(text), file)]
    except UnicodeEncodeError as fault:
        before = LINE_END.split(text[: fault.start])
        mark = Mark(file, len(before), len(before[-1]) + 1, len(before), len(before[-1]) + 2)
        return None, [Diagnostic("half of a surrogate pair is not a character", mark)]
    return root, composer.faults


def _first(mark: Mark) -> Mark:
    return Mark(mark.file, mark.line, mark.column, mark.line, mark.column + 1)


def _find(node: Node, pattern: tuple[str | int, ...], path: KeyPath) -> Iterator[tuple[KeyPath, Node]]:
    if not pattern:
        yield path, node
        return
    part, rest = pattern[0], pattern[1:]
    if part != "*":
        if (child_node := node.child(part)) is not None:
            yield from _find(child_node, rest, (*path, part))
        return
    for name, child in _children(node):
        yield from _find(child, rest, (*path, name))


def _children(node: Node) -> Iterable[tuple[str | int, Node]]:
    if isinstance(node.value, dict):
        return node.value.items()
    return enumerate(node.value) if isinstance(node.value, list) else ()


class _Dumper(yaml.SafeDumper):
    """PyYAML knows YAML 1.1, in which `1e3` is a text and `0o17` too."""


def as_yaml(data: Any) -> str:
    """The text, keys in the order of the data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _whole_number(dumper: yaml.SafeDumper, value: WrittenInt) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "int", str(value))


def _number(dumper: yaml.SafeDumper, value: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "float", str(value))


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_TAG + "str", value, style=None if _is_text(value) else "'")


def _is_text(value: str) -> bool:
    """Whether it would be read as the text that it is without quotes, as far as nsw is concerned."""
    try:
        return scalar(value, None, plain=True) == value
    except ValueError:
        return False


_Dumper.add_representer(WrittenInt, _whole_number)
_Dumper.add_representer(WrittenFloat, _number)
_Dumper.add_representer(str, _text)


DASHED = re.compile(r"-[^\s-]")
_GLUED = re.compile(r"^(\s*(?:- )?[A-Za-z_][\w.-]*):(?![\s/])\S")
_TEMPLATE = re.compile(r"[:\-,\[]\s+\{\{")
_RESERVED = "@`%|>"
DEEPEST = 50  # levels of nesting
TOO_DEEP = f"nested more than {DEEPEST} levels deep"
_OPENS = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSES = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
MISSING_SPACE = "a space is missing after this dash"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def with_space(item: str) -> str:
    """What to write instead of an item whose dash has no space after it; '' stands for one that is not shown."""
    if not item:
        return "write '- ...' for an item of a list"
    word = plain(item.split(maxsplit=1)[0][1:])
    return f"write '- {word}{' ...' if word.endswith(':') else ''}' for an item of a list"


def explain(fault: yaml.YAMLError, text: str, lines: Sequence[str], file: str) -> Diagnostic:
    """One diagnostic for what the YAML parser refused.

    Args:
        fault: What it raised.
        text: The whole file.
        lines: The same, split at line ends.
        file: Its name for the mark.
    """
    if isinstance(fault, yaml.reader.ReaderError):
        return _bad_character(fault, text, file)
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    if mark is None:
        return Diagnostic(f"this is not YAML: {plain(str(fault))}", Mark(file, 1, 1, 1, 2))
    return _FaultContext(fault, text, lines, file, mark.line, mark.column).diagnostic()


def _bad_character(fault: yaml.reader.ReaderError, text: str, file: str) -> Diagnostic:
    code = fault.character if isinstance(fault.character, int) else ord(str(fault.character)[:1] or "?")
    # the C reader counts bytes, the other one characters: the first such character is the one either means
    index = text.find(chr(code))
    before = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text[: max(index, 0)])
    line, column = len(before), len(before[-1]) + 1
    return Diagnostic(
        f"the character U+{code:04X} is not allowed in YAML",
        Mark(file, line, column, line, column + 1),
        hint="remove it, or write it as an escape in double quotes",
    )


class _FaultContext:
    """A syntax fault with the lines around it."""

    def __init__(
        self, fault: yaml.YAMLError, text: str, lines: Sequence[str], file: str, line: int, column: int
    ) -> None:
        self.document = text
        self.problem = str(getattr(fault, "problem", "") or "")
        self.context = str(getattr(fault, "context", "") or "")
        self.context_mark = getattr(fault, "context_mark", None)
        self.lines = lines
        self.file = file
        self.row = min(line, max(len(lines) - 1, 0))
        self.column = column if line == self.row else 0
        self.text = lines[self.row] if lines else ""

    def _at(
        self, message: str, hint: str | None = None, *, row: int | None = None, column: int | None = None
    ) -> Diagnostic:
        row = self.row if row is None else row
        column = self.column if column is None else column
        return Diagnostic(message, Mark(self.file, row + 1, column + 1, row + 1, column + 2), hint=hint)

    def diagnostic(self) -> Diagnostic:
        """The fault in plain words."""
        return (
            self._too_deep()
            or self._tab()
            or self._escape()
            or self._open_quote()
            or self._late_quote()
            or self._glued_key()
            or self._glued_dash()
            or self._template()
            or self._reserved()
            or self._flow()
            or self._open_bracket()
            or self._structure()
            or self._at(f"this is not YAML: {plain(self.problem or self.context)}")
        )

    def _too_deep(self) -> Diagnostic | None:
        """The parser of PyYAML 6.0.4 has a limit of its own, which it can meet before it gives the first node."""
        return self._at(TOO_DEEP) if "maximum nesting depth" in self.problem else None

    def _tab(self) -> Diagnostic | None:
        indent = re.match(r"\s*", self.text)
        tab = indent[0].find("\t") if indent else -1
        if tab < 0 or not any(words in self.problem for words in ("cannot start any token", "tab character")):
            return None
        return self._at("a tab indents this line; YAML allows only spaces there", "replace it by spaces", column=tab)

    def _escape(self) -> Diagnostic | None:
        if "unknown escape" not in self.problem:
            return None
        column = self.text.rfind("\\", 0, self.column + 1)
        column = column if column >= 0 else self.column
        word = plain(self.text[column : column + 2])
        opened = self.context_mark
        if opened and opened.line < self.row:
            return self._at(
                f"this quote is not closed on its line, and '{word}' on line {self.row + 1} is not an escape in it",
                "close it on its line; in single quotes a backslash is only a backslash",
                row=opened.line,
                column=opened.column,
            )
        return self._at(
            f"'{word}' is not an escape in double quotes",
            "put the text in single quotes: there a backslash is only a backslash",
            column=column,
        )

    def _open_quote(self) -> Diagnostic | None:
        if "quoted scalar" not in self.context or "end of stream" not in self.problem or not self.context_mark:
            return None
        return self._at(
            "this quote is never closed",
            "close it, or remove it",
            row=self.context_mark.line,
            column=self.context_mark.column,
        )

    def _late_quote(self) -> Diagnostic | None:
        """A quote that the next one closes, lines below, where YAML then finds no key."""
        depth = 0
        try:
            for token in yaml.scan(self.document, Loader=LOADER):
                depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
                if depth > DEEPEST:  # each token takes a time that grows with the depth
                    return None
                start, end = token.start_mark, token.end_mark
                if (
                    start.line < end.line == self.row
                    and isinstance(token, yaml.ScalarToken)
                    and token.style in {"'", '"'}
                ):
                    return self._at(
                        f"this quote is closed only on line {end.line + 1}, by {token.style} in column {end.column}",
                        "close it on its own line, or remove it",
                        row=start.line,
                        column=start.column,
                    )
                if start.line > self.row:
                    return None
        except yaml.YAMLError:
            return None
        return None

    def _glued_dash(self) -> Diagnostic | None:
        """`-baseline: {}` is a key to YAML; the fault shows there, or at a later item."""
        rows = [(self.row, self.column)]
        if self.context_mark:
            rows.insert(0, (self.context_mark.line, self.context_mark.column))
        for row, column in rows if "flow" not in self.context else ():
            if DASHED.match(word := self.lines[row][column:].strip()):
                return self._at(MISSING_SPACE, with_space(word), row=row, column=column)
        return None

    def _glued_key(self) -> Diagnostic | None:
        """`name:foo` is one word to YAML; the fault shows on that line or the next."""
        if not any(
            w in self.problem
            for w in ("not allowed in this context", "not allowed here", "could not find expected ':'")
        ):
            return None
        for row in (self.row, self.row - 1):
            match = _GLUED.match(self.lines[row]) if 0 <= row < len(self.lines) else None
            if match:
                return self._at(
                    "a space is missing after this colon",
                    f"write '{match[1].strip()}: ...'",
                    row=row,
                    column=match.end(1),
                )
        return None

    def _template(self) -> Diagnostic | None:
        positions = [(self.row, self.column + 1)]
        if "flow mapping" in self.context and self.context_mark:  # a brace of it is missing: the next line is the fault
            row = self.context_mark.line
            positions += [(row, len(self.lines[row]))]
        for row, end in positions:
            if match := _TEMPLATE.search(self.lines[row][:end]):
                return self._at(
                    "an expression must be quoted, and what follows it too",
                    'such as "{{ batch }}m"',
                    row=row,
                    column=match.end() - 2,
                )
        return None

    def _reserved(self) -> Diagnostic | None:
        if "cannot start any token" not in self.problem:
            return None
        character = self.text[self.column : self.column + 1]
        word = f"'{plain(character)}'" if character in _RESERVED else "this character"
        return self._at(f"{word} cannot start a value", "quote the value")

    def _flow(self) -> Diagnostic | None:
        for kind, close in (("flow sequence", "]"), ("flow mapping", "}")):
            if kind in self.context and self.context_mark:
                row, column = self.context_mark.line, self.context_mark.column
                return self._at(
                    f"this bracket is not closed by '{close}', or a comma is missing after it",
                    "close it, or put a value that has a bracket or a comma in single quotes",
                    row=row,
                    column=column,
                )
        if self.text[self.column : self.column + 1] in {"]", "}"}:
            return self._at("this bracket closes nothing", "remove it, or quote the value")
        return None

    def _open_bracket(self) -> Diagnostic | None:
        """A bracket after which the text ends, before an item."""
        if "expected node content" not in self.problem or "flow" not in self.context:
            return None
        opened = []
        try:
            for token in yaml.scan(self.document, Loader=LOADER):
                if isinstance(token, _OPENS):
                    opened.append(token)
                elif opened and isinstance(token, _CLOSES):
                    opened.pop()
        except yaml.YAMLError:  # another fault, further below
            return None
        if not opened:
            return None
        close = "]" if isinstance(opened[-1], yaml.FlowSequenceStartToken) else "}"
        mark = opened[-1].start_mark
        return self._at(
            f"this bracket is not closed by '{close}'",
            "close it, or quote the value",
            row=mark.line,
            column=mark.column,
        )

    def _structure(self) -> Diagnostic | None:
        if "mapping values are not allowed" in self.problem:
            return self._at(
                "a ':' is not allowed here",
                "quote a value that holds ': ', and indent the keys of one map alike",
            )
        if "sequence entries are not allowed" in self.problem:
            return self._at("a list item cannot start here", "start it on a line of its own")
        if "block mapping" in self.context:
            return self._at(
                "a key was expected here",
                "indent the keys of one map alike, and quote a whole value or nothing of it",
            )
        if "block collection" in self.context:
            return self._at("a list item ('- ...') was expected here", "indent the items of one list alike")
        if "could not find expected ':'" in self.problem:
            row = self.context_mark.line if self.context_mark else self.row
            column = self.context_mark.column if self.context_mark else self.column
            return self._at("this line has no ':' after its key", "write 'key: value'", row=row, column=column)
        return None
