"""The CPU's side of a case: what its functions work on, what its profilers found of the whole program, its ranks.

Functions come from any CPU profiler (table functions), else from operators (PyTorch, oneDNN). Classes of work are data,
as those of kernels: the first pattern that a function's name, else its file or module, matches decides. Time in which
a thread only waits is a class too, and counts for nothing where shares of work are meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.groups import group_by, sum_by
from nsw.resources import csv_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

__all__ = [
    "LOADER",
    "MPI",
    "OTHER_WORK",
    "WAITS",
    "HostSide",
    "Launches",
    "Primitives",
    "Work",
    "classify_function",
    "own_time_weights",
    "summarize_host",
]  # fmt: skip

OTHER_WORK: Final = "other work"
MPI: Final = "MPI"
_GPU_WAIT: Final = "waiting for the GPU"
LOADER: Final = "waiting for loader workers"
_WAITING: Final = "waiting"
_IMPORTS: Final = "importing modules"
_BARRIERS: Final = "waiting at OpenMP barriers"
_MPI_START: Final = "starting and ending MPI"
WAITS: Final = frozenset({_GPU_WAIT, LOADER, MPI, _MPI_START, _WAITING, _BARRIERS})


def _class_pattern(words: str) -> re.Pattern[str]:
    patterns = [f"(?<![a-z]){word[1:]}(?![a-z])" if word.startswith("=") else word for word in words.split()]
    return re.compile("|".join(patterns), re.IGNORECASE)


@cache
def _classes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The rows of host_classes.csv: a class, and patterns of which any may be in the name, those with = as a word."""
    return tuple((row["class"], _class_pattern(row["words"])) for row in csv_rows("analysis/host_classes.csv"))


_TEMPLATE_ARGUMENTS: Final = re.compile(r"(?<=\w)<[^<>]*>(?=\W|\Z)")
_LIBRARY: Final = re.compile(r"(?:site|dist)-packages|/lib/python|\.so\b|^(?!.*\.py\b)")
# functions that launch GPU work or wait for it; those of torch.utils are the host's own
_ON_GPU: Final = re.compile(r"\btorch\b(?!.utils)|\bcu(?:da|dnn|blas|py)|\bjax|run_backward", re.IGNORECASE)


@cache
def classify_function(name: str, location: str = "") -> str:
    """The class of a function by its name, else by the library that it is of: the end of its file's path, its module.

    What users call their own files and modules says little.
    """
    # what C++ puts between angle brackets names other functions and types
    while (bare := _TEMPLATE_ARGUMENTS.sub("", name)) != name:
        name = bare
    for text in (
        name,
        "/".join(location.split("/")[-2:]) if _LIBRARY.search(location) else "",
    ):
        work_class = next((class_name for class_name, pattern in _classes() if text and pattern.search(text)), None)
        if work_class is not None:
            return work_class
    return OTHER_WORK


@dataclass(frozen=True, slots=True)
class Work:
    """A class of work: its share of the CPU's working time (0 to 100; of all time for a wait), its largest function.

    `functions` is how many it has.
    """

    name: str
    share_pct: float
    top: str
    functions: int = 1


@dataclass(frozen=True, slots=True)
class Primitives:
    """Those of oneDNN: their time, the shares of it (0 to 100) in reorders and in reference implementations."""

    total_ns: float
    reorder_pct: float
    reorders: float
    reference_pct: float
    reference: str


@dataclass(frozen=True, slots=True)
class Launches:
    """PyTorch's operators by the totals of their tables: times of the host and of the device, ns.

    Attributes:
        cpu_ns: All self times of the host.
        device_ns: All self times of the device.
        loading_pct: What of the host's time is waiting for a DataLoader.
        name: The operator that takes most of the device's time.
        calls: How often it is called.
        call_cpu_ns: The host's time for one of its calls.
        call_device_ns: The device's.
    """

    cpu_ns: float
    device_ns: float
    loading_pct: float
    name: str
    calls: float
    call_cpu_ns: float
    call_device_ns: float


