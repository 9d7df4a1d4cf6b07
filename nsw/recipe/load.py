"""A recipe from its file: parsed, a site's section and a command line laid over it, validated and checked; two as one.

Values (`--set`) are laid over the document before it is validated, so that a fault points at the option that holds it.
Passes (`--pass`) and cases (`--case`, `--exclude`) are chosen, and `--against` gives each case two sides.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from nsw.errors import MOST_SHOWN, Diagnostic, InputError, UsageError, did_you_mean, first_of, nearest
from nsw.recipe.checks import check_matrix, check_recipe, kind_at, validate_document
from nsw.recipe.document import LARGEST, Document, Node, SourceText, as_yaml, in_order, merge_nodes, parse
from nsw.recipe.fields import FREE, Model
from nsw.recipe.matrix import AFTER, BEFORE, SIDE, Case, Matrix
from nsw.recipe.model import LockedGit, Recipe
from nsw.recipe.passes import PassEntry
from nsw.recipe.program import taken_from_nsw, unshipped_file_warnings
from nsw.recipe.units import show_value
from nsw.safe_files import open_regular
from nsw.wording import first_names

DocumentKind = Literal["recipe", "sites file"]

_RECIPE_KEYS: Final = frozenset({"app", "matrix", "passes", "resources", "repeats", "report", "collect", "check"})
_KEYS: Final[dict[str, frozenset[str]]] = {
    "recipe": _RECIPE_KEYS | {"nsw", "name", "description", "canary", "lock"},
    "sites file": frozenset({"nsw", "sites"}),
}
_START_HINTS: Final = {
    "recipe": "a recipe has `nsw: 1`, `name: ...` and `app: {command: ...}`; recipes that are shipped with nsw, such as"
    " cpu_quickstart.yaml, are a start",
    "sites file": "a sites file has `nsw: 1` and `sites:` with a name for each site",
}
_LISTED: Final = 8  # parameters, and values of one, in a hint
_NSW_KEY: Final = re.compile(r"^nsw:", re.MULTILINE)
_JOB_LINE: Final = re.compile(r"^(#(?:\$|[A-Z]{3,}:?| ?[a-z]+:)) +-", re.MULTILINE)  # a directive of any batch system
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


def _detect_by_text(text: str, name: str) -> _WrongFile | None:
    """Detect a file that is no YAML at all by its lines; a recipe may contain some of them as comments."""
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


def _detect_by_keys(data: object, kind: DocumentKind) -> _WrongFile | None:
    """Detect another kind of YAML or JSON file by its top-level keys."""
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
        first_keys = ", ".join(str(key)[:24] for key in list(data)[:4])
        return _WrongFile(f"some other file: its keys are {first_keys}{', ...' if len(data) > 4 else ''}", "")
    return None


def extend_recipe(
    before: Mapping[str, Any], now: Mapping[str, Any], added: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The recipe `now` with the cases and passes of `before` kept in front; None where it would change a run.

    Args:
        before: The recipe that a campaign was made with, resolved, as data.
        now: The recipe that adds to it, likewise.
        added: The parameters of the cases that `before` does not have.
    """
    old, new = before["matrix"], now["matrix"]
    if _matrix_parameters(old).keys() != _matrix_parameters(new).keys() or _deciding_keys(
        before, Recipe
    ) != _deciding_keys(now, Recipe):
        return None
    of_old = {_pass_name(entry): _without_time_limit(entry) for entry in before["passes"]}
    if any(
        of_old.get(_pass_name(entry), _without_time_limit(entry)) != _without_time_limit(entry)
        for entry in now["passes"]
    ):
        return None
    passes = {_pass_name(entry): entry for entry in (*before["passes"], *now["passes"])}
    include = [*old.get("include", ()), *map(dict, added)]
    return {**now, "matrix": {**old, "include": include}, "passes": list(passes.values())}


def _matrix_parameters(matrix: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in matrix.items() if name not in Matrix.model_fields}


def _deciding_keys(data: Mapping[str, Any], model: type[Model]) -> dict[str, Any]:
    """The keys that decide how a run is done; files and their contents have hashes in the lock."""
    free = {field.alias or name for name, field in model.model_fields.items() if FREE in field.metadata}
    deciding = {}
    for key, value in data.items():
        kind = kind_at(model, (key,))
        if key not in free:
            is_map_of_model = isinstance(kind, type) and issubclass(kind, Model) and isinstance(value, Mapping)
            deciding[key] = _deciding_keys(value, kind) if is_map_of_model else value
    return deciding


