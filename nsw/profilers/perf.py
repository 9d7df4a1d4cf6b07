"""Linux perf: samples of where the CPU was (record), or counts of events over the whole run (stat).

A recording names functions only where the program's own files are, so the job prints it as a table beside it.
"""

from __future__ import annotations

from typing import Final

from nsw.profilers import model as profiler_model
from nsw.profilers.model import MACHINERY, Profiled, Request, knobs_as_long_options, words_with_report_path

TOOL = "perf"
ONE_PROCESS = False
EXECUTABLE: str | None = "perf"

DATA: Final = ".perf.data"
TABLE: Final = ".perf.txt"
COUNTS: Final = ".perfstat.json"
_REPORT: Final = "host"
_ANALYSES: Final = ("record", "stat")
_HZ: Final = "99"  # not 100: samples would keep step with what programs do ten times a second
_KEEP_EXIT_STATUS: Final = (
    "sh",
    "-c",
    '"$@"; exit "$?"',
    "nsw",
)  # perf stat ends with 0 where a signal ends the program
_RATES: Final = frozenset({"freq", "count"})  # knobs that say how often
# for the jobs
SHELL: Final = r"""# a table beside each recording, one row a function, with a tab between cells
nsw_perf_table() {    # PERF NAME
  local data
  for data in "$2"*.perf.data; do
    "$1" report --stdio --header --children --call-graph none --field-separator $'\t' \
      --fields overhead_children,overhead,sample,period,dso,symbol --input "$data" >"${data%.data}.txt" || exit
  done
}
"""


def profile(request: Request) -> Profiled:
    """`perf record ... PROGRAM`, or `perf stat ... PROGRAM`."""
    if (reason := profiler_model.unknown_analysis_reason(request, TOOL, _ANALYSES)) is not None:
        return Profiled(impossible=reason)
    report = f"{request.folder}{_REPORT}"
    knob_options, program = knobs_as_long_options(request.knobs), ("--", *request.program)
    if request.analysis == "stat":
        counted = (request.path, "stat", "-j", *knob_options, *request.options, "-o")
        words = words_with_report_path(request, counted, report + COUNTS, ("--", *_KEEP_EXIT_STATUS, *request.program))
        return Profiled(words, reports=(f"{_REPORT}*{COUNTS}",))
    knob_names = {name for name, _ in request.knobs}
    sampled = (
        request.path, "record", *(() if "call-graph" in knob_names else ("-g",)),
        *(() if knob_names & _RATES else ("--freq", _HZ)), *knob_options, *request.options,
        "-o",
    )  # fmt: skip
    return Profiled(
        words_with_report_path(request, sampled, report + DATA, program),
        reports=(f"{_REPORT}*{TABLE}", *(() if request.export_here else (f"{_REPORT}*{DATA}",))),
        after=(("bash", MACHINERY, "perf_table", request.path, _REPORT),),
    )
