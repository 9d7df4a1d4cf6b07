"""`nsw summarize`: what a campaign shows, for people, as JSON, and table by table as rows."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.apart import can_fork, run_isolated
from nsw.campaign.answers import Results, results
from nsw.campaign.selection import campaign_and_runs, campaign_argument
from nsw.cli.output import Target, several, tell
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import table_files
from nsw.errors import Exit, UsageError, did_you_mean
from nsw.present import emit
from nsw.present.emit import FLAT, OF_A_CASE, flat_rows
from nsw.present.untrusted_text import say
from nsw.quantities import size
from nsw.recipe.overrides import SIDE
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary
    from nsw.apart import Limits
    from nsw.campaign.selection import RunsOption, Selection
    from nsw.engine.folder import CampaignFolder
    from nsw.present.page import EvidenceRows

Rows = list[dict[str, Any]]
RUNS = "runs"  # a row a run; its parameters are the fields of one column


def summarize(
    option_values: RunsOption,
    table: str | None,
    target: Target,
    limits: Limits,
    top: int | None,
    *,
    full: bool = False,
    plot: str | None = None,
) -> int:
    """What a campaign shows; 1 when some of it failed.

    Args:
        option_values: The campaign, and of which of its runs.
        table: The table to show as rows; None: the answer.
        target: How it is printed and where.
        limits: What a process that reads tables of others may take.
        full: All tables, behind the first screen.
        top: Only so many rows of a table: of each run in tables of reports, of each case in those that list its
            kernels, calls or copies, else of all.
        plot: Which plot, where the target is of one; None: the first.

    Raises:
        UsageError: There is no such run or table, or one file cannot hold the tables.
    """
    if top is not None and table is None:
        raise UsageError("--top needs --table", hint="`nsw summarize --table hotspots --top 3`")
    target.check_plot(plot)
    if target.is_of_plot and table is not None:
        raise UsageError("--table prints rows, and no plot", hint="`nsw summarize --plot NAME -o plot.svg`")
    folder, selection = campaign_and_runs(option_values)
    _check(table)
    return _answer_safely(folder, selection, limits, table=table, target=target, top=top, full=full, plot=plot)


def report(option_values: RunsOption, output: Path | None, limits: Limits, timeline: str | None) -> int:
    """Write the answer of a campaign as a page, CAMPAIGN.html if no file is named; 1 when some of it failed.

    Args:
        option_values: The campaign, and of which of its runs.
        output: The file.
        limits: What a process that reads tables of others may take.
        timeline: The case of which an iteration is drawn.
    """
    folder, selection = campaign_and_runs(option_values)
    file = output or Path(f"{folder.id}.html")
    target = Target("html", file)
    code = _answer_safely(folder, selection, limits, table=None, target=target, top=None, full=True, timeline=timeline)
    say(f"{file}: {size(file.stat().st_size)}")
    return code


def _answer_safely(folder: CampaignFolder, selection: Selection, limits: Limits, **answer_options: Any) -> int:
    """The answer, of a campaign of somebody else made in a process with limits."""
    folder.limits = limits
    answer = partial(_answer, folder, selection, **answer_options)
    if not can_fork() or folder.trusted:
        return answer()
    length = sum(path.lstat().st_size for path in table_files(folder))  # all at once: Arrow is loaded but once
    command_limits = replace(limits, command=f"nsw summarize {folder.id}")
    return run_isolated(answer, subject=f"reading {folder.path}", size=length, limits=command_limits)


def _answer(
    folder: CampaignFolder, selection: Selection, *, table: str | None, target: Target, top: int | None, full: bool,
    plot: str | None = None, timeline: str | None = None,
) -> int:  # fmt: skip
    with results(folder, selection) as campaign_results:
        note, code = campaign_results.note, Exit.GOOD if campaign_results.is_good() else Exit.SOME_FAILED
        tables = _Tables(campaign_results)
        if table is not None:
            group_column = "run" if tables.is_plain(table) else "case" if table in OF_A_CASE else None
            rows = tables.rows(table)
            _put_table(target, table, first(rows, top, group_column), note, parameters=tables.parameters(table, rows))
            return Exit.GOOD if tables.is_plain(table) else code
        if target.is_of_rows:
            _put_all(target, tables, note)
            return code
        if target.is_of_plot:
            target.put_plot(_plot(campaign_results, plot))
            return code
        summary = campaign_results.summary
        if target.format == "html":
            text = _page(campaign_results, tables, timeline)
            with target.printed():
                sys.stdout.write(text)
            return code
    with target.printed():
        _show(folder, summary, target.format, full=full)
    return code


def first(rows: Rows, top: int | None, group_column: str | None) -> Rows:
    """The first rows for each value of a column; None: of all."""
    if top is None:
        return rows
    seen = Counter[Any]()
    first_rows = []
    for row in rows:
        key = row[group_column] if group_column else None
        seen[key] += 1
        if seen[key] <= top:
            first_rows.append(row)
    return first_rows


def _check(table: str | None) -> None:
    if table is not None and table not in table_names():
        names = table_names()
        raise UsageError(f"there is no table {table}", hint=did_you_mean(table, names) or f"tables: {', '.join(names)}")


def table_names() -> list[str]:
    """What --table takes: the summary's tables, then those of the reports."""
    from nsw.tables import TABLES

    return list(dict.fromkeys((*FLAT, RUNS, *TABLES)))


