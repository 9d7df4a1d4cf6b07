"""From the tables of an nsys export to the tables of nsw, whatever the export was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from nsw.readers.invariants import LONGEST_NS
from nsw.readers.model import MOST_SHOWN
from nsw.readers.nsys.export import calls, facts, gpu, nvtx, traces
from nsw.readers.nsys.export.diagnostics import diagnostics
from nsw.readers.nsys.export.needed_columns import unknown_shapes
from nsw.readers.nsys.export.nvtx_projection import nvtx_gpu_summary
from nsw.readers.nsys.export.phases import Split, phase_tables, split
from nsw.readers.nsys.export.source import GRAPH, KERNEL, MEMCPY, MEMSET, NULL, NVTX, RUNTIME, TableFault, has_columns
from nsw.readers.timeline.statistics import with_shares
from nsw.tables import TABLES, TRACES
from nsw.wording import one_or

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.readers.model import Options, Report
    from nsw.readers.nsys.export.nvtx import Ranges
    from nsw.readers.nsys.export.source import Source
    from nsw.tables import Row

_DAMAGED = "export the report again, or copy the file again"

_EVENTS = frozenset(TABLES) - {"facts"}


def fill(report: Report, source: Source, options: Options, *, again: Source | None = None) -> None:
    """Fill a report from an export, table by table: a damaged one is left out and named.

    Args:
        report: What is filled.
        source: The export.
        options: Which tables are wanted.
        again: The same export read another way, tried once for whatever fails.
    """
    outcomes = _run(_wanted(options), source, again)
    made = {name: o.value for name, o in outcomes.items() if o.fault is None}
    outcomes["split"] = _try(lambda _: _split(made, outcomes, options), source, None)
    made["split"] = outcomes["split"].value or Split()
    outcomes |= _run(_in_turn(made, options), source, again)
    made |= {name: o.value for name, o in outcomes.items() if o.fault is None}
    faults = {str(o.fault): o.fault for o in outcomes.values() if o.fault is not None}
    for fault in faults.values():
        report.error(f"a table of the export cannot be read: {fault}", fix=fault.fix or _DAMAGED)
    report.tool_version = made.get("metadata", {}).get("EXPORT_PRODUCT_VERSION")
    report.problems += [*made.get("shapes", {}).values(), *made.get("diagnostics", [])]
    _warn(report, made)
    _say_contradictions(report, (source, again) if again is not None else (source,), made)
    _assemble(report, made, options)
    if options.tables is None and not faults and not report.tables.keys() & _EVENTS:
        report.error("the report contains no kernels, API calls, NVTX ranges or other events that nsw reads")


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    fault: TableFault | None = None


_PHASES = ("phases", "phase_summary", "iterations", *sorted(TRACES))  # what takes the phases to be known
_OF_PHASES = frozenset({KERNEL, MEMCPY, MEMSET, GRAPH, RUNTIME, NVTX})
_NVTX = ("nvtx_summary", "nvtx_gpu_summary", "communication")


def _wanted(options: Options) -> dict[str, Callable[[Source], Any]]:
    """What must be made, the longest first."""
    makers: dict[str, tuple[Callable[[Source], Any], tuple[str, ...]]] = {
        "gpu": (gpu.gpu_tables, ("gpu_summary", "communication", "nvtx_gpu_summary", *_PHASES)),
        "nvtx": (lambda s: _nvtx(s, options), (*_NVTX, *_PHASES)),
        "calls": (calls.api_calls, ("api_summary", "nvtx_gpu_summary", *_PHASES)),
        "osrt_summary": (calls.osrt_summary, ("osrt_summary",)),
        "openacc_summary": (calls.openacc_summary, ("openacc_summary",)),
        "openmp_summary": (calls.openmp_summary, ("openmp_summary",)),
        "mpi": (calls.mpi_summary, ("communication",)),
        "um_summary": (gpu.um_summary, ("um_summary",)),
        "facts": (facts.facts, ("facts",)),
    }
    return {
        **{name: make for name, (make, tables) in makers.items() if any(_wants(options, t) for t in tables)},
        "diagnostics": diagnostics,
        "shapes": unknown_shapes,
        "metadata": facts.metadata,
        "origin": facts.origin,
    }


def _wants(options: Options, table: str) -> bool:
    return options.wants(table, default=table not in TRACES)


def _split(made: Mapping[str, Any], outcomes: Mapping[str, _Outcome], options: Options) -> Split:
    """The phases; none where a table that they follow from cannot be read, which is an error of its own."""
    tables = made.get("gpu", gpu.GpuTables())
    damaged = any(name in outcomes and outcomes[name].fault is not None for name in ("gpu", "calls", "nvtx", "shapes"))
    if damaged or _OF_PHASES & made["shapes"].keys() or not any(_wants(options, t) for t in _PHASES):
        return Split()
    return split(
        tables.found, made.get("calls"), made.get("nvtx", _Nvtx()).ranges, nccl=tables.nccl, named=options.steps,
        warmup=options.warmup,
    )  # fmt: skip


def _in_turn(made: Mapping[str, Any], options: Options) -> dict[str, Callable[[Source], Any]]:
    """What is made of the tables that were scanned, by phase where there are phases."""
    tables, called = made.get("gpu", gpu.GpuTables()), made.get("calls")
    ranges, divided = made.get("nvtx", _Nvtx()).ranges, made["split"]
    makers: dict[str, Callable[[Source], Any]] = {"work": lambda _: gpu.gpu_work(tables, divided)}
    if ranges is not None and options.wants("nvtx_gpu_summary"):
        makers["projected"] = lambda _: nvtx_gpu_summary(ranges, called, tables.found.values())
    if called is not None:
        makers["api"] = lambda source: calls.api_summary(source, called, divided)

    def parts(table: str) -> Any:
        found = called if table == RUNTIME else tables.found.get(table)
        column = "globalTid" if table == RUNTIME else "globalPid"
        return divided.parts(found, column) if found is not None and divided.phased else None

    for name, trace in (("gpu_trace", traces.gpu_trace), ("api_trace", traces.api_trace)):
        if _wants(options, name):
            makers[name] = partial(trace, phases=parts)
    return makers


def _run(makers: Mapping[str, Callable[[Source], Any]], source: Source, again: Source | None) -> dict[str, _Outcome]:
    """Make them two at a time: most of the work is the drivers' and runs outside Python's lock."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=2) as pool:
        running = {name: pool.submit(_try, make, source, again) for name, make in makers.items()}
        return {name: future.result() for name, future in running.items()}


