"""What each case of a campaign shows: hotspots, API calls, copies, communication, figures.

Shares are of all GPU time of the case (kernels, copies and sets together) and of all time in CUDA API calls, both of
the steady state where the reports were split by phase (nsw/analysis/steady.py).
Times, calls and bytes are those of one run: with a report a rank they are summed over the ranks; with repeats they
are the mean over the runs, of which `measured` says how many. Of several passes that give the same table the first
in the recipe's order counts, so that nothing is counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, Final

from nsw.analysis.collective_speed import CollectiveSpeed, collective_speeds
from nsw.analysis.figures import Figure, Perturbation, figures_by_pass, profiler_perturbations
from nsw.analysis.groups import group_by, sum_by, sum_times_and_calls
from nsw.analysis.host import HostSide, own_time_weights, summarize_host
from nsw.analysis.idle_gpu import IdleGpu, find_most_idle_gpu, may_share_gpus
from nsw.analysis.kernels import KernelRow, kernel_table
from nsw.analysis.pipeline import OF_PIPELINE, Pipeline, find_pipeline
from nsw.analysis.placement import StrayContext, find_stray_contexts
from nsw.analysis.spent import Spent, divide_time
from nsw.analysis.steady import (
    PROCESS,
    Collectives,
    Iterations,
    Phase,
    Waiting,
    process_key,
    steady_state_columns,
    steady_state_rows,
    summarize_collectives,
    summarize_iterations,
    summarize_nccl_waiting,
    summarize_phases,
    unsplit_timeline_reason,
)
from nsw.analysis.stragglers import OF_STRAGGLERS, Straggler, find_stragglers
from nsw.tables.columns import Columns
from nsw.tables.parquet_tables import RowsByRun, StoredRows, TableData

_FEWEST, _FEW_ALIKE, _ALIKE = 6, 3, 1.25  # iterations; those of which none takes so many times the median
_COMPILED: Final = re.compile(r"XlaCompile:#module=([^#,]+)")  # one range a module, the ranges of its passes within
_IN_LOOP: Final = re.compile(r"Thunk:#name=jit\(.*/while/body")  # an operation in a loop that XLA compiled
_LOADER: Final = re.compile(r"DataLoader.*__next__")


@dataclass(slots=True)  # not frozen: that takes three times as long to make, and there may be millions
class Share:
    """One kernel, copy, API call or function with its part of the whole; `share_pct` and `cumulative_pct` 0 to 100.

    `total_ns` is None where only samples or shares are known.
    """

    name: str
    short_name: str
    kind: str
    total_ns: float | None
    calls: float | None
    share_pct: float
    cumulative_pct: float


@dataclass(frozen=True, slots=True)
class Copy:
    """One kind of copy or set: bytes, time, and bytes a second where both are known."""

    name: str
    calls: float
    total_ns: float
    total_bytes: float | None
    bytes_per_s: float | None
    longest_ns: float | None = None  # of one copy


@dataclass(frozen=True, slots=True)
class Link:
    """The PCIe link of a GPU, as its report records it: its name, and the bytes a second that its lanes carry."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """One case. What its reports do not tell is None or empty.

    Where there are `phases`, everything but `figures` and `functions` is of the steady state. `functions` are without
    the imports of modules, which take `import_ns`. `traced_by` is the pass whose timeline counts. `one_phase` is why a
    timeline without iterations was not split.
    """

    id: str
    params: dict[str, Any]
    reports: int
    gpu_ns: float | None
    kernel_ns: float | None
    communication_pct: float | None
    hotspots: tuple[Share, ...] = ()
    gpu_work: tuple[Share, ...] = ()  # all that hotspots are the largest of
    start_kernels: tuple[str, ...] = ()  # those outside of the steady state, where that has whole CUDA graphs alone
    api: tuple[Share, ...] = ()
    copies: tuple[Copy, ...] = ()
    functions: tuple[Share, ...] = ()
    figures: tuple[Figure, ...] = ()
    gpus: tuple[str, ...] = field(default=())
    measured: int = 1
    kernels: tuple[KernelRow, ...] = ()
    phases: tuple[Phase, ...] = ()
    iterations: Iterations | None = None
    waiting: Waiting | None = None
    collectives: Collectives | None = None
    stragglers: tuple[Straggler, ...] = ()
    bandwidth: tuple[CollectiveSpeed, ...] = ()
    pipeline: Pipeline | None = None  # that its ranks are
    import_ns: float | None = None
    perturbation: tuple[Perturbation, ...] = ()
    idle_gpu: IdleGpu | None = None
    traced_by: str | None = None
    one_phase: str | None = None
    spent: Spent | None = None
    loading_ns: float | None = None  # what PyTorch's DataLoader keeps a step waiting, the median
    loading_range_ns: tuple[float, float] | None = None  # the same, the least and the most
    loading_waits_ns: tuple[float, ...] = ()  # all of them, the shortest first, where there are three at most
    host: HostSide | None = None
    stray_contexts: tuple[StrayContext, ...] = ()
    link: Link | None = None
    sm_count: float | None = None  # of each of its GPUs
    uses_fsdp: bool = False
    traced_ns: float = 0.0  # from the first CUDA call to the last, of the longest process of the mean run
    start_ns: float = 0.0  # of the trace, before the first CUDA call of the mean run
    compiled: tuple[tuple[str, float, float], ...] = ()  # by XLA: module, how often, ns; those that took longest first
    loop_thunks: float = 0.0  # operations in loops of programs that XLA compiled, of the mean run
    longest_calls_ns: Mapping[str, float] = field(default_factory=dict)  # the longest call of each CUDA API call
    page_fault_ns: float = 0.0  # of the GPU, where a report sums them
    threads: Mapping[str, float] = field(default_factory=dict)  # of each kernel's largest launch, where a trace tells
    blocks: Mapping[str, float] = field(default_factory=dict)  # likewise
    successors: Mapping[str, str] = field(default_factory=dict)  # the kernel that follows a kernel, where it is one


def summarize_cases(
    runs: Sequence[Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    cover: float,
    counters: Mapping[str, TableData] | None = None,
    classes: Mapping[str, str] | None = None,
    windowed: Collection[str] = (),
    racks: Mapping[str, str] | None = None,
) -> list[CaseSummary]:
    """Summarise every case of a campaign, in the plan's order.

    Args:
        runs: The campaign's runs (id, case_id, params, pass_name, pass_kind, state, seconds).
        tables: Rows by table name; each row has `run`.
        cover: How much of the time the hotspots listed together take, 0 to 1.
        counters: The tables metrics, launches and rules that there are.
        classes: Classes of kernels that the recipe names, a pattern each.
        windowed: Passes that record a part of the program. A profiler halts it there for seconds, so that their
            figures and run times tell nothing of how much it slows the rest.
        racks: The rack of each node, where the site tells it.
    """
    by_run = {name: rows_by_run(rows) for name, rows in tables.items()}
    return [
        _summarize_case(id_, _CaseRows(members, by_run), cover, counters or {}, classes, windowed, racks)
        for id_, members in group_by(runs, lambda run: run.case_id).items()
    ]


class _CaseRows:
    """The rows of the tables of one case, each made once."""

    def __init__(self, runs: list[Any], by_run: Mapping[str, Mapping[Any, Sequence[Mapping[str, Any]]]]) -> None:
        """Find the runs whose rows count.

        Args:
            runs: Those of the case.
            by_run: The rows of each run, by table name.
        """
        self.runs, self.by_run = runs, by_run
        self.rows_of_run = cache(lambda table, run: by_run.get(table, {}).get(run, ()))
        self.columns_of_run = cache(lambda table, run: _columns_of_run(by_run.get(table, {}), run))
        self.with_gpu, self.with_api, self.with_functions, self.with_speeds = (
            runs_of_first_measured_pass(runs, by_run.get(table, {}))
            for table in ("gpu_summary", "api_summary", "functions", "bandwidth")
        )

    def rows(self, table: str, runs: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        if len(runs) == 1:
            rows: Sequence[Mapping[str, Any]] = self.rows_of_run(table, runs[0].id)
            return rows
        return [row for run in runs for row in self.rows_of_run(table, run.id)]

    def traced(self, table: str) -> Sequence[Mapping[str, Any]]:
        """The rows of the runs whose timeline counts."""
        return self.rows(table, self.with_gpu)

    def phases_but_kernels(self) -> list[Mapping[str, Any]]:
        """The rows of phase_summary that tell of a process, its calls and its copies."""
        parts = self.by_run.get("phase_summary", {})
        return [
            row
            for run in self.with_gpu
            for row in _rows_but_kernels(parts, run.id, self.columns_of_run("phase_summary", run.id))
        ]

    def columns(self, table: str, runs: Sequence[Any]) -> list[Columns]:
        return [self.columns_of_run(table, run.id) for run in runs]

    def steady_columns(self, table: str, runs: Sequence[Any]) -> Columns:
        return steady_state_columns(table, self.columns(table, runs), self.columns("phase_summary", runs))


def _summarize_case(
    id_: str,
    rows: _CaseRows,
    cover: float,
    counters: Mapping[str, TableData],
    classes: Mapping[str, str] | None,
    windowed: Collection[str],
    racks: Mapping[str, str] | None,
) -> CaseSummary:
    runs, with_gpu, several = rows.runs, rows.with_gpu, max(1, len(rows.with_gpu))
    facts, functions = rows.rows("facts", runs), rows.rows("functions", rows.with_functions)
    iterations, ranges, gaps, gpu_use = map(rows.traced, ("iterations", "nvtx_summary", "gaps", "gpu_use"))
    parts = rows.phases_but_kernels()
    gpu = rows.steady_columns("gpu_summary", with_gpu)
    gpu_ns = sum(filter(None, gpu["total_ns"]))
    work = largest_shares(gpu, 1.0, several)
    communication = steady_state_rows("communication", rows.traced("communication"), parts)
    nccl = [row for row in communication if "nccl" in {row.get("library"), row.get("kind")}]
    figures = _counted_figures(rows, windowed)
    idle_gpu = find_most_idle_gpu(
        iterations,
        {"phase_summary": parts, "gaps": gaps, "host_copies": rows.traced("host_copies"), "gpu_use": gpu_use},
    )
    gpus = tuple(sorted({str(row["text"]) for row in facts if row["key"] == "gpu_name" and row.get("text")}))
    pipeline = find_pipeline({name: rows.rows(name, with_gpu[:1]) for name in OF_PIPELINE} | {"phase_summary": parts})
    loading = _longest_loading_range(ranges)
    loading_range: Any = loading.get("min_ns"), loading.get("max_ns")
    return CaseSummary(
        id=id_,
        params=runs[0].params,
        reports=len({*gpu["report"]}),
        gpu_ns=gpu_ns / several if gpu else None,
        kernel_ns=_kernel_ns(gpu) / several if gpu else None,
        communication_pct=100 * sum(row.get("total_ns") or 0 for row in nccl) / gpu_ns if gpu and gpu_ns else None,
        hotspots=_shares_that_cover(work, cover),
        gpu_work=work,
        start_kernels=() if "kernel" in gpu["kind"] else _kernel_names(rows.columns("phase_summary", with_gpu)),
        api=largest_shares(rows.steady_columns("api_summary", rows.with_api), cover, max(1, len(rows.with_api))),
        longest_calls_ns={
            row["name"]: row["max_ns"] for row in rows.rows("api_summary", rows.with_api) if row.get("max_ns")
        },
        threads=_known_by_name(gpu, "threads"),
        blocks=_known_by_name(gpu, "blocks"),
        successors=_known_by_name(gpu, "successor"),
        copies=_copies_by_kind(gpu, several),
        functions=_function_shares(functions, cover, max(1, len(rows.with_functions))),
        import_ns=_import_ns(functions, len(rows.with_functions)),
        figures=figures,
        perturbation=tuple(profiler_perturbations(figures, [run for run in runs if run.pass_name not in windowed])),
        link=_link_of_facts(facts),
        sm_count=_sm_count_of_facts(facts),
        page_fault_ns=sum(row["value"] for row in rows.traced("facts") if row["key"] == PAGE_FAULTS) / several,
        traced_ns=_traced_time(rows.traced("phases")),
        start_ns=_start_time(rows.traced("phases")),
        compiled=_compiled_modules(ranges, several),
        loop_thunks=sum(row["calls"] or 0 for row in ranges if _IN_LOOP.match(str(row["name"]))) / several,
        uses_fsdp=any(str(row["name"]).startswith("FSDP::") for row in ranges),
        gpus=gpus,
        measured=len(with_gpu or rows.with_api or rows.with_functions),
        kernels=_kernels_with_counters(runs, counters, gpu, several),
        phases=summarize_phases(rows.traced("phases"), parts),
        iterations=summarize_iterations(iterations),
        waiting=summarize_nccl_waiting(nccl, gpu_ns, gpu_use, gaps),
        collectives=summarize_collectives(rows.rows("gpu_use", with_gpu[:1])),
        stragglers=find_stragglers({name: rows.traced(name) for name in OF_STRAGGLERS}, racks)
        if rows.traced("collectives") and pipeline is None  # whose ranks do not meet
        else (),
        pipeline=pipeline,
        bandwidth=collective_speeds(rows.rows("bandwidth", rows.with_speeds), gpus),
        idle_gpu=idle_gpu,
        traced_by=with_gpu[0].pass_name if with_gpu else None,
        one_phase=unsplit_timeline_reason(rows.traced("phases")),
        spent=_spent_time(rows, gpu, iterations, classes, shared=may_share_gpus(iterations, parts), idle_gpu=idle_gpu),
        loading_ns=loading.get("med_ns") or loading.get("avg_ns"),
        loading_range_ns=loading_range if None not in loading_range else None,
        loading_waits_ns=_loading_waits(loading),
        host=summarize_host(runs, rows.by_run),
        stray_contexts=find_stray_contexts(rows.traced("process_gpus")),
    )


def _counted_figures(rows: _CaseRows, windowed: Collection[str]) -> tuple[Figure, ...]:
    """The figures; of passes that record a part of the program those alone that no run without a profiler has."""
    figures = figures_by_pass(rows.runs, rows.by_run.get("figures", {}))
    free = {figure.name for figure in figures if not figure.profiled}
    return tuple(figure for figure in figures if figure.pass_name not in windowed or figure.name not in free)


def _spent_time(
    rows: _CaseRows, gpu: Columns, iterations: Sequence[Mapping[str, Any]], classes: Mapping[str, str] | None, *,
    shared: bool, idle_gpu: IdleGpu | None,
) -> Spent | None:  # fmt: skip
    """The time by classes, of the steady state unless its iterations are few and differ, so that no median tells."""
    if not all(
        row["steady"] >= _FEWEST or (row["steady"] >= _FEW_ALIKE and row["max_ns"] <= _ALIKE * row["med_ns"])
        for row in iterations
    ):
        gpu, iterations = Columns.joined(rows.columns("gpu_summary", rows.with_gpu)), ()
    is_mean = idle_gpu is not None and idle_gpu.is_mean
    return divide_time(gpu, iterations, max(1, len(rows.with_gpu)), classes, shared=shared, is_mean=is_mean)


def _kernel_ns(gpu: Columns) -> float:
    return sum(ns or 0 for ns, kind in gpu.rows("total_ns", "kind") if kind in {"kernel", "graph"})


def _shares_that_cover(work: Sequence[Share], cover: float) -> tuple[Share, ...]:
    """The largest that together take `cover` of the time, 0 to 1."""
    covered_before = (0.0, *(share.cumulative_pct for share in work))
    return tuple(share for share, before in zip(work, covered_before, strict=False) if before < 100 * cover)


def _known_by_name(gpu: Columns, column: str) -> dict[str, Any]:
    return {name: value for name, value in gpu.rows("name", column) if value}


def _import_ns(functions: Iterable[Mapping[str, Any]], runs: int) -> float | None:
    """What the imports of modules take in the mean run."""
    times = [row["import_s"] for row in functions if row.get("import_s") is not None]
    return 1e9 * sum(times) / runs if times else None


def _longest_loading_range(ranges: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The calls in which PyTorch's DataLoader is waited for longest; empty: none are marked."""
    waits = (row for row in ranges if _LOADER.search(row["name"] or "") and row.get("avg_ns"))
    return max(waits, key=lambda row: float(row["med_ns"] or row["avg_ns"]), default={})


