"""NVTX: the ranges and marks of a report by name and domain, and GPU work projected on the ranges.

A GPU operation belongs to every range, on any level of the stack, of the thread that launched it, whose span holds the
API call with the operation's correlation id in the same process. The range's projection is the span from the first
start to the last end of its operations.

The starts and ends of a thread's ranges cut its time into pieces. Calls that start in the same piece and end in the
same piece lie in the same ranges: they make a cell, and what they launched is only counted and added up. So the work
is streamed, and what stays in memory grows with the calls by 8 bytes each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsw.readers.nsys.export.source import NULL, NVTX, TEXT, Source, TableFault, has_columns, require_integers
from nsw.readers.timeline.columns import GrowingColumn, narrowest_copy, row_slices, search_near
from nsw.readers.timeline.statistics import distinct, duration_statistics, group_by_key, merge_by_label, with_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.nsys.export.source import Batch, Collected
    from nsw.readers.timeline.statistics import IntArray
    from nsw.tables import Row

_BLOCK = 32  # values folded into one before the table of powers is built; 1/32 of its memory
_SLICES = 1 << 16  # slices looked at a time


class Extremes:
    """`ufunc` (np.minimum or np.maximum) over slices of `values`."""

    def __init__(self, values: IntArray, ufunc: np.ufunc) -> None:
        self._values = values
        self._ufunc = ufunc
        self._levels: list[IntArray] = []
        if len(values) >= _BLOCK:
            full_blocks = len(values) // _BLOCK
            self._levels.append(ufunc.reduce(values[: full_blocks * _BLOCK].reshape(full_blocks, _BLOCK), axis=1))
        while self._levels and len(self._levels[-1]) > (reach := 1 << (len(self._levels) - 1)):
            last = self._levels[-1]
            self._levels.append(np.asarray(ufunc(last[:-reach], last[reach:])))

    def over_slices(self, low: IntArray, high: IntArray) -> IntArray:
        """The extreme of values[low[i]:high[i]] for each i; no slice may be empty."""
        out = np.empty(len(low), np.int64)
        for start in range(0, len(low), _SLICES):
            part = slice(start, start + _SLICES)
            out[part] = self._over_batch(low[part], high[part])
        return out

    def _over_batch(self, low: IntArray, high: IntArray) -> IntArray:
        first, last = -(-low // _BLOCK), high // _BLOCK  # blocks wholly inside
        inside = first < last
        out = self._values[low]
        self._reduce_short_slices(out, low, np.where(inside, first * _BLOCK, high))
        self._reduce_short_slices(out, np.where(inside, last * _BLOCK, high), high)
        if inside.any():
            out[inside] = self._ufunc(out[inside], self._reduce_blocks(first[inside], last[inside]))
        return out

    def _reduce_short_slices(self, out: IntArray, low: IntArray, high: IntArray) -> None:
        """Take short slices, of less than two blocks, into `out` value by value."""
        for step in range(int((high - low).max(initial=0))):
            active = low + step < high
            out[active] = self._ufunc(out[active], self._values[low[active] + step])

    def _reduce_blocks(self, first: IntArray, last: IntArray) -> IntArray:
        power = np.frexp((last - first).astype(np.float64))[1] - 1  # 2**power <= length
        out = np.empty(len(first), np.int64)
        for level in np.unique(power).tolist():
            at_level = power == level
            table = self._levels[level]
            out[at_level] = self._ufunc(table[first[at_level]], table[last[at_level] - (1 << level)])
        return out


_PROCESS = ~0xFFFFFF  # a serialized global id without its thread
_NOWHERE = -1  # the code of a call that lies in no range


class Boundaries:
    """Starts and ends of ranges by thread. The code of a call says between which of them it starts and ends."""

    def __init__(self, thread: IntArray, start: IntArray, end: IntArray) -> None:
        self.threads, counts = np.unique(thread, return_counts=True)
        self.first = np.concatenate(([0], np.cumsum(counts)))  # of each thread, in the two below
        self.starts = start[np.lexsort((start, thread))]
        self.ends = end[np.lexsort((end, thread))]

    def range_codes(self, thread: IntArray, start: IntArray, end: IntArray) -> IntArray:
        """The code of each call: calls of a thread that lie in the same ranges have the same code; -1: in no range.

        Args:
            thread: The global thread id of each call.
            start: The start of each call (ns).
            end: The end of each call (ns).

        Returns:
            One code per call, in the order of the calls.
        """
        codes = np.full(len(thread), _NOWHERE, np.int64)
        for thread_id in set(distinct(thread)).intersection(self.threads.tolist()):
            calls, thread_index = (thread == thread_id).nonzero()[0], int(np.searchsorted(self.threads, thread_id))
            low, high = int(self.first[thread_index]), int(self.first[thread_index + 1])
            began = search_near(self.starts[low:high], start[calls], "right") - 1
            ends = search_near(self.ends[low:high], end[calls], "left")
            inside = (began >= 0) & (ends < high - low)
            codes[calls[inside]] = (began[inside] + low) * len(self.starts) + ends[inside] + low
        return codes


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells that launched GPU work, those of one thread together, in the order of `call_start`.

    `call_start` and `call_end` stand for those of every call of the cell: they lie in the same ranges. `count`,
    `busy` (ns), `first` and `last` (ns) are of the operations that the calls launched.
    """

    thread_index: IntArray  # of the thread in `Boundaries.threads`
    call_start: IntArray
    call_end: IntArray
    count: IntArray
    busy: IntArray
    first: IntArray
    last: IntArray


