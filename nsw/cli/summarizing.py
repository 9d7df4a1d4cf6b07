"""`nsw summarize`, `report`, `export`: what a campaign shows, for people, as a page, as tables, for other programs."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from nsw.analysis.blocks import Block, Finding, Note
from nsw.apart import Limits, can_fork, run_isolated
from nsw.campaign.answers import Results, results
from nsw.campaign.selection import (
    RunsOption,
    Selection,
    absent_reports,
    brief_campaign_argument,
    campaign_and_runs,
    campaign_argument,
    recipe_argument,
)
from nsw.cli.application import command
from nsw.cli.options import CampaignAndRuns, Plot, PlotTarget, ReadingLimits, Yes, option
from nsw.cli.output import Folder, Target, output_path, print_newest, print_on_stderr, several_tables_error
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import table_files
from nsw.errors import Exit, UsageError, did_you_mean, writing_to
from nsw.present import emit
from nsw.present.emit import FLAT, OF_A_CASE, flat_rows
from nsw.present.untrusted_text import print_untrusted
from nsw.quantities import size
from nsw.recipe.matrix import SIDE
from nsw.safe_files import open_output
from nsw.tables import TABLES
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.summary import Summary
    from nsw.campaign.anonymous import Names
    from nsw.engine.folder import CampaignFolder
    from nsw.present.page import EvidenceRows
    from nsw.present.perfetto import PerfettoTrace

Rows = list[dict[str, Any]]
PROPOSAL: Final = "proposal"
# tables that end where their rows take the recipe's `cover` of the time -> those with all rows
_WHOLE_TABLES: Final[Mapping[str, str | None]] = {"hotspots": "gpu_summary", "api": "api_summary", "functions": None}
# tables without rows: what they are of, and where else a person may look
_MADE_FROM: Final[Mapping[str, str]] = {
    "kernels": "counters (ncu), and none were read; times of kernels: `--table hotspots`, `--table gpu_summary`",
    "roofline": "counters (ncu, metrics: [roofline]), and none were read",
    "hotspots": "timelines (nsys), and none was read; kernels by their counters: `--table kernels`",
    "api": "timelines (nsys), and none was read",
    "copies": "timelines (nsys), and none was read",
    "stragglers": "timelines of four ranks or more that meet in collectives, and none was read",
    "functions": "passes `host`, and none was read",
    "bandwidth": "traces of PyTorch's profiler (`- host: {tool: torch}`) with sizes of messages, and none was read",
    "iteration_times": "timelines (nsys) in which something repeats, and none was read",
    "scaling": "a recipe's `report: scaling`, or GPUs that vary",
    "compare": "a recipe's `report: compare`",
    "model": "a recipe's `report: model`",
}
RUNS = "runs"  # a row a run; its parameters are the fields of one column
_LARGE: Final = 200_000_000  # bytes that a browser takes long to open
_PAGE: Final = "answer.html"
_README: Final = """What nsw measured, without names of people, machines and folders.

answer.html   open it in a browser; it loads nothing from elsewhere
answer.md     the same as text
answer.json   the same as data (`nsw schema answers` describes it)
tables.csv    the tables, how many rows each has, what a row is
tables/       a CSV file each; in Python:

    import pandas, zipfile
    with zipfile.ZipFile("FILE.zip") as share:
        hotspots = pandas.read_csv(share.open("tables/hotspots.csv"))

