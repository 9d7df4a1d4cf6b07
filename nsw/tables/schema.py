"""The schema of every table: one row here is one column there, with its type, unit and meaning.

Readers fill these columns and no others; what a report does not say is null, never zero. A column
`x` that may come from rounded text has a twin `x_pm`, half the width of the last printed digit:
`4.2567ms` is x = 4256700, x_pm = 50. A null twin says that x is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ORIGIN", "TABLES", "TRACES", "Column", "Table"]

Type = Literal["int64", "float64", "string", "bool"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `rounded` ones have a `_pm` twin in the table."""

    name: str
    type: Type
    unit: str | None
    meaning: str
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in order, with the twins of the rounded ones at the end."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        twins = tuple(
            Column(f"{c.name}_pm", "float64", c.unit, f"half-width of the rounding of {c.name}; null: exact")
            for c in self.columns
            if c.rounded
        )
        object.__setattr__(self, "columns", self.columns + twins)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(c.name for c in self.columns)


def _i(name: str, unit: str | None, meaning: str, *, rounded: bool = False) -> Column:
    """A column of int64."""
    return Column(name, "int64", unit, meaning, rounded)


def _f(name: str, unit: str | None, meaning: str, *, rounded: bool = False) -> Column:
    """A column of float64."""
    return Column(name, "float64", unit, meaning, rounded)


def _s(name: str, meaning: str) -> Column:
    """A column of strings."""
    return Column(name, "string", None, meaning)


# Where a row comes from. `run` and `report` are filled by nsw itself; the rest by the reader where the report tells.
ORIGIN = (
    _s("run", "the campaign's run that the report is of; null outside a campaign"),
    _s("report", "path of the report, below the campaign's folder where there is one"),
    _i("block", None, "which result block of the report: 0 for the first (nvprof: process or run)"),
    _i("rank", None, "MPI or distributed rank"),
    _s("host", "host name"),
    _i("pid", None, "process id"),
    _i("device", None, "GPU ordinal as the process saw it"),
)

_NAMES = (
    _s("name", "as in the report, demangled where it was mangled, less a correlation id at its end"),
    _s(
        "short_name",
        "for people: the function's own name, without return type, template arguments, parameters",
    ),
    _s("mangled_name", "the mangled name where the report had one"),
)

_STATISTICS = (
    _f(
        "time_pct",
        "%",
        "share of its table as printed (nsys stats: kernels and copies apart), else of all",
        rounded=True,
    ),
    _f("total_ns", "ns", "sum of the durations", rounded=True),
    _i("calls", None, "how many"),
    _f("avg_ns", "ns", "mean duration", rounded=True),
    _f("med_ns", "ns", "median duration", rounded=True),
    _f("min_ns", "ns", "shortest duration", rounded=True),
    _f("max_ns", "ns", "longest duration", rounded=True),
    _f("stddev_ns", "ns", "sample standard deviation of the durations (n - 1)", rounded=True),
)

_PHASE = _s("phase", "setup | warmup | steady | end | all (no iterations were found in the process)")
_PHASE_OF_ROW = _s("phase", "setup | warmup | steady | end; null: no iterations were found in the process")


