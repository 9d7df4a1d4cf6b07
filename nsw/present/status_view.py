"""The state of a campaign: counts, and the runs that a person asks about."""

from __future__ import annotations

import time
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nsw.engine.ledger_rows import Cause, State, missing_results
from nsw.present.problems import show_problems
from nsw.present.terminal import table
from nsw.quantities import seconds
from nsw.wording import absent_lines, headline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from nsw.engine.ledger import BuildRow, RunRow

STYLES = {"done": "green", "failed": "red", "lost": "red", "cancelled": "yellow", "running": "cyan"}
_MAX_ROWS = 30
_LAST_LINE_WIDTH = 80  # characters of what a program printed last
_FEW = 3  # runs alike that are still listed one by one


def calls_line(calls: Mapping[str, int]) -> str:
    """`scheduler calls: 1 sbatch, 5 squeue`; nothing when there were none."""
    return "scheduler calls: " + ", ".join(f"{n} {name}" for name, n in sorted(calls.items())) if calls else ""


def so_far(elapsed: float | None, left: float | None) -> str:
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
    """The campaign in a screenful; `everything` lists each run, `jobs` is the scheduler's job id of each.

    `looks` is the command that asks the site what has become of the runs, where the states may be old.
    """
    out.print(
        f"{head['campaign']} on site {head['site']}" + (", driven by an nsw now" if head["driven"] else ""),
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
        runs = [_held_by_nsw(run) for run in runs]
        out.print("held by `nsw throttle 0`: no new run starts until `nsw throttle N`", style="yellow")
    if line := so_far(head.get("elapsed_s"), head.get("seconds_left")):
        out.print(line)
    if line := calls_line(head.get("scheduler_calls") or {}):
        out.print(line)
    show_builds(out, head["builds"])
    if reductions := head.get("reductions"):
        out.print(reductions_line(reductions))
    for line in absent_lines(head["absent"]):
        out.print(line, style="yellow")
    last_lines: Mapping[str, str] = head.get("last_lines") or {}
    rows = [_cells(r, jobs, last_lines) for r in runs] if every_run else _in_short(runs, jobs, last_lines)
    first_rows = rows if every_run else rows[:_MAX_ROWS]
    if first_rows:
        columns = ("run", "state", "attempt>", "took>", "host", *(("job",) if jobs else ()), "why")
        out.print(table(None, columns, first_rows, wide="run", droppable=("attempt", "host", "took")))
    if len(rows) > len(first_rows):
        out.print(f"... and {len(rows) - len(first_rows)} lines more (--runs lists all)")
    show_problems(out, problems)
    for line in head["next"]:
        out.print(line)


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
            table(
                None,
                ("build", "state", "attempt>", "took>", "host", "job", "why"),
                rows,
                wide="build",
                droppable=("attempt", "host", "took"),
            )
        )


def _in_short(
    runs: Sequence[RunRow], jobs: Mapping[str, str], last_lines: Mapping[str, str]
) -> list[tuple[object, ...]]:
    """A row for each run to look at; one for several that wait or failed for the same reason."""
    alike: dict[tuple[object, ...], list[RunRow]] = {}
    for run in runs:
        if run.state not in {"done", "planned"} or (run.state == "done" and _run_reason(run)):
            alone = run.id if run.state == "running" else None
            alike.setdefault((run.state, run.reason, alone), []).append(run)
    rows: list[tuple[object, ...]] = []
    for similar_runs in alike.values():
        if len(similar_runs) <= _FEW:
            rows += [_cells(r, jobs, last_lines) for r in similar_runs]
        else:
            empty_cells = (None,) * (4 if jobs else 3)
            rows.append(
                (
                    f"{similar_runs[0].id} and {len(similar_runs) - 1} more",
                    similar_runs[0].state,
                    *empty_cells,
                    _run_reason(similar_runs[0]),
                )
            )
    return rows


def _cells(run: RunRow, jobs: Mapping[str, str], last_lines: Mapping[str, str]) -> tuple[object, ...]:
    printed = (
        f"prints: {last_lines[run.id][:_LAST_LINE_WIDTH]}" if run.state == "running" and run.id in last_lines else None
    )
    return (run.id, run.state, run.attempt or None, _took(run), run.host, *((jobs.get(run.id),) if jobs else ()),
            _run_reason(run) or printed)  # fmt: skip


def _held_by_nsw(run: RunRow) -> RunRow:
    """While nsw holds a campaign, the scheduler's advice to release the job by hand would only undo that."""
    return replace(run, detail="held by `nsw throttle 0`") if run.cause is Cause.HELD_BY_SCHEDULER else run


def _run_reason(run: RunRow) -> str | None:
    return "; ".join(filter(None, (missing_results(run), run.reason))) or None


def _took(run: RunRow) -> str | None:
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
    """A build as data, its job id from `jobs`, with the jobs whose runs need it."""
    return {
        "id": build.id, "command": build.command, "where": build.place, "state": str(build.state),
        "reason": build.reason, "attempt": build.attempt, "exit_code": build.exit_code, "host": build.host,
        "started": build.started, "ended": build.ended, "seconds": build.seconds, "job": build.job,
        "job_id": jobs.get(build.id), "gpus": build.gpus, "needed_by": list(needed_by),
    }  # fmt: skip