user1, host1, account1, partition1 and GPU-1 stand for names, the same wherever they are.
"""


HideKernels = Annotated[
    bool,
    option("--hide-kernels", help="Name your kernels (`kernel 1`) and NVTX ranges by number; libraries' keep theirs."),
]
Rename = Annotated[
    list[str] | None,
    option(
        "--rename",
        metavar="OLD=NEW",
        help="Write NEW for OLD in what is shared; WORD=WORD lets it stay. May be repeated.",
    ),
]


@command("nsw summarize --table hotspots -o hotspots.csv")
def summarize(
    which: CampaignAndRuns,
    table: Annotated[
        str | None,
        option(
            "--table",
            help="One table as rows: hotspots (GPU operations by time, the largest), gpu_summary (all, each run),"
            " kernels (their counters), scaling, compare, roofline, api, copies, iteration_times and figures (a row a"
            " case; `nsw query` has a row a run), functions, model, stragglers ...",
        ),
    ] = None,
    top: Annotated[
        int | None,
        option(
            "--top",
            min=1,
            help="With --table: so many rows, of each case in hotspots, kernels, roofline, api, copies, functions and"
            " stragglers, of each run in tables of reports.",
        ),
    ] = None,
    full: Annotated[bool, option("--full", help="All findings and tables; on a terminal through PAGER.")] = False,
    figure: Annotated[
        str | None, option("--figure", metavar="NAME", help="Compare cases by this figure, not by the recipe's.")
    ] = None,
    plot: Plot = None,
    *,
    target: PlotTarget,
    limits: ReadingLimits,
) -> int:
    """Print the answer of a campaign: what was found, a table, what to try."""
    if top is not None and table is None:
        raise UsageError("--top needs --table", hint="`nsw summarize --table hotspots --top 3`")
    target.check_plot(plot)
    if target.is_of_plot and table is not None:
        raise UsageError("--table prints rows, and no plot", hint="`nsw summarize --plot NAME -o plot.svg`")
    names = table_names()
    if table is not None and table not in names:
        raise UsageError(f"there is no table {table}", hint=did_you_mean(table, names) or f"tables: {', '.join(names)}")
    return _put_answer_safely(
        *_campaign_and_runs(which), limits, table=table, target=target, top=top, full=full, plot=plot, figure=figure
    )


@command("nsw report alexnet-scaling-20261121 -o answer.html")
def report(
    which: CampaignAndRuns,
    output: Annotated[
        Path | None,
        option("--output", "-o", help="File to write; default: CAMPAIGN.html in this folder.", parser=output_path),
    ] = None,
    timeline: Annotated[
        str | None,
        option("--timeline", metavar="CASE", help="Also draw one iteration of this case, whose report is read for it."),
    ] = None,
    proposal: Annotated[
        bool,
        option("--proposal", help="Also the scaling figure for a proposal: efficiency, GPU-hours; -o F.svg: it alone."),
    ] = False,
    anonymous: Annotated[
        bool, option("--anonymous", help="Without paths, users, hosts, arguments: as the page in `nsw export --share`.")
    ] = False,
    hide_kernels: HideKernels = False,
    rename: Rename = None,
    *,
    limits: ReadingLimits,
) -> int:
    """Write the answer of a campaign as a page: one HTML file with plots, tables and conditions."""
    folder, selection = _campaign_and_runs(which)
    if anonymous:
        if timeline or selection or proposal:
            raise UsageError(
                "--anonymous takes the whole campaign, without --timeline, --proposal and --case",
                hint="leave them out: reports, which timelines are read from, are not shared",
            )
        renames = _parse_renames(rename)
        share = partial(
            _share_campaign, folder, output, page_alone=True, hide=hide_kernels, renames=renames, dry_run=False
        )
        return answer_apart(folder, limits, share, "report")
    if hide_kernels or rename:
        raise UsageError("--hide-kernels and --rename belong to --anonymous")
    file = output or Path(f"{folder.id}.html")
    form = "svg" if proposal and file.suffix == ".svg" else "html"
    return _put_answer_safely(
        folder, selection, limits, target=Target(form, file), full=True, timeline=timeline, proposal=proposal
    )


def _campaign_and_runs(which: RunsOption) -> tuple[CampaignFolder, Selection]:
    """The campaign and its runs; of a command that names none the campaign is printed."""
    word, named, *_ = which
    folder, selection = campaign_and_runs(which)
    if named is None and (word is None or word in selection.only):
        print_newest(folder)
    return folder, selection


def _put_answer_safely(folder: CampaignFolder, selection: Selection, limits: Limits, **answer_options: Any) -> int:
    """The answer, of a campaign of somebody else made in a process with limits; 1 when some runs failed."""
    return answer_apart(folder, limits, partial(_put_answer, folder, selection, **answer_options))


def answer_apart(folder: CampaignFolder, limits: Limits, answer: Callable[[], int], command: str = "summarize") -> int:
    """What `answer` returns, called in a process with limits if the campaign is somebody else's.

    Args:
        folder: The campaign.
        limits: Memory and time that reading may take.
        answer: Prints the answer and returns the exit code.
        command: The command that takes larger limits, for a hint.
    """
    folder.limits = limits
    if not can_fork() or folder.trusted:
        return answer()
    length = sum(path.lstat().st_size for path in table_files(folder))  # all at once: Arrow is loaded but once
    command_limits = replace(limits, command=f"nsw {command} {folder.id}")
    return run_isolated(answer, subject=f"reading {folder.path}", size=length, limits=command_limits)


def _put_answer(
    folder: CampaignFolder, selection: Selection, *, target: Target, table: str | None = None, top: int | None = None,
    full: bool = False, plot: str | None = None, timeline: str | None = None, figure: str | None = None,
    proposal: bool = False,
) -> int:  # fmt: skip
    with results(folder, selection, figure) as campaign_results:
        note, code = campaign_results.note, Exit.GOOD if campaign_results.is_good() else Exit.SOME_FAILED
        tables = _Tables(campaign_results)
        if table is not None:
            group_column = "run" if tables.is_report_table(table) else "case" if table in OF_A_CASE else None
            rows = tables.rows(table)
            kernels: dict[str | None, Sequence[KernelRow]] = {}
            if table == "kernels":
                kernels |= {case.id: case.kernels for case in campaign_results.summary.cases}
            _put_table(
                target, table, first_rows(rows, top, group_column), note, parameters=tables.parameters(table, rows),
                among=tables.rows_to_number_among(table, rows), cut=tables.cut_note(table), kernels=kernels,
            )  # fmt: skip
            return Exit.GOOD if tables.is_report_table(table) else code
        if target.is_of_rows:
            _put_all_tables(target, tables, note)
            return code
        if target.is_of_plot:
            target.put_plot(_answer_plot(campaign_results, PROPOSAL if proposal else plot))
            return code
        summary = campaign_results.summary
        with_sides = SIDE in campaign_results.parameters and not selection and figure is None
        if target.format == "html":
            text = _answer_page(campaign_results, tables, timeline, proposal=proposal)
            with target.stdout_to_output():
                sys.stdout.write(text)
            return code
        drawable_cases = campaign_results.drawable_cases if not full and target.format == "table" else []
    with target.stdout_to_output():
        _show_answer(folder, summary, target.format, full=full, with_sides=with_sides, drawable_cases=drawable_cases,
                     selected=selection.options)  # fmt: skip
    return code


def first_rows(rows: Rows, top: int | None, group_column: str | None) -> Rows:
    """The first rows for each value of a column.

    Args:
        rows: All rows.
        top: How many rows of each value; None: all.
        group_column: The column; None: the rows are one group.
    """
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


def table_names() -> list[str]:
    """What --table takes: the summary's tables, then those of the reports."""
    return list(dict.fromkeys((*FLAT, RUNS, *TABLES)))


