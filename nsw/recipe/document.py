"""A YAML file as data whose every key and value still knows its line and column.

Plain values follow YAML 1.2: `on`, `off`, `yes` and `no` are text, `1:30:00` is text, `010` is text, `1e-3` is a
number. libyaml before 0.2.6 (PyYAML 6.0.4) overflows the stack on deeply nested input.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import yaml

from nsw.errors import Diagnostic, InputError, Mark
from nsw.recipe.secrets import holds_secret, looks_secret, named_secrets, secret_parts
from nsw.recipe.units import WrittenFloat, WrittenInt, escape_nonprinting, keep_text, show_value

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


def merge_nodes(base: Node, over: Node) -> Node:
    """`over` laid on `base`: maps are merged key by key, everything else is replaced."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    value = dict(base.value)
    for key, child in over.value.items():
        value[key] = merge_nodes(value[key], child) if key in value else child
    return Node(value, base.span, base.keys | over.keys)


def _rename_key(root: Node, path: KeyPath, key: str) -> Node:
    """The tree with the last key of `path` renamed to `key`; the marks stay as they are."""
    part, rest = path[0], path[1:]
    if isinstance(root.value, list):
        return replace(root, value=[_rename_key(v, rest, key) if n == part else v for n, v in enumerate(root.value)])
    if not isinstance(root.value, dict):
        return root
    if rest:
        return replace(root, value={k: _rename_key(v, rest, key) if k == part else v for k, v in root.value.items()})
    value = {key if k == part else k: v for k, v in root.value.items()}
    return replace(root, value=value, keys={key if k == part else k: mark for k, mark in root.keys.items()})


MOST_ALIASED = 20_000  # nodes that all aliases together may stand for
MOST_KEYS = 50_000  # of one map: a lock has a key for each file of the program
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"  # in the place of the tag of a scalar without quotes and tag

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_INT_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # either of two classes
    """PyYAML's loader, which leaves it to nsw what a plain scalar is."""

    def resolve(self, kind: type, _value: object, implicit: tuple[bool, bool] | bool) -> str:
        """The tag of a node that has none in the file."""
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _TAG + "str"  # type: ignore[index]  # of scalars it is a pair
        return _TAG + ("seq" if kind is yaml.SequenceNode else "map")


class _Stop(Exception):  # noqa: N818  # it ends the reading; its argument is a diagnostic
    """A fault after which the rest of the file has no meaning."""


