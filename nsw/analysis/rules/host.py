"""Rules over the CPU's side: idle cores, memory, scalar code, MPI, imbalance, reorders; the host while the GPU waits.

The thresholds of shares of pipeline slots, of elapsed time and of vector instructions are those at which APS and VTune
mark a value themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.host import LOADER, MPI
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import Context, Hit
from nsw.quantities import format_ns, seconds
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary

__all__ = ["RULES", "HostWork", "host_work_while_idle"]

_MEMORY_PCT: Final = 20.0  # of the pipeline slots
_MPI_PCT: Final = 10.0  # of elapsed time
_IMBALANCE_PCT: Final = 10.0
_IMBALANCE_S: Final = 0.1  # that a rank works longer: starting Python takes ranks unlike times
_VECTOR_PCT: Final = 50.0  # of the floating-point operations
_CPU_USE_PCT: Final = 60.0  # of the logical CPUs
_SPIN_PCT: Final = 10.0  # of CPU time
_LEAST_GFLOPS: Final = 0.1  # of a run: less is no floating-point work of the CPU
_REORDER_PCT: Final = 10.0  # of oneDNN's time
_IDLE_PCT: Final = 50.0  # of the host's time in PyTorch's operators
_LOADING_PCT: Final = 25.0  # of that time: then launches do not explain it
_MANY_CALLS, _SMALL_CALL_NS = 100, 1e6  # of an operator; a call that takes longer loads a library or waits
_WORK_PCT: Final = 20.0  # of the CPU's working time outside of GPU calls: a class that is worth a sentence
_LEAST_PCT: Final = 10.0  # of all its working time, likewise
_WAIT_PCT: Final = 30.0  # of all time of the profile
_FACTS: Final = "facts"


class HostWork(NamedTuple):
    """What the host does while the GPU waits for it: as in a `Hit`, the fact without idle time; the kind of work."""

    cause: str
    work: str
    what: str
    do: str
    fact: str
    advice: str


# class of work -> what to try, in a few words and as a sentence
_ADVICE: Final[Mapping[str, tuple[str, str]]] = {
    "decoding JPEG": ("more loader workers, or decode on the GPU",
                      "Decode in more loader workers, in advance (smaller pictures), or on the GPU (nvJPEG, DALI)."),
    "decoding images": ("more loader workers, or store arrays", "Decode in more loader workers, or store arrays."),
    "compression": ("cheaper compression, more workers", "Compress with LZ4 or zstd -1, or unpack in more workers."),
    "resizing images": ("resize in advance", "Resize once, in advance, or on the GPU."),
    "reading files": ("read ahead", "Read ahead in more workers, in larger records, or from a disk of the node."),
    "text formats": ("store it as binary", "Parse or write text once, and store binary data (NPY, Parquet)."),
    "pickling": ("share memory", "Pass arrays through shared memory instead of pickling them."),
    "random numbers": ("draw on the GPU", "Draw them on the GPU, or many at once."),
    "matrix products": ("compute on the GPU", "Compute them on the GPU."),
    "convolution": ("compute on the GPU", "Compute them on the GPU."),
    "copying memory": ("copy less, pin it", "Copy less often, and into pinned memory that is allocated once."),
    "allocating memory": ("allocate once", "Allocate before the loop."),
    "loading data": ("more loader workers", "More loader workers (num_workers), or data that are ready."),
    "the Python interpreter": ("fewer, larger operations", "Work on whole arrays instead of items in Python."),
}  # fmt: skip


def host_work_while_idle(case: CaseSummary, waits_ns: float) -> HostWork | None:
    """What the host works on while the GPU waits `waits_ns` for it, by the profile of the case's CPU; None: not known.

    The timeline tells how long the GPU waits with no call for it under way; a profile is of the whole run, so what
    it says of such calls, the first of which load libraries, is left out.
    """
    host = case.host
    if host is None or not host.profiled_by:
        return None
    loader = next((wait for wait in host.waits if wait.name == LOADER), None)
    waited = f"it waits {format_ns(waits_ns)} for the host, "
    if loader is not None and loader.share_pct >= _WAIT_PCT:
        explanation = f"which waits for its loader workers {loader.share_pct:.0f} % of its time"
        advice = "More workers (num_workers), or cheaper work in them: py-spy shows what they do."
        problem = f"waits {format_ns(waits_ns)} for loader workers"
        return HostWork("data-loader", LOADER, problem, "more loader workers", waited + explanation, advice)
    of_all = {work.name: work.share_pct for work in host.work}
    main_work = next((work for work in host.beside_gpu if work.name in _ADVICE), None)
    if main_work is None or main_work.share_pct < _WORK_PCT or of_all.get(main_work.name, 0.0) < _LEAST_PCT:
        return None
    explanation = (
        f"whose time outside of GPU calls goes to {main_work.name} ({main_work.share_pct:.0f} %, most in"
        f" {main_work.top}; pass"
        f" {host.profiled_by})"
    )
    problem = f"waits {format_ns(waits_ns)}, {main_work.share_pct:.0f} % {main_work.name}"
    do, advice = _ADVICE[main_work.name]
    return HostWork("host-work", main_work.name, problem, do, waited + explanation, advice)


def _host_fact(case: CaseSummary, key: str) -> float | None:
    return case.host.facts.get(key) if case.host else None


def _has_cpu_floating_point(case: CaseSummary) -> bool:
    """Whether the CPU computes in floating point; True where that was not measured."""
    rates = [rate for key in ("sp_gflops", "dp_gflops") if (rate := _host_fact(case, key)) is not None]
    return not rates or sum(rates) >= _LEAST_GFLOPS


def _is_gpu_program(case: CaseSummary) -> bool:
    """Whether a GPU works, by its own timeline or by what a CPU profiler found of it."""
    return bool(case.gpu_ns or _host_fact(case, "gpu_busy_pct") or _host_fact(case, "gpu_accumulated_s"))


def _memory_bound_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Pipeline slots that wait for memory, in a program whose work is the CPU's."""
    bound, stalls = _host_fact(case, "memory_bound_pct"), _host_fact(case, "memory_stalls_pct")
    share = bound if bound is not None else stalls
    if share is None or share < _MEMORY_PCT or (_is_gpu_program(case) and not _has_cpu_floating_point(case)):
        return None
    dram, cache = _host_fact(case, "dram_bound_pct"), _host_fact(case, "cache_bound_pct")
    if dram is not None and (cache is None or dram >= cache):
        level_text, do = f", mostly for DRAM ({dram:.0f} % of the cycles)", "move fewer bytes"
        advice = "Move fewer bytes: fuse loops, use smaller types, keep each thread's data on its own NUMA node."
    elif cache is not None:
        level_text, do = f", mostly for caches ({cache:.0f} % of the cycles)", "block for the caches"
        advice = "Block loops so that they work within L2, and lay data out in the order in which loops read them."
    else:
        level_text, do = "", "look at memory access"
        advice = "`host: {tool: vtune, analysis: memory-access}` tells whether it is DRAM or caches."
    return Hit(
        "cpu-memory", case.id, share, f"{share:.0f} % of CPU slots wait for memory", do,
        f"{share:.0f} % of the CPU's pipeline slots wait for memory{level_text}", advice, f"{share:.0f} %", _FACTS,
    )  # fmt: skip


