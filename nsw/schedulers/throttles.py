"""How many tasks of a campaign run at the same time on a batch system: shared among its arrays, each with a throttle.

The sum of what the arrays may run, what the single jobs run and what arrays run of which no task waits stays
within one limit. Every change is a call of the scheduler, so nothing is changed that is neither unused nor too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.schedulers.model import Phase
from nsw.schedulers.submission_ids import Native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.schedulers.model import Answer, Submission


class Throttles:
    """What the arrays in flight may run.

    Args:
        limit: How many tasks may run at the same time.
        change: Sets the throttle of an array, by its name and id; whether that worked.
    """

    def __init__(self, limit: int, change: Callable[[str, Native, int], bool]) -> None:
        self.limit = limit
        self._change = change
        self._natives: dict[str, Native] = {}  # arrays with tasks that wait
        self._set: dict[str, int] = {}  # what each of them may run, where that is known
        self._taken = 0  # what all others run

    def make_way(self, wanted: int) -> int:
        """What a new submission may run at the same time, 1 to `wanted`: what is free, else half of the widest."""
        free = self._free()
        widest = max(self._set, key=self._set.__getitem__, default=None)
        if free > 0 or widest is None:
            return max(1, min(wanted, free))
        gets = min(wanted, self._set[widest] // 2)
        return gets if gets and self._throttle(widest, self._set[widest] - gets) else 1

    def begun(self, submission: Submission, native: Native, share: int) -> None:
        """A submission was taken, with this throttle."""
        if native.offset is None:
            self._taken += 1
        else:
            self._natives[submission.name], self._set[submission.name] = native, share

    def rebalance(self, submissions: Sequence[Submission], told: Mapping[str, Mapping[int, Answer]]) -> None:
        """Share anew after a poll where something is unused, too much, or not known."""
        living = {s.name: [a.phase for a in told[s.name].values() if a.phase is not Phase.ENDED] for s in submissions}
        self._natives = {
            s.name: native
            for s in submissions
            if (native := Native.parse(s.native_id)) and native.offset is not None and Phase.QUEUED in living[s.name]
        }
        if not self.limit:  # a throttle of 0 is none at all, on Slurm; what waits is held instead
            return
        wants = {name: len(living[name]) for name in self._natives}
        self._set = {name: min(self._set[name], wants[name]) for name in wants if name in self._set}
        self._taken = sum(len(phases) for name, phases in living.items() if name not in wants)
        wanted = any(self._set.get(name, 0) < wants[name] for name in wants)
        if len(self._set) == len(wants) and (self._free() == 0 or (self._free() > 0 and not wanted)):
            return
        for name, share in shares(wants, self.limit - self._taken).items():
            if self._set.get(name) != share:
                self._throttle(name, share)

    def _free(self) -> int:
        return self.limit - self._taken - sum(self._set.values())

    def _throttle(self, name: str, share: int) -> bool:
        if not self._change(name, self._natives[name], share):
            return False
        self._set[name] = share
        return True


def shares(wants: Mapping[str, int], total: int) -> dict[str, int]:
    """Split `total` as evenly as it goes: nobody gets more than it wants, and everybody at least one."""
    given: dict[str, int] = {}
    for at, name in enumerate(sorted(wants, key=wants.__getitem__)):
        fair = max(1, (total - sum(given.values())) // (len(wants) - at))
        given[name] = min(wants[name], fair)
    return given