class _Tree:
    """Makes nodes of PyYAML's, and gathers the faults that do not end the reading."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._nodes: dict[int, Node | None] = {}  # by the id of PyYAML's node; None while it is being made
        self._aliases = 0  # aliases met
        self._aliased = 0  # nodes that they stand for
        self.faults: list[Diagnostic] = []

    def _mark_of(self, source: Any) -> Mark:
        start, end = source.start_mark, source.end_mark
        return Mark(self._file, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def _add_fault(self, mark: Mark, message: str, hint: str | None = None) -> None:
        self.faults.append(Diagnostic(message, mark, hint=hint))

    def node(self, source: Any, depth: int = 0) -> Node:
        """A node of PyYAML's.

        Args:
            source: The node.
            depth: How many maps and lists it is in.

        Raises:
            _Stop: nsw does not take it (recursion, too deep, too many aliases or keys).
        """
        mark = self._mark_of(source)
        if id(source) in self._nodes:
            return self._alias_node(source)
        if depth > DEEPEST:
            raise _Stop(Diagnostic(TOO_DEEP, _first_character(mark)))
        self._nodes[id(source)] = None
        if isinstance(source, yaml.ScalarNode):
            try:
                value = scalar_value(source.value, source.tag)
            except ValueError as fault:
                self._add_fault(mark, str(fault))
                value = source.value
            node = Node(value, mark, style=source.style or "", text=source.value)
        elif isinstance(source, yaml.SequenceNode):
            self._check_collection_tag(source, "seq")
            items = [self.node(item, depth + 1) for item in source.value]
            node = Node(items, mark, size=1 + sum(item.size for item in items))
        else:
            node = self._map_node(source, mark, depth)
        self._nodes[id(source)] = node
        return node

    def _alias_node(self, source: Any) -> Node:
        self._aliases += 1
        node = self._nodes[id(source)]
        self._aliased += node.size if node is not None else 0
        if node is not None and self._aliased <= MOST_ALIASED:
            return node
        # PyYAML's nodes do not tell where an alias is
        tokens = (token for token in yaml.scan(self._text, Loader=_Loader) if isinstance(token, yaml.AliasToken))
        alias = next(islice(tokens, self._aliases - 1, None), source)
        message = f"the aliases stand for more than {MOST_ALIASED} values"
        if node is None:
            message = f"'*{getattr(alias, 'value', '')}' is inside the node that it refers to"
        raise _Stop(Diagnostic(message, self._mark_of(alias)))

    def _map_node(self, source: Any, mark: Mark, depth: int) -> Node:
        self._check_collection_tag(source, "map")
        value: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        inherited: list[Node] = []
        if len(source.value) > MOST_KEYS:
            at = self._mark_of(source.value[MOST_KEYS][0])
            raise _Stop(Diagnostic(f"a map has more than {MOST_KEYS:,} keys", at))
        for key_source, child_source in source.value:
            key, at = self._key_text(key_source, source, depth)
            child = self.node(child_source, depth + 1)
            # `-1` and `-2` on lines of their own below a key are one text to YAML
            if not child.style and child.span.line > at.line and DASHED.match(child.text):
                self._add_fault(_first_character(child.span), MISSING_SPACE, dash_space_hint(child.text))
            if key == "<<" and key_source.tag == _PLAIN:
                inherited += self._merged_maps(child, at)
            elif key in value:
                first = f"the key {show_value(key)} is set twice; the first is at {keys[key]}"
                self._add_fault(at, first, "keep one of them")
            elif key is not None:
                value[key], keys[key] = child, at
        for node in inherited:
            assert isinstance(node.value, dict)
            value = {k: v for k, v in node.value.items() if k not in value} | value
            keys = node.keys | keys
        return Node(value, mark, keys, size=1 + sum(n.size for n in value.values()))

    def _key_text(self, source: Any, parent: Any, depth: int) -> tuple[str | None, Mark]:
        """A key as text, or None (noted as a fault) where it is a map or a list."""
        mark = self._mark_of(source)
        if isinstance(source, yaml.ScalarNode):
            if source.tag == _PLAIN and DASHED.match(source.value):
                raise _Stop(Diagnostic(MISSING_SPACE, mark, hint=dash_space_hint(f"{source.value}:")))
            return source.value, mark
        node = self.node(source, depth + 1)
        start = parent.start_mark
        if isinstance(node.value, dict) and source.start_mark.index == start.index + 1:  # {{
            braces = Mark(self._file, start.line + 1, start.column + 1, start.line + 1, start.column + 3)
            self._add_fault(braces, "an expression must be quoted", 'such as "{{ batch }}"')
        else:
            self._add_fault(node.span, "a key must be text, but found " + show_value(node.value))
        return None, mark

    def _merged_maps(self, node: Node, mark: Mark) -> list[Node]:
        """The maps that a merge key `<<` brings, the most important first."""
        nodes = node.value if isinstance(node.value, list) else [node]
        if all(isinstance(n.value, dict) for n in nodes):
            return nodes
        self._add_fault(mark, "'<<' takes an alias of a map, or a list of them", "such as <<: *defaults")
        return []

    def _check_collection_tag(self, source: Any, kind: str) -> None:
        if source.tag != _TAG + kind:
            start = self._mark_of(source)
            self._add_fault(
                _first_character(start), f"the tag {show_value(source.tag)} is not allowed here", "remove it"
            )


def scalar_value(text: str, tag: str) -> Scalar:
    """The value of a scalar.

    Args:
        text: Its text without quotes.
        tag: Its tag in full.

    Raises:
        ValueError: The tag is not a safe one, or the text is not what the tag says.
    """
    if tag == _PLAIN:
        return _parse_scalar(text)
    kind = tag.removeprefix(_TAG)
    if kind == "str":
        return text
    types: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "null": (type(None),)}
    if kind not in types:
        raise ValueError(f"the tag {show_value(tag)} is not allowed here: only str, int, float, bool and null are")
    value = _parse_scalar(text)
    if not isinstance(value, types[kind]) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"the tag !!{kind} does not fit {show_value(text)}")
    return keep_text(float(value), text) if kind == "float" and isinstance(value, int) else value


def _parse_scalar(text: str) -> Scalar:
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
_NOT_REPEATED = "the value here is not valid; it is not printed because it may be secret"


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
            secrets_found += _find_secrets(self.root)
        return frozenset(escape_nonprinting(secret).casefold() for secret in secrets_found)

    def diagnostic(self, mark: Mark | None, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic at a place, with its line; where the text holds a secret, without the line and the secret.

        Args:
            mark: The place; None: the file as a whole.
            message: What is wrong.
            hint: What to do.
        """
        if not self.secrets:
            return self.with_line(Diagnostic(message, mark, hint=hint))
        if self._holds_secret(message):
            message = _without_quotes(message)
        message = _NOT_REPEATED if self._holds_secret(message) else message
        return Diagnostic(message, mark, hint=None if hint and self._holds_secret(hint) else hint, line_is_secret=True)

    def with_line(self, fault: Diagnostic) -> Diagnostic:
        """A fault with the line that its mark is on, fit for a terminal; without it when it is hopelessly long."""
        mark = fault.mark
        if mark is None or mark.line > len(self.lines) or mark.column > _LONGEST_LINE:
            return fault
        line = self.lines[mark.line - 1][: _LONGEST_LINE + mark.column]
        return replace(fault, source_line=re.sub(_UNPRINTABLE, "\ufffd", line))

    def _holds_secret(self, message: str) -> bool:
        """Whether a message contains a secret, or enough of one."""
        text = message.casefold()
        if any(f"'{secret}'" in text for secret in self.secrets if 0 < len(secret) < _TELLING):
            return True
        return any(text[at : at + _TELLING] in self._joined_secrets for at in range(len(text) - _TELLING + 1))

    @cached_property
    def _joined_secrets(self) -> str:
        return "\0".join(self.secrets)


