"""What every way to a site can do: run a command there, move files, look at files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.errors import CommandResult


class Transport(Protocol):
    """A way to a site, for one campaign. Paths over there are text; here they are `Path`."""

    def left_running(self) -> bool:
        """Whether a command that an nsw began there for this campaign still runs, though that nsw was killed.

        Once this was false, the next nsw knows of the commands that this one begins.
        """

    def close(self) -> None:
        """An orderly end: no command of this nsw is waited for."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
    ) -> CommandResult:
        """Run one command to its end or its timeout; never raises for what the command does.

        Args:
            argv: Its words.
            timeout: Seconds after which it is killed.
            cwd: Where it runs.
            without: Beginnings of names of environment variables that it must not see.
            keep: Names among those that it may.
        """

    def make_folders(self, there: Sequence[str]) -> None:
        """Make folders, with those on the way; existing ones are left alone."""

    def put(self, here: Path, there: str) -> None:
        """Copy a file or folder there, folders on the way included."""

    def show(self, here: Path, there: str) -> str:
        """Where a file of this machine can be read over there: `there`, unless that is this machine."""

    def get(self, there: str, here: Path) -> None:
        """Bring a file here, whole or not at all."""

    def read(self, there: str, limit: int = 1 << 20) -> bytes | None:
        """The first bytes of a file; None when there is none."""

    def tail(self, there: str, limit: int) -> bytes | None:
        """The last bytes of a file; None when there is none."""

    def glob(self, folder: str, patterns: Sequence[str]) -> list[str]:
        """Names of files right in a folder that match shell patterns, sorted; no links that lead outside."""
