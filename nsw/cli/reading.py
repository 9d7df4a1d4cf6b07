"""`nsw read`: reports of any profiler as tables."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from nsw.cli import reading_kernels, writing
from nsw.cli.notices import tell
from nsw.cli.stdin import standard_input
from nsw.errors import Exit, UsageError, did_you_mean
from nsw.present import emit
from nsw.present.terminal import plural
from nsw.present.untrusted_text import as_json, say
from nsw.readers.model import Options, Report
from nsw.readers.report_search import ReportSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nsw.present.problems import Merged

_MOST_ROWS = 20


def read(
    files: Sequence[Path],
    tables: list[str],
    formats: bool,
    format: str,
    output: Path | None,
    max_unpacked: int | None = None,
    steps: str | None = None,
    where: Sequence[str] = (),
    launch: int | None = None,
    top: int | None = None,
) -> int:
    """Read files, and the reports below folders, and print their tables; 1 when one of them could not be read."""
    from nsw.cli.choosing_rows import chosen, condition
    from nsw.readers.read_many import read_many, takes_long
    from nsw.tables import TABLES

    for text in where:
        condition(text)  # what is wrong with it is reported before a large report is read
    if formats:
        return _list_formats(format, output)
    if not files:
        hint = "`nsw read FILE...`, or `... | nsw read -`; `nsw read --formats` lists what can be read"
        raise UsageError("no file was named", hint=hint)
    known = (*TABLES, *reading_kernels.COMPUTED)
    for name in tables:
        if name not in known:
            raise UsageError(
                f"there is no table {name}", hint=did_you_mean(name, known) or f"tables: {', '.join(known)}"
            )
    made = reading_kernels.computed(tables)
    wanted = reading_kernels.SOURCES if made else frozenset(tables) if tables else None
    options = Options(wanted, max_unpacked=max_unpacked, steps=steps)
    search = ReportSearch()
    with standard_input(files) as given:
        paths = list(search.files(given.files))
        asked = _Asked(tables, several=len(paths) > 1)
        found = given.named(_counted(read_many(paths, options), len(paths) if takes_long(paths) else 0))
        if made:
            picked = chosen(search.known(found), where, launch, None)
            return max(reading_kernels.put(made, picked, format, output, top), _tell(search))
        picked = chosen(asked.noted(search.known(found)), where, launch, top)
        code = _put_out(picked, tables, format, output, most=_MOST_ROWS if top is None else top)
    return max(code, _tell(search), asked.tell())


def _put_out(reports: Iterator[Report], tables: list[str], format: str, output: Path | None, *, most: int) -> int:
    if format not in writing.OF_ROWS:
        with writing.printed(format, output):
            if format == "json":
                return _print_json(reports, kernels=not tables)
            return _show(reports, kernels=not tables, most=most)
    if format == "parquet" and output is None:
        raise UsageError("--format parquet writes files", hint="name a file or a folder with --output")
    if output is not None and writing.is_folder(output):
        return _write_folder(reports, format, output)
    found = list(reports)
    _one_table(found, tables, format, output)
    return _code(found)


def _tell(search: ReportSearch) -> int:
    """Say on stderr how many files were no reports; 1 where folders held none at all."""
    if not search.folders:
        return Exit.GOOD
    others = len(search.searched) - search.reports
    where = ", ".join(str(f) for f in search.folders)
    if others:
        tell(f"{others} other file{'s' * (others != 1)} in {where}: no known report format")
    if search.reports == 0:
        tell(f"no report in {where}")
    return Exit.GOOD if search.reports else Exit.SOME_FAILED


@dataclass(slots=True)
class _Asked:
    """Of several reports some may lack a table that was asked for; that all do is an error."""

    tables: list[str]
    several: bool
    lacking: int = 0
    held: int = 0

    def noted(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports; one of several that has no rows of these tables, and no other fault, has a warning."""
        from nsw.readers.model import Lack

        for report in reports:
            self.held += any(len(t) for t in report.tables.values())
            if self.several and report.lack is Lack.TABLES:
                self.lacking += 1
                report.problems = [replace(p, severity="warning") for p in report.problems]
            yield report

    def tell(self) -> int:
        """Say on stderr that no report has the tables; 1 then."""
        if self.held or not self.lacking:
            return Exit.GOOD
        tell(f"none of the files has data for {', '.join(self.tables)}")
        return Exit.SOME_FAILED


def _counted(reports: Iterator[Report], total: int) -> Iterator[Report]:
    """The reports, with a progress bar on a terminal when there are many."""
    from nsw.present.terminal import console

    out = console(sys.stderr)
    if not total or not out.is_terminal:
        yield from reports
        return
    from rich.progress import track

    yield from track(reports, "reading", total=total, console=out, transient=True)


def _is_bad(report: Report) -> bool:
    return any(p.severity == "error" for p in report.problems)