class _Tables:
    """The tables of a campaign, of some cases or of all, made when they are asked for."""

    def __init__(self, campaign_results: Results) -> None:
        self._campaign_results = campaign_results

    @staticmethod
    def is_plain(name: str) -> bool:
        """Whether it is a table of the reports, and not one that the summary makes of them."""
        return name not in FLAT and name != RUNS

    def rows(self, name: str) -> Rows:
        if name == RUNS:
            return self._run_rows()
        return (
            self._campaign_results.rows(name)
            if self.is_plain(name)
            else flat_rows(self._campaign_results.summary, name)
        )

    def _run_rows(self) -> Rows:
        from nsw.present.status_view import run_data

        jobs = self._campaign_results.jobs
        return [run_data(run, jobs) for run in self._campaign_results.runs]

    def parameters(self, name: str, rows: Rows) -> frozenset[str] | None:
        """The columns of the recipe's parameters in rows of the summary; None: they are of a table of the reports."""
        if self.is_plain(name):
            return None
        if name == RUNS:
            return frozenset(f"params.{key}" for key in self._campaign_results.parameters)
        columns = emit.columns_of(rows)
        names = self._campaign_results.parameters
        return frozenset(f"param_{key}" if f"param_{key}" in columns else key for key in names)

    def behind(self, name: str) -> EvidenceRows:
        """The rows of a table for a page, each with its case."""
        from nsw.present.page import EvidenceRows

        rows = self.rows(name) if name in table_names() else []
        if self.is_plain(name):
            cases = {run.id: run.case_id for run in self._campaign_results.runs}
            rows = [{"case": cases.get(row["run"])} | row for row in rows]
        if name == RUNS:
            rows = emit.flat(rows)
        return EvidenceRows(
            name, rows, f"nsw summarize {campaign_argument(self._campaign_results.folder)} --table {name}"
        )

    def tables_with_rows(self) -> Iterator[tuple[str, Rows]]:
        """Those that have rows, with them."""
        stored_tables = {path.stem for path in table_files(self._campaign_results.folder)}
        for name in table_names():
            rows = self.rows(name) if name in stored_tables or not self.is_plain(name) else []
            if rows or (name in stored_tables and self.is_plain(name)):
                yield name, rows


def _put_all(target: Target, tables: _Tables, note: str | None) -> None:
    """Every table as a file of its own in the folder; without a folder the only one."""
    if not target.is_folder:
        table_list = [
            name for name, _ in tables.tables_with_rows() if name != RUNS
        ]  # there always is one, asked for by its name
        if len(table_list) != 1:
            raise several(target.format, table_list)
        _put_table(target, table_list[0], tables.rows(table_list[0]), note)
        return
    target.folder()
    for name, nested in tables.tables_with_rows():
        rows = nested if target.format == "parquet" else emit.flat(nested)
        file = target.of_table(name)
        file.put_rows(rows, emit.columns_of(rows), note)
        say(f"{file.output}: {plural(len(rows), 'row')}")


