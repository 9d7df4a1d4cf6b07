"""Reports of any profiler from Python: `nsw.read("report.sqlite").tables.gpu_summary` is a pandas frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.analysis.blocks import Note
from nsw.analysis.first_screen import HEADLINE
from nsw.apart import Limits
from nsw.api.recipe_options import Files, Names, files
from nsw.errors import UsageError, did_you_mean
from nsw.tables.schema import TABLES, TRACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from nsw.readers.model import Options, Report

_PROBLEM = ("report", "line", "severity", "message", "fix")


class Tables:
    """The tables of nsw.tables.schema as attributes; one that no report filled is an empty frame with its columns."""

    if TYPE_CHECKING:  # for mypy and for editors; a test compares this with the schema
        api_summary: pd.DataFrame
        api_trace: pd.DataFrame
        chosen_launches: pd.DataFrame
        communication: pd.DataFrame
        earlier_figures: pd.DataFrame
        facts: pd.DataFrame
        figures: pd.DataFrame
        functions: pd.DataFrame
        gpu_summary: pd.DataFrame
        gpu_trace: pd.DataFrame
        iteration_trace: pd.DataFrame
        iterations: pd.DataFrame
        launches: pd.DataFrame
        metrics: pd.DataFrame
        nvtx_gpu_summary: pd.DataFrame
        nvtx_summary: pd.DataFrame
        nvtx_trace: pd.DataFrame
        openacc_summary: pd.DataFrame
        openmp_summary: pd.DataFrame
        operators: pd.DataFrame
        osrt_summary: pd.DataFrame
        phase_summary: pd.DataFrame
        phases: pd.DataFrame
        process_gpus: pd.DataFrame
        gaps: pd.DataFrame
        host_copies: pd.DataFrame
        gpu_use: pd.DataFrame
        ranks: pd.DataFrame
        rules: pd.DataFrame
        source_metrics: pd.DataFrame
        um_summary: pd.DataFrame
    else:

        def __getattr__(self, name: str) -> pd.DataFrame:
            if name not in TABLES:
                raise AttributeError(unknown("table", name, TABLES))
            return self._frame(name)

    def __getitem__(self, name: str) -> pd.DataFrame:
        """The table of that name, as the attribute is.

        Raises:
            KeyError: There is no such table.
        """
        if name not in TABLES:
            raise KeyError(unknown("table", name, TABLES))
        return self._frame(name)

    def __iter__(self) -> Any:
        """The names of the tables that hold rows."""
        return iter(self._names())

    def __dir__(self) -> list[str]:
        """The tables that hold rows, and those that can be made."""
        return self._names()

    def _frame(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    def _names(self) -> list[str]:
        raise NotImplementedError


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

        from nsw.readers.detect import read_many

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
        from nsw.present.plots import html_of
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
    from nsw.readers.detect import ReportSearch, read_many
    from nsw.readers.model import Options

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


PREFIX = "param_"  # of a parameter whose name is that of a column


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """The sentence for a name that is none of those known: the one that was meant, or all of them."""
    near = None if name.startswith("_") else did_you_mean(name, names)
    return f"there is no {kind} {name}; {near or ', '.join(names)}"


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame; these columns first, and there even without a row."""
    import pandas as pd

    other_columns = dict.fromkeys(key for row in rows for key in row if key not in set(columns))
    return pd.DataFrame(list(rows), columns=[*columns, *other_columns])


def with_parameters(
    frame: pd.DataFrame, params: Mapping[str, Mapping[str, Any]], names: Iterable[str] | None = None
) -> pd.DataFrame:
    """The frame with the parameters of each row's run as columns behind `run`.

    A parameter whose name is that of a column gets the prefix `param_`: `device` becomes `param_device`.

    Args:
        frame: A table with a column `run`.
        params: The parameters of each run.
        names: The parameters, in their order; those of the runs if not given.
    """
    import pandas as pd

    parameter_names = list(
        dict.fromkeys(key for values in params.values() for key in values) if names is None else names
    )
    existing = set(frame.columns)
    at = list(frame.columns).index("run") + 1
    added = {}
    for name in parameter_names:
        column = name if name not in existing else f"{PREFIX}{name}"
        values = {run: run_params.get(name) for run, run_params in params.items()}
        added[column] = frame["run"].map(values)
    own_frame = pd.DataFrame(added, index=frame.index)
    return pd.concat([frame.iloc[:, :at], own_frame, frame.iloc[:, at:]], axis=1)
