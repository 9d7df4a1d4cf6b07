"""`nsw status`, `watch`, `logs`, `problems`, `ls`: looking, without driving anything."""

from __future__ import annotations

import re
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsw.cli.application import command
from nsw.cli.options import (
    CampaignAndRuns,
    CampaignOption,
    ChosenCampaign,
    ChosenRuns,
    Root,
    TableTarget,
    argument,
    option,
    time_option,
)
from nsw.cli.output import print_on_stderr
from nsw.engine.ledger_rows import ENDED, BuildRow, RunRow, State, missing_results
from nsw.errors import Exit
from nsw.present.terminal import TextTable, console
from nsw.present.untrusted_text import clean_line, print_untrusted
from nsw.quantities import format_range, number, size
from nsw.wording import headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder

_NOTE = 36  # characters of a note in a list
_PROBLEM = ("run", "report", "severity", "message", "fix")


@command("nsw status --json")
def status(
    which: CampaignAndRuns,
    runs: Annotated[bool, option("--runs", help="List every run.")] = False,
    *,
    target: TableTarget,
) -> int:
    """Show the state of a campaign and what went wrong."""
    from nsw.campaign import status as states
    from nsw.present import status_view

    seen = states.status(which, every=runs or target.format != "table")
    builds = [status_view.build_data(build, seen.jobs, needed_by) for build, needed_by in seen.builds]
    head = {**seen.head, "builds": builds, **seen.progress}
    rows = [status_view.flat_run(run, seen.jobs) for run in seen.runs] if target.is_of_rows else []
    target.put_data(
        rows,
        list(rows[0]) if rows else status_view.RUN_COLUMNS,
        data=lambda: {
            **head,
            "counts": seen.counts,
            "runs": [status_view.run_data(run, seen.jobs) for run in seen.runs],
            "problems": [dict(zip(_PROBLEM, problem, strict=True)) for problem in seen.problems],
        },
        show=lambda: status_view.show_status(
            console(),
            head,
            seen.counts,
            seen.runs,
            seen.problems,
            seen.jobs,
            every_run=runs or seen.chosen,
            looks=seen.looks,
        ),
        note=head["note"],
    )
    return Exit.GOOD


@command("nsw problems --format csv -o problems.csv")
def problems(which: CampaignAndRuns, target: TableTarget) -> int:
    """List all problems of a campaign's reports, and what to do."""
    from nsw.campaign.status import problems_of
    from nsw.present.problems import show_problems

    folder, problem_rows, note = problems_of(which)
    rows = [dict(zip(_PROBLEM, p, strict=True)) for p in problem_rows]

    def show() -> None:
        if problem_rows:
            show_problems(console(), problem_rows)
        else:
            console().print(f"{folder.id}: no problem")

    target.put_data(rows, _PROBLEM, data=lambda: {"campaign": folder.id, "problems": rows}, show=show, note=note)
    return Exit.GOOD


@command("nsw watch alexnet-scaling-20261121")
def watch(
    folder: ChosenCampaign,
    once: Annotated[bool, option("--once", help="Print the state once and exit.")] = False,
) -> int:
    """Show the live progress of a campaign, whether a nsw drives it or none; read-only."""
    from nsw.campaign.watch import Watching
    from nsw.engine.events import Started
    from nsw.present.status_view import Watch

    with Watching(folder, once=once) as watching:
        view = Watch(watching)
        try:
            for event in watching:
                if isinstance(event, Started):  # it looks anew: at the site, or at what another nsw writes
                    view.stop()
                    view = Watch(watching, watching.began)
                view.show(event)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        finally:
            view.stop()
        print_untrusted(f"{folder.id}: {headline(watching.counts())}")
        if watching.advice:
            print_on_stderr(watching.advice)
    return Exit.GOOD


