"""Tables of many reports into files, one a table, as they come: each whole, or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self

from nsw.errors import NswError
from nsw.safe_files import open_anew
from nsw.tables import count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.tables import TableData


class Closing(Protocol):
    """What writes a file and is closed at the end."""

    def close(self) -> object:
        """All is written."""


class TableFiles(ABC):
    """One file a table.

    A file comes into being with the first row of its table, under another name until all is written: what was
    there before stays whole if something fails.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths
        self._open: dict[str, Closing] = {}
        self.written: dict[str, int] = {}  # rows by table

    def add(self, name: str, data: TableData, report: str) -> None:
        """The rows of one report.

        Raises:
            NswError: The file cannot be written.
        """
        if not count(data):
            return
        try:
            self._write(name, data, report)
        except OSError as fault:
            raise NswError(f"{self._paths[name]} cannot be written: {fault.strerror or fault}") from None
        self.written[name] = self.written.get(name, 0) + count(data)

    @abstractmethod
    def _write(self, name: str, data: TableData, report: str) -> None:
        """Append the rows to the table's file; what writes it is in `_open` from then on."""

    def _part(self, name: str) -> Path:
        path = self._paths[name]
        return path.with_name(f".{path.name}.part")

    def _new_part(self, name: str) -> int:
        """A descriptor of the file's part, which may be written; a link in its place is not followed."""
        return open_anew(self._part(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for name, file in self._open.items():
            file.close()
            if kind is None:
                self._part(name).replace(self._paths[name])
            else:
                self._part(name).unlink(missing_ok=True)
