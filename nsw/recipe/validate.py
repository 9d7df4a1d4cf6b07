"""A document against a pydantic model: every fault as a diagnostic at its line, in nsw's own words."""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from itertools import takewhile
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nsw.errors import MOST_SHOWN, Diagnostic, did_you_mean, nearest
from nsw.recipe.document import Document, KeyPath, Node
from nsw.recipe.units import Fault, show_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.errors import Mark


__all__ = ["fields_at", "kind_at", "paths_of_key", "validate"]

_DEEPEST = 6  # keys from the top of a file to any key
_PATHS_IN_MESSAGE = 3


def paths_of_key(model: type[BaseModel], key: str) -> list[str]:
    """The paths of the maps that take a key, those nearest to the top of the file; [] where none does.

    A path has `NAME` for a name that the user gives and `[]` for an item of a list: `passes[].counters`.
    """
    level: list[tuple[str, type[BaseModel]]] = [("", model)]
    for _ in range(_DEEPEST):
        if paths := [path for path, candidate in level if path and key in _keys(candidate)]:
            return paths[:_PATHS_IN_MESSAGE]
        level = [
            (f"{path}.{name}{inside}".lstrip("."), inner)
            for path, candidate in level
            for name, kind in _keys(candidate).items()
            for inside, inner in _models(kind)
        ]
    return []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _models(kind: Any) -> list[tuple[str, type[BaseModel]]]:
    """The models in a type, each with what stands between the key and it."""
    if _is_model(kind):
        return [("", kind)]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _models(arguments[0])
    if origin in {Union, UnionType}:
        return [inner_model for argument in arguments for inner_model in _models(argument)]
    between = {list: "[]", dict: ".NAME"}.get(origin)
    return [(between + inside, inner) for inside, inner in _models(arguments[-1])] if between else []


_MOST_NAMES = 2  # names in a message


def _indented(node: Node, kind: Any, document: Document, faults: list[Diagnostic]) -> Node:
    """The tree with keys that are beside the one that they belong below where they belong; adds a fault for each.

    Args:
        node: The tree; what is moved out of an inner map is looked at there first.
        kind: The type that the model has for it.
        document: The file.
        faults: Where the faults go.
    """
    if isinstance(node.value, list):
        items = [_indented(item, _bare(_below(kind, at)), document, faults) for at, item in enumerate(node.value)]
        return node if all(map(operator.is_, items, node.value)) else replace(node, value=items)
    if not isinstance(node.value, dict):
        return node
    value = {key: _indented(child, _bare(_below(kind, key)), document, faults) for key, child in node.value.items()}
    keys, is_changed = node.keys, not all(map(operator.is_, value.values(), node.value.values()))
    while slip := _slip(value, kind):
        key, names = slip
        faults.append(_fault(document, keys[names[0]], key, names))
        moved = {name: value.pop(name) for name in names}
        value[key] = Node(moved, moved[names[0]].span, {name: keys[name] for name in names})
        keys, is_changed = {name: mark for name, mark in keys.items() if name not in names}, True
    return replace(node, value=value, keys=keys) if is_changed else node


def _slip(value: dict[str, Node], kind: Any) -> tuple[str, list[str]] | None:
    """An empty key, and those right behind it that can only belong below it."""
    known_keys, names = _known_keys(kind), list(value)
    for number, key in enumerate(names):
        inner_kind = _bare(_below(kind, key))
        if value[key].value is not None or not (_is_model(inner_kind) or get_origin(inner_kind) is dict):
            continue
        inner = _known_keys(inner_kind)
        below = list(takewhile(lambda name: _belongs(name, known_keys, inner), names[number + 1 :]))  # noqa: B023  used at once
        if below:
            return key, below
    return None


def _belongs(name: str, known_keys: Sequence[str] | None, inner: Sequence[str] | None) -> bool:
    """Whether a key is none of the map that it is in, and one of the map below the empty key."""
    if known_keys is None:
        return inner is not None and name in inner
    if name in known_keys:
        return False
    return name in inner if inner is not None else nearest(name, known_keys) is None