def _kernels_with_counters(
    runs: Sequence[Any], counters: Mapping[str, TableData], gpu: Columns, traced: int
) -> tuple[KernelRow, ...]:
    """The kernels that counters were measured of, with the times of the case's timeline where it has one."""
    if "metrics" not in counters:
        return ()
    case_counters = {name: rows_of_runs(data, {run.id for run in runs}) for name, data in counters.items()}
    times = sum_times_and_calls(
        (name, ns, calls)
        for kind, name, ns, calls in gpu.rows("kind", "name", "total_ns", "calls")
        if kind == "kernel" and ns is not None
    )
    return kernel_table(
        case_counters, {name: (total / traced, calls / traced) for name, (total, calls) in times.items()}
    )


def _loading_waits(loading: Mapping[str, Any]) -> tuple[float, ...]:
    """What each call of a loader took, by the statistics of two or three calls; empty: of more they do not tell."""
    columns = {2: ("min_ns", "max_ns"), 3: ("min_ns", "med_ns", "max_ns")}.get(loading.get("calls") or 0, ())
    return tuple(loading[column] for column in columns if loading.get(column) is not None)


def rows_of_runs(data: TableData, runs: set[str]) -> TableData:
    """The rows of these runs."""
    if isinstance(data, list):
        return [row for row in data if row.get("run") in runs]
    import pyarrow as pa
    import pyarrow.compute as pc

    return data.filter(pc.is_in(pc.cast(data["run"], pa.string()), pa.array(sorted(runs), pa.string())))


