"""Which processes of a launcher are profiled: the others run the program as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.plan.launchers import RANK_VARIABLE
from nsw.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.launchers import Launch

# Of mpirun and mpiexec there are several, and of custom launchers any: Open MPI, MVAPICH2, MPICH and Intel MPI, PMIx,
# HPE's PALS, Flux. What Slurm says holds within a step of srun only: a batch script's own rank is inherited by all.
_ANY: Final = "NSW_RANK"
_ASKED: Final = frozenset({"mpirun", "mpiexec", "custom"})
_VARIABLES: Final = (
    "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "RANK",
)  # fmt: skip
_UNTOLD: Final = "nsw: several processes, and no variable that launchers set distinguishes them: " + ", ".join(
    _VARIABLES
)
# a single process needs no rank; of several without one the first is rank 0 and the others fail
_TELL_RANK: Final = (
    f"for v in {' '.join(_VARIABLES)} ${{SLURM_STEP_ID:+SLURM_PROCID}}; do"
    f' {_ANY}=${{!v-}}; [ -z "${_ANY}" ] || break; done;'
    f' if [ -z "${_ANY}" ]; then {_ANY}=0;'
    f" (set -C; : >.rank-0) 2>/dev/null || {{ echo '{_UNTOLD}' >&2; exit 1; }}; fi;"
    f' export {_ANY}; exec "$@"'
)
# the shell prints the word after :? when the variable is missing, and the process fails
_UNSET = "this launcher sets no such variable, and without it nobody knows which ranks are to be profiled"


def rank_variable(how: Launch) -> str:
    """The variable that tells a process its rank."""
    return _ANY if how.kind in _ASKED else RANK_VARIABLE.get(how.kind, "RANK")


def told_rank(how: Launch, process: Sequence[str]) -> tuple[str, ...]:
    """One process's words, with its rank in `rank_variable`: some launchers are of several MPIs."""
    return ("bash", "-c", _TELL_RANK, "nsw", *process) if how.kind in _ASKED else tuple(process)


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
        raise Fault(f"one profiler runs around all processes of {how.kind}, so it profiles every rank", hint=hint)


def only(
    ranks: str | Sequence[int], how: Launch, under_profiler: Sequence[str], program: Sequence[str]
) -> tuple[str, ...]:
    """One process's words: under the profiler where its rank is named, else the program alone."""
    if ranks == "all":
        return tuple(under_profiler)
    named = "0" if isinstance(ranks, str) else "|".join(str(rank) for rank in sorted(set(ranks)))
    # $1: how many words are the program's own, which follow the profiled command's: these may be more in the job
    text = (
        f'case ${{{rank_variable(how)}:?{_UNSET}}} in {named}) exec "${{@:2:$#-1-$1}}" ;; esac; exec "${{@:$#-$1+1}}"'
    )
    return ("bash", "-c", text, "nsw", str(len(program)), *under_profiler, *program)
