"""Where the files of a campaign came from, and which of them have changed there since it began.

A campaign runs the copies that it made. Who mends the program and retries must hear that the old one is run.
"""

from __future__ import annotations

import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from nsw.campaign.ledger_rows import ORIGINS
from nsw.campaign.recipe_lock import files_in, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.campaign.ledger import Ledger

_SHOWN = 3  # names in a message
_MADE = frozenset({"__pycache__", ".git"})  # what comes into being by itself


def origins(files: Iterable[tuple[str, str]], recipe: Path | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is written down when a campaign begins: its recipe, and the files of its application, with their hashes.

    Args:
        files: The application's files: where they are, their name beside the program.
        recipe: The recipe's file, if there is one.
    """
    sources = [*([recipe] if recipe else []), *(Path(source) for source, _ in files)]
    return [(str(source.absolute()), _hashes(source)) for source in sources]


def changed(ledger: Ledger) -> list[str]:
    """The files that are not as they were; what is no longer there, or cannot be read, cannot mislead anyone."""
    found: list[str] = []
    for source, before in ledger.meta(ORIGINS):
        try:
            now = dict(_hashes(Path(source)))
        except OSError:
            continue
        if now:
            found += (_shown(Path(source) / name) for name in _differing(dict(before), now))
    return found


def warning(ledger: Ledger) -> str | None:
    """What a person must know before the campaign goes on; None where nothing has changed."""
    names = changed(ledger)
    if not names:
        return None
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(ledger.created()))
    more = len(names) - _SHOWN
    which = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    copies = f"its copy of {began} is" if len(names) == 1 else f"their copies of {began} are"
    told = f"{which} {'has' if len(names) == 1 else 'have'} changed since this campaign began: {copies} used here"
    recipe = _recipe(ledger)
    program = [name for name in names if name != recipe]
    if program:
        new = "the new one" if len(program) == 1 else "the new ones"
        told += f"; `nsw retry --update-app` takes {new}" + (" of the program" if recipe in names else "")
    if recipe in names:
        told += f"; `nsw run {quote(recipe)} --into CAMPAIGN` repeats what the new recipe changes"
    return f"{told}, and so does a new `nsw run`" if recipe not in names else told


def _recipe(ledger: Ledger) -> str:
    """The recipe's file as a person would name it, which is the first of what a campaign came from."""
    first = Path(next((source for source, _ in ledger.meta(ORIGINS)), ""))
    return _shown(first) if first.suffix in {".yaml", ".yml"} else ""


def _hashes(source: Path) -> list[tuple[str, str]]:
    """Every file of it with its hash; the name of a file that is no folder is empty."""
    return [(name, hash_of(file)) for file, name in files_in(source, "") if not _MADE.intersection(file.parts)]


def _differing(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    return (name for name in sorted({*before, *now}) if before.get(name) != now.get(name))


def _shown(path: Path) -> str:
    """The path as a person in the present folder would name it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