def runs_of_first_measured_pass(runs: Sequence[Any], rows_by_run: Mapping[Any, object]) -> list[Any]:
    """The runs with rows of a table, of the first pass that has any."""
    with_rows = [run for run in runs if run.id in rows_by_run]
    return [run for run in with_rows if run.pass_name == with_rows[0].pass_name]


def _columns_of_run(rows_of_runs: Mapping[Any, Sequence[Mapping[str, Any]]], run: str) -> Columns:
    if isinstance(rows_of_runs, RowsByRun) and run in rows_of_runs:
        return rows_of_runs.columns(run)
    return Columns.from_rows(rows_of_runs.get(run, ()))


def _rows_but_kernels(
    rows_of_runs: Mapping[Any, Sequence[Mapping[str, Any]]], run: str, columns: Columns
) -> Sequence[Mapping[str, Any]]:
    """The rows of phase_summary that tell of a process, its calls and its copies.

    Of kernels, which may be many, there are those that follow what is of another phase, process or GPU.
    """
    if not isinstance(rows_of_runs, RowsByRun) or run not in rows_of_runs:
        return rows_of_runs.get(run, ())
    kinds = [("", ""), *columns.rows("kind", "phase", "device", *PROCESS)]
    positions = [at for at, (before, kind) in enumerate(pairwise(kinds)) if kind != before or kind[0] != "kernel"]
    return rows_of_runs.rows_at(run, positions)


