"""A batch system behind a real sshd, over a network that fails on command; or on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.transport import openssh, shell, ssh
from nsw.transport.local import LocalTransport
from nsw.transport.model import connect
from tests.far.place import folder_of_both, make_user
from tests.far.staged import Site
from tests.remote.conftest import Server, free_port

from .systems import RealSlurm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.errors import CommandResult
    from nsw.transport.model import Transport
    from tests.slurm.places import Real

    from .systems import System

PROXY = Path(__file__).parent / "proxy.py"
AT_MOST_S = 5.0  # for a command here, so that a silent network is waited for as long as a test can
# in front of a command of the batch system: WORK/plans/NAME holds lines of bash, and each call of it takes the first
STAND_IN = """#!/bin/bash
here=:WORK/bin:; path=:$PATH:; path=${path//"$here"/:}  # which need not be the first: a login may put more before it
REAL=$(PATH=$path command -v NAME)
exec 9>>WORK/plans/NAME.lock; flock 9
read -r plan 2>/dev/null <WORK/plans/NAME && sed -i 1d WORK/plans/NAME
exec 9>&-
[ -z "$plan" ] || echo "$plan" >>WORK/plans/done
eval "${plan:-:}"
exec "$REAL" "$@"
"""


class Hasty:
    """A transport that gives commands little time: a network that is silent is noticed soon."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def run(self, argv: Sequence[str], *, timeout: float, **how: object) -> CommandResult:
        return self._inner.run(argv, timeout=min(timeout, AT_MOST_S), **how)

    def run_many(self, commands: Sequence[Sequence[str]], *, timeout: float, **how: object) -> list[CommandResult]:
        return self._inner.run_many(commands, timeout=min(timeout, AT_MOST_S), **how)


class Network:
    """The proxy in front of the sshd.

    Args:
        folder: Where its orders lie.
        target: The port of the sshd.
    """

    def __init__(self, folder: Path, target: int) -> None:
        self.folder = folder
        self.port = free_port()
        folder.mkdir()
        words = [sys.executable, str(PROXY), str(self.port), str(target), str(folder)]
        self.process = subprocess.Popen(words)
        deadline = time.monotonic() + 60
        while not (folder / "ready").exists():
            assert time.monotonic() < deadline
            assert self.process.poll() is None
            time.sleep(0.01)

    def order(self, *orders: dict[str, object]) -> None:
        """Break these turns."""
        usual = {"before": False, "bytes": 0, "seconds": 0.0}
        part = self.folder / "orders.part"
        part.write_text("".join(f"{json.dumps(usual | one)}\n" for one in orders))
        part.replace(self.folder / "orders")

    def turns(self) -> int:
        """How often the client spoke."""
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def faults(self) -> list[str]:
        """What was broken, with the number of its turn."""
        log = self.folder / "log"
        return [line for line in log.read_text().splitlines() if not line.endswith(" -")] if log.exists() else []

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Distant:
    """The site, as seen from here.

    Args:
        folder: A folder that both users may write in.
        kind: The transport; `local` without one.
        system: Its batch system.
        server: The sshd.
        network: The way to it, where it may fail.
    """

    folder: Path
    kind: str
    system: System
    server: Server
    network: Network | None = None
    scratch: Path = field(init=False)

    def __post_init__(self) -> None:
        self.scratch = self.folder / "there"
        self.scratch.mkdir()
        shutil.chown(self.scratch, self.system.user)

    @property
    def data(self) -> dict[str, object]:
        return {"transport": {"kind": self.kind, "host": "far", "config": str(self.server.config)}}

    @property
    def slurm(self) -> Real:
        """Its Slurm, as its user sees it."""
        assert isinstance(self.system, RealSlurm)
        return self.system.place(self.folder)

    def site(self, *, hasty: bool = False, scratch: Path | None = None) -> Site:
        """Where a staged campaign is carried out; `hasty` where the network may be silent."""

        def way(there: str, mark: Path) -> Transport:
            if self.kind == "local":
                os.environ.update(self.server.environment)  # of the child that carries it out
                return LocalTransport(mark)
            if not hasty:
                return connect(self.data, there, mark)
            # in the child that carries it out, and nowhere else
            shell._SLACK_S, shell._IDLE_S = 3.0, 8
            ssh._CONNECT_S = 5.0
            ssh.ASK_S, ssh.SILENT_S = 1.0, 2.0
            silent = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=3")
            openssh._OPTIONS = (*silent, *openssh._OPTIONS)
            return Hasty(connect(self.data, there, mark))  # type: ignore[return-value]

        return Site(self.system.name, self.system.adapter, way, str(scratch or self.scratch), self.folder)

    def plan(self, command: str, *lines: str) -> None:
        """What the next calls of a command of the batch system do first, a line of bash each."""
        file = self.folder / "plans" / command
        file.write_text("".join(f"{line}\n" for line in lines))
        shutil.chown(file, self.system.user)

    def planned(self) -> list[str]:
        """Those lines that were carried out."""
        done = self.folder / "plans" / "done"
        return done.read_text().splitlines() if done.exists() else []


@contextmanager
def distant(
    kind: str, system: System, *, network: bool = False, more: str = "", **environment: str
) -> Iterator[Distant]:
    """A site of one's own, on a batch system that others may use too.

    Args:
        kind: The transport; with `local` there is no sshd.
        system: The batch system.
        network: Whether the way to it may fail.
        more: Lines for the sshd's configuration.
        environment: Variables of its sessions.
    """
    make_user()
    with folder_of_both("nsw-far-") as folder:  # sshd_config's SetEnv takes no blanks
        (folder / "bin").mkdir()
        (folder / "plans").mkdir(mode=0o777)
        (folder / "plans").chmod(0o777)
        for name in system.commands:
            stand_in = folder / "bin" / name
            stand_in.write_text(STAND_IN.replace("NAME", name).replace("WORK", str(folder)))
            stand_in.chmod(0o755)
        usual = system.environment | {"PATH": f"{folder}/bin:{system.environment['PATH']}"}
        server = Server(folder / "sshd", port=free_port(), more=more, user=system.user, environment=usual | environment)
        way = Network(folder / "network", server.port) if network else None
        server.through = way.port if way else 0
        if kind != "local":
            server.start()
        try:
            yield Distant(folder, kind, system, server, way)
        finally:
            server.stop(sessions=True)
            if way:
                way.stop()
            subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def missing() -> str | None:
    """Why there can be no such site here."""
    from tests.remote.conftest import SSHD

    if os.geteuid() != 0:
        return "not root, who alone may start an sshd for another user"
    if SSHD is None or shutil.which("ssh") is None:
        return "no sshd or no ssh"
    return None