def sum_operations_by_call(boundaries: Boundaries, calls: Iterable[Batch], operations: Iterable[Batch]) -> Cells:
    """Sum the GPU operations per cell of the call that launched them.

    Args:
        boundaries: The starts and ends of the ranges.
        calls: All CUDA calls in their order: globalTid, start, end.
        operations: GPU operations: start, end, and the place of their call.
    """
    parts = [_codes_of_batch(boundaries, batch) for batch in calls]
    codes = np.unique(np.concatenate([different for different, _ in parts])) if parts else np.empty(0, np.int64)
    cell_of_call = GrowingColumn.of_parts(np.searchsorted(codes, d)[inverse] for d, inverse in parts)
    del parts
    sums = _Sums(len(codes))
    for batch in operations:
        sums.add(cell_of_call[batch["call"]], batch["start"], batch["end"])
    nonempty = ((sums.count > 0) & (codes != _NOWHERE)).nonzero()[0]
    began, ended = np.divmod(codes[nonempty], max(len(boundaries.starts), 1))
    thread_index = np.asarray(np.searchsorted(boundaries.first, began, "right") - 1)
    return Cells(
        thread_index, boundaries.starts[began], boundaries.ends[ended],
        sums.count[nonempty], sums.busy[nonempty], sums.first[nonempty], sums.last[nonempty],
    )  # fmt: skip


def _codes_of_batch(boundaries: Boundaries, calls: Batch) -> tuple[IntArray, IntArray]:
    """The different codes of calls, and which of them each call has."""
    codes = boundaries.range_codes(calls["globalTid"], calls["start"], calls["end"])
    heads = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))  # mostly calls of one cell follow each other
    different, inverse = np.unique(codes[heads], return_inverse=True)
    return different, narrowest_copy(np.repeat(inverse, np.diff(heads, append=len(codes))))


