"""A bound on the text that a plan makes: a short recipe can multiply long commands by many cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.errors import Diagnostic
    from nsw.plan.model import Run
    from nsw.recipe.load import LoadedRecipe

MOST_TEXT: Final = 256 << 20  # characters of all commands and variables, and of the set-up of all jobs


class TextSize:
    """Counts the characters that runs bring into scripts and the ledger, case by case, before those are written."""

    def __init__(self, loaded: LoadedRecipe) -> None:
        self._loaded = loaded
        self._runs = self._commands = self._variables = self._params = 0

    def add(self, runs: Iterable[Run]) -> Diagnostic | None:
        """The fault of the recipe once there is too much text; else None."""
        for run in runs:
            self._runs += 1
            self._commands += _length(run.command) + sum(map(_length, run.after)) + _length(run.resources.extra)
            self._variables += _length((*run.env, *run.env.values()))
            self._params += sum(len(value) for value in run.params.values() if isinstance(value, str))
        if self._commands + self._variables + self._params <= MOST_TEXT:
            return None
        most, path = max(
            (self._commands, ("app", "command")), (self._variables, ("app", "env")), (self._params, ("matrix",))
        )
        message = (
            f"the commands, variables and parameters of the first {self._runs:,} runs alone have more than"
            f" {MOST_TEXT >> 20} Mi characters"
        )
        return self._loaded.document.diagnostic(path, message, hint=f"{_SHORTER}; these are {most:,} of them")


def setup_fault(loaded: LoadedRecipe, setup: Iterable[str], jobs: int) -> Diagnostic | None:
    """The fault of a set-up that is too long for the number of jobs in whose scripts it is repeated; else None."""
    if _length(setup) * jobs <= MOST_TEXT:
        return None
    message = f"the set-up in the scripts of {jobs:,} jobs has more than {MOST_TEXT >> 20} Mi characters"
    return loaded.document.diagnostic(("app", "setup"), message, hint=_SHORTER)


_SHORTER: Final = "put long text in a file of app.files, or choose fewer cases"


def _length(texts: Iterable[str]) -> int:
    return sum(map(len, texts))
