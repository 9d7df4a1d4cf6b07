"""Intel's Application Performance Snapshot: a program's use of CPUs, memory, MPI and OpenMP, at little cost.

All processes write into one result, of which one report is made: it knows ranks by itself.
"""

from __future__ import annotations

from typing import Final

from nsw.profilers.model import MACHINERY, Profiled, Request, knobs_as_long_options, unknown_analysis_reason

TOOL = "aps"
ONE_PROCESS = True
EXECUTABLE: str | None = "aps"

_RESULT: Final = "host.aps"
_ANALYSES: Final = ("all", "hwc", "mpi", "omp")
# for the jobs
SHELL: Final = r"""nsw_aps_report() {    # APS RESULT: the report as text, and its page
  "$1" --report="$2" >"$2.txt"
}
"""


def profile(request: Request) -> Profiled:
    """`aps --result-dir=RESULT -- PROGRAM`, and then `aps --report=RESULT`."""
    if (reason := unknown_analysis_reason(request, "APS", _ANALYSES)) is not None:
        return Profiled(impossible=reason)
    mode = (f"--collection-mode={request.analysis}",) if request.analysis else ()
    command = (
        request.path,
        *mode,
        *knobs_as_long_options(request.knobs),
        *request.options,
        f"--result-dir={_RESULT}",
        "--",
        *request.program,
    )
    return Profiled(command, (f"{_RESULT}.txt",), after=(("bash", MACHINERY, "aps_report", request.path, _RESULT),))
