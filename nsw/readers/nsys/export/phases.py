"""The phases of each process of an nsys export, from what its tables hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from nsw.readers.nsys.export.nvtx import Lookup, Ranges
from nsw.readers.nsys.export.source import GRAPH, KERNEL, MEMCPY, MEMSET, NULL, Collected, TableFault, process_of
from nsw.readers.timeline import columns as arrays
from nsw.readers.timeline import iterations as loops
from nsw.readers.timeline import phases as timeline
from nsw.readers.timeline.calls import SYNCHRONISE, Calls
from nsw.readers.timeline.statistics import Groups, IntArray
from nsw.tables import Row

UNPHASED: Final = len(timeline.PHASES)  # the phase of a process without iterations
PARTS: Final = len(timeline.PHASES) + 1  # phases that a row can have, `UNPHASED` among them
_NO_STEPS: Final = frozenset({"NCCL", "MPI"})  # domains in which libraries mark their own calls
_CANDIDATES: Final = 64  # marks of most time
_MAX_NAMES: Final = 8  # names of ranges in a warning


@dataclass(frozen=True, slots=True)
class MissingRange:
    """A range that was named as the iteration and is not there: what the iterations are instead, what is there."""

    requested: str
    instead: str
    available: tuple[str, ...]


@dataclass(slots=True)
class Split:
    """The processes of a report, each with its phases where it has iterations."""

    processes: list[int | None] = field(default_factory=list)
    # places of those without GPU work, such as a launcher: all is set-up
    hosts: list[int] = field(default_factory=list)
    phased: dict[int, timeline.Phased] = field(default_factory=dict)  # by place in `processes`
    work: dict[int, timeline.Operations] = field(default_factory=dict)
    delays: dict[str, IntArray] = field(default_factory=dict)  # by table: ns from the launch to the start of each row
    layers: dict[int, str] = field(default_factory=dict)  # of those whose layers repeat: what these are called
    repetitions: dict[int, int] = field(default_factory=dict)  # of processes without phases: how often kernels repeat
    missing_range: MissingRange | None = None

    def row_owners(self, found: Collected) -> list[Row]:
        """Process and device that a row of a table may have; a table of calls has no devices."""
        return [
            {"pid": process} | ({} if device is None else {"device": None if device == NULL else device})
            for process in self.processes
            for device in found.distinct.get("deviceId", (None,))
        ]

    def row_parts(self, found: Collected, column: str) -> IntArray:
        """Place in `owners` * PARTS + phase of each row of a table; `column` tells its process or thread."""
        owners, devices = len(self.row_owners(found)), found.distinct.get("deviceId", ())
        indices, phases = self._places_and_phases(found, column)
        parts: IntArray = indices.astype(np.int16 if owners * PARTS < 2**15 else np.int64)
        if len(devices) > 1:
            parts *= len(devices)
            parts += found.codes["deviceId"]
        parts *= PARTS
        parts += phases
        return parts

    def _places_and_phases(self, collected: Collected, column: str) -> tuple[IntArray, Any]:
        """Place of the process and phase of each row of a table."""
        start, delay = collected.columns["start"], self.delays.get(collected.table)
        indices = _process_indices(self, collected, column)
        codes = np.full(len(start), UNPHASED, np.int8)
        if len(self.processes) > 1:
            codes[np.isin(indices, self.hosts)] = timeline.SETUP
        for rows in arrays.row_slices(len(start)):
            times = start[rows] if delay is None else start[rows] - delay[rows]
            for index, phases in self.phased.items():
                if len(self.processes) == 1:
                    codes[rows] = phases.phase_codes(times)
                else:
                    chosen = indices[rows] == index
                    codes[rows][chosen] = phases.phase_codes(times[chosen])
        return indices, codes


def phase_name(part: int) -> str | None:
    """The word for the phase of a part; None where its process has no iterations."""
    return (*timeline.PHASES, None)[part % PARTS]


def phase_groups(collected: Collected, split: Split, column: str, sizes: IntArray | None = None) -> Groups:
    """Group the durations of a table by key, process and phase; by key alone where no process has phases.

    Args:
        collected: The rows of the table.
        split: The processes and their phases.
        column: The column that holds the process or thread: `globalPid` or `globalTid`.
        sizes: Bytes of each row, summed per group; None: the rows have no sizes.

    Raises:
        TableFault: The durations are too large to be added.
    """
    parts = split.row_parts(collected, column) if split.phased else None
    try:
        return Groups.from_durations(
            collected.keys, collected.durations, parts, len(split.row_owners(collected)) * PARTS, sizes
        )
    except OverflowError as fault:
        raise TableFault(collected.table, str(fault)) from fault


def split_by_iterations(
    gpu: Mapping[str, Collected],
    calls: Collected | None,
    ranges: Ranges | None,
    *,
    nccl: Collection[int] = (),
    optimizers: Collection[int] = (),
    autotuners: Collection[int] = (),
    host: HostCalls | None = None,
    named_step: str | None = None,
    warmup: int | None = None,
) -> Split:
    """Find the iterations of each process and split its timeline by them.

    Args:
        gpu: The tables of GPU work by name, with start, correlationId and globalPid.
        calls: The CUDA API calls, with start, correlationId and globalTid.
        ranges: The NVTX ranges.
        nccl: The keys of NCCL's kernels.
        optimizers: The keys of optimizers' kernels.
        autotuners: The keys of an autotuner's kernels.
        host: What the hosts of the processes call.
        named_step: The NVTX range that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
    """
    processes, hosts = _processes_and_hosts(gpu, calls)
    result = Split(processes, hosts)
    for table, collected in gpu.items():
        result.delays[table] = _launch_delays(result, collected, calls)
    marks = _iteration_range_candidates(result, ranges, calls)
    missing = named_step
    for index in range(len(result.processes)):
        work = result.work[index] = _process_work(result, gpu, index, nccl)
        of_marks = len(work.start) and index in marks
        launched_work = loops.LaunchedWork(work.launches(), work.duration) if of_marks else None
        iterations = loops.iterations_by_marks(marks.get(index, []), launched_work, named_step=named_step)
        missing = missing if iterations is None else None
        if iterations is None and named_step is not None:
            iterations = loops.iterations_by_marks(marks.get(index, []), launched_work)
        del launched_work  # 12 bytes an operation
        has_kernels = KERNEL in gpu or GRAPH in gpu
        if iterations is None and has_kernels:
            kernels = loops.without_trials(_process_kernels(result, gpu, index, nccl), autotuners)
            separators = _wait_and_copy_times(result, work, index, host)
            graphs = np.flatnonzero(kernels.names < 0)
            if 2 * kernels.durations[graphs].sum() > kernels.durations.sum():  # other kernels are of its start
                kernels = kernels.select(graphs)
            by_kernels = partial(loops.iterations_by_kernels, operations=work.launches)
            iterations = by_kernels(kernels, *separators, optimizers)
            if iterations is None and len(graphs := _graphs_behind_start(kernels)):
                iterations = by_kernels(kernels.select(graphs), *separators, optimizers)
            del kernels, graphs, separators  # before the phases are split
            if layers := _repeated_layers(result, index, ranges, iterations):
                result.layers[index], iterations = layers, None
        if iterations is not None:
            result.phased[index] = timeline.split_phases(work, iterations, warmup)
        elif has_kernels:
            result.repetitions[index] = loops.count_rare_repetitions(_process_kernels(result, gpu, index))
    together = (
        timeline.shared_warmup(list(result.phased.values())) if warmup is None and len(result.phased) > 1 else None
    )
    if together is not None:
        result.phased = {
            p: phases
            if phases.warmup == together
            else timeline.split_phases(result.work[p], phases.iterations, together)
            for p, phases in result.phased.items()
        }
    if missing is not None:
        repeated = {m.name for process_marks in marks.values() for m in process_marks if len(m.starts) > 1}
        result.missing_range = MissingRange(missing, _describe_iterations(result), tuple(sorted(repeated)[:_MAX_NAMES]))
    return result


def _describe_iterations(split: Split) -> str:
    origins = {(p.iterations.found_by, p.iterations.name) for p in split.phased.values()}
    words = [f"those of range {name}" if by == "nvtx" else "found by the sequence of kernels" for by, name in origins]
    return " and ".join(sorted(words)) or "not known"


def _processes_and_hosts(gpu: Mapping[str, Collected], calls: Collected | None) -> tuple[list[int | None], list[int]]:
    """The processes, those with GPU work first, and the indices of the others; None where the export does not tell."""
    working = _distinct_processes(v for collected in gpu.values() for v in collected.distinct["globalPid"])
    calling = _distinct_processes(calls.distinct["globalTid"] if calls is not None else ())
    if not working or None in working:  # who calls may be who works
        return working or calling or [None], []
    processes = list(dict.fromkeys([*working, *calling]))
    return processes, list(range(len(working), len(processes)))


def _distinct_processes(values: Iterable[int]) -> list[int | None]:
    return list(dict.fromkeys(None if v == NULL else process_of(v) for v in values))


def _process_indices(split: Split, collected: Collected, column: str) -> IntArray:
    """The index of each row's process; of an unknown one the first."""
    indices = {p: i for i, p in enumerate(split.processes)}
    of_code = [indices.get(None if v == NULL else process_of(v), 0) for v in collected.distinct[column]]
    return arrays.column_of_codes(of_code, collected.codes[column])


