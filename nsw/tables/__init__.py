"""Tables: one schema for every profiler. A base layer that any step may import."""

from nsw.tables.parquet_tables import Row, TableData, full_rows, row_count, to_arrow
from nsw.tables.schema import TABLES, TRACES, Column, Table

__all__ = ["TABLES", "TRACES", "Column", "Row", "Table", "TableData", "full_rows", "row_count", "to_arrow"]
