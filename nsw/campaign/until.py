"""Runs that are added to a campaign until they suffice, or the price is reached.

`nsw run --until decided` adds pairs until each case is decided, `nsw run --for-model` repeats until the law predicts
well enough. What suffices follows from the ledger and the tables alone, each time anew: an nsw that is resumed after a
kill at any moment goes on from what they hold.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.certainty import LOOKS, Verdict, pairs_at_next_look
from nsw.analysis.growth import FIGURE
from nsw.analysis.sides import Match, compare_sides, match_cases
from nsw.campaign.answers import results
from nsw.campaign.changes import add_pairs
from nsw.campaign.compare import both_sides
from nsw.campaign.modelling import ModelPlan, growth_of
from nsw.campaign.planning import make_plan
from nsw.engine.events import Message
from nsw.engine.ledger_rows import SITE, UNTIL, RunRow, State, missing_results
from nsw.errors import UsageError
from nsw.recipe.units import AmountUnit, option_value, parse_percent, parse_price
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.plan.model import Plan

__all__ = ["FIRST_REPEATS", "add_undecided", "until_decided", "until_predicted"]

FIRST_REPEATS: Final = 2  # of a model: the least that scatter
_BARE: Final = "baseline"  # the kind of pass whose runs are in pairs


def until_decided(
    until: str | None, at_most: str | None, sites: Sequence[Path] | None, *, is_comparison: bool
) -> dict[str, Any]:
    """What the ledger keeps of `--until decided`; nothing where it was not asked for.

    Args:
        until: `decided`; None: the campaign has the runs of its plan alone.
        at_most: The price, such as 40m or 2 node-hours.
        sites: Sites files to search first when pairs are added.
        is_comparison: Whether the campaign is a new one with both sides.

    Raises:
        UsageError: One of both lacks the other, the price is none, or there are no sides.
    """
    if until is None and at_most is None:
        return {}
    if until != "decided" or at_most is None or not is_comparison:
        raise UsageError(
            "--until decided needs --against REF and --at-most PRICE, and a campaign of its own (no --into)",
            hint="`nsw run RECIPE --against main --until decided --at-most 40m`",
        )
    option_value("--at-most", parse_price, at_most, "such as 40m or '2 node-hours'")
    return {"at_most": at_most, "sites": [str(file.absolute()) for file in sites or ()]}


def until_predicted(model_plan: ModelPlan, within: str, sites: Sequence[Path] | None) -> dict[str, Any]:
    """What the ledger keeps of `--for-model`.

    Args:
        model_plan: What is to be measured.
        within: How far the range of the prediction may be from it, such as 10%.
        sites: Sites files to search first when repeats are added.

    Raises:
        UsageError: `within` is no percentage.
    """
    model = {
        "over": model_plan.over,
        "to": model_plan.points.target,
        "within": option_value("--within", parse_percent, within, "such as 10%"),
        "repeats": model_plan.points.repeats,
    }
    return {"at_most": model_plan.at_most, "sites": [str(file.absolute()) for file in sites or ()], "model": model}


def add_undecided(folder: CampaignFolder, ledger: Ledger, notify: Callable[[Message], object]) -> bool:
    """Add the pairs of the next look to each case that is undecided, or a repeat; the caller holds the campaign's lock.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        notify: Called with a message where pairs are added.

    Returns:
        Whether there are new runs to do. If not, the ledger has the reason.

    Raises:
        InputError, UsageError, UnreachableError: The pairs cannot be planned or sent.
    """
    until = ledger.meta(UNTIL)
    if not until:
        return False
    price = parse_price(until["at_most"])
    sites = [Path(file) for file in until["sites"]] or None
    plan = make_plan(str(folder.recipe), ledger.meta(SITE), sites).plan
    spent, run_costs = _cost_of_jobs(ledger.runs(), plan, price.unit)
    runs = [run for run in ledger.runs() if run.pass_kind == _BARE and run.repeat]
    done = max((run.repeat for run in runs), default=0)
    if "model" in until:
        each = sum(run_costs[case] for case in {run.case_id for run in runs})
        reason = _why_no_run_is_added(ledger, runs, done) or _why_prediction_suffices(
            folder, until["model"], done, notify
        )
        if not reason and spent + each > price.number:
            reason = "price reached"
        ledger.set_meta(UNTIL, until | {"spent": spent, "ended": reason})
        if reason:
            notify(Message(f"no more repeats: {reason}"))
            return False
        _add_runs(folder, ledger, runs, done=done, more=1, sites=sites)
        return True
    undecided, reason = _undecided_cases(folder, ledger, runs, done)
    pair = sum(run_costs[run.case_id] for match in undecided for run in (match.first[0], match.second[0]))
    more = min((pairs_at_next_look(done) or done) - done, int((price.number - spent) / pair) if pair else 0)
    if undecided and (more < 1 or done + more < LOOKS[0]):  # fewer decide nothing
        reason = "price reached" if pairs_at_next_look(done) else f"nsw adds {LOOKS[-1]} at most"
    ledger.set_meta(UNTIL, until | {"spent": spent, "ended": reason})
    if reason:
        return False
    cases = {run.case_id for match in undecided for run in (match.first[0], match.second[0])}
    _add_runs(folder, ledger, [run for run in runs if run.case_id in cases], done=done, more=more, sites=sites)
    of_cases = f" of {plural(len(undecided), 'case')}" if len(undecided) > 1 else ""
    notify(Message(f"{plural(done, 'pair')}{of_cases} {'does' if done == 1 else 'do'} not decide: nsw adds {more}"))
    return True


def _add_runs(
    folder: CampaignFolder,
    ledger: Ledger,
    runs: Sequence[RunRow],
    *,
    done: int,
    more: int,
    sites: Sequence[Path] | None,
) -> None:
    """Add so many repeats of these runs' cases and passes."""
    begin = {run.id.removesuffix(f".r{run.repeat}") for run in runs}
    new = [f"{run}.r{n}" for run in sorted(begin) for n in range(done + 1, done + more + 1)]
    add_pairs(folder, ledger, new, repeats=done + more, sites=sites)


