"""The faults of a recipe or sites file, each as a diagnostic at its line, in nsw's own words.

`validate` checks a document against a pydantic model. `check` and `check_matrix` check what must fit together in a
recipe: names in expressions, axes, figures, passes, files. They read the document's data, so that they also run where
the recipe has other faults.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import replace
from itertools import islice, takewhile
from keyword import iskeyword
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nsw.errors import MOST_SHOWN, Diagnostic, Mark, did_you_mean, nearest
from nsw.metrics import find_metric_faults as metric_faults
from nsw.recipe.document import Document, KeyPath, Node
from nsw.recipe.expressions import Expression, find_name, is_template
from nsw.recipe.matrix import AFTER, BEFORE, SIDE, Case, Matrix, MatrixFault, expand_matrix, range_rest_keys
from nsw.recipe.program import source_path
from nsw.recipe.units import Fault, as_text, escape_nonprinting, plain_number, show_value
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from nsw.recipe.model import Recipe


_DEEPEST = 6  # keys from the top of a file to any key
_PATHS_IN_MESSAGE = 3


def paths_of_key(model: type[BaseModel], key: str) -> list[str]:
    """The paths of the maps that take a key, those nearest to the top of the file; [] where none does.

    A path has `NAME` for a name that the user gives and `[]` for an item of a list: `passes[].counters`.
    """
    level: list[tuple[str, type[BaseModel]]] = [("", model)]
    for _ in range(_DEEPEST):
        if paths := [path for path, candidate in level if path and key in _field_types(candidate)]:
            return paths[:_PATHS_IN_MESSAGE]
        level = [
            (f"{path}.{name}{inside}".lstrip("."), inner)
            for path, candidate in level
            for name, kind in _field_types(candidate).items()
            for inside, inner in _models_in_type(kind)
        ]
    return []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _field_types(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _models_in_type(kind: Any) -> list[tuple[str, type[BaseModel]]]:
    """The models in a type, each with the path from the key to it: "[]" or ".NAME"."""
    if _is_model(kind):
        return [("", kind)]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _models_in_type(arguments[0])
    if origin in {Union, UnionType}:
        return [inner_model for argument in arguments for inner_model in _models_in_type(argument)]
    between = {list: "[]", dict: ".NAME"}.get(origin)
    return [(between + inside, inner) for inside, inner in _models_in_type(arguments[-1])] if between else []


_MOST_NAMES = 2  # names in a message


def _repair_indentation(node: Node, kind: Any, document: Document, faults: list[Diagnostic]) -> Node:
    """The tree with misindented keys moved below the key that they belong to; adds a fault for each.

    Args:
        node: The tree; what is moved out of an inner map is looked at there first.
        kind: The type that the model has for it.
        document: The file.
        faults: Where the faults go.
    """
    if isinstance(node.value, list):
        items = [
            _repair_indentation(item, _unwrap_type(_type_of_item(kind, at)), document, faults)
            for at, item in enumerate(node.value)
        ]
        return node if all(map(operator.is_, items, node.value)) else replace(node, value=items)
    if not isinstance(node.value, dict):
        return node
    value = {
        key: _repair_indentation(child, _unwrap_type(_type_of_item(kind, key)), document, faults)
        for key, child in node.value.items()
    }
    keys, is_changed = node.keys, not all(map(operator.is_, value.values(), node.value.values()))
    while slip := _misindented_keys(value, kind):
        key, names = slip
        faults.append(_misindented_fault(document, keys[names[0]], key, names))
        moved = {name: value.pop(name) for name in names}
        value[key] = Node(moved, moved[names[0]].span, {name: keys[name] for name in names})
        keys, is_changed = {name: mark for name, mark in keys.items() if name not in names}, True
    return replace(node, value=value, keys=keys) if is_changed else node


def _misindented_keys(value: dict[str, Node], kind: Any) -> tuple[str, list[str]] | None:
    """An empty key, and the keys right behind it that can only belong below it."""
    known_keys, names = _known_keys(kind), list(value)
    for number, key in enumerate(names):
        inner_kind = _unwrap_type(_type_of_item(kind, key))
        if value[key].value is not None or not (_is_model(inner_kind) or get_origin(inner_kind) is dict):
            continue
        inner = _known_keys(inner_kind)
        below = list(takewhile(lambda name: _belongs_below(name, known_keys, inner), names[number + 1 :]))  # noqa: B023  used at once
        if below:
            return key, below
    return None


def _belongs_below(name: str, known_keys: Sequence[str] | None, inner: Sequence[str] | None) -> bool:
    """Whether a key is unknown in its own map and known in the map below the empty key."""
    if known_keys is None:
        return inner is not None and name in inner
    if name in known_keys:
        return False
    return name in inner if inner is not None else nearest(name, known_keys) is None


def _known_keys(kind: Any) -> list[str] | None:
    """The keys of a model; None of what takes any."""
    return list(_field_types(kind)) if _is_model(kind) and kind.model_config.get("extra") != "allow" else None


def _misindented_fault(document: Document, mark: Mark, key: str, names: list[str]) -> Diagnostic:
    listed = first_names([show_value(name) for name in names], _MOST_NAMES, between=" and ")
    verb, pronoun = ("stands", "it") if len(names) == 1 else ("stand", "them")
    hint = f"indent {pronoun} further than '{key}'"
    return document.at(mark, f"{listed} {verb} beside '{key}', not below it", hint=hint)


M = TypeVar("M", bound=BaseModel)
_EXPECTED = {"int": "a whole number", "bool": "true or false", "float": "a number"}
_ROUNDS = 20  # misspelt keys that are set right, each to see what is below it


def validate_document(model: type[M], document: Document) -> tuple[M | None, list[Diagnostic], Document]:
    """Validate a document.

    A misspelt key is reported and read as what it was meant to be, so that faults below it show too.

    Args:
        model: What it should be.
        document: The file.

    Returns:
        The model's instance (None when there are faults), the faults, and the document with misspelt
        keys set right.
    """
    slips: list[Diagnostic] = []
    document = replace(document, root=_repair_indentation(document.root, model, document, slips))
    for _ in range(_ROUNDS):
        try:
            validated = model.model_validate(document.get(()))
        except ValidationError as error:
            problems = error.errors(include_url=False)
        else:
            return (None if slips else validated), slips, document
        slip = _first_misspelt_key(problems, model, document)
        if slip is None:
            # one more than is shown: it is slow to make each of 100,000
            faults = [_diagnose(p, model, document) for p in problems[: MOST_SHOWN + 1]]
            return None, [*slips, *faults], document
        path, intended_key = slip
        slips.append(_diagnose_unknown_key(path, model, document))
        document = document.renamed(path, intended_key)
    return None, slips, document


def fields_at(model: type[BaseModel], path: Sequence[str | int]) -> Mapping[str, Any] | None:
    """The keys that the model knows at `path`, or None where it takes any."""
    kind = kind_at(model, path)
    return _field_types(kind) if _is_model(kind) else None


def kind_at(model: type[BaseModel], path: Sequence[str | int]) -> Any:
    """The type of what the model has at `path`."""
    kind: Any = model
    for part in path:
        kind = _type_of_item(_unwrap_type(kind), part)
    return _unwrap_type(kind)


def _unwrap_type(kind: Any) -> Any:
    """A type without Annotated and without `| None`; of a union its model."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        members = [_unwrap_type(k) for k in get_args(kind) if k is not type(None)]
        return next(filter(_is_model, members), members[0])
    return kind


