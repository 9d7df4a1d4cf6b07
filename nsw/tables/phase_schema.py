"""The tables of phases and iterations of a timeline."""

from __future__ import annotations

from nsw.tables.columns import NAMES, ORIGIN, PHASE, STATISTICS, Table
from nsw.tables.columns import integer as _i
from nsw.tables.columns import real as _f
from nsw.tables.columns import text as _s

PHASE_TABLES = (
    Table(
        "phases",
        "one row a phase of a process's timeline; a row `all` where no iterations were found",
        (
            *ORIGIN,
            PHASE,
            _s("found_by", "what the iterations were found by: nvtx | profiler_step | kernel_sequence | none"),
            _s("name", "name of the range that is an iteration; # stands for a running number"),
            _s("reason", "why there are no phases; null: there are"),
            _i("iterations", None, "how many the phase has; null: it has none by its nature"),
            _i("start_ns", "ns", "start since the beginning of the trace, by the GPU's work"),
            _i("duration_ns", "ns", "how long it lasts; the phases of a process follow each other"),
            _f("gpu_ns", "ns", "sum of the durations of the GPU operations that the phase launched"),
            _f("gpu_busy_ns", "ns", "time within the phase in which a GPU was at work; of several GPUs the mean"),
            _f("api_ns", "ns", "sum of the durations of the CUDA API calls that began in the phase"),
        ),
    ),
    Table(
        "phase_summary",
        "gpu_summary, api_summary and communication by process and phase: over the phases they add up to those",
        (
            *ORIGIN,
            PHASE,
            _s("summary", "the table that the row is a part of: gpu_summary | api_summary | communication"),
            _s("kind", "as in that table (communication: its library)"),
            *NAMES,
            *STATISTICS,
            _f("total_bytes", "byte", "bytes copied or set; null for all else"),
        ),
    ),
    Table(
        "iterations",
        "one row a process: the iterations of its steady state",
        (
            *ORIGIN,
            _s("found_by", "what the iterations were found by: nvtx | profiler_step | kernel_sequence"),
            _s("name", "name of the range that is an iteration; # stands for a running number"),
            _i("iterations", None, "how many there are, with warm-up"),
            _i("warmup", None, "how many of them are warm-up: the first, as long as they take clearly longer"),
            _i("steady", None, "how many are left; all that follows is of these"),
            _f("med_ns", "ns", "median duration, from the first GPU operation to that of the next iteration"),
            _f("avg_ns", "ns", "mean duration"),
            _f("min_ns", "ns", "shortest duration"),
            _f("max_ns", "ns", "longest duration"),
            _f("stddev_ns", "ns", "sample standard deviation of the durations (n - 1)"),
            _i("slowest", None, "number of the longest iteration; the first of all is 0"),
            _f("slowest_gpu_busy_pct", "%", "share of that iteration in which a GPU was at work"),
            _f("gpu_busy_pct", "%", "share of the time in which a GPU was at work; of several GPUs the mean"),
            _f("med_gpu_busy_pct", "%", "median over iterations of that share, which one slow iteration does not move"),
            _f("med_longest_gap_ns", "ns", "median of the longest time in an iteration in which no GPU was at work"),
            _f("med_gpu_ops", None, "median number of GPU operations in an iteration"),
            _f("med_gpu_ns", "ns", "median of the sum of their durations"),
            _f("med_memory_pct", "%", "median share of copies and sets in that sum"),
            _f(
                "med_memory_alone_pct",
                "%",
                "median share of GPU busy time with copies and sets only, and no kernel",
            ),
            _f("med_communication_pct", "%", "median share of NCCL kernels in that sum"),
        ),
    ),
    Table(
        "iteration_trace",
        "one row an iteration, in order",
        (
            *ORIGIN,
            _i("iteration", None, "its number; the first of all is 0"),
            _s("phase", "warmup | steady"),
            _i("start_ns", "ns", "start of its first GPU operation since the beginning of the trace"),
            _i("duration_ns", "ns", "to the start of the next one, the last to the end of its last operation"),
            _i("gpu_busy_ns", "ns", "time within it in which a GPU was at work; of several GPUs the mean"),
            _i("gpu_ops", None, "GPU operations that it launched"),
            _i("gpu_ns", "ns", "sum of their durations"),
            _i("memory_ns", "ns", "of that sum: copies and sets"),
            _i("communication_ns", "ns", "of that sum: NCCL kernels"),
        ),
    ),
)