@command("nsw ls --root /scratch/me/campaigns", name="ls")
def list_campaigns(
    root: Root = None,
    since: Annotated[
        str | None, option("--since", metavar="TIME", help="Only those that began so long ago at most, such as 30d.")
    ] = None,
    figure: Annotated[str | None, option("--figure", help="With this figure of each case: its median.")] = None,
    *,
    target: TableTarget,
) -> int:
    """List the campaigns."""
    from nsw.campaign import status as states

    parent, rows = states.list_campaigns(root, time_option("--since", since), figure)
    flat = [{**r, **{state: r.get("counts", {}).get(state, 0) for state in State}} for r in rows]
    columns = ("campaign", "site", "created", "runs", *map(str, State), "driven", "note", "problem")
    if figure is not None:
        columns = (*columns, "least", "most")
        flat = [row | {"least": _extreme_median(row, min), "most": _extreme_median(row, max)} for row in flat]
    show = partial(_show_campaigns, flat, parent, figure)
    target.put_data(flat, columns, data=lambda: {"campaigns": rows}, show=show)
    return Exit.GOOD


def _extreme_median(row: Mapping[str, Any], end: Callable[[Iterable[float]], float]) -> float | None:
    """The minimum or maximum of a campaign's medians of a figure."""
    return end(medians) if (medians := row.get("medians", {}).values()) else None


def _show_campaigns(rows: Iterable[dict[str, Any]], root: Path, figure: str | None) -> None:
    out = console()
    rows = list(rows)
    columns = ["campaign", "site", "begun", "runs"]
    cells = [
        {**r, "begun": _local_time(r.get("created")), "runs": "-" if r.get("problem") else _status_text(r)}
        for r in rows
    ]
    if rows and Path(rows[0]["folder"]).parent != root.absolute().resolve():
        out.print(f"no campaign under {root}; those elsewhere, by their folders, which commands take as names:")
        for cell in cells:
            cell["campaign"] = cell["folder"]
    if figure is not None:
        columns.append(figure)
        for cell in cells:
            lowest, highest = cell["least"], cell["most"]
            cell[figure] = number(lowest) if lowest == highest else format_range(lowest, highest)
    if any(row.get("note") for row in rows):
        columns.append("note")
        for cell in cells:
            note = cell.get("note") or ""
            cell["note"] = textwrap.shorten(note, _NOTE, placeholder=" ...") if out.is_terminal else note
    if cells:
        shown = ([c.get(name) for name in columns] for c in cells)
        out.print(TextTable(None, columns, shown, wide="runs", droppable=("note", "site")))
        for row in rows:
            if row.get("problem"):
                out.print(f"{row['campaign']}: {row['problem']}", style="yellow")
    else:
        out.print(f"no campaign under {root}")
    from nsw.engine import folder as folders

    for path in folders.without_ledgers(root):
        out.print(f"not listed: {path} has tables, and no {folders.LEDGER}", style="yellow")


def _status_text(row: Mapping[str, Any]) -> str:
    """The states of its runs, and whether an nsw drives it."""
    from nsw.present.status_view import driver_state_text

    driven = f", {driver_state_text(row['counts'])}" if row["driven"] else ""
    return headline(row["counts"], row["incomplete"], row["unreadable"]) + driven


def _local_time(created: str | None) -> str | None:
    """A moment as the clock on the wall shows it."""
    if created is None:
        return None
    from datetime import datetime

    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


# --- nsw logs ----------------------------------------------------------------------------------------------

_LONGEST = 1 << 16  # characters of a line that are shown
_MOST_LINES = 2_000_000  # that are shown: the rest of a file takes gigabytes as texts
_AT_ONCE = 10_000  # lines that are printed at once
_BREAK = re.compile(r"\r\n|[\r\n]")


@command("nsw logs gpus-2_batch-8.timeline.r1 --lines 0")
def logs(
    run: Annotated[
        str | None,
        argument(
            help="Run or build: its id or a part that only one has, its case, parameters, pass, a pattern, a job id;"
            " the one that failed if not given, also of a campaign that is named."
        ),
    ] = None,
    campaign: CampaignOption = None,
    root: Root = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Number of last lines; 0 prints all.")] = 40,
    follow: Annotated[bool, option("--follow", "-f", help="Follow the output until the run ends.")] = False,
    *,
    selection: ChosenRuns,
) -> int:
    """Print the output, the errors and the outcome of a run."""
    from nsw.campaign.logs import find_row
    from nsw.campaign.selection import campaign_of_words

    folder, words = campaign_of_words([run] if run is not None else [], campaign, root)
    row = find_row(folder, words[0] if words else None, selection, follow=follow)
    if follow and row.state not in ENDED and folder.trusted:
        return _follow_output(folder, row, lines)
    from nsw.campaign.logs import Output

    out = console()
    out.print(_run_headline(folder, row), style="bold")
    if row.attempt == 0:
        out.print("it has not begun")
    with Output(folder, row) as output:
        for name in ("stdout", "stderr"):
            _show_last_lines(out, output.read_end(name), name, lines)
        _show_last_lines(out, output.job_log(), "job script", lines)
    for note in output.notes:
        out.print(note, style="dim")
    return Exit.GOOD