@dataclass(frozen=True, slots=True)
class HostSide:
    """The CPU's side of a case.

    Attributes:
        work: Classes of work without waits, the largest first.
        waits: Classes of waiting, their shares of all time.
        beside_gpu: The same as work, of the functions alone that neither launch GPU work nor import modules.
        facts: What profilers found of the whole program, by key as in table facts: the first pass that has one;
            MPI_Wait* and MPI_Test* together as mpi_completion_s, _pct;
            sums over the ranks for times of CPUs, the longest rank for elapsed_s, the mean over ranks for shares.
        rank_s: The CPU time of each rank without waits, by its number, where functions are known rank by rank.
        primitives: oneDNN's; None: it was not recorded.
        launches: Of PyTorch's operators, where the totals of host and device were printed.
        profiled_by: The pass whose functions these are; empty: none.
    """

    work: tuple[Work, ...] = ()
    waits: tuple[Work, ...] = ()
    beside_gpu: tuple[Work, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    rank_s: Mapping[int, float] = field(default_factory=dict)
    primitives: Primitives | None = None
    launches: Launches | None = None
    profiled_by: str = ""


_SUMMED: Final = frozenset({"cpu_time_s", "cpu_use_cores", "spin_s", "overhead_s", "sp_gflops", "dp_gflops",
                            "instructions", "cycles", "task_clock_s", "user_s", "system_s",
                            "gpu_accumulated_s",
                            *(f"cpu_time_{use}_s" for use in ("idle", "poor", "ok", "ideal", "over"))})  # fmt: skip
_KEYS: Final = _SUMMED | {
    "elapsed_s", "logical_cpus", "cpu_use_pct", "ipc", "cpi", "memory_bound_pct", "memory_stalls_pct",
    "dram_bound_pct", "cache_bound_pct", "vectorization_pct", "mpi_s", "mpi_pct", "mpi_imbalance_s",
    "mpi_imbalance_pct", "openmp_imbalance_s", "openmp_imbalance_pct", "serial_s", "io_wait_s", "peak_memory_bytes",
    "ranks", "gpu_busy_pct", "gpu_accumulated_s", "gpu_occupancy_pct",
}  # fmt: skip
# by hardware events, which are counted more than once where the cores work more than all time
_CORE_USE, _MOST_PCT = "physical_core_use_pct", 101.0
_BY_EVENTS: Final = frozenset({"ipc", "cpi", "memory_bound_pct", "memory_stalls_pct", "dram_bound_pct",
                               "cache_bound_pct", "vectorization_pct", _CORE_USE})  # fmt: skip
# calls that complete what others began: MPI_Waitall, MPI_Testsome ...
_COMPLETION: Final = re.compile(r"mpi_(?:wait|test)(?:all|any|some)?_(s|pct)")
_OF_PASSES: Final = frozenset({"host", "report"})


def summarize_host(runs: Sequence[Any], tables: Mapping[str, Mapping[Any, Sequence[Row]]]) -> HostSide | None:
    """What a case's runs tell of its CPU's side; None: nothing.

    Args:
        runs: The case's runs, in the plan's order.
        tables: Rows of functions, operators and facts by run.
    """
    profiled = [run for run in runs if run.pass_kind in _OF_PASSES]
    functions, by = _rows_of_first_pass(profiled, tables.get("functions", {}))
    operators, of_operators = _rows_of_first_pass(profiled, tables.get("operators", {}))
    weights, _ = own_time_weights(functions)
    weighed = by_functions = [  # name, place and weight; imports of modules are left out
        (_function_name(row), _function_location(row), weight)
        for row, weight in zip(functions, weights, strict=True)
        if weight
    ]
    if not weighed:
        weighed = [(_function_name(row), "", row["self_cpu_ns"]) for row in operators if row.get("self_cpu_ns")]
    fact_rows = tables.get("facts", {})
    facts = _run_facts(profiled, fact_rows)
    if not weighed and not facts:
        return None
    works = [part for part in weighed if classify_function(*part[:2]) not in WAITS]
    return HostSide(
        work=_work_shares(works),
        # operators are PyTorch's alone: what Python does between them, such as decoding, is none
        beside_gpu=_work_shares(
            [
                part
                for part in works
                if not any(_ON_GPU.search(text) for text in part[:2]) and classify_function(*part[:2]) != _IMPORTS
            ]
        )
        if by_functions
        else (),
        waits=_work_shares(
            [part for part in weighed if classify_function(*part[:2]) in WAITS], sum(part[2] for part in weighed)
        ),
        facts=facts,
        rank_s=_work_seconds_by_rank(functions),
        primitives=_onednn_primitives(profiled, tables.get("operators", {})),
        launches=_operator_launches(
            operators, [fact for run in profiled for fact in tables.get("facts", {}).get(run.id, ())]
        ),
        profiled_by=by or of_operators,
    )


def _rows_of_first_pass(runs: Sequence[Any], by_run: Mapping[Any, Sequence[Row]]) -> tuple[list[Row], str]:
    """The rows of the first pass that has any, and its name."""
    runs_with_rows = [run for run in runs if by_run.get(run.id)]
    first = runs_with_rows[0].pass_name if runs_with_rows else ""
    return [row for run in runs_with_rows if run.pass_name == first for row in by_run[run.id]], first


def _function_name(row: Row) -> str:
    return str(row.get("name") or "")


def _function_location(row: Row) -> str:
    return f"{row.get('file') or ''} {row.get('module') or ''}".strip()


def own_time_weights(rows: Iterable[Row]) -> tuple[list[float], bool]:
    """What each function weighs among those of its report, and whether that is seconds.

    Its own time without imports; where a profile has no times, its share of the samples, else their number.
    """
    functions = list(rows)
    if any(row.get("self_s") is not None for row in functions):
        return [(row.get("self_s") or 0.0) - (row.get("import_s") or 0.0) for row in functions], True
    return [float(row.get("self_pct") or row.get("samples") or 0.0) for row in functions], False


def _work_shares(parts: Sequence[tuple[str, str, float]], total_weight: float | None = None) -> tuple[Work, ...]:
    """The classes of functions with their shares, largest first."""
    members_by_class = {
        work: sum_by((name, weight) for name, _, weight in members)
        for work, members in group_by(parts, lambda part: classify_function(*part[:2])).items()
    }
    total = total_weight or sum(part[2] for part in parts)
    works = (
        Work(k, 100 * sum(m.values()) / total, max(m, key=lambda name: m[name]), len(m))
        for k, m in members_by_class.items()
    )
    return tuple(sorted(works, key=lambda work: -work.share_pct))


def _work_seconds_by_rank(functions: Iterable[Row]) -> dict[int, float]:
    """Seconds of work by rank, the mean of a run's repeats; empty where there are no two ranks."""
    by: dict[int, dict[Any, float]] = {}
    for row in functions:
        if (
            row.get("rank") is None
            or row.get("self_s") is None
            or classify_function(_function_name(row), _function_location(row)) in WAITS
        ):
            continue
        runs = by.setdefault(row["rank"], {})
        runs[row.get("run")] = runs.get(row.get("run"), 0.0) + row["self_s"] - (row.get("import_s") or 0.0)
    return {rank: fmean(runs.values()) for rank, runs in sorted(by.items())} if len(by) > 1 else {}


def _run_facts(runs: Sequence[Any], by_run: Mapping[Any, Sequence[Row]]) -> dict[str, float]:
    """Each key from the first pass that has it: over a run's ranks together, over repeats the median."""
    values_by_key: dict[str, dict[Any, list[float]]] = {}
    passes: dict[str, str] = {}
    for run in runs:
        for row in by_run.get(run.id, ()):
            key, value = str(row.get("key")), row.get("value")
            is_needed = key in _KEYS or key == _CORE_USE or _COMPLETION.fullmatch(key)
            if is_needed and value is not None and passes.setdefault(key, run.pass_name) == run.pass_name:
                values_by_key.setdefault(key, {}).setdefault(run.id, []).append(value)
    facts = {
        key: median(_combine_ranks(key, run_values) for run_values in values_by_run.values())
        for key, values_by_run in values_by_key.items()
    }
    unusable = _BY_EVENTS if facts.get(_CORE_USE, 0.0) > _MOST_PCT else {_CORE_USE}
    facts = {key: value for key, value in facts.items() if key not in unusable}
    parts = [(f"mpi_completion_{call[1]}", facts.pop(call[0])) for call in map(_COMPLETION.fullmatch, [*facts]) if call]
    return facts | sum_by(parts)


def _combine_ranks(key: str, values: Sequence[float]) -> float:
    if key in _SUMMED:
        return sum(values)
    return max(values) if key in {"elapsed_s", "logical_cpus", "ranks"} else fmean(values)


_DEVICE_TOTAL: Final = re.compile(r"self_(?!cpu)\w+_time_total_ns")


def _operator_launches(operators: Sequence[Row], facts: Sequence[Row]) -> Launches | None:
    """The times of host and device of a table of PyTorch's operators; None where it does not print both."""
    cpu_ns = sum(fact.get("value") or 0.0 for fact in facts if fact.get("key") == "self_cpu_time_total_ns")
    device_ns = sum(fact.get("value") or 0.0 for fact in facts if _DEVICE_TOTAL.fullmatch(fact.get("key") or ""))
    timed = [
        row for row in operators if all(row.get(key) for key in ("self_device_ns", "self_cpu_ns", "cpu_ns", "calls"))
    ]
    if not (cpu_ns and device_ns and timed):
        return None
    first = max(timed, key=lambda row: row["self_device_ns"])
    loading_ns = sum(row.get("self_cpu_ns") or 0.0 for row in operators if "DataLoader" in _function_name(row))
    calls = first["calls"]
    return Launches(cpu_ns, device_ns, 100 * loading_ns / cpu_ns, _function_name(first), calls, first["cpu_ns"] / calls,
                    first["self_device_ns"] / calls)  # fmt: skip


_REORDER: Final = re.compile(r"\breorder\b")
_REFERENCE: Final = re.compile(r"\bref(?:\b|_)")
_IMPLEMENTATION: Final = re.compile(r"[^\s/]+:[^\s/]+")  # the `source` of an operator of oneDNN: `jit:avx512_core`


def _onednn_primitives(runs: Sequence[Any], by_run: Mapping[Any, Sequence[Row]]) -> Primitives | None:
    """Those of oneDNN, operators that name their implementation, of a run of the first pass that has some."""
    by_pass: dict[str, list[list[Row]]] = {}
    for run in runs:
        timed = [
            row
            for row in by_run.get(run.id, ())
            if row.get("self_cpu_ns") and _IMPLEMENTATION.fullmatch(row.get("source") or "")
        ]
        if timed:
            by_pass.setdefault(run.pass_name, []).append(timed)
    several = next(iter(by_pass.values()), [])
    if not several:
        return None
    timed = [row for rank_rows in several for row in rank_rows]
    total = sum(row["self_cpu_ns"] for row in timed)
    reorders = [row for row in timed if _REORDER.search(_function_name(row))]
    plain = [row for row in timed if _REFERENCE.search(row["source"]) and not _REORDER.search(_function_name(row))]
    slowest = max(plain, key=lambda row: row["self_cpu_ns"], default=None)
    return Primitives(
        total_ns=total / len(several),
        reorder_pct=100 * sum(row["self_cpu_ns"] for row in reorders) / total,
        reorders=sum(row.get("calls") or 0 for row in reorders) / len(several),
        reference_pct=100 * sum(row["self_cpu_ns"] for row in plain) / total,
        reference=_function_name(slowest) if slowest else "",
    )
