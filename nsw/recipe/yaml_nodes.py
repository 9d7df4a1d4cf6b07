"""YAML as a tree that remembers where each key and value is, and trees merged without losing that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.errors import Mark

Scalar: TypeAlias = "str | int | float | bool | None"
Path: TypeAlias = "tuple[str | int, ...]"


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


def replaced(root: Node, path: Path, change: Callable[[Node], Node]) -> Node:
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


def renamed(root: Node, path: Path, key: str) -> Node:
    """The tree with the last key of `path` called `key`; the places stay as they are."""
    last = path[-1]

    def call(node: Node) -> Node:
        if not isinstance(node.value, dict) or last not in node.value:
            return node
        value = {key if k == last else k: v for k, v in node.value.items()}
        return Node(value, node.span, {key if k == last else k: m for k, m in node.keys.items()})

    return replaced(root, path[:-1], call)
