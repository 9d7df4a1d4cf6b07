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
_GPU_ANALYSES: Final = ("gpu-hotspots", "gpu-offload")  # whose tables of computing tasks are no functions of the host
ANALYSES: Final = ("hotspots", "uarch-exploration", "memory-access", "memory-consumption", "hpc-performance",
                    "threading", "performance-snapshot", *_GPU_ANALYSES)  # fmt: skip
OLD_ANALYSES: Final = ("general-exploration", "advanced-hotspots")  # which amplxe-cl alone may know
_OLD: Final = "amplxe-cl"
_FINALIZATION: Final = "-finalization-mode"


def profile(request: Request) -> Profiled:
    """`vtune -collect ANALYSIS -knob NAME=VALUE ... -result-dir RESULT -- PROGRAM`."""
    analyses = (*ANALYSES, *OLD_ANALYSES) if PurePath(request.path).name == _OLD else ANALYSES
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
    functions = () if request.analysis in _GPU_ANALYSES else (f"{_REPORT}*.hotspots.csv",)
    reports = (*functions, f"{_REPORT}*.summary.csv")
    pack = () if request.export_here else (("bash", MACHINERY, "vtune_pack", _REPORT),)
    if request.reduce_there:
        reduction = ("bash", MACHINERY, "vtune_reduce", request.path, _REPORT)
        return Profiled(command, reports, after=pack, reduction=reduction)
    return Profiled(command, reports, after=(("bash", MACHINERY, "vtune_export", request.path, _REPORT), *pack))
