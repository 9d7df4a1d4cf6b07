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
    | frame\ \#\d+: | Exception\ raised\ from\ .*most\ recent\ call\ first                           # PyTorch's C++
    | (?:time|host|rank|exitcode|error_file|traceback)\s+: | (?:Root\ Cause|Failures|<NO_OTHER_FAILURES>)
    | (?!\s*what\(\):)\s+
    """,
    re.VERBOSE,
)
_FAULT: Final = re.compile(
    r"(?:\[rank\d+\]:\s*)?(?:[\w.]*(?:Error|Exception|Interrupt|Exit)\b\s*(?::|$)|terminate called|\s*what\(\):"
    r"|Segmentation fault)"
    r"|.*\b(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Aa]bort(?:ed)?|[Aa]ssert\w*|[Ff]ailed|not found|No such|[Kk]illed)\b"
)


def last_words(stderr: bytes | None) -> str | None:
    """The line of a program's stderr that most likely says why it failed, shortened; None when it said nothing.

    That is the last one that speaks of an error, else the last one; what profilers and launchers say around
    the program counts only where nothing else is.
    """
    lines = [line.rstrip() for line in (stderr or b"").decode(errors="replace").splitlines() if line.strip()]
    own = [line for line in lines if not _AROUND.match(line)]
    faults = [line for line in own if _FAULT.match(line)]
    for some in (faults, own, [line for line in lines if not _AROUND.fullmatch(line)], lines):
        if some:
            return _short(some[-1].strip())
    return None


# how bash begins what it says of a line of a script
_BASH_AT: Final = re.compile(r"^.*?: (?:eval: )?line \d+: ")
_NOT_FOUND: Final = re.compile(r"(?:^|\s)(module|ml|conda|mamba|micromamba|spack|source): command not found")
_INIT: Final = re.compile(r"'?(conda|mamba|micromamba) init'?|\b(shell has not been properly configured)")
# what a shell says of a program that a signal ended: the batch system's own reason has said it already
_OF_A_SIGNAL: Final = frozenset({"Terminated", "Killed", "Hangup"})
SET_UP: Final = "set-up failed: "  # how the reason of a run begins that set-up kept from beginning


def reason_with(reason: str | None, stderr: bytes | None, *, login_shell: bool) -> str | None:
    """The reason of a failed run or build with what it said last, and with what to do where its set-up shows that.

    Args:
        reason: What is known of the failure without it.
        stderr: The end of what it said.
        login_shell: Whether jobs of the site start in a login shell.
    """
    words = last_words(stderr)
    if words is None or reason is None:
        return reason or words
    if words in _OF_A_SIGNAL:
        return reason
    if not reason.startswith(SET_UP):
        return f"{reason}: {words}"
    words = _BASH_AT.sub("", words)
    hint = _to_do(words, login_shell=login_shell)
    return f"{reason}: {words}" + (f" ({hint})" if hint else "")


def _to_do(words: str, *, login_shell: bool) -> str | None:
    """What helps where the shell of a job does not know what that of a login knows."""
    missing = _NOT_FOUND.search(words)
    if missing is None and not _INIT.search(words):
        return None
    what = missing[1] if missing else "conda"
    if not login_shell:
        return f"jobs may know {what} in a login shell only: `login_shell: true` at the site"
    return f"a login shell does not know {what} either: let `app: setup:` begin with the line that sources it"


def _short(line: str) -> str:
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."
