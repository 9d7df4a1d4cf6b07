"""What a command line changes of a recipe: values (`--set`), passes (`--pass`) and cases (`--case`, `--exclude`).

Values are laid over the document before it is validated, so that a fault points at the option that holds it.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import InputError, UsageError, did_you_mean
from nsw.recipe.document import Document, Node, SourceText, as_yaml, merged, parse
from nsw.recipe.model import Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.document import Document
    from nsw.recipe.matrix import Case
    from nsw.recipe.model import LockedGit

_PATH = re.compile(r"[\w.]+")
_NOT_PARAMETERS = frozenset({"include", "exclude", "zip"})


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of a command line, each as often as it was given.

    Attributes:
        settings: `NAME=VALUE`, where NAME is a parameter of the matrix or the path of a key (`resources.time`).
        passes: Names of the passes to do.
        cases: `gpus=2,batch=16` or a pattern of case names: only the cases that fit one of them, where words with one
            parameter each count together, as `all_of_parameters` joins them.
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


def overridden(document: Document, options: Overrides) -> Document:
    """The document with the settings laid over it, and only the passes that are wanted.

    Raises:
        UsageError: An option names what there is not.
        InputError: A value is no YAML.
    """
    for text in options.settings:
        document = _with(document, text)
    document = _with_passes(document, options.passes) if options.passes else document
    return with_sides(document, options.before) if options.before else document


def _with(document: Document, text: str) -> Document:
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
    node = _parsed(value, source, file, typed)
    typed.root = _laid(Node({}, node.span), path, node)
    if path[0] == "passes":
        document, path = _of_pass(document, path, file)
    return replace(document, root=_laid(document.root, path, node), options={**document.options, file: typed})


def _parsed(value: str, source: str, file: str, typed: SourceText) -> Node:
    """A value as YAML, `source` with spaces before it: faults have the columns of the option as it was typed."""
    node = parse(source, file, typed).root
    if isinstance(node.value, dict | list) and not value.lstrip().startswith(("[", "{")):
        kind = "map" if isinstance(node.value, dict) else "list"
        hint = "quote a value that holds ': ' or begins with '- '; write a map as {x: y} and a list as [x, y]"
        raise InputError([typed.diagnostic(node.span, f"this value is a {kind} to YAML", hint)])
    return node


def _laid(root: Node, path: Sequence[str], node: Node) -> Node:
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
        items[int(part)] = _laid(items[int(part)], rest, node)
        return replace(root, value=items)
    inner = _laid(root.child(part) or Node({}, node.span), rest, node)
    return merged(root, Node({part: inner}, node.span, {part: node.span}))


def _of_pass(document: Document, path: list[str], file: str) -> tuple[Document, list[str]]:
    """The path of a key of a pass by its number and kind, where it has its name; `- baseline` becomes a map.

    Raises:
        UsageError: There is no such pass, or it is of another kind.
    """
    passes = document.node(("passes",))
    if passes is None or not isinstance(passes.value, list) or len(path) < 2:
        return document, path
    items, (part, *rest) = list(passes.value), path[1:]
    names = [_name_of(item) for item in items]
    at = int(part) if part.isdigit() else names.index(part) if part in names else len(items)
    if at >= len(items):
        numbered = ", ".join(f"{n} {name}" for n, name in enumerate(names))
        raise UsageError(
            f"{file}: there is no pass {part}; the recipe has {numbered}", hint=did_you_mean(part, filter(None, names))
        )
    item, kind = items[at], _kind_of(items[at])
    if not part.isdigit():
        rest = [kind, *rest]
    elif rest and rest[0] != kind:
        raise UsageError(f"{file}: pass {part} is a {kind}, no {rest[0]}", hint=f"passes.{part}.{kind}, or its name")
    if len(rest) > 1 and not isinstance(item.value, dict):
        items[at] = Node({kind: Node({}, item.span)}, item.span, {kind: item.span})
    root = merged(document.root, Node({"passes": replace(passes, value=items)}, passes.span))
    return replace(document, root=root), ["passes", str(at), *rest]


def _with_passes(document: Document, pass_names: Sequence[str]) -> Document:
    passes = document.node(("passes",))
    items = passes.value if passes is not None and isinstance(passes.value, list) else []
    names = [_name_of(item) for item in items]
    for pass_name in pass_names:
        if pass_name not in names:
            have = ", ".join(filter(None, names)) or "the default ones"
            raise UsageError(
                f"--pass {pass_name}: the recipe's passes are {have}", hint=did_you_mean(pass_name, filter(None, names))
            )
    assert passes is not None
    chosen_items = [item for item, name in zip(items, names, strict=True) if name in pass_names]
    return replace(document, root=merged(document.root, Node({"passes": Node(chosen_items, passes.span)}, passes.span)))


def _kind_of(item: Node) -> str:
    """What a pass is, by the key that it has."""
    return next(iter(item.value), "") if isinstance(item.value, dict) else str(item.value)


def _name_of(item: Node) -> str | None:
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
    for option, texts in (("--case", options.cases), ("--exclude", options.excluded)):
        for text in texts:
            if not any(fits(case, text) for case in cases):
                hint = did_you_mean(text, [case.id for case in cases]) or f"such as {option} {_example(cases)}"
                raise UsageError(f"{option} {text}: no case matches", hint=hint)
    patterns = all_of_parameters(options.cases)
    chosen = [
        case for case in cases
        if (not patterns or any(fits(case, text) for text in patterns))
        and not any(fits(case, text) for text in options.excluded)
    ]  # fmt: skip
    if not chosen:
        raise UsageError("--case and --exclude leave no case")
    return chosen


def all_of_parameters(texts: Sequence[str]) -> list[str]:
    """The words of --case, those with one parameter each (`gpus=1`, `batch=8,16`) joined to a single word.

    A case must have one of the values for each parameter of that word; names, ids and words with several parameters
    stay words of their own, which add cases.
    """
    single = [text for text in texts if sum("=" in part for part in text.split(",")) == 1]
    not_single = [text for text in texts if text not in single]
    return [*not_single, ",".join(single)] if single else not_single


def fits(case: Case, text: str) -> bool:
    """Whether a case has these parameters (`gpus=1,2,batch=1*`: one of these values), or a name of this pattern."""
    return fits_parameters(case.id, case.params, text)


def fits_parameters(id_: str, params: Mapping[str, Any], text: str) -> bool:
    """As `fits`, for a case's name and parameters."""
    if "=" not in text:
        return fnmatch.fnmatchcase(id_, text)
    values_by_name: dict[str, list[str]] = {}
    name = ""
    for part in text.split(","):
        before, equals, after = part.partition("=")
        name = before if equals else name  # n=1,2: one of two values
        values_by_name.setdefault(name, []).append(after if equals else part)
    return all(
        name in params and any(fnmatch.fnmatchcase(str(params[name]), value) for value in values)
        for name, values in values_by_name.items()
    )