class Lookup:
    """Values by key, or else the places of keys; of equal keys the first counts, and NULL is no key."""

    def __init__(self, keys: IntArray, values: IntArray | None = None) -> None:
        if len(keys) and int(keys.min()) == NULL:
            valid = np.flatnonzero(keys != NULL)
            keys, values = keys[valid], valid if values is None else values[valid]
        self._low, self._high = (int(keys.min()), int(keys.max())) if len(keys) else (0, -1)
        self._table: IntArray | None = None
        if self._high - self._low <= 8 * len(keys) + 1024:  # correlation ids count up: a table beats a search
            self._table = np.full(self._high - self._low + 2, -1, np.int32)  # the last place is of all other keys
            for end in range(len(keys), 0, -_SLICE):  # a slice at a time, from the last to the first
                part = slice(max(end - _SLICE, 0), end)
                own = np.arange(part.start, part.stop) if values is None else values[part]
                self._table[keys[part][::-1].astype(np.int64) - self._low] = own[::-1]
            return
        order = np.argsort(keys, kind="stable")
        self._keys, self._values = keys[order], order if values is None else values[order]

    def find(self, keys: IntArray) -> IntArray:
        """The value of each key, -1 where there is none."""
        if self._table is not None:
            found = GrowingColumn()
            for rows in row_slices(len(keys), _SLICE):
                part = keys[rows].astype(np.int64)
                inside = (part >= self._low) & (part <= self._high)
                found.add(self._table[np.where(inside, part - self._low, -1)])
            return found.values
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return narrowest_copy(np.where(self._keys[at] == keys, self._values[at], -1)) if len(at) else at


_SLICE = 1 << 16  # keys put into a table, or looked up, at a time


class _Sums:
    """Count, time, first start and last end of the operations of each cell."""

    def __init__(self, cells: int) -> None:
        self.count, self.busy = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.first, self.last = np.full(cells, np.iinfo(np.int64).max), np.full(cells, np.iinfo(np.int64).min)

    def add(self, cells: IntArray, start: IntArray, end: IntArray) -> None:
        """Take operations; those of one cell mostly follow each other and are folded first."""
        heads = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        at = cells[heads]
        np.add.at(self.count, at, np.diff(np.append(heads, len(cells))))
        np.add.at(self.busy, at, np.add.reduceat(end - start, heads))
        np.minimum.at(self.first, at, np.minimum.reduceat(start, heads))
        np.maximum.at(self.last, at, np.maximum.reduceat(end, heads))


# ENUM_NSYS_EVENT_TYPE; NVTXT is the variant that is read from text files.
_STYLES = {59: "pushpop", 60: "startend", 70: "pushpop", 71: "startend", 34: "mark"}
_DOMAIN_CREATE = 75
_THREAD = 39  # the name of a thread
_RANK = re.compile(r"MPI Rank (\d{1,7})")
_MPI = "MPI"  # nsys's own domain for the calls of MPI, before it gave them tables of their own (2023)
_PID = 0xFFFFFF000000  # the process in a serialized global id
_PART = 0xFFFFFF  # of the process and of the thread, each
_MARK = 34
_DEFAULT = 0  # the id of the default domain
_COLUMNS = ("start", "end", "eventType", "textId", "domainId", "globalTid", "endGlobalTid")

