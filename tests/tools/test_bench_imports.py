"""What the benchmarks import exists: no test runs them, and a module that moved would break them unseen."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "bench").rglob("*.py"))


def imported(file):
    """`module, name` of each import from this project."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"nsw", "tests"}:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_name_that_a_benchmark_imports_is_there(file):
    for module, name in imported(file):
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module}.{name}"
