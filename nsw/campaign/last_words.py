"""Which line of a failed program's output says best why it failed."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 200  # characters
_AROUND: Final = re.compile(
    r"""
    ={2,}\w*={2,}                      # nvprof and ncu speak in ==1234==, ==PROF==; torchrun draws lines
    | [-=*_#\s]+$
    | Importer\ error\ status | Unable\ to\ retrieve\ the\ importer | The\ importer\ binary     # nsys
    | Generat(?:ing|ed)\b | Collecting\ data | Processing\ \[? | \[\d+/\d+\] | \s*/\S+$
    | The\ (?:target\ )?application\ (?:terminated|returned)
    | (?:srun|slurmstepd|mpirun|mpiexec|prterun|orterun):? | Primary\ job | Process\ name:          # launchers
    | (?:\[?\S+\]?\ )?MPI_ABORT\ was\ invoked | Exit\ code: | with\ errorcode
    | torch\.distributed\.elastic\S*ChildFailedError
    | (?:[WEI]\d{4}\ |\[\d{4}-\d\d-\d\d\ ).*(?:elastic|torchrun|run\.py)
    | (?:time|host|rank|exitcode|error_file|traceback)\s+: | (?:Root\ Cause|Failures|<NO_OTHER_FAILURES>)
    | \s+
    """,
    re.VERBOSE,
)
_FAULT: Final = re.compile(
    r"(?:\[rank\d+\]:\s*)?(?:[\w.]*(?:Error|Exception|Interrupt|Exit)\b\s*(?::|$)|terminate called|Segmentation fault)"
    r"|.*\b(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Aa]bort(?:ed)?|[Aa]ssert\w*|[Ff]ailed|not found|No such|[Kk]illed)\b"
)


def last_words(stderr: bytes | None) -> str | None:
    """The line of a program's stderr that most likely says why it failed, shortened; None when it said nothing.

    That is the last one that speaks of an error, else the last one; what profilers and launchers say around
    the program counts only where nothing else stands.
    """
    lines = [line.rstrip() for line in (stderr or b"").decode(errors="replace").splitlines() if line.strip()]
    own = [line for line in lines if not _AROUND.match(line)]
    faults = [line for line in own if _FAULT.match(line)]
    for some in (faults, own, [line for line in lines if not _AROUND.fullmatch(line)], lines):
        if some:
            return _short(some[-1].strip())
    return None


def _short(line: str) -> str:
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."