def relate_calls(gpu: Mapping[str, Collected], calls: Collected) -> None:
    """Add column `call` to the tables of GPU work: the row of the call that launched an operation; -1: none is known.

    It is the first call with the operation's correlation id in its process.
    """
    split = Split(*_processes_and_hosts(gpu, calls))
    for collected in gpu.values():
        collected.columns["call"] = np.full(len(collected.keys), -1, np.int32)
    for index in range(len(split.processes)):
        rows = _process_rows(split, calls, index, "globalTid")
        row_of_key = Lookup(calls.columns["correlationId"][rows])
        for collected in gpu.values():
            operations = _process_rows(split, collected, index)
            row = row_of_key.find(collected.columns["correlationId"][operations])
            is_all = isinstance(rows, slice) or not len(rows)
            collected.columns["call"][operations] = row if is_all else np.where(row < 0, -1, rows[row])


def _launch_delays(split: Split, collected: Collected, calls: Collected | None) -> IntArray:
    """How long before its start the host launched each operation, ns; 0 where no call is known."""
    start, call = collected.columns["start"], collected.columns.get("call")
    if calls is None or call is None:
        return arrays.constant_column(np.int8(0), len(start))
    launches, unknown = calls.columns["start"], call < 0
    delay = arrays.GrowingColumn.of_parts(
        np.where(unknown[rows], 0, start[rows] - launches[call[rows]]) for rows in arrays.many_rows(len(start))
    )
    if unknown.any():
        launched = start - delay
        for index in range(len(split.processes)):
            if len(launches[_process_rows(split, calls, index, "globalTid")]):
                rows = _process_rows(split, collected, index)
                launched[rows] = timeline.assumed_launches(launched[rows], start[rows], unknown[rows])
        delay = arrays.narrowest_copy(start - launched)
    return delay


