"""Collected reports -> the campaign's tables: tables/NAME.parquet, one file a table, each row with its run.

A run counts as read once its rows are in the files: ended in between, its reports are read again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar

from nsw.campaign.collect import AGAIN, KEPT_FILES, run_of, started_again
from nsw.campaign.landed_ranks import FILE as RANKS_FILE
from nsw.campaign.landed_ranks import Landed, landed_ranks
from nsw.campaign.ledger import Ledger, Reading, RunRow, State
from nsw.campaign.ledger_meta_keys import NOTE
from nsw.campaign.missing_ranks import missing_nodes, missing_ranks, rank_of, sentence, severity
from nsw.campaign.owning_user import open_file
from nsw.errors import CampaignError
from nsw.profilers.files_of_one_recording import parts
from nsw.recipe.faults import shown
from nsw.safe_files import open_plain
from nsw.tables import TABLES
from nsw.tables import rows as table_rows
from nsw.tables.parquet_tables import StoredTableError, stored_rows, stored_table, unchecked_table
from nsw.tables.unpacking_limit import TooMuchError
from nsw.tables.unpacking_limit import hint as unpacking_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from nsw.campaign.folder import CampaignFolder
    from nsw.readers.model import Problem, Report

Rows: TypeAlias = dict[str, list[dict[str, Any]]]  # by table
_T = TypeVar("_T")
_FLUSH_EVERY_S = 30.0
_NOT_DONE = (State.FAILED, State.LOST, State.CANCELLED)


def read_each(
    folder: CampaignFolder,
    ledger: Ledger,
    read_reports: Callable[[Sequence[Path]], Iterator[Report]],
    figures: Callable[[str], list[dict[str, Any]]],
    said: Callable[[str, Path], list[Problem]] = lambda _tool, _output: [],
    required: Collection[str] = (),
    checked: Callable[[RunRow, Rows], tuple[list[Problem], Rows]] = lambda _run, _rows: ([], {}),
    ranks: Callable[[RunRow, Landed], Collection[int] | None] = lambda _run, _landed: (),
) -> Generator[tuple[int, int]]:
    """Read the reports of every collected run and write the tables, a run at a time.

    Yields how many runs are read, of how many; ended early, some are read again later.

    Args:
        folder: The campaign's folder.
        ledger: Its ledger.
        read_reports: Reads files of any known format one after the other, in this order, as they are asked for; perhaps
            in several processes, of which none sees the ledger.
        figures: The rows of table `figures` in a program's output.
        said: What a profiler said of itself in a run's output: (tool, file) -> problems.
        required: The figures that every run must print.
        checked: Compares the rows of a run that is done with what was asked of it: problems, and rows of more tables.
        ranks: The processes of a run that leave a report each, by where they landed; None: not known.
    """
    waiting = ledger.runs(states=(State.DONE, State.FAILED), reading=Reading.COLLECTED)
    batch: list[tuple[RunRow, _Read]] = []
    flushed = time.monotonic()
    files = [_reports_of(folder, run) for run in waiting]
    reports = read_reports([file for several in files for file in several])
    unreduced = {
        run_of(row.id): f"{row.id} {row.state}: {row.reason or 'no reason'}" for row in ledger.reductions(_NOT_DONE)
    }
    for number, (run, own) in enumerate(zip(waiting, files, strict=True), 1):
        result = _read_run(folder, run, {file: next(reports) for file in own}, said, checked, unreduced.get(run.id))
        landed = landed_ranks(folder.reports / run.id)
        if landed.rows and run.repeat:
            rows = ({name: value for name, value in row.items() if name != "boot"} for row in landed.rows)
            result.add("ranks", iter(rows), run, f"reports/{run.id}/{RANKS_FILE}")
        _miss_ranks(run, result, [file.name for file in own], ranks(run, landed), landed.nodes)
        _read_figures(folder, run, result, figures, required)
        batch.append((run, result))
        yield number, len(waiting)
        if time.monotonic() - flushed > _FLUSH_EVERY_S:
            _flush(folder, ledger, batch)
            batch, flushed = [], time.monotonic()
    _flush(folder, ledger, batch)


def read_table(
    folder: CampaignFolder,
    runs: Sequence[RunRow],
    table: str,
    read_reports: Callable[[Sequence[Path]], Iterator[Report]],
) -> list[dict[str, Any]]:
    """The rows of one table from the collected reports of these runs; nothing is written down.

    Args:
        folder: The campaign's folder.
        runs: The runs.
        table: The table's name.
        read_reports: Reads that table of files of any known format, one after the other, in this order.
    """
    found: list[dict[str, Any]] = []
    files = [_reports_of(folder, run) for run in runs]
    reports = read_reports([file for several in files for file in several])
    for run, own in zip(runs, files, strict=True):
        read = _read_run(folder, run, {file: next(reports) for file in own}, lambda _tool, _output: [])
        found += read.tables.get(table, [])
    return found


class _Read:
    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.problems: list[tuple[str | None, str, str, str | None]] = []
        self.lacking = 0  # required figures that the run did not print

    @property
    def reading(self) -> Reading:
        """What became of the reports: an error that is no missing figure counts first."""
        errors = sum(severity == "error" for _, severity, _, _ in self.problems)
        if errors > self.lacking:
            return Reading.UNREADABLE
        return Reading.INCOMPLETE if self.lacking else Reading.READ

    def add(self, table: str, found: Iterator[dict[str, Any]], run: RunRow, report: str) -> None:
        rows = self.tables.setdefault(table, [])
        rank = rank_of(report.rpartition("/")[2])
        for row in found:
            more = {} if rank is None or row.get("rank") is not None else {"rank": rank}
            rows.append(row | {"run": run.id, "report": report} | more)


def _reports_of(folder: CampaignFolder, run: RunRow) -> list[Path]:
    """The files that a run's profiler left and that are read, in order of their names."""
    home = folder.reports / run.id
    if not home.is_dir():
        return []
    return [home / n for n in parts(p.name for p in home.iterdir() if p.is_file() and p.name not in KEPT_FILES)]


