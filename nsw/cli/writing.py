"""Where a command's data goes: standard output, the file of --output, or a file a table in its folder."""

from __future__ import annotations

from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.cli.output import Folder
from nsw.errors import NswError, UsageError
from nsw.present import emit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

OF_ROWS = frozenset({"csv", "parquet"})  # a file of these holds one table


@contextmanager
def printed(format: str, output: Path | None) -> Iterator[None]:
    """What is printed goes to the file, where one is named; Parquet writes its own.

    Raises:
        NswError: The file cannot be written.
    """
    if output is None or format == "parquet":
        yield
        return
    if isinstance(output, Folder):
        raise UsageError(
            f"--output {output}/ is a folder, but what is to be written is one file",
            hint="name a file; `nsw summarize` and `nsw read` fill a folder with CSV or Parquet, a file a table",
        )
    try:
        file = output.open("w", encoding="utf-8", newline="")
    except OSError as fault:
        raise NswError(f"{output} cannot be written: {fault.strerror or fault}") from None
    with file, redirect_stdout(file):
        yield


def put_rows(
    format: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: Path | None, note: str | None = None
) -> None:
    """Rows as CSV, on stdout or in a file, or as a Parquet file, to which the note goes along."""
    if format == "csv":
        with printed(format, output):
            emit.as_csv(rows, columns)
    else:
        emit.as_parquet(list(rows), columns, output, note)


def is_folder(output: Path | None) -> bool:
    """Whether --output names a folder: one that is there, one with a slash at its end, or a name without an ending."""
    return output is not None and (isinstance(output, Folder) or output.is_dir() or not output.suffix)


def made_folder(output: Path) -> Path:
    """The folder, made if need be.

    Raises:
        NswError: It cannot be made.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise NswError(f"{output} cannot be made: {fault.strerror or fault}") from None
    return Path(output)  # files in it are no folders


def several(format: str, names: Iterable[str]) -> UsageError:
    """The error where one file is to hold several tables."""
    listed = ", ".join(names)
    what = f"here are {listed}" if listed else "there is none"
    return UsageError(
        f"a {format} file holds one table, but {what}",
        hint="name one with --table, or a folder with --output: a file a table",
    )
