"""The state of a campaign: on one screen, as data, and live while runs go on, files come and reports are read."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from rich.cells import cell_len

from nsw.analysis.groups import group_by
from nsw.engine.events import (
    BuildChanged,
    Downloading,
    Event,
    Message,
    Progress,
    ReportsRead,
    RunChanged,
    RunsEnded,
    Started,
)
from nsw.engine.ledger_rows import ENDED, BuildRow, Cause, RunRow, State, missing_results
from nsw.present.problems import show_problems
from nsw.present.terminal import TextTable, console, shorten_middle
from nsw.present.untrusted_text import clean_line
from nsw.quantities import rate, seconds, size
from nsw.wording import absent_lines, headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich import progress
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table


STYLES = {
    "done": "green", "failed": "red", "invalid": "red", "lost": "red", "cancelled": "yellow", "running": "cyan",
}  # fmt: skip
_MAX_ROWS = 30
_LAST_LINE_WIDTH = 80  # characters of what a program printed last
_FEW = 3  # runs alike that are still listed one by one


def calls_line(calls: Mapping[str, int]) -> str:
    """`scheduler calls: 1 sbatch, 5 squeue`; nothing when there were none."""
    return "scheduler calls: " + ", ".join(f"{n} {name}" for name, n in sorted(calls.items())) if calls else ""


def elapsed_and_left(elapsed: float | None, left: float | None) -> str:
    """`3 min 20 s so far, about 12 min left`."""
    parts = [] if elapsed is None else [f"{seconds(elapsed)} so far"]
    if left is not None:
        parts.append(f"about {seconds(left) if left >= 10 else f'{max(1, round(left))} s'} left")
    return ", ".join(parts)


def show_status(
    out: Console,
    head: dict[str, Any],
    counts: dict[str, int],
    runs: Sequence[RunRow],
    problems: Sequence[tuple[str, str | None, str, str, str | None]],
    jobs: Mapping[str, str] = MappingProxyType({}),
    *,
    every_run: bool,
    looks: str | None = None,
) -> None:
    """Print the state of a campaign on one screen.

    Args:
        out: Where to.
        head: The campaign's keys of `nsw status --json`.
        counts: Runs by state.
        runs: The runs to list.
        problems: (run, report, severity, message, fix).
        jobs: The scheduler's job id of each run and build that has one.
        every_run: Whether each run has a line; else those that went well have none, and those alike share one.
        looks: The command that asks the site for the states, where these may be old.
    """
    out.print(
        f"{head['campaign']} on site {head['site']}" + (f", {driver_state_text(counts)}" if head["driven"] else ""),
        style="bold",
    )
    if head.get("owner"):
        out.print(f"it belongs to {head['owner']}, and only that user's nsw drives it")
    if not head.get("trusted", True):
        out.print("it was made elsewhere: this is what its ledger says, and no site or scheduler was asked")
    if head.get("taken_over_by"):
        out.print(f"taken over by {head['taken_over_by']}: nsw does nothing for it from here", style="yellow")
    if head.get("note"):
        out.print(head["note"], style="yellow")
    flying = sum(counts.get(s, 0) for s in ("submitted", "queued", "running"))
    stale = f" (as nsw last saw them: `{looks}` looks now)" if looks and flying and not head["driven"] else ""
    out.print(headline(counts, head.get("incomplete", 0), head.get("unreadable", 0)) + stale)
    if head.get("stopped"):
        out.print(f"stopped: {head['stopped']}", style="yellow")
    if head.get("held"):
        # the scheduler's advice to release a held job by hand would undo the hold
        runs = [
            replace(run, detail="held by `nsw throttle 0`") if run.cause is Cause.HELD_BY_SCHEDULER else run
            for run in runs
        ]
        out.print("held by `nsw throttle 0`: no new run starts until `nsw throttle N`", style="yellow")
    pace = elapsed_and_left(head.get("elapsed_s"), head.get("seconds_left"))
    for line in filter(None, (pace, calls_line(head.get("scheduler_calls") or {}))):
        out.print(line)
    show_builds(out, head["builds"])
    if reductions := head.get("reductions"):
        out.print(reductions_line(reductions))
    for line in absent_lines(head["absent"]):
        out.print(line, style="yellow")
    last_lines: Mapping[str, str] = head.get("last_lines") or {}
    rows = (
        [_run_row_cells(r, jobs, last_lines) for r in runs] if every_run else _notable_run_rows(runs, jobs, last_lines)
    )
    first_rows = rows if every_run else rows[:_MAX_ROWS]
    if first_rows:
        columns = ("run", "state", "attempt>", "took>", "host", *(("job",) if jobs else ()), "why")
        out.print(TextTable(None, columns, first_rows, wide="run", droppable=("attempt", "host", "took")))
    if len(rows) > len(first_rows):
        out.print(f"... and {len(rows) - len(first_rows)} lines more (--runs lists all)")
    show_problems(out, [problem for problem in problems if problem[2] != "aside"])  # `nsw problems` has those
    for line in head["next"]:
        out.print(line)


def driver_state_text(counts: Mapping[str, int]) -> str:
    """What the nsw that drives a campaign does, by how many runs are in each state."""
    if any(counts.get(state) for state in ("intent", "running")) or not counts.get("planned"):
        return "driven by an nsw now"
    return "an nsw waits with it for the queue" if counts.get("queued") else "an nsw waits with it for its turn"


def reductions_line(counts: Mapping[str, int]) -> str:
    """`reports reduced on the site: 12 done, 3 planned`."""
    state_counts = [f"{counts[state]} {state}" for state in State if counts.get(state)]
    return f"reports reduced on the site: {', '.join(state_counts)}"


def show_builds(out: Console, builds: Sequence[Mapping[str, Any]]) -> None:
    """What is built for the runs, and how far that is."""
    if builds:
        rows = [
            (b["id"], b["state"], b["attempt"] or None, seconds(b["seconds"]) if b["seconds"] is not None else None,
             b["host"], b["job_id"], b["reason"])
            for b in builds
        ]  # fmt: skip
        out.print(
            TextTable(
                None,
                ("build", "state", "attempt>", "took>", "host", "job", "why"),
                rows,
                wide="build",
                droppable=("attempt", "host", "took"),
            )
        )


def _notable_run_rows(
    runs: Sequence[RunRow], jobs: Mapping[str, str], last_lines: Mapping[str, str]
) -> list[tuple[object, ...]]:
    """A row for each run to look at; one row for several that wait or failed for the same reason."""
    notable = (r for r in runs if r.state not in {"done", "planned"} or (r.state == "done" and _run_reason(r)))
    alike = group_by(notable, lambda run: (run.state, run.reason, run.id if run.state == "running" else None))
    rows: list[tuple[object, ...]] = []
    for similar_runs in alike.values():
        if len(similar_runs) <= _FEW:
            rows += [_run_row_cells(r, jobs, last_lines) for r in similar_runs]
        else:
            first, empty_cells = similar_runs[0], (None,) * (4 if jobs else 3)
            rows.append((f"{first.id} and {len(similar_runs) - 1} more", first.state, *empty_cells, _run_reason(first)))
    return rows


def _run_row_cells(run: RunRow, jobs: Mapping[str, str], last_lines: Mapping[str, str]) -> tuple[object, ...]:
    printed = (
        f"prints: {last_lines[run.id][:_LAST_LINE_WIDTH]}" if run.state == "running" and run.id in last_lines else None
    )
    return (run.id, run.state, run.attempt or None, _run_time_text(run), run.host,
            *((jobs.get(run.id),) if jobs else ()), _run_reason(run) or printed)  # fmt: skip


def _run_reason(run: RunRow) -> str | None:
    return "; ".join(filter(None, (missing_results(run), run.reason))) or None


def _run_time_text(run: RunRow) -> str | None:
    if run.seconds is not None:
        return seconds(run.seconds)
    if run.state == "running" and run.started is not None:
        return seconds(max(0.0, time.time() - run.started))
    return None


RUN_COLUMNS = (
    "id", "case", "pass", "tool", "repeat", "state", "reason", "attempt", "exit_code", "host", "started", "ended",
    "seconds", "job", "task", "job_id", "gpus", "reading",
)  # fmt: skip


def run_data(run: RunRow, jobs: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """A run as data, its job id from `jobs`; its parameters by themselves, so that none clashes with a column."""
    return {
        "id": run.id, "case": run.case_id, "pass": run.pass_name, "tool": run.tool, "repeat": run.repeat,
        "state": str(run.state), "reason": run.reason, "attempt": run.attempt, "exit_code": run.exit_code,
        "host": run.host, "started": run.started, "ended": run.ended, "seconds": run.seconds, "job": run.job,
        "task": run.task, "job_id": jobs.get(run.id), "gpus": run.gpus, "reading": str(run.reading),
        "params": run.params,
    }  # fmt: skip


def flat_run(run: RunRow, jobs: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """The same without anything nested: parameters under their names at the end, `param_state` where one clashes."""
    row = run_data(run, jobs)
    params = row.pop("params")
    return row | {f"param_{name}" if name in row else name: value for name, value in params.items()}


def build_data(build: BuildRow, jobs: Mapping[str, str], needed_by: Sequence[str]) -> dict[str, Any]:
    """A build as data.

    Args:
        build: The build.
        jobs: The scheduler's job ids.
        needed_by: The jobs whose runs need it.
    """
    return {
        "id": build.id, "command": build.command, "where": build.place, "state": str(build.state),
        "reason": build.reason, "attempt": build.attempt, "exit_code": build.exit_code, "host": build.host,
        "started": build.started, "ended": build.ended, "seconds": build.seconds, "job": build.job,
        "job_id": jobs.get(build.id), "gpus": build.gpus, "needed_by": list(needed_by),
    }  # fmt: skip


# --- live on a terminal, plain lines elsewhere -----------------------------------------------------------------------

_LFLAG: Final = 3  # of the list that termios.tcgetattr gives


class KeyEcho:
    """Switches the echo of control characters off and on; nothing where nsw is not in a terminal's foreground."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def off(self) -> None:
        """Stop the echo until `on`."""
        if self._before is not None or (fd := _foreground_stdin()) is None:
            return
        import termios

        self._before = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
        quiet[_LFLAG] &= ~termios.ECHOCTL
        termios.tcsetattr(fd, termios.TCSANOW, quiet)

    def on(self) -> None:
        """Echo as before `off`."""
        before, self._before = self._before, None
        if before is None or (fd := _foreground_stdin()) is None:
            return
        import termios

        termios.tcsetattr(fd, termios.TCSANOW, before)


