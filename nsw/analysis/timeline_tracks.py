"""The timeline of a run as tracks: a process, its threads and streams, and what each of them did, for other viewers.

Slices of one track lie beside or inside each other. Where a stream's operations overlap, some are on a second track.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.clocks import clocks_by_report
from nsw.analysis.iteration_lanes import process_key_in_run, process_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Row = Mapping[str, Any]
    Rows = Sequence[Row]

__all__ = ["COLLECTIVES", "STEPS", "TABLES_OF_TRACKS", "Slice", "Track", "select_trace_rows", "timeline_tracks"]

TABLES_OF_TRACKS: Final = ("nvtx_trace", "api_trace", "gpu_trace")  # in the order of their tracks
STEPS: Final = "iteration_trace"
COLLECTIVES: Final = "collectives"
_KIND: Final = {"nvtx_trace": "nvtx", "api_trace": "api"}  # of the GPU each row has its own
_DETAILS: Final = ("domain", "bytes", "registers", "src_memory", "dst_memory", "graph", "correlation", "return_value")


@dataclass(frozen=True, slots=True)
class Slice:
    """What a track did: from `start` to `end` in ns, None for a moment."""

    start: int
    end: int | None
    name: str
    kind: str
    correlation: int | None  # an API call and what it launched have the same
    details: Mapping[str, int | str]


@dataclass(slots=True)
class Track:
    """A thread or a stream of a process."""

    process: str
    name: str
    slices: list[Slice] = field(default_factory=list)


def select_trace_rows(
    tables: Mapping[str, Rows], ranks: Collection[int] | None, steps: tuple[int, int] | None
) -> dict[str, list[dict[str, Any]]]:
    """The rows of traces that are of these ranks, and at work in these steps.

    Reports that share collectives have one clock by them. Others keep their own, or with steps begin the first one at
    the same time.

    Args:
        tables: Rows by the name of their trace, with `iteration_trace` and `collectives`.
        ranks: The ranks; None: all processes.
        steps: The first and the last iteration; None: the whole trace.
    """
    rank_rows = {
        name: [row for row in rows if ranks is None or row.get("rank") in ranks] for name, rows in tables.items()
    }
    clocks = clocks_by_report(tables.get(COLLECTIVES, ()))
    reports = {row.get("report") for name in TABLES_OF_TRACKS for row in rank_rows.get(name, ())}
    aligned = bool(clocks) and reports <= clocks.keys()
    if aligned:
        for name in (*TABLES_OF_TRACKS, STEPS):
            rank_rows[name] = [
                {**row, "start_ns": round(clocks[row["report"]].to_reference(row["start_ns"]))}
                for row in rank_rows.get(name, ())
                if row["start_ns"] is not None
            ]
    if steps is None:
        return {name: list(map(dict, rank_rows.get(name, ()))) for name in TABLES_OF_TRACKS}
    spans = _iteration_spans_by_report(rank_rows.get(STEPS, ()), *steps)
    latest = max((start for start, _ in spans.values()), default=0)
    return {
        name: [dict(row) | {"start_ns": row["start_ns"] + (0 if aligned else latest - span[0])}
               for row in rank_rows.get(name, ())
               if (span := spans.get(row.get("report"))) and row["start_ns"] < span[1]
               and (row["start_ns"] >= span[0] or row["start_ns"] + (row["duration_ns"] or 0) > span[0])]
        for name in TABLES_OF_TRACKS
    }  # fmt: skip


def _iteration_spans_by_report(iterations: Iterable[Row], first: int, last: int) -> dict[Any, tuple[int, int]]:
    """When the steps begin and end in each report, whose processes have one clock."""
    spans: dict[Any, tuple[int, int]] = {}
    for row in iterations:
        if first <= row["iteration"] <= last:
            start, end = row["start_ns"], row["start_ns"] + (row["duration_ns"] or 0)
            span = spans.get(row["report"], (start, end))
            spans[row["report"]] = min(start, span[0]), max(end, span[1])
    return spans


def timeline_tracks(case: str, tables: Mapping[str, Rows]) -> list[Track]:
    """The tracks of a run: its NVTX ranges and API calls by thread, its GPU's work by stream.

    Args:
        case: The name of the case or run, for the names of the processes.
        tables: Rows of traces, by the name of the trace; with `iteration_trace` where it is known.
    """
    names = process_labels([row for name in TABLES_OF_TRACKS for row in tables.get(name, ())], tables.get(STEPS, ()))
    tracks: list[Track] = []
    for table in TABLES_OF_TRACKS:
        by_track: dict[tuple[Any, ...], list[Slice]] = {}
        for row in tables.get(table, ()):
            if row["start_ns"] is not None:
                by_track.setdefault((process_key_in_run(row), _track_name(table, row)), []).append(
                    _slice_of_row(table, row)
                )
        for (process, name), slices in sorted(by_track.items(), key=lambda item: (names[item[0][0]], item[0][1])):
            tracks += _pack_slices_in_tracks(f"{case}, {names[process]}", name, slices)
    return tracks


def _track_name(table: str, row: Row) -> str:
    if table == "gpu_trace":
        numbers_by_part = {"GPU": row.get("device"), "context": row.get("context"), "stream": row.get("stream")}
        return " ".join(f"{part} {number}" for part, number in numbers_by_part.items() if number is not None) or "GPU"
    label = "CUDA API" if table == "api_trace" else "NVTX"
    return label if row.get("tid") is None else f"{label}, thread {row['tid']}"


def _slice_of_row(table: str, row: Row) -> Slice:
    start, length = row["start_ns"], row["duration_ns"]
    details = {name: value for name in _DETAILS if (value := row.get(name)) is not None}
    for extent in ("grid", "block"):
        if row.get(f"{extent}_x") is not None:
            details[extent] = " x ".join(str(row[f"{extent}_{axis}"]) for axis in "xyz")
    name = row.get("short_name") or row["name"] or ""
    if row["name"] and row["name"] != name:
        details["name"] = row["name"]
    end = None if length is None else start + length
    return Slice(start, end, name, row.get("kind") or _KIND[table], row.get("correlation"), details)


def _pack_slices_in_tracks(process: str, name: str, slices: Iterable[Slice]) -> list[Track]:
    """As few tracks as it takes that no slice begins inside another one and ends after it."""
    tracks: list[Track] = []
    open_: list[list[int]] = []  # of each track the ends of the slices that are not over
    for part in sorted(slices, key=lambda part: (part.start, -(part.end or part.start))):
        end = part.start if part.end is None else part.end
        for ends in open_:
            while ends and ends[-1] <= part.start:
                ends.pop()
        at = next((at for at, ends in enumerate(open_) if not ends or end <= ends[-1]), len(tracks))
        if at == len(tracks):
            tracks.append(Track(process, name if not tracks else f"{name} ({at + 1})"))
            open_.append([])
        tracks[at].slices.append(part)
        if part.end is not None:
            open_[at].append(end)
    return tracks
