"""NVTX: what ranges and marks a report holds, by name and domain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.readers.nsys.export.source import NULL, NVTX, TEXT, TableFault, has_columns, require_integers
from nsw.readers.timeline.statistics import group, merge, statistics, with_shares

if TYPE_CHECKING:
    from nsw.readers.nsys.export.source import Batch, Source
    from nsw.readers.timeline.columns import IntArray
    from nsw.tables import Row

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
    def marks(self) -> frozenset[int]:
        """The labels that are marks."""
        return frozenset(i for i, label in enumerate(self.labels) if label[0] == "mark")


def nvtx_ranges(source: Source) -> Ranges | None:
    """Every range and mark of the report; None when it has none.

    Raises:
        TableFault: The table is damaged.
    """
    import numpy as np

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
    wanted = np.isin(events["eventType"], list(_STYLES))
    if not wanted.any():
        return None
    domains = _domains(source, events)
    latest = int(np.maximum(events["start"], events["end"]).max())
    chosen: Batch = {name: values[wanted] for name, values in events.items()}
    labels, numbers = _label(source, chosen, domains)
    mark = chosen["eventType"] == _MARK
    unended = (chosen["end"] == NULL) & ~mark
    end = np.where(unended, latest, np.where(mark, chosen["start"], chosen["end"]))
    _refuse_absurd(chosen["start"], end)
    return Ranges(
        chosen["start"], end, chosen["globalTid"], chosen["endGlobalTid"], numbers, labels, int(unended.sum()),
        _rank(source, events),
    )  # fmt: skip


def nvtx_summary(ranges: Ranges) -> list[Row]:
    """One row a style, domain and name; marks have no durations. Shares are of all ranges together."""
    grouped = group(ranges.label, ranges.end - ranges.start)
    merged = merge(grouped, [ranges.labels[k] for k in grouped.keys])
    marks: list[Row] = []
    timed: list[Row] = []
    for label, values in merged.items():
        style, domain, name = label
        row = {"style": style, "domain": domain, "name": name}
        if style == "mark":
            marks.append(row | {"calls": len(values)})
        else:
            timed.append(row | statistics(values))
    return with_shares(timed) + sorted(marks, key=lambda r: -r["calls"])


def nvtx_trace(ranges: Ranges) -> list[Row]:
    """One row a range or mark, by start."""
    import numpy as np

    order = np.argsort(ranges.start, kind="stable")
    columns = (ranges.label, ranges.start, ranges.end - ranges.start, ranges.thread)
    rows: list[Row] = []
    for label, start, duration, thread in zip(*(column[order].tolist() for column in columns), strict=True):
        style, domain, name = ranges.labels[label]
        known = thread != NULL
        rows.append(
            {"style": style, "domain": domain, "name": name, "start_ns": start,
             "duration_ns": None if style == "mark" else duration,
             "pid": thread >> 24 & _PART if known else None, "tid": thread & _PART if known else None}
        )  # fmt: skip
    return rows


def mpi_calls(ranges: Ranges) -> list[Row]:
    """The MPI calls that nsys recorded as ranges, one row a call; without shares and bytes."""
    import numpy as np

    calls = {
        number: name
        for number, (style, domain, name) in enumerate(ranges.labels)
        if style == "pushpop" and domain == _MPI and name is not None and name.startswith("MPI_")
    }
    if not calls:
        return []
    mine = np.isin(ranges.label, list(calls))
    grouped = group(ranges.label[mine], (ranges.end - ranges.start)[mine])
    merged = merge(grouped, [calls[k] for k in grouped.keys])
    return [{"library": "mpi", "name": name, **statistics(values)} for name, values in merged.items()]


def _rank(source: Source, events: Batch) -> int | None:
    """The MPI rank in the names of threads; None where there is none, or several."""
    named = (events["eventType"] == _THREAD).nonzero()[0]
    codes = set(zip(events[TEXT][named].tolist(), events["textId"][named].tolist(), strict=True))
    texts = source.strings([t for _, t in codes if t != NULL])
    found = {_RANK.fullmatch(_text(source, texts, *code) or "") for code in codes}
    ranks = {int(match[1]) for match in found if match}
    return ranks.pop() if len(ranks) == 1 else None


def _domains(source: Source, events: Batch) -> dict[tuple[int, int], str]:
    """Name by process and domain id; the first creation of an id counts."""
    created = (events["eventType"] == _DOMAIN_CREATE).nonzero()[0]
    created = created[events["start"][created].argsort(kind="stable")]
    columns = (events[c][created].tolist() for c in ("globalTid", "domainId", TEXT, "textId"))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for tid, domain, text, text_id in zip(*columns, strict=True):
        found.setdefault((tid & _PID, domain), (text, text_id))
    texts = source.strings([t for _, t in found.values() if t != NULL])
    named = {key: _text(source, texts, *codes) for key, codes in found.items()}
    return {key: name for key, name in named.items() if name is not None}


def _text(source: Source, texts: dict[int, str], code: int, text_id: int) -> str | None:
    """The registered string, or the row's own text."""
    if text_id != NULL and text_id in texts:
        return texts[text_id]
    return None if code == NULL else source.vocabulary[code]


def _label(source: Source, events: Batch, domains: dict[tuple[int, int], str]) -> tuple[tuple[Label, ...], IntArray]:
    """The different labels and the number of each event's."""
    import numpy as np

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
        label = (_STYLES[kind], domains.get((pid, domain), unnamed), _text(source, texts, text, text_id))
        of_code.append(numbers.setdefault(label, len(numbers)))
    return tuple(numbers), np.array(of_code, np.int64)[code]


def _refuse_absurd(start: IntArray, end: IntArray) -> None:
    limit = 2**61  # ns, 73 years: differences and sums of such times stay int64
    if min(int(start.min()), int(end.min())) < -limit or max(int(start.max()), int(end.max())) > limit:
        raise TableFault(NVTX, "contains numbers that cannot be times")