def _try(make: Callable[[Source], Any], source: Source, again: Source | None) -> _Outcome:
    try:
        return _Outcome(make(source))
    except TableFault as fault:
        if again is None:
            return _Outcome(fault=fault)
    try:
        return _Outcome(make(again))
    except TableFault as fault:
        return _Outcome(fault=fault)


@dataclass(frozen=True, slots=True)
class _Nvtx:
    ranges: Ranges | None = None
    timed: list[Row] = field(default_factory=list)
    mpi: list[Row] = field(default_factory=list)
    unended: int = 0
    rank: int | None = None


def _nvtx(source: Source, options: Options) -> _Nvtx:
    ranges = nvtx.nvtx_ranges(source)
    if ranges is None:
        return _Nvtx()
    timed = nvtx.nvtx_summary(ranges) if options.wants("nvtx_summary") else []
    return _Nvtx(ranges, timed, nvtx.mpi_calls(ranges), ranges.unended, ranges.rank)


def _assemble(report: Report, made: Mapping[str, Any], options: Options) -> None:
    """Put what was made into the report's tables; the columns that all rows share are filled here."""
    work = made.get("work", gpu.GpuWork())
    marked = made.get("nvtx", _Nvtx())
    mpi, _ = made.get("mpi", ([], 0))
    api, api_by_phase = made.get("api", ([], []))
    tables: dict[str, list[Row]] = {
        "gpu_summary": work.summary,
        "api_summary": api,
        "osrt_summary": made.get("osrt_summary", []),
        "nvtx_summary": marked.timed,
        "nvtx_gpu_summary": made.get("projected", []),
        "nvtx_trace": nvtx.nvtx_trace(marked.ranges) if marked.ranges and _wants(options, "nvtx_trace") else [],
        "um_summary": made.get("um_summary", []),
        "openacc_summary": made.get("openacc_summary", []),
        "openmp_summary": made.get("openmp_summary", []),
        "communication": with_shares(work.communication) + with_shares(mpi or marked.mpi),
        "facts": made.get("facts", []),
        **phase_tables(
            made["split"], made.get("calls"), marked.ranges, work.by_phase, api_by_phase,
            trace=_wants(options, "iteration_trace"),
        ),
    }  # fmt: skip
    origin = made.get("origin", facts.Origin())
    shared = {"host": origin.host, "rank": marked.rank if origin.rank is None else origin.rank}
    for name, rows in tables.items():
        if rows and _wants(options, name):
            report.tables[name] = [shared | row for row in rows]
    report.tables.update({name: made[name] for name in TRACES if name in made and len(made[name])})


