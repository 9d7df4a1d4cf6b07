"""What the fake PBS server does with a request: a reply is {"code": 0, ...} or {"code": PBSE, "text": "..."}."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import words
from jobs import Asked, Job, duration, resource_list
from mom import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduling import Scheduling

CHUNKED = {"ncpus", "ngpus", "mem", "mpiprocs", "ompthreads", "nodes", "arch", "host", "vnode"}


class RejectedError(Exception):
    """A request that is refused, with the number and the sentence."""

    def __init__(self, what: tuple[str, int], text: str | None = None) -> None:
        super().__init__(text)
        self.code, self.text = what[1], what[0] if text is None else text


class Requests:
    """Answers requests about the jobs of a server."""

    def __init__(
        self, scheduling: Scheduling, settings: Callable[[], dict[str, Any]], now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:  # fmt: skip
        self.scheduling, self.settings, self.now, self.later = scheduling, settings, now, later
        self.last: int | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            done = getattr(self, f"do_{asked['op']}")(asked)
        except RejectedError as no:
            return {"code": no.code, "text": no.text}
        return {"code": 0, **(done or {})}

    # --- submitting -------------------------------------------------------------------------------------

    def do_submit(self, asked: dict[str, Any]) -> dict[str, Any]:
        settings = self.settings()
        job = Asked(**asked["job"])
        job.queue = job.queue or settings["default_queue"]
        self._hooks(job, settings)
        number = self._number()  # what is refused from here on has used up an id
        self._check(job, settings)
        queue = settings["queues"][job.queue]
        try:
            resources, sums = resource_list(job.resources, queue_walltime=queue.get("walltime"))
        except ValueError:
            raise RejectedError(words.BAD_VALUE) from None
        except KeyError as unknown:
            raise RejectedError(words.UNKNOWN_RESOURCE, f"Unknown resource: {unknown.args[0]}") from None
        most = queue.get("walltime")
        if most is not None and duration(resources["walltime"]) > most:
            raise RejectedError(words.BEYOND_LIMITS)
        if any(sums.get(what, 0) > limit for what, limit in queue.get("most", {}).items()):
            raise RejectedError(words.BEYOND_LIMITS)
        if job.indices is not None and len(job.indices) > settings["max_array"]:
            raise RejectedError(words.TOO_LARGE_ARRAY)
        if "route" in queue:
            limits = {name: settings["queues"][name].get("walltime", float("inf")) for name in queue["route"]}
            fits = [name for name, limit in limits.items() if duration(resources.get("walltime", "0")) <= limit]
            if not fits:  # it has its id, and is deleted at once without a record
                return {"id": f"{number}{'[]' if job.indices is not None else ''}.{settings['host']}"}
            job.queue = fits[0]
        return {"id": self._take(job, number, resources).id}

    def _number(self) -> int:
        self.last = self.settings()["first"] if self.last is None else self.last + 1
        return self.last

    def _hooks(self, job: Asked, settings: dict[str, Any]) -> None:
        for hook in settings["hooks"]:
            if hook.get("crashes"):
                name = hook["crashes"]
                text = f"request rejected as filter hook '{name}' encountered an exception. Please inform Admin"
                raise RejectedError(words.REJECTED_BY_HOOK, text)
            held = {"account": job.account, **job.resources}.get(hook["needs"])
            if held is None and hook.get("queue") in {None, job.queue}:
                raise RejectedError(words.REJECTED_BY_HOOK, hook["says"])

    def _check(self, job: Asked, settings: dict[str, Any]) -> None:
        queue = settings["queues"].get(job.queue)
        if queue is None:
            raise RejectedError(words.UNKNOWN_QUEUE)
        if not queue.get("enabled", True):
            raise RejectedError(words.QUEUE_DISABLED)
        if job.owner not in queue.get("acl_users", [job.owner]):
            raise RejectedError(words.UNAUTHORIZED)
        for name in job.resources:
            if name not in settings["known"] and name not in CHUNKED:
                raise RejectedError(words.UNKNOWN_RESOURCE, f"Unknown resource Resource_List.{name}")
        if "select" in job.resources or "place" in job.resources:
            for name in job.resources:
                if name == "nodes":
                    raise RejectedError(words.NODES_BESIDE_SELECT)
                if name in CHUNKED:
                    raise RejectedError(words.JOB_WIDE, words.JOB_WIDE[0].format(name))
        most = queue.get("max_queued")
        mine = [one for one in self.scheduling.jobs.values() if one.queue == job.queue and not one.over]
        if most is not None and len(mine) >= most:
            raise RejectedError(words.TOO_MANY_QUEUED)
        if job.group is not None:
            raise RejectedError(words.BAD_GID)
        if job.run_as not in {None, job.owner}:
            raise RejectedError(words.BAD_UID)

    def _take(self, asked: Asked, number: int, resources: dict[str, str]) -> Job:
        server = self.settings()["host"]
        array = "[]" if asked.indices is not None else ""
        job = Job(
            f"{number}{array}.{server}", number, asked, server, self.now(), name=asked.name, resources=resources,
            queue=asked.queue, changed=self.now(), queued=list(asked.indices or []), throttle=asked.throttle,
        )  # fmt: skip
        asked.variables += [("PBS_O_QUEUE", asked.queue), ("PBS_O_HOST", server)]
        self.scheduling.jobs[job.id] = job
        if asked.hold:
            job.state, job.substate, job.hold = "H", 20, "u"
        elif asked.start_at is not None and asked.start_at > self.now():
            job.state, job.substate = "W", 30
            self.later(asked.start_at - self.now(), lambda: self._begin(job))
        if asked.depend:
            job.depend = [(kind, [self._id(one) for one in ids]) for kind, ids in depends(asked.depend)]
            self.scheduling.depend(job)
        self.scheduling.cycle()
        return job

    def _begin(self, job: Job) -> None:
        if job.state == "W":
            job.state, job.substate = "Q", 10
            self.scheduling.cycle()

    # --- asking -----------------------------------------------------------------------------------------

    def do_status(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Of one id, or of all."""
        history, expand = asked.get("x", False), asked.get("t", False)
        if history and not self.settings()["history"]:
            raise RejectedError(words.NO_HISTORY)
        if asked.get("id") is not None:
            job = self._find(asked["id"])
            if (job.parent or job).state == "F" and not history:
                raise RejectedError(words.FINISHED)
            some = [job]
        else:
            some = [one for one in self.scheduling.jobs.values() if history or one.state != "F"]
            names = asked.get("users")
            some = [one for one in some if names is None or one.asked.owner in names]
        found = [one for job in some for one in (job, *(self._subjobs(job) if expand else ()))]
        return {"jobs": [self._shown(one, asked["user"]) for one in found], "now": int(self.now())}

    def _shown(self, job: Job, user: str) -> list[Any]:
        settings = self.settings()
        names = settings["shown"]

        def called(text: str) -> str:
            for path, name in names.items():
                text = text.replace(path, name)
            return text

        pairs: list[Any] = []
        for key, value in job.attributes(settings["host"], manager=user in settings["managers"]):
            several = isinstance(value, dict)
            pairs.append((key, {k: called(v) for k, v in value.items()} if several else called(value)))
        return [job.id, pairs]

    def _subjobs(self, job: Job) -> list[Job]:
        """Those of an array that has begun; those that have not begun yet look like their parent."""
        if not job.is_array or not (job.begun or job.state == "B"):
            return []
        waiting = {index: self._waiting(job, index) for index in job.queued}
        return [sub for _, sub in sorted((job.begun | waiting).items())]

    def _waiting(self, job: Job, index: int) -> Job:
        return Job(
            job.id.replace("[]", f"[{index}]"), job.seq, job.asked, job.server, job.created, index, job,
            name=job.name, resources=job.resources, queue=job.queue, changed=job.changed, comment=job.comment,
            substate=job.substate,
        )  # fmt: skip

    def do_select(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Ids by user, name and state."""
        if asked["x"] and not self.settings()["history"]:
            raise RejectedError(words.NO_HISTORY)
        found = []
        for job in self.scheduling.jobs.values():
            wanted = asked["x"] or job.state != "F"
            wanted &= asked["users"] is None or job.asked.owner in asked["users"]
            wanted &= asked["name"] in {None, job.name} and (asked["states"] is None or job.state in asked["states"])
            if wanted:
                found.append(job.id)
        return {"ids": found}

    def do_summary(self, _asked: dict[str, Any]) -> dict[str, Any]:
        """For qstat -B and -Q and pbsnodes."""
        live = [one for one in self.scheduling.jobs.values() if not one.over]
        state = (
            self.settings()["down_state"]
            if self.scheduling.down
            else "offline"
            if self.settings()["offline"]
            else "free"
        )
        running = [one for one in self.scheduling.everything() if one.state in "RE" and one.slots]
        return {
            "jobs": [[one.id, one.queue, one.state] for one in live], "settings": self.settings(), "state": state,
            "running": [f"{one.id}/{one.slots[0]}" for one in running], "total": len(self.scheduling.jobs),
            "now": int(self.now()),
        }  # fmt: skip

    # --- changing ---------------------------------------------------------------------------------------

    def do_delete(self, asked: dict[str, Any]) -> None:
        if span := re.fullmatch(r"(\d+)\[(\d+)-(\d+)\](.*)", asked["id"]):
            for index in range(int(span[2]), int(span[3]) + 1):
                with suppress(RejectedError):  # those that are over
                    self.do_delete({**asked, "id": f"{span[1]}[{index}]{span[4]}"})
            return
        job = self._mine(asked, historical=True)
        if (job.parent or job).state == "F" or (job.state == "X" and not asked["x"]):
            if not asked["x"]:
                raise RejectedError(words.FINISHED)
            self.scheduling.jobs.pop(job.id, None)
            return
        if job.parent is not None and job.index in job.parent.queued:
            self.scheduling.delete_queued(job.parent, job.index)
            return
        self.scheduling.delete(job, asked["user"], force=asked["force"])

    def do_hold(self, asked: dict[str, Any]) -> None:
        job = self._mine(asked)
        job.hold = "u" if job.hold == "n" else job.hold
        if job.state in "QW" or (job.is_array and job.state == "B"):  # subjobs that run go on
            job.state, job.substate = "H", 20

    def do_release(self, asked: dict[str, Any]) -> None:
        job = self._mine(asked)
        if "u" in job.hold:
            job.hold = "n"
            if job.state == "H":
                job.state, job.substate = ("B", 70) if job.begun else ("Q", 10)
                self.scheduling.cycle()

    def do_alter(self, asked: dict[str, Any]) -> None:
        job = self._mine(asked)
        if asked["name"] is not None:
            job.name = asked["name"]
        if asked["walltime"] is not None:
            job.resources["walltime"] = asked["walltime"]
        if asked["throttle"] is not None:
            if not job.is_array:
                raise RejectedError(words.BAD_VALUE)
            job.throttle = asked["throttle"]
            self.scheduling.cycle()

    def do_rerun(self, asked: dict[str, Any]) -> None:
        job = self._find(asked["id"])
        if asked["user"] not in self.settings()["managers"]:
            raise RejectedError(words.UNAUTHORIZED)
        if not job.asked.rerunnable:
            raise RejectedError(words.NOT_RERUNNABLE)
        self.scheduling.rerun(job)

    def do_signal(self, asked: dict[str, Any]) -> None:
        job, name = self._mine(asked), asked["signal"]
        if name in {"suspend", "resume"}:
            self.scheduling.mom.kill(job, signal.SIGSTOP if name == "suspend" else signal.SIGCONT)
            job.state, job.substate = ("S", 43) if name == "suspend" else ("R", 42)
        else:
            self.scheduling.mom.kill(job, SIGNALS[name.removeprefix("SIG")])

    def _mine(self, asked: dict[str, Any], *, historical: bool = False) -> Job:
        job = self._find(asked["id"])
        if asked["user"] not in {job.asked.owner, *self.settings()["managers"]}:
            raise RejectedError(words.UNAUTHORIZED)
        if (job.parent or job).state == "F" and not historical:
            raise RejectedError(words.FINISHED)
        return job

    def _id(self, text: str) -> str:
        """`12`, `12[3]`, `12[].pbs0` with the server's name."""
        return text if "." in text else f"{text}.{self.settings()['host']}"

    def _find(self, text: str) -> Job:
        whole = self._id(text)
        match = re.fullmatch(r"(\d+)\[(\d+)\](\..*)", whole)
        if match is None:
            job = self.scheduling.jobs.get(whole)
        else:
            array, index = self.scheduling.jobs.get(f"{match[1]}[]{match[3]}"), int(match[2])
            if array is not None and index in array.queued:
                job = self._waiting(array, index)
            else:
                job = None if array is None else array.begun.get(index)
        if job is None:
            raise RejectedError(words.UNKNOWN_JOB)
        return job


def depends(text: str) -> list[tuple[str, list[str]]]:
    """`afterok:1:2,afterany:3`."""
    found = []
    for part in text.split(","):
        kind, *ids = part.split(":")
        found.append((kind, ids))
    return found
