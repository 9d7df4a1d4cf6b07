"""Public functions whose docstring lacks what a caller needs: `python tools/docstrings.py [FOLDER]`, a line each.

A docstring has `Args:` where there are three or more parameters, `Raises:` where the function raises, the unit of a
number that it returns (or that it counts), and the shape of arrays. Methods of a class with bases are documented there.
Commands are left out: their docstrings are the help that users read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MANY = 3  # parameters
NUMBERS = {"int", "float", "int | None", "float | None"}
UNIT = re.compile(
    r"(?i)\b(?:seconds?|s|ms|us|ns|nanoseconds?|microseconds?|milliseconds?|minutes?|hours?|bytes?|[kMGT]i?B|%"
    r"|per cent|percent\w*|shares?|ratios?|factors?|times|counts?|numbers?|how many|how much|index|position|lines?"
    r"|columns?|width|characters?|exit code|id|rank|node-hours|gpu-hours|gpus?|unit\w*|order|version|port|pid|figure"
    r"|level|descriptor|mode)\b|_(?:s|ns|us|ms|pct|bytes|count)\b|%"
)
SHAPE = re.compile(
    r"(?i)shape|\brows?\b|\beach\b|\bone (?:a|per)\b|\blength\b|\bcolumns?\b|\bby (?:row|index)\b|sorted"
)
ARRAY = re.compile(r"ndarray|\bNumbers\b|\bArray\b|pa\.Table|DataFrame")
HELP = ("nsw/cli/",)
GENERATED = {"overload", "field_validator", "model_validator"}
READERS = {"read", "sniff"}  # each reader has them; nsw/readers/model.py documents them


def lacks(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, name and what is missing, of each public function of a file that lacks something."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _lacks(node, node.name)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not node.bases:
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from _lacks(method, f"{node.name}.{method.name}")


def _lacks(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[tuple[int, str, str]]:
    decorators = {ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list}
    if (
        node.name.startswith("_")
        or node.name in READERS
        or decorators & {"overload", "field_validator", "model_validator", "fixture"}
    ):
        return
    text = ast.get_docstring(node) or ""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    parameters = [a for a in arguments if a.arg not in {"self", "cls"}]
    returned = ast.unparse(node.returns) if node.returns else ""
    annotated = " ".join([returned, *(ast.unparse(a.annotation) for a in parameters if a.annotation)])
    if not text:
        yield node.lineno, name, "a docstring"
    if len(parameters) >= MANY and "Args:" not in text:
        yield node.lineno, name, "Args"
    if _raises(node) and "Raises:" not in text:
        yield node.lineno, name, "Raises"
    if returned in NUMBERS and not UNIT.search(f"{text} {node.name}"):
        yield node.lineno, name, "the unit"
    if ARRAY.search(annotated) and not SHAPE.search(text):
        yield node.lineno, name, "the shape"


def _raises(function: ast.AST) -> bool:
    """Whether a function's own statements raise a new error."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Try) and node.handlers:  # what is raised in it is mostly caught there
            if any(_raises(part) for part in (*node.handlers, ast.Module([*node.orelse, *node.finalbody], []))):
                return True
            continue
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and "NotImplemented" not in ast.unparse(node.exc)
        ):
            return True
        if _raises(node):
            return True
    return False


def main() -> None:
    """Print what is missing, and how often."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "nsw"
    counts: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        for line, function, missing in () if name.startswith(HELP) else lacks(path):
            print(f"{name}:{line}: {function} lacks {missing}")
            counts[missing] += 1
    print(", ".join(f"{missing}: {count}" for missing, count in sorted(counts.items())) or "nothing is missing")


if __name__ == "__main__":
    main()
