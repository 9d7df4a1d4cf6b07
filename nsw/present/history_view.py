"""A history: a line a case on a terminal, sentences on its steps, rows of its nights, and JSON data."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.analysis.blocks import Column, Curve, Finding, Note, Table
from nsw.analysis.compared_screen import log_ratio_to_percent
from nsw.analysis.first_screen import HEADLINE
from nsw.analysis.groups import group_by
from nsw.analysis.steps import MIN_NIGHTS
from nsw.present.page import page
from nsw.present.terminal import TextTable, console
from nsw.present.untrusted_text import clean_line
from nsw.quantities import duration, format_change, format_magnitude, format_moment, format_ns, number
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.gate import Outcome
    from nsw.analysis.steps import Step
    from nsw.campaign.history import Cause, History, Series

__all__ = [
    "COLUMNS", "case_rows", "history_data", "history_page", "night_rows", "show_gate_of_history", "show_history",
    "step_row", "step_sentence",
]  # fmt: skip

COLUMNS: Final = (
    "campaign", "created", "site", "case", "figure", "unit", "value", "least", "most", "runs", "step_pct", "chance",
)  # fmt: skip
_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 24  # bars of a line: of more nights each bar is the median of several
_EXPLAINED: Final = 3  # groups of steps with sentences
_CONDITIONS: Final = 4  # that a sentence names


def show_history(history: History) -> None:
    """Print a line for each case, and what changed with the newest steps."""
    out = console()
    out.print(clean_line(_title(history)), style="bold")
    several = len({series.site for series in history.series}) > 1
    heads = ["case", *(["site"] if several else []), "trend", "last>", "noise>", "last step"]
    cells = [
        [series.case, *([series.site] if several else []), _trend_bars(series), _newest_value(series),
         _noise_percent(series), _last_step_text(series)]
        for series in history.series
    ]  # fmt: skip
    out.print(TextTable(None, heads, cells, wide="case"))
    for sentence in _step_sentences(history):
        out.print(clean_line(sentence))
    for campaign, problem in history.problems:
        out.print(clean_line(f"{campaign} is left out: {problem}"), style="yellow")


def _title(history: History) -> str:
    begin, end = (format_moment(history.campaigns[at].created)[:10] for at in (0, -1))
    return f"{history.figure} of {history.recipe}: {plural(len(history.campaigns), 'campaign')}, {begin} to {end}"


def show_gate_of_history(history: History, steps: Sequence[tuple[Series, Step]], outcome: Outcome) -> None:
    """Print the outcome of a gate, and the steps that make it fail.

    Args:
        history: The history.
        steps: The steps that nobody accepted.
        outcome: The outcome.
    """
    out = console()
    result = f"{plural(len(steps), 'step')} for the worse" if steps else "no step for the worse that nobody accepted"
    out.print(clean_line(f"Gate {outcome}: {history.figure} of {history.recipe}: {result}"), style="bold")
    for sentence in _step_sentences(history, steps):
        out.print(clean_line(sentence))
    if steps:
        newest = max((series.nights[-1].campaign for series, _ in steps), key=lambda campaign: campaign.created)
        out.print(
            clean_line(f"To accept the new level: `{shlex.join(['nsw', 'baseline', 'set', 'NAME', newest.name])}`")
        )
    for series in history.series:
        if not series.is_long_enough:
            out.print(clean_line(f"{series.case}: {_last_step_text(series)}"))


def step_sentence(series: Series, step: Step, cause: Cause, suffix: str = "") -> str:
    """When a case stepped, what changed with it, and the command that compares both sides.

    Args:
        series: The case.
        step: Its step.
        cause: What changed.
        suffix: What follows the case's name.
    """
    before, after = series.nights[step.at - 1].campaign, series.nights[step.until].campaign
    since = format_moment(series.nights[step.at].campaign.created)
    judged = "" if series.higher_is_better is None else ", worse" if series.is_worse(step) else ", better"
    size = f"{format_magnitude(log_ratio_to_percent(step.size))} {'higher' if step.size > 0 else 'lower'}{judged}"
    phrase = f"drifts since {since}, now {size}" if step.is_drift else f"{size}, since {since}"
    conditions = [f"{each.name} {each.before} to {each.after}{_shift_text(each.nights)}" for each in cause.conditions]
    changed = [*([f"program {cause.programs}"] if cause.programs else []), *conditions]
    sentences = [
        f"{series.case}{suffix}: {phrase}",
        f"Changed with it: {first_names(changed, _CONDITIONS)}" if changed else "No condition that nsw records changed",
        *([cause.work] if cause.work else []),
    ]
    if cause.group:
        name, ns = cause.group
        sentences.append(f"Class {name} changed most: {format_ns(abs(ns))} {'more' if ns > 0 else 'less'}")
    command = shlex.join(["nsw", "compare", before.name, after.name])
    return f"{'. '.join(sentences)}. `{command}` shows both sides."


def _shift_text(nights: int) -> str:
    return f" ({plural(abs(nights), 'night')} {'later' if nights > 0 else 'before'})" if nights else ""


def _step_sentences(history: History, steps: Sequence[tuple[Series, Step]] | None = None) -> list[str]:
    """A sentence for the newest steps, by default the last ones of the cases; one for those of the same night."""
    if steps is None:
        steps = [(series, step) for series in history.series for step in series.steps[-1:]]
    groups = group_by(steps, lambda each: tuple(each[0].nights[at].campaign.path for at in (each[1].at, each[1].until)))
    sentences = []
    newest_first = sorted(groups.values(), key=lambda group: -group[0][0].nights[group[0][1].at].campaign.created)
    for group in newest_first[:_EXPLAINED]:
        series, step = max(group, key=lambda each: round(abs(each[1].size), 9))  # of equal ones the first
        suffix = f" (and {plural(len(group) - 1, 'more case')})" if len(group) > 1 else ""
        sentences.append(step_sentence(series, step, history.explain_step(series, step), suffix))
    return sentences


def _trend_bars(series: Series) -> str:
    """The medians of the nights as a row of bar characters, scaled from the least to the most."""
    parts = np.array_split([night.median for night in series.nights], min(_WIDTH, len(series.nights)))
    values = np.array([np.median(part) for part in parts])
    low, high = values.min(), values.max()
    levels = (values - low) / (high - low) * (len(_BARS) - 1) if high > low else np.zeros(len(values))
    return "".join(_BARS[round(level)] for level in levels)


def _newest_value(series: Series) -> str:
    last = series.nights[-1].median
    return duration(last) if series.unit == "ns" else " ".join(filter(None, (number(last), series.unit)))


def _noise_percent(series: Series) -> str:
    return "-" if len(series.nights) < MIN_NIGHTS else f"{log_ratio_to_percent(series.noise):.2g} %"


def _last_step_text(series: Series) -> str:
    if not series.is_long_enough:
        return f"too few nights: {len(series.nights)} of {2 * MIN_NIGHTS}"
    if not series.steps:
        return "no step"
    step = series.steps[-1]
    date = format_moment(series.nights[step.at].campaign.created)[:10]
    return f"{format_change(log_ratio_to_percent(step.size))} {'drift since' if step.is_drift else 'on'} {date}"


# --- data -----------------------------------------------------------------------------------------------------------


def night_rows(history: History) -> list[dict[str, Any]]:
    """A row for each case and campaign; the first night of a step has its size."""
    rows = []
    for series in history.series:
        steps = {step.at: step for step in series.steps}
        for at, night in enumerate(series.nights):
            step = steps.get(at)
            values = (
                night.campaign.id, night.campaign.created, series.site, series.case, history.figure, series.unit,
                night.median, min(night.values), max(night.values), len(night.values),
                log_ratio_to_percent(step.size) if step else None, step.chance if step else None,
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def case_rows(history: History) -> list[dict[str, Any]]:
    """A row for each case: its last value, its noise, its last step."""
    return [
        {
            "case": series.case, "site": series.site, "figure": history.figure, "unit": series.unit,
            "higher_is_better": series.higher_is_better, "nights": len(series.nights),
            "last": series.nights[-1].median, "noise_pct": log_ratio_to_percent(series.noise),
            "step_pct": log_ratio_to_percent(series.steps[-1].size) if series.steps else None,
            "since": series.nights[series.steps[-1].at].campaign.id if series.steps else None,
            "missing": None if series.is_long_enough else _last_step_text(series),
        }
        for series in history.series
    ]  # fmt: skip


def step_row(history: History, series: Series, step: Step) -> dict[str, Any]:
    """A step with what changed with it.

    Args:
        history: The history.
        series: The case.
        step: Its step.
    """
    cause = history.explain_step(series, step)
    return {
        "case": series.case, "site": series.site, "since": series.nights[step.at].campaign.id,
        "before": series.nights[step.at - 1].campaign.id, "after": series.nights[step.until].campaign.id,
        "step_pct": log_ratio_to_percent(step.size), "drift": step.is_drift, "worse": series.is_worse(step),
        "chance": step.chance, "programs": cause.programs,
        "conditions": [asdict(changed) for changed in cause.conditions],
        "work": cause.work, "class": cause.group and cause.group[0], "class_ns": cause.group and cause.group[1],
    }  # fmt: skip


def history_data(history: History, steps: Sequence[tuple[Series, Step]] | None = None) -> dict[str, Any]:
    """The history as JSON data.

    Args:
        history: The history.
        steps: The steps to list; None: all.
    """
    if steps is None:
        steps = [(series, step) for series in history.series for step in series.steps]
    return {
        "recipe": history.recipe,
        "figure": history.figure,
        "campaigns": len(history.campaigns),
        "cases": case_rows(history),
        "steps": [step_row(history, series, step) for series, step in steps],
        "nights": night_rows(history),
        "left_out": [{"campaign": campaign, "problem": problem} for campaign, problem in history.problems],
    }


# --- page -----------------------------------------------------------------------------------------------------------


def history_page(history: History) -> str:
    """The history as an HTML page: what stepped, a line a case, and a plot of each case's nights."""
    several = len({series.site for series in history.series}) > 1
    names = [f"{series.case} on {series.site}" if several else series.case for series in history.series]
    cases = [
        (name, _newest_value(series), _noise_percent(series), _last_step_text(series))
        for name, series in zip(names, history.series, strict=True)
    ]
    heads = (Column("case", "case"), Column("last", "last"), Column("noise", "noise"), Column("step", "last step"))
    left_out = [Note("left out", f"{campaign} is left out: {why}") for campaign, why in history.problems]
    return page(
        _title(history),
        [
            Note(HEADLINE, _headline(history)),
            *(Finding("step", sentence) for sentence in _step_sentences(history)),
            *left_out,
            Table("answer", "Cases", heads, tuple(cases)),
            *(_nights_curve(history, name, series) for name, series in zip(names, history.series, strict=True)),
        ],
    )


