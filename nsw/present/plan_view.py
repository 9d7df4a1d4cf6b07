"""A plan, and what a recipe adds to a campaign, as a person wants to see them before saying yes, and as data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.analysis.groups import group_by
from nsw.plan.jobs import WARM_UP
from nsw.plan.layout import layout_sentence
from nsw.plan.model import REDUCTION, Job, Plan
from nsw.present.terminal import TextTable
from nsw.profilers.model import CHOSEN
from nsw.quantities import seconds
from nsw.wording import absent_lines, first_names, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from nsw.campaign.changes import Changes
    from nsw.campaign.modelling import ModelPlan
    from nsw.campaign.start import ExpectedCost
    from nsw.recipe.units import Amount


_RUNS_NAMED = 5  # names of runs


def show_changes(out: Console, campaign: str, changes: Changes) -> None:
    """Print which runs are added and which are done again, and why.

    Args:
        out: Where to.
        campaign: The campaign's id.
        changes: What the recipe changes of it.
    """
    out.print(f"into {campaign}", style="bold")
    if changes.added:
        out.print(f"adds {plural(len(changes.added), 'run')}: {first_names(changes.added, _RUNS_NAMED)}")
    for reason, runs in group_by(changes.again, changes.again.__getitem__).items():
        out.print(f"does {plural(len(runs), 'run')} again, since {reason}: {first_names(runs, _RUNS_NAMED)}")
    if changes.unchanged:
        out.print(f"leaves {plural(changes.unchanged, 'run')} as {'they are' if changes.unchanged > 1 else 'it is'}")
    if changes.absent:
        verb_phrase = "is not in the recipe, and stays" if changes.absent == 1 else "are not in the recipe, and stay"
        out.print(f"{plural(changes.absent, 'run')} of the campaign {verb_phrase}")


def changes_data(campaign: str, changes: Changes) -> dict[str, Any]:
    """The same as JSON data."""
    return {
        "campaign": campaign, "added": list(changes.added), "again": dict(changes.again), "same": changes.unchanged,
        "not_in_recipe": changes.absent,
    }  # fmt: skip


_MOST_JOBS = 20
_MOST_LAYOUTS = 6


def show_plan(
    out: Console,
    plan: Plan,
    warnings: list[str],
    starts: Mapping[str, str] | None = None,
    expected: ExpectedCost | None = None,
) -> None:
    """What will be done, what it costs at most and probably, what cannot be done here and why.

    Args:
        out: Where it is shown.
        plan: The plan.
        warnings: What a person should know beside it.
        starts: What the scheduler says of when each job would start, by its name.
        expected: What it probably costs, by earlier campaigns of the recipe.
    """
    out.print(f"{plan.name} on site {plan.site}", style="bold")
    if plan.note:
        out.print(plan.note, style="yellow")
    jobs = (*plan.builds, *plan.jobs, *plan.reductions)
    rows = [_job_row(job, plan.requested_time_s(job)) for job in jobs[:_MOST_JOBS]]
    out.print(TextTable(None, ("job", "tasks>", "runs>", "nodes>", "GPUs>", "limit>", "passes"), rows, wide="passes"))
    if (left := len(jobs) - _MOST_JOBS) > 0:
        out.print(f"... and {plural(left, 'job')} more (--json lists all)")
    out.print(_limits_sentence(plan), style="dim")
    warm_ups = sum(run.repeat == WARM_UP for run in plan.runs)
    out.print(
        f"{_case_count(plan)}, {plural(len(plan.runs), 'run')}"
        f"{f' ({warm_ups} of them to warm up)' if warm_ups else ''},"
        f" {plural(len(plan.jobs), 'job')}" + ("" if plan.replay else f"; at most {_cost_in_hours(plan)}")
    )
    if expected is not None:
        out.print(f"expected: {_cost_in_hours(expected)}, as earlier campaigns of this recipe took", style="dim")
    elif not plan.replay:
        out.print("(that is if every run took its limit; after a first one nsw names a shorter `time`)", style="dim")
    for line in _layout_lines(plan):
        out.print(line)
    if later := sum(bool(run.needs) for run in plan.runs):
        out.print(
            f"{plural(later, 'run')} can only begin once nsw has read another pass of the same case; while nsw is away"
            f" {'it waits' if later == 1 else 'they wait'} for `nsw resume`"
        )
    if plan.node_gpus:
        out.print(f"jobs take whole nodes here: all {plan.node_gpus} GPUs of each are paid for", style="dim")
    for job in (job for job in plan.jobs if job.side_by_side > 1):
        out.print(f"{job.name}: {job.side_by_side} runs side by side on a node, each with its own GPUs", style="dim")
    starts = starts or {}
    for start, names in group_by(starts, starts.__getitem__).items():
        similar_jobs = f" and {plural(len(names) - 1, 'job')} like it" if len(names) > 1 else ""
        out.print(f"{names[0]}{similar_jobs} would start at {start}, says the scheduler")
    if secret := sorted({name for secret_set in plan.secrets for name in secret_set}):
        out.print(f"secret, in no script and no log: {', '.join(secret)}", style="dim")
    for note in plan.notes:
        out.print(note, style="dim")
    for line in absent_lines((absent.what, absent.reason, len(absent.run_ids)) for absent in plan.absent):
        out.print(line, style="yellow")
    for warning in warnings:
        out.print(f"warning: {warning}", style="yellow")


def _cost_in_hours(cost: Plan | ExpectedCost) -> str:
    gpus = f"{cost.gpu_hours:.2f} GPU-hours, " if cost.gpu_hours else ""
    return f"{gpus}{cost.node_hours:.2f} node-hours"


def _layout_lines(plan: Plan) -> list[str]:
    """The layout of the ranks of each case, one line for each layout."""
    cases: dict[str, list[str]] = {}
    for run in plan.runs:
        if (text := layout_sentence(run.layout)) is not None and run.case_id not in cases.setdefault(text, []):
            cases[text].append(run.case_id)
    if len(cases) == 1 and len(next(iter(cases.values()))) == len({run.case_id for run in plan.runs}):
        return list(cases)
    lines = [f"{first_names(ids)}: {text}" for text, ids in cases.items()]
    left = len(lines) - _MOST_LAYOUTS
    return [
        *lines[:_MOST_LAYOUTS],
        *([f"... and {plural(left, 'layout')} more (--json lists all)"] if left > 0 else []),
    ]


def _limits_sentence(plan: Plan) -> str:
    """How the limits of the jobs follow from the times of their runs."""
    step = f", in steps of {seconds(plan.time_step_s)}" if plan.time_step_s > 1 else ""
    minimum_text = f", at least {seconds(plan.least_time_s)}" if plan.least_time_s else ""
    return f"(limit: for each task, the time of its runs plus {plan.jobs[0].around_s} s{step}{minimum_text})"


def _case_count(plan: Plan) -> str:
    """How many cases have runs: `8 of 12 cases` where the others have none."""
    left = len({run.case_id for run in plan.runs})
    planned_text = "" if left == len(plan.cases) else f"{left:,} of "
    return planned_text + plural(len(plan.cases), "case")


def _job_row(job: Job, asked_s: int) -> tuple[object, ...]:
    if job.build == "login":
        return job.name, None, None, None, None, None, "the build, on the login node"
    if job.reduction == "login":
        return job.name, len(job.tasks), None, None, None, None, "reports reduced, on the login node"
    needs = job.resources
    passes = dict.fromkeys(f"{r.pass_name} ({r.tool})" if r.tool else r.pass_name for r in job.runs)
    task_description = "the build" if job.build else "reports reduced" if job.reduction else None
    return (job.name, len(job.tasks), None if task_description else len(job.runs), needs.nodes, needs.gpus,
            seconds(asked_s), task_description or ", ".join(passes))  # fmt: skip


def plan_data(plan: Plan, expected: ExpectedCost | None = None) -> dict[str, Any]:
    """The plan as JSON data, with what it probably costs by earlier campaigns of the recipe."""
    return {
        "name": plan.name, "site": plan.site, "note": plan.note, "notes": list(plan.notes), "cases": list(plan.cases),
        "gpu_hours_at_most": plan.gpu_hours,
        "node_hours_at_most": plan.node_hours,
        "gpu_hours_expected": expected and expected.gpu_hours,
        "node_hours_expected": expected and expected.node_hours,
        "jobs": [
            {"name": j.name, "tasks": len(j.tasks), "walltime_s": plan.requested_time_s(j),
             "resources": asdict(j.resources), "runs": [r.id for r in j.runs]}
            for j in plan.jobs
        ],
        "builds": [
            {"name": b.name, "where": b.build, "walltime_s": plan.requested_time_s(b), "resources": asdict(b.resources)}
            for b in plan.builds
        ],
        "reductions": [
            {"name": r.name, "where": r.reduction, "tasks": len(r.tasks), "walltime_s": plan.requested_time_s(r),
             "resources": asdict(r.resources), "of": [run.id.removesuffix(REDUCTION) for run in r.runs]}
            for r in plan.reductions
        ],
        "runs": run_rows(plan),
        "absent": [asdict(a) for a in plan.absent],
        "secrets": sorted({name for secret_set in plan.secrets for name in secret_set}),
    }  # fmt: skip


RUN_COLUMNS = ("id", "case", "pass", "tool", "repeat", "job", "task", "nodes", "gpus", "layout", "time_s", "command")


def run_rows(plan: Plan) -> list[dict[str, Any]]:
    """One row a run."""
    import shlex

    return [
        {"id": r.id, "case": r.case_id, "pass": r.pass_name, "tool": r.tool, "repeat": r.repeat, "job": job.name,
         "task": task, "nodes": r.resources.nodes, "gpus": r.resources.gpus, "layout": layout_sentence(r.layout),
         "time_s": r.resources.time_s,
         "command": shlex.join(f"<chosen from {r.needs}>" if w == CHOSEN else w for w in r.command)}
        for job in plan.jobs for task, runs in enumerate(job.tasks) for r in runs
    ]  # fmt: skip


# --- which cases are measured for a law ----------------------------------------------------------------------


def model_plan_rows(model_plan: ModelPlan) -> list[dict[str, Any]]:
    """A row a value of the parameter: the price of a repeat, and how many repeats are chosen (0: none)."""
    points = model_plan.points
    return [
        {
            f"param_{model_plan.over}": value,
            "price": price,
            "unit": model_plan.budget.unit,
            "repeats": points.repeats if value in points.values else 0,
        }
        for value, price in sorted(model_plan.prices.items())
    ]


def model_plan_data(model_plan: ModelPlan) -> dict[str, Any]:
    """The choice as JSON data; what is expected is in per cent of the prediction."""
    points = model_plan.points
    low, middle, high = points.errors or (None, None, None)
    return {
        "over": model_plan.over, "to": points.target, "values": list(points.values), "repeats": points.repeats,
        "price": points.price, "at_most": model_plan.budget.number, "unit": model_plan.budget.unit,
        "scatter_assumed_pct": 100 * points.noise,
        "expected_pct": middle and 100 * middle,
        "expected_low_pct": low and 100 * low,
        "expected_high_pct": high and 100 * high,
    }  # fmt: skip


def show_model_plan(out: Console, model_plan: ModelPlan, commands: Sequence[str]) -> None:
    """Print what to measure, its price, how certain the prediction will be, and the commands.

    Args:
        out: Where to.
        model_plan: The choice.
        commands: What runs it, and what predicts then.
    """
    points, over, budget = model_plan.points, model_plan.over, model_plan.budget
    values = ", ".join(f"{value:g}" for value in points.values)
    price = f"{_price_text(points.price, budget)} of {_price_text(budget.number, budget)}"
    out.print(f"{over} = {values}, {plural(points.repeats, 'repeat')} each: {price}")
    at = f"{over}={points.target:g}"
    if points.errors is None:
        out.print(f"{plural(len(points.values), 'value')} do not determine a law: nothing can be predicted at {at}")
    else:
        low, middle, high = (f"{100 * error:.2g} %" for error in points.errors)
        out.print(
            f"expected at {at}, if repeats scatter by {100 * points.noise:g} %: within {middle}"
            f" ({low} to {high}, by the law)"
        )
    if points.is_beyond_trials:
        out.print(
            f"{at} is {points.extrapolation_factor:.3g} times the largest of these; laws were tried up to 4 times"
        )
    rows = [
        (f"{row[f'param_{over}']:g}", _price_text(row["price"], budget), row["repeats"] or "")
        for row in model_plan_rows(model_plan)
    ]
    out.print(TextTable(None, [f"{over}>", "a repeat>", "repeats>"], rows))
    for at_line, command in enumerate(commands):
        out.print(f"{'then' if at_line else 'next'}: `{command}`", soft_wrap=True)


def _price_text(number: float, budget: Amount) -> str:
    """A price in its unit: `31.5 GPU-hours`, `40 min`."""
    return seconds(number) if budget.unit == "second" else f"{number:.3g} {budget.unit.replace('gpu', 'GPU')}s"
