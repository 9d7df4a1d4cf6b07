"""`nsw compare`, `nsw gate` and `nsw baseline`: two sides beside each other, and rules that they must keep."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from math import log1p
from typing import TYPE_CHECKING, Final, cast

from nsw.analysis.compared_screen import Outcome, blocks_of_comparison, check_rules, judge, outcome_of, percent_of
from nsw.campaign import baselines
from nsw.campaign.compare import UnlikeError, sides_of
from nsw.campaign.compare import compare as compared
from nsw.cli.output import tell
from nsw.engine import folder as folders
from nsw.errors import CampaignError, Exit, UsageError
from nsw.present import compare_view, emit
from nsw.present.plots import plot_of
from nsw.present.rows_view import show_rows
from nsw.present.terminal import console
from nsw.present.untrusted_text import say
from nsw.recipe.units import Fault, parse_percent, parse_tolerance
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsw.analysis.sides import By
    from nsw.cli.output import Target
    from nsw.recipe.load import Overrides
    from nsw.recipe.units import Tolerance

__all__ = ["baseline", "compare", "gate", "noise", "share"]

_EXITS: Final = {Outcome.PASSED: Exit.GOOD, Outcome.FAILED: Exit.GATE_FAILED, Outcome.UNDECIDED: Exit.UNDECIDED}


def compare(words: Sequence[str], root: Path | None, target: Target, *, by: str, same: float, plot: str | None) -> int:
    """Show two sides beside each other."""
    target.check_plot(plot)
    kind = cast("By", by)
    comparison = compared(*sides_of(words, root, kind), kind, same)
    if target.is_of_rows:
        target.put_rows(compare_view.rows_of(comparison), compare_view.COLUMNS)
        return Exit.GOOD
    if target.is_of_plot:
        target.put_plot(plot_of(blocks_of_comparison(comparison), plot))
        return Exit.GOOD
    with target.printed():
        compare_view.show(comparison, target.format, shlex.join(["nsw", "compare", *words, "--by", by]))
    return Exit.GOOD


def gate(words: Sequence[str], root: Path | None, target: Target, *, rules: Sequence[str]) -> int:
    """Hold two sides to rules; 4 where one fails, 5 where one is not decided."""
    tolerances: Mapping[str, Tolerance] = dict(map(_rule, rules))
    try:
        sides = sides_of(words, root, "figure")
        tolerances = tolerances or sides[1].gate
        check_rules(tolerances, sides)
        comparison = compared(*sides, "figure")
    except (UnlikeError, CampaignError) as fault:
        tell(f"Gate undecided: {fault}")
        return Exit.UNDECIDED
    judged = judge(comparison, tolerances)
    outcome = outcome_of(judged)
    with target.printed():
        if target.format == "json":
            emit.as_json(compare_view.gate_data(comparison, judged, outcome))
        elif target.format == "markdown":
            sys.stdout.write(compare_view.gate_markdown(comparison, judged, outcome))
        elif target.format == "html":
            sys.stdout.write(
                compare_view.gate_page(
                    comparison,
                    judged,
                    outcome,
                    shlex.join(["nsw", "gate", *words, *(f"--rule={rule}" for rule in rules)]),
                )
            )
        else:
            compare_view.show_gate(comparison, judged, outcome)
    return _EXITS[outcome]


def noise(
    recipe: str, site: str | None, sites: Sequence[Path] | None, root: Path | None, options: Overrides, *,
    pairs: int, yes: bool, now: bool,
) -> int:  # fmt: skip
    """Run a recipe beside itself, and keep how much its figures scatter."""
    from nsw.campaign.compare import measure_noise
    from nsw.campaign.running import Running
    from nsw.cli.running import begin, carry_out
    from nsw.recipe.load import Before

    same_program = Before("itself", notes=("both sides are the same program",), only_bare=True)
    options_of_pairs = replace(options, settings=(*options.settings, f"repeats={pairs}"), before=same_program)
    note = "noise floor: both sides are the same program"
    folder = begin(recipe, site, sites, root, options_of_pairs, note=note, yes=yes)
    code = carry_out(Running(folder), now=now)
    if code == Exit.INTERRUPTED:
        return code
    measured, file = measure_noise(folder)
    for noise in measured:
        tell(
            f"{noise.figure}: pairs scatter by {percent_of(noise.pair):.2g} %, runs by {percent_of(noise.run):.2g} %"
            f" (standard deviations, {plural(noise.freedom + 1, 'pair')}): kept in {file}"
        )
    return code


def share(text: str) -> float:
    """What counts as the same, as a logarithm."""
    try:
        return log1p(parse_percent(text))
    except Fault as fault:
        raise UsageError(f"--same: {fault.message}", hint=fault.hint) from None


def _rule(text: str) -> tuple[str, Tolerance]:
    figure, _, tolerance = text.rpartition(":")
    try:
        return figure.strip(), parse_tolerance(tolerance)
    except Fault as fault:
        raise UsageError(f"--rule '{text}': {fault.message}", hint=fault.hint or "'images_per_sec: -2%'") from None


def baseline(action: str, name: str | None, campaign: str | None, root: Path | None, target: Target) -> int:
    """Name a campaign to compare with, list the names, or forget one."""
    parent = folders.root(root)
    if action == "ls":
        rows = [{"baseline": name, "campaign": id_} for name, id_ in sorted(baselines.read_baselines(parent).items())]
        columns = ("baseline", "campaign")

        def show() -> None:
            show_rows(console(), "baselines", rows, columns, table_name="baselines") if rows else tell(
                "no baseline: `nsw baseline set NAME`"
            )

        target.put_data(rows, columns, data=lambda: {"baselines": rows}, show=show)
        return Exit.GOOD
    if name is None:
        raise UsageError(f"nsw baseline {action} needs a name")
    if action == "rm":
        baselines.remove(parent, name)
        return Exit.GOOD
    folder = folders.find(parent, campaign)
    baselines.set_baseline(parent, name, folder.id)
    say(f"{name} is {folder.id}")
    return Exit.GOOD
