"""Reports of any profiler from Python: `nsw.read("report.sqlite").tables.gpu_summary` is a pandas frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsw.analysis.blocks import Note
from nsw.analysis.first_screen import HEADLINE
from nsw.apart import Limits
from nsw.api.frames import Tables, frame_of
from nsw.api.recipe_options import Files, Names, files
from nsw.errors import UsageError, did_you_mean
from nsw.tables.schema import TABLES, TRACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from nsw.readers.model import Options, Report

_PROBLEM = ("report", "line", "severity", "message", "fix")


class ReportTables(Tables):
    """The tables of several reports, with the report of each row in column `report`.

    A trace that was not asked for by name is read from the files when it is used.
    """

    def __init__(self, reports: Sequence[Report], options: Options) -> None:
        self._reports = reports
        self._options = options
        self._traces: dict[str, pd.DataFrame] = {}

    def _frame(self, name: str) -> pd.DataFrame:
        requested = self._options.tables
        if name not in TRACES or requested is not None or any(name in r.tables for r in self._reports):
            return self._made_of(name, self._reports)
        if name not in self._traces:
            self._traces[name] = self._made_of(name, list(self._read_again(name)))
        return self._traces[name]

    def _read_again(self, name: str) -> Iterator[Report]:
        from dataclasses import replace

        from nsw.readers.read_many import read_many

        trace_options = replace(self._options, tables=frozenset({name}))
        return read_many([Path(r.path) for r in self._reports if r.tool is not None], trace_options)

    def _made_of(self, name: str, reports: Sequence[Report]) -> pd.DataFrame:
        from nsw.tables import rows

        table_rows = [
            row | {"report": r.path} for r in reports if name in r.tables for row in rows(name, r.tables[name])
        ]
        return frame_of(table_rows, TABLES[name].names)

    def _names(self) -> list[str]:
        present = {name for r in self._reports for name, data in r.tables.items() if len(data)}
        return sorted(present | (TRACES if self._options.tables is None and present else set()))


class Reports:
    """Files that were read.

    Attributes:
        tables: Their tables as pandas frames.
    """

    def __init__(self, reports: Sequence[Report], options: Options) -> None:
        self._reports = list(reports)
        self.tables = ReportTables(self._reports, options)

    def __repr__(self) -> str:
        from nsw.wording import plural

        bad = sum(any(p.severity == "error" for p in r.problems) for r in self._reports)
        broken = f", {bad} with errors" if bad else ""
        return f"<{plural(len(self._reports), 'report')}{broken}; tables: {', '.join(self.tables) or 'none'}>"

    def _repr_html_(self) -> str:
        """In a notebook: the headline, the table, the findings and the plots."""
        from nsw.analysis.answer.registry import blocks_of
        from nsw.analysis.kernels import of_report
        from nsw.analysis.of_reports import ReadReport, summary_of_reports
        from nsw.present.notebook import html_of
        from nsw.wording import plural

        names = [Path(report.path).name for report in self._reports]
        read = [
            ReadReport(name if names.count(name) == 1 else r.path, r.tables, of_report(r.tables), r.failed)
            for name, r in zip(names, self._reports, strict=True)
            if r.tables
        ]
        if not read:
            return html_of([Note(HEADLINE, repr(self))])
        name = read[0].name if len(read) == 1 else plural(len(read), "report")
        return html_of(blocks_of(summary_of_reports(name, read)))

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with any of them but warnings."""
        return not any(p.severity == "error" for r in self._reports for p in r.problems)

    @property
    def files(self) -> pd.DataFrame:
        """One row a file: report (its path), tool, format, tool_version."""
        columns = ("report", "tool", "format", "tool_version")
        rows = [{"report": r.path, "tool": r.tool, "format": r.format, "tool_version": r.tool_version}
                for r in self._reports]  # fmt: skip
        return frame_of(rows, columns)

    @property
    def problems(self) -> pd.DataFrame:
        """One row a problem: report, line (of a text file), severity (error or warning), message, fix."""
        rows = [
            {"report": r.path, "line": p.line, "severity": p.severity, "message": p.message, "fix": p.fix}
            for r in self._reports for p in r.problems
        ]  # fmt: skip
        return frame_of(rows, _PROBLEM)


def read(
    paths: Files,
    *,
    tables: Names | None = None,
    steps: str | None = None,
    max_unpacked: int | None = None,
    max_memory: int | None = None,
    max_time: float | None = None,
) -> Reports:
    """Read reports of any profiler. A file that cannot be read is a row of `problems`, never an exception.

    Files of 8 MB together are read in this process, others in processes with limits.

    Args:
        paths: A file or several; of a folder that is no report itself, all reports below it.
        tables: Only these tables; by default all but the traces, which are read when they are used.
        steps: The NVTX range that marks an iteration of the program.
        max_unpacked: How many bytes a packed file may unpack to.
        max_memory: How many bytes of memory such a process may take.
        max_time: How many seconds of processor time it may take for each file.

    Raises:
        UsageError: There is no such table.
    """
    from nsw.readers.model import Options
    from nsw.readers.read_many import read_many
    from nsw.readers.report_search import ReportSearch

    names = None if tables is None else [tables] if isinstance(tables, str) else list(tables)
    for name in names or ():
        if name not in TABLES:
            raise UsageError(
                f"there is no table {name}", hint=did_you_mean(name, TABLES) or f"tables: {', '.join(TABLES)}"
            )
    limits = Limits(max_memory, max_time)
    options = Options(frozenset(names) if names else None, max_unpacked=max_unpacked, steps=steps, limits=limits)
    search = ReportSearch()
    report_files = list(search.files(files(paths) or []))
    return Reports(list(search.recognised(read_many(report_files, options))), options)