def _say_contradictions(report: Report, sources: tuple[Source, ...], made: Mapping[str, Any]) -> None:
    """Report what was met in the export that cannot be."""
    backwards: dict[str, set[tuple[int, int]]] = {}
    for source in sources:
        for table, rows in source.contradictions.backwards.items():
            backwards.setdefault(table, set()).update(rows)
    for table, rows in sorted(backwards.items()):
        long = {(start, end) for start, end in rows if end - start > LONGEST_NS}
        early = {(start, end) for start, end in rows - long if start <= end}
        for some, one, several in (
            (rows - long - early, "a row ends before it starts", "rows end before they start"),
            (long, "a row lasts more than ten years", "rows last more than ten years"),
            (early, "a row starts before time 0", "rows start before time 0"),
        ):
            if some:
                report.error(f"{table}: {one_or(len(some), one, several)}: left out", fix=_DAMAGED)
    if nameless := set().union(*(source.contradictions.nameless for source in sources)):
        first = ", ".join(f"'string {i}'" for i in sorted(nameless)[:MOST_SHOWN])
        count = one_or(len(nameless), "a name is", "names are")
        report.error(f"{count} not in StringIds: shown as {first}", fix=_DAMAGED)
    unrelated = sum(
        int((found.kept["correlationId"] == NULL).sum())
        for found in (made.get("calls"), *made.get("gpu", gpu.GpuTables()).found.values())
        if found is not None and has_columns(sources[0], found.table, "correlationId")
    )
    if unrelated:
        what = one_or(unrelated, "1 CUDA call or GPU operation has", "CUDA calls or GPU operations have")
        report.error(f"{what} no correlation id: nvtx_gpu_summary and the phases lack what they launched", fix=_DAMAGED)


def _warn(report: Report, made: Mapping[str, Any]) -> None:
    work = made.get("work", gpu.GpuWork())
    if work.graph_launches:
        share = "an unknown share" if work.graph_share is None else f"{work.graph_share:.1f} %"
        report.warn(
            f"{work.graph_launches} CUDA graph launches, {share} of the GPU time, are traced as whole graphs and"
            " not attributed to kernels",
            fix="profile with --cuda-graph-trace=node to see the kernels inside (slower)",
        )
    if work.decompressions:
        report.warn(f"{work.decompressions} decompressions by the GPU's own engine are not in gpu_summary")
    _, unended_calls = made.get("mpi", ([], 0))
    if unended_calls:
        report.warn(f"{unended_calls} MPI calls had not ended when the trace did; they are left out")
    if (unmarked := made["split"].unmarked) is not None:
        report.warn(
            f"there is no NVTX range {unmarked.named}: the iterations are {unmarked.instead}",
            fix=f"ranges that repeat: {', '.join(unmarked.there) or 'none'}",
        )
    marked = made.get("nvtx", _Nvtx())
    if marked.unended:
        report.warn(f"{marked.unended} NVTX ranges never ended; nsw lets them end at the last NVTX event")