def _run_headline(folder: CampaignFolder, row: RunRow | BuildRow) -> str:
    from nsw.campaign.selection import campaign_option

    lacks = missing_results(row)
    reason = f"{lacks} (`nsw problems{campaign_option(folder)}`)" if lacks else row.reason
    reason_text = f", {reason}" if reason else ""
    return f"{row.id}: {row.state}{reason_text}" + (f", attempt {row.attempt}" if row.attempt > 1 else "")


def _show_last_lines(out: Any, content: bytes | None, name: str, lines: int) -> None:
    from nsw.campaign.logs import MOST_SHOWN

    if not content:
        return
    output = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n")
    lines = min(lines or _MOST_LINES, _MOST_LINES)
    count = output.count(b"\n") + 1
    omissions = [f"last {lines} of {count} lines"] if count > lines else []
    omissions += [f"its last {size(len(content))}"] if len(content) >= MOST_SHOWN else []
    out.print(f"--- {name}" + (f" ({' of '.join(omissions)})" if omissions else ""), style="dim")
    chosen = output.rsplit(b"\n", lines)[-lines:]
    for first in range(0, len(chosen), _AT_ONCE):
        print_untrusted("\n".join(clean_line(_shorten_line(line)) for line in chosen[first : first + _AT_ONCE]))


def _shorten_line(line: bytes) -> str:
    omitted = len(line) - _LONGEST
    return line[:_LONGEST].decode(errors="replace") + (f"… ({omitted:,} more bytes)" if omitted > 0 else "")


def _follow_output(folder: CampaignFolder, row: RunRow | BuildRow, lines: int) -> int:
    """Print what a run prints until it is over; later attempts of it are followed too."""
    from nsw.campaign.logs import Grown, LeftAlone, follow
    from nsw.campaign.selection import campaign_argument

    out = console()
    last_headline, attempt, printer = "", 0, _Lines(out.print, lines or None)
    try:
        for news in follow(folder, row):
            match news:
                case Grown():
                    if news.attempt != attempt:
                        attempt, printer = news.attempt, _Lines(out.print, lines or None)
                    printer.add(news.stream, news.content)
                case LeftAlone(over=over):
                    printer.end()
                    ending = "is over" if over else "is not over"
                    out.print(
                        f"{row.id} {ending}, and no nsw drives its campaign: `nsw resume {campaign_argument(folder)}`"
                    )
                case now:
                    if (text := _run_headline(folder, now)) == last_headline:
                        continue
                    if now.attempt != attempt or now.state in ENDED:
                        printer.end()
                    out.print(text, style="bold")
                    last_headline = text
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    printer.end()
    return Exit.GOOD


class _Lines:
    """Prints whole lines of several streams, each part under the name of its stream where that changes."""

    def __init__(self, print_line: Callable[..., object], first: int | None) -> None:
        self._print_line = print_line
        self._first = first
        self._rest: dict[str, str] = {}
        self._last = ""
        self._decoders: dict[str, Any] = {}

    def add(self, stream: str, content: bytes) -> None:
        """What came of a stream."""
        import codecs

        if not content:
            return
        decoder = self._decoders.get(stream)
        first = decoder is None
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
        *whole_lines, rest = _BREAK.split(self._rest.get(stream, "") + decoder.decode(content))
        if len(rest) > _LONGEST:
            whole_lines, rest = [*whole_lines, rest], ""
        self._rest[stream] = rest
        self._print_lines(stream, whole_lines[-self._first :] if first and self._first else whole_lines)

    def end(self) -> None:
        """What has no line's end."""
        for stream, rest in self._rest.items():
            self._print_lines(stream, [rest] if rest else [])
        self._rest.clear()

    def _print_lines(self, stream: str, lines: Sequence[str]) -> None:
        if lines and stream != self._last:
            self._print_line(f"--- {stream}", style="dim")
            self._last = stream
        for line in lines:
            self._print_line(clean_line(line), soft_wrap=True)
