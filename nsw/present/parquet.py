"""Tables of many reports into Parquet files, one a table, as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from nsw.errors import NswError
from nsw.tables import TableData, as_arrow, count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Files:
    """One file a table, with the schema's columns, types, units and meanings.

    A file comes into being with the first row of its table, under another name until all is written: what was
    there before stays whole if something fails.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths
        self._writers: dict[str, Any] = {}
        self.written: dict[str, int] = {}  # rows by table

    def add(self, name: str, data: TableData, report: str) -> None:
        """The rows of one report.

        Raises:
            NswError: The file cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not count(data):
            return
        table = as_arrow(name, data)
        at = table.schema.get_field_index("report")
        table = table.set_column(at, table.schema.field(at), pa.array([report], pa.string()).take(_zeros(len(table))))
        try:
            if name not in self._writers:
                self._writers[name] = pq.ParquetWriter(self._part(name), table.schema, compression="zstd")
            self._writers[name].write_table(table)
        except OSError as fault:
            raise NswError(f"{self._paths[name]} cannot be written: {fault.strerror or fault}") from None
        self.written[name] = self.written.get(name, 0) + len(table)

    def _part(self, name: str) -> Path:
        path = self._paths[name]
        return path.with_name(f".{path.name}.part")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for name, writer in self._writers.items():
            writer.close()
            if kind is None:
                self._part(name).replace(self._paths[name])
            else:
                self._part(name).unlink(missing_ok=True)


def _zeros(length: int) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.array(np.zeros(length, np.int32))
