"""py-spy: samples of the Python functions in which a program and its child processes are, without changing it."""

from __future__ import annotations

from typing import Final

from nsw.profilers.model import Profiled, Request, knobs_as_long_options, unknown_analysis_reason

TOOL = "py-spy"
ONE_PROCESS = False
EXECUTABLE: str | None = "py-spy"

RATE: Final = ".rate"  # in the report's name, behind which is how often a second it was sampled: the report has no time
STACKS: Final = ".pyspy.txt"
_REPORT: Final = "host"
_HZ: Final = "100"
_ALWAYS: Final = ("--format", "raw", "--subprocesses", "--function", "--full-filenames")
# py-spy ends with 0 whatever the program ended with, and kills what it started once no Python is left: a child of that,
# which it does not kill, writes the status into a pipe. $1: how many words are py-spy's; $2: the end of the report's
# name
_KEEP_EXIT_STATUS: Final = """\
n=$1 report=%s$2; shift 2
exec 4>&1
code=$("${@:1:n}" --output "$report" -- bash -c '("$@" 3>&- 4>&-; echo "$?" >&3); :' nsw "${@:n+1}" 3>&1 >&4)
exit "${code:-1}"
"""


def profile(request: Request) -> Profiled:
    """`py-spy record ... PROGRAM`, with the program's own exit status."""
    if (reason := unknown_analysis_reason(request, TOOL, ())) is not None:
        return Profiled(impossible=reason)
    knobs = dict(request.knobs)
    rate = knobs.pop("rate", _HZ)
    command = (
        request.path,
        "record",
        *_ALWAYS,
        "--rate",
        rate,
        *knobs_as_long_options(tuple(knobs.items())),
        *request.options,
    )
    rank = f".{request.part}${{{request.rank_variable}:-0}}" if request.per_rank else ""
    ending = f"{RATE}{rate}{STACKS}"
    words = (
        "bash",
        "-c",
        _KEEP_EXIT_STATUS % f'"{request.folder}{_REPORT}{rank}"',
        "nsw",
        str(len(command)),
        ending,
        *command,
        *request.program,
    )
    return Profiled(words, reports=(f"{_REPORT}*{STACKS}",))