def _pass_name(entry: Mapping[str, Any]) -> str:
    """A pass's name: its own, else its kind."""
    ((kind, options),) = entry.items()
    return str((options or {}).get("name", kind))


def _without_time_limit(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A pass without its time limit."""
    return _deciding_keys({kind: options or {} for kind, options in entry.items()}, PassEntry)


MOST_SITES: Final = 1000  # of a file: each section is validated with the whole recipe
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
    return _validate_and_check(
        read_document(path, "recipe"), path, site, path.parent if with_files else None, options or Overrides()
    )


def load_recipe_text(text: str, file: str = "recipe.yaml", site: str | None = None) -> LoadedRecipe:
    """Load a recipe from text; its files are not looked for.

    Args:
        text: The recipe.
        file: Its name, for the places of faults.
        site: As for `load_recipe`, which raises the same.
    """
    return _validate_and_check(parse(text, file), Path(file), site, None, Overrides())


def read_document(path: Path, kind: DocumentKind) -> Document:
    """Read and parse a YAML file.

    Raises:
        InputError: It cannot be read, is not UTF-8, is not YAML, or is clearly something else than what is wanted.
    """
    if path.name.lower().endswith(_REPORTS):
        _refuse_wrong_file(_WrongFile("a profiler's report", f"`nsw read {path.name}` reads it"), path, kind)
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
    _refuse_wrong_file(_detect_by_text(text, path.name), path, kind)
    document = parse(text, str(path))
    _refuse_wrong_file(_detect_by_keys(document.data, kind), path, kind, document.source)
    return document


def _refuse_wrong_file(
    wrong_file: _WrongFile | None, path: Path, kind: DocumentKind, source: SourceText | None = None
) -> None:
    if wrong_file is not None:
        message, hint = f"this is {wrong_file.description}, and no {kind}", wrong_file.hint or _START_HINTS[kind]
        diagnostic = (source or SourceText("")).diagnostic(None, message, hint)
        raise InputError([replace(diagnostic, message=f"{path}: {diagnostic.message}")])


def _validate_and_check(
    document: Document, path: Path, site: str | None, folder: Path | None, options: Overrides
) -> LoadedRecipe:
    chosen = apply_overrides(document.overlaid(("sites", site)) if site is not None else document, options)
    recipe, faults, read_as = validate_document(Recipe, chosen)
    faults += check_recipe(read_as, folder)
    faults += islice(_faults_of_sites(document, site, folder), MOST_SHOWN + 1)
    cases: list[Case] = []
    warnings: list[Diagnostic] = []
    if recipe is not None and not faults:
        cases, faults, warnings = check_matrix(chosen, recipe)
        if folder is not None:
            warnings += unshipped_file_warnings(chosen, recipe.app, folder)
            warnings += taken_from_nsw(chosen, folder, recipe.app.files)
    if recipe is None or faults:
        raise InputError(in_order(faults))
    chosen_cases = choose_cases(cases, options)
    names = {case.id for case in chosen_cases}
    left_out = [case for case in cases if case.id not in names]
    warnings_shown = list(first_of(in_order(warnings)))
    return LoadedRecipe(
        recipe=recipe,
        document=chosen,
        path=path,
        folder=folder or path.parent,
        site=site,
        cases=chosen_cases,
        warnings=warnings_shown,
        left_out=left_out,
        before=options.before,
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
        _, faults, read_as = validate_document(Recipe, over)
        span = document.root.child("sites").child(path[-1]).span  # type: ignore[union-attr]  # just found
        for fault in [*faults, *check_recipe(read_as, folder)]:
            if fault.mark and (span.line, span.column) <= (fault.mark.line, fault.mark.column) < (
                span.end_line,
                span.end_column,
            ):
                yield fault


_PATH = re.compile(r"[\w.]+")
_NOT_PARAMETERS = frozenset({"include", "exclude", "zip"})


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of a command line, each as often as it was given.

    Attributes:
        settings: `NAME=VALUE`, where NAME is a parameter of the matrix or the path of a key (`resources.time`).
        passes: Names of the passes to do.
        cases: `gpus=2,batch=16` or a pattern of case names: only the cases that fit one of them, where words with one
            parameter each count together, as `join_parameter_words` joins them.
        excluded: The same words: none of the cases that fit any of them.
        fit: Whether cases that the site cannot hold are skipped instead of refused.
        against: What the recipe is compared with, as it was named.
        before: The same, once it is looked up.
    """

    settings: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fit: bool = False
    against: str | None = None
    before: Before | None = None


def apply_overrides(document: Document, options: Overrides) -> Document:
    """The document with the settings laid over it, and only the passes that are wanted.

    Raises:
        UsageError: An option names what there is not.
        InputError: A value is no YAML.
    """
    for text in options.settings:
        document = _apply_setting(document, text)
    document = _select_passes(document, options.passes) if options.passes else document
    return with_sides(document, options.before) if options.before else document


def _apply_setting(document: Document, text: str) -> Document:
    name, equals, value = text.partition("=")
    typed = SourceText(text)
    shown_text = text if not typed.secrets else f"{name}=***" if equals and _PATH.fullmatch(name) else "***"
    if not equals or not name:
        raise UsageError(f"--set {shown_text}: expected NAME=VALUE, such as gpus=1,2 or resources.time=30m")
    matrix = document.data.get("matrix")
    parameters = set(matrix) - _NOT_PARAMETERS if isinstance(matrix, dict) else set()
    keys = {field.alias or key for key, field in Recipe.model_fields.items()}
    if name in parameters and name in keys:
        raise UsageError(
            f"--set {shown_text}: {name} is a parameter and a key",
            hint=f"write matrix.{name} for the parameter, .{name} for the key",
        )
    path = ["matrix", name] if name in parameters else name.removeprefix(".").split(".")
    if path[0] not in keys:
        names = [*sorted(parameters), *sorted(keys)]
        available = f"its parameters: {', '.join(sorted(parameters))}" if parameters else "it has no parameters"
        hint = did_you_mean(name, names) or f"{available}; a key is written by its path, such as resources.time"
        raise UsageError(f"--set {shown_text}: the recipe has no {name}", hint=hint)
    file, pad = f"--set {name}", len(name) + 1
    if path[0] == "matrix" and len(path) == 2 and not value.lstrip().startswith(("[", "{")):
        value, pad = f"[{value}]", pad - 1
    source = " " * pad + (value if value.strip() else "null")
    typed = SourceText(text)
    node = _parse_setting_value(value, source, file, typed)
    typed.root = _set_node(Node({}, node.span), path, node)
    if path[0] == "passes":
        document, path = _resolve_pass_path(document, path, file)
    return replace(document, root=_set_node(document.root, path, node), options={**document.options, file: typed})


def _parse_setting_value(value: str, source: str, file: str, typed: SourceText) -> Node:
    """Parse a value as YAML, `source` with spaces before it: faults have the columns of the option as it was typed."""
    node = parse(source, file, typed).root
    if isinstance(node.value, dict | list) and not value.lstrip().startswith(("[", "{")):
        kind = "map" if isinstance(node.value, dict) else "list"
        hint = "quote a value that holds ': ' or begins with '- '; write a map as {x: y} and a list as [x, y]"
        raise InputError([typed.diagnostic(node.span, f"this value is a {kind} to YAML", hint)])
    return node


def _set_node(root: Node, path: Sequence[str], node: Node) -> Node:
    """`node` at a path of the tree; keys on the way are made, items of lists must be there.

    Raises:
        UsageError: A list lacks the item.
    """
    if not path:
        return node
    part, rest = path[0], path[1:]
    if isinstance(root.value, list):
        items = list(root.value)
        if not part.isdigit() or int(part) >= len(items):
            available = f"its items are 0 to {len(items) - 1}" if items else "the list is empty"
            raise UsageError(f"{node.span.file}: there is no item {part}: {available}")
        items[int(part)] = _set_node(items[int(part)], rest, node)
        return replace(root, value=items)
    inner = _set_node(root.child(part) or Node({}, node.span), rest, node)
    return merge_nodes(root, Node({part: inner}, node.span, {part: node.span}))


def _resolve_pass_path(document: Document, path: list[str], file: str) -> tuple[Document, list[str]]:
    """Replace a pass's name in the path of a key by its index and kind; `- baseline` becomes a map.

    Raises:
        UsageError: There is no such pass, or it is of another kind.
    """
    passes = document.node(("passes",))
    if passes is None or not isinstance(passes.value, list) or len(path) < 2:
        return document, path
    items, (part, *rest) = list(passes.value), path[1:]
    names = [_name_of_pass_node(item) for item in items]
    at = int(part) if part.isdigit() else names.index(part) if part in names else len(items)
    if at >= len(items):
        numbered = ", ".join(f"{n} {name}" for n, name in enumerate(names))
        raise UsageError(
            f"{file}: there is no pass {part}; the recipe has {numbered}", hint=did_you_mean(part, filter(None, names))
        )
    item = items[at]
    kind = next(iter(item.value), "") if isinstance(item.value, dict) else str(item.value)
    if not part.isdigit():
        rest = [kind, *rest]
    elif rest and rest[0] != kind:
        raise UsageError(f"{file}: pass {part} is a {kind}, no {rest[0]}", hint=f"passes.{part}.{kind}, or its name")
    if len(rest) > 1 and not isinstance(item.value, dict):
        items[at] = Node({kind: Node({}, item.span)}, item.span, {kind: item.span})
    root = merge_nodes(document.root, Node({"passes": replace(passes, value=items)}, passes.span))
    return replace(document, root=root), ["passes", str(at), *rest]


def _select_passes(document: Document, pass_names: Sequence[str]) -> Document:
    passes = document.node(("passes",))
    items = passes.value if passes is not None and isinstance(passes.value, list) else []
    names = [_name_of_pass_node(item) for item in items]
    for pass_name in pass_names:
        if pass_name not in names:
            have = ", ".join(filter(None, names)) or "the default ones"
            raise UsageError(
                f"--pass {pass_name}: the recipe's passes are {have}", hint=did_you_mean(pass_name, filter(None, names))
            )
    assert passes is not None
    chosen_items = [item for item, name in zip(items, names, strict=True) if name in pass_names]
    return replace(
        document, root=merge_nodes(document.root, Node({"passes": Node(chosen_items, passes.span)}, passes.span))
    )


def _name_of_pass_node(item: Node) -> str | None:
    """A pass's name: `- timeline: {name: x}`, `- baseline`."""
    if isinstance(item.value, str):
        return item.value
    if not isinstance(item.value, dict) or not item.value:
        return None
    kind, options = next(iter(item.value.items()))
    name_node = options.child("name") if isinstance(options.value, dict) else None
    return str(name_node.value) if name_node is not None else kind


def choose_cases(cases: Sequence[Case], options: Overrides) -> list[Case]:
    """The cases that a command line wants.

    Raises:
        UsageError: An option fits no case, or nothing is left.
    """
    example = ",".join(f"{name}={value}" for name, value in cases[0].params.items()) or cases[0].id
    for option, texts in (("--case", options.cases), ("--exclude", options.excluded)):
        for text in texts:
            if not any(fits_case(case, text) for case in cases):
                hint = (
                    unmatched_parameters(text, (case.params for case in cases))
                    or did_you_mean(text, [case.id for case in cases])
                    or f"such as {option} {example}"
                )
                raise UsageError(f"{option} {text}: no case matches", hint=hint)
    patterns = join_parameter_words(options.cases)
    chosen = [
        case
        for case in cases
        if (not patterns or any(fits_case(case, text) for text in patterns))
        and not any(fits_case(case, text) for text in options.excluded)
    ]
    if not chosen:
        raise UsageError("--case and --exclude leave no case")
    return chosen


def join_parameter_words(texts: Sequence[str]) -> list[str]:
    """The words of --case, those with one parameter each (`gpus=1`, `batch=8,16`) joined to a single word.

    A case must have one of the values for each parameter of that word; names, ids and words with several parameters
    stay words of their own, which add cases.
    """
    single = [text for text in texts if sum("=" in part for part in text.split(",")) == 1]
    not_single = [text for text in texts if text not in single]
    return [*not_single, ",".join(single)] if single else not_single


def fits_case(case: Case, text: str) -> bool:
    """Whether a case has these parameters (`gpus=1,2,batch=1*`: one of these values), or a name of this pattern."""
    return fits_parameters(case.id, case.params, text)


def fits_parameters(id_: str, params: Mapping[str, Any], text: str) -> bool:
    """Whether a case fits a word of --case, as `fits` decides.

    Args:
        id_: The case's name.
        params: Its parameters.
        text: The word.
    """
    if "=" not in text:
        return fnmatch.fnmatchcase(id_, text)
    return all(
        name in params and any(fnmatch.fnmatchcase(str(params[name]), value) for value in values)
        for name, values in _values_by_name(text).items()
    )


def _values_by_name(text: str) -> dict[str, list[str]]:
    """The values that `gpus=1,2,batch=1*` names for each parameter."""
    values_by_name: dict[str, list[str]] = {}
    name = ""
    for part in text.split(","):
        before, equals, after = part.partition("=")
        name = before if equals else name  # n=1,2: one of two values
        values_by_name.setdefault(name, []).append(after if equals else part)
    return values_by_name


def unmatched_parameters(text: str, cases: Iterable[Mapping[str, Any]]) -> str | None:
    """A hint for parameters that no case has, with those that there are; None for a name.

    Args:
        text: The word of --case.
        cases: The parameters of each case.
    """
    known: dict[str, dict[str, None]] = {}
    for name, value in (item for params in cases for item in params.items()):
        known.setdefault(name, {})[str(value)] = None
    if "=" not in text or not known:
        return None
    hint = "no case has all of these;"
    for name, wanted in _values_by_name(text).items():
        values = known.get(name, {})
        if not any(fnmatch.filter(values, value) for value in wanted):
            near = did_you_mean(wanted[0], values) if values else did_you_mean(name, known)
            hint = f"no case has {name}={','.join(wanted)};{' ' + near if near else ''}"
            break
    listed = [f"{name} ({first_names(list(values), _LISTED)})" for name, values in known.items()]
    return f"{hint} parameters: {first_names(listed, _LISTED)}"


REPEATS: Final = 3  # the least of which a verdict can follow


@dataclass(frozen=True, slots=True)
class Before:
    """What a recipe is compared with.

    Attributes:
        ref: As it was named.
        values: Of parameters that have other values there.
        files: The program's files there; none where it is the same program.
        git: The commit that these were at.
        notes: What a person should know of it.
        temporary_files: What must live as long as the files are needed.
        only_bare: Whether only passes without a profiler are done.
    """

    ref: str
    values: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    git: LockedGit | None = None
    notes: tuple[str, ...] = ()
    temporary_files: object = None
    only_bare: bool = False


def with_sides(document: Document, before: Before) -> Document:
    """A recipe with a side for each case, in blocks.

    Raises:
        UsageError: It has a parameter of that name.
    """
    matrix = document.get(("matrix",)) or {}
    points = matrix.get("include") or []
    if SIDE in matrix or any(SIDE in point for point in points):
        raise UsageError(
            f"--against: the recipe has a parameter {SIDE} of its own",
            hint="give it another name; of a campaign that has sides already, take the recipe that it was made from",
        )
    over: dict[str, Any] = {"matrix": _two_sided_matrix(matrix, points, before.values)}
    if not isinstance(document.get(("interleave",)), dict):
        over["interleave"] = True
    if document.node(("repeats",)) is None:
        over["repeats"] = REPEATS
    report = document.get(("report",)) or {}
    if not report.get("compare") and not report.get("scaling"):
        over["report"] = {"compare": {"parameter": SIDE, "baseline": BEFORE}}
    if before.only_bare:
        passes = document.get(("passes",)) or []
        over["passes"] = [entry for entry in passes if entry == "baseline" or "baseline" in entry] or ["baseline"]
    if before.files:
        over["app"] = {BEFORE: list(before.files)}
    laid = parse(as_yaml(over), f"--against {before.ref}")
    options = {**document.options, laid.file: laid.source}
    return replace(document, root=merge_nodes(document.root, laid.root), options=options)


def _two_sided_matrix(
    matrix: Mapping[str, Any], points: list[dict[str, Any]], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The matrix keys that add the sides, and the parameters whose values differ between them."""
    overlay: dict[str, Any] = {}
    if matrix.keys() - {"include", "exclude", "zip"} or not points:
        overlay[SIDE] = [BEFORE, AFTER]
        overlay |= {name: [value, *_as_list(matrix[name])] for name, value in values.items()}
    if values:
        groups = matrix.get("zip") or []
        overlay["zip"] = [*([groups] if groups and isinstance(groups[0], str) else groups), [SIDE, *values]]
    if points:
        sides = [({**point, **values, SIDE: BEFORE}, {**point, SIDE: AFTER}) for point in points]
        overlay["include"] = [point for pair in sides for point in pair]
    return overlay


def _as_list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]
