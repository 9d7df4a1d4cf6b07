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
# for the jobs' machinery. A reduction runs beside the folders of the runs, in one of its own; without a python3 the
# whole export is packed: it has the same tables, and more
SHELL = r"""
nsw_nsys_export() {    # NSYS NAME: an export beside each report
  local report
  for report in "$2"*.nsys-rep; do
    "$1" export --type=sqlite --force-overwrite=true --output="${report%.nsys-rep}.sqlite" "$report" || exit
  done
}
nsw_nsys_sampled() {    # NSYS HERTZ WORD...: nsys profile WORD..., with samples of all GPUs where nsys can take them
  local nsys=$1 hertz=$2 option=--gpu-metrics-devices answer
  shift 2
  if [ "${NSW_LOCAL_RANK:-0}" = 0 ]; then    # one of a node: a second nsys is refused
    answer=$("$nsys" profile $option=help 2>&1) ||    # the older name
      { option=--gpu-metrics-device; answer=$("$nsys" profile $option=help 2>&1); }
    if grep -Eq '^[[:space:]]*[0-9]+:' <<<"$answer"; then set -- $option=all "--gpu-metrics-frequency=$hertz" "$@"
    else printf 'nsw: nsys samples no GPU metrics here, and records the rest:\n%s\n' "$answer" >&2; fi
  fi
  exec "$nsys" profile "$@"
}
nsw_nsys_then_program() {    # WORD...: an nsys that may end before its program; waits for both
  local status group folder
  folder=$(mktemp -d) || exit
  NSW_PROGRAM=$folder "$@" && status=0 || status=$?
  if read -r group 2>/dev/null <"$folder/group"; then    # else nsys started no program
    # nsys starts the program in a session of its own: a signal must be passed on
    trap 'kill -TERM -- "-$group" 2>/dev/null' TERM
    until [ -s "$folder/status" ] || ! kill -0 -- "-$group" 2>/dev/null; do sleep 0.1; done
    [ "$status" -ne 0 ] || read -r status 2>/dev/null <"$folder/status" || status=143
  fi
  rm -rf "$folder"
  exit "$status"
}
nsw_nsys_program() {    # PROGRAM WORD...: notes its session and its exit status for nsw_nsys_then_program
  echo $$ >"$NSW_PROGRAM/group"
  "$@"
  echo $? >"$NSW_PROGRAM/status"
}
nsw_nsys_reduce() {    # NSYS NAME RUN: a small database of each report of the run
  local at state from='' python='' one found='' report name whole
  for at in "../../$3"/attempt-*; do
    { read -r state <"$at/status"; } 2>/dev/null && [ "$state" = state=done ] && from=$at
  done
  [ -n "$from" ] || { echo "nsw: no attempt of $3 is done" >&2; exit 1; }
  for one in python3 /usr/bin/python3 /usr/libexec/platform-python python; do
    "$one" -c 'import gzip, sqlite3, sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null && { python=$one; break; }
  done
  [ -n "$python" ] || echo "nsw: no python3 with sqlite3 was found here: the whole export is packed" >&2
  for report in "$from/$2"*.sqlite "$from/$2"*.nsys-rep; do
    [ -e "$report" ] || continue
    found=1 name=${report##*/} whole=$report
    name=${name%.*}
    [ ! -e "$name.sqlite.gz" ] || continue
    if [ "${report##*.}" = nsys-rep ]; then
      whole=full.$name.sqlite
      "$1" export --type=sqlite --force-overwrite=true --output="$whole" "$report" || exit
      [ -s "$whole" ] || { echo "nsw: $1 made no export of $report" >&2; exit 1; }
    fi
    if [ -n "$python" ]; then "$python" ../../../tools/reduce_export.py "$whole" "$name.sqlite.gz" || exit
    else gzip -c "$whole" >"$name.part" && mv "$name.part" "$name.sqlite.gz" || exit; fi
    [ "$whole" = "$report" ] || rm -f "$whole"
  done
  [ -n "$found" ] || { echo "nsw: $3 left no report" >&2; exit 1; }
}
"""
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
    output = f"{_REPORT}.{request.part}%q{{{request.rank_variable}}}" if request.per_rank else _REPORT
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
        f"--output={output}",
        *program,
    )
    if not request.export_here:
        return Profiled(command, reports=(f"{_REPORT}*.nsys-rep", f"{_REPORT}*.qdstrm"))
    if request.reduce_there:
        reduction = ("bash", MACHINERY, "nsys_reduce", request.path, _REPORT)
        return Profiled(command, reports=(f"{_REPORT}*.sqlite",), reduction=reduction)
    export = ("bash", MACHINERY, "nsys_export", request.path, _REPORT)
    return Profiled(command, reports=(f"{_REPORT}*.sqlite",), after=(export,))
