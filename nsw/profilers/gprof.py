"""gprof: the profile that a program built with -pg writes as it ends, printed as text by the job."""

from __future__ import annotations

from typing import Final

from nsw.profilers import model as profiler_model
from nsw.profilers.model import MACHINERY, Profiled, Request, knobs_as_long_options, words_with_report_path

TOOL = "gprof"
ONE_PROCESS = True
EXECUTABLE: str | None = "gprof"

TEXT: Final = ".gprof.txt"
_REPORT: Final = "host"
_STARTED: Final = ("bash", "-c", 'export GMON_OUT_PREFIX="$PWD/$0"; exec "$@"')  # the program may change its folder
# for the jobs
SHELL: Final = r"""# each process has left NAME.gmon.PID; the functions' names are in the program
nsw_gprof_print() {    # GPROF NAME PROGRAM OPTION...
  local data program
  program=$(command -v "$3") || program=$3
  for data in "$2"*.gmon.*; do
    [ -e "$data" ] || { echo "nsw: $3 wrote no profile: it was not built with -pg, or a signal ended it" >&2; exit 1; }
    "$1" --brief "${@:4}" "$program" "$data" >"${data/.gmon./.}.gprof.txt" || exit
  done
}
"""


def profile(request: Request) -> Profiled:
    """The program itself, which profiles itself, and gprof after it; options and knobs are gprof's."""
    if (reason := profiler_model.unknown_analysis_reason(request, TOOL, ())) is not None:
        return Profiled(impossible=reason)
    options = (*knobs_as_long_options(request.knobs), *request.options)
    return Profiled(
        words_with_report_path(request, _STARTED, f"{_REPORT}.gmon", request.program),
        reports=(f"{_REPORT}*{TEXT}",),
        after=(("bash", MACHINERY, "gprof_print", request.path, _REPORT, request.program[0], *options),),
    )
