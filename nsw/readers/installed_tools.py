"""Find and run NVIDIA's command-line tools on this machine, for readers that have one of them export a report."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from nsw.apart import child_processes_without_limits
from nsw.resources import csv_rows
from nsw.safe_files import replacing_file


class ToolRunError(Exception):
    """A tool cannot be started, or does not end."""


_VERSION: Final = re.compile(r"(20\d\d)\.(\d+)(?:\.(\d+))?")


def find_tool(name: str) -> list[str]:
    """The paths of a tool to try, best first: only that in NSW_NAME, or that on PATH and then the newest installed.

    Where installers put it is in data/installed_tools.csv, as absolute patterns (pathlib's glob).

    Args:
        name: The program, such as ncu.
    """
    if configured := os.environ.get(f"NSW_{name.upper()}"):
        return [configured]
    on_path = shutil.which(name)
    patterns = [row["pattern"] for row in csv_rows("readers/data/installed_tools.csv") if row["tool"] == name]
    installed = [str(p) for pattern in patterns for p in Path("/").glob(pattern[1:]) if os.access(p, os.X_OK)]
    newest = sorted(installed, key=_version_numbers_in_path, reverse=True)
    return list(dict.fromkeys([*([on_path] if on_path else []), *newest]))


def run_tool(command: Sequence[str], timeout_s: float, output_file: Path | None = None) -> tuple[int, str]:
    """Run a tool, and with it end every process that it starts; its exit status and what it said.

    Args:
        command: The words.
        timeout_s: How long it may take.
        output_file: Where its standard output goes, in English; None: it is part of what it said.

    Raises:
        ToolFault: It cannot be started, or did not end.
    """
    with replacing_file(output_file, 0o600) if output_file else nullcontext(subprocess.PIPE) as file:
        try:
            with child_processes_without_limits():
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.PIPE if output_file else subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, "LC_ALL": "C"} if output_file else None,
                )
        except OSError as fault:
            raise ToolRunError(f"cannot be run: {fault.strerror}") from fault
        with process:
            try:
                printed = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise ToolRunError(f"no answer after {timeout_s:.0f} s") from None
    return process.returncode, b"".join(filter(None, printed)).decode(errors="replace")


def _version_numbers_in_path(path: str) -> tuple[int, ...]:
    """The version in a path, its links resolved: /usr/local/cuda/bin/ncu often leads to a folder that has one."""
    match = _VERSION.search(str(Path(path).resolve()))
    return tuple(int(g or 0) for g in match.groups()) if match else (0,)
