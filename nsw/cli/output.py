"""The value of --output: a file whose ending names the format, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXT: Final = ("", ".txt", ".log", ".md")  # endings of what a terminal would show


class Folder(type(Path())):  # type: ignore[misc]  # the class of this system's paths
    """A path that was written with a slash at its end."""


def output_path(text: str) -> Path:
    """The path; a `Folder` where it ends in a slash."""
    return Folder(text) if text.endswith("/") else Path(text)


def unknown_ending(output: Path, formats: Sequence[str]) -> UsageError | None:
    """What to say of a file whose ending names no format; None where it names one, or where it is a folder."""
    ending = output.suffix.lower()
    if isinstance(output, Folder) or output.is_dir() or ending in _TEXT or ending.removeprefix(".") in formats:
        return None
    there = ", ".join(".md" if f == "markdown" else f".{f}" for f in formats if f != "table")
    return UsageError(
        f"--output {output}: there is no format {ending}",
        hint=f"endings that name a format: {there}; .txt is what a terminal shows; --format says it for any name",
    )
