"""Tables of many reports into Parquet files."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from nsw.present.table_files import TableFiles
from nsw.tables import as_arrow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.tables import TableData

_ROWS: Final = 3 << 14  # a row group, whose repeated texts are written out in memory; smaller ones make larger files


class Files(TableFiles):
    """One Parquet file a table, with the schema's columns, types, units and meanings."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__(paths)
        self._writers: dict[str, Any] = {}

    def _write(self, name: str, data: TableData, report: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for begin in range(0, len(data), _ROWS):
            some = data[begin : begin + _ROWS] if isinstance(data, list) else data.slice(begin, _ROWS)
            table = as_arrow(name, some)
            at = table.schema.get_field_index("report")
            table = table.set_column(
                at, table.schema.field(at), pa.array([report], pa.string()).take(_zeros(len(table)))
            )
            if name not in self._writers:
                opened = self._open[name] = ExitStack()
                file = opened.enter_context(open(self._new_part(name), "wb"))  # noqa: PTH123, SIM115
                writer = pq.ParquetWriter(file, table.schema, compression="zstd")
                self._writers[name] = opened.enter_context(writer)
            self._writers[name].write_table(table)


def _zeros(length: int) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.array(np.zeros(length, np.int32))