def largest_shares(rows: Columns, cover: float, runs: int = 1) -> tuple[Share, ...]:
    """Return the rows that together take `cover` of all rows' total_ns, largest first, with equal names merged.

    Args:
        rows: Columns `name` and `total_ns`, and where known `kind`, `short_name` and `calls`.
        cover: The share of the total time to cover, 0 to 1.
        runs: The number of runs that the rows are from; times and calls are divided by it.
    """
    merged: dict[tuple[str, str], list[Any]] = {}
    for kind, name, short_name, ns, calls in rows.rows("kind", "name", "short_name", "total_ns", "calls"):
        entry = merged.setdefault((kind or "", name), [short_name or name, 0.0, None])
        entry[1] += ns or 0
        if calls is not None:
            entry[2] = (entry[2] or 0) + calls
    total_ns = sum(entry[1] for entry in merged.values())
    result: list[Share] = []
    running = 0.0
    for (kind, name), (short, total, calls) in sorted(merged.items(), key=lambda item: (-item[1][1], item[0])):
        if not total_ns or running >= cover * total_ns:
            break
        running += total
        result.append(
            Share(
                name,
                short,
                kind,
                total / runs,
                None if calls is None else _count_per_run(calls, runs),
                100 * total / total_ns,
                100 * running / total_ns,
            )
        )
    return tuple(result)


