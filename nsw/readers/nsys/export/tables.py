"""From the tables of an nsys export to the tables of nsw, whatever the export was read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from nsw.readers.invariants import LONGEST_NS
from nsw.readers.messages import find_known_message
from nsw.readers.model import MOST_SHOWN, PHASE_TABLES, Options, Problem, Report
from nsw.readers.nsys.export import nvtx, samples, summaries
from nsw.readers.nsys.export import source as export
from nsw.readers.nsys.export.cpu_samples import CPU_TABLES, cpu_record, cpu_tables
from nsw.readers.nsys.export.nvtx import Ranges, nvtx_gpu_summary
from nsw.readers.nsys.export.phases import HostCalls, Split, process_timelines, relate_calls, split_by_iterations
from nsw.readers.timeline.gaps import USE_TABLES, use_tables
from nsw.readers.timeline.iterations import is_autotuner, is_optimizer
from nsw.readers.timeline.phases import nccl_operation, phase_tables
from nsw.readers.timeline.statistics import with_shares
from nsw.resources import csv_rows
from nsw.tables import TABLES, TRACES, Row
from nsw.wording import singular_or_count

_DAMAGED = "export the report again, or copy the file again"

_EVENTS = frozenset(TABLES) - {"facts"}


def fill_report(report: Report, source: export.Source, options: Options) -> None:
    """Fill a report from an export, table by table; a damaged table is left out and reported.

    Args:
        report: The report, to which tables and problems are added.
        source: The export.
        options: The tables to make and what is known of the run.
    """
    results: dict[str, Any] = {"split": Split()}
    faults: dict[str, export.TableFault] = {}

    def run_makers(makers: Mapping[str, Callable[[export.Source], Any]]) -> None:
        """Make them two at a time, which takes a quarter less time: the drivers work outside Python's lock.

        What makers share is the source alone, whose docstring says why that is safe.
        """
        with ThreadPoolExecutor(max_workers=2) as pool:
            running = {name: pool.submit(maker, source) for name, maker in makers.items()}
        for name, future in running.items():
            try:
                results[name] = future.result()
            except export.TableFault as fault:
                faults[name] = fault

    run_makers(_first_makers(options))
    unrelated = _count_unrelated(source, results)
    run_makers({"host_calls": lambda source: _host_calls(source, results, options)})
    if results.get("calls") is not None and "gpu" in results:
        relate_calls(results["gpu"].collected, results["calls"])
    for collected in _related_tables(results):
        del collected.columns["correlationId"]  # all that it tells is which call launched what
    run_makers({"split": lambda _: _split_phases(results, faults, options)})
    run_makers(_second_makers(results, options))
    for collected in _related_tables(results):
        collected.columns.pop("call", None)
    for fault in {str(fault): fault for fault in faults.values()}.values():
        report.error(f"a table of the export cannot be read: {fault}", fix=_DAMAGED)
    report.tool_version = results.get("metadata", {}).get("EXPORT_PRODUCT_VERSION")
    report.problems += [*results.get("shapes", {}).values(), *results.get("diagnostics", [])]
    _add_warnings(report, results)
    _report_contradictions(report, source, unrelated)
    _assemble_tables(report, results, options)
    if options.tables is None and not faults and not report.tables.keys() & _EVENTS:
        report.error("the report contains no kernels, API calls, NVTX ranges or other events that nsw reads")


_PHASES = (*PHASE_TABLES, "gpu_metrics", *CPU_TABLES, *sorted(TRACES))  # what takes the phases to be known
_OF_PHASES = frozenset({export.KERNEL, export.MEMCPY, export.MEMSET, export.GRAPH, export.RUNTIME, export.NVTX})
_NVTX = ("nvtx_summary", "nvtx_gpu_summary", "communication")


def _first_makers(options: Options) -> dict[str, Callable[[export.Source], Any]]:
    """What must be made, the longest first."""
    makers: dict[str, tuple[Callable[[export.Source], Any], tuple[str, ...]]] = {
        "gpu": (summaries.gpu_tables, ("gpu_summary", "communication", "nvtx_gpu_summary", *_PHASES)),
        "nvtx": (lambda s: _nvtx_tables(s, options), (*_NVTX, *_PHASES)),
        "calls": (summaries.api_calls, ("api_summary", "nvtx_gpu_summary", *_PHASES)),
        "osrt_summary": (summaries.osrt_summary, ("osrt_summary",)),
        "openacc_summary": (summaries.openacc_summary, ("openacc_summary",)),
        "openmp_summary": (summaries.openmp_summary, ("openmp_summary",)),
        "mpi": (summaries.mpi_summary, ("communication",)),
        "um_summary": (summaries.um_summary, ("um_summary",)),
        "gpu_samples": (samples.gpu_samples, ("gpu_metrics", "gpu_metric_trace")),
        "cpu": (cpu_record, CPU_TABLES),
        "facts": (summaries.fact_rows, ("facts",)),
    }
    return {
        **{name: make for name, (make, tables) in makers.items() if any(_is_wanted(options, t) for t in tables)},
        "diagnostics": diagnostic_problems,
        "shapes": unknown_shapes,
        "metadata": summaries.metadata,
        "contexts": summaries.cuda_contexts,
        "gpus": samples.processes_of_gpus,
        "origin": summaries.report_origin,
    }


def _is_wanted(options: Options, table: str) -> bool:
    return options.wants(table, default=table not in TRACES)


def _host_calls(source: export.Source, results: Mapping[str, Any], options: Options) -> HostCalls | None:
    """What the hosts of the processes call, where the phases are wanted."""
    wanted = any(_is_wanted(options, t) for t in _PHASES) and results.get("gpu") is not None
    return summaries.host_calls(source, results.get("calls")) if wanted else None


def _split_phases(results: Mapping[str, Any], faults: Collection[str], options: Options) -> Split:
    """The phases; none where a table that they follow from cannot be read, which is an error of its own."""
    tables = results.get("gpu", summaries.GpuTables())
    if (
        not {"gpu", "calls", "nvtx", "shapes"}.isdisjoint(faults)
        or _OF_PHASES & results["shapes"].keys()
        or not any(_is_wanted(options, t) for t in _PHASES)
    ):
        return Split()
    return split_by_iterations(
        tables.collected,
        results.get("calls"),
        results.get("nvtx", _Nvtx()).ranges,
        nccl=tables.keys_where(nccl_operation),
        optimizers=tables.keys_where(is_optimizer),
        autotuners=tables.keys_where(is_autotuner),
        host=results.get("host_calls"),
        named_step=options.steps,
        warmup=options.warmup,
    )


def _second_makers(results: Mapping[str, Any], options: Options) -> dict[str, Callable[[export.Source], Any]]:
    """What is made of the tables that were scanned, by phase where there are phases."""
    tables, calls = results.get("gpu", summaries.GpuTables()), results.get("calls")
    ranges, divided = results.get("nvtx", _Nvtx()).ranges, results["split"]
    makers: dict[str, Callable[[export.Source], Any]] = {"work": lambda _: summaries.gpu_work(tables, divided)}
    if ranges is not None and options.wants("nvtx_gpu_summary"):
        makers["projected"] = lambda _: nvtx_gpu_summary(ranges, calls, tables.collected.values())
    if calls is not None:
        makers["api"] = lambda source: summaries.api_summary(source, calls, divided)

    def row_parts(table: str) -> Any:
        collected = calls if table == export.RUNTIME else tables.collected.get(table)
        column = "globalTid" if table == export.RUNTIME else "globalPid"
        return divided.row_parts(collected, column) if collected is not None and divided.phased else None

    for name, trace in (("gpu_trace", summaries.gpu_trace), ("api_trace", summaries.api_trace)):
        if _is_wanted(options, name):
            makers[name] = partial(trace, phases=row_parts)
    return makers


@dataclass(frozen=True, slots=True)
class _Nvtx:
    ranges: Ranges | None = None
    timed: list[Row] = field(default_factory=list)
    mpi: list[Row] = field(default_factory=list)
    unended: int = 0
    rank: int | None = None


def _nvtx_tables(source: export.Source, options: Options) -> _Nvtx:
    ranges = nvtx.nvtx_ranges(source)
    if ranges is None:
        return _Nvtx()
    timed = nvtx.nvtx_summary(ranges) if options.wants("nvtx_summary") else []
    return _Nvtx(ranges, timed, nvtx.mpi_calls(ranges), ranges.unended, ranges.rank)


def _assemble_tables(report: Report, results: Mapping[str, Any], options: Options) -> None:
    """Put what was made into the report's tables; the columns that all rows share are filled here."""
    work, gpu = results.get("work", summaries.GpuWork()), results.get("gpu", summaries.GpuTables())
    marked = results.get("nvtx", _Nvtx())
    mpi, _ = results.get("mpi", ([], 0))
    api, api_by_phase = results.get("api", ([], []))
    processes = process_timelines(
        results["split"], results.get("calls"), marked.ranges, results.get("contexts", {}), results.get("host_calls")
    )
    sampled = results.get("gpu_samples", {}), processes, results.get("gpus", {})
    tables: dict[str, list[Row]] = {
        "gpu_summary": work.summary,
        "api_summary": api,
        "osrt_summary": results.get("osrt_summary", []),
        "nvtx_summary": marked.timed,
        "nvtx_gpu_summary": results.get("projected", []),
        "nvtx_trace": nvtx.nvtx_trace(marked.ranges) if marked.ranges and _is_wanted(options, "nvtx_trace") else [],
        "um_summary": results.get("um_summary", []),
        "openacc_summary": results.get("openacc_summary", []),
        "openmp_summary": results.get("openmp_summary", []),
        "communication": with_shares(work.communication) + with_shares(mpi or marked.mpi),
        "facts": results.get("facts", []),
        **phase_tables(
            processes,
            work.by_phase + api_by_phase,
            every=_is_wanted(options, "iteration_trace"),
        ),
        "gpu_metrics": samples.gpu_metric_rows(
            *sampled, kernels=gpu.collected.get(export.KERNEL), names=gpu.names, split=results["split"],
            ranges=marked.ranges,
        ),
        **(
            cpu_tables(results["cpu"], processes, every=_is_wanted(options, "cpu_trace")) if "cpu" in results else {}
        ),
        **(use_tables(processes) if any(_is_wanted(options, name) for name in USE_TABLES) else {}),
    }  # fmt: skip
    origin = results.get("origin", summaries.Origin())
    shared = {"host": origin.host, "rank": marked.rank if origin.rank is None else origin.rank}
    for name, rows in tables.items():
        if rows and _is_wanted(options, name):
            report.tables[name] = [shared | row for row in rows]
    if _is_wanted(options, "gpu_metric_trace") and sampled[0]:
        report.tables["gpu_metric_trace"] = samples.gpu_metric_trace(*sampled)
    report.tables.update({name: results[name] for name in TRACES if name in results and len(results[name])})