class _Tables:
    """The tables of a campaign, of some cases or of all, made when they are asked for."""

    def __init__(self, campaign_results: Results) -> None:
        self._campaign_results = campaign_results

    @staticmethod
    def is_report_table(name: str) -> bool:
        """Whether it is a table of the reports, and not one that the summary makes of them."""
        return name not in FLAT and name != RUNS

    def rows(self, name: str) -> Rows:
        if name == RUNS:
            from nsw.present.status_view import run_data

            jobs = self._campaign_results.jobs
            return [run_data(run, jobs) for run in self._campaign_results.runs]
        return (
            self._campaign_results.rows(name)
            if self.is_report_table(name)
            else flat_rows(self._campaign_results.summary, name)
        )

    def rows_to_number_among(self, name: str, rows: Rows) -> Rows:
        """All rows that those of a table are the largest of, by which kernels of one short name are numbered."""
        if name != "hotspots":
            return rows
        cases = self._campaign_results.summary.cases
        return [{"case": case.id, "name": s.name, "short_name": s.short_name} for case in cases for s in case.gpu_work]

    def cut_note(self, name: str) -> str | None:
        """Where a table of the summary ends, and which table has all; None: it has all."""
        cover = 100 * self._campaign_results.summary.cover if name in _WHOLE_TABLES else 100.0
        whole_table = _WHOLE_TABLES.get(name)
        has_all = f"; `--table {whole_table}` has all, of each run with its set-up" if whole_table else ""
        return f"{name}: the largest that take {cover:.0f} % of the time of a case{has_all}" if cover < 100 else None

    def parameters(self, name: str, rows: Rows) -> frozenset[str] | None:
        """The columns of the recipe's parameters in rows of the summary; None: they are of a table of the reports."""
        if self.is_report_table(name):
            return None
        if name == RUNS:
            return frozenset(f"params.{key}" for key in self._campaign_results.parameters)
        columns = emit.columns_of(rows)
        names = self._campaign_results.parameters
        return frozenset(f"param_{key}" if f"param_{key}" in columns else key for key in names)

    def evidence_rows(self, name: str) -> EvidenceRows:
        """The rows of a table for a page, each with its case."""
        from nsw.present.page import EvidenceRows

        rows = self.rows(name) if name in table_names() else []
        if self.is_report_table(name):
            cases = {run.id: run.case_id for run in self._campaign_results.runs}
            rows = [{"case": cases.get(row["run"])} | row for row in rows]
        if name == RUNS:
            rows = emit.flatten_cells(rows)
        return EvidenceRows(
            name, rows, f"nsw summarize {campaign_argument(self._campaign_results.folder)} --table {name}"
        )

    def tables_with_rows(self) -> Iterator[tuple[str, Rows]]:
        """Those that have rows, with them."""
        stored_tables = {path.stem for path in table_files(self._campaign_results.folder)}
        for name in table_names():
            rows = self.rows(name) if name in stored_tables or not self.is_report_table(name) else []
            if rows or (name in stored_tables and self.is_report_table(name)):
                yield name, rows