def _scalar_code_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Floating-point operations that are not packed into vectors."""
    share = _host_fact(case, "vectorization_pct")
    if share is None or share >= _VECTOR_PCT or not _has_cpu_floating_point(case):
        return None
    return Hit(
        "scalar-code", case.id, 0.5 * (100 - share), f"{share:.0f} % of FP operations packed", "vectorise",
        f"only {share:.0f} % of the floating-point operations are packed into vectors",
        "Compile for the CPU (-O3 -march=native), let the compiler say why it does not vectorise the hottest loop"
        " (-qopt-report, -fopt-info-vec-missed), or call a library.",
        f"{share:.0f} %", _FACTS,
    )  # fmt: skip


_MORE_THREADS: Final = (
    "Start more threads or processes (OMP_NUM_THREADS, ranks a node), and check that they are not all pinned to the"
    " same cores."
)


def _idle_core_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Logical CPUs without work, in a program that does not compute on a GPU."""
    cores, cpu_count = _host_fact(case, "cpu_use_cores"), _host_fact(case, "logical_cpus")
    share = 100 * cores / cpu_count if cores is not None and cpu_count else _host_fact(case, "cpu_use_pct")
    if share is None:
        return _poor_cpu_use_hit(case)
    if share >= _CPU_USE_PCT or _is_gpu_program(case):
        return None
    sentence = (
        f"{cores:.3g} of {cpu_count:.0f} logical CPUs are at work on average"
        if cores is not None and cpu_count
        else f"{share:.0f} % of the logical CPUs are at work on average"
    )
    serial, elapsed = _host_fact(case, "serial_s"), _host_fact(case, "elapsed_s")
    alone = f", {100 * serial / elapsed:.0f} % of the time one alone" if serial and elapsed else ""
    return Hit(
        "idle-cores",
        case.id,
        0.5 * (100 - share),
        sentence.removesuffix(" on average"),
        "more threads or processes",
        sentence + alone,
        _MORE_THREADS,
        f"{share:.0f} %",
        _FACTS,
    )


