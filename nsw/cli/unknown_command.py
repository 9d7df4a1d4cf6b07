"""What `nsw WORD` says of a command that does not exist: the one that was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

_SAME: Final = {
    "submit": "run", "start": "run", "check": "plan", "validate": "plan", "list": "ls", "show": "status",
    "stop": "cancel", "kill": "cancel", "continue": "resume", "rerun": "retry", "help": "--help",
    "report": "summarize", "query": "summarize --table NAME", "export": "summarize --output FOLDER/",
}  # fmt: skip
_ELSEWHERE: Final = {
    "compare": "a recipe compares the values of a parameter: `report: {compare: {parameter: NAME}}`; "
    "`nsw summarize` prints the comparison",
}


def unknown(word: str, known: Collection[str]) -> UsageError:
    """The error for an unknown command, with the nearest known one."""
    meant = f"did you mean 'nsw {_SAME[word]}'?" if word in _SAME else _ELSEWHERE.get(word) or did_you_mean(word, known)
    return UsageError(f"there is no command {word!r}", hint=meant or "`nsw --help` lists the commands")
