"""What the profilers say of themselves -> problems that say what it means and what to do.

A data table of regular expressions, for every reader that meets the tools' own lines and for whoever reads
the standard error of a profiling job. A message is looked up without its prefix (`==123== Warning: `).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from nsw.readers.model import Problem

Severity = Literal["error", "warning"]
_LONGEST: Final = 400  # characters of a message that are repeated to the user


@dataclass(frozen=True, slots=True)
class Message:
    """A message that nsw knows: how bad it is, what it means, what to do.

    `is_outcome`: it says that nothing came of it, and not why.
    """

    tools: frozenset[str]
    pattern: str
    severity: Severity
    explanation: str
    fix: str | None = None
    is_outcome: bool = False

    def matches(self, tool: str, text: str) -> bool:
        """Whether `tool` said this."""
        return tool in self.tools and _compiled(self.pattern).search(text) is not None


def _m(
    tools: str, pattern: str, severity: Severity, explanation: str, fix: str | None = None, *, is_outcome: bool = False
) -> Message:
    return Message(frozenset(tools.split()), pattern, severity, explanation, fix, is_outcome)


_PERMISSION = (
    "ask the administrator to allow GPU counters to users (NVreg_RestrictProfilingToAdminUsers=0 for the nvidia"
    " module) or request the site's constraint for profiling jobs"
)
_ON_GPU = "run where a GPU and its driver are: in a job on a compute node, not on a login node"

# The first that matches counts.
MESSAGES: Final[tuple[Message, ...]] = (
    _m(
        "nvprof ncu nsys",
        r"ERR_NVGPUCTRPERM|does not have permission to (?:access NVIDIA GPU|profile)",
        "error",
        "the user may not read this GPU's performance counters; without them there are no metrics",
        _PERMISSION,
    ),
    _m("ncu", r"ERR_NVCMPGPU", "error", "this GPU's counters are closed to profilers", _PERMISSION),
    # nvprof
    _m(
        "nvprof",
        r"not supported on devices with compute capability (?:7\.5|8\.0) and higher",
        "error",
        "this GPU is too new for nvprof: no tracing from compute capability 8.0, no counters from 7.5",
        "profile with nsys (timeline) and ncu (counters)",
    ),
    _m(
        "nvprof",
        r"not compatible with other NVIDIA tools or a tool which uses CUPTI",
        "error",
        "another tool in the program holds CUPTI (a second profiler, Score-P, a PyTorch profiler ...)",
        "run with one profiler at a time",
    ),
    _m(
        "nvprof",
        r"Events/metrics profiling is not supported on the virtualized GPU",
        "error",
        "a virtual GPU has no counters",
        "run on a whole GPU",
    ),
    _m(
        "nvprof",
        r"No kernels were profiled",
        "warning",
        "nvprof saw no kernel of this process",
        "if it should have: check that the program used the GPU and ended well, that --profile-from-start is not"
        " off without cudaProfilerStart, and profile children with --profile-child-processes",
    ),
    _m(
        "nvprof",
        r"No events/metrics were profiled|No metrics were profiled|No events were profiled",
        "warning",
        "nvprof collected no counters: no kernel ran, none matched --kernels, or the program died early",
        "check the program's own output, then the names with nvprof --query-metrics",
    ),
    _m("nvprof", r"No API activities were profiled", "warning", "nvprof saw no CUDA call of this process"),
    _m(
        "nvprof",
        r"No profile data collected|no profile data",
        "error",
        "nvprof collected nothing",
        "check the program's own output: it may not have used the GPU, or died before its first CUDA call",
        is_outcome=True,
    ),
    _m(
        "nvprof",
        r"records have invalid timestamps due to insufficient device buffer space|records were dropped",
        "warning",
        "nvprof's buffer on the GPU was too small: some operations have no time or are missing, and totals are"
        " too small",
        "run again with a larger --device-buffer-size (MB; with dynamic parallelism --device-cdp-buffer-size)",
    ),
    _m(
        "nvprof",
        r"invalid timestamps due to insufficient semaphore pool size",
        "warning",
        "nvprof's semaphore pool was too small: some operations have no time, and totals are too small",
        "run again with a larger --profiling-semaphore-pool-size",
    ),
    _m(
        "nvprof",
        r"API trace records have same start and end timestamps",
        "warning",
        "the machine's clock is too coarse for some API calls: their time reads 0",
    ),
    _m(
        "nvprof",
        r"Some profiling data are not recorded",
        "warning",
        "nvprof could not record all: the program may have been killed or have left without flushing",
        "let the program end by itself, with cudaDeviceReset() or cudaProfilerStop() before it",
    ),
    _m(
        "nvprof",
        r"Child processes are not profiled",
        "warning",
        "the program started other processes, and these are not in the report",
        "profile with --profile-child-processes, and %p in the file names",
    ),
    _m(
        "nvprof ncu",
        r"(?:replay(?:ed)? (?:is disabled|failed))|failed to replay|Error while replaying|(?<!No )kernel replay"
        r" failed|can't be profiled in one run|hardware resource is busy",
        "error",
        "kernels could not be run again for all counters that were asked for",
        "ask for fewer metrics at a time, or use --replay-mode application",
    ),
    _m(
        "nvprof",
        r"Profiling results might be incorrect with current version of nvcc",
        "warning",
        "compiled by an nvcc before 9.0: source-level and instruction counters may be wrong",
        "compile with CUDA 9.0 or later",
    ),
    _m(
        "nvprof",
        r"Unified Memory Profiling is not supported",
        "warning",
        "there are no Unified Memory figures in this report",
    ),
    _m("nvprof", r"values were extrapolated from limited profile data", "warning", "some counters are estimates"),
    _m(
        "nvprof",
        r"disable CUDA_AUTO_BOOST",
        "warning",
        "clocks may have changed during the run",
        "fix the clocks (nvidia-smi -ac) or set CUDA_AUTO_BOOST=0",
    ),
    _m(
        "nvprof",
        r"[Uu]nable to locate cuda driver library|nvidia driver is properly installed",
        "error",
        "no NVIDIA driver on this machine: nothing was profiled",
        _ON_GPU,
    ),
    _m(
        "nvprof",
        r"[Uu]nable to locate .*library|__libc_dlopen_mode",
        "error",
        "a library that this way of profiling needs was not found (nvprof's CPU sampling does not work with glibc"
        " 2.34 and later)",
        "leave the option away, or load the module that has the library",
    ),
    _m(
        "nvprof",
        r"Problem during SQL operation|[Dd]atabase error|profile is invalid or incomplete",
        "error",
        "nvprof could not read the profile it was to import",
        "check that the file is whole and was written by this nvprof or an older one",
    ),
    _m("nvprof", r"[Ii]nternal (?:profiling )?error", "error", "nvprof failed inside", "try another CUDA version"),
    _m(
        "nvprof",
        r"(?:Generated result file|Analysis can't be completed)",
        "warning",
        "nvprof wrote the profile to a file of its own, not here",
        "read that file (.nvvp, .nvprof ...)",
    ),
    _m(
        "nvprof",
        r"(?:file|File) .*(?:already exists|exists)|Use (?:option )?.*--force-overwrite",
        "error",
        "nvprof did not overwrite a file that was there",
        "give -f, or a name with %p",
    ),
    _m("nvprof", r"can't open log file", "error", "nvprof could not write its log", "check the folder and its quota"),
    _m(
        "nvprof ncu nsys",
        r"[Ii]llegal option|[Ii]nvalid option|unrecognised option|unrecognized option|option is invalid|"
        r"Illegal --\w+ argument|Unknown option",
        "error",
        "the profiler does not know an option it was given: nothing was run",
        "check the spelling, and the version that the site has (`TOOL --version`): options changed over the years",
    ),
    _m(
        "nvprof ncu nsys",
        r"Application (?:returned (?:a )?non-zero code|received signal)|returned an error code|died due to signal",
        "warning",
        "the profiled program itself failed: what was measured ends there",
        "see the program's own output",
    ),
    _m(
        "nvprof ncu nsys",
        r"application not found|[Nn]o application to profile|Executable not found|No such file or directory",
        "error",
        "the program to profile was not found",
        "check its path as seen in the job",
    ),
    _m("nvprof", r"Another \w+ instance is already running", "error", "two nvprof on one machine", "run one at a time"),
    # ncu
    _m(
        "ncu",
        r"failed to connect to the CUDA driver|Driver could not be loaded|LibraryNotLoaded",
        "error",
        "no usable NVIDIA driver on this machine: nothing was profiled",
        _ON_GPU,
    ),
    _m(
        "ncu",
        r"No \w+ were profiled",
        "error",
        "ncu saw no kernel to profile",
        "check the kernel filter and launch counts; a program behind a script or launcher needs"
        " --target-processes all",
    ),
    _m(
        "ncu",
        r"[Pp]rofiling is not supported on device|Insufficient driver version|not supported on (?:this )?device",
        "error",
        "this ncu does not know this GPU, or the driver is too old for it",
        "load another ncu (`ncu --list-chips`): Volta to ncu 2025, Pascal and older with nvprof",
    ),
    _m(
        "ncu",
        r"driver resource was unavailable|ResourceUnavailable|InterprocessLock",
        "error",
        "another profiler or a monitor holds the GPU's counters",
        "pause DCGM (dcgmi profile --pause), run one ncu on a node at a time",
    ),
    _m(
        "ncu",
        r"Failed to (?:load|open) report|Could not open report",
        "error",
        "ncu could not read the report",
        "read it with the ncu that made it, or a newer one",
    ),
    _m(
        "ncu",
        r"No metrics to collect found|did not match any (?:section|metric|set)|Failed to find metric",
        "error",
        "ncu does not know the metrics or sections asked for",
        "check them with --query-metrics, --list-sections, --list-sets: `--set default` is `--set basic` since 2024",
    ),
    _m(
        "ncu",
        r"Failed to (?:profile|prepare kernel)|LaunchFailed|UnknownError",
        "error",
        "ncu could not run a kernel again for its counters",
        "profile fewer metrics at a time, or with --replay-mode application",
    ),
    _m("ncu", r"Unknown Error on device", "error", "ncu failed on this GPU", "try again, then another driver or ncu"),
    # nsys
    _m(
        "nsys",
        r"importer binary and its dependencies were not found",
        "error",
        "this nsys has no importer: it leaves a .qdstrm, which no other command reads",
        "repair the installation (the folder host-linux-x64 beside target-linux-x64), or import the .qdstrm"
        " with another machine's QdstrmImporter of the same version",
    ),
    _m(
        "nsys",
        r"Failed to create .*: File exists|report is saved to .*/tmp|[Gg]enerated:?\s+/tmp/nsys-report",
        "error",
        "the report's name was taken: nsys wrote it to /tmp of the compute node, and still ended with status 0",
        "give --force-overwrite=true, or a name with %p, %h or %q{SLURM_PROCID}",
    ),
    _m(
        "nsys",
        r"does not contain CUDA (?:kernel|trace) data|No CUDA events collected",
        "warning",
        "the report has no CUDA work: the program used no GPU, or was not traced with --trace=cuda",
        "check --trace, and that the program (and not only its launcher) ran under nsys",
    ),
    _m("nsys", r"SKIPPED: .* does not contain", "warning", "the report has no data of that kind",
       "if it should have: record it (--trace), and let the program end by itself"),
    _m(
        "nsys",
        r"Not all CUDA events might have been collected",
        "warning",
        "the end of the program's CUDA work may be missing",
        "let the program end by itself, or set --cuda-flush-interval",
    ),
    _m(
        "nsys",
        r"is not supported by this build of Nsight Systems",
        "warning",
        "this nsys is older than the driver: what is new in the driver's CUDA is not recorded, or wrongly",
        "profile with an nsys as new as the CUDA driver",
    ),
    _m(
        "nsys",
        r"(?:No|Not all) NVTX events (?:might have been )?collected",
        "warning",
        "no fault if the program has no NVTX ranges",
    ),
    _m(
        "nsys",
        r"perf event paranoid level|Scheduling information is absent|Failed to load symbols",
        "warning",
        "CPU samples and states only; GPU figures are not affected",
    ),
    _m(
        "nsys",
        r"^usage: nsys ",
        "error",
        "nsys was called with arguments that it does not take: it printed its usage and did nothing else",
        "see what stands above that line, and `nsys stats --help`",
    ),
    _m(
        "nsys",
        r"No such file or directory: |Input file .* does not exist|unable to open database file",
        "error",
        "nsys did not find the report it was to read",
        "check its name: nsys adds .nsys-rep (.qdrep before 2021.4)",
    ),
    _m(
        "nsys",
        r"CUDA profiling might have not been started correctly",
        "warning",
        "nsys could not start CUDA tracing in the program",
        "check that the driver is not older than nsys needs, and that no other CUPTI tool runs",
    ),
    _m(
        "nsys",
        r"None of the installed GPUs are supported|NVIDIA GPUs not found",
        "error",
        "nsys cannot sample this machine's GPUs",
        "leave --gpu-metrics-device away, or run on a GPU from Turing on",
    ),
    _m(
        "nsys",
        r"Exportation error|magic number mismatch|Database file .* does not exist",
        "error",
        "the report is cut short or damaged",
        "copy it again; if it is cut short where it was written, give the job more time or --duration",
    ),
    _m(
        "nsys",
        r"Existing SQLite export found",
        "warning",
        "nsys used an export that lay beside the report, which may be of an older report",
        "give --force-export=true",
    ),
    _m("nsys", r"Report '.*' could not be found", "error", "this nsys has no such statistics report",
       "list them with nsys stats --help-reports: names changed in 2023"),
    # PyTorch
    _m(
        "pytorch",
        r"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES|CUPTI_ERROR_VIRTUALIZED_DEVICE",
        "warning",
        "CUPTI may not profile this GPU: its work is missing or has no counters",
        _PERMISSION,
    ),
    _m(
        "pytorch",
        r"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|CUPTI_ERROR_NOT_COMPATIBLE",
        "warning",
        "another tool in the program holds CUPTI: GPU work is missing",
        "run with one profiler at a time",
    ),
    _m(
        "pytorch",
        r"CUPTI initialization failed|CUDA profiler activities will be missing|CUPTI_ERROR_NOT_INITIALIZED",
        "warning",
        "PyTorch's profiler found no usable CUPTI: GPU work is missing",
        "check that the CUDA driver is not older than the CUDA that PyTorch was built with",
    ),
    _m(
        "pytorch",
        r"CUDA is not available, disabling CUDA profiling",
        "warning",
        "there was no GPU for the program: only CPU times",
        _ON_GPU,
    ),
    _m(
        "pytorch",
        r"Profiler clears events at the end of each cycle",
        "warning",
        "only the last cycle of the profiler's schedule is in what was printed",
        "to keep all cycles give the profiler acc_events=True",
    ),
    _m(
        "pytorch",
        r"Profiler won't be using warmup|[Ww]armup.* can skew profiler results",
        "warning",
        "the first steps were profiled cold: the cost of starting is in the figures",
        "give the schedule a warm-up step",
    ),
)  # fmt: skip


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def explain(tool: str, text: str) -> Message | None:
    """What is known of a message of `tool` (nvprof, ncu, nsys, pytorch), or None."""
    text = text[: 4 * _LONGEST]
    return next((m for m in MESSAGES if m.matches(tool, text)), None)


def known_message(tool: str, text: str, *, line: int | None = None, severity: str | None = None) -> Problem | None:
    """The problem that a tool's message makes.

    Args:
        tool: Who said it: nvprof, ncu, nsys, pytorch.
        text: The message, less its prefix.
        line: Where it stands.
        severity: What the tool itself called it ("error", "warning"); None when it said so in passing, and
            then only what nsw knows is a problem.
    """
    said = text.strip()[:_LONGEST]
    known = explain(tool, text)
    if known is not None:
        return Problem(known.severity, f"{tool}: {said} ({known.explanation})", line, known.fix)
    if severity is None:
        return None
    return Problem("error" if severity == "error" else "warning", f"{tool}: {said}", line)
