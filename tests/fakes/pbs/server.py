"""The fake PBS server: one process that keeps jobs in memory, schedules and runs them, and answers on a socket.

`python server.py ROOT` serves from the folder ROOT until its parent ends or a test asks it to stop. Settings come from
ROOT/settings.json. With `"clock": "virtual"` time stands still until a test lets it go on to the next event, and the
jobs' `sleep` sleeps in that time: so minutes pass in no time, and nothing happens in between.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from machinery import Fake  # noqa: E402
from mom import Mom  # noqa: E402
from requests import Requests  # noqa: E402
from scheduling import Scheduling  # noqa: E402
from server_defaults import DEFAULTS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


class Server:
    """The loop: requests, ends of processes, and timers."""

    def __init__(self, root: Path) -> None:
        self.fake = Fake(root, DEFAULTS)
        self.root = root
        self.selector = selectors.DefaultSelector()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()
        self.sleepers: dict[socket.socket, tuple[float, str]] = {}
        self.virtual = self.settings()["clock"] == "virtual"
        self.time = self.settings()["started_at"]
        host = self.settings()["host"]
        mom = Mom(root / "spool", root / "home", host)
        self.scheduling = Scheduling(mom, self.settings, self.now, self.later, host)
        self.requests = Requests(self.scheduling, self.settings, self.now, self.later)
        self.running = True

    def settings(self) -> dict[str, Any]:
        file = self.root / "settings.json"
        with suppress(OSError, ValueError):
            return DEFAULTS | json.loads(file.read_text())
        return dict(DEFAULTS)

    def now(self) -> float:
        return self.time if self.virtual else time.time()

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.timers, (self.now() + seconds, next(self.numbers), act))

    def serve(self) -> None:
        parent = os.getppid()
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        listening = socket.socket(socket.AF_UNIX)
        os.chdir(self.root)
        listening.bind("socket")
        listening.listen(200)
        self.selector.register(listening, selectors.EVENT_READ)
        self.selector.register(read, selectors.EVENT_READ)
        (self.root / "pid").write_text(str(os.getpid()))
        while self.running and os.getppid() == parent and self.root.exists():
            for key, _ in self.selector.select(self._timeout()):
                if key.fileobj is listening:
                    self._answer(listening.accept()[0])
                elif key.fileobj == read:
                    os.read(read, 4096)
                else:
                    self._wake(key.fileobj, said=False)
            self.scheduling.reap()
            if not self.virtual:
                self._due()
        for job in self.scheduling.everything():
            self.scheduling.mom.kill(job, signal.SIGKILL)

    def _timeout(self) -> float:
        if self.virtual or not self.timers:
            return 1.0
        return max(0.0, min(1.0, self.timers[0][0] - time.time()))

    def _due(self) -> None:
        while self.timers and self.timers[0][0] <= self.now():
            heapq.heappop(self.timers)[2]()

    # --- requests ---------------------------------------------------------------------------------------

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        data = b""
        with suppress(OSError):
            while not data.endswith(b"\n") and (part := connection.recv(1 << 20)):
                data += part
        if not data.endswith(b"\n"):  # the client was killed while it asked
            connection.close()
            return
        asked = json.loads(data)
        if asked["op"] == "sleep":
            self.sleepers[connection] = (self.now() + asked["seconds"], asked["job"])
            self.selector.register(connection, selectors.EVENT_READ)
            return
        reply = self._control(asked) if asked["op"].startswith("_") else self.requests.answer(asked)
        with suppress(OSError):  # the client was killed while it waited
            connection.sendall(json.dumps(reply).encode() + b"\n")
        connection.close()

    def _control(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What only tests ask."""
        match asked["op"]:
            case "_stop":
                self.running = False
            case "_advance":
                self._advance()
            case "_lose_node":
                self.scheduling.lose_node()
            case "_regain_node":
                self.scheduling.regain_node()
            case "_forget":  # as qmgr's "job_history_duration" does
                self.scheduling.jobs.pop(asked["id"], None)
            case "_cycle":
                self.scheduling.cycle()
            case "_jobs":  # all of them: sequence number, name, tasks
                jobs = self.scheduling.jobs.values()
                return {"jobs": [[job.seq, job.name, len(job.asked.indices or [0])] for job in jobs]}
            case "_is_now":  # an id that was given out again
                job = self.scheduling.jobs[asked["id"]]
                for one in (job, *job.begun.values()):
                    one.name, one.asked.owner = asked.get("name", one.name), asked.get("owner", one.asked.owner)
            case "_rerun":  # as a manager's qrerun
                self.scheduling.rerun(self.scheduling.jobs[asked["id"]])
        return {"settled": self._settled(), "next": self._next(), "now": self.now()}

    def _settled(self) -> bool:
        """Whether nothing can happen before time goes on: every process of a job sleeps."""
        self.scheduling.reap()
        if self.scheduling.down:
            return True
        asleep = {job for _, job in self.sleepers.values()}
        active = [job for job in self.scheduling.everything() if job.state == "R" and job.process is not None]
        return all(job.id in asleep or self.scheduling.lingers(job) is False for job in active)

    def _next(self) -> float | None:
        due = [when for when, _ in self.sleepers.values()] + [timer[0] for timer in self.timers[:1]]
        return min(due, default=None)

    def _advance(self) -> None:
        due = self._next()
        if due is None:
            return
        self.time = max(self.time, due)
        for connection, (when, _) in list(self.sleepers.items()):
            if when <= self.time:
                self._wake(connection, said=True)
        self._due()

    def _wake(self, connection: Any, *, said: bool) -> None:
        if self.sleepers.pop(connection, None) is not None:
            self.selector.unregister(connection)
        if said:
            with suppress(OSError):
                connection.sendall(b"{}\n")
        connection.close()


if __name__ == "__main__":
    Server(Path(sys.argv[1])).serve()