def _headline(history: History) -> str:
    """How many cases stepped, and how many of them for the worse with their last step."""
    stepped = [series for series in history.series if series.steps]
    worse = sum(series.is_worse(series.steps[-1]) for series in stepped)
    if not any(series.is_long_enough for series in history.series):
        return "too few nights for a step"
    if not stepped:
        return f"no step in {plural(len(history.series), 'case')}"
    text = f"{len(stepped)} of {plural(len(history.series), 'case')} stepped"
    return f"{text}, {worse or 'none'} for the worse"


def _nights_curve(history: History, name: str, series: Series) -> Curve:
    """The nights of a case over days, a line a level."""
    first = history.campaigns[0].created
    is_time = series.unit == "ns"
    title = history.figure if is_time or not series.unit else f"{history.figure} ({series.unit})"
    begins = sorted({0, *(step.at for step in series.steps)})
    rows = []
    for at, night in enumerate(series.nights):
        begin = max(index for index in begins if index <= at)
        rows.append(
            (
                f"since {format_moment(series.nights[begin].campaign.created)[:10]}",
                (night.campaign.created - first) / 86400,
                night.campaign.id,
                night.median,
                (min(night.values), max(night.values)),
                len(night.values),
            )
        )
    columns = (
        Column("level", "level"),
        Column("day", f"days since {format_moment(first)[:10]}", "plain"),
        Column("campaign", "campaign"),
        Column("value", title, "ns" if is_time else "number"),
        Column("range", "least to most", "range"),
        Column("runs", "runs", "count"),
    )
    return Curve("history", name, columns, tuple(rows), x="day", y="value", series=("level",), from_zero=False)