def _foreground_stdin() -> int | None:
    """The descriptor of standard input if nsw is in the foreground of that terminal, else None."""
    try:
        fd = sys.stdin.fileno()
        return fd if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None


class ReadingBar:
    """Called with (done, total) runs; gone when all are read, or once it is stopped."""

    def __init__(self) -> None:
        self._out = console(sys.stderr)
        self._bar: progress.Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """So many are read."""
        if not self._out.is_terminal:
            return
        if self._bar is None:
            from rich import progress

            self._bar = progress.Progress(console=self._out, transient=True)
            self._bar.add_task("reading reports")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if done == total:
            self.stop()

    def stop(self) -> None:
        """Leave the terminal to others."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


_SHORT_ROW_BAR: Final = 12
_EXACT_S: Final = 10.0  # below it hundredths of a second would be shown
_EVERY_S: Final = 30.0  # between two lines in a log


def download_line(seen: Downloading) -> str:
    """`1.234 GiB of 3.400 GiB, 45.12 MB/s, 40 s left`, as far as it is known."""
    facts = [f"{size(seen.done)} of {size(seen.total)}"]
    if seen.rate:
        facts.append(rate(seen.rate))
    if seen.done < seen.total and (left := seen.seconds_left) is not None:
        facts.append(f"{seconds(left) if left >= _EXACT_S else f'{left:.0f} s'} left")
    return ", ".join(facts)


def download_row(seen: Downloading) -> Table:
    """The same behind a bar."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 1))
    row.add_row(" downloading", ProgressBar(total=max(1, seen.total), completed=seen.done, width=_SHORT_ROW_BAR),
                download_line(seen))  # fmt: skip
    return row


