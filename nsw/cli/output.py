"""Where what a command says goes: data to stdout, or the file or folder of --output; sentences to stderr."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError, UsageError, writing_to
from nsw.present.terminal import console
from nsw.present.untrusted_text import print_untrusted
from nsw.quantities import size
from nsw.safe_files import open_output
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsw.engine.events import Message
    from nsw.engine.folder import CampaignFolder

_OF_ROWS: Final = frozenset({"csv", "parquet"})  # a file of these holds one table
_OF_PLOT: Final = frozenset({"svg", "png"})
_ENDINGS: Final = {".md": "markdown", ".xml": "junit"}
_TEXT: Final = ("", ".txt", ".log")  # endings of what a terminal would show


class Folder(type(Path())):  # type: ignore[misc]  # the class of this system's paths
    """A path that was written with a slash at its end."""


def output_path(text: str) -> Path:
    """The path; a `Folder` where it ends in a slash.

    Raises:
        UsageError: It is `-`, which would be a file of that name.
    """
    if text == "-":
        raise UsageError("-o - names no file", hint="leave -o away to print, with --format for what; ./- is a file")
    return Folder(text) if text.endswith("/") else Path(text)


@dataclass(frozen=True, slots=True)
class Target:
    """The format of a command's data, and the file or folder for it; None: standard output."""

    format: str
    output: Path | None = None

    @property
    def is_of_rows(self) -> bool:
        """Whether a file of the format holds one table and nothing else."""
        return self.format in _OF_ROWS

    @property
    def is_of_plot(self) -> bool:
        """Whether a file of the format holds one plot and nothing else."""
        return self.format in _OF_PLOT

    @property
    def is_folder(self) -> bool:
        """Whether --output names a folder: one that is there, one with a slash at its end, or a name without ending."""
        return self.output is not None and (_is_folder(self.output) or not self.output.suffix)

    def folder(self) -> Path:
        """The folder, made if need be.

        Raises:
            NswError: It cannot be made.
        """
        folder = Path(self.output or "")  # files in it are no folders
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise NswError(f"{self.output} cannot be made: {fault.strerror or fault}") from None
        return folder

    def of_table(self, name: str) -> Target:
        """Where one table goes: a file in the folder, else as given."""
        if not self.is_folder:
            return self
        file = self.folder() / f"{name}.{self.format}"
        if file.is_symlink():  # which somebody else may have put there: the link goes, not its file
            file.unlink()
        return Target(self.format, file)

    @contextmanager
    def stdout_to_output(self) -> Iterator[None]:
        """What is printed goes to the file, where one is named, and its size is printed; Parquet writes its own.

        Raises:
            NswError: The file cannot be written.
        """
        with self._stdout_to_file():
            yield
        self._say_size()

    def _say_size(self) -> None:
        """Print how large the file is that was written."""
        if self.output is not None and self.output.is_file():
            print_untrusted(f"{self.output}: {size(self.output.stat().st_size)}")

    @contextmanager
    def _stdout_to_file(self) -> Iterator[None]:
        if self.output is None or self.format == "parquet":
            yield
            return
        if isinstance(self.output, Folder):
            raise UsageError(
                f"--output {self.output}/ is a folder, but what is to be written is one file",
                hint="name a file; `nsw summarize` and `nsw read` fill a folder with CSV or Parquet, a file a table",
            )
        with writing_to(self.output):
            file = os.fdopen(open_output(self.output), "w", encoding="utf-8", newline="")
        with file, redirect_stdout(file):
            yield

    def check_plot(self, name: str | None) -> None:
        """Refuse the name of a plot where no plot is written.

        Raises:
            UsageError: It is so.
        """
        if name is not None and not self.is_of_plot:
            raise UsageError("--plot needs a file for the plot", hint=f"--plot {name} -o {name}.svg")

    def put_plot(self, svg: str) -> None:
        """A plot as SVG or PNG.

        Raises:
            UsageError: A PNG would go to the terminal.
            NswError: It cannot be drawn or written.
        """
        if self.format == "svg":
            with self.stdout_to_output():
                sys.stdout.write(svg + "\n")
            return
        from nsw.present.plots import png_of

        if self.output is None:
            raise UsageError("a PNG is no text for a terminal", hint="name a file: -o plot.png")
        data = png_of(svg)
        with writing_to(self.output), os.fdopen(open_output(self.output), "wb") as file:
            file.write(data)
        self._say_size()

    def put_rows(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], note: str | None = None) -> None:
        """Write rows as CSV or as a Parquet file, and print how many are in a file.

        Args:
            rows: The rows.
            columns: Their columns, in order.
            note: What a reader must know of them; only Parquet stores it.

        Raises:
            UsageError: Parquet has no file to go to.
            NswError: The file cannot be written.
        """
        from nsw.present import emit

        count = 0

        def count_rows() -> Iterator[Mapping[str, Any]]:
            nonlocal count
            for count, row in enumerate(rows, 1):  # noqa: B007  # read below
                yield row

        if self.format == "csv":
            with self._stdout_to_file():
                emit.as_csv(count_rows(), columns)
        else:
            emit.as_parquet(list(count_rows()), columns, self.output, note)
        if self.output is not None:
            print_untrusted(f"{self.output}: {plural(count, 'row')}")

    def put_data(
        self,
        rows: Iterable[Mapping[str, Any]],
        columns: Sequence[str],
        *,
        data: Callable[[], Mapping[str, Any]],
        show: Callable[[], object],
        note: str | None = None,
    ) -> None:
        """Write the rows as CSV or Parquet, the data as JSON, or print what `show` prints for a person.

        Args:
            rows: The rows.
            columns: Their columns, in order.
            data: Makes the JSON object, called for that format alone.
            show: Prints for a person.
            note: What a reader must know of the rows; only Parquet stores it.

        Raises:
            UsageError: Parquet has no file to go to.
            NswError: The file cannot be written.
        """
        if self.is_of_rows:
            self.put_rows(rows, columns, note)
            return
        with self.stdout_to_output():
            if self.format == "json":
                from nsw.present import emit

                emit.as_json(data())
            else:
                show()


