"""How much code there is: lines that hold a token, without blank lines, comments and docstrings.

    python tools/code_size.py [FOLDER]      a row a package; FOLDER is nsw where none is given

A docstring is the string that a module, class or function begins with. A line counts once, however much it holds.
"""

import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree: ast.AST) -> Iterator[int]:
    """The numbers of the lines of all docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def code_lines(text: str) -> int:
    """How many lines of a file hold a token."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - set(docstring_lines(ast.parse(text))))


def function_lengths(text: str) -> Iterator[int]:
    """The lines of each function, its docstring included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def main() -> None:
    """Print the table."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "nsw")
    sizes: dict[str, list[int]] = defaultdict(list)
    functions: list[int] = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        text = path.read_text()
        sizes[parts[0] if len(parts) > 1 else "(base)"].append(code_lines(text))
        functions += function_lengths(text)
    print(f"{'package':14} {'files':>6} {'code':>7} {'median file':>12}")
    for package, lines in sorted(sizes.items(), key=lambda item: -sum(item[1])):
        print(f"{package:14} {len(lines):6} {sum(lines):7} {statistics.median(lines):12.0f}")
    every = [n for lines in sizes.values() for n in lines]
    print(f"{'all':14} {len(every):6} {sum(every):7} {statistics.median(every):12.0f}")
    lengths = sorted(functions)
    p95 = lengths[len(lengths) * 95 // 100]
    print(f"functions: {len(lengths)}, median {statistics.median(lengths):.0f} lines, p95 {p95}")


if __name__ == "__main__":
    main()