def _find_secrets(node: Node, is_secret: bool = False) -> Iterator[str]:
    """The texts of the secrets in a tree: all values below a key with a secret's name, except those marked `plain`.

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
        yield from _find_secrets(child, is_secret or is_secret_name)
        if key == "env":
            for _, value in _children(child):
                yield from _find_secrets(value, isinstance(value.value, dict | list) or holds_secret(value.text))
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
        for path, node in _find_nodes(self.root, pattern, ()):
            yield path, plain_data(node)

    def mark(self, path: KeyPath, key: bool = False) -> Mark | None:
        """The place of a value, or of its key; of the nearest ancestor that exists when `path` does not."""
        node, at_key = self.root, _first_character(self.root.span)
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
        """The place of `length` characters from `offset` of `raw(path)`.

        Args:
            path: A value.
            offset: Characters of its text as it is in the file, quotes and all, before the place.
            length: Characters that the place has.
        """
        node = self.node(path)
        if node is None:
            return self.mark(path)
        before = LINE_END.split(self.raw(path)[:offset])
        line = node.span.line + len(before) - 1
        column = len(before[-1]) + (node.span.column if len(before) == 1 else 1)
        return Mark(node.span.file, line, column, line, column + max(1, length))

    def mark_in_value(self, path: KeyPath, offset: int | None, length: int = 1) -> Mark | None:
        """The place of `length` characters from `offset` of a text; of all of it where escapes hide them.

        Args:
            path: A value.
            offset: Characters of its text before the place; None: all of it.
            length: Characters that the place has.
        """
        node = self.node(path)
        if offset is None or node is None or not isinstance(node.value, str):
            return self.mark(path)
        quote = len(node.style) if node.style in {"'", '"'} else 0
        raw = self.raw(path)
        if raw[quote : len(raw) - quote] != node.value:
            return self.mark(path)
        return self.mark_in_raw(path, quote + offset, length)

    def at(self, mark: Mark | None, message: str, *, hint: str | None = None) -> Diagnostic:
        """A diagnostic at a place of this file, with its line.

        Args:
            mark: The place; None: the file as a whole.
            message: What is wrong.
            hint: What to do.
        """
        source = self.options.get(mark.file, self.source) if mark is not None else self.source
        return source.diagnostic(mark, message, hint)

    def diagnostic(self, path: KeyPath, message: str, *, hint: str | None = None, key: bool = False) -> Diagnostic:
        """A diagnostic at a value, or at its key.

        Args:
            path: The value; of one that does not exist the nearest ancestor is pointed at.
            message: What is wrong.
            hint: What to do.
            key: Whether to point at its key.
        """
        return self.at(self.mark(path, key), message, hint=hint)

    def overlaid(self, path: KeyPath) -> Document:
        """This document with the map at `path` laid over the whole: maps merged, everything else replaced."""
        over = self.node(path)
        return self if over is None or over.value is None else replace(self, root=merge_nodes(self.root, over))

    def renamed(self, path: KeyPath, key: str) -> Document:
        """This document with one key called otherwise; places stay true to the file."""
        return replace(self, root=_rename_key(self.root, path, key))


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
    root, faults = _compose_tree(text, file)
    if root is None and not faults:
        faults = [Diagnostic("the file is empty", Mark(file, 1, 1, 1, 2))]
    if root is None or faults:
        raise InputError(in_order(map(_redact_fault if source.secrets else source.with_line, faults)))
    source.root = root
    return Document(file, root, source)


def _redact_fault(fault: Diagnostic) -> Diagnostic:
    """A YAML fault without words of the text: nsw cannot be sure which of them are secret."""
    hint = None if fault.hint and "'" in fault.hint else fault.hint
    message = _without_quotes(fault.message.partition(": ")[0])
    return replace(fault, message=message, hint=hint, line_is_secret=True)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Each diagnostic once, in the order of the file."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.mark.line, d.mark.column) if d.mark else (0, 0))


def _compose_tree(text: str, file: str) -> tuple[Node | None, list[Diagnostic]]:
    if len(text) > LARGEST:
        return None, [Diagnostic(f"the file has more than {LARGEST} characters", Mark(file, 1, 1, 1, 2))]
    tree, collects = _Tree(text, file), gc.isenabled()
    gc.disable()  # PyYAML's nodes are many and none is garbage yet: to look for it takes more time than to parse
    try:
        root = yaml.compose(text, Loader=_Loader)
        return None if root is None else tree.node(root), tree.faults
    except _Stop as stop:
        return None, [stop.args[0]]
    except yaml.YAMLError as fault:
        return None, [explain(fault, text, LINE_END.split(text), file)]
    except UnicodeEncodeError as fault:
        before = LINE_END.split(text[: fault.start])
        mark = Mark(file, len(before), len(before[-1]) + 1, len(before), len(before[-1]) + 2)
        return None, [Diagnostic("half of a surrogate pair is not a character", mark)]
    except RecursionError:  # of PyYAML without libyaml, which has no limit of its own
        return None, [Diagnostic(TOO_DEEP, Mark(file, 1, 1, 1, 2))]
    finally:
        if collects:
            gc.enable()


def _first_character(mark: Mark) -> Mark:
    return Mark(mark.file, mark.line, mark.column, mark.line, mark.column + 1)


def _find_nodes(node: Node, pattern: tuple[str | int, ...], path: KeyPath) -> Iterator[tuple[KeyPath, Node]]:
    if not pattern:
        yield path, node
        return
    part, rest = pattern[0], pattern[1:]
    if part != "*":
        if (child_node := node.child(part)) is not None:
            yield from _find_nodes(child_node, rest, (*path, part))
        return
    for name, child in _children(node):
        yield from _find_nodes(child, rest, (*path, name))


def _children(node: Node) -> Iterable[tuple[str | int, Node]]:
    if isinstance(node.value, dict):
        return node.value.items()
    return enumerate(node.value) if isinstance(node.value, list) else ()


class _Dumper(yaml.SafeDumper):
    """PyYAML knows YAML 1.1, in which `1e3` is a text and `0o17` too."""


def as_yaml(data: Any) -> str:
    """The text, keys in the order of the data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """A text, in quotes where nsw would read something else without them."""
    try:
        is_plain = _parse_scalar(value) == value
    except ValueError:
        is_plain = False
    return dumper.represent_scalar(_TAG + "str", value, style=None if is_plain else "'")


