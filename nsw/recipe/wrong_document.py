"""Files that are clearly something else than the recipe or sites file that was asked for: one sentence says so."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from nsw.errors import nearest
from nsw.recipe.secret_names import without_value

Wanted = Literal["recipe", "sites file"]

RECIPE_KEYS: Final = frozenset({"app", "matrix", "passes", "resources", "repeats", "report", "collect"})
_KEYS: Final[dict[str, frozenset[str]]] = {
    "recipe": RECIPE_KEYS | {"nsw", "name", "description", "canary", "lock"},
    "sites file": frozenset({"nsw", "sites"}),
}
_HOW: Final = {
    "recipe": "a recipe has `nsw: 1`, `name: ...` and `app: {command: ...}`; recipes that are shipped with nsw, such as"
    " cpu_quickstart.yaml, are a start",
    "sites file": "a sites file has `nsw: 1` and `sites:` with a name for each site",
}
_OWN: Final = re.compile(r"^nsw:", re.MULTILINE)
_JOB_LINE: Final = re.compile(r"^#(?:\$|[A-Z]{3,}) +-", re.MULTILINE)  # a directive of any batch system
_PYTHON: Final = re.compile(r"^(?:import \w|from \w[\w.]* import |def \w+\(|class \w+[:(])", re.MULTILINE)
_TOML: Final = re.compile(r"\A(?:\s|#[^\n]*\n)*(?:\[+[\w.\"'-]+\]+\s*\n|[\w-]+\s*=\s)")
_HTML: Final = re.compile(r"\A\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_REPORTS: Final = (
    ".nsys-rep", ".qdrep", ".ncu-rep", ".sqlite", ".nvvp", ".nvprof", ".pstats", ".prof", ".trace.json",
    ".trace.json.gz",
)  # fmt: skip


class Other(NamedTuple):
    """What the file is, and what to do."""

    what: str
    hint: str


def by_name(name: str) -> Other | None:
    """A report, as its name says."""
    if name.lower().endswith(_REPORTS):
        return Other("a profiler's report", f"`nsw read {name}` reads it")
    return None


def by_text(text: str, name: str) -> Other | None:
    """What is no YAML of any sort, by its lines; a recipe may hold some of them as comments."""
    if _OWN.search(text):
        return None
    job = _JOB_LINE.search(text)
    if job:
        return Other(
            f"a job script, with lines of {job[0].split()[0]}",
            "nsw writes such scripts: say in a recipe what to run (app: command) and what it needs (resources)",
        )
    if text.startswith("#!") or name.endswith(".sh"):
        return Other("a program", f"say in a recipe how to run it: app: {{command: ./{name}, files: [{name}]}}")
    if name.endswith(".py") or (not name.endswith((".yaml", ".yml")) and _PYTHON.search(text)):
        return Other(
            "a Python program", f"say in a recipe how to run it: app: {{command: python {name}, files: [{name}]}}"
        )
    if text.startswith("version https://git-lfs.github.com/spec/"):
        return Other("a Git LFS pointer to a file, not the file itself", "run `git lfs pull` in its repository")
    if _HTML.match(text):
        return Other("a web page", "download the file itself (on GitHub: Raw)")
    if not name.endswith((".yaml", ".yml")) and _TOML.match(text):
        return Other("a TOML or INI file", "")
    return None


def by_keys(data: object, wanted: Wanted) -> Other | None:
    """What YAML or JSON it is, by the keys on top."""
    if not isinstance(data, dict) or not data:
        return None
    keys = {str(key) for key in data}
    if wanted == "recipe" and "sites" in keys and not keys & (RECIPE_KEYS | {"name"}):
        return Other("a sites file", "name it with --sites, beside a recipe: `nsw plan RECIPE -s NAME --sites FILE`")
    if wanted == "sites file" and keys & {"app", "passes", "matrix"}:
        return Other("a recipe", "name it without --sites: `nsw plan RECIPE --site NAME`")
    if "nsw" in keys:
        return None
    if "traceEvents" in keys:
        return Other("a trace of a profiler", "`nsw read FILE` reads it")
    if not any(key in _KEYS[wanted] or nearest(key, _KEYS[wanted]) for key in keys):
        return Other(f"some other file: its keys are {_listed(list(data))}", "")
    return None


def sentence(other: Other, wanted: Wanted) -> tuple[str, str]:
    """The message and its hint."""
    return f"this is {other.what}, and no {wanted}", other.hint or _HOW[wanted]


def _listed(keys: list[str]) -> str:
    return ", ".join(without_value(str(key))[:24] for key in keys[:4]) + (", ..." if len(keys) > 4 else "")