def _read_run(
    folder: CampaignFolder,
    run: RunRow,
    reports: dict[Path, Report],
    said: Callable[[str, Path], list[Problem]],
    checked: Callable[[RunRow, Rows], tuple[list[Problem], Rows]] = lambda _run, _rows: ([], {}),
    unreduced: str | None = None,
) -> _Read:
    result = _Read()
    home = folder.reports / run.id
    read = parts(p.name for p in home.iterdir()) if home.is_dir() else {}
    for file, report in reports.items():
        name = str(file.relative_to(folder.path))
        part = read[file.name]
        source = str((home / part.source).relative_to(folder.path))
        # what a failed program did until then, and what a warm-up did, is no measurement of the case: the reports are
        # kept and what is wrong in them is reported, but none of their rows is averaged with those of good runs
        for table, data in report.tables.items() if run.state is State.DONE and run.repeat else ():
            if part.takes(table):
                result.add(table, table_rows(table, data), run, source)
        result.problems += [(name, p.severity, p.message, p.fix) for p in report.problems]
    for stream in ("stderr", "stdout") if run.tool else ():
        result.problems += _unsaid(result, f"reports/{run.id}/{stream}", said(run.tool or "", home / stream))
    if unreduced is not None and run.state is State.DONE:
        fix = f"`nsw retry {run.id}` reduces it again, `nsw fetch {run.id}` downloads the report itself"
        result.problems.append((None, "error", f"its report was not reduced on the site: {unreduced}", fix))
    elif run.reports and not reports and run.state is State.DONE:  # a failed run has a reason of its own
        result.problems.append(
            (
                None,
                "error",
                f"{run.tool or 'the profiler'} left no report",
                "see its output: `nsw logs " + run.id + "`",
            )
        )
    if run.state is State.DONE and run.repeat and (twice := started_again(folder, run.id)) is not None:
        fact = {"key": "started_again", "value": None, "unit": None, "text": twice}
        result.add("facts", iter([fact]), run, f"reports/{run.id}/{AGAIN}")
    if run.state is State.DONE:
        more, extra = checked(run, result.tables)
        result.problems += [(None, p.severity, p.message, p.fix) for p in more]
        for table, some in extra.items():
            result.tables[table] = [row | {"run": run.id} for row in some]
    return result


def _miss_ranks(run: RunRow, result: _Read, reports: list[str], expected: Collection[int] | None, nodes: int) -> None:
    """Report the processes and nodes that left no report: none of the run's figures counts them."""
    if run.state is not State.DONE:
        return
    fix = f"`nsw logs {run.id}` may say why, `nsw retry {run.id}` measures it again"
    if without := missing_nodes(reports, nodes):
        text = f"no report of node{'s' if len(without) > 1 else ''} {', '.join(map(str, without))} of {nodes}"
        result.problems.append((None, "error", text, fix))
    missing, total = missing_ranks(reports, expected)
    if missing:
        fix = (
            f"a process that ends by a signal or by _exit leaves none; `nsw logs {run.id}` may say why,"
            f" `nsw retry {run.id}` measures it again"
        )
        result.problems.append((None, severity(run.tool), sentence(missing, total), fix))


