"""The exit status that a test expects of a command: where it is another, the test fails with what the command printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


def with_exit(done: subprocess.CompletedProcess[str], exits: int | None) -> subprocess.CompletedProcess[str]:
    """The command; `exits` None: with any exit status."""
    assert exits in {None, done.returncode}, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
