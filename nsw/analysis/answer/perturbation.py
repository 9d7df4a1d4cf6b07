"""How much profilers changed the program, beside its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Column, Evidence, Note, Table
from nsw.analysis.perturbation import RUN_TIME, WARN_PCT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.blocks import Block
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.perturbation import Perturbation
    from nsw.analysis.summary import Summary

_WARNED: Final = 5
_COLUMNS: Final = (
    Column("case", "case"), Column("pass", "pass"), Column("figure", "figure", "name"),
    Column("baseline", "baseline", "number"), Column("profiled", "profiled", "number"), Column("unit", "unit"),
    Column("change_pct", "change", "change %"),
)  # fmt: skip
_NOTE: Final = Column("scatter", "note")


def blocks(summary: Summary) -> list[Block]:
    """A row for each figure of a timeline or host pass that a baseline has too, and warnings of great changes."""
    return of_cases(summary.cases)


def of_cases(cases: Sequence[CaseSummary]) -> list[Block]:
    """The same, of these cases."""
    found = [(case.id, p) for case in cases for p in case.perturbation]
    if not found:
        return []
    noted = any(_note(p) for _, p in found)
    rows = tuple(
        (case, p.pass_name, p.figure, p.baseline, p.profiled, p.unit or "", p.change_pct,
         *((_note(p),) if noted else ()))
        for case, p in found
    )  # fmt: skip
    evidence = (Evidence("perturbation", tuple(dict.fromkeys(case for case, _ in found))),)
    columns = (*_COLUMNS, *((_NOTE,) if noted else ()))
    table = Table("perturbation", "what profilers changed (medians)", columns, rows, wide="figure",
                  least=("unit", "baseline", "profiled"), evidence=evidence)  # fmt: skip
    # one a pass: its first figure counts before its run time, which comes last
    first = {(case, p.pass_name): (case, p) for case, p in reversed(found) if p.is_much}
    much = sorted(first.values(), key=lambda item: -abs(item[1].change_pct))
    notes = [Note("perturbation", f"warning: {_sentence(case, p)}", tone="warning") for case, p in much[:_WARNED]]
    if len(much) > _WARNED:
        more = f"(and {len(much) - _WARNED} more by more than {WARN_PCT:.0f} %)"
        notes.append(Note("perturbation", more, tone="warning"))
    return [table, *notes]


def _note(p: Perturbation) -> str:
    """What a change does not tell."""
    if p.certain is False:
        return "within the scatter"
    if abs(p.change_pct) < WARN_PCT or p.is_much:
        return ""
    return "may be the profiler's start" if p.may_be_start else "one run of either"


def _sentence(case: str, p: Perturbation) -> str:
    change = f"pass {p.pass_name} changed {p.figure} of {case} by {p.change_pct:+.0f} %, more than {WARN_PCT:.0f} %"
    if p.figure == RUN_TIME:
        return (
            f"{change}, and how much of that falls on the steady state is not known: take shares from it, and times"
            " from the baseline; a figure of the program (`app.figures`) tells more"
        )
    once = "; one run of either, so it may be scatter" if p.certain is None else ""
    return f"{change}: take shares from it, and times from the baseline{once}"
