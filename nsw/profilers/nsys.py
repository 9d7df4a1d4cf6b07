"""Nsight Systems: a timeline of CUDA, NVTX and what else `trace` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.profilers.model import MACHINERY, Profiled, Request
from nsw.recipe.passes import CUDA_PROFILER_API

if TYPE_CHECKING:
    from nsw.recipe.passes import TimelinePass

TOOL = "nsys"
ONE_PROCESS = False
EXECUTABLE: str | None = "nsys"

_REPORT = "timeline"
_QUIET = (("--sample", "-s"), ("--cpuctxsw",))  # off unless the recipe's options say otherwise


def _capture_window_options(timeline: TimelinePass | None) -> tuple[str, ...]:
    """The options by which nsys records a part of the program.

    `stop` and `repeat` let the program run on and nsys end with its status, where nsys's default ends the program.
    With --kill=none the program runs on, but nsys (tried: 2024.2) does not wait for it. Names that the program has not
    registered, such as PyTorch's, count only with that variable.
    """
    if timeline is None:
        return ()
    within = timeline.within
    if within is None:
        start = () if timeline.after is None else (f"--delay={timeline.after}",)
        return start if timeline.duration is None else (*start, f"--duration={timeline.duration}", "--kill=none")
    end = "--capture-range-end=" + ("stop" if within.count == 1 else f"repeat:{within.count}")
    if within.nvtx == CUDA_PROFILER_API:
        return ("--capture-range=cudaProfilerApi", end)
    name = "@".join(filter(None, (within.nvtx, within.domain)))
    return ("--capture-range=nvtx", f"--nvtx-capture={name}", end, "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0")


def profile(request: Request) -> Profiled:
    """`nsys profile ... PROGRAM`.

    Always with --force-overwrite: with an existing file and without it, nsys puts the report under /tmp and
    still exits with 0. CPU sampling and context switches are off unless the recipe's options ask for them:
    they cost time and hang some versions (2022.4 with default options on recent kernels).
    """
    option_names = {option.split("=")[0] for option in request.options}
    quiet = [f"{name}=none" for name, *short in _QUIET if not option_names & {name, *short}]
    rank = f".{request.part}%q{{{request.rank_variable}}}" if request.per_rank else ""
    start: tuple[str, ...] = (request.path, "profile")
    if request.gpu_metrics is not None:
        start = ("bash", MACHINERY, "nsys_sampled", request.path, str(request.gpu_metrics))
    program = request.program
    if request.window is not None and request.window.duration is not None:
        start = ("bash", MACHINERY, "nsys_then_program", *start)
        program = ("bash", MACHINERY, "nsys_program", *program)
    command = (
        *start,
        f"--trace={','.join(request.trace) or 'cuda,nvtx'}",
        *quiet,
        *(("--cuda-graph-trace=node",) if request.graph_nodes and "--cuda-graph-trace" not in option_names else ()),
        *_capture_window_options(request.window),
        *request.options,
        "--force-overwrite=true",
        f"--output={request.folder}{_REPORT}{rank}",
        *program,
    )
    if not request.export_here:
        return Profiled(command, reports=(f"{_REPORT}*.nsys-rep", f"{_REPORT}*.qdstrm"))
    if request.reduce_there:
        reduction = ("bash", MACHINERY, "nsys_reduce", request.path, _REPORT)
        return Profiled(command, reports=(f"{_REPORT}*.sqlite",), reduction=reduction)
    export = ("bash", MACHINERY, "nsys_export", request.path, _REPORT)
    return Profiled(command, reports=(f"{_REPORT}*.sqlite",), after=(export,))
