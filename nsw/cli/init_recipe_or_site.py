"""`nsw init`: a first recipe from a command line or a shipped one, a first site from what a machine answers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.cli import notices
from nsw.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_RECIPE = Path("recipe.yaml")
_OUTPUT = ("-o", "--output")


def _say(text: str) -> None:
    """A sentence on stdout, with commands as the user types them."""
    from nsw.present.terminal import console

    out = console()
    out.print(text)


def from_command(words: Sequence[str], output: Path | None, force: bool) -> int:
    """Write a recipe for a command line.

    Raises:
        UsageError: The file is there already.
    """
    from nsw.campaign.starter_files import write_recipe

    made = write_recipe(words, output or _RECIPE, force=force)
    brings = f"brings {', '.join(made.brings)}" if made.brings else "needs no file: list those it needs in app.files"
    _say(f"{made.path}: {brings}")
    if made.launcher:
        _say(f"launcher: {made.launcher}, which nsw starts: the recipe's command is the program alone")
    if own := next((word for word in words if word.partition("=")[0] in _OUTPUT), None):
        _say(
            f"note: {own} follows --, so it is an option of the command; to name the recipe's file write it before:"
            " `nsw init -o FILE -- COMMAND`"
        )
    for text in made.warnings:
        notices.warn(text)
    if not made.has_gpus:
        _say(f"site {made.site} has no GPU, so the recipe asks for none: set resources.gpus for another site")
    _say(f"next: `nsw plan {made.path}`; the comments in it say what else a recipe can do")
    return Exit.GOOD


def from_shipped(name: str, output: Path | None, force: bool) -> int:
    """Copy a shipped recipe with the files that it names.

    Raises:
        UsageError: There is none of that name, or a file is there already.
    """
    from nsw.campaign.starter_files import copy_shipped

    written = copy_shipped(name, output, force=force)
    for path in written:
        _say(str(path))
    _say(f"next: `nsw plan {written[0]}`")
    return Exit.GOOD


def site(name: str, host: str | None, output: Path | None, force: bool) -> int:
    """Ask this machine or a host what it is, and write a site.

    Raises:
        UsageError: The file has such a site already, or its batch system is none that nsw knows.
        UnreachableError: The host does not answer.
    """
    from nsw.site_check.starter import survey_site

    made = survey_site(name, host, output, force=force)
    try:
        made.write()
    except UsageError:
        _say(made.text.rstrip())  # for a person to put in
        raise
    _say(f"{made.path}: site {name}" + (f", reached by `ssh {host}`" if host else ""))
    for line in made.found:
        _say(f"  found    {line}")
    for line in made.todo:
        _say(f"  fill in  {line}")
    there = "" if output is None else f" --sites {shlex.quote(str(made.path))}"
    _say(f"next: `nsw sites check {name}{there}`, then `nsw plan RECIPE --site {name}{there}`")
    return Exit.GOOD