class DownloadLines:
    """Prints a line for a transfer that takes long, twice a minute, and one at its end."""

    def __init__(self, say: Callable[[str], object], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._next: float | None = None  # None between two transfers
        self._has_reported = False

    def show(self, seen: Downloading) -> None:
        """So much is here."""
        now = self._now()
        is_over = seen.done == seen.total
        if self._next is None:
            self._next, self._has_reported = now + _EVERY_S, False
        if now >= self._next or (is_over and self._has_reported):
            self._say(f"downloading: {download_line(seen)}")
            self._next, self._has_reported = now + _EVERY_S, True
        if is_over:
            self._next = None


class DownloadBar:
    """Shows the transfer of a command that does nothing else: `with DownloadBar() as bar` and `bar.show`."""

    def __init__(self) -> None:
        self._out = console(sys.stderr)
        self._lines = DownloadLines(self._out.print)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, seen: Downloading) -> None:
        """So much is here."""
        if not self._out.is_terminal:
            self._lines.show(seen)
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._out, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(download_row(seen), refresh=True)


_OVER = 5  # lines of a kind
_RUNNING = 8
_REASONS = 4
_REFRESH_S = 0.25
_FEW_ALIKE = 3  # runs that failed together for one reason and still get a line each
_LEAST_ID = 24  # characters of a run's name
_LEAST_SAID = 12  # characters of what a program printed that are worth showing
_WORTH_SAYING = 24  # characters for which a run's name gives up its middle
_BAR, _SHORT_BAR = 60, 10
_GAP = 2
_NOTHING_SEEN = Progress({}, {}, None)