Label = tuple[str, str | None, str | None]  # style, domain, name


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges and marks, one an index: times in ns, thread as a serialized global id, label by number.

    A range that was never ended lasts to the last NVTX time of the report, as nsys has it.
    """

    start: IntArray
    end: IntArray
    thread: IntArray
    end_thread: IntArray
    label: IntArray
    labels: tuple[Label, ...]
    unended: int
    rank: int | None = None  # what nsys named the threads after, where it is one

    @property
    def mark_labels(self) -> frozenset[int]:
        """The labels that are marks."""
        return frozenset(i for i, label in enumerate(self.labels) if label[0] == "mark")


def nvtx_ranges(source: Source) -> Ranges | None:
    """Every range and mark of the report; None when it has none.

    Raises:
        TableFault: The table is damaged.
    """
    if not has_columns(source, NVTX, "start", "end", "eventType"):
        return None
    batches = list(source.scan(NVTX, _COLUMNS, text="text"))
    if not batches:
        return None
    events: Batch = {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}
    require_integers(NVTX, events, "start", "eventType")
    backwards = (events["end"] != NULL) & (events["end"] < events["start"]) & (events["eventType"] != _MARK)
    if backwards.any():
        pairs = zip(events["start"][backwards].tolist(), events["end"][backwards].tolist(), strict=True)
        source.contradictions.backwards.setdefault(NVTX, set()).update(pairs)
        events = {name: values[~backwards] for name, values in events.items()}
    styled = np.isin(events["eventType"], list(_STYLES))
    if not styled.any():
        return None
    domains = _domain_names(source, events)
    latest = int(np.maximum(events["start"], events["end"]).max())
    chosen: Batch = {name: values[styled] for name, values in events.items()}
    labels, numbers = _label_events(source, chosen, domains)
    mark = chosen["eventType"] == _MARK
    unended = (chosen["end"] == NULL) & ~mark
    end = np.where(unended, latest, np.where(mark, chosen["start"], chosen["end"]))
    _refuse_absurd(chosen["start"], end)
    return Ranges(
        chosen["start"], end, chosen["globalTid"], chosen["endGlobalTid"], numbers, labels, int(unended.sum()),
        _mpi_rank(source, events),
    )  # fmt: skip


def nvtx_summary(ranges: Ranges) -> list[Row]:
    """One row a style, domain and name; marks have no durations. Shares are of all ranges together."""
    grouped = group_by_key(ranges.label, ranges.end - ranges.start)
    merged = merge_by_label(grouped, [ranges.labels[k] for k in grouped.keys])
    marks: list[Row] = []
    timed: list[Row] = []
    for label, values in merged.items():
        style, domain, name = label
        row = {"style": style, "domain": domain, "name": name}
        if style == "mark":
            marks.append(row | {"calls": len(values)})
        else:
            timed.append(row | duration_statistics(values))
    return with_shares(timed) + sorted(marks, key=lambda r: -r["calls"])


def nvtx_trace(ranges: Ranges) -> list[Row]:
    """One row a range or mark, by start."""
    order = np.argsort(ranges.start, kind="stable")
    columns = (ranges.label, ranges.start, ranges.end - ranges.start, ranges.thread)
    rows: list[Row] = []
    for label, start, duration, thread in zip(*(column[order].tolist() for column in columns), strict=True):
        style, domain, name = ranges.labels[label]
        has_thread = thread != NULL
        rows.append(
            {"style": style, "domain": domain, "name": name, "start_ns": start,
             "duration_ns": None if style == "mark" else duration,
             "pid": thread >> 24 & _PART if has_thread else None, "tid": thread & _PART if has_thread else None}
        )  # fmt: skip
    return rows


def mpi_calls(ranges: Ranges) -> list[Row]:
    """The MPI calls that nsys recorded as ranges, one row a call; without shares and bytes."""
    calls = {
        number: name
        for number, (style, domain, name) in enumerate(ranges.labels)
        if style == "pushpop" and domain == _MPI and name is not None and name.startswith("MPI_")
    }
    if not calls:
        return []
    is_call = np.isin(ranges.label, list(calls))
    grouped = group_by_key(ranges.label[is_call], (ranges.end - ranges.start)[is_call])
    merged = merge_by_label(grouped, [calls[k] for k in grouped.keys])
    return [{"library": "mpi", "name": name, **duration_statistics(values)} for name, values in merged.items()]


def _mpi_rank(source: Source, events: Batch) -> int | None:
    """The MPI rank in the names of threads; None where there is none, or several."""
    thread_rows = (events["eventType"] == _THREAD).nonzero()[0]
    codes = set(zip(events[TEXT][thread_rows].tolist(), events["textId"][thread_rows].tolist(), strict=True))
    texts = source.strings([t for _, t in codes if t != NULL])
    matches = {_RANK.fullmatch(_event_text(source, texts, *code) or "") for code in codes}
    ranks = {int(match[1]) for match in matches if match}
    return ranks.pop() if len(ranks) == 1 else None


def _domain_names(source: Source, events: Batch) -> dict[tuple[int, int], str]:
    """Name by process and domain id; the first creation of an id counts."""
    created = (events["eventType"] == _DOMAIN_CREATE).nonzero()[0]
    created = created[events["start"][created].argsort(kind="stable")]
    columns = (events[c][created].tolist() for c in ("globalTid", "domainId", TEXT, "textId"))
    name_codes: dict[tuple[int, int], tuple[int, int]] = {}
    for tid, domain, text, text_id in zip(*columns, strict=True):
        name_codes.setdefault((tid & _PID, domain), (text, text_id))
    texts = source.strings([t for _, t in name_codes.values() if t != NULL])
    names = {key: _event_text(source, texts, *codes) for key, codes in name_codes.items()}
    return {key: name for key, name in names.items() if name is not None}


def _event_text(source: Source, texts: dict[int, str], code: int, text_id: int) -> str | None:
    """The registered string, or the row's own text."""
    if text_id != NULL and text_id in texts:
        return texts[text_id]
    return None if code == NULL else source.vocabulary.texts[code]


