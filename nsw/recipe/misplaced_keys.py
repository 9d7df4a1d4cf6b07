"""Where a key that is unknown at one place is known: `figures` beside `app` is meant below it."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

_DEEPEST = 6  # keys from the top of a file to any key
_SHOWN = 3


def homes(model: type[BaseModel], key: str) -> list[str]:
    """The paths of the maps that take a key, those nearest to the top of the file; [] where none does.

    A path has `NAME` for a name that the user gives and `[]` for an item of a list: `passes[].counters`.
    """
    level: list[tuple[str, type[BaseModel]]] = [("", model)]
    for _ in range(_DEEPEST):
        if found := [path for path, one in level if path and key in _keys(one)]:
            return found[:_SHOWN]
        level = [
            (f"{path}.{name}{inside}".lstrip("."), inner)
            for path, one in level
            for name, kind in _keys(one).items()
            for inside, inner in _models(kind)
        ]
    return []


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _models(kind: Any) -> list[tuple[str, type[BaseModel]]]:
    """The models in a type, each with what stands between the key and it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [("", kind)]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _models(arguments[0])
    if origin in {Union, UnionType}:
        return [found for one in arguments for found in _models(one)]
    between = {list: "[]", dict: ".NAME"}.get(origin)
    return [(between + inside, inner) for inside, inner in _models(arguments[-1])] if between else []
