"""A document against a pydantic model: every fault as a diagnostic at its line, in nsw's own words."""

from __future__ import annotations

import re
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nsw.errors import MOST_SHOWN, Diagnostic, did_you_mean, nearest
from nsw.recipe.faults import Fault, shown
from nsw.recipe.misindented_keys import set_right
from nsw.recipe.misplaced_keys import homes
from nsw.recipe.secret_names import glued_name, without_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.document import Document
    from nsw.recipe.yaml_nodes import Path

M = TypeVar("M", bound=BaseModel)
_EXPECTED = {"int": "a whole number", "bool": "true or false", "float": "a number"}
_STARS = "***"  # what messages name instead of a value that is secret
_ROUNDS = 20  # misspelt keys that are set right, each to see what is below it


def validate(model: type[M], document: Document, *, below: Path = ()) -> tuple[M | None, list[Diagnostic], Document]:
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
        document, slips = set_right(document, lambda path: kind_at(model, path))
    for _ in range(_ROUNDS):
        try:
            found = model.model_validate(document.get(below))
        except ValidationError as error:
            problems = error.errors(include_url=False)
        else:
            return (None if slips else found), slips, document
        slip = _misspelt(problems, model, document, below)
        if slip is None:
            # one more than is shown: it is slow to make each of 100,000
            faults = [_diagnostic(p, model, document, below) for p in problems[: MOST_SHOWN + 1]]
            return None, [*slips, *faults], document
        path, meant = slip
        slips.append(_unknown_key(path, model, document, below))
        document = document.renamed(path, meant)
    return None, slips, document


def fields_at(model: type[BaseModel], path: Sequence[str | int]) -> Mapping[str, Any] | None:
    """The keys that the model knows at `path`, or None where it takes any."""
    kind = kind_at(model, path)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


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
        models = [k for k in members if isinstance(k, type) and issubclass(k, BaseModel)]
        return models[0] if models else members[0]
    return kind


def _below(kind: Any, part: str | int) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return next((f.annotation for n, f in kind.model_fields.items() if (f.alias or n) == part), Any)
    arguments = get_args(kind)
    return arguments[-1] if arguments else Any


def _misspelt(
    problems: Sequence[Any], model: type[BaseModel], document: Document, below: Path
) -> tuple[Path, str] | None:
    """The first unknown key whose nearest known one is not set, with that one."""
    for problem in problems:
        if problem["type"] == "extra_forbidden":
            path = _real_path(problem["loc"], document, below)
            known = fields_at(model, path[len(below) : -1]) or {}
            meant = nearest(str(path[-1]), known)
            if meant is not None and document.node((*path[:-1], meant)) is None:
                return path, meant
    return None


def _real_path(loc: Sequence[str | int], document: Document, below: Path) -> Path:
    """The path that pydantic's `loc` means: its words for members of unions stand for nothing in the file."""
    path, node = below, document.node(below)
    for part in loc:
        child = node.child(part) if node is not None else None
        if child is not None:
            path, node = (*path, part), child
    return path


def _diagnostic(problem: Any, model: type[BaseModel], document: Document, below: Path) -> Diagnostic:
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
            hidden = document.hides(document.mark(path, key=True))
            message, hint = _bare_key(str(path[-1])) if hidden else (fault.message, fault.hint)
            return document.diagnostic(path, message, hint=hint, key=True)
        path = (*path, *fault.path)
        message, hint = fault.message, fault.hint
        if fault.bare is not None and document.hides(document.mark(path)):
            message, hint = f"{fault.bare}, and is not shown because it is secret", None
        return document.at(document.mark_in_value(path, fault.offset), message, hint=hint)
    value = problem["input"]
    if document.hides(document.mark(path)):
        message, hint = _worded(kind, {}, value if isinstance(value, dict | list) else _STARS, path)
        hint = _bare_key(value)[1] if isinstance(value, str) and glued_name(value) else hint
    else:
        message, hint = _worded(kind, problem.get("ctx") or {}, value, path)
    return document.diagnostic(path, message, hint=hint, key=loc[-1:] == ("[key]",))