def _read_figures(
    folder: CampaignFolder,
    run: RunRow,
    result: _Read,
    figures: Callable[[str], list[dict[str, Any]]],
    required: Collection[str],
) -> None:
    """Find the figures in what a run printed; that a required one is not there is an error, of another a note."""
    output = folder.reports / run.id / "stdout"
    if run.state is not State.DONE or not output.exists():
        return
    source = str(output.relative_to(folder.path))
    found = figures(output.read_text(errors="replace"))
    if run.repeat:
        result.add("figures", iter(f for f in found if f["value"] is not None), run, source)
    for figure in (f for f in found if f["value"] is None):
        needed = figure["name"] in required
        result.lacking += needed
        text = figure.get("no_number")
        if not needed and not figure["matches"] and text is None:
            result.problems.append((source, "note", f"without figure {figure['name']}, which is not required", None))
            continue
        what = f"{'required ' if needed else ''}figure {figure['name']}"
        why = "is not a number: nan or inf" if figure["matches"] else "was not found"
        if text is not None:
            why = f"is not a number: its regex matched {shown(text)}"
        fix = (
            f"compare the recipe's regex with what `nsw logs {run.id}` shows; correct it and `nsw reread` (in"
            " another file: `--recipe FILE`), `nsw retry` does the run again, and `required: false` allows a run"
            " without it"
        )
        severity = "error" if needed else "warning"
        result.problems.append((source, severity, f"{what} {why} in the program's output", fix if needed else None))


def _unsaid(result: _Read, name: str, problems: list[Problem]) -> list[tuple[str | None, str, str, str | None]]:
    """What neither a report of the run nor its other output has reported already."""
    told = {message for _, _, message, _ in result.problems}
    return [(name, p.severity, p.message, p.fix) for p in problems if p.message not in told]


def _flush(folder: CampaignFolder, ledger: Ledger, batch: list[tuple[RunRow, _Read]]) -> None:
    if not batch:
        return
    merged: dict[str, list[dict[str, Any]]] = {}
    for _, read in batch:
        for table, rows in read.tables.items():
            merged.setdefault(table, []).extend(rows)
    replaced = [run.id for run, _ in batch]
    note = ledger.meta(NOTE)
    for file in folder.tables.glob("*.parquet"):
        if file.stem in TABLES:  # else of another version of nsw, or a user's own
            merged.setdefault(file.stem, [])
    for table, rows in merged.items():
        path = folder.tables / f"{table}.parquet"
        if rows or path.exists():
            _append(path, table, rows, replaced, note)
    with ledger.transaction():
        for run, read in batch:
            ledger.update_tasks([run.id], reading=read.reading)
            ledger.set_problems(run.id, read.problems)


def _append(path: Path, table: str, rows: list[dict[str, Any]], replaced: list[str], note: str | None) -> None:
    """Add rows to a table's file, in place of what it held of the same runs; the file is replaced whole."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from nsw.tables import as_arrow

    new = as_arrow(table, rows)
    if os.path.lexists(path):
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                old = unchecked_table(file)
            old = old.filter(pc.invert(pc.is_in(old["run"], pa.array(replaced, pa.string()))))
            for field in new.schema:  # a column that the nsw which wrote the file did not have
                if field.name not in old.column_names:
                    old = old.append_column(field, pa.nulls(len(old), field.type))
            new = pa.concat_tables([old.select(new.column_names).cast(new.schema), new])
        except (pa.ArrowException, KeyError, OSError) as fault:
            raise CampaignError(
                f"{path} is damaged, and nothing can be added to it: {str(fault).splitlines()[0]}",
                hint="move it away: the reports that it was made of are in reports/",
            ) from None
    if note:
        new = new.replace_schema_metadata({**(new.schema.metadata or {}), b"nsw_note": note.encode()})
    path.parent.mkdir(exist_ok=True)  # a person may have removed it, to have the reports read again
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)  # whatever it is: a link would be written through
    pq.write_table(new, part, compression="zstd")
    part.replace(path)


def put_rows(folder: CampaignFolder, table: str, run: str, rows: list[dict[str, Any]]) -> None:
    """Write the rows of one run into a table, in place of those that it has there."""
    _append(folder.tables / f"{table}.parquet", table, [row | {"run": run} for row in rows], [run], None)


def load_rows(folder: CampaignFolder, table: str) -> list[dict[str, Any]]:
    """All rows of one of the campaign's tables; [] when there is none.

    Raises:
        CampaignError: Its file is damaged, or would take more memory than `folder.max_unpacked`.
    """
    return _load(folder, table, stored_rows) or []


def load_table(folder: CampaignFolder, table: str) -> pa.Table | None:
    """One of the campaign's tables as Arrow's; None when there is none. It raises what `load_rows` does."""
    return _load(folder, table, stored_table)


def _load(folder: CampaignFolder, table: str, load: Callable[[BinaryIO, str, int | None], _T]) -> _T | None:
    path = folder.tables / f"{table}.parquet"
    if not os.path.lexists(path):
        return None
    import pyarrow as pa

    try:
        with open_file(folder.path, path) as file:
            return load(file, table, folder.max_unpacked)
    except TooMuchError as fault:
        raise CampaignError(f"{path} holds {fault}", hint=unpacking_hint(f"nsw summarize {folder.id}")) from None
    except (pa.ArrowException, OSError, StoredTableError) as fault:
        raise CampaignError(
            f"{path} is damaged: {str(fault).splitlines()[0]}", hint="the reports that it was made of are in reports/"
        ) from None