def _poor_cpu_use_hit(case: CaseSummary) -> Hit | None:
    """CPU time in which half of the CPUs work at most, by VTune's classes, where the CPUs at work were not counted."""
    times = {use: _host_fact(case, f"cpu_time_{use}_s") or 0.0 for use in ("idle", "poor", "ok", "ideal", "over")}
    total, poor = sum(times.values()), times["poor"]
    share = 100 * poor / total if total else 0.0
    if share < _CPU_USE_PCT or _is_gpu_program(case):
        return None
    problem = f"{poor:.1f} of {total:.1f} s run at poor CPU utilization"
    return Hit(
        "idle-cores", case.id, share, problem, "more threads or processes",
        f"{poor:.1f} of {total:.1f} s of CPU time run at poor utilization: half of the logical CPUs work at most",
        _MORE_THREADS, f"{share:.0f} %", "functions",
    )  # fmt: skip


def _mpi_time_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Time in MPI, with what of it is waiting for others."""
    elapsed, took = _host_fact(case, "elapsed_s"), _host_fact(case, "mpi_s")
    share = _host_fact(case, "mpi_pct")
    if share is None and elapsed and took is not None:
        share = 100 * took / elapsed
    if share is None or share < _MPI_PCT:
        return None
    lost, completion = _host_fact(case, "mpi_imbalance_s"), _host_fact(case, "mpi_completion_s")
    completion_pct = _host_fact(case, "mpi_completion_pct")
    if completion_pct is None:
        completion_pct = 100 * completion / elapsed if completion and elapsed else 0.0
    waits = f", {seconds(lost)} of {seconds(took)} waiting for slower ranks" if lost and took else ""
    if lost and took and lost >= took / 2:
        do, advice = "balance the ranks", "Give each rank the same work."
    elif completion_pct < share / 2:
        do = "fewer messages"
        advice = "Send less often and more at once, or let messages go while ranks compute (MPI_Isend, MPI_Iallreduce)."
    else:  # messages go already while ranks could compute
        waits += f", {100 * completion_pct / share:.0f} % of that MPI_Wait and MPI_Test"
        do, advice = "compute before the wait", "Compute between MPI_Isend, MPI_Irecv and their MPI_Wait."
        if lost is None:
            do = f"balance the ranks, or {do}"
            advice = (
                "Ranks wait for slower ranks, or compute nothing while messages are on their way:"
                f" APS_IMBALANCE_TYPE=1 measures which. Balance the ranks, or {advice[0].lower()}{advice[1:]}"
            )
    return Hit(
        "mpi-time", case.id, share, f"{share:.0f} % in MPI", do,
        f"{share:.0f} % of the elapsed time is MPI{waits}", advice, f"{share:.0f} %", _FACTS,
    )  # fmt: skip


def _rank_imbalance_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A rank that works longer than the others."""
    times = case.host.rank_s if case.host else {}
    if len(times) < 2:
        return None
    slowest_rank = max(times, key=lambda rank: times[rank])
    mean = sum(times.values()) / len(times)
    excess_pct = 100 * (times[slowest_rank] / mean - 1) if mean else 0.0
    if excess_pct < _IMBALANCE_PCT or times[slowest_rank] - mean < _IMBALANCE_S:
        return None
    return Hit(
        "mpi-imbalance",
        case.id,
        100 * (1 - mean / times[slowest_rank]),
        f"rank {slowest_rank} works {excess_pct:.0f} % longer",
        "balance the ranks",
        f"rank {slowest_rank} works {seconds(times[slowest_rank])}, {excess_pct:.0f} % more than the mean of"
        f" {plural(len(times), 'rank')}"
        f" ({seconds(mean)}); {MPI} and other waits are not counted",
        "Give each rank the same work: the others wait for the slowest.",
        f"{excess_pct:.0f} %",
        "functions",
    )