def _process_work(split: Split, gpu: Mapping[str, Collected], index: int, nccl: Collection[int]) -> timeline.Operations:
    columns: list[list[IntArray]] = [[np.empty(0, np.int64)] for _ in timeline.Operations.__slots__]
    for table, collected in gpu.items():
        rows = _process_rows(split, collected, index)
        start = collected.columns["start"][rows]
        categories = arrays.constant_column(
            np.int8(timeline.MEMORY if table in (MEMCPY, MEMSET) else timeline.KERNEL), len(start)
        )
        if table == KERNEL and nccl:
            categories = categories.copy()
            categories[np.isin(collected.keys[rows], list(nccl))] = timeline.COMMUNICATION
        described = collected.durations, split.delays[table], _devices(collected), *_operation_details(collected)
        values = [start, *(arrays.select_rows(column, rows, len(start)) for column in described)]
        values.insert(4, categories)
        for column, part in zip(columns, values, strict=True):
            column.append(part)
    start, *rest = (c[1:] if len(c) > 1 else c for c in columns)
    work = timeline.Operations(_joined(start, np.int64), *map(_joined, rest))
    at = 0
    for table, collected in gpu.items() if len(split.processes) == 1 else ():  # no column is in memory twice
        rows = slice(at, at := at + len(collected.keys))
        collected.columns["start"], collected.durations, split.delays[table] = (
            work.start[rows], work.duration[rows], work.delay[rows],
        )  # fmt: skip
    return work