def _label_events(
    source: Source, events: Batch, domains: dict[tuple[int, int], str]
) -> tuple[tuple[Label, ...], IntArray]:
    """The different labels and the number of each event's."""
    columns = [events["eventType"], events["globalTid"] & _PID, events["domainId"], events["textId"], events[TEXT]]
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = code * len(values) + inverse
        _, code = np.unique(code, return_inverse=True)  # dense again, so that the product cannot overflow
    _, first = np.unique(code, return_index=True)
    texts = source.strings([t for t in np.unique(events["textId"]).tolist() if t != NULL])
    numbers: dict[Label, int] = {}
    of_code = []
    for kind, pid, domain, text_id, text in zip(*(c[first].tolist() for c in columns), strict=True):
        unnamed = None if domain in {NULL, _DEFAULT} else f"domain {domain}"
        label = (_STYLES[kind], domains.get((pid, domain), unnamed), _event_text(source, texts, text, text_id))
        of_code.append(numbers.setdefault(label, len(numbers)))
    return tuple(numbers), np.array(of_code, np.int64)[code]


def _refuse_absurd(start: IntArray, end: IntArray) -> None:
    limit = 2**61  # ns, 73 years: differences and sums of such times stay int64
    if min(int(start.min()), int(end.min())) < -limit or max(int(start.max()), int(end.max())) > limit:
        raise TableFault(NVTX, "contains numbers that cannot be times")


def nvtx_gpu_summary(ranges: Ranges, calls: Collected | None, gpu: Iterable[Collected]) -> list[Row]:
    """One row a range name and domain with GPU work, most projected time first.

    Args:
        ranges: The ranges.
        calls: The CUDA API calls, with start, correlationId and globalTid.
        gpu: The tables of GPU work, with start, correlationId and globalPid.

    Raises:
        TableFault: A table that is needed is damaged.
    """
    usable = ~np.isin(ranges.label, list(ranges.mark_labels)) & (ranges.thread != NULL)
    # ended on another thread: it covers no stretch of one thread's calls
    usable &= (ranges.end_thread == NULL) | (ranges.end_thread == ranges.thread)
    chosen = usable.nonzero()[0]
    if not len(chosen) or calls is None:
        return []
    chosen = chosen[np.argsort(ranges.thread[chosen], kind="stable")]
    start, end, thread, label = (a[chosen] for a in (ranges.start, ranges.end, ranges.thread, ranges.label))
    boundaries = Boundaries(thread, start, end)
    cells = sum_operations_by_call(
        boundaries, calls.batches("globalTid"), (batch for table in gpu for batch in _operation_batches(table, calls))
    )
    names = [name for _, *name in ranges.labels]
    numbers: dict[tuple[str | None, ...], int] = {}
    number = np.array([numbers.setdefault(tuple(n), len(numbers)) for n in names], np.int64)[label]
    totals = np.zeros((4, len(numbers)), np.int64)
    spans: list[tuple[IntArray, IntArray]] = []  # the labels and projections of the ranges with operations
    for thread_index in range(len(boundaries.threads)):
        low, high = np.searchsorted(cells.thread_index, (thread_index, thread_index + 1)).tolist()
        thread_ranges = slice(int(boundaries.first[thread_index]), int(boundaries.first[thread_index + 1]))
        if low < high:
            figures = _project_ranges(start[thread_ranges], end[thread_ranges], _select_cells(cells, slice(low, high)))
            for row, values in zip(totals, figures, strict=True):
                np.add.at(row, number[thread_ranges], values)
            has_work = figures[0] > 0
            spans.append((number[thread_ranges][has_work], figures[3][has_work]))
    medians = _median_projections(spans)
    rows = [
        {
            "domain": domain, "name": name, "calls": calls, "gpu_ops": ops,
            "gpu_ns": float(busy), "projected_ns": float(projected), "projected_med_ns": medians.get(at),
        }
        for at, ((domain, name), (calls, ops, busy, projected)) in enumerate(
            zip(numbers, totals.T.tolist(), strict=True)
        )
        if calls
    ]  # fmt: skip
    return sorted(rows, key=lambda r: -r["projected_ns"])


