"""`nsw read -`: what comes on standard input, kept as a file, since readers look into a report more than once."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nsw.errors import NswError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.readers.model import Report

NAME = "<stdin>"
_PIECE = 1 << 20
_TOLD_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Input:
    """The files to read, `-` among them as one that is there; `named` calls it by its name again."""

    files: list[Path]
    kept: Path | None = None

    def named(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports, that of standard input under its name, in what is said of it too."""
        path = str(self.kept)
        for report in reports:
            if report.path == path:
                report.path = NAME
                report.problems = [
                    replace(p, message=p.message.replace(path, NAME), fix=p.fix and p.fix.replace(path, NAME))
                    for p in report.problems
                ]
            yield report


@contextmanager
def standard_input(files: Sequence[Path]) -> Iterator[Input]:
    """The files, with what comes on standard input where `-` is, as long as the block lasts.

    Raises:
        NswError: It cannot be kept.
    """
    if Path("-") not in files:
        yield Input(list(files))
        return
    with tempfile.TemporaryDirectory(prefix="nsw-stdin-") as folder:
        kept = Path(folder) / NAME
        try:
            with kept.open("wb") as target:
                _keep(sys.stdin.buffer, target)
        except OSError as fault:
            hint = "TMPDIR names another place for it"
            raise NswError(
                f"standard input cannot be stored in {folder}: {fault.strerror or fault}", hint=hint
            ) from None
        if not kept.stat().st_size:
            hint = "profilers print what they say of themselves on stderr: `nvprof ./app 2>&1 | nsw read -`"
            raise NswError("standard input was empty", hint=hint)
        yield Input(list(dict.fromkeys(kept if file == Path("-") else file for file in files)), kept)


def _keep(source: BinaryIO, target: BinaryIO) -> None:
    """Copy all of it; on a terminal with a word on how much has come."""
    from nsw.present.terminal import size

    told = sys.stderr.isatty()
    if told and sys.stdin.isatty():
        print("reading what you type or paste; Ctrl-D on a line of its own ends it", file=sys.stderr)
    count, last, shown = 0, time.monotonic(), False
    while piece := source.read1(_PIECE):  # type: ignore[attr-defined]  # of a buffered reader: what is there now
        target.write(piece)
        count += len(piece)
        if told and not sys.stdin.isatty() and time.monotonic() - last > _TOLD_EVERY_S:
            print(f"\r{size(count)} from standard input ", end="", file=sys.stderr, flush=True)
            last, shown = time.monotonic(), True
    if shown:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
