"""The formats that nsw reads: a new format is a new file and an entry here; docs/formats.md is made of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A report format.

    Args:
        id: The `format` of a Report.
        tool: Who writes it.
        module: What reads it.
        meaning: What it is, in a line.
        versions: Of the tool or the format, as far as files of them have been read.
        tables: What is read, by the names of nsw.tables.schema.
        unread: What such files may hold and nsw leaves: it is said of the file where it is there.
        proofs: Tests and fixtures, below tests/, that show it.
        folder: The report is a folder.
        max_certainty: How sure its reader can be at most. One that cannot be surer than another is need not be loaded.
        begins: What its files begin with, after blanks; of other files the reader is not loaded. Empty: with anything.
        suffixes: Names that make a file one of it, whatever it begins with.
    """

    id: str
    tool: str
    module: str
    meaning: str
    versions: str
    tables: tuple[str, ...]
    unread: str
    proofs: tuple[str, ...]
    folder: bool = False
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
        "nsys-sqlite",
        "nsys",
        "nsw.readers.nsys.export.sqlite",
        "nsys export --type sqlite, 2020 to 2026",
        "Nsight Systems 2020 to 2026: schema none, 2.9 to 3.28; lazy tables; 25 to 40 kernel columns",
        (*_TIMELINE, *_PHASES),
        f"{_UNSUMMED}; single NVTX ranges",
        (
            "fixtures/h200/tiled.sqlite.gz", "readers/test_nsys_sqlite.py", "readers/test_nsys_oracle.py",
            "readers/test_nsys_generations.py",
        ),
        begins=(_DATABASE,),
    ),
    Format(
        "nsys-binary",
        "nsys",
        "nsw.readers.nsys.export.binary",
        ".nsys-rep, .qdrep, .qdstrm: exported when an nsys is found",
        "what the nsys that is found can export",
        (*_TIMELINE, *_PHASES),
        "all of it where no nsys is found: nsw prints the command that exports it",
        ("readers/test_nsys_binary.py",),
        begins=(b"NVIDIA Tegra Profiler Report", b"U3w[END]"),
        suffixes=(".nsys-rep", ".qdrep", ".qdstrm"),
    ),
    Format(
        "kineto",
        "pytorch",
        "nsw.readers.pytorch.kineto",
        "Chrome traces of PyTorch's profiler, also .gz",
        "PyTorch 1.8 to 2.11 (Kineto, CUDA and XPU); the older autograd profiler's traces",
        ("gpu_summary", "gpu_trace", "api_summary", "operators", "nvtx_summary", "nvtx_gpu_summary",
         "communication", "facts", *_PHASES),
        "stacks, arguments, flow arrows; the time line of memory (its peak is a fact)",
        ("fixtures/h200/lenet-trace.json.gz", "readers/test_kineto.py"),
        max_certainty=95,
        begins=(b"{", b"[", b"\x1f\x8b"),
    ),
    Format(
        "pstats",
        "cProfile",
        "nsw.readers.python.pstats",
        "python -m cProfile -o FILE",
        "Python 2.7 to 3.15 (marshal versions 2 to 5), read without running any of it",
        ("functions", "facts"),
        "callers",
        ("readers/test_pstats.py", "readers/test_pstats_oracle.py"),
        begins=(b"{", b"\xfb"),
    ),
    Format(
        "ncu-csv",
        "ncu",
        "nsw.readers.ncu.csv_reader",
        "ncu --csv: details, raw, source, summary and session pages, amid other output",
        "Nsight Compute 2019 to 2026; UTF-16; thousands separators of any place",
        (*_COUNTERS, "source_metrics"),
        "source pages without figures (--print-source ptx): refused with that reason",
        (
            "fixtures/h200/naive-raw.csv.gz", "fixtures/h200/naive-details.csv", "fixtures/h200/tiled-details.csv",
            "fixtures/h200/naive-summary.csv", "fixtures/h200/naive-session.csv", "fixtures/h200/ncu-mixed.csv",
            "fixtures/h200/naive-source.csv.gz", "fixtures/h200/ncu-range.csv", "fixtures/h200/ncu-processes.csv.gz",
            "fixtures/h200/ncu-unmeasured.csv", "fixtures/h200/range-raw.csv", "readers/test_ncu_csv.py",
        ),
        max_certainty=95,
    ),
    Format(
        "nsys-stats",
        "nsys",
        "nsw.readers.nsys.stats.reader",
        "nsys stats: text, CSV, TSV, JSON and HTML, also inside job output",
        "Nsight Systems 2019 to 2026: old and new names of the reports, local grouping of digits",
        tuple(t for t in _TIMELINE if t != "facts"),
        "the reports marked below, and those that nsw does not know by name where columns do not tell (each is named"
        " in a warning); tables printed without titles or units (refused)",
        (
            "fixtures/h200/tiled-stats.txt", "fixtures/h200/tiled-stats-refused.txt", "readers/test_nsys_stats.py",
            "readers/test_nsys_stats_reports.py",
        ),
        max_certainty=90,
    ),
    Format(
        "nsys-parquet",
        "nsys",
        "nsw.readers.nsys.export.parquet_source",
        "nsys export --type parquetdir or arrowdir",
        "Nsight Systems 2023.4 to 2026",
        (*_TIMELINE, *_PHASES),
        f"{_UNSUMMED}; single NVTX ranges",
        ("readers/test_nsys_parquet.py", "readers/test_nsys_parquet_oracle.py"),
        folder=True,
    ),
    Format(
        "nvprof-sqlite",
        "nvprof",
        "nsw.readers.nvprof.database.reader",
        "nvprof -o FILE (.nvvp, .nvprof), CUDA 5 to 12",
        "nvprof of CUDA 5 to 12 (database versions 1 to 14), also of programs that used no GPU (--cpu-profiling on)",
        ("gpu_summary", "gpu_trace", "api_summary", "api_trace", "um_summary", "nvtx_summary", "nvtx_gpu_summary",
         "openacc_summary", "openmp_summary", "functions", "metrics", "facts"),
        "metrics of points in time, source-level results, samples of the program counter, NVLink connections,"
        " allocations (a warning names what is there); XML sessions of the Visual Profiler (explained)",
        ("readers/test_nvprof_sqlite.py", "readers/test_nvprof_cpu.py", "readers/test_nvprof_sections.py",
         "readers/test_nvprof_counter_forms.py", "readers/test_nvprof_generations.py"),
        max_certainty=95,
        begins=(_DATABASE, b"<"),
    ),
    Format(
        "nvprof-text",
        "nvprof",
        "nsw.readers.nvprof.text.reader",
        "nvprof's text and CSV, also inside job output",
        "nvprof of CUDA 5 to 12: summary, --print-gpu-trace, --print-api-trace, --print-openacc-trace (summed),"
        " --metrics and --events (also --aggregate-mode off), --cpu-profiling, --system-profiling",
        ("gpu_summary", "gpu_trace", "api_summary", "api_trace", "um_summary", "nvtx_summary", "openacc_summary",
         "openmp_summary", "nvtx_gpu_summary", "metrics", "functions", "facts", *_PHASES),
        "the critical path (--dependency-analysis), NVLink and PCI topology, samples of the program counter, lists of"
        " metrics (each is named where it is there); who called the functions that CPU samples name;"
        " their tables without times (CUDA 6 and 7), and trees of which"
        " the report leaves something out (--cpu-profiling-max-depth, -percentage-threshold)",
        ("readers/test_nvprof_text.py", "readers/test_nvprof_cpu.py", "readers/test_nvprof_sections.py",
         "readers/test_nvprof_counter_forms.py", "readers/test_nvprof_text_phases.py"),
        max_certainty=90,
    ),
    Format(
        "ncu-text",
        "ncu",
        "nsw.readers.ncu.text_reader",
        "ncu's pages as text, also inside job output",
        "Nsight Compute 2019 to 2026",
        _COUNTERS,
        "charts drawn in text; the source page (named, with the command that prints it as CSV)",
        (
            "fixtures/h200/naive-details.txt", "fixtures/h200/ncu-range.txt", "fixtures/h200/ncu-stdout.txt",
            "fixtures/h200/ncu-watchdog.txt",
            "readers/test_ncu_text.py",
        ),
        max_certainty=85,
    ),
    Format(
        "ncu-binary",
        "ncu",
        "nsw.readers.ncu.binary_reader",
        ".ncu-rep: read where ncu_report or an ncu is found",
        "what ncu_report (pip install 'nsw[ncu]') or the ncu that is found can load; .nsight-cuprof-report likewise",
        _COUNTERS,
        "all of it where neither is found: nsw prints the command that exports it; by ncu_report: a launch's process",
        ("fixtures/h200/blocked.ncu-rep.gz", "readers/test_ncu_binary.py"),
        begins=(b"NVR\0",),
        suffixes=(".ncu-rep", ".nsight-cuprof-report", ".nsight-cuprof"),
    ),
    Format(
        "torch-table",
        "pytorch",
        "nsw.readers.pytorch.torch_table",
        "key_averages().table() of PyTorch, in text",
        "PyTorch 1.4 to 2.11: CPU, CUDA, XPU and other accelerators, memory, FLOP, shapes, stacks; with tabs, out of a"
        " document",
        ("operators", "facts"),
        "the rest of a name that PyTorch cut",
        ("fixtures/h200/lenet-table.txt", "readers/test_torch_table.py"),
        max_certainty=92,
    ),
    Format(
        "pyspy-raw",
        "py-spy",
        "nsw.readers.python.pyspy",
        "py-spy record -f raw: a line a call stack",
        "py-spy 0.4.3, with --native, --subprocesses, --threads, --function and without",
        ("functions", "facts"),
        "who called whom, processes and threads apart; times of recordings whose name does not tell the sampling rate",
        ("fixtures/cpu/host.rate100.pyspy.txt", "readers/test_pyspy.py"),
        max_certainty=95,
    ),
    Format(
        "gprof",
        "gprof",
        "nsw.readers.gnu.gprof",
        "gprof PROGRAM gmon.out: flat profile and call graph",
        "gprof of binutils 2.40",
        ("functions", "facts"),
        "who called whom, and how often; annotated source",
        ("fixtures/cpu/host.gprof.txt", "readers/test_gprof.py"),
        max_certainty=95,
    ),
    Format(
        "tau-profile",
        "tau",
        "nsw.readers.tau.profile",
        "profile.NODE.CONTEXT.THREAD of TAU, one a thread and metric",
        "TAU 2.23 to 2.34, from documentation and published profiles, not run: TIME, PAPI_TOT_CYC, PAPI_TOT_INS",
        ("functions", "facts"),
        "call paths (they repeat the time of their last function), user events, other metrics (refused)",
        ("readers/test_tau.py",),
        begins=_DIGITS,
    ),
    Format(
        "tau-pprof",
        "tau",
        "nsw.readers.tau.pprof",
        "pprof: TAU's listing of profiles as text",
        "TAU 2.23 to 2.34, from documentation and published listings, not run",
        ("functions",),
        "means; sums where the threads are there; user events; counts of other metrics than time (refused)",
        ("readers/test_tau.py",),
        max_certainty=90,
    ),
    Format(
        "perf-stat",
        "perf",
        "nsw.readers.linux.perf_stat",
        "perf stat: JSON lines (-j), cells with a separator (-x), or text, also amid other output",
        "perf 6.1 as JSON, CSV and text; software events run, hardware events from documentation",
        ("facts",),
        "counts by core, socket or interval (-A, --per-..., -I: refused), statistics over repeats (-r)",
        ("fixtures/cpu/host.perfstat.json", "readers/test_perf.py"),
    ),
    Format(
        "perf-report",
        "perf",
        "nsw.readers.linux.perf_report",
        "perf report --stdio: columns or separated cells, with call graphs or without",
        "perf 6.1",
        ("functions", "facts"),
        "call graphs; of events that count another thing than the first one (a warning names them)",
        ("fixtures/cpu/host.perf.txt", "readers/test_perf.py"),
        max_certainty=95,
        begins=(b"#",),
    ),
    Format(
        "perf-script",
        "perf",
        "nsw.readers.linux.perf_script",
        "perf script: samples with their call stacks",
        "perf 6.1",
        ("functions", "facts"),
        "who called whom, threads, times; registers, tracepoints' arguments",
        ("fixtures/cpu/perf-script.txt", "readers/test_perf.py"),
        max_certainty=90,
    ),
    Format(
        "vtune",
        "vtune",
        "nsw.readers.intel.vtune",
        "vtune -report (amplxe-cl): CSV, text tables and summaries, also inside job output",
        "hotspots, hw-events, summary, uarch-exploration, memory-access, memory-consumption, hpc-performance of"
        " Amplifier 2018 to VTune 2026, grouped by anything; any delimiter. A real CSV of 2018 was read; the rest is"
        " from documentation and printed examples, not run",
        ("functions", "facts"),
        "metrics of single functions that have no column (cache misses, latencies, CPU utilization by class); source"
        " lines; time with callees; result folders (run `vtune -report`)",
        ("readers/test_vtune.py",),
        max_certainty=95,
    ),
    Format(
        "aps",
        "aps",
        "nsw.readers.intel.aps",
        "aps --report: text, tables of aps-report (text, CSV), and the HTML report",
        "Application Performance Snapshot 2019 to 2025: two real texts and a real page of 2021 were read; tables of"
        " aps-report are from documentation, not run",
        ("facts",),
        "messages between ranks, communicators, metrics of single devices",
        ("readers/test_aps.py",),
        max_certainty=95,
    ),
    Format(
        "onednn",
        "onednn",
        "nsw.readers.onednn.verbose",
        "ONEDNN_VERBOSE, DNNL_VERBOSE, MKLDNN_VERBOSE: lines in a program's output",
        "MKL-DNN 0.18 to oneDNN 3.12 (PyTorch 2.13 was run; older lines are from documentation, not run)",
        ("operators", "facts"),
        "memory formats and attributes of a primitive; partitions of oneDNN Graph; dispatch and check messages",
        ("fixtures/onednn/convolution.txt", "readers/test_onednn.py"),
        max_certainty=90,
    ),
)  # fmt: skip
