"""Which processes of a launcher are profiled: the others run the program as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.plan.launchers import RANK_VARIABLE
from nsw.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.launchers import Launch

# the shell's word behind :? is said when the variable is missing, and the process fails
_UNSET = "this launcher sets no such variable, and without it nobody knows which ranks are to be profiled"


def rank_variable(how: Launch) -> str:
    """The variable that tells a process its rank."""
    return RANK_VARIABLE.get(how.kind, "RANK")


def check_ranks(ranks: str | Sequence[int], how: Launch, *, each: bool) -> None:
    """See that the named processes can be told from the others.

    Args:
        ranks: `all`, `first`, or the ranks.
        how: The launcher.
        each: Whether each of its processes gets a profiler of its own.

    Raises:
        Fault: They cannot, or there is no such rank.
    """
    if ranks == "all":
        return
    beyond = [] if isinstance(ranks, str) or how.ranks is None else [r for r in ranks if r >= how.ranks]
    if beyond:
        there = "there is one process, rank 0" if how.ranks == 1 else f"the ranks are 0 to {(how.ranks or 0) - 1}"
        raise Fault(f"there is no rank {', '.join(map(str, beyond))}: {there}")
    if not each and how.kind != "none":
        hint = "leave `ranks` out, or let `app: launcher: profiler: inside` start a profiler for each process"
        raise Fault(f"one profiler stands outside, around all processes of {how.kind}: it profiles them all", hint=hint)


def only(
    ranks: str | Sequence[int], how: Launch, under_profiler: Sequence[str], program: Sequence[str]
) -> tuple[str, ...]:
    """One process's words: under the profiler where its rank is named, else the program alone."""
    if ranks == "all":
        return tuple(under_profiler)
    named = "0" if isinstance(ranks, str) else "|".join(str(rank) for rank in sorted(set(ranks)))
    # $1 how many words are the profiled command's; the program's own follow them
    text = f'case ${{{rank_variable(how)}:?{_UNSET}}} in {named}) exec "${{@:2:$1}}" ;; esac; exec "${{@:$1+2}}"'
    return ("bash", "-c", text, "nsw", str(len(under_profiler)), *under_profiler, *program)
