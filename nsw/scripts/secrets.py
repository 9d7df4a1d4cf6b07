"""The file that gives a campaign's secret environment variables to its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.scripts.quoting import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.secrets import Secret

_HEAD = """\
# The secret environment variables of this campaign. Its jobs read them here: `. secrets.sh NUMBER` exports a set.
# Nobody but the owner may read this file; nsw removes it when every run is done and complete.
"""


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
        + "".join(f"  export {name}={quote(_text(secret, environment))}\n" for name, secret in one.items())
        for number, one in enumerate(sets, 1)
    ]
    return f"{_HEAD}case $1 in\n" + "  ;;\n".join(cases) + "  ;;\n*) return 1 ;;\nesac\n"


def _text(secret: Secret, environment: Mapping[str, str]) -> str:
    return secret.value if secret.from_env is None else environment[secret.from_env]
