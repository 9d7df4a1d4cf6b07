"""Which processes of a launcher may be profiled: whether those that a pass names can be told from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.launchers import Launch

__all__ = ["check_ranks"]


def check_ranks(ranks: str | Sequence[int], how: Launch, *, each: bool) -> None:
    """See that the named processes can be told from the others.

    Args:
        ranks: `all`, `first`, `node`, or the ranks.
        how: The launcher.
        each: Whether each of its processes gets a profiler of its own.

    Raises:
        Fault: They cannot, or there is no such rank.
    """
    if ranks == "all":
        return
    total = how.layout.total
    beyond = [] if isinstance(ranks, str) or total is None else [r for r in ranks if r >= total]
    if beyond:
        there = "there is one process, rank 0" if total == 1 else f"the ranks are 0 to {(total or 0) - 1}"
        raise Fault(f"there is no rank {', '.join(map(str, beyond))}: {there}")
    if not each and how.kind != "none":
        hint = "leave `ranks` out, or let `app: launcher: profiler: inside` start a profiler for each process"
        raise Fault(f"one profiler runs around all processes of {how.kind}, so it profiles every rank", hint=hint)
