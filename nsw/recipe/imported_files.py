"""Which files a program needs beside it: those that its command names, and the modules that a script imports."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_BYTES = 1 << 20
_MOST_FILES = 50


def files_of(words: Sequence[str], folder: Path) -> list[str]:
    """The files below a folder that a command needs, relative to it: its words that are files, and their imports.

    Args:
        words: The command.
        folder: Where it is run.
    """
    found: dict[str, None] = {}
    waiting = [word for word in words if _is_below(folder, word)]
    while waiting and len(found) < _MOST_FILES:
        name = PurePosixPath(waiting.pop(0)).as_posix()
        if name not in found:
            found[name] = None
            waiting += _imports(folder, name)
    return list(found)


def _is_below(folder: Path, word: str) -> bool:
    path = PurePosixPath(word)
    try:
        return not path.is_absolute() and ".." not in path.parts and (folder / word).is_file()
    except (OSError, ValueError):
        return False


def _imports(folder: Path, name: str) -> Iterator[str]:
    """The modules and packages beside a Python script that it imports."""
    path = folder / name
    if path.suffix != ".py" or path.stat().st_size > _MOST_BYTES:
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what it means is not nsw's to judge
        return
    parent = PurePosixPath(name).parent
    for module in _modules(tree):
        if (folder / parent / f"{module}.py").is_file():
            yield (parent / f"{module}.py").as_posix()
        elif (folder / parent / module / "__init__.py").is_file():
            yield (parent / module).as_posix()


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
