"""What each case of a campaign shows: hotspots, API calls, copies, communication, figures.

Shares are of all GPU time of the case (kernels, copies and sets together) and of all time in CUDA API calls;
with repeats, or a report a rank, times and calls are summed over the case's reports and `reports` says how many.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Share:
    """One kernel, copy, API call or function with its part of the whole; `share_pct` and `cumulative_pct` 0 to 100."""

    name: str
    short_name: str
    kind: str
    total_ns: float
    calls: int
    share_pct: float
    cumulative_pct: float


@dataclass(frozen=True, slots=True)
class Copy:
    """One kind of copy or set: bytes, time, and bytes a second where both are known."""

    name: str
    calls: int
    total_ns: float
    total_bytes: float | None
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the program: the median of its runs, with their range."""

    name: str
    unit: str | None
    pass_name: str
    profiled: bool
    median: float
    least: float
    most: float
    runs: int


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """One case. What its reports do not tell is None or empty."""

    id: str
    params: dict[str, Any]
    reports: int
    gpu_ns: float | None
    kernel_ns: float | None
    communication_pct: float | None
    hotspots: tuple[Share, ...] = ()
    api: tuple[Share, ...] = ()
    copies: tuple[Copy, ...] = ()
    functions: tuple[Share, ...] = ()
    figures: tuple[Figure, ...] = ()
    gpus: tuple[str, ...] = field(default=())


def summarize_cases(
    runs: Sequence[Any], tables: Mapping[str, Sequence[Mapping[str, Any]]], cover: float
) -> list[CaseSummary]:
    """Summarise every case of a campaign, in the plan's order.

    Args:
        runs: The campaign's runs (id, case_id, params, pass_name, pass_kind).
        tables: Rows by table name; each row has `run`.
        cover: How much of the time the hotspots listed together take, 0 to 1.
    """
    by_run = {name: _grouped(rows, "run") for name, rows in tables.items()}
    cases: dict[str, list[Any]] = {}
    for run in runs:
        cases.setdefault(run.case_id, []).append(run)
    return [_case(id_, members, by_run, cover) for id_, members in cases.items()]


def _case(
    id_: str, runs: list[Any], by_run: Mapping[str, Mapping[Any, list[Mapping[str, Any]]]], cover: float
) -> CaseSummary:
    def rows(table: str) -> list[Mapping[str, Any]]:
        found = by_run.get(table, {})
        return [row for run in runs for row in found.get(run.id, ())]

    gpu = rows("gpu_summary")
    gpu_ns = _total(gpu)
    communication = _total(r for r in rows("communication") if r.get("library") == "nccl")
    return CaseSummary(
        id=id_,
        params=runs[0].params,
        reports=len({row.get("report") for row in gpu}),
        gpu_ns=gpu_ns if gpu else None,
        kernel_ns=_total(r for r in gpu if r["kind"] in {"kernel", "graph"}) if gpu else None,
        communication_pct=100 * communication / gpu_ns if gpu and gpu_ns else None,
        hotspots=covering(gpu, cover),
        api=covering(rows("api_summary"), cover),
        copies=_copies(gpu),
        functions=_functions(rows("functions"), cover),
        figures=_figures(runs, by_run.get("figures", {})),
        gpus=tuple(sorted({str(r["text"]) for r in rows("facts") if r["key"] == "gpu_name" and r.get("text")})),
    )


def covering(rows: Iterable[Mapping[str, Any]], cover: float) -> tuple[Share, ...]:
    """The rows that together take `cover` (0 to 1) of all rows' total_ns, largest first, equal names merged."""
    merged: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        entry = merged.setdefault((row.get("kind") or "", row["name"]), [row.get("short_name") or row["name"], 0.0, 0])
        entry[1] += row.get("total_ns") or 0
        entry[2] += row.get("calls") or 0
    whole = sum(entry[1] for entry in merged.values())
    result: list[Share] = []
    running = 0.0
    for (kind, name), (short, total, calls) in sorted(merged.items(), key=lambda item: (-item[1][1], item[0])):
        if not whole or running >= cover * whole:
            break
        running += total
        result.append(Share(name, short, kind, total, calls, 100 * total / whole, 100 * running / whole))
    return tuple(result)


def _copies(rows: Iterable[Mapping[str, Any]]) -> tuple[Copy, ...]:
    merged: dict[str, list[Any]] = {}
    for row in rows:
        if row["kind"] in {"memcpy", "memset", "um"}:
            entry = merged.setdefault(row["name"], [0, 0.0, 0.0, True])
            entry[0] += row.get("calls") or 0
            entry[1] += row.get("total_ns") or 0
            entry[2] += row.get("total_bytes") or 0
            entry[3] = entry[3] and row.get("total_bytes") is not None
    return tuple(
        Copy(name, calls, ns, size if known else None, size / ns * 1e9 if known and ns else None)
        for name, (calls, ns, size, known) in sorted(merged.items(), key=lambda item: -item[1][1])
    )


def _functions(rows: Iterable[Mapping[str, Any]], cover: float) -> tuple[Share, ...]:
    as_time = (
        {"name": _place(row), "short_name": row["name"], "kind": "function",
         "total_ns": (row.get("self_s") or 0) * 1e9, "calls": row.get("calls")}
        for row in rows
    )  # fmt: skip
    return covering(as_time, cover)


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['name']} ({row['file']}:{row['line']})" if row.get("file") and row.get("line") else str(row["name"])


def _figures(runs: list[Any], found: Mapping[Any, list[Mapping[str, Any]]]) -> tuple[Figure, ...]:
    values: dict[tuple[str, str], list[float]] = {}
    about: dict[tuple[str, str], tuple[str | None, bool]] = {}
    for run in runs:
        for row in found.get(run.id, ()):
            key = (row["name"], run.pass_name)
            values.setdefault(key, []).append(row["value"])
            about[key] = (row.get("unit"), run.pass_kind != "baseline")  # noqa: S105  no password
    return tuple(
        Figure(name, about[name, pass_name][0], pass_name, about[name, pass_name][1],
               statistics.median(seen), min(seen), max(seen), len(seen))
        for (name, pass_name), seen in values.items()
    )  # fmt: skip


def best_figure(case: CaseSummary, name: str) -> Figure | None:
    """A figure of a case as the program gives it undisturbed; else while profiled, which the figure says."""
    mine = [f for f in case.figures if f.name == name]
    return min(mine, key=lambda f: f.profiled, default=None)


def _total(rows: Iterable[Mapping[str, Any]]) -> float:
    return sum(row.get("total_ns") or 0 for row in rows)


def _grouped(rows: Sequence[Mapping[str, Any]], key: str) -> dict[Any, list[Mapping[str, Any]]]:
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row.get(key), []).append(row)
    return groups