_USE_PHASE = _s("phase", "steady | all (no iterations were found in the process)")
_PHASE_TABLES = (
    Table(
        "phases",
        "one row a phase of a process's timeline; a row `all` where no iterations were found",
        (
            *ORIGIN,
            _PHASE,
            _s("found_by", "what the iterations were found by: nvtx | profiler_step | kernel_sequence | none"),
            _s("name", "name of the range that is an iteration; # stands for a running number"),
            _s("reason", "why there are no phases; null: there are"),
            _i("iterations", None, "how many the phase has; null: it has none by its nature"),
            _i("start_ns", "ns", "start since the beginning of the trace, by the GPU's work"),
            _i("duration_ns", "ns", "how long it lasts; the phases of a process follow each other"),
            _f("gpu_ns", "ns", "sum of the durations of the GPU operations that the phase launched"),
            _f("gpu_busy_ns", "ns", "time within the phase in which a GPU was at work; the mean of those it works on"),
            _f("api_ns", "ns", "sum of the durations of the CUDA API calls that began in the phase"),
        ),
    ),
    Table(
        "phase_summary",
        "gpu_summary, api_summary and communication by process, GPU and phase: over these they add up to those",
        (
            *ORIGIN,
            _PHASE,
            _s("summary", "the table that the row is a part of: gpu_summary | api_summary | communication"),
            _s("kind", "as in that table (communication: its library)"),
            *_NAMES,
            *_STATISTICS,
            _f("total_bytes", "byte", "bytes copied or set; null for all else"),
        ),
    ),
    Table(
        "iterations",
        "one row a process and GPU that it works on: the iterations of its steady state",
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
            _f("slowest_gpu_busy_pct", "%", "share of that iteration in which the GPU was at work"),
            _f("gpu_busy_pct", "%", "share of the time in which the GPU was at work"),
            _f("med_gpu_busy_pct", "%", "median over iterations of that share, which one slow iteration does not move"),
            _f("med_longest_gap_ns", "ns", "median of the longest time in an iteration in which it was not at work"),
            _f("med_gpu_ops", None, "median number of its operations in an iteration"),
            _f("med_gpu_ns", "ns", "median of the sum of their durations"),
            _f("med_memory_pct", "%", "median share of copies and sets in that sum"),
            _f(
                "med_memory_alone_pct",
                "%",
                "median share of GPU busy time with copies and sets only, and no kernel",
            ),
            _f("med_communication_pct", "%", "median share of NCCL kernels in that sum"),
            _f(
                "med_communication_alone_pct",
                "%",
                "median share of GPU busy time with NCCL kernels only: communication that nothing hides",
            ),
        ),
    ),
    Table(
        "iteration_trace",
        "one row an iteration and GPU that the process works on, in order",
        (
            *ORIGIN,
            _i("iteration", None, "its number; the first of all is 0"),
            _s("phase", "warmup | steady"),
            _i("start_ns", "ns", "start of its first GPU operation since the beginning of the trace"),
            _i("duration_ns", "ns", "to the start of the next one, the last to the end of its last operation"),
            _i("gpu_busy_ns", "ns", "time within it in which the GPU was at work"),
            _i("gpu_ops", None, "operations that it launched there"),
            _i("gpu_ns", "ns", "sum of their durations"),
            _i("memory_ns", "ns", "of that sum: copies and sets"),
            _i("communication_ns", "ns", "of that sum: NCCL kernels"),
        ),
    ),
    Table(
        "process_gpus",
        "one row a process and GPU on which it has work or a CUDA context",
        (
            *ORIGIN,
            Column(
                "works", "bool", None, "whether it works there: 5 % of its kernels' time on the GPU with most of it"
            ),
            _i("kernels", None, "kernels that ran there"),
            _i("copies", None, "copies and sets"),
            _i("gpu_ns", "ns", "sum of the durations of both"),
            _f("iteration_gpu_ns", "ns", "of that sum: in the mean iteration; null: no iterations were found"),
        ),
    ),
    Table(
        "gaps",
        "times without work of a GPU in the usual iterations, one row a cause and length",
        (
            *ORIGIN,
            _USE_PHASE,
            _s("cause", "queued (launched before) | launch | synchronise | value | copy | allocate | load (a module)"),
            _s("length", "short: below 20 us | middle | long: 500 us and more"),
            _i("gaps", None, "how many"),
            _f("total_ns", "ns", "their time together"),
            _f("med_ns", "ns", "the median one"),
            _i("to_gpu", None, "how many end with a copy to the GPU"),
            _f("launch_ns", "ns", "of their time: in calls that launch; null: calls were not recorded, as below"),
            _f("cuda_ns", "ns", "of their time: in CUDA calls"),
            _f("read_ns", "ns", "of their time: in calls of the system that read files"),
            _f("write_ns", "ns", "of their time: in calls of the system that write or sync files"),
            _f("open_ns", "ns", "of their time: in calls of the system that open or close files"),
            _f("lock_ns", "ns", "of their time: in calls of the system that wait for a lock with a time limit"),
            _i("writing", None, "how many have a call that writes in them"),
        ),
    ),
    Table(
        "host_copies",
        "copies of a GPU in the usual iterations, one row a direction and kind of memory",
        (
            *ORIGIN,
            _USE_PHASE,
            _s("direction", "to the GPU | from the GPU | on the GPU"),
            _s("memory", "the host's: pageable | pinned | managed; null: not known"),
            _i("calls", None, "how many copies"),
            _f("total_ns", "ns", "sum of their durations"),
            _f("alone_ns", "ns", "of that sum: with no kernel beside it on the GPU"),
            _f("total_bytes", "byte", "bytes copied"),
            _f("med_bytes", "byte", "bytes of the median copy"),
            _i("late_calls", None, "how many are in the second half of the time"),
        ),
    ),
    Table(
        "gpu_use",
        "how a GPU is used in the usual iterations; without iterations from the first kernel to the end",
        (
            *ORIGIN,
            _USE_PHASE,
            _i("iterations", None, "how many iterations that is; null: none were found"),
            _f("span_ns", "ns", "their time"),
            _f("busy_ns", "ns", "of that: the GPU at work"),
            _i("operations", None, "operations on the GPU"),
            _i("kernels", None, "kernels among them"),
            _f("kernel_ns", "ns", "sum of the kernels' durations"),
            _f("communication_ns", "ns", "of that sum: NCCL kernels"),
            _f("computing_ns", "ns", "time with a kernel at work: less than that sum where kernels overlap"),
            _i("collectives", None, "NCCL kernels among the kernels; null: none, as below"),
            _f("collective_ns", "ns", "duration of the median one"),
            _i("channels", None, "blocks of the median one of the longer half: NCCL's channels"),
            _i("launches", None, "calls that launch; null: calls were not recorded, as below"),
            _f("cuda_ns", "ns", "time of the host in CUDA calls"),
            _f("wait_ns", "ns", "of that: in calls that wait for the GPU"),
            _f("copy_ns", "ns", "of that: in calls that copy"),
            _i("lock_threads", None, "threads of the process that wait for a lock with a time limit"),
            _i("waits", None, "calls that wait for the GPU"),
            _i("values", None, "copies of at most 4 KiB from the GPU"),
            _i("compiles", None, "gaps of 50 ms or more in which a module is loaded"),
            _i("late_compiles", None, "how many of them are in the second half of the time"),
            _f("compile_ns", "ns", "their time"),
            _i("streams", None, "streams with 5 % of the kernels' time or more; null: not recorded"),
            _i("default_stream", None, "how often the legacy default stream works after another stream"),
            _f("small_ns", "ns", "of the kernels' durations: those of at most 32 blocks"),
            _f(
                "host_ns",
                "ns",
                "how long the host takes for the median iteration, without waits for the GPU and copies",
            ),
            _i("period", None, "each how manieth iteration is slow; null: none, or at no equal distances"),
            _i("slow", None, "slow iterations; null: fewer than three, as below"),
            _f("slower_ns", "ns", "how much longer the median slow iteration takes"),
            _f("slower_gpu_ns", "ns", "of that: more work of the GPU"),
            _f("slower_pct", "%", "share of the steady state that slow iterations take longer"),
        ),
    ),
)

