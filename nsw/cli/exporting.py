"""`nsw export`: what a campaign measured, for other programs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.timeline_tracks import STEPS, TABLES_OF_TRACKS, chosen_rows, tracks_of
from nsw.campaign.answers import results
from nsw.campaign.selection import campaign_and_runs
from nsw.cli.output import tell
from nsw.cli.running import confirm
from nsw.cli.summarizing import summarize
from nsw.errors import Exit, NswError, UsageError
from nsw.present.perfetto import PerfettoTrace
from nsw.present.untrusted_text import say
from nsw.quantities import size
from nsw.safe_files import open_output
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from nsw.apart import Limits
    from nsw.campaign.answers import Results
    from nsw.campaign.selection import RunsOption
    from nsw.cli.output import Target

__all__ = ["export_tables", "export_trace", "steps_of"]

_LARGE: Final = 200_000_000  # bytes that a browser takes long to open


def export_tables(option_values: RunsOption, target: Target, limits: Limits) -> int:
    """Write all tables into a folder, a file each, as `nsw summarize -o FOLDER/` does; 1 when some runs failed."""
    return summarize(option_values, None, target, limits, None)


def export_trace(
    option_values: RunsOption,
    file: Path,
    limits: Limits,
    *,
    ranks: Collection[int] | None,
    steps: tuple[int, int] | None,
    yes: bool,
) -> int:
    """Write the timelines of a campaign as a trace for Perfetto.

    Args:
        option_values: The campaign, and of which of its runs.
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
    folder, selection = campaign_and_runs(option_values)
    folder.limits = limits
    with results(folder, selection) as campaign_results:
        trace = _trace(campaign_results, ranks, steps)
    description = f"{file}: {plural(trace.events, 'event')}, {size(trace.size)}"
    tell(description)
    if trace.size > _LARGE and not yes:
        alone = f"{description} is large for a browser, and there is no terminal to confirm it on; nothing was written"
        confirm("This is large for a browser. Write it?", alone, "nothing was written")
    try:
        with os.fdopen(open_output(file), "wb") as stream:
            stream.writelines(trace.packets)
    except OSError as fault:
        raise NswError(f"{file} cannot be written: {fault.strerror or fault}") from None
    say(f"{file}: open it with https://ui.perfetto.dev, which keeps it in the browser")
    return Exit.GOOD


def steps_of(text: str | None) -> tuple[int, int] | None:
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


def _trace(campaign_results: Results, ranks: Collection[int] | None, steps: tuple[int, int] | None) -> PerfettoTrace:
    """The chosen timelines; a run is let go once it is in the trace."""
    perfetto_trace = PerfettoTrace()
    kinds = [(run.case_id, run.pass_kind) for run in campaign_results.runs]
    known_ranks: set[int | None] = set()
    has_events = False
    for run, tables in campaign_results.traces(campaign_results.runs, (*TABLES_OF_TRACKS, STEPS)):
        rows = [row for name in TABLES_OF_TRACKS for row in tables.get(name, ())]
        has_events = has_events or bool(rows)
        known_ranks |= {row.get("rank") for row in rows}
        is_only = kinds.count((run.case_id, run.pass_kind)) == 1
        name = run.case_id if is_only else run.id
        perfetto_trace.add(tracks_of(name, chosen_rows(tables, ranks, steps) | {STEPS: tables.get(STEPS, ())}))
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