def _count_per_run(count: float, runs: int) -> float:
    """The share of one run, a whole number where it is one."""
    return count // runs if count % runs == 0 else count / runs


def _copies_by_kind(gpu: Columns, runs: int) -> tuple[Copy, ...]:
    merged: dict[str, list[Any]] = {}
    copies = gpu.at([at for at, kind in enumerate(gpu["kind"]) if kind in {"memcpy", "memset", "um"}])
    for name, calls, total_ns, size, max_ns in copies.rows("name", "calls", "total_ns", "total_bytes", "max_ns"):
        entry = merged.setdefault(name, [0, 0.0, 0.0, True, None])
        entry[0] += calls or 0
        entry[1] += total_ns or 0
        entry[2] += size or 0
        entry[3] = entry[3] and size is not None
        entry[4] = max((ns for ns in (entry[4], max_ns) if ns is not None), default=None)
    return tuple(
        Copy(name, _count_per_run(calls, runs), ns / runs, size / runs if known else None,
             size / ns * 1e9 if known and ns else None, longest)
        for name, (calls, ns, size, known, longest) in sorted(merged.items(), key=lambda item: -item[1][1])
    )  # fmt: skip


PAGE_FAULTS: Final = "gpu_page_faults_ns"  # a fact
_GENERATIONS: Final = {
    2500: (1, 0.8),
    5000: (2, 0.8),
    8000: (3, 128 / 130),
    16000: (4, 128 / 130),
    32000: (5, 128 / 130),
}
"""PCIe generation, and data bits a bit on the lane, by MT/s."""


