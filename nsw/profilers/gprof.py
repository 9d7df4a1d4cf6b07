"""gprof: the profile that a program built with -pg writes as it ends, printed as text by the job."""

from __future__ import annotations

from typing import Final

from nsw.profilers.model import (
    MACHINERY,
    Profiled,
    Request,
    knobs_as_long_options,
    unknown_analysis_reason,
    words_with_report_path,
)

TOOL = "gprof"
ONE_PROCESS = True
EXECUTABLE: str | None = "gprof"

TEXT: Final = ".gprof.txt"
_REPORT: Final = "host"
_STARTED: Final = ("bash", "-c", 'export GMON_OUT_PREFIX="$PWD/$0"; exec "$@"')  # the program may change its folder


def profile(request: Request) -> Profiled:
    """The program itself, which profiles itself, and gprof after it; options and knobs are gprof's."""
    if (reason := unknown_analysis_reason(request, TOOL, ())) is not None:
        return Profiled(impossible=reason)
    options = (*knobs_as_long_options(request.knobs), *request.options)
    return Profiled(
        words_with_report_path(request, _STARTED, f"{_REPORT}.gmon", request.program),
        reports=(f"{_REPORT}*{TEXT}",),
        after=(("bash", MACHINERY, "gprof_print", request.path, _REPORT, request.program[0], *options),),
    )
