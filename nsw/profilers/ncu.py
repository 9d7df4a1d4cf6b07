"""Nsight Compute: hardware counters of kernels, from Volta (compute capability 7.0) on.

Command lines were run with ncu 2025.3 on an H200 (docs/gpu-measurements.md) and checked without a GPU with 2022.3
and 2024.2; those of other versions follow NVIDIA's manuals.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from nsw.profilers.kernel_filters import ncu_kernel_filter_options, ncu_range_filter_options
from nsw.profilers.model import MACHINERY, Counting, Profiled, Request
from nsw.recipe.passes import SOURCE_COUNTERS, SecondStage

if TYPE_CHECKING:
    from nsw.metrics.requests import MetricRequest

TOOL = "ncu"
ONE_PROCESS = False
EXECUTABLE: str | None = "ncu"

REPORT: Final = "counters"
PAGES: Final = ("raw", "details", "session")
SOURCE: Final = "source"  # the page of instructions and source lines
# a folder of an installation tells its version: /opt/nvidia/nsight-compute/2022.3.0/ncu, NsightCompute-2019.5
_VERSION: Final = re.compile(r"(20[12]\d)\.(\d)")
_OLD_NAME: Final = "nv-nsight-cu-cli"  # of 2019; later versions keep it beside ncu
_RENAMED: Final = (2021, 1)  # from here on --kernel-name and --kernel-name-base; the year before still had the others
_OLD_WORDS: Final = (
    'for w; do shift; [ "$w" != --kernel-name-base ] || w=--kernel-regex-base; set -- "$@" "$w"; done; exec "$@"'
)


def version_text_in_path(path: str) -> str | None:
    """The version that an installation's folder names, such as 2022.3; None: it names none."""
    match = _VERSION.search(path)
    return match[0] if match else None


def version_numbers_in_path(path: str) -> tuple[int, int] | None:
    """The version that an installation's path tells, such as (2022, 3); None: it tells none."""
    if (folder_version := version_text_in_path(path)) is not None:
        year, _, release = folder_version.partition(".")
        return int(year), int(release)
    return (2019, 5) if PurePosixPath(path).name == _OLD_NAME else None


def profile(request: Request) -> Profiled:
    """`ncu ... PROGRAM`, and its pages as CSV beside the report.

    Always with --force-overwrite: with an existing file and without it, ncu refuses to run.
    """
    counting = request.counting
    if counting is None:
        return Profiled(impossible="ncu measures counters; a timeline is nsys's")
    version = version_numbers_in_path(request.path)
    if (reason := _unsupported_reason(counting, version)) is not None:
        return Profiled(impossible=reason)
    legacy = version is not None and version < (2020, 1)
    renamed = version is None or version >= _RENAMED
    # how launches are run again, and under which conditions
    counters_pass = counting.counters_pass
    command = (
        request.path,
        *("--target-processes", "all" if counters_pass.processes == "all" else "application-only"),
        *(() if counters_pass.replay == "kernel" else ("--replay-mode", counters_pass.replay)),
        *(() if counters_pass.clocks is None else ("--clock-control", counters_pass.clocks)),
        *(() if counters_pass.cache is None else ("--cache-control", counters_pass.cache)),
        *ncu_range_filter_options(counting),
        *(
            ncu_kernel_filter_options(counting, is_legacy_ncu=not renamed)
            if counting.chosen is None
            else (counting.chosen,)
        ),
        *ncu_metric_options(counting.metrics),
        *request.options,
        "--force-overwrite",
    )
    if request.per_rank and legacy:  # which knows no %q{}
        export_name = f'"{request.folder}{REPORT}.{request.part}${{{request.rank_variable}:-0}}"'
        # $1: how many words are the program's; those before may be more in the job
        text = f'n=$1; shift; exec "${{@:1:$#-n}}" --export {export_name} "${{@:$#-n+1}}"'
        command = ("bash", "-c", text, "nsw", str(len(request.program)), *command, *request.program)
    else:
        rank = f".{request.part}%q{{{request.rank_variable}}}" if request.per_rank else ""
        command = (*command, "--export", f"{request.folder}{REPORT}{rank}", *request.program)
    of_source = (SOURCE,) if isinstance(counting.counters_pass, SecondStage) else ()
    pages = tuple(f"{REPORT}*.{page}.csv" for page in (*PAGES, *of_source))
    report_patterns = (f"{REPORT}*.ncu-rep", *(() if renamed else (f"{REPORT}*.nsight-cuprof-report",)))
    after = ("bash", MACHINERY, "ncu_pages", request.path, REPORT, *of_source)
    return Profiled(
        command if renamed else ("bash", "-c", _OLD_WORDS, "nsw", *command),
        reports=pages if request.export_here else (*report_patterns, *pages),
        after=(after,),
        before=("nsw_ncu_lock",),
    )


def _unsupported_reason(counting: Counting, version: tuple[int, int] | None) -> str | None:
    counters_pass = counting.counters_pass
    if counting.metrics.events:
        return "ncu has no events; nvprof measures them"
    if version is None:
        return None
    for is_requested, first, feature in (
        (counting.metrics.sets, (2019, 5), "set:"),
        (counters_pass.cache, (2019, 5), "cache:"),
        (isinstance(counters_pass, SecondStage), _RENAMED, "a second stage of counters"),
        (counters_pass.replay == "application", (2020, 3), "replay: application"),
        (counters_pass.replay == "range", (2021, 3), "replay: range"),
        (counters_pass.replay == "app-range", (2023, 1), "replay: app-range"),
        (counters_pass.within is not None and counters_pass.within.instances, (2023, 1), "within: instances"),
    ):
        if is_requested and version < first:
            return f"{feature} needs ncu {first[0]}.{first[1]}, and the site's is {version[0]}.{version[1]}"
    return None


def ncu_metric_options(measured: MetricRequest) -> tuple[str, ...]:
    """What is measured: sets, sections, metrics together; without a set or section nothing but the metrics."""
    return (
        *(word for name in measured.sets for word in ("--set", name)),
        *(word for name in measured.sections for word in ("--section", name)),
        *(("--import-source", "yes") if SOURCE_COUNTERS in measured.sections else ()),
        *(("--metrics", ",".join(measured.metrics)) if measured.metrics else ()),
    )
