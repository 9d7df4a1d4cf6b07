"""A YAML file as data whose every key and value still knows its line and column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from nsw.errors import Diagnostic, InputError, Mark
from nsw.recipe.compose_yaml import Stop, compose
from nsw.recipe.shown_lines import LINE_END, ShownLines
from nsw.recipe.syntax import MISSING_SPACE, explain, with_space
from nsw.recipe.yaml_nodes import Node, Path, merged, plain_data, renamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST = 4 << 20  # characters of a file


@dataclass(frozen=True, eq=False)
class Document:
    """A parsed file: plain data beside the tree that knows the places."""

    file: str
    text: str
    root: Node
    shown: ShownLines  # the text as it may be shown
    shown_of: dict[str, ShownLines] = field(default_factory=dict)  # of what was laid over it: by the file of its marks

    @cached_property
    def data(self) -> Any:
        """The whole file as dict, list, str, int, float, bool and None."""
        return plain_data(self.root)

    def node(self, path: Path) -> Node | None:
        """The node at `path`, or None."""
        node: Node | None = self.root
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def get(self, path: Path) -> Any:
        """The plain data at `path`, or None."""
        node = self.node(path)
        return plain_data(node) if node is not None else None

    def find(self, *pattern: str | int) -> Iterator[tuple[Path, Any]]:
        """Every path that fits `pattern`, where `*` stands for any key or index, with its data."""
        for path, node in _find(self.root, pattern, ()):
            yield path, plain_data(node)

    def mark(self, path: Path, key: bool = False) -> Mark | None:
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

    def raw(self, path: Path) -> str:
        """The text of the value at `path` as it is in the file, quotes and all; empty without one."""
        node = self.node(path)
        if node is None or node.value is None:
            return ""
        starts, span = self.shown.starts, node.span
        return self.text[starts[span.line - 1] + span.column - 1 : starts[span.end_line - 1] + span.end_column - 1]

    def mark_in_raw(self, path: Path, offset: int, length: int = 1) -> Mark | None:
        """The place of `length` characters from `offset` of `raw(path)`."""
        node = self.node(path)
        if node is None:
            return self.mark(path)
        before = LINE_END.split(self.raw(path)[:offset])
        line = node.span.line + len(before) - 1
        column = len(before[-1]) + (node.span.column if len(before) == 1 else 1)
        return Mark(node.span.file, line, column, line, column + max(1, length))

    def mark_in_value(self, path: Path, offset: int | None, length: int = 1) -> Mark | None:
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
        return Diagnostic(message, mark, self._shown_at(mark).at(mark), hint)

    def hides(self, mark: Mark | None) -> bool:
        """Whether something secret stands at a place: a message about it does not repeat what stands there."""
        return self._shown_at(mark).hides(mark)

    def _shown_at(self, mark: Mark | None) -> ShownLines:
        return self.shown_of.get(mark.file, self.shown) if mark is not None else self.shown

    def diagnostic(self, path: Path, message: str, *, hint: str | None = None, key: bool = False) -> Diagnostic:
        """A diagnostic at a value, or at its key."""
        return self.at(self.mark(path, key), message, hint=hint)

    def overlaid(self, path: Path) -> Document:
        """This document with the map at `path` laid over the whole: maps merged, everything else replaced."""
        over = self.node(path)
        return self if over is None or over.value is None else replace(self, root=merged(self.root, over))

    def with_root(self, root: Node) -> Document:
        """This file with another tree made of its nodes; places stay true to the file."""
        return replace(self, root=root)

    def renamed(self, path: Path, key: str) -> Document:
        """This document with one key called otherwise; places stay true to the file."""
        return replace(self, root=renamed(self.root, path, key))


def parse(text: str, file: str, shown: ShownLines | None = None) -> Document:
    """Parse YAML.

    Args:
        text: The file's text.
        file: Its name, for the marks.
        shown: What is shown of it; None: its lines.

    Raises:
        InputError: Not YAML, empty, too large, or with keys set twice; every such fault found.
    """
    text = text.removeprefix("\ufeff")
    shown = shown or ShownLines(text)
    try:
        root, faults = _composed(text, shown, file)
    except Stop as stop:
        root, faults = None, [stop.fault]
    if root is None and not faults:
        faults = [Diagnostic("the file is empty", Mark(file, 1, 1, 1, 2))]
    if root is None or faults:
        raise InputError(in_order(replace(f, source_line=shown.at(f.mark)) for f in faults))
    return Document(file, text, root, shown)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Each diagnostic once, in the order of the file."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.mark.line, d.mark.column) if d.mark else (0, 0))


def _composed(text: str, shown: ShownLines, file: str) -> tuple[Node | None, list[Diagnostic]]:
    if len(text) > LARGEST:
        raise Stop(Mark(file, 1, 1, 1, 2), f"the file has more than {LARGEST} characters")
    try:
        return compose(text, file, shown.hides)
    except yaml.YAMLError as fault:
        found = explain(fault, text, LINE_END.split(text), file)
        return None, [_hushed(found) if shown.hides(found.mark) else found]
    except UnicodeEncodeError as fault:
        before = LINE_END.split(text[: fault.start])
        mark = Mark(file, len(before), len(before[-1]) + 1, len(before), len(before[-1]) + 2)
        return None, [Diagnostic("half of a surrogate pair is not a character", mark)]


def _hushed(fault: Diagnostic) -> Diagnostic:
    """What the parser refused, without words of the text."""
    if fault.message == MISSING_SPACE:
        return replace(fault, hint=with_space(""))
    message, _, words = fault.message.partition(": ")
    return replace(fault, message=message) if words else fault


def _first(span: Mark) -> Mark:
    return Mark(span.file, span.line, span.column, span.line, span.column + 1)


def _find(node: Node, pattern: tuple[str | int, ...], path: Path) -> Iterator[tuple[Path, Node]]:
    if not pattern:
        yield path, node
        return
    part, rest = pattern[0], pattern[1:]
    if part != "*":
        if (found := node.child(part)) is not None:
            yield from _find(found, rest, (*path, part))
        return
    for name, child in _children(node):
        yield from _find(child, rest, (*path, name))


def _children(node: Node) -> Iterable[tuple[str | int, Node]]:
    if isinstance(node.value, dict):
        return node.value.items()
    return enumerate(node.value) if isinstance(node.value, list) else ()
