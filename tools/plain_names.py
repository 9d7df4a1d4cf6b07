"""Which names say nothing: pronouns, question words and participles that stand for a noun.

    python tools/plain_names.py [FOLDER or FILE ...]      a row a package, and with --list a row a name

Counted are arguments, assigned variables and attributes, functions, classes and modules. A name counts when all of it,
without leading and trailing underscores, is such a word: `found` does, `found_rows` does not.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DENIED = frozenset(
    [
        "it",
        "its",
        "itself",
        "they",
        "them",
        "their",
        "he",
        "she",
        "this",
        "that",
        "these",
        "those",
        "one",
        "ones",
        "some",
        "any",
        "all",
        "either",
        "neither",
        "other",
        "others",
        "same",
        "such",
        "own",
        "mine",
        "ours",
        "yours",
        "who",
        "whom",
        "whose",
        "what",
        "which",
        "why",
        "how",
        "when",
        "where",
        "whether",
        "here",
        "there",
        "then",
        "thus",
        "nothing",
        "anything",
        "everything",
        "something",
        "nobody",
        "somebody",
        "everybody",
        "none",
        "found",
        "told",
        "said",
        "known",
        "met",
        "made",
        "whole",
        "wanted",
        "held",
        "kept",
        "asked",
        "given",
        "gone",
        "taken",
        "shown",
        "named",
        "called",
        "meant",
        "brought",
        "put",
        "got",
        "begun",
        "way",
        "ways",
        "place",
        "places",
        "of",
        "beside",
        "beyond",
        "about",
        "more",
        "most",
        "least",
        "meanwhile",
        "apart",
    ]
)
EMPTY = frozenset(["thing", "things", "obj", "info", "tmp", "data", "item", "items", "value", "values", "stuff"])


class Name(NamedTuple):
    """A name where it is defined."""

    path: Path
    line: int
    name: str
    kind: str  # argument, variable, attribute, function, class, module


def defined_names(path: Path) -> Iterator[Name]:
    """The names that a file defines."""
    yield Name(path, 1, path.stem, "module")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Name(path, node.lineno, node.name, "function")
        elif isinstance(node, ast.ClassDef):
            yield Name(path, node.lineno, node.name, "class")
        elif isinstance(node, ast.arg):
            yield Name(path, node.lineno, node.arg, "argument")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Name(path, node.lineno, node.id, "variable")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Name(path, node.end_lineno or node.lineno, node.attr, "attribute")
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name
        ):
            yield Name(path, node.lineno, node.name, "variable")


def is_denied(name: str) -> bool:
    """Whether the name is a pronoun, a question word or a participle alone."""
    return name != "__all__" and name.strip("_").lower() in DENIED


def is_empty(name: str) -> bool:
    """Whether the name could be of anything."""
    return name.strip("_").lower() in EMPTY


def python_files(*folders: Path) -> list[Path]:
    """The Python files of folders, or the files themselves."""
    return sorted(p for folder in folders for p in (folder.rglob("*.py") if folder.is_dir() else [folder]))


def main() -> None:
    """Print the share of each package, or the names."""
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    listed = "--list" in sys.argv
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for path in python_files(*(Path(w).resolve() for w in words or [str(ROOT / "nsw")])):
        for name in defined_names(path):
            parts = path.relative_to(ROOT).parts
            count = counts[parts[1] if len(parts) > 2 else "(base)"]
            count[0] += 1
            count[1] += is_denied(name.name)
            count[2] += is_empty(name.name)
            if listed and is_denied(name.name):
                print(f"{path.relative_to(ROOT)}:{name.line}:{name.name}  {name.kind}")
    total = [sum(c[n] for c in counts.values()) for n in range(3)]
    for package, (names, denied, empty) in [*sorted(counts.items(), key=lambda c: -c[1][0]), ("all", total)]:
        print(
            f"{package:14} {names:7} names {denied:6} say nothing ({denied / names:6.2%}) {empty:6} are empty"
            f" ({empty / names:.2%})"
        )


if __name__ == "__main__":
    main()
