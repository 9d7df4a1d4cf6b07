"""A recipe from its file: parsed, the site's section laid over it, validated and checked as a whole; two as one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from nsw.errors import MOST_SHOWN, Diagnostic, InputError, first_of, nearest
from nsw.recipe.check import check, check_matrix
from nsw.recipe.document import LARGEST, Document, SourceText, in_order, parse
from nsw.recipe.fields import FREE, Model
from nsw.recipe.matrix import Case, Matrix
from nsw.recipe.model import Recipe
from nsw.recipe.overrides import Overrides, choose_cases, overridden
from nsw.recipe.passes import PassEntry
from nsw.recipe.program_files import taken_from_nsw, unshipped
from nsw.recipe.units import show_value
from nsw.recipe.validate import kind_at, validate
from nsw.safe_files import open_regular

if TYPE_CHECKING:
    from nsw.recipe.overrides import Before

__all__ = ["MOST_SITES", "LoadedRecipe", "joined", "load_recipe", "load_recipe_text", "read_document"]

DocumentKind = Literal["recipe", "sites file"]

_RECIPE_KEYS: Final = frozenset({"app", "matrix", "passes", "resources", "repeats", "report", "collect"})
_KEYS: Final[dict[str, frozenset[str]]] = {
    "recipe": _RECIPE_KEYS | {"nsw", "name", "description", "canary", "lock"},
    "sites file": frozenset({"nsw", "sites"}),
}
_START_HINTS: Final = {
    "recipe": "a recipe has `nsw: 1`, `name: ...` and `app: {command: ...}`; recipes that are shipped with nsw, such as"
    " cpu_quickstart.yaml, are a start",
    "sites file": "a sites file has `nsw: 1` and `sites:` with a name for each site",
}
_NSW_KEY: Final = re.compile(r"^nsw:", re.MULTILINE)
_JOB_LINE: Final = re.compile(r"^(#(?:\$|[A-Z]{3,})|# flux:) +-", re.MULTILINE)  # a directive of any batch system
_PYTHON: Final = re.compile(r"^(?:import \w|from \w[\w.]* import |def \w+\(|class \w+[:(])", re.MULTILINE)
_TOML: Final = re.compile(r"\A(?:\s|#[^\n]*\n)*(?:\[+[\w.\"'-]+\]+\s*\n|[\w-]+\s*=\s)")
_HTML: Final = re.compile(r"\A\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_REPORTS: Final = (
    ".nsys-rep", ".qdrep", ".ncu-rep", ".sqlite", ".nvvp", ".nvprof", ".pstats", ".prof", ".trace.json",
    ".trace.json.gz",
)  # fmt: skip


class _WrongFile(NamedTuple):
    """What the file is, and what to do."""

    description: str
    hint: str


def _by_name(name: str) -> _WrongFile | None:
    """A report, as its name says."""
    if name.lower().endswith(_REPORTS):
        return _WrongFile("a profiler's report", f"`nsw read {name}` reads it")
    return None


def _by_text(text: str, name: str) -> _WrongFile | None:
    """What is no YAML of any sort, by its lines; a recipe may hold some of them as comments."""
    if _NSW_KEY.search(text):
        return None
    job = _JOB_LINE.search(text)
    if job:
        return _WrongFile(
            f"a job script, with lines of {job[1]}",
            "nsw writes such scripts: say in a recipe what to run (app: command) and what it needs (resources)",
        )
    if text.startswith("#!") or name.endswith(".sh"):
        return _WrongFile("a program", f"say in a recipe how to run it: app: {{command: ./{name}, files: [{name}]}}")
    if name.endswith(".py") or (not name.endswith((".yaml", ".yml")) and _PYTHON.search(text)):
        return _WrongFile(
            "a Python program", f"say in a recipe how to run it: app: {{command: python {name}, files: [{name}]}}"
        )
    if text.startswith("version https://git-lfs.github.com/spec/"):
        return _WrongFile("a Git LFS pointer to a file, not the file itself", "run `git lfs pull` in its repository")
    if _HTML.match(text):
        return _WrongFile("a web page", "download the file itself (on GitHub: Raw)")
    if not name.endswith((".yaml", ".yml")) and _TOML.match(text):
        return _WrongFile("a TOML or INI file", "")
    return None


def _by_keys(data: object, kind: DocumentKind) -> _WrongFile | None:
    """What YAML or JSON it is, by the keys on top."""
    if not isinstance(data, dict) or not data:
        return None
    keys = {str(key) for key in data}
    if kind == "recipe" and "sites" in keys and not keys & (_RECIPE_KEYS | {"name"}):
        return _WrongFile(
            "a sites file", "name it with --sites, beside a recipe: `nsw plan RECIPE -s NAME --sites FILE`"
        )
    if kind == "sites file" and keys & {"app", "passes", "matrix"}:
        return _WrongFile("a recipe", "name it without --sites: `nsw plan RECIPE --site NAME`")
    if "nsw" in keys:
        return None
    if "traceEvents" in keys:
        return _WrongFile("a trace of a profiler", "`nsw read FILE` reads it")
    if not any(key in _KEYS[kind] or nearest(key, _KEYS[kind]) for key in keys):
        return _WrongFile(f"some other file: its keys are {_listed(list(data))}", "")
    return None


def _listed(keys: list[str]) -> str:
    return ", ".join(str(key)[:24] for key in keys[:4]) + (", ..." if len(keys) > 4 else "")


def joined(
    before: Mapping[str, Any], now: Mapping[str, Any], added: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The recipe `now` with the cases and passes of `before` kept in front; None where it would change a run.

    Args:
        before: The recipe that a campaign was made with, resolved, as data.
        now: The recipe that adds to it, likewise.
        added: The parameters of the cases that `before` does not have.
    """
    old, new = before["matrix"], now["matrix"]
    if _parameters(old).keys() != _parameters(new).keys() or _deciding(before, Recipe) != _deciding(now, Recipe):
        return None
    of_old = {_name(entry): _unlimited(entry) for entry in before["passes"]}
    if any(of_old.get(_name(entry), _unlimited(entry)) != _unlimited(entry) for entry in now["passes"]):
        return None
    passes = {_name(entry): entry for entry in (*before["passes"], *now["passes"])}
    include = [*old.get("include", ()), *map(dict, added)]
    return {**now, "matrix": {**old, "include": include}, "passes": list(passes.values())}