def _related_tables(results: Mapping[str, Any]) -> list[export.Collected]:
    """The calls and the work of the GPUs, which share correlation ids."""
    tables = (results.get("calls"), *results.get("gpu", summaries.GpuTables()).collected.values())
    return [collected for collected in tables if collected is not None]


def _count_unrelated(source: export.Source, results: Mapping[str, Any]) -> int:
    """How many calls and operations have no correlation id where their table has such ids."""
    return sum(
        int((collected.columns["correlationId"] == export.NULL).sum())
        for collected in _related_tables(results)
        if export.has_columns(source, collected.table, "correlationId")
    )


def _report_contradictions(report: Report, source: export.Source, unrelated: int) -> None:
    """Report what was met in the export that cannot be."""
    for table, rows in sorted(source.contradictions.backwards.items()):
        long = {(start, end) for start, end in rows if end - start > LONGEST_NS}
        early = {(start, end) for start, end in rows - long if start <= end}
        for faulty, singular, plural in (
            (rows - long - early, "a row ends before it starts", "rows end before they start"),
            (long, "a row lasts more than ten years", "rows last more than ten years"),
            (early, "a row starts before time 0", "rows start before time 0"),
        ):
            if faulty:
                report.error(f"{table}: {singular_or_count(len(faulty), singular, plural)}: left out", fix=_DAMAGED)
    if nameless := source.contradictions.nameless:
        first = ", ".join(f"'string {i}'" for i in sorted(nameless)[:MOST_SHOWN])
        count = singular_or_count(len(nameless), "a name is", "names are")
        report.error(f"{count} not in StringIds: shown as {first}", fix=_DAMAGED)
    if unrelated:
        subject = singular_or_count(unrelated, "1 CUDA call or GPU operation has", "CUDA calls or GPU operations have")
        report.error(
            f"{subject} no correlation id: nvtx_gpu_summary and the phases lack what they launched", fix=_DAMAGED
        )


