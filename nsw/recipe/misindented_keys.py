"""Keys that are beside the key that they belong below: one slip of the indentation, reported once."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nsw.errors import Diagnostic, nearest
from nsw.recipe.faults import shown
from nsw.recipe.secret_names import without_value
from nsw.recipe.yaml_nodes import Node, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsw.recipe.document import Document
    from nsw.recipe.yaml_nodes import Path

_SHOWN = 2  # names in a message


def set_right(document: Document, kind_at: Callable[[Path], Any]) -> tuple[Document, list[Diagnostic]]:
    """The document as it was meant, so that what else is wrong with it shows too.

    Args:
        document: The file.
        kind_at: What the model has at a path: a model, another type, or None where it has nothing.

    Returns:
        The document with such keys where they belong, and a fault for each key that they belong below.
    """
    faults: list[Diagnostic] = []
    for path in list(_maps(document.root, ())):
        while (node := document.node(path)) is not None and (found := _slip(node, path, kind_at)):
            key, names = found
            faults.append(_fault(document, path, key, names))
            document = document.with_root(_moved(document.root, path, key, names))
    return document, faults


def _maps(node: Node, path: Path) -> Iterator[Path]:
    """The paths of all maps, the inner ones first: what is moved further out is looked at before."""
    if isinstance(node.value, dict):
        for key, child in node.value.items():
            yield from _maps(child, (*path, key))
        yield path
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            yield from _maps(child, (*path, index))


def _slip(node: Node, path: Path, kind_at: Callable[[Path], Any]) -> tuple[str, list[str]] | None:
    """An empty key, and those right behind it that can only belong below it."""
    assert isinstance(node.value, dict)
    known = keys_of(kind_at(path))
    names = list(node.value)
    for number, key in enumerate(names):
        if node.value[key].value is not None or not takes_keys(kind := kind_at((*path, key))):
            continue
        inner = keys_of(kind)
        below = list(takewhile(lambda name: _belongs(name, known, inner), names[number + 1 :]))  # noqa: B023  used at once
        if below:
            return key, below
    return None


def _belongs(name: str, known: Sequence[str] | None, inner: Sequence[str] | None) -> bool:
    """Whether a key is none of the map that it is in, and one of the map below the empty key."""
    if known is None:
        return inner is not None and name in inner
    if name in known:
        return False
    return name in inner if inner is not None else nearest(name, known) is None


def keys_of(kind: Any) -> list[str] | None:
    """The keys of a model; None of what takes any."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)) or kind.model_config.get("extra") == "allow":
        return None
    return [field.alias or name for name, field in kind.model_fields.items()]


def takes_keys(kind: Any) -> bool:
    """Whether it is a map of any sort."""
    return keys_of(kind) is not None or getattr(kind, "__origin__", None) is dict or _is_open(kind)


def _is_open(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _fault(document: Document, path: Path, key: str, names: list[str]) -> Diagnostic:
    more = len(names) - _SHOWN
    which = " and ".join(shown(without_value(name)) for name in names[:_SHOWN]) + (
        f" and {more} more" if more > 0 else ""
    )
    stand = "stands" if len(names) == 1 else "stand"
    return document.diagnostic(
        (*path, names[0]),
        f"{which} {stand} beside '{key}', not below it",
        hint=f"indent {'it' if len(names) == 1 else 'them'} further than '{key}'",
        key=True,
    )


def _moved(root: Node, path: Path, key: str, names: list[str]) -> Node:
    def inner(node: Node) -> Node:
        assert isinstance(node.value, dict)
        value = {name: child for name, child in node.value.items() if name not in names}
        moved = {name: node.value[name] for name in names}
        span = moved[names[0]].span
        value[key] = Node(moved, span, {name: node.keys[name] for name in names})
        return Node(value, node.span, {name: mark for name, mark in node.keys.items() if name not in names})

    return replaced(root, path, inner)
