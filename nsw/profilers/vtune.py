"""Intel VTune (`amplxe-cl` before 2020, whose words are the same): hotspots, microarchitecture, memory.

A result is finalised after the run, on the login node where the site has one: it is serial work. There its functions
and its summary become CSV. The result itself is brought, packed, with `collect: everything` only.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from nsw.profilers.model import MACHINERY, Profiled, Request, unknown_analysis_reason, words_with_report_path

TOOL = "vtune"
ONE_PROCESS = False
EXECUTABLE: str | None = "vtune"

_REPORT: Final = "host"
_ANALYSES: Final = ("hotspots", "uarch-exploration", "memory-access", "memory-consumption", "hpc-performance",
                    "threading", "performance-snapshot")  # fmt: skip
_BEFORE_2019: Final = ("general-exploration", "advanced-hotspots")  # which amplxe-cl alone may know
_OLD: Final = "amplxe-cl"
_FINALIZATION: Final = "-finalization-mode"
# for the jobs' machinery. A reduction runs beside the folders of the runs, in one of its own
SHELL = r"""
nsw_vtune_tables() {    # VTUNE RESULT NAME: a result is finalised, and its functions and its summary are CSV
  local report
  "$1" -finalize -search-dir / -result-dir "$2" || exit
  for report in hotspots summary; do
    "$1" -report "$report" -result-dir "$2" -format csv -csv-delimiter comma -report-output "$3.$report.csv" || exit
  done
}
nsw_vtune_export() {    # VTUNE NAME: the tables beside each result
  local result
  for result in "$2"*.vtune; do nsw_vtune_tables "$1" "$result" "${result%.vtune}"; done
}
nsw_vtune_pack() {    # NAME: each result in one file
  local result
  for result in "$1"*.vtune; do tar -czf "$result.tar.gz" "$result" || exit; done
}
nsw_vtune_reduce() {    # VTUNE NAME RUN: the tables of each result of the run, packed
  local at state='' from='' result name
  for at in "../../$3"/attempt-*; do
    { read -r state <"$at/status"; } 2>/dev/null && [ "$state" = state=done ] && from=$at
  done
  [ -n "$from" ] || { echo "nsw: no attempt of $3 is done" >&2; exit 1; }
  for result in "$from/$2"*.vtune; do
    [ -d "$result" ] || { echo "nsw: $3 left no result" >&2; exit 1; }
    name=${result##*/} name=${name%.vtune}
    nsw_vtune_tables "$1" "$result" "$name"
    gzip -f "$name".*.csv || exit
  done
}
"""


def profile(request: Request) -> Profiled:
    """`vtune -collect ANALYSIS -knob NAME=VALUE ... -result-dir RESULT -- PROGRAM`."""
    analyses = (*_ANALYSES, *_BEFORE_2019) if PurePath(request.path).name == _OLD else _ANALYSES
    if (reason := unknown_analysis_reason(request, "VTune", analyses)) is not None:
        return Profiled(impossible=reason)
    deferred = not any(option.startswith((_FINALIZATION, f"-{_FINALIZATION}")) for option in request.options)
    before = (
        request.path,
        "-collect",
        request.analysis or "hotspots",
        *(word for name, value in request.knobs for word in ("-knob", f"{name}={value}")),
        *((f"{_FINALIZATION}=deferred",) if deferred else ()),
        *request.options,
        "-result-dir",
    )
    command = words_with_report_path(request, before, f"{_REPORT}.vtune", ("--", *request.program))
    reports = (f"{_REPORT}*.hotspots.csv", f"{_REPORT}*.summary.csv")
    pack = () if request.export_here else (("bash", MACHINERY, "vtune_pack", _REPORT),)
    if request.reduce_there:
        reduction = ("bash", MACHINERY, "vtune_reduce", request.path, _REPORT)
        return Profiled(command, reports, after=pack, reduction=reduction)
    return Profiled(command, reports, after=(("bash", MACHINERY, "vtune_export", request.path, _REPORT), *pack))