def _add_warnings(report: Report, results: Mapping[str, Any]) -> None:
    work = results.get("work", summaries.GpuWork())
    if work.graph_launches:
        share = "an unknown share" if work.graph_share is None else f"{work.graph_share:.1f} %"
        report.warn(
            f"{work.graph_launches} CUDA graph launches, {share} of the GPU time, are traced as whole graphs and"
            " not attributed to kernels",
            fix="profile with --cuda-graph-trace=node to see the kernels inside (slower)",
            is_note=work.graph_share is not None and work.graph_share < _LITTLE_PCT,
        )
    if work.decompressions:
        report.warn(f"{work.decompressions} decompressions by the GPU's own engine are not in gpu_summary")
    _, unended_calls = results.get("mpi", ([], 0))
    if unended_calls:
        report.warn(f"{unended_calls} MPI calls had not ended when the trace did; they are left out")
    if (unmarked := results["split"].missing_range) is not None:
        report.warn(
            f"there is no NVTX range {unmarked.requested}: the iterations are {unmarked.instead}",
            fix=f"ranges that repeat: {', '.join(unmarked.available) or 'none'}",
        )
    marked = results.get("nvtx", _Nvtx())
    if marked.unended:
        report.warn(f"{marked.unended} NVTX ranges never ended; nsw lets them end at the last NVTX event")


