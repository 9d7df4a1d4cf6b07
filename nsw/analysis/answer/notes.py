"""Notes beside the numbers: on the campaign, what is missing, outliers, and what profilers changed of the program."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Block, Column, Evidence, Note, Table
from nsw.analysis.figures import RUN_TIME, WARN_PCT, Perturbation
from nsw.analysis.groups import group_by
from nsw.analysis.rules.profiler_cost import profiler_slowdown
from nsw.quantities import change_in_sentence, format_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.summary import Summary


def campaign_note_blocks(summary: Summary) -> list[Block]:
    """What must be known with all its numbers."""
    return [Note("note", summary.note, tone="warning")] if summary.note else []


def node_note_blocks(summary: Summary) -> list[Block]:
    """Where the ranks of each case were; cases that were alike share a line."""
    together = group_by(summary.nodes, itemgetter(1))
    return [Note("nodes", f"{', '.join(case for case, _ in nodes)}: {text}") for text, nodes in together.items()]


def missing_data_blocks(summary: Summary) -> list[Block]:
    """What is absent, and why."""
    return [Note("missing", text, tone="warning") for text in summary.missing]


def outlier_blocks(summary: Summary) -> list[Block]:
    """A sentence each."""
    return [
        Note(
            "outlier",
            f"outlier: {outlier.run}: {outlier.text}",
            tone="warning",
            evidence=(Evidence("figures", (outlier.case_id,)),),
        )
        for outlier in summary.outliers
    ]


_MAX_CASES: Final = 5  # cases in a warning
_MAX_ADDED_SHARE: Final = (
    0.5  # of the run time that a pass adds: what the program's own slowness explains is not its start
)
_PERTURBATION: Final = (
    Column("case", "case"), Column("pass", "pass"), Column("figure", "figure", "name"),
    Column("baseline", "baseline", "number"), Column("profiled", "profiled", "number"), Column("unit", "unit"),
    Column("change_pct", "change", "change %"),
)  # fmt: skip
_NOTE: Final = Column("scatter", "note")


def perturbation_blocks(summary: Summary) -> list[Block]:
    """A row for each figure of a timeline or host pass that a baseline has too, and warnings of great changes."""
    cases = summary.cases
    changes = [(case.id, p) for case in cases for p in case.perturbation]
    if not changes:
        return []
    notes_of = [
        _perturbation_caveat(p, profiler_slowdown(case, p.pass_name)) for case in cases for p in case.perturbation
    ]
    noted = any(notes_of)
    rows = tuple(
        (case, p.pass_name, p.figure, p.baseline, p.profiled, p.unit or "", p.change_pct, *((note,) if noted else ()))
        for (case, p), note in zip(changes, notes_of, strict=True)
    )
    evidence = (Evidence("perturbation", tuple(dict.fromkeys(case for case, _ in changes))),)
    columns = (*_PERTURBATION, *((_NOTE,) if noted else ()))
    table = Table("perturbation", "what profilers changed (medians)", columns, rows, wide="figure",
                  least=("baseline", "profiled", "unit"), evidence=evidence)  # fmt: skip
    # one a pass: its first figure counts before its run time, which comes last
    first = {(case, p.pass_name): (case, p) for case, p in reversed(changes) if p.is_much}
    largest_first = sorted(first.values(), key=lambda item: -abs(item[1].change_pct))
    alike = group_by(largest_first, lambda item: (item[1].pass_name, item[1].figure, item[1].certain))
    notes = [
        Note("perturbation", f"warning: {_perturbation_warning(group)}", tone="warning") for group in alike.values()
    ]
    return [table, *notes]


def _perturbation_caveat(p: Perturbation, slowdown_factor: float) -> str:
    """What a change does not tell."""
    if p.certain is False:
        return "within the scatter"
    if abs(p.change_pct) < WARN_PCT or p.is_much:
        return ""
    if not p.may_be_start:
        return f"{_unknown_scatter_text([p])} ran once"
    explained = p.baseline * (slowdown_factor - 1) >= _MAX_ADDED_SHARE * (p.profiled - p.baseline)
    return "" if explained else "profiler's start?"


def _unknown_scatter_text(changes: Sequence[Perturbation]) -> str:
    """What ran too seldom to know the scatter of changes."""
    run_counts = {"pass": [p.runs for p in changes], "baseline": [p.baseline_runs for p in changes]}
    return " and ".join(side for side, runs in run_counts.items() if set(runs) == {1}) or "pass or baseline"


def _perturbation_warning(alike: Sequence[tuple[str, Perturbation]]) -> str:
    """One warning for the cases in which a pass changed a figure much, the largest change first."""
    case, p = alike[0]
    subject, by, case_list = case, f"by {change_in_sentence(p.change_pct)}, more than {WARN_PCT:.0f} %", ""
    if len(alike) > 1:
        subject, by = f"{len(alike)} cases", f"by more than {WARN_PCT:.0f} %"
        omitted = [f"and {len(alike) - _MAX_CASES} more"] if len(alike) > _MAX_CASES else []
        changes = [f"{case} {format_change(perturbation.change_pct, 0)}" for case, perturbation in alike[:_MAX_CASES]]
        case_list = f" ({', '.join([*changes, *omitted])})"
    message = f"pass {p.pass_name} changed {p.figure} of {subject} {by}"
    if p.figure == RUN_TIME:
        return (
            f"{message}, and how much of that falls on the steady state is not known: take shares from it, and times"
            f" from the baseline; a figure of the program (`app.figures`) tells more{case_list}"
        )
    once = (
        f"; {_unknown_scatter_text([p for _, p in alike])} ran only once, so it may be scatter"
        if p.certain is None
        else ""
    )
    return f"{message}: take shares from it, and times from the baseline{once}{case_list}"
