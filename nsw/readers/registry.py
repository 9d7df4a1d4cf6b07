"""The formats that nsw reads: a new format is a new file and an entry here; docs/formats.md is made of it.

Another package registers a module with `FORMAT`, a `Format` of this file, and the two functions of
`nsw.readers.model.Reader`:

    [project.entry-points."nsw.readers"]
    rocprof-stats = "rocprof_nsw.stats"
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from nsw.resources import registered

GROUP: Final = "nsw.readers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A report format.

    Args:
        id: The `format` of a Report.
        tool: Who writes it.
        module: What reads it; of another package's format its entry point says it.
        meaning: What it is, in a line.
        versions: Of the tool or the format, as far as files of them have been read.
        tables: What is read, by the names of nsw.tables.schema.
        unread: What such files may hold and nsw leaves: it is said of the file where it is there.
        proofs: Tests and fixtures, below tests/, that show it.
        folder: The report is a folder.
        unpacks: The reader unpacks gzip itself; for others nsw unpacks a file first.
        max_certainty: How sure its reader can be at most. One that cannot be surer than another is need not be loaded.
        begins: What its files begin with, after blanks; of other files the reader is not loaded. Empty: with anything.
        suffixes: Names that make a file one of it, whatever it begins with.
    """

    id: str
    tool: str
    meaning: str
    versions: str
    tables: tuple[str, ...]
    unread: str
    module: str = ""
    proofs: tuple[str, ...] = ()
    folder: bool = False
    unpacks: bool = False
    max_certainty: int = 100
    begins: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()

    def may_be(self, head: bytes, suffix: str) -> bool:
        """Whether a file that begins and is named so can be of this format."""
        return not self.begins or suffix in self.suffixes or head.lstrip(_BLANKS).startswith(self.begins)


_BLANKS = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n\x0b\x0c"  # byte-order marks are left out too
_DATABASE = b"SQLite format 3\0"
_DIGITS = tuple(b"%d" % n for n in range(10))
_TIMELINE = (
    "gpu_summary", "gpu_trace", "api_summary", "api_trace", "osrt_summary", "um_summary", "nvtx_summary",
    "nvtx_gpu_summary", "openacc_summary", "openmp_summary", "communication", "facts",
)  # fmt: skip
_PHASES = (
    "phases", "phase_summary", "iterations", "iteration_trace", "process_gpus", "gaps", "host_copies", "gpu_use",
)  # fmt: skip
_COUNTERS = ("launches", "metrics", "rules", "facts")
_UNSUMMED = "samples of the CPU and of GPU metrics, graphics APIs, network"