def format_by_ending(output: Path, formats: Sequence[str]) -> str | None:
    """The format that the name of a file to write has, CSV in a folder; None: what a terminal shows.

    Raises:
        UsageError: The file's ending names none of the known formats.
    """
    ending = output.suffix.lower()
    if (named := _ENDINGS.get(ending)) in formats:
        return named
    if _is_folder(output):
        return "csv"  # a file a table
    if ending in _TEXT:
        return None
    if ending[1:] in formats:
        return ending[1:]
    by_format = {name: ending for ending, name in _ENDINGS.items()}
    endings = ", ".join(by_format.get(f, f".{f}") for f in formats if f != "table")
    raise UsageError(
        f"--output {output}: there is no format {ending}",
        hint=f"known endings: {endings}, and .txt for what a terminal shows; with any other name, give --format",
    )


def _is_folder(output: Path) -> bool:
    return isinstance(output, Folder) or output.is_dir()


def several_tables_error(format: str, names: Iterable[str]) -> UsageError:
    """The error where one file is to hold several tables."""
    listed = ", ".join(names)
    listing = f"here are {listed}" if listed else "there is none"
    return UsageError(
        f"a {format} file holds one table, but {listing}",
        hint="name one with --table, or a folder with --output: a file a table",
    )


def print_on_stderr(text: str) -> None:
    """Print a sentence on stderr: a terminal breaks it between words, with commands as the user types them."""
    console(sys.stderr).print(text)


def print_newest(folder: CampaignFolder) -> None:
    """Print which campaign an answer is of where none was named, and there are several."""
    from nsw.engine.folder import existing

    if len(existing(folder.path.parent)) > 1:
        print_on_stderr(f"the newest campaign: {folder.id}")


def show_message(message: Message) -> None:
    """Print a message of the campaign on stderr, where nothing live is drawn."""
    if message.level == "info":
        print_on_stderr(message.text)
    else:
        warn(message.text, message.level)


def warn(text: str, level: str = "warning") -> None:
    """Print a warning on stderr."""
    console(sys.stderr).print(f"{level}: {text}", style="yellow" if level == "warning" else "red")
