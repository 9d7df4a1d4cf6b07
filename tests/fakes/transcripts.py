"""Transcripts of real schedulers: `$ command`, then `  1| ` lines of stdout, `  2| ` of stderr, and `  rc=N`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Exchange:
    """One command and its answer; `line` is where it begins."""

    command: str
    stdout: str
    stderr: str
    code: int
    line: int


def read(path: Path) -> list[Exchange]:
    found: list[Exchange] = []
    command: list[str] = []
    out: dict[str, list[str]] = {"1": [], "2": []}
    began = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("$ "):
            command, out, began = [line[2:]], {"1": [], "2": []}, number
        elif match := re.match(r"  ([12])\| ?(.*)", line):
            out[match[1]].append(match[2])
        elif match := re.fullmatch(r"  rc=(-?\d+)", line):
            text = {stream: "".join(f"{each}\n" for each in lines) for stream, lines in out.items()}
            found.append(Exchange("\n".join(command), text["1"], text["2"], int(match[1]), began))
            command = []
        elif command and not (out["1"] or out["2"]):
            command.append(line)
    return found
