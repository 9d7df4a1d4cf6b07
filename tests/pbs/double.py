"""A fake OpenPBS for a test: its server as a process, its commands first on PATH, and what a test may do to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

FAKE = Path(__file__).parents[1] / "fakes" / "pbs"
STARTS_S = 120
NONE = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


class Double:
    """A fake PBS with its state in `root`; use it as a context.

    Args:
        root: An empty folder, or none yet.
        settings: What differs from tests/fakes/pbs/server_defaults.py.
    """

    def __init__(self, root: Path, **settings: object) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.values: dict[str, object] = {}
        self.settings(**settings)
        self.env = {
            "NSW_FAKE_PBS": str(root),
            "NSW_FAKE_PYTHON": sys.executable,
            "PATH": f"{FAKE / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self.root / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-E", "-s", "-S", FAKE / "server.py", self.root], stderr=log, env=os.environ | self.env,
                **NONE,
            )  # fmt: skip
        deadline = time.monotonic() + STARTS_S
        while not (self.root / "pid").exists():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError((self.root / "server.log").read_text())
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        assert self.process is not None
        ended = self.process.poll() is not None
        if not ended:
            self.control("_stop")
            self.process.wait(timeout=STARTS_S)
        said = (self.root / "server.log").read_text()
        if kind is None:
            assert not said, said

    def settings(self, **values: object) -> None:
        """Change settings; they count at once."""
        self.values |= values
        file = self.root / "settings.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        part = self.root / "settings.part"
        part.write_text(json.dumps(known | values))
        part.replace(file)

    def control(self, op: str, **asked: object) -> dict[str, Any]:
        """What only tests ask of the server: `_advance`, `_lose_node`, `_regain_node`, `_forget`, `_cycle`, `_stop`."""
        with socket.socket(socket.AF_UNIX) as connection:
            folder = os.open(self.root, os.O_RDONLY)
            try:
                connection.connect(f"/proc/self/fd/{folder}/socket")
            finally:
                os.close(folder)
            connection.sendall(json.dumps({"op": op, **asked}).encode() + b"\n")
            data = b""
            while part := connection.recv(1 << 16):
                data += part
        return json.loads(data)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Give a command."""
        env = os.environ | self.env
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False)

    def live(self) -> list[str]:
        """Ids of jobs that wait or run."""
        return self.command("qselect").stdout.split()

    def fault(self, command: str, **how: object) -> None:
        """The next call of a command goes wrong: tests/fakes/machinery.py says how."""
        folder = self.root / "faults"
        folder.mkdir(exist_ok=True)
        with (folder / command).open("a") as file:
            file.write(json.dumps(how) + "\n")

    def down(self, *, is_down: bool = True) -> None:
        """Nobody reaches the server; it goes on all the same."""
        (self.root / "down").touch() if is_down else (self.root / "down").unlink(missing_ok=True)

    def hold(self) -> None:
        """No job starts."""
        self.settings(scheduling=False)

    def release(self) -> None:
        """Jobs start again."""
        self.settings(scheduling=True)
        self.control("_cycle")
