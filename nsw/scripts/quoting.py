"""The one place where values become shell text: nothing that a value holds can break out of its word or its comment."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from nsw.errors import UsageError
from nsw.profilers.model import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.recipe.fields import Secret

# of the file that gives a campaign's secret environment variables to its jobs
_SECRETS_HEAD = """\
# The secret environment variables of this campaign. Its jobs read them here: `. secrets.sh NUMBER` exports a set.
# Nobody but the owner may read this file; nsw removes it when every run is done and complete.
"""


def quote(value: object) -> str:
    """One shell word, whatever the value holds; a variable of the job stays one.

    Raises:
        UsageError: It holds a NUL character.
    """
    text = str(value)
    if isinstance(value, Variable):
        plain = text[2:-1]
        return f'"${plain}"' if plain.isidentifier() else f'"{text}"'
    if "\0" in text:
        raise UsageError(f"a NUL character cannot be passed to a program: {text!r}")
    return shlex.quote(text)


def quote_all(values: Iterable[object]) -> str:
    """Several shell words, separated by spaces."""
    return " ".join(quote(v) for v in values)


def escape_comment(value: object) -> str:
    """Text that is safe behind `#`: on one line, without control characters."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", str(value)).strip()


def secrets_text(sets: Sequence[Mapping[str, Secret]], environment: Mapping[str, str]) -> str:
    """The text of the file; empty where nothing is secret.

    Args:
        sets: The plan's secrets.
        environment: nsw's own environment, which must hold what `from_env` names.
    """
    if not sets:
        return ""
    cases = [
        f"{number})\n"
        + "".join(
            f"  export {name}={quote(_secret_value(secret, environment))}\n" for name, secret in secrets_set.items()
        )
        for number, secrets_set in enumerate(sets, 1)
    ]
    return f"{_SECRETS_HEAD}case $1 in\n" + "  ;;\n".join(cases) + "  ;;\n*) return 1 ;;\nesac\n"


def _secret_value(secret: Secret, environment: Mapping[str, str]) -> str:
    return secret.value if secret.from_env is None else environment[secret.from_env]