def _known_keys(kind: Any) -> list[str] | None:
    """The keys of a model; None of what takes any."""
    return list(_keys(kind)) if _is_model(kind) and kind.model_config.get("extra") != "allow" else None


def _fault(document: Document, mark: Mark, key: str, names: list[str]) -> Diagnostic:
    listed = " and ".join(show_value(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    verb, pronoun = ("stands", "it") if len(names) == 1 else ("stand", "them")
    hint = f"indent {pronoun} further than '{key}'"
    return document.at(mark, f"{listed}{more} {verb} beside '{key}', not below it", hint=hint)


M = TypeVar("M", bound=BaseModel)
_EXPECTED = {"int": "a whole number", "bool": "true or false", "float": "a number"}
_ROUNDS = 20  # misspelt keys that are set right, each to see what is below it


def validate(model: type[M], document: Document, *, below: KeyPath = ()) -> tuple[M | None, list[Diagnostic], Document]:
    """Validate a document.

    A misspelt key is reported and read as what it was meant to be, so that faults below it show too.

    Args:
        model: What it should be.
        document: The file.
        below: Validate only the value at this path.

    Returns:
        The model's instance (None when there are faults), the faults, and the document with misspelt
        keys set right.
    """
    slips: list[Diagnostic] = []
    if not below:
        document = document.with_root(_indented(document.root, model, document, slips))
    for _ in range(_ROUNDS):
        try:
            validated = model.model_validate(document.get(below))
        except ValidationError as error:
            problems = error.errors(include_url=False)
        else:
            return (None if slips else validated), slips, document
        slip = _misspelt(problems, model, document, below)
        if slip is None:
            # one more than is shown: it is slow to make each of 100,000
            faults = [_diagnostic(p, model, document, below) for p in problems[: MOST_SHOWN + 1]]
            return None, [*slips, *faults], document
        path, intended_key = slip
        slips.append(_unknown_key(path, model, document, below))
        document = document.renamed(path, intended_key)
    return None, slips, document


def fields_at(model: type[BaseModel], path: Sequence[str | int]) -> Mapping[str, Any] | None:
    """The keys that the model knows at `path`, or None where it takes any."""
    kind = kind_at(model, path)
    return _keys(kind) if _is_model(kind) else None


def kind_at(model: type[BaseModel], path: Sequence[str | int]) -> Any:
    """The type of what the model has at `path`."""
    kind: Any = model
    for part in path:
        kind = _below(_bare(kind), part)
    return _bare(kind)


def _bare(kind: Any) -> Any:
    """A type without Annotated and without `| None`; of a union its model."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        members = [_bare(k) for k in get_args(kind) if k is not type(None)]
        return next(filter(_is_model, members), members[0])
    return kind


def _below(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        return _keys(kind).get(str(part), Any)
    arguments = get_args(kind)
    return arguments[-1] if arguments else Any


def _misspelt(
    problems: Sequence[Any], model: type[BaseModel], document: Document, below: KeyPath
) -> tuple[KeyPath, str] | None:
    """The first unknown key whose nearest known one is not set, with that one."""
    for problem in problems:
        if problem["type"] == "extra_forbidden":
            path = _real_path(problem["loc"], document, below)
            known_keys = fields_at(model, path[len(below) : -1]) or {}
            intended_key = nearest(str(path[-1]), known_keys)
            if intended_key is not None and document.node((*path[:-1], intended_key)) is None:
                return path, intended_key
    return None


def _real_path(loc: Sequence[str | int], document: Document, below: KeyPath) -> KeyPath:
    """The path that pydantic's `loc` means: its words for members of unions stand for nothing in the file."""
    path, node = below, document.node(below)
    for part in loc:
        child = node.child(part) if node is not None else None
        if child is not None:
            path, node = (*path, part), child
    return path


def _diagnostic(problem: Any, model: type[BaseModel], document: Document, below: KeyPath) -> Diagnostic:
    kind, loc = problem["type"], problem["loc"]
    path = _real_path(loc, document, below)
    if kind == "extra_forbidden" and isinstance(path[-1], int):  # a word that is short for a map of it
        return _unknown_word(path, model, document, below)
    if kind == "extra_forbidden":
        return _unknown_key(path, model, document, below)
    if kind == "missing":
        return _missing(str(loc[-1]), path, document, below)
    fault = (problem.get("ctx") or {}).get("error")
    if isinstance(fault, Fault):
        if loc[-1:] == ("[key]",):
            return document.diagnostic(path, fault.message, hint=fault.hint, key=True)
        mark = document.mark_in_value((*path, *fault.path), fault.offset)
        return document.at(mark, fault.message, hint=fault.hint)
    value = problem["input"]
    message, hint = _worded(kind, problem.get("ctx") or {}, value, path)
    return document.diagnostic(path, message, hint=hint, key=loc[-1:] == ("[key]",))


def _unknown_key(path: KeyPath, model: type[BaseModel], document: Document, below: KeyPath) -> Diagnostic:
    known_keys = fields_at(model, path[len(below) : -1]) or {}
    location = _location_text(path[:-1])
    hint = did_you_mean(str(path[-1]), known_keys)
    if hint is None:
        elsewhere = " or ".join(paths_of_key(model, str(path[-1])))
        other_location = f"{path[-1]} is a key of {elsewhere}; " if elsewhere else ""
        hint = f"{other_location}the keys {location or 'here'} are {', '.join(known_keys)}"
    return document.diagnostic(
        path, f"unknown key {show_value(str(path[-1]))}{' ' + location if location else ''}", hint=hint, key=True
    )


def _unknown_word(path: KeyPath, model: type[BaseModel], document: Document, below: KeyPath) -> Diagnostic:
    word, known_words = str(document.get(path)), fields_at(model, path[len(below) :]) or {}
    hint = did_you_mean(word, known_words) or f"there are {', '.join(known_words)}"
    return document.diagnostic(path, f"unknown word {show_value(word)} {_location_text(path)}".rstrip(), hint=hint)


def _missing(key: str, parent: KeyPath, document: Document, below: KeyPath) -> Diagnostic:
    location = _location_text(parent)
    hint = "write 'nsw: 1', the version of the format" if key == "nsw" and parent == below else None
    if key == "unit":
        hint = "such as unit: images/s; a number without one has unit: ''"
    return document.diagnostic(
        parent, f"the key '{key}' is missing{' ' + location if location else ''}", hint=hint, key=True
    )


def _location_text(path: KeyPath) -> str:
    words = [part for part in path if isinstance(part, str)]
    return f"in {show_value('.'.join(words))[1:-1]}" if words else ""


def _worded(kind: str, context: Mapping[str, Any], value: object, path: KeyPath) -> tuple[str, str | None]:
    """Message and hint for what pydantic found itself."""
    quote = 'quote an expression: "{{ ... }}"' if isinstance(value, dict) else None
    if kind in {"model_type", "dict_type", "model_attributes_type"}:
        glued = re.match(r"(\w+):(?!//)\S", value) if isinstance(value, str) else None
        hint = f"write '{glued[1]}: ...', with a space after the colon" if glued else "indent its keys below it"
        return f"expected a map (key: value), found {show_value(value)}", hint
    if kind == "list_type" and path == ("passes",):
        return f"expected a list, found {show_value(value)}", "such as '- baseline: {}', a line a pass"
    if kind == "list_type":
        return f"expected a list, found {show_value(value)}", f"such as [{_in_a_list(value)}]" if isinstance(
            value, str | int
        ) and len(str(value)) < 40 else None
    if kind == "too_short":
        return "the list is empty", None
    if kind == "literal_error":
        return _literal(str(context.get("expected", "")), value, path)
    if kind.startswith("string"):
        return f"expected text, found {show_value(value)}", quote or "quote it"
    expected = _EXPECTED.get(kind.split("_", maxsplit=1)[0])
    return (
        f"expected {expected}, found {show_value(value)}" if expected else f"{show_value(value)} is not allowed here"
    ), quote


def _in_a_list(value: str | int) -> str:
    """How a value is written between the brackets of a list, where YAML gives some signs a meaning."""
    text = str(value)
    if not isinstance(value, str) or not re.search(r"""[][{}#:&*!|>'"%@`]""", text):
        return text
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _literal(expected: str, value: object, path: KeyPath) -> tuple[str, str | None]:
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
