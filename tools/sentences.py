"""Every sentence that nsw can print, to be read once: `python tools/sentences.py [FOLDER]`, a line each with its line.

A sentence is a text in the code with at least four words that is no docstring; `{}` is a value that is filled in.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
WORDS = 4
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """The line and text of each sentence of a file."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in nodes if isinstance(node, ast.JoinedStr)
    }
    for node in nodes:
        if id(node) in docstrings or id(node) in parts:
            continue
        text = text_of(node)
        if text and len(_WORD.findall(text)) >= WORDS and " " in text:
            yield node.lineno, " ".join(text.split())  # type: ignore[attr-defined]  # a text has a line


def text_of(node: ast.AST) -> str:
    """The text of a literal, with {} for what is filled in; empty for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def main() -> None:
    """Print the sentences of nsw, or of a folder of it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "nsw"
    for path in sorted(folder.rglob("*.py")):
        for line, text in sentences(path):
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {text}")


if __name__ == "__main__":
    main()
