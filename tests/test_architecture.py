"""The flow has one direction: a step imports the base layer and steps to its left (docs/architecture.md)."""

import ast
import importlib.util
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from nsw.site.names import ADAPTERS

ROOT = Path(__file__).parents[1]
BASE = {
    "nsw", "errors", "tables", "metrics", "resources", "safe_files", "safe_import_path", "wording",
    "quantities", "apart", "version",
}  # fmt: skip
# left to right
FLOW = [
    "recipe", "site", "profilers", "launchers", "plan", "scripts", "transport", "schedulers", "site_check", "convert", "readers",
    "analysis", "engine", "campaign", "present", "cli",
]  # fmt: skip
BESIDE = {"demo", "api", "events", "__main__"}  # a program of its own, the doors for Python, the door for `python -m`


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "nsw"


def imports(path: Path, *, types: bool = False) -> set[str]:
    """Modules of nsw that a file imports when it runs; those for type checking are no dependency unless asked for."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only and not types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "nsw":
                found |= {f"nsw.{alias.name}" for alias in node.names if (ROOT / "nsw" / alias.name).exists()}
    return {module for module in found if module == "nsw" or module.startswith("nsw.")}


FILES = sorted((ROOT / "nsw").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_nothing_to_its_right(path):
    mine = path.relative_to(ROOT / "nsw").parts[0].removesuffix(".py")
    if mine in BESIDE or mine == "__init__":
        return
    allowed = BASE if mine in BASE else BASE | set(FLOW[: FLOW.index(mine) + 1])
    if mine == "site_check":
        allowed = allowed | {"demo"}  # the site that replays recordings
    if mine == "cli":  # a thin client: what opens a connection or asks a scheduler is the campaign's
        allowed = (allowed | BESIDE) - {"transport", "schedulers"}
    wrong = {module for module in imports(path) if room(module) not in allowed}
    assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("door", ["cli", "api"])
def test_commands_and_python_open_no_ledger(door):
    """They call use cases of campaigns, where it is decided what nsw may do for one."""
    below = {"nsw.engine.ledger", "nsw.engine.ledger_file", "nsw.engine.driven"}
    assert not {m for path in (ROOT / "nsw" / door).glob("*.py") for m in imports(path) & below}


def test_every_room_is_on_the_architecture_page():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {p.parent.name for p in (ROOT / "nsw").glob("*/__init__.py")}
    assert not {name for name in rooms if f"nsw/{name}" not in page}


def test_no_files_import_each_other_in_a_circle_not_even_for_types():
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in FILES if p.name != "__init__.py"}
    needs = {name: imports(path, types=True) & set(names) for name, path in names.items()}
    while free := {name for name, needed in needs.items() if not needed & set(needs)}:
        needs = {name: needed for name, needed in needs.items() if name not in free}
    assert needs == {}


def texts(path: Path) -> list[str]:
    """The texts of a file that are no docstrings."""
    tree = ast.parse(path.read_text())
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    notes = {id(node.body[0].value) for node in ast.walk(tree)
             if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes]  # fmt: skip


def holding(pattern: str, but: str) -> list[str]:
    """The files that hold such a text, but those whose path begins so."""
    return [
        str(path.relative_to(ROOT))
        for path in FILES
        if not re.match(but, str(path.relative_to(ROOT))) and any(re.search(pattern, text) for text in texts(path))
    ]


def test_sql_is_in_the_ledger_and_in_readers_of_databases_only():
    words = r"\b(?:SELECT .* FROM|INSERT (?:OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA)\b"
    assert holding(words, "nsw/(engine/ledger|readers/)") == []


def test_what_a_batch_system_calls_its_commands_is_in_its_own_files_and_the_registry_only():
    made = [resolve_name(path) for path in ADAPTERS.values()]
    commands = {word for one in made for word in (one.submit, one.queue, one.history) if word}
    assert {"sbatch", "squeue", "sacct", "qsub", "bjobs", "qacct"} <= commands
    own = f"nsw/(?:schedulers/(?:{'|'.join(ADAPTERS)})|site/names)"
    assert holding(rf"\b(?:{'|'.join(commands)})\b", own) == []


READERS = ROOT / "nsw" / "readers"


def family(parts):
    """A folder of readers of one tool; of one that has several, a folder of one kind of its reports."""
    inside = [*parts, "", ""]
    folder = READERS / inside[0] / inside[1]
    return f"{inside[0]}/{inside[1]}" if inside[1] and folder.is_dir() else inside[0]


def test_no_family_of_readers_imports_another():
    tools = {p.name for p in READERS.iterdir() if (p / "__init__.py").exists()} - {"text", "checks", "timeline"}
    assert len(tools) >= 5
    wrong = []
    for path in sorted(READERS.rglob("*.py")):
        mine = family(path.relative_to(READERS).parts[:-1])
        for module in imports(path, types=True):
            other = family(module.split(".")[2:])
            if other.split("/")[0] not in tools:
                continue
            related = mine == other or mine == other.split("/")[0] or other == mine.split("/")[0]
            if not related:
                wrong.append(f"{path.relative_to(READERS)} imports {module}")
    assert not wrong


def test_no_constant_of_a_file_is_left_unused():
    """What linters do not see: a name with an underscore at the top of a file, that nothing in the file mentions."""
    unused = []
    for path in FILES:
        text = path.read_text()
        for node in ast.parse(text).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [t.id for t in targets if isinstance(t, ast.Name) and re.match("_[^_]", t.id)]
            unused += [f"{path.relative_to(ROOT)}: {n}" for n in names if len(re.findall(rf"\b{n}\b", text)) < 2]
    assert not unused


# who opens files without nsw.safe_files, and why
OPENERS = {
    "nsw/safe_files.py": "it is the one that opens",
    "nsw/engine/folder.py": "the campaign's folder by O_PATH; its own open is safe_files'",
    "nsw/engine/trust.py": "the descriptor of a folder, without links",
    "nsw/cli/completion.py": "at each Tab safe_files takes too long to import",
    "nsw/cli/main.py": "/dev/null, when the output is gone",
    "nsw/demo/__init__.py": "nsw's own recordings",
    "nsw/demo/__main__.py": "nsw's own recordings",
    "nsw/analysis/rules/causes.py": "nsw's own data",
    "nsw/metrics/ncu_names.py": "nsw's own data",
    "nsw/profilers/__init__.py": "nsw's own data",
    "nsw/profilers/torch_bootstrap.py": "it runs in the user's program, without nsw",
    "nsw/readers/nsys/reduce_export.py": "it runs on the site, without nsw",
    "nsw/resources.py": "nsw's own data",
    "nsw/schedulers/local.py": "locks that stay open, by descriptors of folders, without links",
    "nsw/scripts/render.py": "nsw's own templates",
    "nsw/site_check/starter.py": "a descriptor of mkstemp",
}
OPENING = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "touch"}
OF_OPEN_FILES = {"gzip", "lzma", "tarfile", "connection", "folder", "safe_files"}  # their `open` takes an open file


def opens(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name):
            yield called.id == "open"
        elif isinstance(called, ast.Attribute):
            yield called.attr in OPENING and ast.unparse(called.value) not in OF_OPEN_FILES


def test_files_are_opened_by_one_module_only_or_there_is_a_reason():
    assert {str(path.relative_to(ROOT)) for path in FILES if any(opens(path))} == set(OPENERS)


def test_names_are_nouns_and_verbs():
    spec = importlib.util.spec_from_file_location("plain_names", ROOT / "tools" / "plain_names.py")
    plain_names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain_names)
    names = [name for path in FILES for name in plain_names.defined_names(path)]
    assert sum(plain_names.is_denied(name.name) for name in names) < 0.01 * len(names)
