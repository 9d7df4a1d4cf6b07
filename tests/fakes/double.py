"""What every fake batch system needs: a folder of state, a lock, settings, and the faults that a test ordered.

A test writes `settings.json` into the folder, and `faults/COMMAND` with JSON lines. Each call of that command takes
the first line: {"rc": 1, "stdout": "", "stderr": "...", "sleep": 0, "after": false, "times": 1}. `after` does the
work before it fails; `times` keeps the line for so many calls.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def fail(text: str, code: int = 1) -> NoReturn:
    if text:
        print(text, file=sys.stderr)
    sys.exit(code)


class State:
    """A folder of JSON files with a lock.

    Args:
        root: The folder; made when it is first written to.
        defaults: Settings where `settings.json` has none.
    """

    def __init__(self, root: Path, defaults: Mapping[str, Any]) -> None:
        self.root = root
        self.defaults = defaults

    def setting(self, name: str) -> Any:
        return self.read("settings", {}).get(name, self.defaults[name])

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self, name: str, default: Any = None) -> Any:
        try:
            return json.loads((self.root / f"{name}.json").read_bytes())
        except FileNotFoundError:
            return default

    def write(self, name: str, data: object) -> None:
        path = self.root / f"{name}.json"
        part = path.with_suffix(f".part{os.getpid()}")
        part.write_text(json.dumps(data))
        part.replace(path)

    def next_fault(self, command: str) -> dict[str, Any]:
        file = self.root / "faults" / command
        if not file.exists():
            return {}
        with self.locked():
            lines = file.read_text().splitlines()
            if not lines:
                return {}
            fault: dict[str, Any] = json.loads(lines[0])
            left = fault.get("times", 1) - 1
            lines[0:1] = [json.dumps(fault | {"times": left})] if left else []
            file.write_text("".join(line + "\n" for line in lines))
        return fault


def run(state: State, command: str, argv: list[str], commands: Mapping[str, Callable[[list[str]], None]]) -> None:
    """Carry out a command, with the fault that was ordered for it."""
    fault = state.next_fault(command)
    time.sleep(fault.get("sleep", 0))
    if fault and not fault.get("after"):
        sys.stdout.write(fault.get("stdout", ""))
        fail(fault.get("stderr", ""), fault.get("rc", 1))
    if not fault:
        commands[command](argv)
        return
    stdout, sys.stdout = sys.stdout, Path(os.devnull).open("w")  # noqa: SIM115  until the process ends
    try:
        commands[command](argv)
    finally:
        sys.stdout = stdout
    sys.stdout.write(fault.get("stdout", ""))
    fail(fault.get("stderr", ""), fault.get("rc", 1))