# `a|b`: one of the two; NAME*: of all tables whose names begin so
_LITTLE_PCT: Final = 10.0  # of GPU time
_NEEDED: Final = {
    row["table"]: row["columns"].split()
    for row in csv_rows("readers/data/needed_columns.csv")
    if row["database"] == "nsys"
}


def unknown_shapes(source: export.Source) -> dict[str, Problem]:
    """An error for each table that has rows and lacks a column that reading it takes."""
    problems: dict[str, Problem] = {}
    for table, columns in sorted(source.columns.items()):
        needed = next((needed for pattern, needed in _NEEDED.items() if fnmatchcase(table, pattern)), [])
        missing = [need for need in needed if columns.isdisjoint(need.split("|"))]
        if missing and columns and source.rows(table, sorted(columns)[:1], at_most=1):
            names = ", ".join(need.replace("|", " or ") for need in missing)
            problems[table] = Problem(
                "error",
                f"{table} has no column {names}: nsw does not know this shape of an export, and what needs it is"
                " not read",
                fix="export the report again (nsys export --type sqlite), and report the nsys version to nsw's authors",
            )
    return problems


# ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_LEVELS = {2: "nsys", 3: "nsys reported an error"}
_MAX_MESSAGES = 50  # different messages shown
_LONGEST = 1000  # characters of a message
_VARYING = re.compile(r"0x[0-9a-fA-F]+|'[^']*'|\d+")
# Default traces that most programs do not use, and for which nsw has no table.
_IDLE = re.compile(
    r"(?:No |Not all )?(?:OpenGL|Vulkan|DirectX|cuDNN|cuBLAS|NvMedia)\b.*"
    r"(?: events | might have not been started)"
)
# nsys says this of each process, such as a launcher or a compiler; it is true of the report where no process has any.
_EMPTY_TRACES = (
    (
        re.compile(r"No CUDA events collected|CUDA profiling might have not been started"),
        (export.KERNEL, export.RUNTIME),
    ),
    (re.compile(r"No NVTX events collected"), (export.NVTX,)),
)


_NOT_ALL = "Not all {} events might have been collected"
_NONE = re.compile(r"No (.+) events collected")


def diagnostic_problems(source: export.Source) -> list[Problem]:
    """Warnings and errors of DIAGNOSTIC_EVENT; those that differ only in numbers and quoted names are one.

    Of a process without events nsys says beside that not all of them might have been collected, which tells nothing.
    That it dropped events it says as mere information.
    """
    rows = source.rows("DIAGNOSTIC_EVENT", ["severity", "text", "globalPid"], at_most=100_000)
    untrue = [pattern for pattern, tables in _EMPTY_TRACES if any(_has_rows(source, table) for table in tables)]
    idle = {
        (_NOT_ALL.format(none[1]), process)
        for _, text, process in rows
        if isinstance(text, str) and process is not None and (none := _NONE.match(text))
    }
    seen: dict[tuple[str, str], list[str]] = {}
    for level, text, process in rows:
        if not isinstance(text, str) or _IDLE.match(text) or (text.rstrip("."), process) in idle:
            continue
        if level not in _LEVELS and not ((entry := find_known_message("nsys", text)) and entry.is_loss):
            continue
        if not any(pattern.search(text) for pattern in untrue):
            seen.setdefault((_LEVELS.get(level, "nsys"), _VARYING.sub("#", text)), []).append(text)
    problems = [_diagnostic_problem(reporter, texts) for (reporter, _), texts in seen.items()]
    if len(problems) > _MAX_MESSAGES:
        left = len(problems) - _MAX_MESSAGES
        problems[_MAX_MESSAGES:] = [Problem("warning", f"{left} more kinds of nsys diagnostics are not shown")]
    return problems


def _has_rows(source: export.Source, table: str) -> bool:
    try:
        return bool(source.rows(table, ["start"], at_most=1))
    except export.TableFault:
        return False  # named where the table itself is read


def _diagnostic_problem(reporter: str, texts: list[str]) -> Problem:
    text = " ".join(texts[0].split())[:_LONGEST].partition(" CUDA trace will be collected using libraries")[0]
    repeats = f" (and {len(texts) - 1} like it)" if len(texts) > 1 else ""
    entry = find_known_message("nsys", text)
    meaning = f" ({entry.explanation})" if entry else ""
    message = f"{reporter}: {text}{repeats}{meaning}"
    if entry is None:
        return Problem("warning", message)
    return Problem("warning", message, fix=entry.fix, is_loss=entry.is_loss, is_note=entry.is_note)