def _joined(parts: list[IntArray], narrowest: type[np.signedinteger[Any]] = np.int8) -> IntArray:
    """The parts of a column as one; a single one is not copied."""
    return parts[0] if len(parts) == 1 else arrays.GrowingColumn.of_parts(parts, narrowest)


def _devices(collected: Collected) -> IntArray:
    """The device of each row."""
    return arrays.column_of_codes(collected.distinct["deviceId"], collected.codes["deviceId"])


_WAYS: Final = {1: timeline.TO_GPU, 2: timeline.FROM_GPU, 8: timeline.ON_GPU}  # by copyKind
_UNIFIED: Final = {11: timeline.TO_GPU, 12: timeline.FROM_GPU}


def _operation_details(collected: Collected) -> tuple[IntArray, ...]:
    """Size, way, memory, stream, blocks and kernel of each row of a table; -1 where it has none."""
    columns = collected.columns
    absent = arrays.constant_column(np.int8(-1), len(collected.keys))
    way = memory = absent
    kernel = collected.keys if collected.table == KERNEL else absent
    if collected.table == MEMCPY:
        way, memory = absent.copy(), absent.copy()
        for kind, code in (*_WAYS.items(), *_UNIFIED.items()):
            way[collected.keys == kind] = code
        for code, column in ((timeline.TO_GPU, "srcKind"), (timeline.FROM_GPU, "dstKind")):
            if column in columns:
                copied = way == code
                memory[copied & (columns[column] == 0)] = timeline.MEMORIES.index("pageable")
                memory[copied & (columns[column] == 1)] = timeline.MEMORIES.index("pinned")
        memory[np.isin(collected.keys, list(_UNIFIED))] = timeline.MEMORIES.index("managed")
    stream, blocks = columns.get("streamId", absent), columns.get("blocks", absent)
    return columns.get("bytes", absent), way, memory, stream, blocks, kernel


def _process_rows(split: Split, collected: Collected, index: int, column: str = "globalPid") -> Any:
    """What picks the rows of a process."""
    several = len(split.processes) > 1
    return np.flatnonzero(_process_indices(split, collected, column) == index) if several else slice(None)


