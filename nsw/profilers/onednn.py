"""oneDNN's own tracing: a line a primitive that PyTorch, TensorFlow and others run on CPUs.

The library prints its lines to the program's output. They go to a file of their own, and all else goes on as it was.
"""

from __future__ import annotations

from typing import Final

from nsw.profilers.model import Profiled, Request, unknown_analysis_reason, words_with_report_path

TOOL = "onednn"
ONE_PROCESS = True
EXECUTABLE: str | None = None

_LEVELS: Final = {"exec": "1", "create": "2"}  # what a level tells besides executions: how long primitives took to make
_REPORT: Final = "host"
# Output may begin within a line: what a program buffers itself is written when its buffer is full. The filter ends with
# the program's output, and not by a signal to all.
_SPLIT: Final = r"""{ at = match($0, /(onednn|dnnl|mkldnn)_verbose,/) }
!at { print; fflush(); next }
{ printf "%s", substr($0, 1, at - 1); print substr($0, at) > file }"""
_RUN: Final = r"""level=$1 split=$2 file=$3; shift 3
export ONEDNN_VERBOSE=$level DNNL_VERBOSE=$level MKLDNN_VERBOSE=$level
: >"$file" && mkfifo "$file.pipe" || exit
(trap '' INT TERM; exec awk -v file="$file" "$split" <"$file.pipe") & filter=$!
(trap - INT QUIT; exec "$@") >"$file.pipe" & program=$!
status= signals=
for name in INT TERM; do trap "signals+=1; kill -$name $program" $name; done
while :; do
  before=$signals
  wait "$program"; now=$?
  [ "$now" = 127 ] && [ -n "$status" ] || status=$now
  [ "$before" != "$signals" ] || break    # else a signal ended the wait, and not the program
done
wait "$filter"; rm -f "$file.pipe"
exit "$status"
"""


def profile(request: Request) -> Profiled:
    """The program with its environment, and its output split in two."""
    if (reason := unknown_analysis_reason(request, "oneDNN", tuple(_LEVELS))) is not None:
        return Profiled(impossible=reason)
    if request.options or request.knobs:
        return Profiled(
            impossible="oneDNN's tracing takes no options: `analysis: create` adds the making of primitives"
        )
    before = ("bash", "-c", _RUN, "nsw", _LEVELS[request.analysis or "exec"], _SPLIT)
    command = words_with_report_path(request, before, f"{request.folder}{_REPORT}.onednn.txt", request.program)
    return Profiled(command, reports=(f"{_REPORT}*.onednn.txt",))
