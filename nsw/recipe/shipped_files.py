"""Files of shipped recipes: a recipe that was copied without its folder `apps` finds them in nsw itself."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.errors import Diagnostic
    from nsw.recipe.document import Document

_FOLDER = "apps"


def source(folder: Path, name: str) -> Path:
    """The path of a file of `app.files`: beside the recipe, else the one that nsw ships; it need not exist."""
    beside = folder / name
    try:
        if beside.exists():
            return beside
        shipped = _shipped(name)
    except (OSError, ValueError):
        return beside
    return shipped or beside


def taken_from_nsw(document: Document, folder: Path, files: Sequence[str]) -> Iterator[Diagnostic]:
    """A warning at each file that is not beside the recipe and that nsw ships."""
    for number, name in enumerate(files):
        if (found := source(folder, name)) != folder / name:
            hint = f"copy {found} here to change it; `nsw init --from RECIPE` copies a recipe with its files"
            message = f"{name} is not beside the recipe: the one that nsw ships is used"
            yield document.diagnostic(("app", "files", number), message, hint=hint)


def _shipped(name: str) -> Path | None:
    from nsw.resources import recipes_folder

    parts = PurePosixPath(name).parts
    if parts[:1] != (_FOLDER,) or ".." in parts:
        return None
    path = recipes_folder().joinpath(*parts)
    return path if path.exists() else None