_Dumper.add_representer(WrittenInt, lambda dumper, value: dumper.represent_scalar(_TAG + "int", str(value)))
_Dumper.add_representer(WrittenFloat, lambda dumper, value: dumper.represent_scalar(_TAG + "float", str(value)))
_Dumper.add_representer(str, _represent_text)


DASHED = re.compile(r"-[^\s-]")
_GLUED = re.compile(r"^(\s*(?:- )?[A-Za-z_][\w.-]*):(?![\s/])\S")
_TEMPLATE = re.compile(r"[:\-,\[]\s+\{\{")
_RESERVED = "@`%|>"
DEEPEST = 50  # levels of nesting
TOO_DEEP = f"nested more than {DEEPEST} levels deep"
_OPENS = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSES = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
MISSING_SPACE = "a space is missing after this dash"


def dash_space_hint(item: str) -> str:
    """What to write instead of an item whose dash has no space after it; '' stands for one that is not shown."""
    if not item:
        return "write '- ...' for an item of a list"
    word = escape_nonprinting(item.split(maxsplit=1)[0][1:])
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
        return _explain_bad_character(fault, text, file)
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    if mark is None:
        return Diagnostic(f"this is not YAML: {escape_nonprinting(str(fault))}", Mark(file, 1, 1, 1, 2))
    return _FaultContext(fault, text, lines, file, mark.line, mark.column).diagnostic()