def _median_projections(spans: list[tuple[IntArray, IntArray]]) -> dict[int, float]:
    """The median projection of each label."""
    if not spans:
        return {}
    grouped = group_by_key(*(np.concatenate(column) for column in zip(*spans, strict=True)))
    return {key: float(np.median(grouped.values_of(at))) for at, key in enumerate(grouped.keys)}


def _select_cells(cells: Cells, rows: IntArray | slice) -> Cells:
    return type(cells)(*(getattr(cells, name)[rows] for name in cells.__slots__))


def _project_ranges(start: IntArray, end: IntArray, cells: Cells) -> IntArray:
    """For each range: 1 if it has operations, how many, their time, their span; shape (4, ranges)."""
    low = np.searchsorted(cells.call_start, start, "left")
    high = np.searchsorted(cells.call_start, end, "right")
    figures = np.zeros((4, len(start)), np.int64)
    nonempty = (low < high).nonzero()[0]
    low, high = low[nonempty], high[nonempty]
    count, busy = (np.concatenate(([0], np.cumsum(values))) for values in (cells.count, cells.busy))
    first = Extremes(cells.first, np.minimum).over_slices(low, high)
    last = Extremes(cells.last, np.maximum).over_slices(low, high)
    figures[:, nonempty] = (np.ones_like(low), count[high] - count[low], busy[high] - busy[low], last - first)
    over = Extremes(cells.call_end, np.maximum).over_slices(low, high) > end[nonempty]
    for index in over.nonzero()[0].tolist():
        figures[:, nonempty[index]] = _project_cut_range(
            _select_cells(cells, slice(low[index], high[index])), int(end[nonempty[index]])
        )
    return figures


def _project_cut_range(cells: Cells, end: int) -> tuple[int, int, int, int]:
    """The figures of one range of which some calls go on after its end; those do not count."""
    inside = cells.call_end <= end
    if not inside.any():
        return (0, 0, 0, 0)
    inside_cells = _select_cells(cells, inside.nonzero()[0])
    span = int(inside_cells.last.max() - inside_cells.first.min())
    return 1, int(inside_cells.count.sum()), int(inside_cells.busy.sum()), span


def _operation_batches(table: Collected, calls: Collected) -> Iterator[Batch]:
    """The work of GPUs that calls of its own process have launched, in batches."""
    processes, codes = np.array(calls.distinct["globalTid"]) & _PROCESS, calls.codes["globalTid"]
    for batch in table.batches("globalPid", "call") if "call" in table.columns else ():
        process, call = batch["globalPid"], batch["call"]
        selected = (call >= 0) & (process != NULL) & (processes[codes[call]] == process & _PROCESS)
        if selected.any():
            yield batch if selected.all() else {name: values[selected] for name, values in batch.items()}