def _why_prediction_suffices(
    folder: CampaignFolder, model: Mapping[str, Any], done: int, notify: Callable[[Message], object]
) -> str:
    """Why no repeat is added to what a law is fitted to; empty: the figure's range at the target is too wide."""
    at = f"{model['over']}={model['to']:g}"
    with results(folder) as campaign_results:
        try:
            series_list = growth_of(campaign_results, [model["over"]], [model["to"]])
        except UsageError as fault:
            return str(fault)
    estimates = [row.at for series in series_list for row in series.rows if row.kind == FIGURE]
    halves = [
        (each.high - each.low) / 2 / abs(each.value)
        for each in estimates
        if each.value and each.low is not None and each.high is not None
    ]
    is_known = bool(halves) and len(halves) == len(estimates)
    text = f"{at} is predicted within {100 * max(halves):.2g} %" if is_known else f"{at} is not predicted yet"
    text += f" after {plural(done, 'repeat')}"
    if is_known and max(halves) <= model["within"]:
        return text
    if done >= model["repeats"]:
        return f"{text}, as many as fit the price"
    notify(Message(f"{text}: nsw adds one"))
    return ""


def _why_no_run_is_added(ledger: Ledger, runs: Sequence[RunRow], done: int) -> str:
    """Why nothing is added whatever the results say; empty: there are results of the last runs."""
    if left := ledger.runs(states=(State.PLANNED, State.CANCELLED)):
        return f"{plural(len(left), 'run')} {left[0].state}"
    newest = {run.job for run in runs if run.repeat == done}
    last = [run for run in runs if run.job in newest]
    if not any(run.state is State.DONE and missing_results(run) is None for run in last):
        return "none of the last runs has results"
    return ""


def _undecided_cases(
    folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow], done: int
) -> tuple[list[Match], str]:
    """The cases whose pairs have not decided yet, or why no pairs are added."""
    if reason := _why_no_run_is_added(ledger, runs, done):
        return [], reason
    both = both_sides(folder, "case")
    if both is None:
        return [], "a side has no run"
    rows = [row for row in compare_sides(*both) if row.estimate is not None and row.estimate.is_paired]
    cases = {row.case for row in rows if row.estimate is not None and row.estimate.verdict is Verdict.UNDECIDED}
    undecided = [match for match in match_cases(*both) if match.name in cases]
    return undecided, "" if undecided else "decided" if rows else "no figure is of pairs"


def _cost_of_jobs(runs: Sequence[RunRow], plan: Plan, unit: AmountUnit) -> tuple[float, Mapping[str, float]]:
    """What a campaign cost so far, and what another run of each case would, in the unit of the price.

    That is the time of the jobs from their first run to their last.
    """
    resources = {run.id: run.resources for run in plan.runs}
    tasks: dict[tuple[str | None, int], list[RunRow]] = defaultdict(list)
    for run in runs:
        if run.seconds is not None and run.id in resources:
            tasks[run.submission, run.task].append(run)
    total, of_cases, counts = 0.0, defaultdict[str, float](float), defaultdict[str, int](int)
    for task in tasks.values():
        needs = resources[task[0].id]
        task_s = max(run.ended or 0.0 for run in task) - min(run.started or 0.0 for run in task)
        cost = plan.price(needs, task_s, unit)
        total += cost
        busy = sum(run.seconds or 0.0 for run in task)
        for run in task:
            if run.pass_kind == _BARE and run.repeat:
                of_cases[run.case_id] += cost * (run.seconds or 0.0) / busy if busy else 0.0
                counts[run.case_id] += 1
    return total, defaultdict(float, {case: cost / counts[case] for case, cost in of_cases.items()})