_GPU_KIND = _s("kind", "kernel | memcpy | memset | um | graph (a CUDA graph traced as a whole)")
_LAUNCH = (
    _i("launch_id", None, "id of the profiled launch in its report; null in a summary over launches"),
    _s("kernel", "kernel name, demangled where it was mangled"),
)

_TABLES = (
    Table(
        "gpu_summary",
        "one row a kernel name, copy kind or memset, of all devices of the report",
        (
            *ORIGIN,
            _GPU_KIND,
            *_NAMES,
            *_STATISTICS,
            _f("total_bytes", "byte", "bytes copied or set; null for kernels", rounded=True),
        ),
    ),
    Table(
        "gpu_trace",
        "one row an operation on a GPU, in order of start",
        (
            *ORIGIN,
            _GPU_KIND,
            *_NAMES,
            _i("start_ns", "ns", "start since the beginning of the trace", rounded=True),
            _i("duration_ns", "ns", "duration; null when not measured", rounded=True),
            _i("context", None, "CUDA context"),
            _i("stream", None, "CUDA stream"),
            _i("correlation", None, "correlation id of the API call that launched it"),
            _i("grid_x", None, "grid, blocks"),
            _i("grid_y", None, "grid, blocks"),
            _i("grid_z", None, "grid, blocks"),
            _i("block_x", None, "block, threads"),
            _i("block_y", None, "block, threads"),
            _i("block_z", None, "block, threads"),
            _i("registers", None, "registers a thread"),
            _f("static_smem_bytes", "byte", "static shared memory a block", rounded=True),
            _f("dynamic_smem_bytes", "byte", "dynamic shared memory a block", rounded=True),
            _i("smem_bytes", "byte", "shared memory a block, where the report gives static and dynamic in one"),
            _f("bytes", "byte", "bytes copied or set", rounded=True),
            _f("bytes_per_s", "byte/s", "throughput of the copy", rounded=True),
            _s("src_memory", "pageable | pinned | device | array | managed ..."),
            _s("dst_memory", "pageable | pinned | device | array | managed ..."),
            _s("device_name", "name of the GPU"),
            _i("graph", None, "CUDA graph id"),
            _i("graph_node", None, "CUDA graph node id"),
            _PHASE_OF_ROW,
        ),
    ),
    Table(
        "api_summary",
        "one row a CUDA runtime or driver call",
        (*ORIGIN, _s("name", "the call, less a version suffix such as _v3020"), *_STATISTICS),
    ),
    Table(
        "api_trace",
        "one row a CUDA runtime or driver call, in order of start",
        (
            *ORIGIN,
            _s("name", "the call"),
            _i("start_ns", "ns", "start since the beginning of the trace", rounded=True),
            _i("duration_ns", "ns", "duration", rounded=True),
            _i("tid", None, "thread id"),
            _i("correlation", None, "correlation id"),
            _i("return_value", None, "what the call returned; 0 is success"),
            _PHASE_OF_ROW,
        ),
    ),
    Table(
        "nvtx_trace",
        "one row an NVTX range or mark, in order of start",
        (
            *ORIGIN,
            _s("style", "pushpop | startend | mark"),
            _s("domain", "NVTX domain; null: the default one"),
            _s("name", "the text of the range"),
            _i("start_ns", "ns", "start since the beginning of the trace"),
            _i("duration_ns", "ns", "duration; null for marks"),
            _i("tid", None, "thread id"),
        ),
    ),
    *_PHASE_TABLES,
    Table(
        "osrt_summary",
        "one row a call of the operating system's runtime (poll, ioctl, pthread ...)",
        (*ORIGIN, _s("name", "the call"), *_STATISTICS),
    ),
    Table(
        "um_summary",
        "one row a kind of Unified Memory traffic or fault",
        (
            *ORIGIN,
            _s("device_name", "name of the GPU"),
            _s("name", "kind of transfer or fault"),
            _i("calls", None, "how many"),
            _f("total_bytes", "byte", "bytes moved", rounded=True),
            _f("avg_bytes", "byte", "mean size", rounded=True),
            _f("min_bytes", "byte", "smallest", rounded=True),
            _f("max_bytes", "byte", "largest", rounded=True),
            _f("total_ns", "ns", "time", rounded=True),
        ),
    ),
    Table(
        "nvtx_summary",
        "one row an NVTX range name and domain",
        (
            *ORIGIN,
            _s("style", "pushpop | startend | mark"),
            _s("domain", "NVTX domain; null: the default one"),
            _s("name", "text of the range"),
            *_STATISTICS,
        ),
    ),
    Table(
        "nvtx_gpu_summary",
        "GPU work projected on the NVTX ranges whose thread launched it: one row a range name and domain",
        (
            *ORIGIN,
            _s("domain", "NVTX domain; null: the default one"),
            _s("name", "text of the range"),
            _i("calls", None, "ranges with GPU work"),
            _i(
                "gpu_ops",
                None,
                "GPU operations that the range's own thread launched in them (PyTorch's backward has one of its own)",
            ),
            _f("gpu_ns", "ns", "sum of the durations of these operations"),
            _f(
                "projected_ns",
                "ns",
                "sum over the ranges of last end less first start of their operations",
                rounded=True,
            ),
            _f("projected_med_ns", "ns", "median of them; null: the report adds them up only", rounded=True),
        ),
    ),
    Table(
        "openacc_summary",
        "one row an OpenACC construct or event",
        (*ORIGIN, _s("name", "construct and place"), _s("kind", "compute | data | other"), *_STATISTICS),
    ),
    Table(
        "openmp_summary",
        "one row an OpenMP event: parallel regions, work shares, waits ...",
        (*ORIGIN, _s("name", "the event"), *_STATISTICS),
    ),
    Table(
        "launches",
        "Nsight Compute: one row a profiled launch",
        (
            *ORIGIN,
            *_LAUNCH,
            _s("short_name", "for people: the function's own name"),
            _s("mangled_name", "the mangled name where the report had one"),
            _f(
                "duration_ns",
                "ns",
                "Duration or gpu__time_duration.sum; null when not measured",
                rounded=True,
            ),
            _s("process", "name of the process"),
            _s("device_name", "name of the GPU"),
            _s("compute_capability", "such as 9.0"),
            _i("context", None, "CUDA context"),
            _i("stream", None, "CUDA stream"),
            _s("grid", "blocks, as (x, y, z)"),
            _s("block_size", "threads, as (x, y, z)"),
            _s("nvtx", "NVTX ranges around the launch, outermost first; null where the report has none"),
        ),
    ),
    Table(
        "metrics",
        "one row a metric of a launch (value) or of a summary over launches (min, max, avg)",
        (
            *ORIGIN,
            *_LAUNCH,
            _s("section", "section of the report"),
            _s("metric", "name as printed"),
            _s("description", "as printed"),
            _s("unit", "as printed: %, GB/s, inst/cycle ...; empty: the metric has none; null: the report has none"),
            _f("value", None, "of one launch; null: n/a, nan", rounded=True),
            _s("text", "the value where it is not a number (CachePreferNone)"),
            _f("min", None, "least over the invocations", rounded=True),
            _f("max", None, "greatest over the invocations", rounded=True),
            _f("avg", None, "mean over the invocations", rounded=True),
            _i("invocations", None, "launches that a summary covers"),
            _s("device_name", "name of the GPU"),
            _s("portable", "name that the metric has whatever tool printed it (`nsw metrics ls`); null: it has none"),
            _s("portable_unit", "unit of portable_value; empty: a plain ratio"),
            _f("portable_value", None, "value, or avg of a summary, in portable_unit", rounded=True),
        ),
    ),
    Table(
        "chosen_launches",
        "guided counters: one row a launch that a timeline chose, and what became of it in the counters pass",
        (
            *ORIGIN,
            _s("kernel", "kernel name, demangled where it was mangled"),
            _s("short_name", "for people: the function's own name"),
            _s("mangled_name", "the mangled name where the timeline has one"),
            _i("ordinal", None, "which launch of the kernel, from 1; null: measured without being chosen"),
            _s("grid", "blocks, as (x, y, z), in the timeline"),
            _s("block_size", "threads, as (x, y, z), in the timeline"),
            _i("duration_ns", "ns", "duration in the timeline"),
            _s("chosen_from", "the run whose timeline chose it"),
            _s("state", "measured | other shape | missing | unexpected; null: not measured yet"),
            _i("launch_id", None, "id of the launch in the counters report (table launches)"),
            _s("measured_grid", "blocks, in the counters report"),
            _s("measured_block_size", "threads, in the counters report"),
        ),
    ),
    Table(
        "rules",
        "Nsight Compute: one row a piece of advice on a launch",
        (
            *ORIGIN,
            *_LAUNCH,
            _s("section", "section of the report, by its title as in metrics"),
            _s("rule", "identifier or name of the rule"),
            _s("type", "OPT (optimisation) | WRN (warning) | INF (information) | ERR (the rule failed)"),
            _s("message", "the advice"),
            _s("speedup_type", "global | local"),
            _f("speedup_pct", "%", "estimated speed-up", rounded=True),
        ),
    ),
    Table(
        "source_metrics",
        "Nsight Compute's source page: one row a metric that an instruction or a source line has",
        (
            *ORIGIN,
            _s("kernel", "kernel name, demangled where it was mangled"),
            _s("file", "source file"),
            _i("line", None, "line of the source file; null where the page has instructions only"),
            _s("address", "address of the instruction, as printed; null: of the line as a whole"),
            _s("source", "text of the instruction (SASS, PTX) or line"),
            _s("metric", "name as printed; one that the instruction does not have (`-`) has no row"),
            _f("value", None, "of all profiled passes of one launch; null: the cell is text", rounded=True),
            _s("text", "the value where it is not a number (Global, Load)"),
        ),
    ),
    Table(
        "operators",
        "PyTorch: one row an operator of key_averages(); 'device' is the accelerator (CUDA, XPU). oneDNN: one row a"
        " primitive, implementation and shape",
        (
            *ORIGIN,
            _s("name", "operator, as printed"),
            _i("calls", None, "how many"),
            _f("self_cpu_pct", "%", "share of Self CPU", rounded=True),
            _f("self_cpu_ns", "ns", "CPU time less that of its children", rounded=True),
            _f("cpu_pct", "%", "share of CPU total", rounded=True),
            _f("cpu_ns", "ns", "CPU time with its children", rounded=True),
            _f("cpu_avg_ns", "ns", "CPU time a call", rounded=True),
            _s("device_kind", "CUDA | XPU | ..."),
            _f("self_device_pct", "%", "share of the device's self time", rounded=True),
            _f("self_device_ns", "ns", "device time less that of its children", rounded=True),
            _f("device_ns", "ns", "device time with its children", rounded=True),
            _f("device_avg_ns", "ns", "device time a call", rounded=True),
            _f("cpu_bytes", "byte", "CPU memory allocated less released", rounded=True),
            _f("self_cpu_bytes", "byte", "the same, less that of its children", rounded=True),
            _f("device_bytes", "byte", "device memory allocated less released", rounded=True),
            _f("self_device_bytes", "byte", "the same, less that of its children", rounded=True),
            _f("flops", "FLOP", "floating-point operations, estimated by PyTorch", rounded=True),
            _s("input_shapes", "as printed"),
            _s("source", "source location, as printed; of a oneDNN primitive its implementation"),
        ),
    ),
    Table(
        "functions",
        "CPU profilers: one row a function",
        (
            *ORIGIN,
            _s("name", "function"),
            _s("file", "source file"),
            _i("line", None, "line of the definition"),
            _s("module", "binary or Python module"),
            _i("calls", None, "calls; of a recursive function all of them"),
            _i("primitive_calls", None, "calls that were not recursive"),
            _f("self_s", "s", "time less that of its callees", rounded=True),
            _f("import_s", "s", "of self_s, the part within imports of modules, by the callers; null: not known"),
            _f(
                "cpu_time_s",
                "s",
                "time with its callees', where the profile tells them; cProfile's is wall time, VTune's its own",
                rounded=True,
            ),
            _f("self_pct", "%", "share of self_s, or of the samples, of all functions", rounded=True),
            _i("samples", None, "samples that hit the function itself"),
            _f("effective_s", "s", "of cpu_time_s, what was spent on work", rounded=True),
            _f("spin_s", "s", "of cpu_time_s, what was spent on waiting in a loop", rounded=True),
            _f("overhead_s", "s", "of cpu_time_s, what the runtime of the threads spent", rounded=True),
            _f("instructions", None, "instructions retired", rounded=True),
            _f("cycles", None, "core cycles that were not halted", rounded=True),
            _f("allocated_bytes", "byte", "memory that the function allocated", rounded=True),
            _i("allocations", None, "how often it did"),
        ),
    ),
    Table(
        "communication",
        "one row a communication operation: NCCL kernels, MPI calls",
        (
            *ORIGIN,
            _s("library", "nccl | mpi | nvshmem"),
            _s("name", "operation, such as AllReduce or MPI_Bcast"),
            *_STATISTICS,
            _f("total_bytes", "byte", "bytes sent; null when not recorded", rounded=True),
        ),
    ),
    Table(
        "ranks",
        "one row a process of a launcher, as it landed: which node, CPU cores and GPUs it was given",
        (
            *ORIGIN,
            _i("local_rank", None, "its number on its node, from 0"),
            _s("cpus", "CPU cores that it may use, such as 0-7"),
            _s("gpus", "GPUs that it saw, separated by commas: UUIDs, or as numbered where they are not known"),
        ),
    ),
    Table(
        "figures",
        "what the program printed, found by the recipe's regular expressions",
        (
            *ORIGIN,
            _s("name", "name of the figure in the recipe"),
            _f("value", None, "the figure, in `unit`", rounded=True),
            _s("unit", "unit from the recipe"),
            _i("matches", None, "how many times the expression matched"),
        ),
    ),
    Table(
        "earlier_figures",
        "figures of the program before the version that runs were repeated with, in a campaign that was added to",
        (
            *ORIGIN,
            _s("name", "name of the figure in the recipe"),
            _f("value", None, "the figure, in `unit`", rounded=True),
            _s("unit", "unit from the recipe"),
            _i("matches", None, "how many times the expression matched"),
        ),
    ),
    Table(
        "facts",
        "whole-report figures and the machine's description",
        (
            *ORIGIN,
            _s("key", "such as gpu_name, self_cpu_time_total_ns, elapsed_s"),
            _f("value", None, "a number; its unit is in the key or in `unit`", rounded=True),
            _s("unit", "unit"),
            _s("text", "the fact where it is not a number"),
        ),
    ),
)

TABLES: Mapping[str, Table] = MappingProxyType({t.name: t for t in _TABLES})

# Made by default; the rest, one row an event, only when the file holds nothing else or when asked for.
TRACES = frozenset({"gpu_trace", "api_trace", "iteration_trace", "nvtx_trace"})
