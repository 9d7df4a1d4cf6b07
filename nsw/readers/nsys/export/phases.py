"""The phases of each process of an nsys export, from what its tables hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.nsys.export.nvtx import Lookup, Ranges
from nsw.readers.nsys.export.source import KERNEL, MEMCPY, MEMSET, NULL, TableFault, process_of
from nsw.readers.timeline.iterations import Kernels, Marks, few_repetitions, generic, of_kernels, of_marks
from nsw.readers.timeline.phases import (
    COMMUNICATION,
    MEMORY,
    PHASES,
    SETUP,
    Operations,
    Phased,
    Timeline,
    lock_step,
    phased,
)
from nsw.readers.timeline.phases import KERNEL as COMPUTE
from nsw.readers.timeline.statistics import Groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from nsw.readers.nsys.export.collect import Collected
    from nsw.readers.timeline.columns import IntArray
    from nsw.tables import Row

ALL: Final = len(PHASES)  # the phase of a process without iterations
PARTS: Final = len(PHASES) + 1  # phases that a row can have, `ALL` among them
_NO_STEPS: Final = frozenset({"NCCL", "MPI"})  # domains in which libraries mark their own calls
_CANDIDATES: Final = 64  # marks of most time
_TOLD: Final = 8  # names of ranges in a warning


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A range that was named as the iteration and is not there: what the iterations are instead, what is there."""

    named: str
    instead: str
    there: tuple[str, ...]


@dataclass(slots=True)
class Split:
    """The processes of a report, each with its phases where it has iterations."""

    processes: list[int | None] = field(default_factory=list)
    hosts: list[int] = field(
        default_factory=list
    )  # places of those without GPU work, such as a launcher: all is set-up
    phased: dict[int, Phased] = field(default_factory=dict)  # by place in `processes`
    work: dict[int, Operations] = field(default_factory=dict)
    launched: dict[str, IntArray] = field(default_factory=dict)  # by table: ns of the host's clock, one a row
    repetitions: dict[int, int] = field(default_factory=dict)  # of processes without phases: how often kernels repeat
    unmarked: Unmarked | None = None

    def owners(self, found: Collected) -> list[Row]:
        """Process and device that a row of a table may have; a table of calls has no devices."""
        return [
            {"pid": process} | ({} if device is None else {"device": None if device == NULL else device})
            for process in self.processes
            for device in found.distinct.get("deviceId", (None,))
        ]

    def parts(self, found: Collected, column: str) -> IntArray:
        """Place in `owners` * PARTS + phase of each row of a table; `column` tells its process or thread."""
        codes = self._phases(found, column)
        devices = found.distinct.get("deviceId", ())
        if len(devices) < 2:
            return codes
        places, phases = np.divmod(codes.astype(np.int64), PARTS)
        parts: IntArray = (places * len(devices) + found.codes["deviceId"]) * PARTS + phases
        return parts

    def _phases(self, found: Collected, column: str) -> IntArray:
        """Place of the process * PARTS + phase of each row of a table."""
        times = self.launched.get(found.table, found.kept["start"])
        if len(self.processes) == 1:
            return self.phased[0].phase(times)
        places = _places(self, found, column)
        codes: IntArray = np.full(len(times), ALL, np.int64)
        codes[np.isin(places, self.hosts)] = SETUP
        for place, one in self.phased.items():
            mine = np.flatnonzero(places == place)
            codes[mine] = one.phase(times[mine])
        codes += places * PARTS
        return codes


def phase_name(part: int) -> str | None:
    """The word for the phase of a part; None where its process has no iterations."""
    return (*PHASES, None)[part % PARTS]


def phase_groups(found: Collected, split: Split, column: str, sizes: IntArray | None = None) -> Groups:
    """The durations of a table by key, process and phase; only by key where no process has phases.

    Raises:
        TableFault: They are no times.
    """
    parts = split.parts(found, column) if split.phased else None
    try:
        return Groups.of(found.keys, found.durations, parts, len(split.owners(found)) * PARTS, sizes)
    except OverflowError as fault:
        raise TableFault(found.table, str(fault)) from fault


