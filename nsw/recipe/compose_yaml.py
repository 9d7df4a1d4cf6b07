"""YAML text to a tree of nodes: YAML 1.2's plain values, safe tags only, bounded in depth and size.

The tree is made from the parser's events and not by `yaml.compose`, whose C version overflows the stack
on deeply nested input. Plain values follow YAML 1.2: `on`, `off`, `yes` and `no` are text, `1:30:00` is
text, `010` is text, `1e-3` is a number.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from nsw.errors import Diagnostic, Mark
from nsw.recipe.faults import shown
from nsw.recipe.numbers_as_written import written
from nsw.recipe.secret_names import without_value
from nsw.recipe.syntax import DASHED, DEEPEST, LOADER, MISSING_SPACE, with_space
from nsw.recipe.yaml_nodes import Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_ALIASED = 20_000  # nodes that all aliases together may stand for
MOST_KEYS = 50_000  # of one map: a lock has a key for each file of the program
_TAG = "tag:yaml.org,2002:"

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_INT_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOT_READ = "its tag or its size makes this no value that can be read; quote it if it is meant as text"


class Stop(Exception):  # noqa: N818  # it ends the composing; what went wrong is the diagnostic it holds
    """A fault after which the rest of the file has no meaning."""

    def __init__(self, mark: Mark, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = Diagnostic(message, mark, hint=hint)


def compose(text: str, file: str, hides: Callable[[Mark], bool]) -> tuple[Node | None, list[Diagnostic]]:
    """The tree of the only document in `text`, None when it is empty, and faults that do not end the reading.

    Args:
        text: YAML.
        file: Its name, for the marks.
        hides: Whether something secret stands at a place, which no fault repeats.

    Raises:
        yaml.YAMLError: The text is not YAML.
        Stop: It is YAML that nsw does not take (two documents, recursion, too deep).
    """
    return _Composer(yaml.parse(text, Loader=LOADER), file, hides).document()


class _Composer:
    def __init__(self, events: Iterator[Any], file: str, hides: Callable[[Mark], bool]) -> None:
        self._events = events
        self._file = file
        self._hides = hides
        self._anchors: dict[str, Node | None] = {}  # None while the anchored node is being made
        self._aliased = 0
        self.faults: list[Diagnostic] = []

    def document(self) -> tuple[Node | None, list[Diagnostic]]:
        root: Node | None = None
        seen = False
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent) and seen:
                raise Stop(self._mark(event), "a second document starts here", "keep one document in a file")
            if isinstance(event, yaml.NodeEvent):
                root, seen = self._node(event, 0), True
        return root, self.faults

    def _mark(self, event: Any, end: Any = None) -> Mark:
        start, stop = event.start_mark, (end or event).end_mark
        return Mark(self._file, start.line + 1, start.column + 1, stop.line + 1, stop.column + 1)

    def _fault(self, mark: Mark, message: str, hint: str | None = None) -> None:
        self.faults.append(Diagnostic(message, mark, hint=hint))

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > DEEPEST:
            raise Stop(self._mark(event), f"nested more than {DEEPEST} levels deep")
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
            anchor = "such anchor" if self._hides(mark) else f"anchor '&{event.anchor}'"
            raise Stop(mark, f"no {anchor} is defined above", "quote the value if the * is meant as text")
        node = self._anchors[event.anchor]
        if node is None:
            alias = "this alias" if self._hides(mark) else f"'*{event.anchor}'"
            raise Stop(mark, f"{alias} is inside the node that it refers to")
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
            self._fault(mark, _NOT_READ if self._hides(mark) else str(fault))
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
                    mark,
                    f"the key {shown(without_value(key))} is set twice; the first is at {keys[key]}",
                    "keep one of them",
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
            item = "" if self._hides(child.span) else child.text
            self._fault(Mark(self._file, line, column, line, column + 1), MISSING_SPACE, with_space(item))

    def _key(self, event: Any, parent: Any, depth: int) -> tuple[str | None, Mark]:
        """A key as text, or None (noted as a fault) where it is a map or a list."""
        if isinstance(event, yaml.ScalarEvent):
            mark = self._mark(event)
            if not event.style and DASHED.match(event.value):
                raise Stop(mark, MISSING_SPACE, with_space("" if self._hides(mark) else f"{event.value}:"))
            return event.value, mark
        node = self._node(event, depth + 1)
        mark = self._mark(event)
        if not isinstance(node.value, dict | list):
            return str(node.value), mark
        if isinstance(node.value, dict) and event.start_mark.index == parent.start_mark.index + 1:  # {{
            self._fault(self._mark(parent, event), "an expression must be quoted", 'such as "{{ batch }}"')
        else:
            self._fault(node.span, "a key must be text, but found " + shown(node.value))
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
            mark = self._mark(event)
            tag = "this tag" if self._hides(mark) else f"the tag {shown(event.tag)}"
            self._fault(mark, f"{tag} is not allowed here", "remove it")


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
        raise ValueError(f"the tag {shown(tag)} is not allowed here: only str, int, float, bool and null are")
    value = _resolved(text)
    if not isinstance(value, types[kind]) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"the tag !!{kind} does not fit {shown(text)}")
    return written(float(value), text) if kind == "float" and isinstance(value, int) else value


def _resolved(text: str) -> Scalar:
    """The value of a plain scalar without a tag (YAML 1.2 core schema, less leading zeros); numbers keep their text."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if not (text[0].isdigit() or text[0] in "+-."):
        return text
    if _INT.fullmatch(text):
        return _whole(text, 10)
    if _INT_BASE.fullmatch(text):
        return _whole(text, 0)
    if _FLOAT.fullmatch(text):
        return written(float(text), text)
    special = _SPECIAL.fullmatch(text)
    if special:
        return math.nan if special[1] is None else float(special[1] + "inf")
    return text


def _whole(text: str, base: int) -> int | float:
    number = int(text, base) if len(text) <= 24 else 1 << 64
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"the number {shown(text)} does not fit into 64 bits; quote it if it is meant as text")
    return written(number, text)