def _put_all_tables(target: Target, tables: _Tables, note: str | None) -> None:
    """Write each table to its own file in the folder; without a folder, the only table."""
    if not target.is_folder:
        # runs always have rows, and conditions nearly always: both are asked for by name
        table_list = [name for name, _ in tables.tables_with_rows() if name not in (RUNS, "conditions")]
        if len(table_list) != 1:
            raise several_tables_error(target.format, table_list)
        _put_table(target, table_list[0], tables.rows(table_list[0]), note)
        return
    target.folder()
    for name, nested in tables.tables_with_rows():
        rows = nested if target.format == "parquet" else emit.flatten_cells(nested)
        target.of_table(name).put_rows(rows, emit.columns_of(rows), note)


def _put_table(
    target: Target, name: str, rows: Rows, note: str | None, parameters: Collection[str] | None = None,
    among: Sequence[dict[str, Any]] = (), cut: str | None = None,
    kernels: Mapping[str | None, Sequence[KernelRow]] | None = None,
) -> None:  # fmt: skip
    from nsw.present.rows_view import show_rows
    from nsw.present.summary_view import rows_markdown, show_counters_behind_findings
    from nsw.present.terminal import console

    if target.format not in {"json", "parquet"}:
        rows = emit.flatten_cells(rows)
    columns = emit.columns_of(rows)
    origin = _MADE_FROM.get(name)
    why = f"it is made of {origin}" if origin else "nothing that was read of this campaign gave any"
    no_rows_message = f"{name}: no rows: {why}"
    if name.endswith("_trace"):
        no_rows_message += "; of one report, `nsw read FILE --table " + name + "` has them"

    def show() -> None:
        if target.format == "markdown":
            sys.stdout.write(rows_markdown(name, rows, columns, note))
            return
        if target.format == "html":
            sys.stdout.write(_table_page(name, rows, note))
            return
        out = console()
        if note:
            out.print(note, style="yellow")
        if rows:
            show_rows(out, name, rows, columns, table_name=name, parameters=parameters, keep=("run",), explain=True,
                      among=among)  # fmt: skip
            if cut:
                out.print(cut, style="dim")
            show_counters_behind_findings(out, kernels or {})
        else:
            out.print(no_rows_message)

    if target.is_of_rows:
        if cut and rows:
            print_on_stderr(cut)
        if not rows:
            print_on_stderr(no_rows_message)
        target = target.of_table(name)
    target.put_data(rows, columns, data=lambda: {"table": name, "note": note, "rows": rows}, show=show, note=note)


def _table_page(name: str, rows: Rows, note: str | None) -> str:
    from nsw.present.page import EvidenceRows, page

    notes = [Note("note", note)] if note else []
    return page(name, notes, behind=[EvidenceRows(name, rows, f"nsw summarize --table {name}")])


