"""Names that say that a value is secret, and URLs that hold a password."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