class Source(Protocol):
    """Where the view asks for what no event carries: a campaign that is driven, or its ledger."""

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """State, reason, first run and number of the runs that wait."""


class Watch:
    """Shows events: `with Watch(source) as watch:` and `watch.show` as the listener.

    Args:
        source: Where it asks for what no event carries.
        began: When the first run began, Unix seconds; None: now.
    """

    def __init__(self, source: Source, began: float | None = None) -> None:
        self._source = source
        self._out = console(sys.stderr)
        self._live: Live | None = None
        self._keys = KeyEcho()
        self._bar = ReadingBar()
        self._drawn = 0.0
        self._counts: dict[str, int] = {}
        self._total = 0
        self._waiting: list[tuple[State, str | None, str, int]] = []
        self._recent: dict[str, RunRow] = {}
        self._told_together: Counter[str | None] = Counter()  # reason -> runs of the group that are still to come
        self._began = began or time.time()
        self._progress = _NOTHING_SEEN
        self._download: Downloading | None = None  # while files come nothing else happens
        self._lines = DownloadLines(self.say)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the terminal to others."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._keys.on()
        self._bar.stop()

    def show(self, event: Event) -> None:
        """Show what happened."""
        self._download = None
        match event:
            case Started(counts=counts):
                self._start_live_view(dict(counts))
            case RunChanged():
                self._show_change(event)
            case BuildChanged(build=build):
                if build.state in {State.RUNNING, *ENDED}:
                    self.say(f"{build.state:9} {build.id}" + (f": {build.reason}" if build.reason else ""))
            case Message(text=text, level=level):
                self.say(text if level == "info" else f"{level}: {text}")
            case Progress():
                self._progress = event
                self._refresh_live_view()
            case Downloading() if self._live is not None:
                self._download = event
            case Downloading():
                self._lines.show(event)
            case RunsEnded():
                self.stop()
            case ReportsRead(done=done, total=total):
                if self._live is None:  # while runs go, reading must not draw over them
                    self._bar(done, total)

    def say(self, text: str) -> None:
        """A line of its own, above what is live."""
        (self._live.console if self._live is not None else self._out).print(text)

    def _start_live_view(self, counts: dict[str, int]) -> None:
        self._counts, self._total = counts, sum(counts.values())
        self._waiting = self._source.why_waiting()
        if self._out.is_terminal:
            from rich.live import Live

            self._keys.off()
            self._live = Live(self._live_view(), console=self._out, refresh_per_second=2, transient=True,
                              get_renderable=self._live_view)  # fmt: skip
            self._live.start()

    def _show_change(self, event: RunChanged) -> None:
        run = event.run
        if event.alike > _FEW_ALIKE:
            self._show_shared_failure(event)
            return
        self._recent.pop(run.id, None)
        self._recent[run.id] = run
        if self._live is None:
            if run.state in ENDED:
                took = f" ({seconds(run.seconds)})" if run.seconds is not None else ""
                reason = f": {clean_line(run.reason)}" if run.reason else ""
                self._out.print(f"{event.over}/{event.total} {run.state:9} {run.id}{took}{reason}", soft_wrap=True)
            return
        self._refresh_live_view()
        going = [r for r in self._recent.values() if r.state is State.RUNNING]
        self._recent = {r.id: r for r in (*_last_ended_runs(self._recent.values()), *going)}

    def _show_shared_failure(self, event: RunChanged) -> None:
        """Print one line for all runs that failed for the same reason, at the first of them."""
        run = event.run
        if self._told_together[run.reason]:
            self._told_together[run.reason] -= 1
            return
        self._told_together[run.reason] = event.alike - 1
        text = f"{run.state:9} {run.id} and {event.alike - 1} more: {clean_line(run.reason or '')}"
        if self._live is not None:
            self.say(text)
        else:
            self._out.print(f"{event.over + event.alike - 1}/{event.total} {text}", soft_wrap=True)

    def _refresh_live_view(self) -> None:
        now = time.monotonic()
        if now - self._drawn > _REFRESH_S:
            self._counts, self._waiting, self._drawn = self._source.counts(), self._source.why_waiting(), now

    def _live_view(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        over = sum(self._counts.get(s, 0) for s in ENDED)
        left = self._progress.seconds_left if over < self._total else None  # as a pace saw it when a run still went on
        head = " " + headline(self._counts)
        bar = max(_SHORT_BAR, min(_BAR, self._out.width - cell_len(head)))
        return Group(
            *(
                Text(clean_line(line), style=STYLES.get(state, ""))
                for state, line in shown_lines(
                    self._recent.values(), self._waiting, seen=self._progress, width=self._out.width
                )
            ),
            ProgressBar(total=max(1, self._total), completed=over, width=bar),
            Text(head),
            Text(" " + elapsed_and_left(time.time() - self._began, left)),
            *([download_row(self._download)] if self._download is not None else []),
        )


def shown_lines(
    runs: Iterable[RunRow],
    waiting: Sequence[tuple[State, str | None, str, int]],
    now: float | None = None,
    *,
    seen: Progress = _NOTHING_SEEN,
    width: int = 100,
) -> list[tuple[State, str]]:
    """The lines to be shown, each with its state: of `runs` what ended last and what runs, then why others wait.

    Args:
        runs: The runs that changed.
        waiting: State, reason, the first run that waits for it, how many there are.
        now: Unix seconds.
        seen: Job ids and last lines of what runs.
        width: Columns of the terminal: what runs takes a line each.
    """
    all_runs = list(runs)
    running = [r for r in all_runs if r.state is State.RUNNING]
    lines = []
    for r in _last_ended_runs(all_runs):
        facts = [seconds(r.seconds)] if r.seconds is not None else []
        lines.append((r.state, "  ".join([f"{r.state:9} {r.id}", *facts, *filter(None, [r.reason])])))
    lines += [(r.state, running_line(r, now or time.time(), seen, width)) for r in running[:_RUNNING]]
    if len(running) > _RUNNING:
        lines.append((State.RUNNING, f"{State.RUNNING:9} and {len(running) - _RUNNING} more"))
    for state, reason, first, count in waiting[:_REASONS]:
        names = first + (f" and {count - 1} more" if count > 1 else "")
        lines.append((state, f"{state:9} {names}" + (f"  {reason}" if reason else "")))
    return lines


def running_line(run: RunRow, now: float, seen: Progress, width: int) -> str:
    """A run that goes on, in one line: how long, its job and node, and the last that it printed as far as it fits.

    Args:
        run: The run.
        now: Unix seconds.
        seen: Job ids and last lines of what runs.
        width: Columns of the terminal.
    """
    took = [seconds(max(0.0, now - run.started))] if run.started is not None else []
    job = seen.jobs.get(run.id)
    facts = [*took, *([f"job {job}"] if job else []), *([run.host] if run.host else [])]
    rest = "  ".join(clean_line(fact) for fact in facts)
    last_line = clean_line(seen.lines.get(run.id, ""))
    room = width - len(f"{State.RUNNING:9} ") - cell_len(rest) - _GAP
    line_room = min(cell_len(last_line), _WORTH_SAYING) + _GAP if last_line else 0
    line = f"{State.RUNNING:9} {shorten_middle(run.id, max(_LEAST_ID, room - line_room))}  {rest}"
    left = width - cell_len(line) - _GAP
    if not last_line or left < _LEAST_SAID:
        return line
    return f"{line}  {last_line if cell_len(last_line) <= left else last_line[: left - 1] + '…'}"


def _last_ended_runs(runs: Iterable[RunRow]) -> list[RunRow]:
    """The last runs that succeeded, and the last that did not; the latter stay in view longer."""
    over = [r for r in runs if r.state in ENDED]
    bad = [r for r in over if r.state is not State.DONE][-_OVER:]
    good = [r for r in over if r.state is State.DONE][-_OVER:]
    return [*bad, *good]