# Asked in this order until one is certain; the most certain wins, the earlier at a tie. Magic numbers go first, then
# what is known by its beginning: nobody looks through all of a file that is.
FORMATS: tuple[Format, ...] = (
    Format(
        id="nsys-sqlite",
        tool="nsys",
        module="nsw.readers.nsys.export.sqlite",
        meaning="nsys export --type sqlite, 2020 to 2026",
        versions="Nsight Systems 2020 to 2026: schema none, 2.9 to 3.28; lazy tables; 25 to 40 kernel columns",
        tables=(*_TIMELINE, *_PHASES),
        unread=f"{_UNSUMMED}; single NVTX ranges",
        proofs=(
            "fixtures/h200/tiled.sqlite.gz", "readers/test_nsys_sqlite.py", "readers/test_nsys_oracle.py",
            "readers/test_nsys_generations.py",
        ),
        begins=(_DATABASE,),
    ),
    Format(
        id="nsys-binary",
        tool="nsys",
        module="nsw.readers.nsys.export.binary",
        meaning=".nsys-rep, .qdrep, .qdstrm: exported when an nsys is found",
        versions="what the nsys that is found can export",
        tables=(*_TIMELINE, *_PHASES),
        unread="all of it where no nsys is found: nsw prints the command that exports it",
        proofs=("readers/test_nsys_binary.py",),
        begins=(b"NVIDIA Tegra Profiler Report", b"U3w[END]"),
        suffixes=(".nsys-rep", ".qdrep", ".qdstrm"),
    ),
    Format(
        id="kineto",
        tool="pytorch",
        module="nsw.readers.pytorch.kineto",
        meaning="Chrome traces of PyTorch's profiler, also .gz",
        versions="PyTorch 1.8 to 2.11 (Kineto, CUDA and XPU); the older autograd profiler's traces",
        tables=("gpu_summary", "gpu_trace", "api_summary", "operators", "nvtx_summary", "nvtx_gpu_summary",
         "communication", "facts", *_PHASES),
        unread="stacks, arguments, flow arrows; the time line of memory (its peak is a fact)",
        proofs=("fixtures/h200/lenet-trace.json.gz", "readers/test_kineto.py"),
        max_certainty=95,
        unpacks=True,
        begins=(b"{", b"["),
    ),
    Format(
        id="pstats",
        tool="cProfile",
        module="nsw.readers.host.pstats",
        meaning="python -m cProfile -o FILE",
        versions="Python 3.4 to 3.15 (marshal versions 2 to 5), read without running any of it",
        tables=("functions", "facts"),
        unread="callers",
        proofs=("readers/test_pstats.py", "readers/test_pstats_oracle.py"),
        begins=(b"{", b"\xfb"),
    ),
    Format(
        id="ncu-csv",
        tool="ncu",
        module="nsw.readers.ncu.csv_reader",
        meaning="ncu --csv: details, raw, source, summary and session pages, amid other output",
        versions="Nsight Compute 2019 to 2026; UTF-16; thousands separators of any place",
        tables=(*_COUNTERS, "source_metrics"),
        unread="source pages without figures (--print-source ptx): refused with that reason",
        proofs=(
            "fixtures/h200/naive-raw.csv.gz", "fixtures/h200/naive-details.csv", "fixtures/h200/tiled-details.csv",
            "fixtures/h200/naive-summary.csv", "fixtures/h200/naive-session.csv", "fixtures/h200/ncu-mixed.csv",
            "fixtures/h200/naive-source.csv.gz", "fixtures/h200/ncu-range.csv", "fixtures/h200/ncu-processes.csv.gz",
            "fixtures/h200/ncu-unmeasured.csv", "fixtures/h200/range-raw.csv", "readers/test_ncu_csv.py",
        ),
        max_certainty=95,
    ),
    Format(
        id="nsys-stats",
        tool="nsys",
        module="nsw.readers.nsys.stats.reader",
        meaning="nsys stats: text, CSV and TSV, also inside job output",
        versions="Nsight Systems 2019 to 2026: old and new names of the reports, local grouping of digits",
        tables=tuple(t for t in _TIMELINE if t != "facts"),
        unread="the reports marked below, and those that nsw does not know by name where columns do not tell (each"
        " is named"
        " in a warning); tables in boxes, as HTML, without titles or without units (refused)",
        proofs=(
            "fixtures/h200/tiled-stats.txt", "fixtures/h200/tiled-stats-refused.txt", "readers/test_nsys_stats.py",
            "readers/test_nsys_stats_reports.py",
        ),
        max_certainty=90,
    ),
    Format(
        id="nsys-parquet",
        tool="nsys",
        module="nsw.readers.nsys.export.parquet_source",
        meaning="nsys export --type parquetdir or arrowdir",
        versions="Nsight Systems 2023.4 to 2026",
        tables=(*_TIMELINE, *_PHASES),
        unread=f"{_UNSUMMED}; single NVTX ranges",
        proofs=("readers/test_nsys_parquet.py", "readers/test_nsys_parquet_oracle.py"),
        folder=True,
    ),
    Format(
        id="nvprof-sqlite",
        tool="nvprof",
        module="nsw.readers.nvprof.database.reader",
        meaning="nvprof -o FILE (.nvvp, .nvprof), CUDA 5 to 12",
        versions="nvprof of CUDA 5 to 12 (database versions 1 to 14), also of programs that used no GPU"
        " (--cpu-profiling on)",
        tables=("gpu_summary", "gpu_trace", "api_summary", "api_trace", "um_summary", "nvtx_summary",
         "nvtx_gpu_summary",
         "openacc_summary", "openmp_summary", "functions", "metrics", "facts"),
        unread="metrics of points in time, source-level results, samples of the program counter, NVLink connections,"
        " allocations (a warning names what is there); XML sessions of the Visual Profiler (explained)",
        proofs=("readers/test_nvprof_sqlite.py", "readers/test_nvprof_cpu.py", "readers/test_nvprof_sections.py",
         "readers/test_nvprof_counter_forms.py", "readers/test_nvprof_generations.py"),
        max_certainty=95,
        begins=(_DATABASE, b"<"),
    ),
    Format(
        id="nvprof-text",
        tool="nvprof",
        module="nsw.readers.nvprof.text.reader",
        meaning="nvprof's text and CSV, also inside job output",
        versions="nvprof of CUDA 5 to 12: summary, --print-gpu-trace, --print-api-trace, --print-openacc-trace"
        " (summed),"
        " --metrics and --events (also --aggregate-mode off), --cpu-profiling, --system-profiling",
        tables=("gpu_summary", "gpu_trace", "api_summary", "api_trace", "um_summary", "nvtx_summary", "openacc_summary",
         "openmp_summary", "nvtx_gpu_summary", "metrics", "functions", "facts", *_PHASES),
        unread="the critical path (--dependency-analysis), NVLink and PCI topology, samples of the program"
        " counter, lists of"
        " metrics (each is named where it is there); who called the functions that CPU samples name;"
        " their tables without times (CUDA 6 and 7), and their trees from the top down",
        proofs=("readers/test_nvprof_text.py", "readers/test_nvprof_cpu.py", "readers/test_nvprof_sections.py",
         "readers/test_nvprof_counter_forms.py", "readers/test_nvprof_text_phases.py"),
        max_certainty=90,
    ),
    Format(
        id="ncu-text",
        tool="ncu",
        module="nsw.readers.ncu.text_reader",
        meaning="ncu's pages as text, also inside job output",
        versions="Nsight Compute 2019 to 2026",
        tables=_COUNTERS,
        unread="charts drawn in text; the source page (named, with the command that prints it as CSV)",
        proofs=(
            "fixtures/h200/naive-details.txt", "fixtures/h200/ncu-range.txt", "fixtures/h200/ncu-stdout.txt",
            "fixtures/h200/ncu-watchdog.txt",
            "readers/test_ncu_text.py",
        ),
        max_certainty=85,
    ),
    Format(
        id="ncu-binary",
        tool="ncu",
        module="nsw.readers.ncu.binary_reader",
        meaning=".ncu-rep: read where ncu_report or an ncu is found",
        versions="what ncu_report (pip install 'nsw[ncu]') or the ncu that is found can load;"
        " .nsight-cuprof-report likewise",
        tables=_COUNTERS,
        unread="all of it where neither is found: nsw prints the command that exports it; by ncu_report: a"
        " launch's process",
        proofs=("fixtures/h200/blocked.ncu-rep.gz", "readers/test_ncu_binary.py"),
        begins=(b"NVR\0",),
        suffixes=(".ncu-rep", ".nsight-cuprof-report", ".nsight-cuprof"),
    ),
    Format(
        id="torch-table",
        tool="pytorch",
        module="nsw.readers.pytorch.torch_table",
        meaning="key_averages().table() of PyTorch, in text",
        versions="PyTorch 1.4 to 2.11: CPU, CUDA, XPU and other accelerators, memory, FLOP, shapes, stacks; with"
        " tabs, out of a"
        " document",
        tables=("operators", "facts"),
        unread="the rest of a name that PyTorch cut",
        proofs=("fixtures/h200/lenet-table.txt", "readers/test_torch_table.py"),
        max_certainty=92,
    ),
    Format(
        id="pyspy-raw",
        tool="py-spy",
        module="nsw.readers.host.pyspy",
        meaning="py-spy record -f raw: a line a call stack",
        versions="py-spy 0.4.3, with --native, --subprocesses, --threads, --function and without",
        tables=("functions", "facts"),
        unread="who called whom, processes and threads apart; times of recordings whose name does not tell the"
        " sampling rate",
        proofs=("fixtures/cpu/host.rate100.pyspy.txt", "readers/test_pyspy.py"),
        max_certainty=95,
    ),
    Format(
        id="rocprofv3-csv",
        tool="rocprofv3",
        module="nsw.readers.rocprof.kernel_csv",
        meaning="rocprofv3 --kernel-trace (--stats) --output-format csv: *_kernel_trace.csv, *_kernel_stats.csv",
        versions="ROCm 6 and 7, from documentation, not run",
        tables=("gpu_summary", "gpu_trace"),
        unread="which GPU ran a kernel (agents count CPUs too), queues; statistics of API calls and copies (refused)",
        proofs=("readers/test_rocprof.py",),
        max_certainty=95,
        begins=(b'"Kind"', b'"Name"'),
    ),
    Format(
        id="gprof",
        tool="gprof",
        module="nsw.readers.host.gprof",
        meaning="gprof PROGRAM gmon.out: flat profile and call graph",
        versions="gprof of binutils 2.40",
        tables=("functions", "facts"),
        unread="who called whom, and how often; annotated source",
        proofs=("fixtures/cpu/host.gprof.txt", "readers/test_gprof.py"),
        max_certainty=95,
    ),
    Format(
        id="tau-profile",
        tool="tau",
        module="nsw.readers.host.tau_profile",
        meaning="profile.NODE.CONTEXT.THREAD of TAU, one a thread and metric",
        versions="TAU 2.23 to 2.34, from documentation and published profiles, not run: TIME, PAPI_TOT_CYC,"
        " PAPI_TOT_INS",
        tables=("functions", "facts"),
        unread="call paths (they repeat the time of their last function), user events, other metrics (refused)",
        proofs=("readers/test_tau.py",),
        begins=_DIGITS,
    ),
    Format(
        id="tau-pprof",
        tool="tau",
        module="nsw.readers.host.tau_pprof",
        meaning="pprof: TAU's listing of profiles as text",
        versions="TAU 2.23 to 2.34, from documentation and published listings, not run",
        tables=("functions",),
        unread="means; sums where the threads are there; user events; counts of other metrics than time (refused)",
        proofs=("readers/test_tau.py",),
        max_certainty=90,
    ),
    Format(
        id="perf-stat",
        tool="perf",
        module="nsw.readers.host.perf_stat",
        meaning="perf stat: JSON lines (-j), cells with a separator (-x), or text, also amid other output",
        versions="perf 6.1 as JSON, CSV and text; software events run, hardware events from documentation",
        tables=("facts",),
        unread="counts by core, socket or interval (-A, --per-..., -I: refused), statistics over repeats (-r)",
        proofs=("fixtures/cpu/host.perfstat.json", "readers/test_perf.py"),
    ),
    Format(
        id="perf-report",
        tool="perf",
        module="nsw.readers.host.perf_report",
        meaning="perf report --stdio: columns or separated cells, with call graphs or without",
        versions="perf 6.1",
        tables=("functions", "facts"),
        unread="call graphs; of events that count another thing than the first one (a warning names them)",
        proofs=("fixtures/cpu/host.perf.txt", "readers/test_perf.py"),
        max_certainty=95,
        begins=(b"#",),
    ),
    Format(
        id="perf-script",
        tool="perf",
        module="nsw.readers.host.perf_script",
        meaning="perf script: samples with their call stacks",
        versions="perf 6.1",
        tables=("functions", "facts"),
        unread="who called whom, threads, times; registers, tracepoints' arguments",
        proofs=("fixtures/cpu/perf-script.txt", "readers/test_perf.py"),
        max_certainty=90,
    ),
    Format(
        id="vtune",
        tool="vtune",
        module="nsw.readers.host.vtune",
        meaning="vtune -report (amplxe-cl): CSV, text tables and summaries, also inside job output",
        versions="hotspots, hw-events, summary, uarch-exploration, memory-access, memory-consumption,"
        " hpc-performance of"
        " Amplifier 2018 to VTune 2026, grouped by anything; any delimiter. A real CSV of 2018 was read; the rest is"
        " from documentation and printed examples, not run",
        tables=("functions", "facts"),
        unread="metrics of single functions that have no column (cache misses, latencies, CPU utilization by"
        " class); source"
        " lines; time with callees; result folders (run `vtune -report`)",
        proofs=("readers/test_vtune.py",),
        max_certainty=95,
    ),
    Format(
        id="aps",
        tool="aps",
        module="nsw.readers.host.aps",
        meaning="aps --report: text, tables of aps-report (text, CSV), and the HTML report",
        versions="Application Performance Snapshot 2019 to 2025: two real texts and a real page of 2021 were read;"
        " tables of"
        " aps-report are from documentation, not run",
        tables=("facts",),
        unread="messages between ranks, communicators, metrics of single devices",
        proofs=("readers/test_aps.py",),
        max_certainty=95,
    ),
    Format(
        id="onednn",
        tool="onednn",
        module="nsw.readers.host.onednn",
        meaning="ONEDNN_VERBOSE, DNNL_VERBOSE, MKLDNN_VERBOSE: lines in a program's output",
        versions="MKL-DNN 0.18 to oneDNN 3.12 (PyTorch 2.13 was run; older lines are from documentation, not run)",
        tables=("operators", "facts"),
        unread="memory formats and attributes of a primitive; partitions of oneDNN Graph; dispatch and check messages",
        proofs=("fixtures/onednn/convolution.txt", "readers/test_onednn.py"),
        max_certainty=90,
    ),
)  # fmt: skip


def all_formats() -> tuple[Format, ...]:
    """All formats: nsw's own and those of other packages that can be loaded."""
    return (*FORMATS, *formats_of_packages()[0])


@cache
def formats_of_packages() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """The formats of other packages, and a sentence for each that cannot be loaded; the errors of these are caught."""
    formats, faults = [], []
    for name, path in registered(GROUP).items():
        try:
            format_ = importlib.import_module(path).FORMAT
            if not isinstance(format_, Format):
                raise TypeError("its FORMAT is no nsw.readers.registry.Format")  # noqa: TRY301
            formats.append(replace(format_, module=path))
        except Exception as fault:  # noqa: BLE001  a broken package must not spoil nsw's own formats
            faults.append(f"the reader {name} ({path}) of another package cannot be loaded: {fault}")
    return tuple(formats), tuple(faults)