def _answer_page(campaign_results: Results, tables: _Tables, timeline: str | None, *, proposal: bool) -> str:
    """The answer as a page, with the rows that its blocks name as their evidence."""
    from nsw.analysis.answer.registry import answer_blocks
    from nsw.campaign.compare import measured_conditions
    from nsw.present.page import page

    folder, blocks = campaign_results.folder, list(answer_blocks(campaign_results.summary))
    if SIDE in campaign_results.parameters:
        blocks = _add_verdict(folder, blocks)
    recipe = locked_recipe(folder)
    if timeline is not None:
        blocks.append(_timeline_block(campaign_results, timeline))
    elif campaign_results.is_recorded and folder.trusted:  # small reports, and a reader who is to see what a page has
        blocks += _first_timeline_blocks(campaign_results, blocks)
    if proposal:
        from nsw.campaign.modelling import proposal_of

        blocks.append(proposal_of(campaign_results))
    return page(
        f"{folder.id} on site {campaign_results.site}",
        blocks,
        behind=[
            tables.evidence_rows(name) for name in dict.fromkeys(proof.table for b in blocks for proof in b.evidence)
        ],
        conditions=[(folder.id, {"recipe": recipe.name, **measured_conditions(folder, campaign_results, recipe)})],
        commands=[
            f"nsw run {recipe_argument(folder)} --site {campaign_results.site}",
            f"nsw summarize {campaign_argument(folder)} --full",
        ],
    )


def _add_verdict(folder: CampaignFolder, blocks: list[Block]) -> list[Block]:
    """Replace the first screen of a campaign with two sides by the verdict over both, and its evidence."""
    from nsw.analysis.compared_screen import comparison_blocks
    from nsw.analysis.first_screen import HEADLINE
    from nsw.analysis.single_case import TABLE
    from nsw.campaign.compare import compare_own_sides

    both = compare_own_sides(folder)
    if both is None:
        return blocks
    return [*comparison_blocks(both), *(block for block in blocks if block.name not in {HEADLINE, TABLE})]


def _answer_plot(campaign_results: Results, name: str | None) -> str:
    """A plot of the answer; the timeline is read from a report when it is asked for."""
    from nsw.analysis.answer.registry import answer_blocks
    from nsw.analysis.iteration_lanes import TIMELINE
    from nsw.present.plots import plot_of

    if name == PROPOSAL:
        from nsw.campaign.modelling import proposal_of

        return plot_of([proposal_of(campaign_results)], name)
    if name != TIMELINE:
        return plot_of(answer_blocks(campaign_results.summary), name, [TIMELINE])
    timeline = campaign_results.timeline()
    if timeline is None or not timeline.rows:
        raise _unread_timeline_error(campaign_results, "--plot timeline") or UsageError(
            "there is no plot timeline: no report of a timeline with iterations was read"
        )
    return plot_of([timeline], name)


def _timeline_block(campaign_results: Results, case: str) -> Block:
    """One iteration of a case, as a block of the whole campaign: it was asked for.

    Raises:
        UsageError: No timeline of this case tells of iterations.
    """
    lanes = campaign_results.timeline(case)
    if lanes is None:
        cases = dict.fromkeys(run.case_id for run in campaign_results.runs)
        option = campaign_argument(campaign_results.folder)
        if case in cases and (fault := _unread_timeline_error(campaign_results, f"--timeline {case}")) is not None:
            raise fault
        if case in cases:
            hint = f"`nsw problems {option}` says what is wrong with its reports"
            raise UsageError(f"--timeline {case}: no timeline of it with iterations can be read here", hint=hint)
        hint = did_you_mean(case, cases) or f"`nsw summarize {option} --table iterations` lists the runs that have one"
        raise UsageError(f"--timeline {case}: there is no such case", hint=hint)
    return replace(lanes, case=None)


def _first_timeline_blocks(campaign_results: Results, blocks: Iterable[Block]) -> list[Block]:
    """One iteration of the case that the first finding is about, or a line that says why none is drawn."""
    first = next((block for block in blocks if isinstance(block, Finding) and block.cases), None)
    if first is None:
        return []
    case = first.cases[0 if first.cause else -1]  # a finding without a cause compares: from its first case to its last
    try:
        return [_timeline_block(campaign_results, case)]
    except UsageError as fault:
        reason = fault.message.partition(": ")[2]
        return [Note("timeline", f"No iteration of {case} is drawn: {reason}.", tone="warning")]


def _unread_timeline_error(campaign_results: Results, option_text: str) -> UsageError | None:
    """What is wrong with the reports that timelines are read from, or that none is here; None: neither."""
    for message, fix in campaign_results.trace_errors:
        return UsageError(f"{option_text}: its report {message}", hint=fix)
    if not campaign_results.lacks_timelines:
        return None
    reason, hint = absent_reports(campaign_results.folder)
    return UsageError(f"{option_text}: {reason}", hint=hint)


