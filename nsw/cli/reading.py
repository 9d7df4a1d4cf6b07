"""`nsw read`: reports of any profiler as tables."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.errors import Exit, UsageError, did_you_mean
from nsw.present import emit
from nsw.readers.model import Options, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MOST_ROWS = 20


def read(files: Sequence[Path], tables: list[str], formats: bool, format: str, output: Path | None) -> int:
    """Read files and print their tables; 1 when one of them could not be read."""
    from nsw.readers.many import FEW, read_many
    from nsw.tables import TABLES

    if formats:
        return _list_formats(format)
    if not files:
        raise UsageError("no file was named", hint="`nsw read FILE...`; `nsw read --formats` lists what can be read")
    for name in tables:
        if name not in TABLES:
            raise UsageError(
                f"there is no table {name}", hint=did_you_mean(name, TABLES) or f"tables: {', '.join(TABLES)}"
            )
    options = Options(frozenset(tables) if tables else None)
    reports = _counted(read_many(files, options), len(files) if len(files) > FEW else 0)
    if format == "json":
        return _print_json(reports)
    found = list(reports)
    if format == "table":
        _show(found)
    else:
        _rows(found, tables, format, output)
    return _code(found)


def _counted(reports: Iterator[Report], total: int) -> Iterator[Report]:
    """The reports, with a progress bar on a terminal when there are many."""
    from nsw.present.terminal import console

    out = console(sys.stderr)
    if not total or not out.is_terminal:
        yield from reports
        return
    from rich.progress import track

    yield from track(reports, "reading", total=total, console=out, transient=True)


def _code(reports: Sequence[Report]) -> int:
    bad = any(p.severity == "error" for r in reports for p in r.problems)
    return Exit.SOME_FAILED if bad else Exit.GOOD


def _print_json(reports: Iterator[Report]) -> int:
    """One object, written report by report and row by row: a large trace is never held as text."""
    from nsw.tables import rows

    write = sys.stdout.write
    bad = False
    write(f'{{"nsw_json": {emit.JSON_VERSION}, "reports": [')
    for number, report in enumerate(reports):
        bad = bad or any(p.severity == "error" for p in report.problems)
        head = {
            "path": report.path, "tool": report.tool, "format": report.format, "tool_version": report.tool_version,
            "problems": [asdict(p) for p in report.problems],
        }  # fmt: skip
        write((", " if number else "") + json.dumps(head, ensure_ascii=False)[:-1] + ', "tables": {')
        for at, (name, data) in enumerate(report.tables.items()):
            write((", " if at else "") + json.dumps(name) + ": [")
            for row_number, row in enumerate(rows(name, data)):
                write((", " if row_number else "") + json.dumps(row, ensure_ascii=False, allow_nan=False))
            write("]")
        write("}}")
    write("]}\n")
    return Exit.SOME_FAILED if bad else Exit.GOOD


def _rows(reports: Sequence[Report], tables: list[str], format: str, output: Path | None) -> None:
    from nsw.tables import TABLES, rows

    held = {name for r in reports for name, data in r.tables.items() if len(data)}
    wanted = tables or sorted(held)
    if len(wanted) != 1:
        raise UsageError(
            f"{format} holds one table, and here are {', '.join(wanted) or 'none'}",
            hint="name it with --table",
        )
    name = wanted[0]
    found = [row | {"report": r.path} for r in reports if name in r.tables for row in rows(name, r.tables[name])]
    if format == "csv":
        emit.as_csv(found, TABLES[name].names)
    else:
        emit.as_parquet(found, TABLES[name].names, output)


def _show(reports: Sequence[Report]) -> None:
    from nsw.present.report_view import show_report
    from nsw.present.terminal import console

    out = console()
    for report in reports:
        show_report(out, report, _MOST_ROWS)


def _list_formats(format: str) -> int:
    from nsw.present.terminal import console, table
    from nsw.readers.registry import FORMATS

    rows: list[dict[str, Any]] = [{"format": f.id, "tool": f.tool, "what": f.meaning} for f in FORMATS]
    if format == "json":
        emit.as_json({"formats": rows})
    else:
        console().print(table(None, ("format", "tool", "what"), ([*r.values()] for r in rows)))
    return Exit.GOOD