def _iteration_range_candidates(
    split: Split, ranges: Ranges | None, calls: Collected | None
) -> dict[int, list[loops.Marks]]:
    """The ranges that may be iterations: by index of the process, those of most time first."""
    if ranges is None:
        return {}
    names: dict[str, int] = {}
    of_label = [
        -1
        if style == "mark" or name is None or domain in _NO_STEPS
        else names.setdefault(loops.name_without_numbers(name), len(names))
        for style, domain, name in ranges.labels
    ]
    number = np.array(of_label, np.int64)[ranges.label]
    threads, thread = np.unique(ranges.thread, return_inverse=True)
    key = np.where(number < 0, -1, thread * max(len(names), 1) + number)
    usable = np.flatnonzero(key >= 0)
    if not len(usable):
        return {}
    keys, inverse = np.unique(key[usable], return_inverse=True)
    total_durations = np.bincount(inverse, weights=(ranges.end - ranges.start)[usable])
    indices = {p: i for i, p in enumerate(split.processes)}
    callers = set() if calls is None else set(calls.distinct["globalTid"])
    texts = list(names)
    by_process: dict[int, list[loops.Marks]] = {}
    for at in np.argsort(-total_durations, kind="stable")[: _CANDIDATES * len(indices)].tolist():
        caller, name = divmod(int(keys[at]), len(names))
        owner = int(threads[caller])
        index = indices.get(None if owner == NULL else process_of(owner), 0 if len(indices) == 1 else None)
        if index is not None:
            rows = usable[inverse == at]
            rows = rows[np.argsort(ranges.start[rows], kind="stable")]
            label = ranges.label[rows]
            common_name = ranges.labels[int(label[0])][2] if (label == label[0]).all() else None
            marks = loops.Marks(
                common_name or texts[name], ranges.start[rows], ranges.end[rows], not callers or owner in callers
            )
            by_process.setdefault(index, []).append(marks)
    return by_process


def _repeated_layers(split: Split, index: int, ranges: Ranges | None, iterations: loops.Iterations | None) -> str:
    """The layers of a network that repeat in a process, in place of iterations; empty: none do."""
    if ranges is None or iterations is None:
        return ""
    codes: dict[tuple[str, str], int] = {}
    of_label = [
        -1
        if style == "mark" or name is None or (layer := loops.numbered_layer(name)) is None
        else codes.setdefault(layer, len(codes))
        for style, _, name in ranges.labels
    ]
    layers = np.array(of_label, np.int64)[ranges.label]
    of_process = (ranges.thread >> 24) & 0xFFFFFF == split.processes[index] if len(split.processes) > 1 else True
    rows = np.flatnonzero((layers >= 0) & of_process)
    if not loops.are_layers(iterations, ranges.start[rows], layers[rows]):
        return ""
    names = [name for name, _ in codes]
    return f"{max(names, key=names.count)}.N"


def _wait_and_copy_times(
    made: Split, work: timeline.Operations, index: int, host: HostCalls | None
) -> tuple[list[IntArray], IntArray]:
    """When a process waits for its GPU and copies from it; when it copies to it."""
    calls = _calls_of(made.processes[index], host)
    waits = [] if calls is None else [calls.start[calls.kind == SYNCHRONISE]]
    way = work.detail("way")
    return [*waits, work.launches(way == timeline.FROM_GPU)], work.launches(way == timeline.TO_GPU)


def _process_kernels(
    split: Split, gpu: Mapping[str, Collected], index: int, nccl: Collection[int] = ()
) -> loops.Kernels:
    """A process's kernels and whole graphs, without NCCL's kernels: they come where a bucket is full."""
    parts = [_kernels_of_table(split, gpu[table], index, nccl) for table in (KERNEL, GRAPH) if table in gpu]
    if len(parts) == 1:
        return loops.Kernels(*parts[0])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[1], kind="stable")
    return loops.Kernels(*(column[order] for column in columns))


def _graphs_behind_start(kernels: loops.Kernels) -> IntArray:
    """The graphs, where from the middle one on they are most of the work: other kernels are of autotuning or set-up."""
    graphs = np.flatnonzero(kernels.names < 0)
    if len(graphs):
        launched = kernels.launches()
        behind = launched >= np.median(launched[graphs])
        if 2 * kernels.durations[behind & (kernels.names < 0)].sum() <= kernels.durations[behind].sum():
            return graphs[:0]
    return graphs