def _link_of_facts(facts: Iterable[Mapping[str, Any]]) -> Link | None:
    """The PCIe link of all GPUs of a case; None: not recorded, or they differ."""
    by_gpu: dict[tuple[Any, Any], dict[str, float]] = {}
    for row in facts:
        if row["key"] in {"gpu_linkRate", "gpu_linkWidth"} and row.get("value"):
            by_gpu.setdefault((row.get("host"), row.get("device")), {})[row["key"]] = row["value"]
    links = {tuple(sorted(of_gpu.items())) for of_gpu in by_gpu.values()}
    recorded = dict(links.pop()) if len(links) == 1 else {}
    generation, coding = _GENERATIONS.get(round(recorded.get("gpu_linkRate", 0.0)), (0, 0.0))
    width = recorded.get("gpu_linkWidth")
    if not generation or not width:
        return None
    return Link(f"PCIe {generation} x{width:.0f}", recorded["gpu_linkRate"] * 1e6 / 8 * coding * width)


def _traced_time(phases: Iterable[Mapping[str, Any]]) -> float:
    """How long the longest process of the mean run is traced, ns: all its phases together."""
    by_process = sum_by((process_key(row), row.get("duration_ns") or 0.0) for row in phases)
    longest: dict[Any, float] = {}
    for (run, *_), ns in by_process.items():
        longest[run] = max(longest.get(run, 0.0), ns)
    return sum(longest.values()) / len(longest) if longest else 0.0


