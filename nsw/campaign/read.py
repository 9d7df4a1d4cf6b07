"""Collected reports become the campaign's tables, as its recipe and site ask."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.campaign.collect import AGAIN, KEPT_FILES, read_tail, started_again
from nsw.campaign.folder import run_of
from nsw.campaign.ledger import Ledger, Reading, RunRow, State
from nsw.campaign.ledger_meta_keys import NOTE
from nsw.campaign.recipe_lock import recipe_of
from nsw.campaign.tables import _append, load_rows
from nsw.profilers.files_of_one_recording import parts
from nsw.readers.model import Problem
from nsw.recipe.faults import shown
from nsw.tables import TABLES
from nsw.tables import rows as table_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow
    from nsw.readers.model import Options, Report
    from nsw.recipe.counters import CountersPass
    from nsw.recipe.model import Recipe


_PART = re.compile(r"\w+\.(rank|node)(\d{1,6})\.")  # as profilers are told to name the report of each process or node
_MAY_LEAVE_NONE = frozenset({"ncu", "nvprof"})  # of a process that runs no kernel
_NAMED = 4  # ranks in a message


def rank_of(report: str) -> int | None:
    """The rank in the name of a report; None where one report is of all processes, or of those of a node."""
    named = _PART.match(report)
    return int(named[2]) if named and named[1] == "rank" else None


def missing_nodes(reports: Iterable[str], nodes: int) -> list[int]:
    """The nodes, counted from 0, that left no report, where there is a profiler on each."""
    there = {int(named[2]) for named in map(_PART.match, reports) if named and named[1] == "node"}
    return sorted({*range(nodes)} - there) if there else []


def missing_ranks(reports: Iterable[str], expected: Collection[int] | None) -> tuple[list[int], int]:
    """The ranks that left no report, and how many processes there should be reports of.

    Args:
        reports: Names of the files that a run left.
        expected: The ranks that were profiled; None: not known, and those below a rank with a report are missed.
    """
    found = {rank for rank in map(rank_of, reports) if rank is not None}
    if not found:
        return [], 0
    every = range(max(found) + 1) if expected is None else expected
    return sorted({*every} - found), len(every)


def sentence(missing: list[int], total: int) -> str:
    """What is missing, such as `no report of ranks 1, 3: 2 of 4 processes left one`."""
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    which = ", ".join(map(str, missing[:_NAMED]))
    several = "ranks" if len(missing) > 1 else "rank"
    return f"no report of {several} {which}{more}: {total - len(missing)} of {total:,} processes left one"


def severity(tool: str | None) -> str:
    """`warning` where a process without a kernel leaves no report; else `error`."""
    return "warning" if tool in _MAY_LEAVE_NONE else "error"


# of the job's machinery: lines `rank RANK LOCAL NODE BOOT CPUS VISIBLE` and `gpu NODE INDEX UUID NAME`
RANKS_FILE: Final = "ranks.tsv"
_MOST: Final = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Landed:
    """The ranks of a run; no rows for a run of one process."""

    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def local_ranks(self) -> dict[int, int]:
        """Each rank's place on its node."""
        return {row["rank"]: row["local_rank"] for row in self.rows}

    @property
    def nodes(self) -> int:
        """How many nodes there are ranks on."""
        return len({(row["host"], row["boot"]) for row in self.rows})


def landed_ranks(home: Path) -> Landed:
    """The ranks of a run by the file in its folder; lines that nsw does not write are passed over."""
    lines = [
        line.split("\t") for line in (read_tail(home / RANKS_FILE, _MOST) or b"").decode(errors="replace").splitlines()
    ]
    uuids: dict[str, dict[str, str]] = {}
    for line in lines:
        if line[0] == "gpu" and len(line) == 5:
            uuids.setdefault(line[1], {})[line[2]] = line[3]
    return Landed(tuple(_row(line, uuids) for line in lines if _is_rank(line)))


def _is_rank(line: list[str]) -> bool:
    return line[0] == "rank" and len(line) == 7 and line[1].isdecimal() and line[2].isdecimal()


def _row(line: list[str], uuids: Mapping[str, Mapping[str, str]]) -> Mapping[str, Any]:
    _, rank, local, node, boot, cpus, visible = line
    known = uuids.get(node, {})
    seen = visible.split(",") if visible else list(known)
    return {
        "rank": int(rank),
        "local_rank": int(local),
        "host": node,
        "boot": boot,
        "cpus": cpus if cpus != "-" else None,
        "gpus": ",".join(known.get(one, one) for one in seen) or None,
    }