def _code(reports: Iterable[Report]) -> int:
    return Exit.SOME_FAILED if any(_is_bad(r) for r in reports) else Exit.GOOD


def _print_json(reports: Iterator[Report], *, kernels: bool) -> int:
    """One object, written report by report and row by row: a large trace is never held as text."""
    from nsw.analysis.kernels import of_report
    from nsw.tables import rows

    write = sys.stdout.write
    bad = False
    write(f'{{"nsw_json": {emit.JSON_VERSION}, "reports": [')
    for number, report in enumerate(reports):
        bad = bad or _is_bad(report)
        head = {
            "path": report.path, "tool": report.tool, "format": report.format, "tool_version": report.tool_version,
            "problems": [asdict(p) for p in report.problems],
        }  # fmt: skip
        found = [asdict(kernel) for kernel in of_report(report.tables)] if kernels else []
        if found:
            head |= {"kernels": emit.finite(found)}
        write((", " if number else "") + as_json(head)[:-1] + ', "tables": {')
        for at, (name, data) in enumerate(report.tables.items()):
            write((", " if at else "") + as_json(name) + ": [")
            if isinstance(data, list):
                for row_number, row in enumerate(rows(name, data)):
                    write((", " if row_number else "") + as_json(row))
            else:
                for some in emit.json_rows(name, data):
                    emit.write_utf8(some)
            write("]")
        write("}}")
    write("]}\n")
    return Exit.SOME_FAILED if bad else Exit.GOOD


def _one_table(reports: Sequence[Report], tables: list[str], format: str, output: Path | None) -> None:
    from nsw.tables import TABLES, rows

    held = {name for r in reports for name, data in r.tables.items() if len(data)}
    wanted = tables or sorted(held - {"facts"} or held)  # facts are beside a table, as its description
    if len(wanted) != 1:
        raise writing.several(format, wanted)
    (name,) = wanted
    if format == "parquet" and output is not None:
        with emit.ParquetFiles({name: output}) as files:
            _fill(files, reports, {name})
        _tell_problems(reports)
        return
    found = (row | {"report": r.path} for r in reports if name in r.tables for row in rows(name, r.tables[name]))
    writing.put_rows(format, found, TABLES[name].names, output)
    _tell_problems(reports)


def _write_folder(reports: Iterator[Report], format: str, folder: Path) -> int:
    """Every table of all reports as FOLDER/TABLE.csv or .parquet, report by report: what is held is one report."""
    from nsw.present.problems import Merged
    from nsw.tables import TABLES

    folder = writing.made_folder(folder)
    bad = False
    merged = Merged()
    kind = emit.ParquetFiles if format == "parquet" else emit.CsvFiles
    with kind({name: folder / f"{name}.{format}" for name in TABLES}) as files:
        for report in reports:
            bad = bad or _is_bad(report)
            _fill(files, [report], set(TABLES))
            _gather_problems(merged, report)
    for _, text in merged.lines():
        tell(text)
    for name, count in files.written.items():
        say(f"{folder / name}.{format}: {plural(count, 'row')}")
    return Exit.SOME_FAILED if bad else Exit.GOOD


def _fill(files: Any, reports: Iterable[Report], names: set[str]) -> None:
    for report in reports:
        for name in names & report.tables.keys():
            files.add(name, report.tables[name], report.path)


def _tell_problems(reports: Iterable[Report]) -> None:
    """Problems have no place in a file of rows: they are reported on stderr."""
    from nsw.present.problems import Merged

    merged = Merged()
    for report in reports:
        _gather_problems(merged, report)
    for _, text in merged.lines():
        tell(text)


def _gather_problems(merged: Merged, report: Report) -> None:
    for problem in report.problems:
        merged.add(report.path, problem.severity, problem.message, problem.fix, line=problem.line)


def _show(reports: Iterable[Report], *, kernels: bool, most: int) -> int:
    from nsw.present.problems import Merged, show_merged
    from nsw.present.rows_view import show_report
    from nsw.present.terminal import console

    bad = False
    out = console()
    told = Merged()
    for report in reports:
        bad = bad or _is_bad(report)
        show_report(out, report, most, told, kernels=kernels)
    show_merged(out, told, repeated=True)
    return Exit.SOME_FAILED if bad else Exit.GOOD


def _list_formats(format: str, output: Path | None) -> int:
    from nsw.present.terminal import console, table
    from nsw.readers.registry import FORMATS

    rows: list[dict[str, Any]] = [
        {"format": f.id, "tool": f.tool, "what": f.meaning, "versions": f.versions, "not_read": f.unread}
        for f in FORMATS
    ]
    if format in writing.OF_ROWS:
        writing.put_rows(format, rows, list(rows[0]), output)
        return Exit.GOOD
    with writing.printed(format, output):
        if format == "json":
            emit.as_json({"formats": rows})
        else:
            heads = ("format", "tool", "what")
            console().print(table(None, heads, ([r[h] for h in heads] for r in rows)))
    return Exit.GOOD