def _bare_key(key: str) -> tuple[str, str]:
    """Message and hint for a key that has a secret in it: `HF_TOKEN:VALUE`."""
    name = glued_name(key)
    write = f"write '{name}: ...', with a space after the colon" if name else "letters, digits and '_' only"
    return "this cannot name an environment variable, and is not shown because it may be secret", write


def _unknown_key(path: Path, model: type[BaseModel], document: Document, below: Path) -> Diagnostic:
    known = fields_at(model, path[len(below) : -1]) or {}
    where = _where(path[:-1])
    hint = did_you_mean(str(path[-1]), known)
    if hint is None:
        elsewhere = " or ".join(homes(model, str(path[-1])))
        of = f"{path[-1]} is a key of {elsewhere}; " if elsewhere else ""
        hint = f"{of}the keys {where or 'here'} are {', '.join(known)}"
    return document.diagnostic(
        path, f"unknown key {shown(without_value(str(path[-1])))}{' ' + where if where else ''}", hint=hint, key=True
    )


def _unknown_word(path: Path, model: type[BaseModel], document: Document, below: Path) -> Diagnostic:
    word, known = str(document.get(path)), fields_at(model, path[len(below) :]) or {}
    hint = did_you_mean(word, known) or f"there are {', '.join(known)}"
    return document.diagnostic(path, f"unknown word {shown(word)} {_where(path)}".rstrip(), hint=hint)


def _missing(key: str, parent: Path, document: Document, below: Path) -> Diagnostic:
    where = _where(parent)
    hint = "write 'nsw: 1', the version of the format" if key == "nsw" and parent == below else None
    if key == "unit":
        hint = "such as unit: images/s; a number without one has unit: ''"
    return document.diagnostic(parent, f"the key '{key}' is missing{' ' + where if where else ''}", hint=hint, key=True)


def _where(path: Path) -> str:
    words = [without_value(part) for part in path if isinstance(part, str)]
    return f"in {shown('.'.join(words))[1:-1]}" if words else ""


def _worded(kind: str, context: Mapping[str, Any], value: object, path: Path) -> tuple[str, str | None]:
    """Message and hint for what pydantic found itself."""
    quote = 'quote an expression: "{{ ... }}"' if isinstance(value, dict) else None
    if kind in {"model_type", "dict_type", "model_attributes_type"}:
        return f"expected a map (key: value), found {shown(value)}", "indent its keys below it"
    if kind == "list_type" and path == ("passes",):
        return f"expected a list, found {shown(value)}", "such as '- baseline: {}', a line a pass"
    if kind == "list_type":
        return f"expected a list, found {shown(value)}", f"such as [{_in_a_list(value)}]" if isinstance(
            value, str | int
        ) and len(str(value)) < 40 else None
    if kind == "too_short":
        return "the list is empty", None
    if kind == "literal_error":
        return _literal(str(context.get("expected", "")), value, path)
    if kind.startswith("string"):
        return f"expected text, found {shown(value)}", quote or "quote it"
    expected = _EXPECTED.get(kind.split("_", maxsplit=1)[0])
    return (f"expected {expected}, found {shown(value)}" if expected else f"{shown(value)} is not allowed here"), quote


def _in_a_list(value: str | int) -> str:
    """How a value is written between the brackets of a list, where YAML gives some signs a meaning."""
    text = str(value)
    if not isinstance(value, str) or not re.search(r"""[][{}#:&*!|>'"%@`]""", text):
        return text
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _literal(expected: str, value: object, path: Path) -> tuple[str, str | None]:
    if path == ("nsw",):
        return (
            f"this nsw reads version {expected}; found {shown(value)}",
            f"write 'nsw: {expected}', or install a newer nsw",
        )
    words = re.findall(r"'([^']*)'", expected) or [expected]
    choices = ", ".join(words)
    return f"expected one of {choices}; found {shown(value)}", did_you_mean(value, words) if isinstance(
        value, str
    ) else None
