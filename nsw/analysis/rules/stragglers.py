"""What is said of a rank, node or rack that the others wait for, where four ranks or more are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import Context, Hit
from nsw.quantities import format_ns
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

__all__ = ["RULES"]

_NAMED: Final = 3
_RACK: Final = " Its nodes share power, cooling and a switch: report it, and run without it until then (--exclude)."


def _straggler_hit(case: CaseSummary, _: Context) -> Hit | None:
    """The ranks, nodes or racks that hold the others up: how often, what it costs all, and why the first is late."""
    late = [entry for entry in case.stragglers if entry.late]
    if not late:
        return None
    first, cost_pct = late[0], sum(entry.cost_pct for entry in late)
    names = first_names([entry.name for entry in late], _NAMED)
    known = causes()[first.cause or "late-rank-host"]
    fact = (
        f"{first.name} comes last to {first.last_pct:.0f} % of the collectives, {format_ns(first.late_ns)} behind the"
        f" median rank, at a cost of {format_ns(first.cost_ns)} an iteration"
    )
    if first.why:
        fact += f"; {first.why}"
    if len(late) > 1:
        fact += f". {first_names([entry.name for entry in late[1:]], _NAMED)} too: together {cost_pct:.0f} %"
    is_rack = first.rack is not None and first.node is None
    return Hit(
        known.id, case.id, min(cost_pct, 95.0), f"{names} late, {cost_pct:.0f} % of an iteration", known.do, fact,
        known.remedy("any") + _RACK * (is_rack and known.id != "uneven-work"), f"{cost_pct:.0f} %", "stragglers",
    )  # fmt: skip


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | Sequence[Hit] | None]]] = {
    "stragglers": _straggler_hit
}
