"""The value of --output: a file whose ending names the format, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS: Final = ("table", "json", "csv", "parquet")
_TEXT: Final = ("", ".txt", ".log")  # endings of what a terminal would show


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
        hint=f"known endings: {there}, and .txt for what a terminal shows; with any other name, give --format",
    )


def chosen_format(format: str | None, output: Path | None, known: Sequence[str] = FORMATS) -> str:
    """The format that was asked for; where none was, that of the file to write, CSV in a folder, else a table.

    Raises:
        UsageError: The file's ending names none of the known formats.
    """
    if format is not None:
        return format
    ending = output.suffix.lower().removeprefix(".") if output else ""
    if ending == "md" and "markdown" in known:
        return "markdown"
    if output is not None and (fault := unknown_ending(output, known)) is not None:
        raise fault
    if output is not None and (isinstance(output, Folder) or output.is_dir()):
        return "csv"  # a file a table
    return ending if ending in known else "table"
