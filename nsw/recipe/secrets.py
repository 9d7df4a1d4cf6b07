"""Environment variables whose values are secret: which ones, how a file gives them, how they are written down.

A value is secret when the variable's name looks like it, when it has a secret in it (a URL with a password), or when it
is marked `{secret: VALUE}`. nsw hands it to the job in a file that only its owner can read; in everything else that nsw
writes, `{secret: {from_env: NAME}}` stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, PlainSerializer

from nsw.recipe.faults import Fault, within
from nsw.recipe.fields import Parsed, Variable, template, text, variable
from nsw.recipe.secret_names import holds_secret, looks_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Environment", "EnvironmentTemplates", "Secret"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is shown nowhere: the text itself, or the variable of nsw's own environment that holds it."""

    value: str = field(default="", repr=False)
    from_env: str | None = None


class _Plain(str):  # noqa: SLOT000  a text with a mark, gone once the map is read
    """A text that is no secret, whatever its variable is called."""


def _value(parse: Callable[[object], str], value: object) -> str | Secret:
    if not isinstance(value, dict) or not {"secret", "plain"}.intersection(value):
        return parse(value)
    if len(value) > 1:
        raise Fault("a variable has one value, in a map with one key: 'secret' or 'plain'")
    if "plain" in value:
        return _Plain(within("plain", parse, value["plain"]))
    inner = value["secret"]
    if not isinstance(inner, dict):
        return Secret(within("secret", parse, inner))
    if list(inner) != ["from_env"]:
        raise Fault("expected text or {from_env: NAME}, found a map", hint="such as {secret: {from_env: HF_TOKEN}}")
    return Secret(from_env=within("secret", partial(within, "from_env", _source), inner["from_env"]))


def _source(value: object) -> str:
    """The name of the variable that holds a secret; what is none may be the secret itself, put there by mistake."""
    try:
        return variable(value)
    except Fault as fault:
        raise Fault(
            "from_env takes the name of an environment variable, and this is none",
            hint="write {secret: VALUE} for the value itself" if isinstance(value, str) else fault.hint,
        ) from None


def _by_name(values: dict[str, str | Secret]) -> dict[str, str | Secret]:
    """The values, those secret by their variable's name or by what is in them marked as such."""
    return {name: _marked(name, value) for name, value in values.items()}


def _marked(name: str, value: str | Secret) -> str | Secret:
    if isinstance(value, Secret):
        return value
    if isinstance(value, _Plain):
        return str(value)
    return Secret(value) if _looks_secret(name, value) else value


def _looks_secret(name: str, value: str) -> bool:
    return looks_secret(name) or holds_secret(value)


def _written(values: Mapping[str, str | Secret]) -> dict[str, Any]:
    """As data that gives the same variables when read, where nsw's own environment then holds the secret ones."""
    return {name: _as_data(name, value) for name, value in values.items()}


def _as_data(name: str, value: str | Secret) -> Any:
    if isinstance(value, Secret):
        return {"secret": {"from_env": value.from_env or name}}
    return {"plain": value} if _looks_secret(name, value) else value


_TEXT = {"type": ["string", "number"]}
_FROM_ENV = {
    "type": "object",
    "properties": {
        "from_env": {
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
            "description": "The variable of nsw's own environment that holds the value when a campaign begins.",
        }
    },
    "required": ["from_env"],
    "additionalProperties": False,
}
_MAP = {
    "type": "object",
    "properties": {
        "secret": {
            "anyOf": [_TEXT, _FROM_ENV],
            "description": "The value, which nsw writes to a file that only you can read, or {from_env: NAME}.",
        },
        "plain": _TEXT
        | {"description": "A value that is not secret although the variable's name looks so, as HF_TOKEN does."},
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_SCHEMA = {"anyOf": [_TEXT, _MAP]}
_BY_NAME, _AS_DATA = AfterValidator(_by_name), PlainSerializer(_written)

Environment = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_value, text), _SCHEMA)]], _BY_NAME, _AS_DATA
]
EnvironmentTemplates = Annotated[
    dict[Variable, Annotated[str | Secret, Parsed(partial(_value, template), _SCHEMA)]], _BY_NAME, _AS_DATA
]