def split(
    gpu: Mapping[str, Collected],
    calls: Collected | None,
    ranges: Ranges | None,
    *,
    nccl: Collection[int] = (),
    named: str | None = None,
    warmup: int | None = None,
) -> Split:
    """Find the iterations of each process and split its timeline by them.

    Args:
        gpu: The tables of GPU work by name, with start, correlationId and globalPid.
        calls: The CUDA API calls, with start, correlationId and globalTid.
        ranges: The NVTX ranges.
        nccl: The keys of NCCL's kernels.
        named: The NVTX range that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
    """
    processes, hosts = _processes(gpu, calls)
    made = Split(processes, hosts)
    for table, found in gpu.items():
        made.launched[table] = _launched(made, found, calls)
    marks = _marks(made, ranges, calls)
    unmarked = named
    for place in range(len(made.processes)):
        work = made.work[place] = _work(made, gpu, place, nccl)
        iterations = of_marks(marks.get(place, []), named=named)
        unmarked = unmarked if iterations is None else None
        if iterations is None and named is not None:
            iterations = of_marks(marks.get(place, []))
        if iterations is None and KERNEL in gpu:
            iterations = of_kernels(_kernels(made, gpu[KERNEL], place))
        if iterations is not None:
            made.phased[place] = phased(work, iterations, warmup)
        elif KERNEL in gpu:
            made.repetitions[place] = few_repetitions(_kernels(made, gpu[KERNEL], place))
    together = lock_step(list(made.phased.values())) if warmup is None and len(made.phased) > 1 else None
    if together is not None:
        made.phased = {
            p: one if one.warmup == together else phased(made.work[p], one.iterations, together)
            for p, one in made.phased.items()
        }
    if unmarked is not None:
        repeated = {m.name for found in marks.values() for m in found if len(m.starts) > 1}
        made.unmarked = Unmarked(unmarked, _told(made), tuple(sorted(repeated)[:_TOLD]))
    return made


def _told(made: Split) -> str:
    found = {(p.iterations.found_by, p.iterations.name) for p in made.phased.values()}
    words = [f"those of range {name}" if by == "nvtx" else "found by the sequence of kernels" for by, name in found]
    return " and ".join(sorted(words)) or "not known"


def _processes(gpu: Mapping[str, Collected], calls: Collected | None) -> tuple[list[int | None], list[int]]:
    """The processes, those with GPU work first, and the places of the others; None where the export does not tell."""
    working = _owners(v for found in gpu.values() for v in found.distinct["globalPid"])
    calling = _owners(calls.distinct["globalTid"] if calls is not None else ())
    if not working or None in working:  # who calls may be who works
        return working or calling or [None], []
    processes = list(dict.fromkeys([*working, *calling]))
    return processes, list(range(len(working), len(processes)))


def _owners(values: Iterable[int]) -> list[int | None]:
    return list(dict.fromkeys(None if v == NULL else process_of(v) for v in values))


def _places(made: Split, found: Collected, column: str) -> IntArray:
    """The place of each row's process; of an unknown one the first."""
    known = {p: i for i, p in enumerate(made.processes)}
    of_code = [known.get(None if v == NULL else process_of(v), 0) for v in found.distinct[column]]
    if len(set(of_code)) == 1:
        return np.full(len(found.keys), of_code[0])
    return np.array(of_code)[found.codes[column]]


def _launched(made: Split, found: Collected, calls: Collected | None) -> IntArray:
    """When the host launched each operation; when it started where no call is known."""
    starts, correlation = found.kept["start"].astype(np.int64), found.kept["correlationId"]
    if calls is None:
        return starts
    several = len(made.processes) > 1
    mine, theirs = _places(made, found, "globalPid"), _places(made, calls, "globalTid")
    for place in range(len(made.processes)):
        rows = np.flatnonzero(theirs == place) if several else slice(None)
        keys = calls.kept["correlationId"][rows]
        if not len(keys):
            continue
        wanted = np.flatnonzero(mine == place) if several else slice(None)
        at = Lookup(keys, np.arange(len(keys), dtype=np.int32)).of(correlation[wanted])
        times = calls.kept["start"][rows][at].astype(np.int64, copy=False)
        unknown = np.flatnonzero(at < 0)
        times[unknown] = starts[wanted][unknown]
        starts[wanted] = times
    return starts


def _work(made: Split, gpu: Mapping[str, Collected], place: int, nccl: Collection[int]) -> Operations:
    columns: list[list[IntArray]] = [[np.empty(0, np.int64)] for _ in range(5)]
    for table, found in gpu.items():
        mine = _rows(made, found, place)
        start = found.kept["start"][mine]
        what = np.full(len(start), MEMORY if table in (MEMCPY, MEMSET) else COMPUTE, np.int8)
        if table == KERNEL and nccl:
            what[np.isin(found.keys[mine], list(nccl))] = COMMUNICATION
        device = _small(found.distinct["deviceId"])[found.codes["deviceId"][mine]]
        values = (start, start + found.durations[mine], made.launched[table][mine], device, what)
        for column, part in zip(columns, values, strict=True):
            column.append(part)
    return Operations(*(np.concatenate(c[1:]) if len(c) > 2 else c[-1] for c in columns))