def _parameters(matrix: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in matrix.items() if name not in Matrix.model_fields}


def _deciding(data: Mapping[str, Any], model: type[Model]) -> dict[str, Any]:
    """The keys that decide how a run is done; files and their contents have hashes in the lock."""
    free = {field.alias or name for name, field in model.model_fields.items() if FREE in field.metadata}
    return {key: _below(value, kind_at(model, (key,))) for key, value in data.items() if key not in free}


def _below(value: Any, kind: Any) -> Any:
    is_map_of_model = isinstance(kind, type) and issubclass(kind, Model) and isinstance(value, Mapping)
    return _deciding(value, kind) if is_map_of_model else value


def _name(entry: Mapping[str, Any]) -> str:
    """A pass's name: its own, else its kind."""
    ((kind, options),) = entry.items()
    return str((options or {}).get("name", kind))


def _unlimited(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A pass without its time limit."""
    return _deciding({kind: options or {} for kind, options in entry.items()}, PassEntry)


MOST_SITES: Final = 1000  # of a file: each section is validated with the whole recipe
_NO_OVERRIDES = Overrides()
_NOT_PER_SITE = frozenset({"nsw", "name", "lock", "sites"})


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe without faults.

    Attributes:
        recipe: The recipe as it holds for `site`.
        document: Its text with the places of all values; `document.diagnostic(path, ...)` points at one.
        path: The file.
        folder: Its folder: files of the recipe are relative to it.
        site: The site whose section was laid over it, if any.
        cases: The matrix, expanded.
        warnings: What is no fault and yet probably not meant.
        left_out: Cases of the matrix that the command line left out.
        before: What `--against` named.
    """

    recipe: Recipe
    document: Document
    path: Path
    folder: Path
    site: str | None
    cases: list[Case]
    warnings: list[Diagnostic] = field(default_factory=list)
    left_out: list[Case] = field(default_factory=list)
    before: Before | None = None


def load_recipe(
    path: Path, site: str | None = None, options: Overrides | None = None, *, with_files: bool = True
) -> LoadedRecipe:
    """Load a recipe.

    Args:
        path: The file.
        site: Name of the site it is to run on; the section `sites: NAME:` is laid over the recipe.
        options: What a command line changes of it.
        with_files: Whether the application's files must be there.

    Raises:
        InputError: With every fault found, in the order of the file.
        UsageError: An option names what the recipe has not.
    """
    return _loaded(
        read_document(path, "recipe"), path, site, path.parent if with_files else None, options or _NO_OVERRIDES
    )


def load_recipe_text(text: str, file: str = "recipe.yaml", site: str | None = None) -> LoadedRecipe:
    """Load a recipe from text; its files are not looked for. Raises as `load_recipe` does."""
    return _loaded(parse(text, file), Path(file), site, None)


def read_document(path: Path, kind: DocumentKind) -> Document:
    """Read and parse a YAML file.

    Raises:
        InputError: It cannot be read, is not UTF-8, is not YAML, or is clearly something else than what is wanted.
    """
    _refuse(_by_name(path.name), path, kind)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            data = file.read(4 * LARGEST + 4)  # UTF-8; a file of gigabytes is not read whole
    except OSError as fault:
        raise InputError([Diagnostic(f"{path}: cannot be read: {fault.strerror or fault}")]) from None
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise InputError(
            [Diagnostic(f"{path}:{line}: this is not UTF-8 text", hint="save the file as UTF-8")]
        ) from None
    _refuse(_by_text(text, path.name), path, kind)
    document = parse(text, str(path))
    _refuse(_by_keys(document.data, kind), path, kind, document.source)
    return document


def _refuse(wrong_file: _WrongFile | None, path: Path, kind: DocumentKind, source: SourceText | None = None) -> None:
    if wrong_file is not None:
        message, hint = f"this is {wrong_file.description}, and no {kind}", wrong_file.hint or _START_HINTS[kind]
        diagnostic = (source or SourceText("")).diagnostic(None, message, hint)
        raise InputError([replace(diagnostic, message=f"{path}: {diagnostic.message}")])


def _loaded(
    document: Document, path: Path, site: str | None, folder: Path | None, options: Overrides = _NO_OVERRIDES
) -> LoadedRecipe:
    chosen = overridden(document.overlaid(("sites", site)) if site is not None else document, options)
    recipe, faults, read_as = validate(Recipe, chosen)
    faults += check(read_as, folder)
    faults += islice(_faults_of_sites(document, site, folder), MOST_SHOWN + 1)
    cases: list[Case] = []
    warnings: list[Diagnostic] = []
    if recipe is not None and not faults:
        cases, faults, warnings = check_matrix(chosen, recipe)
        if folder is not None:
            warnings += unshipped(chosen, recipe.app, folder)
            warnings += taken_from_nsw(chosen, folder, recipe.app.files)
    if recipe is None or faults:
        raise InputError(in_order(faults))
    chosen_cases = choose_cases(cases, options)
    names = {case.id for case in chosen_cases}
    left_out = [case for case in cases if case.id not in names]
    warnings_shown = list(first_of(in_order(warnings)))
    return LoadedRecipe(
        recipe, chosen, path, folder or path.parent, site, chosen_cases, warnings_shown, left_out, options.before
    )


def _faults_of_sites(document: Document, chosen: str | None, folder: Path | None) -> Iterator[Diagnostic]:
    """Faults inside the sections of sites, also of those that are not asked for."""
    sections = document.node(("sites",))
    if sections is not None and isinstance(sections.value, dict) and len(sections.value) > MOST_SITES:
        yield document.diagnostic(("sites",), f"there are more than {MOST_SITES:,} sites", key=True)
        return
    for path, section in document.find("sites", "*"):
        if not isinstance(section, dict):
            continue
        for key in section:
            if key in _NOT_PER_SITE:
                yield document.diagnostic((*path, key), f"a site's section cannot set {show_value(key)}", key=True)
        if path[-1] == chosen or _NOT_PER_SITE & section.keys():
            continue
        over = document.overlaid(path)
        _, faults, read_as = validate(Recipe, over)
        span = document.root.child("sites").child(path[-1]).span  # type: ignore[union-attr]  # just found
        for fault in [*faults, *check(read_as, folder)]:
            if fault.mark and (span.line, span.column) <= (fault.mark.line, fault.mark.column) < (
                span.end_line,
                span.end_column,
            ):
                yield fault
