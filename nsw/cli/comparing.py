"""`nsw compare`, `gate`, `noise` and `baseline`: two sides beside each other, and rules that they must keep."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from enum import StrEnum
from math import log1p
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from nsw.analysis.compared_screen import comparison_blocks, log_ratio_to_percent
from nsw.analysis.gate import Outcome, check_rules, gate_outcome, judge_rules
from nsw.campaign import baselines
from nsw.campaign.compare import UnlikeError, measure_noise, sides_of
from nsw.campaign.compare import compare as compared
from nsw.cli.application import command
from nsw.cli.options import (
    Campaign,
    GateTarget,
    Now,
    PairedRecipe,
    Plot,
    PlotTarget,
    Root,
    TableTarget,
    Yes,
    argument,
    option,
)
from nsw.cli.output import Target, print_on_stderr
from nsw.engine import folder as folders
from nsw.errors import Exit, UsageError
from nsw.present import compare_view, emit
from nsw.present.plots import plot_of
from nsw.present.rows_view import show_rows
from nsw.present.terminal import console
from nsw.present.untrusted_text import print_untrusted
from nsw.recipe.units import Tolerance, option_value, parse_percent, parse_tolerance
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsw.analysis.sides import By

_EXITS: Final = {Outcome.PASSED: Exit.GOOD, Outcome.FAILED: Exit.GATE_FAILED, Outcome.UNDECIDED: Exit.UNDECIDED}

Subject = StrEnum("Subject", ["CASE", "FIGURE", "KERNEL", "CLASS", "RANGE", "METRIC", "FUNCTION"])
BaselineAction = StrEnum("BaselineAction", ["SET", "LS", "RM"])
_BY: Final = (
    "What a row is: case (its figure, or its iteration), figure, kernel, class (of kernels), range (NVTX), metric (ncu)"
    " or function (CPU)."
)
Sides = Annotated[
    list[str] | None,
    argument(
        metavar="A B",
        help="What is compared with, and what is compared: campaigns, baselines, CAMPAIGN:CASE, reports. Or CAMPAIGN"
        " CASE CASE. Or one campaign of `nsw run --against`, which holds both; the newest if none is named.",
    ),
]


@command("nsw compare before after --by kernel")
def compare(
    sides: Sides = None,
    root: Root = None,
    by: Annotated[Subject, typer.Option("--by", metavar="WHAT", help=_BY)] = Subject.CASE,
    same: Annotated[str, typer.Option("--same", metavar="PERCENT", help="Differences below count as none.")] = "1%",
    plot: Plot = None,
    *,
    target: PlotTarget,
) -> int:
    """Compare two campaigns, cases or reports: what got faster, how certain that is, what did it."""
    least_difference = log1p(option_value("--same", parse_percent, same))
    target.check_plot(plot)
    kind = cast("By", by.value)
    comparison = compared(*sides_of(sides or [], root, kind), kind, least_difference)
    if target.is_of_rows:
        target.put_rows(compare_view.rows_of(comparison), compare_view.COLUMNS)
        return Exit.GOOD
    if target.is_of_plot:
        target.put_plot(plot_of(comparison_blocks(comparison), plot))
        return Exit.GOOD
    with target.stdout_to_output():
        words = ["nsw", "compare", *(sides or []), *(["--root", str(root)] if root else [])]
        compare_view.show(comparison, target.format, shlex.join(words))
    return Exit.GOOD


@command("nsw gate main alexnet-scaling-20261121 --rule 'images_per_sec: -2%'")
def gate(
    sides: Sides = None,
    rules: Annotated[
        list[str] | None,
        option(
            "--rule",
            metavar="RULE",
            help="Such as 'images_per_sec: -2%' (it may fall by 2 % at most) or 'step_ms: +2% or undecided'; may be"
            " repeated. Default: report.gate of B's recipe.",
        ),
    ] = None,
    by_history: Annotated[
        bool,
        option(
            "--history",
            help="Fail on a step for the worse in the last 10 campaigns of a recipe, whose name may be given, that no"
            " baseline and no note since then accepts.",
        ),
    ] = False,
    root: Root = None,
    *,
    target: GateTarget,
) -> int:
    """Hold B to rules beside A: exit code 4 where one fails, 5 where the runs do not decide."""
    words, rule_texts = sides or [], rules or []
    if by_history:
        return _gate_history(words, rule_texts, root, target)
    tolerances: Mapping[str, Tolerance] = dict(map(_parse_gate_rule, rule_texts))
    try:
        compared_sides = sides_of(words, root, "figure")
        tolerances = tolerances or compared_sides[1].gate
        check_rules(tolerances, compared_sides)
        comparison = compared(*compared_sides, "figure")
    except UnlikeError as fault:
        print_on_stderr(f"Gate undecided: {fault}")
        return Exit.UNDECIDED
    judged = judge_rules(comparison, tolerances)
    outcome = gate_outcome(judged)
    with target.stdout_to_output():
        if target.format == "json":
            emit.as_json(compare_view.gate_data(comparison, judged, outcome))
        elif target.format == "markdown":
            sys.stdout.write(compare_view.gate_markdown(comparison, judged, outcome))
        elif target.format == "junit":
            sys.stdout.write(compare_view.gate_junit(comparison, judged, outcome))
        elif target.format == "html":
            line = shlex.join(["nsw", "gate", *words, *(f"--rule={rule}" for rule in rule_texts)])
            sys.stdout.write(compare_view.gate_page(comparison, judged, outcome, line))
        else:
            compare_view.show_gate(comparison, judged, outcome)
    return _EXITS[outcome]


def _gate_history(words: Sequence[str], rules: Sequence[str], root: Path | None, target: Target) -> int:
    """The outcome of `nsw gate --history`."""
    from nsw.campaign.history import Request, history, unaccepted_steps
    from nsw.present.history_view import history_data, show_gate_of_history

    if len(words) > 1 or rules:
        raise UsageError("nsw gate --history takes one recipe's name, and no rule", hint="`nsw gate --history NAME`")
    if target.format not in {"table", "json"}:
        raise UsageError(f"nsw gate --history prints no {target.format}", hint="--format json")
    result = history(Request(recipe=words[0] if words else None, root=root))
    steps = unaccepted_steps(result)
    decided = all(series.is_long_enough for series in result.series)
    outcome = Outcome.FAILED if steps else Outcome.PASSED if decided else Outcome.UNDECIDED
    with target.stdout_to_output():
        if target.format == "json":
            emit.as_json({"outcome": str(outcome), **history_data(result, steps)})
        else:
            show_gate_of_history(result, steps, outcome)
    return _EXITS[outcome]


@command("nsw noise recipe.yaml --site mycluster")
def noise(
    options: PairedRecipe,
    root: Root = None,
    pairs: Annotated[int, typer.Option("--pairs", min=3, help="How many pairs of each case.")] = 12,
    yes: Yes = False,
    now: Now = False,
) -> int:
    """Run a recipe beside itself: how much its figures scatter where nothing changed, for compare and gate."""
    from nsw.campaign.running import Running
    from nsw.cli.running import begin_campaign, carry_out
    from nsw.recipe.load import Before
    from nsw.recipe.matrix import ITSELF

    same_program = Before(ITSELF, notes=("both sides are the same program",), only_bare=True)
    settings = (*options.overrides.settings, f"repeats={pairs}")
    in_pairs = replace(options, overrides=replace(options.overrides, settings=settings, before=same_program))
    folder = begin_campaign(in_pairs, root, note="noise floor: both sides are the same program", yes=yes)
    code = carry_out(Running(folder), now=now)
    if code == Exit.INTERRUPTED:
        return code
    measured, file = measure_noise(folder)
    for noise in measured:
        print_on_stderr(
            f"{noise.figure}: pairs scatter by {log_ratio_to_percent(noise.pair):.2g} %,"
            f" runs by {log_ratio_to_percent(noise.run):.2g} %"
            f" (standard deviations, {plural(noise.freedom + 1, 'pair')}): kept in {file}"
        )
    return code


def _parse_gate_rule(text: str) -> tuple[str, Tolerance]:
    figure, _, tolerance = text.rpartition(":")
    return figure.strip(), option_value(f"--rule '{text}'", parse_tolerance, tolerance, "'images_per_sec: -2%'")


@command("nsw baseline set main alexnet-scaling-20261121")
def baseline(
    action: Annotated[BaselineAction, argument(help="set: name a campaign. ls: list the names. rm: forget one.")],
    name: Annotated[str | None, argument(metavar="NAME", help="The name, such as main.")] = None,
    campaign: Campaign = None,
    root: Root = None,
    *,
    target: TableTarget,
) -> int:
    """Give campaigns names, for `nsw compare` and `nsw gate`."""
    parent = folders.root(root)
    if action is BaselineAction.LS:
        rows = [{"baseline": name, "campaign": id_} for name, id_ in sorted(baselines.read_baselines(parent).items())]
        columns = ("baseline", "campaign")

        def show() -> None:
            show_rows(console(), "baselines", rows, columns, table_name="baselines") if rows else print_on_stderr(
                "no baseline: `nsw baseline set NAME`"
            )

        target.put_data(rows, columns, data=lambda: {"baselines": rows}, show=show)
        return Exit.GOOD
    if name is None:
        raise UsageError(f"nsw baseline {action} needs a name")
    if action is BaselineAction.RM:
        baselines.remove(parent, name)
        return Exit.GOOD
    folder = folders.find(parent, campaign)
    baselines.set_baseline(parent, name, folder.id)
    print_untrusted(f"{name} is {folder.id}")
    return Exit.GOOD