def _start_time(phases: Iterable[Mapping[str, Any]]) -> float:
    """How long the mean run is traced before its first CUDA call, ns; 0 where that is not known."""
    starts: dict[Any, float] = {}
    for row in phases:
        start_ns = row.get("start_ns") or 0.0
        starts[row["run"]] = min(starts.get(row["run"], start_ns), start_ns)
    return max(0.0, sum(starts.values()) / len(starts)) if starts else 0.0


def _compiled_modules(nvtx_summary: Iterable[Mapping[str, Any]], runs: int) -> tuple[tuple[str, float, float], ...]:
    """What XLA compiled in the mean run, by its own ranges: module, how often, ns; those that took longest first."""
    modules: dict[str, list[float]] = {}
    for row in nvtx_summary:
        if (match := _COMPILED.match(row["name"] or "")) and row.get("total_ns"):
            module = modules.setdefault(match[1], [0.0, 0.0])
            module[0] += (row.get("calls") or 0) / runs
            module[1] += row["total_ns"] / runs
    return tuple(sorted(((name, calls, ns) for name, (calls, ns) in modules.items()), key=lambda module: -module[2]))


def _sm_count_of_facts(facts: Iterable[Mapping[str, Any]]) -> float | None:
    """The number of SMs that all GPUs of a case have; None: not recorded, or they differ."""
    counts = {float(row["value"]) for row in facts if row["key"] == "gpu_sm_count" and row.get("value")}
    return counts.pop() if len(counts) == 1 else None


def _function_shares(rows: Sequence[Mapping[str, Any]], cover: float, runs: int) -> tuple[Share, ...]:
    """The functions by their own time; by their share of the samples, without times, where a profile has none."""
    weights, timed = own_time_weights(rows)
    weighed = [
        {"name": _function_label_with_location(row), "short_name": row["name"], "kind": "function",
         "total_ns": weight * 1e9,
         "calls": row.get("calls")}
        for row, weight in zip(rows, weights, strict=True)
    ]  # fmt: skip
    listed, largest = _listed_part_of_samples(rows, weights), largest_shares(Columns.from_rows(weighed), cover, runs)
    shares = [replace(share, share_pct=listed * share.share_pct) for share in largest]
    return tuple(share if timed else replace(share, total_ns=None) for share in shares)


def _listed_part_of_samples(rows: Sequence[Mapping[str, Any]], weights: Sequence[float]) -> float:
    """What of the time the listed functions are, 0 to 1, where their shares are printed: a report may be cut."""
    printed = [row.get("self_pct") for row, weight in zip(rows, weights, strict=True) if weight]
    reports = len({(row.get("run"), row.get("report")) for row in rows})
    total = sum(share for share in printed if share is not None)
    return min(1.0, total / (100 * reports)) if printed and None not in printed and reports else 1.0


def _function_label_with_location(row: Mapping[str, Any]) -> str:
    """A function with where it is: its file and line, else its module."""
    line = f":{row['line']}" if row.get("line") else ""
    location = f"{row['file']}{line}" if row.get("file") else row.get("module")
    return f"{row['name']} ({location})" if location else str(row["name"])


def _kernel_names(parts: Iterable[Columns]) -> tuple[str, ...]:
    names = (name for columns in parts for name, kind in columns.rows("name", "kind") if kind == "kernel")
    return tuple(dict.fromkeys(names))


def rows_by_run(rows: Sequence[Mapping[str, Any]]) -> Mapping[Any, Sequence[Mapping[str, Any]]]:
    """The rows of each run."""
    return rows.by_run if isinstance(rows, StoredRows) else group_by(rows, lambda row: row.get("run"))
