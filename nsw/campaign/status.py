"""`nsw status`, `problems` and `ls`: how campaigns stand, without driving anything.

Of a campaign that was made elsewhere only its ledger is read: no site or scheduler is asked.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign import versions
from nsw.campaign.selection import RunsOption, campaign_and_runs, campaign_argument, campaign_option, job_ids, selected
from nsw.campaign.watch import Onlooker, current_ledger
from nsw.engine import folder as folders
from nsw.engine import ledger_rows
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger_rows import AT_A_TIME, ENDED, NOTE, SITE, STOPPED, TAKEN_OVER, BuildRow, Reading, RunRow, State
from nsw.errors import CampaignError
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger

__all__ = ["Status", "list_campaigns", "problems_of", "status"]

_NOTABLE: Final = [state for state in State if state not in {State.DONE, State.PLANNED}]
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"
_Problems = list[tuple[str, str | None, str, str, str | None]]


@dataclass(frozen=True, slots=True)
class Status:
    """How a campaign stands.

    Attributes:
        folder: The campaign.
        head: What is known of all of it, by name.
        progress: How long it goes on already, how long it will, and what the running programs printed last.
        counts: How many of the runs that are meant are in each state.
        runs: Those to show.
        jobs: The scheduler's job id of each run and build.
        builds: What is built for the runs, each with the jobs that need it.
        problems: What is wrong: run, report, severity, message, what to do.
        chosen: Whether runs were named.
        looks: The command that asks the site what has become of the runs; None where it was asked.
    """

    folder: CampaignFolder
    head: dict[str, Any]
    progress: dict[str, Any]
    counts: dict[str, int]
    runs: list[RunRow]
    jobs: dict[str, str]
    builds: list[tuple[BuildRow, list[str]]]
    problems: _Problems
    chosen: bool
    looks: str | None


def status(option_values: RunsOption, *, every: bool) -> Status:
    """The state of a campaign, or of some of its runs; unless `every`, only of runs to be known about."""
    folder, selection = campaign_and_runs(option_values)
    with current_ledger(folder) as (ledger, onlooker):
        counts = ledger.counts()
        problems: _Problems = [*ledger.problems(), *versions.version_problems(folder, ledger)]
        # who names runs wants to see them, whatever their state
        runs = ledger.runs() if every or selection else _notable_runs(ledger)
        progress = _progress_data(folder, ledger, counts, runs)
        builds, needed_by = ledger.builds(), ledger.needed_by()
        head, jobs = _status_head(folder, ledger, counts, onlooker), job_ids(ledger, [*builds, *runs])
        if selection:
            runs = selected(ledger, runs, selection)
            counts = Counter(str(run.state) for run in runs)
            ids = {run.id for run in runs}
            problems = [problem for problem in problems if problem[0] in ids]
    looks = None if onlooker or not folder.trusted else f"nsw watch {campaign_argument(folder)}"
    jobs_of_builds = [(build, needed_by.get(build.id, [])) for build in builds]
    return Status(folder, head, progress, counts, runs, jobs, jobs_of_builds, problems, bool(selection), looks)


def _notable_runs(ledger: Ledger) -> list[RunRow]:
    """The runs that are neither planned nor done, and of those that are done what is to be known about."""
    lacking = [
        run
        for reading in (Reading.INCOMPLETE, Reading.UNREADABLE)
        for run in ledger.runs(states=(State.DONE,), reading=reading)
    ]
    # done and yet with a reason, such as that two jobs started it
    with_reason = [
        run
        for run in ledger.runs(states=[State.DONE])
        if run.reason is not None and ledger_rows.missing_results(run) is None
    ]
    return [*ledger.runs(states=_NOTABLE), *lacking, *with_reason]


def _progress_data(
    folder: CampaignFolder, ledger: Ledger, counts: Mapping[str, int], runs: Sequence[RunRow]
) -> dict[str, Any]:
    if not any(counts.get(state) for state in State if state not in ENDED):
        return {"elapsed_s": None, "seconds_left": None, "last_lines": {}}
    from nsw.campaign.running import lines_now

    now, driven = time.time(), folders.is_driven(folder)
    running = [run for run in runs if run.state is State.RUNNING]
    first_start = ledger.first_start()
    return {
        "elapsed_s": None if first_start is None else max(0.0, now - first_start),
        "seconds_left": ledger.seconds_left(now, folders.driven_since(folder)) if driven else None,
        "last_lines": lines_now(folder, ledger, running, driven=driven),
    }


def _status_head(
    folder: CampaignFolder, ledger: Ledger, counts: Mapping[str, int], onlooker: Onlooker | None
) -> dict[str, Any]:
    driven = folders.is_driven(folder)
    left = sum(counts.get(s, 0) for s in ("planned", "intent", "submitted", "queued", "running"))
    bad = sum(counts.get(s, 0) for s in ("failed", "invalid", "lost", "cancelled"))
    unread, incomplete = ledger.unread(), ledger.incomplete()
    steps = []
    new_owner = ledger.meta(TAKEN_OVER)
    reductions = dict(Counter(str(row.state) for row in ledger.reductions()))
    going = sum(count for state, count in reductions.items() if state not in ENDED)
    unseen = onlooker is not None and onlooker.changed_any  # runs whose reports nobody has read
    may_go_on = not driven and folder.trusted and new_owner is None
    if new_owner is not None and folder.trusted:
        steps.append(
            f"`nsw watch {campaign_argument(folder)}` shows its progress there; `nsw attach {folder.id}` takes it back"
        )
    if (left or unread or going or unseen) and may_go_on:
        waiting, resume = counts.get("planned", 0), f"`nsw resume {campaign_argument(folder)}`"
        next_step = f"{plural(waiting, 'run')} {'waits' if waiting == 1 else 'wait'} for {resume}"
        steps.append(next_step if waiting else f"{resume} goes on")
    if (bad or incomplete) and may_go_on:
        from nsw.campaign.answers import repeat_command  # here: most looks need nothing of recipes

        again = repeat_command(folder, ledger, f" -c {campaign_argument(folder)}")
        steps.append(f"`nsw logs RUN{campaign_option(folder)}` prints a run's output; {again}")
    return {"campaign": folder.id, "folder": str(folder.path), "owner": folder.other_owner,
            "trusted": folder.trusted, "taken_over_by": new_owner,
            "site": ledger.meta(SITE), "note": ledger.meta(NOTE), "driven": driven,
            "absent": ledger.absent(), "next": steps, "scheduler_calls": ledger.calls(),
            "incomplete": incomplete, "unreadable": ledger.unreadable(),
            "stopped": ledger.meta(STOPPED), "held": ledger.meta(AT_A_TIME) == 0,
            "reductions": reductions}  # fmt: skip


def problems_of(option_values: RunsOption) -> tuple[CampaignFolder, _Problems, str | None]:
    """The campaign, everything that is wrong with the reports of the runs that are meant, and the campaign's note.

    Beside problems of reports these are outliers, and runs of an older version of the program.
    """
    folder, selection = campaign_and_runs(option_values)
    with ledger_to_read(folder) as ledger:
        problems = [*ledger.problems(), *_outlier_problems(folder, ledger), *versions.version_problems(folder, ledger)]
        if selection:
            ids = {run.id for run in selected(ledger, ledger.runs(), selection)}
            problems = [problem for problem in problems if problem[0] in ids]
        return folder, problems, ledger.meta(NOTE)


def _outlier_problems(folder: CampaignFolder, ledger: Ledger) -> _Problems:
    """Outliers among the repeats of a case, as problems."""
    from nsw.analysis.figures import find_outliers
    from nsw.engine.tables import load_rows

    fix = "look at what else ran there then; figures are medians, which a single outlier hardly moves"
    outlier_runs = find_outliers(ledger.runs(), load_rows(folder, "figures"))
    return [(outlier.run, None, "warning", f"an outlier: {outlier.text}", fix) for outlier in outlier_runs]


def list_campaigns(
    root: Path | None, since: float | None = None, figure: str | None = None
) -> tuple[Path, list[dict[str, Any]]]:
    """The folder of campaigns, and what is known of each, oldest first.

    Where it has none, and was not named, they are those that nsw acts for elsewhere.

    Args:
        root: The folder; None: NSW_ROOT or ./campaigns.
        since: Only those that began at most so many seconds ago.
        figure: With the median of this figure in each case, as `medians`.
    """
    parent = folders.root(root)
    campaigns = folders.existing(parent)
    if not campaigns and parent == Path("campaigns"):
        campaigns = folders.existing_elsewhere()
    rows = [_campaign_row(folder, figure) for folder in campaigns]
    if since is not None:
        first = time.strftime(_MOMENT, time.gmtime(time.time() - since))
        rows = [row for row in rows if row.get("created", first) >= first]
    return parent, rows


def _campaign_row(folder: CampaignFolder, figure: str | None) -> dict[str, Any]:
    names = {"campaign": folder.id, "folder": str(folder.path.absolute())}
    try:
        with ledger_to_read(folder) as ledger:
            counts = ledger.counts()
            created = time.strftime(_MOMENT, time.gmtime(ledger.created()))
            return names | {"site": ledger.meta(SITE), "created": created,
                    "runs": sum(counts.values()), "driven": folders.is_driven(folder), "counts": counts,
                    "incomplete": ledger.incomplete(), "unreadable": ledger.unreadable(),
                    "note": ledger.meta(NOTE)} | (
                    {"medians": _medians_by_case(folder, ledger, figure)} if figure else {})  # fmt: skip
    except (CampaignError, OSError) as wrong:
        return names | {"problem": str(wrong)}


def _medians_by_case(folder: CampaignFolder, ledger: Ledger, name: str) -> dict[str, float]:
    """The median of a figure in each case that has it, undisturbed by a profiler where it was so measured."""
    from nsw.analysis.cases import rows_by_run
    from nsw.analysis.figures import figures_by_pass
    from nsw.analysis.groups import group_by
    from nsw.engine.tables import load_rows_lazily

    rows = rows_by_run(load_rows_lazily(folder, "figures"))
    runs_by_case = group_by(ledger.runs(), lambda run: run.case_id)
    figures = {case: [f for f in figures_by_pass(runs, rows) if f.name == name] for case, runs in runs_by_case.items()}
    return {case: min(passes, key=lambda f: f.profiled).median for case, passes in figures.items() if passes}
