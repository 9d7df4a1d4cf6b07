"""nvprof: a timeline on GPUs up to Volta (compute capability below 8.0), for clusters that still have them."""

from __future__ import annotations

from nsw.profilers.model import Profiled, Request

TOOL = "nvprof"
ONE_PROCESS = False
EXECUTABLE: str | None = "nvprof"

_REPORT = "timeline"


def profile(request: Request) -> Profiled:
    """`nvprof --csv ... PROGRAM`.

    nvprof prints to stderr: --log-file keeps its table out of the program's output. In ns and CSV nothing is
    rounded. Child processes are followed, a file each (%p).
    """
    rank = f".rank%q{{{request.rank_variable}}}" if request.per_rank else ""
    command = (
        request.path,
        "--profile-child-processes",
        "--csv",
        "--normalized-time-unit",
        "ns",
        "--log-file",
        f"{_REPORT}{rank}.%p.nvprof.csv",
        *request.options,
        *request.program,
    )
    return Profiled(command, reports=(f"{_REPORT}*.nvprof.csv",))