def _type_of_item(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        return _field_types(kind).get(str(part), Any)
    arguments = get_args(kind)
    return arguments[-1] if arguments else Any


def _first_misspelt_key(
    problems: Sequence[Any], model: type[BaseModel], document: Document
) -> tuple[KeyPath, str] | None:
    """The first unknown key whose nearest known one is not set, with that one."""
    for problem in problems:
        if problem["type"] == "extra_forbidden":
            path = _path_in_file(problem["loc"], document)
            known_keys = fields_at(model, path[:-1]) or {}
            intended_key = nearest(str(path[-1]), known_keys)
            if intended_key is not None and document.node((*path[:-1], intended_key)) is None:
                return path, intended_key
    return None


def _path_in_file(loc: Sequence[str | int], document: Document) -> KeyPath:
    """The path in the file that pydantic's `loc` means; its words for members of unions are not in the file."""
    path: KeyPath = ()
    node = document.node(path)
    for part in loc:
        child = node.child(part) if node is not None else None
        if child is not None:
            path, node = (*path, part), child
    return path


def _diagnose(problem: Any, model: type[BaseModel], document: Document) -> Diagnostic:
    kind, loc = problem["type"], problem["loc"]
    path = _path_in_file(loc, document)
    if kind == "extra_forbidden" and isinstance(path[-1], int):  # a word that is short for a map of it
        return _diagnose_unknown_word(path, model, document)
    if kind == "extra_forbidden":
        return _diagnose_unknown_key(path, model, document)
    if kind == "missing":
        return _diagnose_missing_key(str(loc[-1]), path, document)
    fault = (problem.get("ctx") or {}).get("error")
    if isinstance(fault, Fault):
        if loc[-1:] == ("[key]",):
            return document.diagnostic(path, fault.message, hint=fault.hint, key=True)
        mark = document.mark_in_value((*path, *fault.path), fault.offset)
        return document.at(mark, fault.message, hint=fault.hint)
    value = problem["input"]
    message, hint = _message_and_hint(kind, problem.get("ctx") or {}, value, path)
    return document.diagnostic(path, message, hint=hint, key=loc[-1:] == ("[key]",))


def _diagnose_unknown_key(path: KeyPath, model: type[BaseModel], document: Document) -> Diagnostic:
    known_keys = fields_at(model, path[:-1]) or {}
    location = _location_text(path[:-1])
    hint = did_you_mean(str(path[-1]), known_keys)
    if hint is None:
        elsewhere = " or ".join(paths_of_key(model, str(path[-1])))
        other_location = f"{path[-1]} is a key of {elsewhere}; " if elsewhere else ""
        hint = f"{other_location}the keys {location or 'here'} are {', '.join(known_keys)}"
    return document.diagnostic(
        path, f"unknown key {show_value(str(path[-1]))}{' ' + location if location else ''}", hint=hint, key=True
    )


def _diagnose_unknown_word(path: KeyPath, model: type[BaseModel], document: Document) -> Diagnostic:
    word, known_words = str(document.get(path)), fields_at(model, path) or {}
    hint = did_you_mean(word, known_words) or f"there are {', '.join(known_words)}"
    return document.diagnostic(path, f"unknown word {show_value(word)} {_location_text(path)}".rstrip(), hint=hint)


def _diagnose_missing_key(key: str, parent: KeyPath, document: Document) -> Diagnostic:
    location = _location_text(parent)
    hint = "write 'nsw: 1', the version of the format" if key == "nsw" and not parent else None
    if key == "unit":
        hint = "such as unit: images/s; a number without one has unit: ''"
    return document.diagnostic(
        parent, f"the key '{key}' is missing{' ' + location if location else ''}", hint=hint, key=True
    )


def _location_text(path: KeyPath) -> str:
    words = [part for part in path if isinstance(part, str)]
    return f"in {show_value('.'.join(words))[1:-1]}" if words else ""


def _message_and_hint(kind: str, context: Mapping[str, Any], value: object, path: KeyPath) -> tuple[str, str | None]:
    """Message and hint for a fault that pydantic found."""
    hint, quote = None, 'quote an expression: "{{ ... }}"' if isinstance(value, dict) else None
    if kind in {"model_type", "dict_type", "model_attributes_type"}:
        glued = re.match(r"(\w+):(?!//)\S", value) if isinstance(value, str) else None
        hint = f"write '{glued[1]}: ...', with a space after the colon" if glued else "indent its keys below it"
        return f"expected a map (key: value), found {show_value(value)}", hint
    if kind == "list_type":
        if path == ("passes",):
            hint = "such as '- baseline: {}', a line a pass"
        elif isinstance(value, str | int) and len(str(value)) < 40:
            hint = f"such as [{_as_list_item(value)}]"
        return f"expected a list, found {show_value(value)}", hint
    if kind == "too_short":
        return "the list is empty", None
    if kind == "literal_error":
        return _literal_message_and_hint(str(context.get("expected", "")), value, path)
    if kind.startswith("string"):
        return f"expected text, found {show_value(value)}", quote or "quote it"
    expected = _EXPECTED.get(kind.split("_", maxsplit=1)[0])
    return (
        f"expected {expected}, found {show_value(value)}" if expected else f"{show_value(value)} is not allowed here"
    ), quote


def _as_list_item(value: str | int) -> str:
    """How a value is written between the brackets of a list, where YAML gives some signs a meaning."""
    text = str(value)
    if not isinstance(value, str) or not re.search(r"""[][{}#:&*!|>'"%@`]""", text):
        return text
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _literal_message_and_hint(expected: str, value: object, path: KeyPath) -> tuple[str, str | None]:
    if path == ("nsw",):
        return (
            f"this nsw reads version {expected}; found {show_value(value)}",
            f"write 'nsw: {expected}', or install a newer nsw",
        )
    words = re.findall(r"'([^']*)'", expected) or [expected]
    choices = ", ".join(words)
    return f"expected one of {choices}; found {show_value(value)}", did_you_mean(value, words) if isinstance(
        value, str
    ) else None


# names that hold the values of all parameters
_ALL_VALUES = frozenset({"case", "run"})


class _Gathered:
    """What the checks ask of a recipe, gathered once.

    Attributes:
        document: The recipe, the site's section already laid over it.
        names: The parameters that the matrix defines, by its lists or, where it has none, by its includes.
        has_lists: Whether there are lists.
        templates: Path and data of what may hold expressions and is used by runs.
        values: Path and data of the parameters' values: what is listed, and each item of it.
        excludes: Path and data of each exclude.
        includes: Path and data of each include.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.excludes = list(document.find("matrix", "exclude", "*"))
        self.includes = list(document.find("matrix", "include", "*"))
        matrix = document.get(("matrix",))
        listed: list[str] = []
        if isinstance(matrix, dict):
            rests = range_rest_keys(matrix)
            listed = [name for name in matrix if name not in MATRIX_WORDS and name not in rests]
        self.has_lists = bool(listed)
        included = (name for _, point in self.includes if isinstance(point, dict) for name in point)
        self.names = listed or list(dict.fromkeys(included))
        self.templates = [entry for pattern in _TEMPLATES for entry in document.find(*pattern)]
        self.values = [
            entry
            for name in self.names
            for entry in (*document.find("matrix", name), *document.find("matrix", name, "*"))
        ]

    def names_in_texts(self) -> set[str]:
        """The names in all expressions that change what a case does; an exclude only leaves cases out."""
        texts = [text for _, text in (*self.templates, *self.values)]
        return {name for text in texts if is_template(text) for name in Expression.parse(text).names}


def _check_unused_parameters(recipe: _Gathered, cases: list[Case], used: AbstractSet[str]) -> Iterator[Diagnostic]:
    """Warn of parameters that change nothing in the runs; `used` are the names in the recipe's texts."""
    names = list(cases[0].params) if cases else []
    if used & _ALL_VALUES or used >= set(names):
        return
    alike: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        alike.setdefault(tuple(repr(case.params[name]) for name in names if name in used), []).append(case)
    for name in names:
        if name not in {*used, SIDE} and any(
            len({repr(c.params[name]) for c in group}) > 1 for group in alike.values()
        ):
            hint = f"write {{{{ {name} }}}} where it belongs, such as in app: command, or take it out of the matrix"
            message = f"nothing uses {name}, so its cases are the same"
            yield recipe.document.diagnostic(("matrix", name), message, hint=hint, key=True)


def _check_repeated_values(document: Document, matrix: Matrix) -> Iterator[Diagnostic]:
    """Warns of values that are repeated in a list; in lists that vary together that has a meaning."""
    together = {name for group in matrix.zip for name in group}
    for name, values in matrix.parameters.items():
        if name in together or not isinstance(values, list):
            continue
        seen = set()
        for index, value in enumerate(values):
            if repr(plain_number(value)) in seen:
                message = f"{value!r} is listed a second time; it is one case"
                yield document.diagnostic(("matrix", name, index), message, hint="repeats: N runs every case N times")
            seen.add(repr(plain_number(value)))


CONTEXT = frozenset({"case", "run", "site", "nsw", "repeat", "pass"})  # what nsw itself gives to expressions
MATRIX_WORDS = frozenset({"exclude", "include", "zip"})
_SPACED = re.compile(r"[\d.]+( +[\d.]+)+")  # 64 128
_FROM_TO = re.compile(r"(\d+) ?[-:] ?(\d+)")
_DOLLAR = re.compile(r"\$(\{\{(?!\{|\s*['\"]).*?\}\})", re.DOTALL)  # {{ '{{' }} is how Jinja writes a brace
_JINJA_WORDS = frozenset(
    {"range", "true", "false", "none", "loop", "if", "else", "for", "in", "is", "and", "or", "not", "set"}
)

_TEMPLATES: Final = tuple(tuple(path.split(".")) for path in (
    "app.command", "app.command.*", "app.env.*", "app.env.*.secret", "app.env.*.plain", "app.launcher.processes",
    "app.launcher.prefix", "app.launcher.options.*", "app.build.command", "app.build.gpus", "app.container.image",
    "app.container.options.*", "app.container.mounts.*", "app.container.env.*", "resources.*", "resources.extra.*",
    "check.*.file", "check.*.command", "passes.*.*.time", "passes.*.*.options.*", "report.model.flop",
    "report.model.links.*.bytes",
))  # fmt: skip


def check_recipe(document: Document, folder: Path | None) -> list[Diagnostic]:
    """The faults of a recipe's parts taken together.

    Args:
        document: The recipe, the site's section already laid over it.
        folder: Where the recipe's files are looked for; None: they are not.
    """
    recipe = _Gathered(document)
    faults = [
        *_check_parameter_names(recipe),
        *_check_expressions(recipe),
        *_check_setup(document),
        *_check_report(recipe),
        *_check_metrics(document),
        *_check_pass_names(document),
        *_check_matrix_names(recipe),
    ]
    if folder is not None:
        faults += islice(_check_files(document, folder), MOST_SHOWN + 1)
    return faults


def check_matrix(document: Document, recipe: Recipe) -> tuple[list[Case], list[Diagnostic], list[Diagnostic]]:
    """The cases, the faults of their expansion, and warnings about parts of the matrix that do nothing."""
    try:
        expanded = expand_matrix(recipe.matrix)
    except MatrixFault as fault:
        return [], [document.diagnostic(fault.path, fault.message, hint=fault.hint)], []
    gathered = _Gathered(document)
    warnings = [
        *(
            _diagnose_item(document, "exclude", index, "this exclude matches no case")
            for index in expanded.idle_excludes
        ),
        *(_diagnose_item(document, "include", index, "this case exists already") for index in expanded.idle_includes),
        *_check_unbracketed_lists(gathered),
        *_check_python_booleans(gathered),
        *_check_dollar_braces(gathered),
        *_check_repeated_values(document, recipe.matrix),
        *_check_unused_parameters(
            gathered, expanded.cases, gathered.names_in_texts() | ({SIDE} if recipe.app.before else set())
        ),
    ]
    faults = []
    if not expanded.cases:
        message = "no case is left: the excludes match every case"
        faults.append(document.diagnostic(("matrix",), message, key=True))
    if recipe.app.before and not any(case.params.get(SIDE) == BEFORE for case in expanded.cases):
        message = f"app.before is the program of cases whose {SIDE} is {BEFORE}, and there is no such case"
        hint = f"matrix: {{{SIDE}: [{BEFORE}, {AFTER}]}}"
        faults.append(document.diagnostic(("app", BEFORE), message, hint=hint, key=True))
    return expanded.cases, faults, warnings


def _diagnose_item(document: Document, key: str, index: int, message: str) -> Diagnostic:
    return document.diagnostic(("matrix", key, index), message)


def _check_parameter_names(recipe: _Gathered) -> Iterator[Diagnostic]:
    for name in recipe.names:
        path: KeyPath = ("matrix", name)
        values = recipe.document.get(path)
        if isinstance(values, list) and any(isinstance(v, dict | list) for v in values) and nearest(name, MATRIX_WORDS):
            message = f"{show_value(name)} is not a parameter: its values are not plain"
            hint = did_you_mean(name, MATRIX_WORDS)
            yield recipe.document.diagnostic(path, message, hint=hint, key=True)
        if name in CONTEXT or name in _JINJA_WORDS:
            message = f"'{name}' has a meaning of its own in expressions and cannot name a parameter"
            yield recipe.document.diagnostic(path, message, hint=f"such as {name}_", key=True)
        elif not name.isidentifier() or not name.isascii() or iskeyword(name):
            message, hint = (
                f"{show_value(name)} cannot name a parameter",
                "letters, digits and '_', not starting with a digit",
            )
            yield recipe.document.diagnostic(path, message, hint=hint, key=True)


def _check_expressions(recipe: _Gathered) -> Iterator[Diagnostic]:
    names = set(recipe.names)
    for path, text in recipe.templates:
        yield from _check_names(recipe.document, path, text, names | CONTEXT)
    for path, text in (*recipe.values, *recipe.excludes):
        yield from _check_names(recipe.document, path, text, names)


def _check_setup(document: Document) -> Iterator[Diagnostic]:
    """Refuse expressions in `app.setup`: one script holds the runs of many cases, and runs it before all of them."""
    for path, text in document.find("app", "setup", "*"):
        if is_template(text):
            yield document.diagnostic(
                path,
                "app.setup has no {{ }}: a job runs it once, for all its cases",
                hint="write it into app.command (`source {{ venv }}/bin/activate && python train.py`), or app.env",
            )


def _check_names(document: Document, path: KeyPath, text: Any, names_known: AbstractSet[str]) -> Iterator[Diagnostic]:
    if not is_template(text):
        return
    try:
        names = Expression.parse(text).names
    except Fault:
        return  # reported already, where the value's type was checked
    for name in sorted(names - names_known):
        defined = f"the matrix defines: {', '.join(sorted(names_known - CONTEXT)) or 'none'}"
        near = did_you_mean(name, names_known)
        hint = f"{near} {defined}" if near else defined
        message = f"the expression uses '{name}', which no matrix defines"
        yield document.at(name_mark(document, path, name), message, hint=hint)


def name_mark(document: Document, path: KeyPath, name: str) -> Mark | None:
    """The place of a name in the expressions of a value; of the whole value where escapes hide it.

    Args:
        document: The file.
        path: The value.
        name: The name.
    """
    offset = find_name(document.raw(path), name)
    return document.mark(path) if offset is None else document.mark_in_raw(path, offset, len(name))


def _check_report(recipe: _Gathered) -> Iterator[Diagnostic]:
    """Find words of `report` and `check` that name no parameter or figure."""
    document, app_figures = recipe.document, recipe.document.get(("app", "figures"))
    figures, gate = list(app_figures) if isinstance(app_figures, dict) else [], document.get(("report", "gate"))
    parameter, figure = (recipe.names, "parameter of the matrix"), (figures, "figure of app.figures")
    words: list[tuple[KeyPath, Any, tuple[list[str], str]]] = [
        (path, document.get(path), kind)
        for path, kind in (
            (("report", "scaling", "axis"), parameter),
            (("report", "compare", "parameter"), parameter),
            (("report", "scaling", "figure"), figure),
            (("report", "compare", "figure"), figure),
        )
    ]
    words += [(path, name, figure) for path, name in document.find("check", "*", "figure")]
    words += [(("report", "gate", word), word, figure) for word in (gate if isinstance(gate, dict) else ())]
    for path, word, (allowed, subject) in words:
        if isinstance(word, str) and word not in allowed:
            hint = did_you_mean(word, allowed) or (f"there are: {', '.join(allowed)}" if allowed else "there is none")
            yield document.diagnostic(path, f"{show_value(word)} is not a {subject}", hint=hint)


def _check_metrics(document: Document) -> Iterator[Diagnostic]:
    """Find metrics that no chip has; nsw checks for the site's chip once its name is known."""
    for path, options in document.find("passes", "*", "counters"):
        metrics = options.get("metrics") if isinstance(options, dict) else None
        if not isinstance(metrics, list) or not all(isinstance(name, str) for name in metrics):
            continue  # reported where the value's type was checked
        tool = options.get("tool")
        replay = str(options.get("replay"))
        for fault in metric_faults(metrics, None, tool if tool in {"ncu", "nvprof"} else None, replay=replay):
            yield document.diagnostic((*path, "metrics", fault.index), fault.message, hint=fault.hint)


def _check_pass_names(document: Document) -> Iterator[Diagnostic]:
    first: dict[str, KeyPath] = {}
    count: Counter[str] = Counter()
    for path, entry in document.find("passes", "*"):
        kind = entry if isinstance(entry, str) else next(iter(entry), None) if isinstance(entry, dict) else None
        options = entry.get(kind) if isinstance(entry, dict) else None
        name = options.get("name", kind) if isinstance(options, dict) else kind
        if not isinstance(name, str):
            continue
        count[name] += 1
        if name in first:
            first_mark = document.mark(first[name], key=True)
            hint = "give one of them a name of its own, such as {name: " + f"{name}-{count[name]}" + "}"
            yield document.diagnostic(
                path, f"another pass is also called {show_value(name)}; the first is at {first_mark}", hint=hint
            )
        first.setdefault(name, path)


def _check_matrix_names(recipe: _Gathered) -> Iterator[Diagnostic]:
    """Find keys of excludes that are no parameters; of includes too, where lists define the parameters."""
    names, document = recipe.names, recipe.document
    hint = f"the matrix defines: {', '.join(names) or 'none'}"
    for path, point in (*recipe.excludes, *(recipe.includes if recipe.has_lists else ())):
        for name in point if isinstance(point, dict) else ():
            if name not in names:
                message = f"{show_value(name)} is not a parameter of the matrix"
                yield document.diagnostic((*path, name), message, hint=did_you_mean(name, names) or hint, key=True)


def _check_files(document: Document, folder: Path) -> Iterator[Diagnostic]:
    for path, name in (*document.find("app", "files", "*"), *document.find("app", "before", "*")):
        if not isinstance(name, str) or not name or "\0" in name:
            continue
        file_path = source_path(folder, name)
        try:
            exists, can_be_copied = file_path.exists(), file_path.is_file() or file_path.is_dir()
        except OSError:
            exists = can_be_copied = False
        if not exists:
            hint = did_you_mean(name, _similar_files(folder, name))
            yield document.diagnostic(path, f"there is no file {show_value(name)} in the recipe's folder", hint=hint)
        elif not can_be_copied:
            message = f"{show_value(name)} is neither a regular file nor a folder, so it cannot be copied"
            yield document.diagnostic(path, message, hint="list regular files and folders only")


def _similar_files(folder: Path, name: str) -> list[str]:
    """The names of the files beside one that does not exist, written as it was."""
    parent = (folder / name).parent
    stem = name[: len(name) - len(name.rsplit("/", 1)[-1])]
    try:
        return [stem + entry.name for entry in islice(parent.iterdir(), 1000)]
    except OSError:
        return []


def _check_unbracketed_lists(recipe: _Gathered) -> Iterator[Diagnostic]:
    """`gpus: 1,2,4`, `gpus: 1 2 4` and `gpus: 1-4` are one text to YAML."""
    for path, value in recipe.values:
        if len(path) > 2 or not isinstance(value, str) or is_template(value):
            continue
        hint = None
        if "," in value:
            hint = f"for several write [{value}]"
        elif _SPACED.fullmatch(value):
            hint = f"for several write [{', '.join(value.split())}]"
        elif ends := _FROM_TO.fullmatch(value):
            hint = f"for several write {{range: [{ends[1]}, {ends[2]}]}}"
        if hint is not None:
            yield recipe.document.diagnostic(path, f"this is one value, {show_value(value)}", hint=hint)


def _check_python_booleans(recipe: _Gathered) -> Iterator[Diagnostic]:
    """Warn of `True`: YAML reads it as `true`, and it reaches the program so."""
    for path, _ in recipe.values:
        node = recipe.document.node(path)
        if node is not None and isinstance(node.value, bool) and node.text != as_text(node.value):
            message, hint = (
                f"{node.text} reaches the program as {as_text(node.value)}",
                f"quote it, '{node.text}', if the program needs it so",
            )
            yield recipe.document.diagnostic(path, message, hint=hint)


def _check_dollar_braces(recipe: _Gathered) -> Iterator[Diagnostic]:
    """`${{ x }}` is what other tools write; here the `$` stays, as a character or as the shell's."""
    for path, text in recipe.templates:
        for match in _DOLLAR.finditer(text) if isinstance(text, str) else ():
            mark = recipe.document.mark_in_value(path, match.start(), len(match[0]))
            expression = escape_nonprinting(match[1])
            hint = f"write {expression}; for a $ before a value {{{{ '$' }}}}{expression}"
            message = "the $ before this expression is no part of it: it stays in the text"
            yield recipe.document.at(mark, message, hint=hint)
