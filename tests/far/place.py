"""What a test that runs over `far` needs: the other user, the package that registers the transport, and orders to it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
USER = "nswtest"  # as tests/slurm submits


def missing() -> str | None:
    """Why nobody can stand in for a site here."""
    if os.geteuid() != 0:
        return "not root, who alone may become another user"
    if any(shutil.which(command) is None for command in ("setpriv", "useradd")):
        return "no setpriv or useradd to become another user with"
    return None


class Far:
    """A site behind the transport `far`, with a folder of its own that both sides may read.

    Args:
        folder: An empty folder; below it `control` (the orders), `package` (the transport), `there` (the scratch).
        user: Who runs the commands.
        environment: The environment over there, beside HOME and PATH.
    """

    def __init__(self, folder: Path, user: str = USER, **environment: str) -> None:
        self.folder = folder
        self.user = user
        self.control = folder / "control"
        self.scratch = folder / "there"
        self.control.mkdir(mode=0o700)
        self.scratch.mkdir()
        shutil.chown(self.scratch, user)
        claims = folder / "run"  # of GPUs and turns: a run that another test left must not hold these
        claims.mkdir(mode=0o700)
        shutil.chown(claims, user)
        (self.control / "environment.json").write_text(json.dumps({"XDG_RUNTIME_DIR": str(claims)} | environment))
        package = folder / "package"
        info = package / "far-1.dist-info"
        info.mkdir(parents=True)
        shutil.copy(HERE / "far_nsw.py", package)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: far\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[nsw.transports]\nfar = far_nsw:connect\n")
        path = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {"PYTHONPATH": os.pathsep.join(path)}  # of an nsw that knows the transport

    @property
    def site(self) -> str:
        """The keys of a site behind it, as they are written in a sites file."""
        return f"transport: {{kind: far, host: {self.user}, config: '{self.control}'}}, scratch: '{self.scratch}'"

    def order(
        self, what: str, *, at: int | None = None, match: str | None = None, before: bool = False, times: int = 1,
        bytes_: int = 0, seconds: float = 0.0,
    ) -> None:  # fmt: skip
        """Order a fault.

        Args:
            what: `cut`: the connection ends; `stall`: it stays, and nothing comes; `truncate`: it ends after some bytes
                of the answer, or of the data; `late`: the answer takes a while.
            at: The number of the remote command, from 1; None for any.
            match: A pattern that is found in it; None for any.
            before: Whether it never arrives there; else it takes effect, and its answer is lost.
            times: How many commands it concerns.
            bytes_: How much passes, for `truncate`.
            seconds: How late, for `late`.
        """
        order = {"what": what, "at": at, "match": match, "before": before, "times": times, "bytes": bytes_,
                 "seconds": seconds}  # fmt: skip
        with (self.control / "orders").open("a") as file:
            file.write(json.dumps(order) + "\n")

    def down(self, *, is_down: bool = True) -> None:
        """No new connection can be made."""
        mark = self.control / "down"
        mark.touch() if is_down else mark.unlink(missing_ok=True)

    def commands(self) -> list[str]:
        """The remote commands so far, each with its number and the fault that it had."""
        log = self.control / "log"
        return log.read_text().splitlines() if log.exists() else []

    def faults(self) -> list[str]:
        """Those that had one."""
        return [line for line in self.commands() if line.split()[1] != "-"]


@contextmanager
def folder_of_both(prefix: str = "nsw far ") -> Iterator[Path]:
    """A new folder that both users may write in."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    folder.chmod(0o1777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_user() -> None:
    """The user who stands in for a site, made when missing."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
    # without a password, and not locked: an sshd that does not use PAM would refuse even a key
    subprocess.run(["usermod", "-p", "*", USER], check=True)