def _explain_bad_character(fault: yaml.reader.ReaderError, text: str, file: str) -> Diagnostic:
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


# words of the parser's problem or context -> what nsw says, and what to do
_STRUCTURE = (
    ("mapping values are not allowed", "a ':' is not allowed here",
     "quote a value that holds ': ', and indent the keys of one map alike"),
    ("sequence entries are not allowed", "a list item cannot start here", "start it on a line of its own"),
    ("block mapping", "a key was expected here",
     "indent the keys of one map alike, and quote a whole value or nothing of it"),
    ("block collection", "a list item ('- ...') was expected here", "indent the items of one list alike"),
)  # fmt: skip


class _FaultContext:
    """A syntax fault with the lines around it. Positions are (row, column), both from 0."""

    def __init__(
        self, fault: yaml.YAMLError, text: str, lines: Sequence[str], file: str, line: int, column: int
    ) -> None:
        self.document = text
        self.problem = str(getattr(fault, "problem", "") or "")
        self.context = str(getattr(fault, "context", "") or "")
        mark = getattr(fault, "context_mark", None)
        self.opened: tuple[int, int] | None = (mark.line, mark.column) if mark else None
        self.lines = lines
        self.file = file
        self.row = min(line, max(len(lines) - 1, 0))
        self.column = column if line == self.row else 0
        self.text = lines[self.row] if lines else ""

    def _diagnostic_at(
        self, message: str, hint: str = "", at: tuple[int, int] | None = None, width: int = 1
    ) -> Diagnostic:
        row, column = at or (self.row, self.column)
        return Diagnostic(message, Mark(self.file, row + 1, column + 1, row + 1, column + 1 + width), hint=hint or None)

    def diagnostic(self) -> Diagnostic:
        """The fault in plain words."""
        return (
            self._explain_composition()
            or self._explain_tab()
            or self._explain_escape()
            or self._explain_quote()
            or self._explain_glued_key()
            or self._explain_glued_dash()
            or self._explain_template()
            or self._explain_bracket()
            or self._explain_structure()
            or self._diagnostic_at(f"this is not YAML: {escape_nonprinting(self.problem or self.context)}")
        )

    def _explain_composition(self) -> Diagnostic | None:
        """Explain a fault that is not one of syntax."""
        if "maximum nesting depth" in self.problem:
            return self._diagnostic_at(TOO_DEEP)
        if "another document" in self.problem:
            return self._diagnostic_at("a second document starts here", "keep one document in a file", width=len("---"))
        word = re.match(r"[&*][^\s,\]}]+", self.text[self.column :])
        name, width = ("...", 1) if not word else (escape_nonprinting(word[0][1:]), len(word[0]))
        if "undefined alias" in self.problem:
            hint = "quote the value if the * is meant as text"
            return self._diagnostic_at(f"no anchor '&{name}' is defined above", hint, width=width)
        if "duplicate anchor" in self.context:
            return self._diagnostic_at(
                f"the anchor '&{name}' is defined above already", "give it another name", width=width
            )
        return None

    def _explain_tab(self) -> Diagnostic | None:
        tab = self.text[: len(self.text) - len(self.text.lstrip())].find("\t")
        if tab < 0 or not any(words in self.problem for words in ("cannot start any token", "tab character")):
            return None
        message = "a tab indents this line; YAML allows only spaces there"
        return self._diagnostic_at(message, "replace it by spaces", (self.row, tab))

    def _explain_escape(self) -> Diagnostic | None:
        if "unknown escape" not in self.problem:
            return None
        column = self.text.rfind("\\", 0, self.column + 1)
        column = column if column >= 0 else self.column
        word, single = (
            escape_nonprinting(self.text[column : column + 2]),
            "in single quotes a backslash is only a backslash",
        )
        if self.opened and self.opened[0] < self.row:
            message = (
                f"this quote is not closed on its line, and '{word}' on line {self.row + 1} is not an escape in it"
            )
            return self._diagnostic_at(message, f"close it on its line; {single}", self.opened)
        hint = "put the text in single quotes: there a backslash is only a backslash"
        return self._diagnostic_at(f"'{word}' is not an escape in double quotes", hint, (self.row, column))

    def _explain_quote(self) -> Diagnostic | None:
        """A quote without an end, or one that the next one closes, lines below, where YAML then finds no key."""
        if "quoted scalar" in self.context and "end of stream" in self.problem and self.opened:
            return self._diagnostic_at("this quote is never closed", "close it, or remove it", self.opened)
        depth = 0
        try:
            for token in yaml.scan(self.document, Loader=_Loader):
                depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
                start, end = token.start_mark, token.end_mark
                if depth > DEEPEST or start.line > self.row:  # each token takes a time that grows with the depth
                    return None
                quote = token.style if isinstance(token, yaml.ScalarToken) else ""
                if quote in {"'", '"'} and start.line < end.line == self.row:
                    message = f"this quote is closed only on line {end.line + 1}, by {quote} in column {end.column}"
                    return self._diagnostic_at(
                        message, "close it on its own line, or remove it", (start.line, start.column)
                    )
        except yaml.YAMLError:
            return None
        return None

    def _explain_glued_dash(self) -> Diagnostic | None:
        """`-baseline: {}` is a key to YAML; the fault shows there, or at a later item."""
        positions = [*([self.opened] if self.opened else []), (self.row, self.column)]
        for row, column in positions if "flow" not in self.context else ():
            if DASHED.match(word := self.lines[row][column:].strip()):
                return self._diagnostic_at(MISSING_SPACE, dash_space_hint(word), (row, column))
        return None

    def _explain_glued_key(self) -> Diagnostic | None:
        """`name:foo` is one word to YAML; the fault shows on that line or the next."""
        problems = ("not allowed in this context", "not allowed here", "could not find expected ':'")
        for row in (self.row, self.row - 1) if any(words in self.problem for words in problems) else ():
            match = _GLUED.match(self.lines[row]) if 0 <= row < len(self.lines) else None
            if match:
                hint = f"write '{match[1].strip()}: ...'"
                return self._diagnostic_at("a space is missing after this colon", hint, (row, match.end(1)))
        return None

    def _explain_template(self) -> Diagnostic | None:
        positions = [(self.row, self.column + 1)]
        if "flow mapping" in self.context and self.opened:  # a brace of it is missing: the next line is the fault
            positions.append((self.opened[0], len(self.lines[self.opened[0]])))
        for row, end in positions:
            if match := _TEMPLATE.search(self.lines[row][:end]):
                message = "an expression must be quoted, and what follows it too"
                return self._diagnostic_at(message, 'such as "{{ batch }}m"', (row, match.end() - 2))
        return None

    def _explain_bracket(self) -> Diagnostic | None:
        character = self.text[self.column : self.column + 1]
        if "cannot start any token" in self.problem:
            word = f"'{escape_nonprinting(character)}'" if character in _RESERVED else "this character"
            return self._diagnostic_at(f"{word} cannot start a value", "quote the value")
        for kind, close in (("flow sequence", "]"), ("flow mapping", "}")):
            if kind in self.context and self.opened:
                hint = "close it, or put a value that has a bracket or a comma in single quotes"
                message = f"this bracket is not closed by '{close}', or a comma is missing after it"
                return self._diagnostic_at(message, hint, self.opened)
        if character in {"]", "}"}:
            return self._diagnostic_at("this bracket closes nothing", "remove it, or quote the value")
        if "expected node content" not in self.problem or "flow" not in self.context:
            return None
        opened = []  # the text ends before an item
        try:
            for token in yaml.scan(self.document, Loader=_Loader):
                if isinstance(token, _OPENS):
                    opened.append(token)
                elif opened and isinstance(token, _CLOSES):
                    opened.pop()
        except yaml.YAMLError:  # another fault, further below
            return None
        if not opened:
            return None
        close, mark = "]" if isinstance(opened[-1], yaml.FlowSequenceStartToken) else "}", opened[-1].start_mark
        return self._diagnostic_at(
            f"this bracket is not closed by '{close}'", "close it, or quote the value", (mark.line, mark.column)
        )

    def _explain_structure(self) -> Diagnostic | None:
        for words, message, hint in _STRUCTURE:
            if words in self.problem or words in self.context:
                return self._diagnostic_at(message, hint)
        if "could not find expected ':'" in self.problem:
            return self._diagnostic_at("this line has no ':' after its key", "write 'key: value'", self.opened)
        return None