def _show_answer(
    folder: CampaignFolder, summary: Summary, format: str, *, full: bool, with_sides: bool,
    drawable_cases: Sequence[str] = (), selected: str = "",
) -> None:  # fmt: skip
    from nsw.cli.running import show_sides
    from nsw.present import summary_view
    from nsw.present.terminal import console, page_output

    if format == "json":
        emit.as_json(summary_view.summary_data(summary))
        return
    if format == "markdown":
        sys.stdout.write(summary_view.summary_markdown(summary))
        return
    out = console()
    if full:
        with page_output(out):
            out.print(f"{folder.id} on site {summary.site}", style="bold")
            summary_view.show_summary(out, summary, full=True)
        return
    name = brief_campaign_argument(folder)
    next_command = f"`nsw summarize {name}{selected} --full` has all tables and findings"
    if not with_sides or not show_sides(folder, next_command):
        summary_view.show_summary(
            out,
            summary,
            full=False,
            next_command=next_command,
            campaign=name,
            drawable_cases=drawable_cases,
            selected=selected,
        )


# --- nsw export --------------------------------------------------------------------------------------------


@command("nsw export --trace timeline.pftrace")
def export(
    which: CampaignAndRuns,
    trace: Annotated[
        Path | None,
        option("--trace", metavar="FILE", help="The timelines, for https://ui.perfetto.dev; its size is shown first."),
    ] = None,
    ranks: Annotated[list[int] | None, option("--rank", help="With --trace: only this rank; may be repeated.")] = None,
    step: Annotated[
        str | None,
        option("--step", metavar="N", help="With --trace: only this iteration, or these: 5-7; the first of all is 0."),
    ] = None,
    csv: Annotated[Path | None, option("--csv", metavar="FOLDER", help="All tables, a CSV file each.")] = None,
    parquet: Annotated[
        Path | None, option("--parquet", metavar="FOLDER", help="All tables, a Parquet file each.")
    ] = None,
    sqlite: Annotated[
        Path | None,
        option("--sqlite", metavar="FILE", help="The tables of `nsw query` as a database; `columns` has the units."),
    ] = None,
    share: Annotated[
        Path | None,
        option("--share", metavar="FILE.zip", help="Answer, page and tables for others, without names of people."),
    ] = None,
    hide_kernels: HideKernels = False,
    rename: Rename = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="With --share: list what would go, under which names, and what stays.")
    ] = False,
    yes: Yes = False,
    *,
    limits: ReadingLimits,
) -> int:
    """Write what a campaign measured: timelines for Perfetto, tables as CSV, Parquet, SQLite, an answer to share."""
    if sum(target is not None for target in (trace, csv, parquet, sqlite, share)) != 1:
        raise UsageError(
            "nsw export needs one of: --trace FILE, --csv FOLDER, --parquet FOLDER, --sqlite FILE, --share FILE.zip",
            hint="`nsw export --trace timeline.pftrace`, `nsw export --csv tables/`",
        )
    if share is None and (hide_kernels or rename or dry_run):
        raise UsageError("--hide-kernels, --rename and --dry-run belong to --share")
    if share is not None:
        folder, selection = _campaign_and_runs(which)
        if ranks or step or selection:
            raise UsageError("--share takes the whole campaign, without --case, --rank and --step")
        renames = _parse_renames(rename)
        task = partial(
            _share_campaign, folder, share, page_alone=False, hide=hide_kernels, renames=renames, dry_run=dry_run
        )
        return answer_apart(folder, limits, task, "export")
    if trace is None and (ranks or step):
        raise UsageError("--rank and --step belong to --trace")
    if trace is not None:
        return _export_trace(which, trace, limits, ranks=ranks, steps=_parse_steps(step), yes=yes)
    if sqlite is not None:
        return _export_sqlite(which, sqlite, limits)
    target = Target("csv", Folder(csv)) if csv is not None else Target("parquet", Folder(parquet or ""))
    return _put_answer_safely(*_campaign_and_runs(which), limits, target=target)


def _export_sqlite(which: RunsOption, file: Path, limits: Limits) -> int:
    from nsw.api.combined import CombinedTables, write_sqlite

    folder, selection = _campaign_and_runs(which)
    folder.limits = limits
    written = write_sqlite(CombinedTables([folder], selection), file)
    print_untrusted(f"{file}: {plural(len(written), 'table')}, {plural(sum(written.values()), 'row')}")
    return Exit.GOOD


def _parse_renames(words: Collection[str] | None) -> dict[str, str]:
    """The old and the new names that --rename gives.

    Raises:
        UsageError: It names no OLD.
    """
    pairs = [word.partition("=") for word in words or ()]
    if any(not old or not equals for old, equals, _ in pairs):
        raise UsageError("--rename: expected OLD=NEW", hint="such as --rename ada=user")
    return {old: new for old, _, new in pairs}


