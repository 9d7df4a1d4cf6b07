"""How much profilers changed the program, beside its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.perturbation import WARN_PCT
from nsw.present.terminal import number, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.perturbation import Perturbation

_WARNED = 5


def show_perturbation(out: Console, cases: Sequence[CaseSummary]) -> None:
    """Print a row for each figure of a timeline or host pass that a baseline has too, and warn of great changes."""
    found = [(case.id, p) for case in cases for p in case.perturbation]
    if not found:
        return
    rows = [
        (case, p.pass_name, p.figure, number(p.baseline), number(p.profiled), p.unit or "", f"{p.change_pct:+.1f} %",
         "" if p.certain is None else "" if p.certain else "within the scatter")
        for case, p in found
    ]  # fmt: skip
    columns = ("case", "pass", "figure", "baseline>", "profiled>", "unit", "change>", "")
    out.print(table("what profilers changed (medians)", columns, rows, wide="figure"))
    # one a pass: its first figure counts before its run time, which comes last
    first = {(case, p.pass_name): (case, p) for case, p in reversed(found) if p.is_much}
    much = sorted(first.values(), key=lambda item: -abs(item[1].change_pct))
    for case, p in much[:_WARNED]:
        out.print(f"warning: {_sentence(case, p)}", style="yellow", soft_wrap=True)
    if len(much) > _WARNED:
        out.print(f"(and {len(much) - _WARNED} more passes by {WARN_PCT:.0f} % and more)", style="yellow")


def _sentence(case: str, p: Perturbation) -> str:
    once = "; one run of either, so it may be scatter" if p.certain is None else ""
    return (
        f"pass {p.pass_name} changed {p.figure} of {case} by {p.change_pct:+.0f} %, more than {WARN_PCT:.0f} %: take"
        f" shares from it, and times from the baseline{once}"
    )
