"""Nsight Systems: a timeline of CUDA, NVTX and what else `trace` names."""

from __future__ import annotations

from nsw.profilers.model import Profiled, Request

TOOL = "nsys"
ONE_PROCESS = False
EXECUTABLE: str | None = "nsys"

_REPORT = "timeline"
_EXPORT = (
    'for f in "$2"*.nsys-rep; do "$1" export --type=sqlite --force-overwrite=true '
    '--output="${f%.nsys-rep}.sqlite" "$f" || exit; done'
)
_QUIET = (("--sample", "-s"), ("--cpuctxsw",))  # off unless the recipe's options say otherwise


def profile(request: Request) -> Profiled:
    """`nsys profile ... PROGRAM`.

    Always with --force-overwrite: with an existing file and without it, nsys puts the report under /tmp and
    still exits with 0. CPU sampling and context switches are off unless the recipe's options ask for them:
    they cost time and hang some versions (2022.4 with default options on recent kernels).
    """
    given = {option.split("=")[0] for option in request.options}
    quiet = [f"{name}=none" for name, *short in _QUIET if not given & {name, *short}]
    output = f"{_REPORT}.rank%q{{{request.rank_variable}}}" if request.per_rank else _REPORT
    command = (
        request.path,
        "profile",
        f"--trace={','.join(request.trace) or 'cuda,nvtx'}",
        *quiet,
        *(("--cuda-graph-trace=node",) if request.graph_nodes and "--cuda-graph-trace" not in given else ()),
        *request.options,
        "--force-overwrite=true",
        f"--output={output}",
        *request.program,
    )
    if not request.export_here:
        return Profiled(command, reports=(f"{_REPORT}*.nsys-rep", f"{_REPORT}*.qdstrm"))
    export = ("bash", "-c", _EXPORT, "nsw", request.path, _REPORT)
    return Profiled(command, reports=(f"{_REPORT}*.sqlite",), after=(export,))