def _spinning_thread_hit(case: CaseSummary, _: Context) -> Hit | None:
    """CPU time of threads that wait in a loop."""
    spin, cpu = _host_fact(case, "spin_s"), _host_fact(case, "cpu_time_s")
    imbalance = _host_fact(case, "openmp_imbalance_pct")
    if spin is not None and cpu:
        share, problem, fact = 100 * spin / cpu, "spinning", "CPU time is threads that wait in a loop"
    elif imbalance is not None:
        share, problem, fact = imbalance, "OpenMP imbalance", "elapsed time is OpenMP imbalance"
    else:
        return None
    if share < _SPIN_PCT:
        return None
    return Hit(
        "threads-wait", case.id, share, f"{share:.0f} % {problem}", "balance the threads",
        f"{share:.0f} % of the {fact}",
        "Share loops out in smaller pieces (schedule(dynamic)), or start fewer threads.", f"{share:.0f} %", _FACTS,
    )  # fmt: skip


def _onednn_reorder_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Copies of oneDNN between memory formats."""
    primitives = case.host.primitives if case.host else None
    if primitives is None or primitives.reorder_pct < _REORDER_PCT:
        return None
    return Hit(
        "onednn-reorders",
        case.id,
        primitives.reorder_pct,
        f"{primitives.reorder_pct:.0f} % reorders",
        "keep one memory format",
        f"{primitives.reorder_pct:.0f} % of oneDNN's time,"
        f" {format_ns(primitives.reorder_pct * primitives.total_ns / 100)} in"
        f" {primitives.reorders:,.0f} calls, is reorders: copies between memory formats",
        "Keep one format from layer to layer (channels_last), and let weights be packed once (inference: freeze the"
        " model, torch.compile).",
        f"{primitives.reorder_pct:.0f} %",
        "operators",
    )


def _onednn_reference_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Primitives of oneDNN that run in the reference implementation."""
    primitives = case.host.primitives if case.host else None
    if primitives is None or primitives.reference_pct < _REORDER_PCT:
        return None
    return Hit(
        "onednn-reference",
        case.id,
        primitives.reference_pct,
        f"{primitives.reference_pct:.0f} % reference code",
        "change its shape",
        f"{primitives.reference_pct:.0f} % of oneDNN's time is its reference implementation, most in"
        f" {primitives.reference}",
        "oneDNN has nothing faster for this type, layout or shape on this CPU: try another type or format.",
        f"{primitives.reference_pct:.0f} %",
        "operators",
    )


def _operator_launch_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Small operators of PyTorch that the host launches more slowly than they run, where there is no timeline."""
    launches = case.host.launches if case.host and case.idle_gpu is None and case.spent is None else None
    if launches is None or launches.loading_pct >= _LOADING_PCT:
        return None
    idle_pct = 100 * (1 - launches.device_ns / launches.cpu_ns)
    is_small = launches.call_device_ns < launches.call_cpu_ns <= _SMALL_CALL_NS and launches.calls >= _MANY_CALLS
    if idle_pct < _IDLE_PCT or not is_small:
        return None
    cause = causes()["launch-bound"]
    times = f"works {format_ns(launches.device_ns)} in {format_ns(launches.cpu_ns)} of CPU time"
    return Hit(
        cause.id, case.id, idle_pct, f"launch-bound, the GPU {times}", cause.do,
        f"the GPU is idle at least {idle_pct:.0f} %: it {times}; each of {launches.calls:,.0f} calls of {launches.name}"
        f" takes the CPU {format_ns(launches.call_cpu_ns)} and the GPU {format_ns(launches.call_device_ns)}",
        cause.remedy("pytorch"), f"{idle_pct:.0f} %", "operators",
    )  # fmt: skip


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    "cpu-memory": _memory_bound_hit, "scalar-code": _scalar_code_hit, "idle-cores": _idle_core_hit,
    "mpi-time": _mpi_time_hit,
    "mpi-imbalance": _rank_imbalance_hit, "threads-wait": _spinning_thread_hit, "onednn-reorders": _onednn_reorder_hit,
    "onednn-reference": _onednn_reference_hit, "operators": _operator_launch_hit,
}  # fmt: skip
