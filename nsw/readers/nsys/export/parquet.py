"""`nsys export --type parquetdir` and `arrowdir`: a folder with one Parquet or Arrow file a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.model import Options, Report, Sample

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read", "sniff"]

_TABLES: Final = ("StringIds", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME")


def sniff(sample: Sample) -> int:
    """Certain of a folder with the files of at least two tables that only nsys makes."""
    count = max(sum(f"{t}{e}" in sample.entries for t in _TABLES) for e in (".parquet", ".arrow"))
    return 100 if sample.is_folder and count >= 2 else 0


def read(path: Path, options: Options) -> Report:
    """Read the folder; see `nsw.readers.nsys.export.tables` for what comes out."""
    # with pyarrow: this module is loaded to look at other folders too
    from nsw.readers.nsys.export.parquet_source import ParquetSource
    from nsw.readers.nsys.export.tables import fill

    report = Report(str(path), tool="nsys", format="nsys-parquet")
    source = ParquetSource(path)
    for table, fault in source.damaged.items():
        report.error(
            f"{source.file_name(table)} cannot be read: {fault}", fix="export the report again, or copy it again"
        )
    fill(report, source, options)
    return report
