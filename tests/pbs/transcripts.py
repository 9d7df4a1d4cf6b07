"""Transcripts of a real OpenPBS 23.06 in `observed`, read: commands with what they printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "observed"
WRAPPED = re.compile(r"su alice -c '(?:cd (?P<folder>\S+); )?\. /opt/site/env\.sh; (?P<command>.*)'", re.DOTALL)


@dataclass
class Step:
    """One command of a transcript; `user` and `folder` are whose it was and where, `notes` what was done before it."""

    file: str
    number: int
    command: str
    user: str
    folder: str
    stdout: str = ""
    stderr: str = ""
    rc: int = 0
    notes: list[str] = field(default_factory=list)


def read(path: Path) -> list[Step]:
    """The commands of one file, in order."""
    steps: list[Step] = []
    notes: list[str] = []
    root = re.match(r"(1[4-8]|21)_", path.name) is not None  # these were typed by root
    out: list[str] = []
    err: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("$ "):
            command, user, folder = line[2:], "root" if root else "alice", "/home/alice/w"
            if match := WRAPPED.fullmatch(command):
                command, user = match["command"].replace('\\"', '"'), "alice"
                folder = match["folder"] or "/home/alice"
            steps.append(Step(path.name, len(steps), command, user, folder, notes=notes))
            notes, out, err = [], [], []
        elif line.startswith("  1| "):
            first, marker, second = line[5:].partition("  2| ")  # output without a line's end
            out.append(first)
            if marker:
                err.append(second)
        elif line.startswith("  2| "):
            err.append(line[5:])
        elif match := re.fullmatch(r"  rc=(\d+)", line):
            steps[-1].rc = int(match[1])
            steps[-1].stdout = "".join(f"{one}\n" for one in out)
            steps[-1].stderr = "".join(f"{one}\n" for one in err)
        elif line.startswith(("#", "  (")):
            notes.append(line.strip("# "))
    return steps


def all_steps() -> list[Step]:
    """Of all files."""
    return [step for path in sorted(FOLDER.glob("*.txt")) for step in read(path)]


def stdout_of(file: str, command: str, at: int = 0) -> str:
    """What a command of a file printed; the `at`-th of several."""
    return [step for step in read(next(FOLDER.glob(f"{file}*"))) if step.command == command][at].stdout
