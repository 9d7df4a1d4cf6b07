"""`nsw read --table kernels|roofline`: the tables that are computed from the counters of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.cli import writing
from nsw.cli.notices import tell
from nsw.errors import Exit, UsageError
from nsw.present import emit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nsw.analysis.kernels import KernelRow
    from nsw.readers.model import Report

COMPUTED: Final = ("kernels", "roofline")
SOURCES: Final = frozenset({"metrics", "launches", "rules", "gpu_summary"})


def computed(tables: Sequence[str]) -> str | None:
    """The computed table that is asked for; None: those of the reports themselves are.

    Raises:
        UsageError: It is asked for beside another table.
    """
    asked = [name for name in tables if name in COMPUTED]
    if not asked:
        return None
    if len(set(tables)) > 1:
        raise UsageError(
            f"table {asked[0]} is computed from other tables of the report",
            hint=f"ask for it alone: --table {asked[0]}",
        )
    return asked[0]


def put(name: str, reports: Iterable[Report], format: str, output: Path | None, top: int | None) -> int:
    """Print or write a computed table of all reports; 1 when one of them could not be read or none has counters.

    Args:
        name: kernels or roofline.
        reports: The reports, with the tables of SOURCES.
        format: text, json, csv or parquet.
        output: Where to; None: stdout.
        top: No more rows than this of each report; None: all.
    """
    from nsw.analysis.kernels import of_report
    from nsw.present.flat_rows import flat_kernels, flat_points
    from nsw.present.problems import Merged

    rows_of = flat_kernels if name == "kernels" else flat_points
    found: list[dict[str, Any]] = []
    seen: list[KernelRow] = []
    merged, bad = Merged(), False
    for report in reports:
        bad = bad or any(p.severity == "error" for p in report.problems)
        kernels = of_report(report.tables)[:top]
        seen += kernels
        found += [{"report": report.path} | row for row in rows_of(kernels)]
        for problem in report.problems:
            merged.add(report.path, problem.severity, problem.message, problem.fix, line=problem.line)
    for _, text in merged.lines():
        tell(text)
    columns = list(dict.fromkeys(key for row in found for key in row))
    if not found:
        lacks = "the counters of a roofline (metrics: [roofline])" if seen else "hardware counters of kernels"
        tell(f"{name}: no rows: none of the files holds {lacks}")
    if format in writing.OF_ROWS:
        file = writing.made_folder(output) / f"{name}.{format}" if output and writing.is_folder(output) else output
        writing.put_rows(format, found, columns, file)
    else:
        with writing.printed(format, output):
            if format == "json":
                emit.as_json({"table": name, "rows": found})
            elif found:
                _show(name, found, columns, seen)
    return Exit.SOME_FAILED if bad or not found else Exit.GOOD


def _show(name: str, found: list[dict[str, Any]], columns: Sequence[str], kernels: Sequence[KernelRow]) -> None:
    from nsw.present.rows_view import show_rows
    from nsw.present.summary_view import show_kernels
    from nsw.present.terminal import console

    if name == "kernels":
        show_kernels(console(), kernels)
    else:
        show_rows(console(), name, found, columns, of=name, parameters=())
