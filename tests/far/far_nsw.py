"""Transport `far`, for tests: a site that another user of this machine stands in for, and that fails when ordered to.

A package as docs/extending/transport.md describes; `tests.far.place` registers it. `transport: {kind: far, host: USER,
config: FOLDER}`: commands run as USER, who cannot read the campaign. FOLDER holds the environment there, the orders of
a test, and the log of the remote commands. `tests.far.place` writes and reads them.
"""

import contextlib
import fcntl
import json
import pwd
import re
import time
from pathlib import Path

from nsw.errors import UnreachableError
from nsw.transport.openssh import OpenSsh
from nsw.transport.remote import RemoteTransport
from nsw.transport.shell import ConnectionLostError

# the parent of each command: as another user, in that user's home, with none of this process's environment
_ENTER = 'cd && eval "$1"'
_SHORT = re.compile(rb"^(?:nsw_call [\d.]+ \S+ \S+ |nsw_go\(\) \{\s*)(.{0,120})", re.MULTILINE)
_left = []  # sessions that this end let go of: what they began goes on, as after a cut


class Orders:
    """The folder of orders.

    Args:
        folder: `environment.json`, `orders` (a JSON object a line) and `log` (a line a remote command).
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    @property
    def environment(self):
        return json.loads((self.folder / "environment.json").read_text())

    def next(self, text, whole):
        """Count a remote command; the order that is meant for it, or None. Each order is carried out `times` times.

        Args:
            text: How it begins, for the log.
            whole: All of it, which an order's `match` is looked for in.
        """
        with (self.folder / "log").open("a+") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            log.seek(0)
            number = sum(1 for _ in log) + 1
            orders = self._waiting()
            found = next((one for one in orders if _is_for(one, number, whole)), None)
            print(number, found["what"] if found else "-", text, file=log)
            if found is not None:
                found["times"] -= 1
                left = [one for one in orders if one["times"] > 0]
                (self.folder / "orders").write_text("".join(f"{json.dumps(one)}\n" for one in left))
        return found

    def _waiting(self):
        file = self.folder / "orders"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]


def _is_for(order, number, text):
    return order["at"] in {None, number} and (order["match"] is None or re.search(order["match"], text) is not None)


class Far(OpenSsh):
    """Starts commands as another user."""

    def __init__(self, user, folder):
        entry = pwd.getpwnam(user)
        self.orders = Orders(folder)
        environment = {"HOME": entry.pw_dir, "PATH": "/usr/local/bin:/usr/bin:/bin"} | self.orders.environment
        become = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
        given = [f"{name}={value}" for name, value in environment.items()]
        super().__init__([*become, "env", "-i", *given, "bash", "-c", _ENTER, "far"], user)

    def open(self, command):
        if (self.orders.folder / "down").exists():
            raise self.explain(255, "connection refused")
        return _Session(super().open(command), self.orders)

    def explain(self, code, message):
        return UnreachableError(f"{self._host} cannot be reached over far (exit status {code}): {message}", hint="wait")


class _Session:
    """A remote command that does as ordered: the messages of a shell are counted each, those of a stream as one."""

    def __init__(self, inner, orders):
        self._inner = inner
        self._orders = orders
        self._stream = None  # whether the messages are data of one command
        self._order = None
        self._budget = None  # bytes that still pass
        self._held = False  # the far end does not hear that this one let go

    def send(self, data):
        if not self._stream:
            self._begin(data)
        if self._order is not None and self._order["what"] == "truncate" and self._stream:
            self._budget -= len(data)
            if self._budget < 0:
                self._inner.send(data[: self._budget])
                raise self._lost("the connection was cut while data was sent")
        self._inner.send(data)
        if self._order is not None and self._order["what"] == "late":
            time.sleep(self._order["seconds"])

    def _begin(self, data):
        """A new remote command: does an order concern it?"""
        self._stream = b"\nnsw_go() {" in data[:100]
        short = _SHORT.search(data)
        text = short[1].decode(errors="replace") if short else "connect"
        self._order = self._orders.next(" ".join(text.split()), data.decode(errors="replace"))
        if self._order is None:
            return
        self._budget = self._order["bytes"]
        if self._order["before"] and self._order["what"] in {"cut", "stall"}:
            self._held = self._order["what"] == "stall"
            raise self._lost("it was cut before the command arrived")

    def end_input(self):
        self._inner.end_input()

    def receive(self, most, timeout):
        order = self._order or {"what": None}
        if order["what"] == "truncate" and not self._stream:
            data = self._inner.receive(max(1, min(most, self._budget + 1)), timeout)
            self._budget -= len(data)
            if self._budget < 0:
                self.kill()
                return b""
            return data
        if order["what"] in {"cut", "stall"} and not self._stream:
            self._inner.receive(1, timeout)  # the command has been carried out by now
            self._held = order["what"] == "stall"
            raise self._lost("no answer in time" if self._held else "it was cut before the answer arrived")
        return self._inner.receive(most, timeout)

    def finish(self, timeout):
        if self._order is not None and self._order["what"] in {"cut", "stall"}:
            self._inner.finish(timeout)
            raise self._lost("it was cut before its end was known")
        return self._inner.finish(timeout)

    def _lost(self, why):
        self.kill()
        return ConnectionLostError(why)

    def kill(self):
        """Let go of it; what it runs goes on, and after a stall it waits for more words."""
        _left.append(self._inner)
        if not self._held:
            for stream in (self._inner._in, self._inner._out):
                with contextlib.suppress(OSError):
                    stream.close()


def end_all():
    """End what this process let go of; a test that connects in its own process does that at its end."""
    while _left:
        _left.pop().kill()


def connect(site, scratch, _mark):
    """The way to the site."""
    how = site["transport"]
    return RemoteTransport(Far(how["host"], how["config"]), site, scratch)