def checker(
    folder: CampaignFolder, ledger: Ledger, recipe: Recipe
) -> Callable[[RunRow, Rows], tuple[list[Problem], Rows]]:
    """The function that checks a run of the campaign; runs of other passes have nothing to check."""
    chip = (ledger.site().get("gpus") or {}).get("chip")
    passes = {one.name: one for one in recipe.passes if one.kind == "counters"}

    def check(run: RunRow, rows: Rows) -> tuple[list[Problem], Rows]:
        one = passes.get(run.pass_name)
        if one is None:
            return [], {}
        told = _metrics(one, run, chip, rows)
        more: Rows = {}
        if one.is_guided:
            from nsw.analysis import guided

            chosen = [row for row in load_rows(folder, guided.TABLE) if row["run"] == run.id]
            if chosen:
                more[guided.TABLE] = guided.matched(chosen, rows.get("launches", []))
                told += guided.moved_sentences(more[guided.TABLE])
        return [Problem("warning", text, fix=fix) for text, fix in told], more

    return check


def _metrics(one: CountersPass, run: RunRow, chip: str | None, rows: Rows) -> list[tuple[str, str]]:
    from nsw.analysis.unmeasured import sentences, unmeasured

    tool = run.tool or "ncu"
    found = unmeasured(one.metrics, tool, chip, one.replay, rows.get("metrics", []), rows.get("launches", []))
    return sentences(found)


def read_reports(folder: CampaignFolder, ledger: Ledger, progress: Callable[[int, int], object]) -> None:
    """Read every report that was collected and not read yet; `progress` is called with (done, total) runs."""
    for done, total in reading(folder, ledger):
        progress(done, total)


def reading(folder: CampaignFolder, ledger: Ledger) -> Generator[tuple[int, int]]:
    """The same a run at a time: yields (done, total) runs."""
    from functools import partial

    from nsw.plan.counters import expected_ranks
    from nsw.readers.messages_in_output import said_in
    from nsw.readers.program_figures import figures
    from nsw.readers.read_many import read_many

    recipe = recipe_of(folder)
    read_files = partial(read_many, options=options_of(recipe, ledger))
    wanted = recipe.app.figures
    required = [name for name, figure in wanted.items() if figure.required]
    yield from read_each(
        folder, ledger, read_files, lambda output: figures(output, wanted), said_in, required,
        checker(folder, ledger, recipe), lambda run, landed: expected_ranks(recipe, run.pass_name, landed.local_ranks),
    )  # fmt: skip


def options_of(recipe: Recipe, ledger: Ledger) -> Options:
    """How the campaign's reports are read."""
    from nsw.readers.model import Options

    steps = recipe.report.steps
    nsys = (ledger.site().get("profilers") or {}).get("nsys")
    return Options(nsys=nsys, steps=steps.nvtx, warmup=steps.warmup)


def read_trace(folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow], name: str) -> list[dict[str, Any]]:
    """The rows of a trace, from the collected reports of these runs; nothing is written."""
    from dataclasses import replace
    from functools import partial

    from nsw.campaign.owning_user import owner_if_other
    from nsw.readers.read_many import read_many

    options = replace(options_of(recipe_of(folder), ledger), tables=frozenset({name}), max_unpacked=folder.max_unpacked)
    if owner_if_other(folder.path):  # the program that another user's campaign names is not run
        options = replace(options, nsys=None)
    return read_table(folder, runs, name, partial(read_many, options=options))


def fault_of(folder: CampaignFolder, ledger: Ledger, run: RunRow, progress: Callable[[int, int], object]) -> str | None:
    """Read what a run left; what is wrong with it, or None: the canary's question."""
    read_reports(folder, ledger, progress)
    wrong = [message for id_, _, severity, message, _ in ledger.problems() if id_ == run.id and severity == "error"]
    kind = run.pass_kind
    if (
        not wrong
        and kind == "counters"
        and run.repeat
        and not any(r["run"] == run.id for r in load_rows(folder, "metrics"))
    ):
        wrong = ["its report holds no metric: did the kernel filter match anything?"]
    return "; ".join(wrong) or None


Rows: TypeAlias = dict[str, list[dict[str, Any]]]  # by table
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