def _kernels_of_table(
    split: Split, collected: Collected, index: int, nccl: Collection[int]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Key, start, duration, delay and GPU of each; a graph's key is below zero."""
    rows = _process_rows(split, collected, index)
    keys = collected.keys[rows] if collected.table == KERNEL else -1 - collected.keys[rows].astype(np.int64)
    is_computing = ~np.isin(keys, list(nccl)) if nccl else np.ones(len(keys), bool)
    takes_all = is_computing.all() or 2 * int(is_computing.sum()) <= len(is_computing)
    chosen = slice(None) if takes_all else np.flatnonzero(is_computing)
    return (
        keys[chosen], collected.columns["start"][rows][chosen], collected.durations[rows][chosen],
        split.delays[collected.table][rows][chosen], _devices(collected)[rows][chosen],
    )  # fmt: skip


def kernels_of(
    made: Split, kernels: Collected, process: int | None, device: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Key, start and end (ns) of the kernels of a process on a GPU.

    Args:
        made: The processes.
        kernels: The kernels of the report.
        process: The process.
        device: The GPU, as the process counts them.
    """
    rows = _process_rows(made, kernels, made.processes.index(process))
    mine = np.array(kernels.distinct["deviceId"])[kernels.codes["deviceId"][rows]] == device
    start = kernels.columns["start"][rows][mine].astype(np.int64)
    return kernels.keys[rows][mine], start, start + kernels.durations[rows][mine]


def process_spans(ranges: Ranges, process: int | None) -> Any:
    """Which ranges have a length and are of a process; of one that is not known, all."""
    of_process = (ranges.thread >> 24) & 0xFFFFFF == process if process is not None else True
    return (ranges.end > ranges.start) & of_process


def process_timelines(
    made: Split,
    calls: Collected | None,
    ranges: Ranges | None,
    contexts: Mapping[int | None, Sequence[int]],
    host: HostCalls | None = None,
) -> list[timeline.Timeline]:
    """Those of the processes that have phases or GPU work.

    Args:
        made: The processes.
        calls: The CUDA API calls.
        ranges: The NVTX ranges.
        contexts: By process the devices on which it has a CUDA context.
        host: What their hosts call.
    """
    spans = {index: _process_span(made, index, work, calls, ranges) for index, work in made.work.items()}
    return [
        timeline.Timeline(
            {"pid": made.processes[index]}, work, span, made.phased.get(index), made.repetitions.get(index, 0),
            contexts.get(made.processes[index], ()), _calls_of(made.processes[index], host), made.layers.get(index, ""),
        )
        for index, work in made.work.items()
        if (span := spans[index]) is not None and (index in made.phased or len(work.start))
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Calls of all processes, None where CUDA's were not recorded, and the process of each."""

    calls: Calls | None
    processes: IntArray
    locking: IntArray  # threads that wait for a lock with a time limit


def _calls_of(process: int | None, host: HostCalls | None) -> Calls | None:
    """What the host of a process calls."""
    if host is None or host.calls is None or process is None:
        return host.calls if host else None
    mine = host.processes == process
    locking = int(((host.locking >> 24) & 0xFFFFFF == process).sum())
    calls, rows = host.calls, slice(None) if mine.all() else mine
    return Calls(calls.start[rows], calls.duration[rows], calls.kind[rows], locking) if mine.any() else None


def _process_span(
    split: Split, index: int, work: timeline.Operations, calls: Collected | None, ranges: Ranges | None
) -> tuple[int, int] | None:
    """The first and the last time of a process in the report."""
    times: list[int] = []
    if len(work.start):
        times += [int(work.start.min()), work.last_end()]
    rows = slice(0) if calls is None else _process_rows(split, calls, index, "globalTid")
    if calls is not None and len(start := calls.columns["start"][rows]):
        times += [int(start.min()), int((start + calls.durations[rows]).max())]
    if ranges is not None and (selected := (ranges.thread >> 24) & 0xFFFFFF == split.processes[index]).any():
        times += [int(ranges.start[selected].min()), int(ranges.end[selected].max())]
    return (min(times), max(times)) if times else None
