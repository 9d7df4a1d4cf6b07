"""Tables of many reports into CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from nsw.present.emit import write_csv
from nsw.present.table_files import TableFiles
from nsw.tables import TABLES, rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.tables import TableData


class Files(TableFiles):
    """One CSV file a table, with the schema's columns."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__(paths)
        self._streams: dict[str, TextIO] = {}

    def _write(self, name: str, data: TableData, report: str) -> None:
        new = name not in self._streams
        if new:
            stream = open(self._new_part(name), "w", encoding="utf-8", newline="")  # noqa: PTH123, SIM115  a descriptor
            self._open[name] = self._streams[name] = stream
        found = (row | {"report": report} for row in rows(name, data))
        write_csv(self._streams[name], found, TABLES[name].names, head=new)