def _small(values: list[int]) -> np.ndarray[Any, np.dtype[Any]]:
    fits = all(-(2**15) <= v < 2**15 for v in values)
    return np.array(values).astype(np.int16 if fits else np.int64, copy=False)


def _rows(made: Split, found: Collected, place: int) -> Any:
    """What picks the rows of a process."""
    several = len(made.processes) > 1
    return np.flatnonzero(_places(made, found, "globalPid") == place) if several else slice(None)


def _marks(made: Split, ranges: Ranges | None, calls: Collected | None) -> dict[int, list[Marks]]:
    """The ranges that may be iterations: by place of the process, those of most time first."""
    if ranges is None:
        return {}
    names: dict[str, int] = {}
    of_label = [
        -1 if style == "mark" or name is None or domain in _NO_STEPS else names.setdefault(generic(name), len(names))
        for style, domain, name in ranges.labels
    ]
    number = np.array(of_label, np.int64)[ranges.label]
    threads, thread = np.unique(ranges.thread, return_inverse=True)
    key = np.where(number < 0, -1, thread * max(len(names), 1) + number)
    usable = np.flatnonzero(key >= 0)
    if not len(usable):
        return {}
    keys, which = np.unique(key[usable], return_inverse=True)
    taken = np.bincount(which, weights=(ranges.end - ranges.start)[usable])
    known = {p: i for i, p in enumerate(made.processes)}
    callers = set() if calls is None else set(calls.distinct["globalTid"])
    texts = list(names)
    found: dict[int, list[Marks]] = {}
    for at in np.argsort(-taken, kind="stable")[: _CANDIDATES * len(known)].tolist():
        caller, name = divmod(int(keys[at]), len(names))
        owner = int(threads[caller])
        place = known.get(None if owner == NULL else process_of(owner), 0 if len(known) == 1 else None)
        if place is not None:
            mine = usable[which == at]
            mine = mine[np.argsort(ranges.start[mine], kind="stable")]
            label = ranges.label[mine]
            one = ranges.labels[int(label[0])][2] if (label == label[0]).all() else None
            marks = Marks(one or texts[name], ranges.start[mine], ranges.end[mine], not callers or owner in callers)
            found.setdefault(place, []).append(marks)
    return found


def _kernels(made: Split, kernels: Collected, place: int) -> Kernels:
    """A process's kernels."""
    mine = _rows(made, kernels, place)
    return Kernels(
        kernels.keys[mine], kernels.kept["start"][mine], kernels.durations[mine], made.launched[KERNEL][mine],
        kernels.codes["deviceId"][mine],
    )  # fmt: skip


def timelines(
    made: Split, calls: Collected | None, ranges: Ranges | None, contexts: Mapping[int | None, Sequence[int]]
) -> list[Timeline]:
    """Those of the processes that have phases or GPU work.

    Args:
        made: The processes.
        calls: The CUDA API calls.
        ranges: The NVTX ranges.
        contexts: By process the devices on which it has a CUDA context.
    """
    spans = {place: _span(made, place, work, calls, ranges) for place, work in made.work.items()}
    return [
        Timeline(
            {"pid": made.processes[place]}, work, span, made.phased.get(place), made.repetitions.get(place, 0),
            contexts.get(made.processes[place], ()),
        )
        for place, work in made.work.items()
        if (span := spans[place]) is not None and (place in made.phased or len(work.start))
    ]  # fmt: skip


def _span(
    made: Split, place: int, work: Operations, calls: Collected | None, ranges: Ranges | None
) -> tuple[int, int] | None:
    """The first and the last time of a process in the report."""
    times: list[int] = []
    if len(work.start):
        times += [int(work.start.min()), int(work.end.max())]
    if calls is not None and (mine := _places(made, calls, "globalTid") == place).any():
        start = calls.kept["start"][mine]
        times += [int(start.min()), int((start + calls.durations[mine]).max())]
    if ranges is not None and (mine := (ranges.thread >> 24) & 0xFFFFFF == made.processes[place]).any():
        times += [int(ranges.start[mine].min()), int(ranges.end[mine].max())]
    return (min(times), max(times)) if times else None