def _example(cases: Sequence[Case]) -> str:
    first = cases[0]
    return ",".join(f"{name}={value}" for name, value in first.params.items()) or first.id


SIDE: Final = "side"  # the parameter
BEFORE: Final = "before"
AFTER: Final = "after"
_BARE: Final = "baseline"  # the kind of pass
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
    over: dict[str, Any] = {"matrix": _matrix(matrix, points, before.values)}
    if not isinstance(document.get(("interleave",)), dict):
        over["interleave"] = True
    if document.node(("repeats",)) is None:
        over["repeats"] = REPEATS
    report = document.get(("report",)) or {}
    if not report.get("compare") and not report.get("scaling"):
        over["report"] = {"compare": {"parameter": SIDE, "baseline": BEFORE}}
    if before.only_bare:
        passes = document.get(("passes",)) or []
        over["passes"] = [entry for entry in passes if entry == _BARE or _BARE in entry] or [_BARE]
    if before.files:
        over["app"] = {BEFORE: list(before.files)}
    laid = parse(as_yaml(over), f"--against {before.ref}")
    options = {**document.options, laid.file: laid.source}
    return replace(document, root=merged(document.root, laid.root), options=options)


def _matrix(matrix: Mapping[str, Any], points: list[dict[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """What is laid over the matrix: the sides, and with them the parameters that have other values before."""
    overlay: dict[str, Any] = {}
    if matrix.keys() - {"include", "exclude", "zip"} or not points:
        overlay[SIDE] = [BEFORE, AFTER]
        overlay |= {name: [value, *_listed(matrix[name])] for name, value in values.items()}
    if values:
        groups = matrix.get("zip") or []
        overlay["zip"] = [*([groups] if groups and isinstance(groups[0], str) else groups), [SIDE, *values]]
    if points:
        sides = [({**point, **values, SIDE: BEFORE}, {**point, SIDE: AFTER}) for point in points]
        overlay["include"] = [point for pair in sides for point in pair]
    return overlay


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]
