"""Expressions over a tool's metric names: `dram__bytes_read.sum + dram__bytes_write.sum`.

Names with dots, numbers, the four operations and parentheses, nothing else.
"""

from __future__ import annotations

import ast
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Node: TypeAlias = "str | float | tuple[str, Node, Node]"

_OPERATORS: Final[Mapping[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_MEANING: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@cache
def parsed(text: str) -> Node:
    """The expression as a tree: a name, a number, or (operator, left, right).

    Raises:
        ValueError: It holds something else.
    """
    try:
        return _node(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"not an expression over metrics: {text}") from None


@cache
def names(text: str) -> tuple[str, ...]:
    """The metric names of an expression, each once, in their order."""
    return tuple(dict.fromkeys(_names(parsed(text))))


def value(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression whose names all have one: numbers, or columns of them as numpy has them."""
    return _value(parsed(text), values)


def _value(node: Node, values: Mapping[str, Any]) -> Any:
    if isinstance(node, str):
        return values[node]
    return node if isinstance(node, float) else _MEANING[node[0]](_value(node[1], values), _value(node[2], values))


def _node(node: ast.expr) -> Node:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)], _node(node.left), _node(node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return _dotted(node)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ValueError(f"not an expression over metrics: {ast.unparse(node)}")


def _names(node: Node) -> list[str]:
    if isinstance(node, str):
        return [node]
    return [] if isinstance(node, float) else _names(node[1]) + _names(node[2])
