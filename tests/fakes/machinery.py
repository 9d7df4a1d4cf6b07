"""What every fake scheduler shares: a state folder with a lock and settings, and faults that a test asks for.

Faults: the file `faults/COMMAND` in the state folder holds JSON lines, and each call of the command takes the first:
{"rc": 1, "stderr": "...", "stdout": "...", "sleep": 0, "after": false, "noise": "..."}. `after` does the work before
the command fails. `noise` is printed on stdout before the true answer, and the command does not fail.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def fail(text: str, code: int = 1) -> NoReturn:
    """End the command: a line on stderr and an exit status."""
    print(text, file=sys.stderr)
    sys.exit(code)


def write_json(path: Path, data: object) -> None:
    """Replace a file, so that nobody reads half of it."""
    part = path.with_suffix(f".part{os.getpid()}")
    part.write_text(json.dumps(data))
    part.replace(path)


@dataclass(frozen=True)
class Fake:
    """The state folder of a fake scheduler, and the settings that a test has not changed."""

    root: Path
    defaults: Mapping[str, Any]

    def setting(self, name: str) -> Any:
        """From settings.json in the state folder, else the default."""
        file = self.root / "settings.json"
        return (json.loads(file.read_text()) if file.exists() else {}).get(name, self.defaults[name])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time changes the state."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def next_fault(self, command: str) -> dict[str, Any]:
        """The fault that this call has; empty for none."""
        file = self.root / "faults" / command
        with self.locked():
            lines = file.read_text().splitlines() if file.exists() else []
            if not lines:
                return {}
            file.write_text("".join(line + "\n" for line in lines[1:]))
        return json.loads(lines[0])

    def run(
        self, command: str, work: Callable[[], object], forbidden: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> None:
        """Do a command's work with the fault that it has.

        Args:
            command: Its name.
            work: Does it; it prints, and ends with sys.exit.
            forbidden: Beginnings of environment variables that nsw must have cleared; the command fails with 99.
            kept: Variables among them that may stay.
        """
        leaked = [name for name in os.environ if name.startswith(tuple(forbidden)) and name not in kept]
        if leaked:
            fail(f"{command}: the environment holds {', '.join(leaked)}", 99)
        fault = self.next_fault(command)
        time.sleep(fault.get("sleep", 0))
        if "noise" in fault:
            print(fault.pop("noise"), flush=True)
            fault = {}
        if not fault or fault.get("after"):
            stdout = sys.stdout
            if fault:
                sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  until the process ends
            try:
                work()
            except SystemExit:
                if not fault:
                    raise
            sys.stdout = stdout
        if fault:
            print(fault.get("stdout", ""), end="")
            fail(fault.get("stderr", ""), fault.get("rc", 1))


def processes_of(leader: int) -> list[int]:
    """The processes of a session that have not ended, and all that they started, in sessions of their own too: what a
    scheduler that follows processes (proctrack/cgroup) ends with a job."""
    stats = {}
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                stats[int(entry.name)] = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
    inside = {pid for pid, stat in stats.items() if int(stat[3]) == leader}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in inside} - inside:
        inside |= more
    return sorted(pid for pid in inside if stats[pid][0] != "Z")


def session_of(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text()
            except OSError:
                continue
            fields = stat.rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found
