"""What becomes of the jobs of the fake PBS: when they start, end, are removed, and what depends on them."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

from jobs import Job, duration, minute, size_kb
from machinery import session_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mom import Mom

LIMITS = {"walltime": -29, "mem": -27}
NODE_LOST = -20
STARTS = 21


class Scheduling:
    """Jobs by id, and what happens to them.

    Args:
        mom: The node.
        settings: Gives the settings of the moment.
        now: The time.
        later: Calls a function after so many seconds.
        host: The server's and the node's name.
    """

    def __init__(
        self, mom: Mom, settings: Callable[[], dict[str, Any]], now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None], host: str,
    ) -> None:  # fmt: skip
        self.mom, self.settings, self.now, self.later, self.host = mom, settings, now, later, host
        self.jobs: dict[str, Job] = {}
        self.down = False

    # --- starting ---------------------------------------------------------------------------------------

    def cycle(self) -> None:
        """One scheduling cycle: start what can be started, and say of the rest why it cannot."""
        settings = self.settings()
        if not settings["scheduling"]:
            return
        for job in list(self.jobs.values()):
            if job.state not in "QB" or job.over:
                continue
            if job.is_array:
                while job.queued and job.state in "QB" and self._start_subjob(job, settings):
                    pass
            else:
                self._try(job, settings)

    def _start_subjob(self, array: Job, settings: dict[str, Any]) -> bool:
        active = sum(not sub.over for sub in array.begun.values())
        if array.throttle is not None and active >= array.throttle:
            return False
        if not self._may_start(array, settings):
            return False
        index = array.queued.pop(0)
        sub = self._subjob(array, index)
        if array.state == "Q":
            array.state, array.substate, array.started = "B", 70, self.now()
            array.comment = f"Job Array Began at {minute(self.now())}"
        self._start(sub, settings)
        return True

    def _subjob(self, array: Job, index: int) -> Job:
        sub = Job(
            array.id.replace("[]", f"[{index}]"), array.seq, array.asked, array.server, array.created, index, array,
            name=array.name, resources=dict(array.resources), queue=array.queue,
        )  # fmt: skip
        array.begun[index] = sub
        return sub

    def _try(self, job: Job, settings: dict[str, Any]) -> None:
        if self._may_start(job, settings):
            self._start(job, settings)

    def _may_start(self, job: Job, settings: dict[str, Any]) -> bool:
        why = self._why_not(job, settings)
        if why is not None:
            job.comment = why
        return why is None

    def _why_not(self, job: Job, settings: dict[str, Any]) -> str | None:
        if not settings["queues"][job.queue].get("started", True):
            return "Not Running: Queue not started."
        nodes = settings["nodes"]
        scattered = "scatter" in job.resources.get("place", "")
        if scattered and job.need("nodect") > nodes:
            return "Can Never Run: Not enough total nodes available"
        running = [one for one in self.everything() if one.state in "RES" and one.slots]
        for what, of_node in settings["node"].items():
            asked = size_kb(job.resources.get(what, "0b")) if what == "mem" else job.need(what)
            each = size_kb(of_node) if what == "mem" else int(of_node)
            unit = "kb" if what == "mem" else ""
            free = each * nodes - sum(self._taken(one, what) for one in running)
            if asked > each * nodes:
                text = f"(R: {asked}{unit} A: {free}{unit} T: {each * nodes}{unit})"
                return f"Can Never Run: Insufficient amount of resource: {what} {text}"
            if asked > free:
                text = f"(R: {asked}{unit} A: {free}{unit} T: {each * nodes}{unit})"
                return f"Not Running: Insufficient amount of resource: {what} {text}"
        return "Not Running: Not enough free nodes available" if self.down or settings["offline"] else None

    def _taken(self, job: Job, what: str) -> int:
        return size_kb(job.resources.get(what, "0b")) if what == "mem" else job.need(what)

    def everything(self) -> list[Job]:
        """Jobs, arrays and the subjobs that have begun."""
        return [one for job in self.jobs.values() for one in (job, *job.begun.values())]

    def _start(self, job: Job, settings: dict[str, Any]) -> None:
        taken = {slot for one in self.everything() if one.state in "RES" for slot in one.slots}
        free = (slot for slot in range(100000) if slot not in taken)
        chunks = job.resources["select"].split("+")
        job.slots = [next(free) for _ in range(job.need("nodect"))]
        values = chunks[0].partition(":")[2].split(":")
        told = []
        for value in values:
            name, _, number = value.partition("=")
            if name in {"ncpus", "ngpus", "mem"}:
                told.append(f"{name}={size_kb(number)}kb" if name == "mem" else value)
        if not any(value.startswith("ncpus") for value in told):
            told.insert(0, "ncpus=1")
        one = f"({self.host}:{':'.join(told)})"
        job.placed = "+".join([one] * len(job.slots))
        if settings["begin_rejects"]:
            self._rejected(job)
            return
        job.state, job.substate, job.started = "R", 41, self.now()
        job.changed, job.run_count, job.exit, job.used, job.ending = self.now(), job.run_count + 1, None, None, None
        job.session, job.killed_by = None, None
        job.comment = f"Job run at {minute(self.now())} on {job.placed}"
        if job.parent is None:
            job.depend = []
        self.mom.start(job)
        start = job.run_count
        self.later(settings["mom_poll"], lambda: self._polled(job, start))

    def _rejected(self, job: Job) -> None:
        """A hook execjob_begin rejected the start: once more later, 21 times in all."""
        job.run_count, job.slots, job.placed = job.run_count + 1, [], ""
        if job.run_count < STARTS:
            self.later(self.settings()["mom_poll"], self.cycle)
            return
        job.state, job.substate, job.hold = "H", 20, "s"
        job.comment = "job held, too many failed attempts to run"

    def _polled(self, job: Job, start: int) -> None:
        """What mom reports of a running job now and then; limits are looked at then."""
        if job.state not in "RS" or job.run_count != start or self.down:
            return
        assert job.started is not None
        assert job.process is not None
        ran = self.now() - job.started
        job.session, job.substate = job.process.pid, 42 if job.state == "R" else job.substate
        job.used = used(ran)
        limit = job.resources.get("walltime")
        if limit is not None and ran > duration(limit) and job.ending is None:
            self._end_for(job, "walltime", f"job killed: walltime {int(ran)} exceeded limit {duration(limit)}")
        elif "mem" in job.resources and self.settings()["memory_kb"] > size_kb(job.resources["mem"]):
            job.used["mem"] = f"{self.settings()['memory_kb']}kb"
            limit = f"{size_kb(job.resources['mem'])}kb"
            self._end_for(job, "mem", f"job killed: mem {job.used['mem']} exceeded limit {limit}")
        self.later(self.settings()["mom_poll"], lambda: self._polled(job, start))

    def _end_for(self, job: Job, why: str, text: str) -> None:
        job.ending = why
        self.mom.tell(job, text)
        self.mom.kill(job, signal.SIGTERM)
        start = job.run_count
        self.later(self.settings()["kill_delay"], lambda: self._kill(job, start))

    def _kill(self, job: Job, start: int) -> None:
        if job.run_count == start and job.state in "RS":
            job.files.pop("stays", None)
            while self.lingers(job):  # a process may be born between the look and the signal
                self.mom.kill(job, signal.SIGKILL)
                time.sleep(0.001)
            self.reap()

    # --- ending -----------------------------------------------------------------------------------------

    def reap(self) -> None:
        """See which processes have ended."""
        ended = False
        for job in self.everything():
            if job.process is not None and job.state in "RS" and not self.down and not job.files.get("stays"):
                code = job.process.poll()
                if code is not None and not self.lingers(job):
                    self._exited(job, code)
                    ended = True
        if ended:
            self.cycle()

    def lingers(self, job: Job) -> bool | None:
        """Whether processes of a job that PBS ends still run; None for a job that it does not end."""
        if job.ending is None or job.process is None:
            return None
        return bool(session_of(job.process.pid))

    def _exited(self, job: Job, code: int) -> None:
        self.mom.kill(job, signal.SIGKILL)  # what the script left in the background
        job.process = None
        if job.ending == "rerun":
            self.mom.forget(job)
            self._requeue(job)
            return
        if job.ending == "qdel":
            job.exit = 256 + signal.SIGTERM
        elif job.ending == "force":
            job.exit = 256 + signal.SIGKILL
        else:
            job.exit = LIMITS.get(job.ending or "", 256 - code if code < 0 else code)
        assert job.started is not None
        kept = (job.used or {}).get("mem")
        job.used = used(self.now() - job.started) | ({"mem": kept} if kept else {})
        job.state, job.substate, job.ended, job.changed = "E", 51, self.now(), self.now()
        if wait := self.settings()["exiting"]:
            self.later(wait, lambda: self._deliver(job))
        else:
            self._deliver(job)

    def _deliver(self, job: Job) -> None:
        """Copy what it printed to where it belongs; that comes a moment after the end, and is tried for a while."""
        delivered = self.mom.deliver(job)
        wait = 0.0 if delivered else self.settings()["retry_delivery"]
        if wait:
            self.later(wait, lambda: self._over(job, delivered))
        else:
            self._over(job, delivered)

    def _over(self, job: Job, delivered: bool) -> None:
        if not delivered:
            self.mom.give_up(job)
        job.stageout = int(delivered)
        deleted = job.ending in {"qdel", "force"}
        job.substate = 91 if deleted else 92 if job.exit == 0 else 93
        if job.ending in LIMITS:
            words = f" and exceeded resource {job.ending}"
        elif deleted:
            words = f" and terminated by {job.killed_by}"
        else:
            words = " and finished" if job.exit == 0 else " and failed"
        job.comment = f"{(job.comment or '').removesuffix(' and terminated b')}{words}"
        self.finish(job)

    def finish(self, job: Job) -> None:
        """A job's last change: into the history, or out of sight."""
        job.history, job.changed = self.now(), self.now()
        job.slots = job.slots or []
        if job.parent is not None:
            job.state = "X"
            if job.exit is not None:
                job.parent.exit = int(bool(job.exit or job.parent.exit))
            if not self.settings()["history"]:
                self._made_up(job)
            self._array_over(job.parent)
            return
        job.state = "F"
        if not self.settings()["history"]:
            self.jobs.pop(job.id, None)
        self._tell_children(job)
        self.cycle()

    def _made_up(self, sub: Job) -> None:
        """A subjob without a record is shown with its array's attributes."""
        assert sub.parent is not None
        sub.comment = f"Subjob {'failed' if sub.exit else 'finished'}"
        sub.substate, sub.run_count, sub.placed, sub.used, sub.stageout = sub.parent.substate, 0, "", None, None

    def _array_over(self, array: Job) -> None:
        """An array is over with its last subjob, with exit status 0 whatever they had."""
        if array.queued or any(not sub.over for sub in array.begun.values()) or array.over:
            return
        good = all(sub.exit in {0, None} for sub in array.begun.values())
        deleted = array.killed_by is not None
        for sub in array.begun.values():
            sub.state = "F"
        array.ended, array.exit, array.stageout = self.now(), 0, 1
        array.substate = 91 if deleted else 92 if good else 93
        words = f"terminated by {array.killed_by}" if deleted else "finished" if good else "failed"
        array.comment = f"{array.comment} and {words}" if array.comment else None
        self.finish(array)

    # --- dependencies -----------------------------------------------------------------------------------

    def depend(self, job: Job) -> None:
        """Hold a job until what it depends on has ended as needed; remove it if that cannot be any more."""
        waits = False
        for kind, ids in job.depend:
            for parent_id in ids:
                parent = self.jobs.get(parent_id)
                if parent is None or (parent.over and not satisfied(kind, parent)):
                    self._remove(job)
                    return
                if not parent.over:
                    waits = True
                    parent.before.append((kind.replace("after", "before"), job.id))
        if waits:
            job.state, job.substate, job.hold = "H", 22, "s"
        else:
            job.depend = []

    def _remove(self, job: Job) -> None:
        """Ended without a word: as if it had succeeded, with no exit status."""
        job.hold, job.substate = "s", 92
        self.finish(job)

    def _tell_children(self, parent: Job) -> None:
        for _, child_id in list(parent.before):
            child = self.jobs.get(child_id)
            if child is None or child.over:
                continue
            if any(parent.id in ids and not satisfied(kind, parent) for kind, ids in child.depend):
                self._remove(child)
                continue
            known = [self.jobs.get(one) for _, ids in child.depend for one in ids]
            if all(one is not None and one.over for one in known):
                child.depend, child.hold, child.state, child.substate = [], "n", "Q", 10
                parent.before = [pair for pair in parent.before if pair[1] != child_id]

    # --- what users and the site do ----------------------------------------------------------------------

    def delete(self, job: Job, by: str, *, force: bool = False) -> None:
        """qdel: at once when it has not begun, else by TERM and KILL."""
        who = f"{by}@{self.host}"
        if job.is_array:
            job.killed_by = who
            for index in list(job.queued):
                self.delete_queued(job, index)
            for sub in list(job.begun.values()):
                if not sub.over:
                    self.delete(sub, by, force=force)
            self._array_over(job)
        elif job.state in "RES":
            self._delete_running(job, who, force=force)
        else:
            job.substate = 91
            if job.comment is not None:
                job.comment += " and terminated"
            self.finish(job)

    def delete_queued(self, array: Job, index: int) -> None:
        """A subjob that has not begun."""
        array.queued.remove(index)
        sub = self._subjob(array, index)
        sub.state = "X"
        self._made_up(sub)
        self._array_over(array)

    def _delete_running(self, job: Job, who: str, *, force: bool) -> None:
        if job.ending in {"qdel", "force"} and not force:
            self.mom.kill(job, signal.SIGTERM)
            return
        job.killed_by, job.ending = who, "force" if force else "qdel"
        start = job.run_count
        if force:
            self.mom.kill(job, signal.SIGKILL)
            return
        job.comment = f"{job.comment} and terminated b"
        job.files["stays"] = True  # the real one waits for the whole delay
        self.mom.kill(job, signal.SIGTERM)
        self.later(self.settings()["kill_delay"], lambda: self._kill(job, start))

    def rerun(self, job: Job) -> None:
        """qrerun: back into the queue, from where it starts again."""
        job.ending = "rerun"
        self.mom.kill(job, signal.SIGKILL)
        if job.process is not None:
            job.process.wait()
        self.reap()

    def _requeue(self, job: Job) -> None:
        job.state, job.substate, job.ending, job.slots, job.placed = "Q", 10, None, [], ""
        job.used = None

    def lose_node(self) -> None:
        """The node dies with all that runs on it; the server takes its time to see it."""
        self.down = True
        for job in self.everything():
            if job.state in "RS":
                self.mom.kill(job, signal.SIGKILL)
                start = job.run_count
                self.later(self.settings()["node_fail_requeue"], lambda job=job, start=start: self._lost(job, start))

    def _lost(self, job: Job, start: int) -> None:
        if job.run_count != start or not self.down or job.state not in "RS":
            return
        job.process = job.used = None
        if job.asked.rerunnable:
            self._requeue(job)
            job.exit = NODE_LOST
        else:
            job.exit, job.substate, job.ended = NODE_LOST, 93, self.now()
            self.mom.forget(job)
            self.finish(job)
        self.cycle()

    def regain_node(self) -> None:
        self.down = False
        self.reap()
        self.later(30.0, self.cycle)


def satisfied(kind: str, parent: Job) -> bool:
    """Whether a job that has ended is what a dependency waits for. One that was removed has no exit status."""
    if kind == "afterany":
        return True
    return parent.exit == 0 if kind == "afterok" else parent.exit not in {0, None}


def used(seconds: float) -> dict[str, str]:
    whole = int(seconds)
    return {
        "cpupercent": "0", "cput": "00:00:00", "mem": "7308kb" if whole else "0kb", "ncpus": "1",
        "vmem": "10380kb" if whole else "0kb",
        "walltime": f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}",
    }  # fmt: skip