def _share_campaign(
    folder: CampaignFolder, file: Path | None, *, page_alone: bool, hide: bool, renames: dict[str, str], dry_run: bool
) -> int:
    """Write the page or the zip for others, from a copy of the campaign without private data.

    Args:
        folder: The campaign.
        file: The file to write; None: the copy's name.
        page_alone: Whether the file is the page.
        hide: Whether kernels and NVTX ranges are renamed too.
        renames: What is replaced by what.
        dry_run: Whether it is listed only.

    Raises:
        UsageError: A secret or a name would leave; nothing was written.
        NswError: The file cannot be written.
    """
    from nsw.campaign.anonymous import anonymous_copy, leaks_in, names_of, refuse_leaks, secrets_of, write_whole, zip_of
    from nsw.present.page import page

    names = names_of(folder, renames)
    with tempfile.TemporaryDirectory(prefix="nsw-share-") as temporary:
        copy = anonymous_copy(folder, Path(temporary), names, hide=hide)
        with results(copy) as campaign_results:
            tables = _Tables(campaign_results)
            items = _shared_items(campaign_results, tables, page_alone=page_alone)
    file = file or Path(f"{copy.id}.html")
    leaks = leaks_in(items, names, secrets_of(folder) | {temporary: "TMPDIR"}, frozenset(page("", []).splitlines()))
    if dry_run:
        for line in _list_shared_items(folder, items, names):
            print_untrusted(line)
    refuse_leaks(leaks)
    if dry_run:
        print_untrusted("no known secret, user or host name is in it; nothing was written")
        return Exit.GOOD
    data = items[_PAGE] if page_alone else zip_of(items)
    write_whole(file, data)
    print_untrusted(f"{file}: {size(len(data))}; look at it before you pass it on")
    return Exit.GOOD


def _shared_items(campaign_results: Results, tables: _Tables, *, page_alone: bool) -> dict[str, bytes]:
    """The files for others by name."""
    from nsw.present import summary_view

    items = {_PAGE: _answer_page(campaign_results, tables, None, proposal=False)}
    if not page_alone:
        summary = campaign_results.summary
        with redirect_stdout(io.StringIO()) as answer:
            emit.as_json(summary_view.summary_data(summary))
        items |= {"answer.json": answer.getvalue(), "answer.md": summary_view.summary_markdown(summary)}
        index = []
        for name, nested in tables.tables_with_rows():
            rows = emit.flatten_cells(nested)
            stream = io.StringIO()
            emit.write_csv(stream, rows, emit.columns_of(rows), head=True)
            items[f"tables/{name}.csv"] = stream.getvalue()
            is_plain = name in TABLES and name not in FLAT
            meaning = TABLES[name].meaning if is_plain else f"made of the tables of reports: {name}"
            index.append({"file": f"tables/{name}.csv", "rows": len(rows), "meaning": meaning})
        stream = io.StringIO()
        emit.write_csv(stream, index, ("file", "rows", "meaning"), head=True)
        items |= {"tables.csv": stream.getvalue(), "README.txt": _README}
    return {name: text.encode() for name, text in items.items()}


def _list_shared_items(folder: CampaignFolder, items: Mapping[str, bytes], names: Names) -> Iterator[str]:
    """What is shared, under which names, and what stays here, line by line."""
    from nsw.campaign.anonymous import kind_of
    from nsw.engine.tables import load_table

    yield "goes:"
    yield from (f"  {name}: {size(len(data))}" for name, data in items.items())
    yield "renamed:"
    yield from (f"  {names.kinds[old]} {old} -> {new}" for old, new in names.hosts.items())
    yield from (f"  {old} -> {new}" for old, new in names.hidden.items())
    yield "  paths -> their base names, GPUs -> GPU-1 ..."
    yield "stays here:"
    yield "  reports, traces, output, scripts, logs; the command, its arguments and environment; reasons of failures"
    for path in table_files(folder):
        table = load_table(folder, path.stem)
        columns = [] if table is None else table.column_names
        kinds = {column: kind_of(path.stem, column) for column in columns}
        if left := [column for column, kind in kinds.items() if kind in {None, "out"}]:
            yield f"  {path.stem}: {'all' if len(left) == len(columns) else ', '.join(left)}"
        yield from (f"  {path.stem}: {c}, in part" for c, kind in kinds.items() if kind in {"fact", "instruction"})