def _put_table(
    target: Target, name: str, rows: Rows, note: str | None, parameters: Collection[str] | None = None
) -> None:
    from nsw.present.rows_view import show_rows
    from nsw.present.summary_view import rows_markdown
    from nsw.present.terminal import console

    if target.format not in {"json", "parquet"}:
        rows = emit.flat(rows)
    columns = emit.columns_of(rows)
    no_rows_message = f"{name}: no rows: nothing that was read of this campaign gave any"
    if name.endswith("_trace"):
        no_rows_message += "; of one report, `nsw read FILE --table " + name + "` has them"

    def show() -> None:
        if target.format == "markdown":
            sys.stdout.write(rows_markdown(name, rows, columns, note))
            return
        if target.format == "html":
            sys.stdout.write(_page_of_table(name, rows, note))
            return
        out = console()
        if note:
            out.print(note, style="yellow")
        if rows:
            show_rows(out, name, rows, columns, table_name=name, parameters=parameters, keep=("run",))
        else:
            out.print(no_rows_message)

    if target.is_of_rows:
        if not rows:
            tell(no_rows_message)
        target = target.of_table(name)
    target.put_data(rows, columns, data=lambda: {"table": name, "note": note, "rows": rows}, show=show, note=note)


def _page_of_table(name: str, rows: Rows, note: str | None) -> str:
    from nsw.analysis.blocks import Note
    from nsw.present.page import EvidenceRows, page

    notes = [Note("note", note)] if note else []
    return page(name, notes, behind=[EvidenceRows(name, rows, f"nsw summarize --table {name}")])


def _page(campaign_results: Results, tables: _Tables, timeline: str | None) -> str:
    """The answer as a page, with the rows that its blocks name as their evidence."""
    from nsw.analysis.answer.registry import blocks_of
    from nsw.campaign.compare import measured_conditions
    from nsw.present.page import page

    folder, blocks = campaign_results.folder, list(blocks_of(campaign_results.summary))
    if SIDE in campaign_results.parameters:
        blocks = _with_verdict(folder, blocks)
    recipe = locked_recipe(folder)
    if timeline is not None:
        blocks.append(_timeline(campaign_results, timeline))
    return page(
        f"{folder.id} on site {campaign_results.site}",
        blocks,
        behind=[tables.behind(name) for name in dict.fromkeys(proof.table for b in blocks for proof in b.evidence)],
        conditions=[(folder.id, {"recipe": recipe.name, **measured_conditions(folder, campaign_results, recipe)})],
        commands=[
            f"nsw run {shlex.quote(str(folder.recipe))} --site {campaign_results.site}",
            f"nsw summarize {campaign_argument(folder)} --full",
        ],
    )


def _with_verdict(folder: CampaignFolder, blocks: list[Block]) -> list[Block]:
    """The verdict over both sides of a campaign in place of its first screen, and what is behind that."""
    from nsw.analysis.compared_screen import blocks_of_comparison
    from nsw.analysis.first_screen import HEADLINE
    from nsw.analysis.single_case import TABLE
    from nsw.campaign.compare import compare_own_sides

    both = compare_own_sides(folder)
    if both is None:
        return blocks
    return [*blocks_of_comparison(both), *(block for block in blocks if block.name not in {HEADLINE, TABLE})]


def _plot(campaign_results: Results, name: str | None) -> str:
    """A plot of the answer; the timeline is read from a report when it is asked for."""
    from nsw.analysis.answer.registry import blocks_of
    from nsw.analysis.iteration_lanes import TIMELINE
    from nsw.present.plots import plot_of

    if name != TIMELINE:
        return plot_of(blocks_of(campaign_results.summary), name)
    timeline = campaign_results.timeline()
    if timeline is None:
        raise UsageError("there is no plot timeline: no report of a timeline with iterations was read")
    return plot_of([timeline], name)


def _timeline(campaign_results: Results, case: str) -> Block:
    """One iteration of a case, as a block of the whole campaign: it was asked for.

    Raises:
        UsageError: No timeline of this case tells of iterations.
    """
    lanes = campaign_results.timeline(case)
    if lanes is None:
        cases = dict.fromkeys(run.case_id for run in campaign_results.runs)
        hint = did_you_mean(case, cases) or "`nsw summarize --table iterations` lists the runs that have one"
        raise UsageError(f"--timeline {case}: no timeline with iterations of such a case", hint=hint)
    return replace(lanes, case=None)


def _show(folder: CampaignFolder, summary: Summary, format: str, *, full: bool) -> None:
    from nsw.present import summary_view
    from nsw.present.terminal import console

    if format == "json":
        emit.as_json(summary_view.summary_data(summary))
        return
    if format == "markdown":
        sys.stdout.write(summary_view.summary_markdown(summary))
        return
    out = console()
    if full:
        out.print(f"{folder.id} on site {summary.site}", style="bold")
    summary_view.show_summary(
        out, summary, full=full, next_command=f"`nsw summarize {campaign_argument(folder)} --full` has all tables"
    )
