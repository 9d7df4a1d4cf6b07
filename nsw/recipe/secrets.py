"""Environment variables whose values are secret: which ones, how a file gives them, how they are written down.

A value is secret when the variable's name looks like it, when it holds a URL with a password, or when it is marked
`{secret: VALUE}`. nsw hands it to the job in a file that only its owner can read; in everything else that nsw writes,
`{secret: {from_env: NAME}}` stands for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, PlainSerializer

from nsw.recipe.faults import Fault, within
from nsw.recipe.fields import Parsed, Variable, template, text, variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_PARTS = frozenset(
    [
        "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL",
        "CREDENTIALS", "CREDS", "APIKEY", "JWT", "PAT", "PGPASS", "COOKIE", "BEARER",
    ]
)  # fmt: skip
_PARTS_BEFORE_KEY = frozenset(
    [
        "API",
        "ACCESS",
        "AUTH",
        "PRIVATE",
        "ENCRYPTION",
        "SIGNING",
        "DEPLOY",
        "CLI",
        "WANDB",
        "STORAGE",
        "SERVICE",
        "MASTER",
    ]
)
_SECRET_ENDS = frozenset(["PASS", "PWD", "AUTH"])  # of a name of several parts: DB_PASS, but neither PASS nor PWD
# scheme://USER:PASSWORD@host; and https://TOKEN@host: an account's name is shorter than any of their tokens. No part of
# it can hold a slash, so that each character is looked at a few times at most
_PASSWORD = re.compile(r"(?:://[^\s/?#@:]*:|\bhttps?://(?=[^\s/?#@:]{20,}@))(?P<password>[^\s/?#@]++)(?=@)")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_GLUED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::(?!//)|=)\S")


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that its value is secret: by its parts, so that KEYBOARD and MAX_TOKENS do not."""
    parts = [part.upper() for part in _PART.findall(name)]
    if not _SECRET_PARTS.isdisjoint(parts) or (len(parts) > 1 and parts[-1] in _SECRET_ENDS):
        return True
    return any(after == "KEY" and before in _PARTS_BEFORE_KEY for before, after in pairwise(parts))


def holds_password(value: str) -> bool:
    """Whether a value is or contains a URL with a password or a token: `postgres://me:pass@host`, `https://ghp_...@host`."""
    return next(passwords(value), None) is not None


def glued_name(text: str) -> str | None:
    """NAME of `NAME:VALUE`, which is one word to YAML, and of `NAME=VALUE`, as a shell has it."""
    glued = _GLUED.match(text)
    return glued[1] if glued else None


def without_value(key: str) -> str:
    """A key as a message may name it: `HF_TOKEN` of `HF_TOKEN:VALUE`."""
    name = glued_name(key)
    return name if name and looks_secret(name) else key


def passwords(text: str) -> Iterator[tuple[int, int]]:
    """Where passwords in URLs are, also those that are expressions, with whatever these hold."""
    yield from (match.span("password") for match in _PASSWORD.finditer(text))
    end = text.rfind("}}") + 2  # what is opened behind it is never closed
    if end > 1:
        plain = _EXPRESSION.sub(lambda match: "x" * len(match[0]), text[:end]) + text[end:]
        yield from (match.span("password") for match in _PASSWORD.finditer(plain))


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
    """The values, those secret by their variable's name or by a password in them marked as such."""
    return {name: _marked(name, value) for name, value in values.items()}


def _marked(name: str, value: str | Secret) -> str | Secret:
    if isinstance(value, Secret):
        return value
    if isinstance(value, _Plain):
        return str(value)
    return Secret(value) if _looks_secret(name, value) else value


def _looks_secret(name: str, value: str) -> bool:
    return looks_secret(name) or holds_password(value)


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
