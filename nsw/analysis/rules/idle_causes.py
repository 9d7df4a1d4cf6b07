"""Idle time of a GPU by its cause: what a rule over gaps gives, and the words and sizes that such rules share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.hits import MOSTLY
from nsw.quantities import format_ns

if TYPE_CHECKING:
    from nsw.analysis.idle_gpu import Gaps, IdleGpu

__all__ = [
    "EACH", "GAP_WORDS", "IDLE_TIME", "LOCKING", "NEARLY", "PART", "RARE", "SHORT", "SLOW_HOST_NS", "SOME", "IdleCause",
    "host_work_in_migrations_ns", "often_text", "slow_reads",
]  # fmt: skip

SHORT: Final = ("short", "middle")
PART: Final = 0.25  # of a time: what takes as much explains it
NEARLY: Final = 0.8
EACH: Final = 0.25  # waits a kernel, or long gaps an operation
LOCKING: Final = 3  # threads that wait for a lock in turn
SOME: Final = 0.1  # of gaps
RARE: Final = 0.75  # an iteration: fewer are counted over several iterations
SLOW_HOST_NS: Final = 1e6  # what a checkpoint, a log, a collection of garbage takes at least
_PAGE_FAULT_NS: Final = 125e3  # of a gap around migrations: what faults of the host take (71 to 122 us, planted cases)
IDLE_TIME: Final = "{idle time}"  # in a cause's fact: its sentence names the idle time before, or another one does
# what the host does in a gap of table gaps -> the same
GAP_WORDS: Final = {
    "launch": "launches", "queued": "starts of queued operations", "synchronise": "waits for the GPU",
    "value": "values read back", "copy": "copies", "allocate": "allocation", "load": "modules loaded",
    "migration": "page migrations", "input": "input", "spawn": "processes started",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdleCause:
    """Idle time of an iteration by its cause: what a cure saves at most, ns; the sentence, and the size in words.

    `gaps_ns` is the idle time that it explains, by the gaps of its kind; None: all that it saves. `named`: what of that
    has other words in table gaps, by these. `is_of_slow_iterations`: it is why iterations are slow of which
    `find_slow_iterations` tells. `recurs`: without iterations, whether it is known to come again and again. In `fact`,
    `IDLE_TIME` stands for the idle time.
    """

    cause: str
    saved_ns: float
    what: str
    fact: str
    advice: str = ""
    do: str = ""
    gaps_ns: float | None = None
    named: tuple[tuple[str, float], ...] = ()
    is_of_slow_iterations: bool = False
    recurs: bool = False

    @property
    def explained_ns(self) -> float:
        """The idle time that it explains."""
        return self.saved_ns if self.gaps_ns is None else self.gaps_ns

    @property
    def fact_of_rest(self) -> str:
        """Its fact where a sentence before it names the same idle time."""
        if IDLE_TIME in self.fact:
            return self.fact.replace(IDLE_TIME, "the same idle time")
        return f"{format_ns(self.explained_ns)} of the same idle time: {self.fact}"


def host_work_in_migrations_ns(idle: IdleGpu) -> float:
    """What of gaps around page migrations the host works on the data, ns: all that its faults do not take.

    Returns:
        0 where that is the lesser part.
    """
    gaps = [gap for gap in idle.gaps if gap.cause == "migration"]
    faults_ns = idle.gap_scale * _PAGE_FAULT_NS * sum(gap.gaps for gap in gaps)
    took_ns = idle.in_gaps("migration")
    return took_ns - faults_ns if faults_ns < (1 - MOSTLY) * took_ns else 0.0


def slow_reads(idle: IdleGpu) -> list[Gaps]:
    """Long gaps behind values read back that are hardly longer than others behind such values, as many of which are."""
    long_gaps, between = (
        [gap for gap in idle.gaps if gap.cause == "value" and gap.length == length] for length in ("long", "middle")
    )
    is_same = sum(g.gaps for g in between) >= MOSTLY * sum(g.gaps for g in long_gaps)
    return [g for g in long_gaps if is_same and g.total_ns <= SLOW_HOST_NS * g.gaps]


def often_text(idle: IdleGpu, count: float) -> str:
    """How often, behind a number of which there are so many in the mean iteration."""
    if not idle.is_iteration:
        return "in all"
    return f"every {1 / count:.0f} iterations" if 0 < count < RARE else "an iteration"