def _export_trace(
    which: RunsOption, file: Path, limits: Limits, *, ranks: Collection[int] | None, steps: tuple[int, int] | None,
    yes: bool,
) -> int:  # fmt: skip
    """Write the timelines of a campaign as a trace for Perfetto.

    Args:
        which: The campaign, and of which of its runs.
        file: The file.
        limits: What a process that reads reports may take.
        ranks: Only these ranks; None: all processes.
        steps: Only what is at work from the first of these iterations to the last; None: all.
        yes: Whether a large file is written without a question.

    Raises:
        UsageError: Nothing is left of what was chosen, or nobody said yes to a large file.
        CampaignError: The campaign was made elsewhere, and nsw acts not for it.
        NswError: The file cannot be written.
    """
    from nsw.cli.running import confirm

    folder, selection = _campaign_and_runs(which)
    folder.limits = limits
    with results(folder, selection) as campaign_results:
        trace = _perfetto_trace(campaign_results, ranks, steps)
    description = f"{file}: {plural(trace.events, 'event')}, {size(trace.size)}"
    print_on_stderr(description)
    if trace.size > _LARGE and not yes:
        alone = f"{description} is large for a browser, and there is no terminal to confirm it on; nothing was written"
        confirm("This is large for a browser. Write it?", alone, "nothing was written")
    with writing_to(file), os.fdopen(open_output(file), "wb") as stream:
        stream.writelines(trace.packets)
    print_untrusted(f"{file}: open it with https://ui.perfetto.dev, which keeps it in the browser")
    return Exit.GOOD


def _parse_steps(text: str | None) -> tuple[int, int] | None:
    """The first and the last of the iterations in `5` or `5-7`.

    Raises:
        UsageError: It is neither.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise UsageError(f"--step {text}: expected an iteration or a range of them", hint="such as 5, or 5-7")
    return int(match[1]), int(match[2] or match[1])


def _perfetto_trace(
    campaign_results: Results, ranks: Collection[int] | None, steps: tuple[int, int] | None
) -> PerfettoTrace:
    """The chosen timelines; a run is let go once it is in the trace."""
    from nsw.analysis.timeline_tracks import COLLECTIVES, STEPS, TABLES_OF_TRACKS, select_trace_rows, timeline_tracks
    from nsw.present.perfetto import PerfettoTrace

    perfetto_trace = PerfettoTrace()
    kinds = [(run.case_id, run.pass_kind) for run in campaign_results.runs]
    known_ranks: set[int | None] = set()
    has_events = False
    for run, tables in campaign_results.traces(campaign_results.runs, (*TABLES_OF_TRACKS, STEPS, COLLECTIVES)):
        rows = [row for name in TABLES_OF_TRACKS for row in tables.get(name, ())]
        has_events = has_events or bool(rows)
        known_ranks |= {row.get("rank") for row in rows}
        is_only = kinds.count((run.case_id, run.pass_kind)) == 1
        name = run.case_id if is_only else run.id
        perfetto_trace.add(
            timeline_tracks(name, select_trace_rows(tables, ranks, steps) | {STEPS: tables.get(STEPS, ())})
        )
    if not has_events and (fault := _unread_timeline_error(campaign_results, "--trace")) is not None:
        raise fault
    if not perfetto_trace.events:
        raise _empty_trace_error(
            ranks, steps, sorted(rank for rank in known_ranks if rank is not None), has_events=has_events
        )
    return perfetto_trace


def _empty_trace_error(
    ranks: Collection[int] | None, steps: tuple[int, int] | None, known_ranks: list[int], *, has_events: bool
) -> UsageError:
    if not has_events:
        hint = "a pass `timeline` makes them; reports that stayed on the site come with `nsw fetch`"
        return UsageError("no report of a timeline is here, so there is nothing to write", hint=hint)
    if ranks and not known_ranks:
        return UsageError("--rank: the reports name no ranks", hint="leave it out: each process has tracks of its own")
    if ranks and not set(ranks) & set(known_ranks):
        names = ", ".join(map(str, known_ranks))
        return UsageError(f"--rank {' '.join(map(str, ranks))}: no such rank", hint=f"ranks: {names}")
    text = "-".join(str(step) for step in dict.fromkeys(steps or ()))
    return UsageError(
        f"--step {text}: no timeline has such an iteration",
        hint="`nsw summarize --table iterations` lists how many each has",
    )
