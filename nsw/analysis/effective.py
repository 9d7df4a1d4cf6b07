"""The model of a program whose iterations compute and move data: effective rates, and the roofline that they make.

FLOP and bytes are the user's formulas (or the bytes that were measured), times are medians of NVTX ranges. With
P_flops = FLOP / time of the computing ranges and P_link = bytes / time of a link's ranges, an iteration of arithmetic
intensity AI = FLOP / bytes does AI / (AI / P_flops + sum of w_link / P_link) FLOP a second, where w_link is the share
of the bytes that go over the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from nsw.analysis.cases import CaseSummary, rows_by_run, runs_of_first_measured_pass

Clock = Literal["gpu", "cpu"]
Measured = Literal["copies", "collectives"]
_NS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class AskedLink:
    """Data that moves: its ranges, whose clock times them, and its bytes an iteration or where they are measured."""

    name: str
    ranges: tuple[str, ...]
    clock: Clock
    bytes: float | Measured


@dataclass(frozen=True, slots=True)
class AskedModel:
    """What the recipe says of one case; all of an iteration on one GPU."""

    flop: float
    ranges: tuple[str, ...]
    links: tuple[AskedLink, ...]
    iteration: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What a link moved in an iteration, how long that took, and so its effective rate."""

    name: str
    bytes: float
    seconds: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Effective:
    """The model of one case; `missing` says why there are no numbers.

    Attributes:
        flop_per_s: P_flops.
        intensity: FLOP for each byte of all links.
        modelled_flop_per_s: By the rates of the base case.
        measured_flop_per_s: FLOP by the time of the iteration's range; None where no range is named.
    """

    case_id: str
    params: Mapping[str, Any]
    flop: float | None
    compute_s: float | None = None
    flop_per_s: float | None = None
    links: tuple[Link, ...] = ()
    intensity: float | None = None
    iteration_s: float | None = None
    modelled_flop_per_s: float | None = None
    measured_flop_per_s: float | None = None
    missing: str | None = None


def model_flop_rate(intensity: float, flop_per_s: float, links: Iterable[tuple[float, float]]) -> float:
    """FLOP a second at an arithmetic intensity.

    Args:
        intensity: FLOP for each byte.
        flop_per_s: Effective rate of computing.
        links: Of each link its share of the bytes and its rate (byte/s).
    """
    return intensity / (intensity / flop_per_s + sum(share / speed for share, speed in links))


def model_case(
    case_id: str,
    params: Mapping[str, Any],
    requested_model: AskedModel,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Effective:
    """The effective rates of one case.

    Args:
        case_id: The case.
        params: Its parameters.
        requested_model: What the recipe says of it.
        tables: Of its timeline the rows of nvtx_gpu_summary, nvtx_summary, gpu_summary and communication.
    """
    blank = Effective(case_id, params, requested_model.flop)
    times = _Times(tables, requested_model.iteration)
    try:
        compute = sum(times.range_seconds(name, "gpu") for name in requested_model.ranges)
        links = tuple(_measure_link(link, times) for link in requested_model.links)
    except _LackError as lack:
        return replace(blank, missing=str(lack))
    moved = sum(link.bytes for link in links)
    iteration = times.iteration_s()
    return replace(
        blank,
        compute_s=compute,
        flop_per_s=requested_model.flop / compute,
        links=links,
        intensity=requested_model.flop / moved if moved else None,
        iteration_s=iteration,
        measured_flop_per_s=requested_model.flop / iteration if iteration else None,
    )


def model_cases(
    cases: Sequence[CaseSummary],
    requested_models: Mapping[str, AskedModel | str],
    runs: Sequence[Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[Effective, ...]:
    """The model of every case of a campaign that the recipe has one for.

    Args:
        cases: The cases.
        requested_models: By case what the recipe says of it, or why it cannot be said.
        runs: The campaign's runs, in the plan's order.
        tables: The campaign's rows, each with `run`.
    """
    names = ("nvtx_gpu_summary", "nvtx_summary", "gpu_summary", "communication")
    by_run = {name: rows_by_run(tables.get(name, ())) for name in names} if requested_models else {}
    effective_cases = []
    for case in cases:
        requested_model = requested_models.get(case.id)
        if isinstance(requested_model, str):
            effective_cases.append(Effective(case.id, case.params, None, missing=requested_model))
        elif requested_model is not None:
            case_runs = [run for run in runs if run.case_id == case.id]
            traced = runs_of_first_measured_pass(case_runs, by_run["nvtx_summary"])
            rows = {
                name: [row for run in traced for row in run_rows.get(run.id, ())] for name, run_rows in by_run.items()
            }
            effective_cases.append(model_case(case.id, case.params, requested_model, rows))
    return predict_by_first_rates(effective_cases)


def predict_by_first_rates(cases: Sequence[Effective]) -> tuple[Effective, ...]:
    """The cases with what the rates of the first that has any give at the intensity of each."""
    base = next((case for case in cases if case.flop_per_s is not None), None)
    if base is None or base.flop_per_s is None:
        return tuple(cases)
    speeds = {link.name: link.bytes_per_s for link in base.links}
    modelled_cases = []
    for case in cases:
        moved = sum(link.bytes for link in case.links)
        if case.intensity is None or not moved:
            modelled_cases.append(case)
            continue
        links = [(link.bytes / moved, speeds[link.name]) for link in case.links]
        modelled_cases.append(
            replace(case, modelled_flop_per_s=model_flop_rate(case.intensity, base.flop_per_s, links))
        )
    return tuple(modelled_cases)


class _LackError(Exception):
    """Something that the model needs and the reports do not have."""


def _measure_link(requested_link: AskedLink, times: _Times) -> Link:
    seconds = sum(times.range_seconds(name, requested_link.clock) for name in requested_link.ranges)
    size = (
        requested_link.bytes
        if isinstance(requested_link.bytes, int | float)
        else times.bytes_moved(requested_link.bytes)
    )
    return Link(requested_link.name, size, seconds, size / seconds)


class _Times:
    """Times and bytes of an iteration, from the tables of one case."""

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]], iteration: str | None) -> None:
        self._tables = tables
        self._iteration = iteration

    def range_seconds(self, name: str, clock: Clock) -> float:
        """Seconds that the ranges of a name take in an iteration."""
        median_and_calls = self._median_ns_and_calls(name, clock)
        if median_and_calls is None:
            gpu_work_text = "with work of the GPU " if clock == "gpu" else ""
            raise _LackError(f"no NVTX range {gpu_work_text}is called {name!r}")
        median, calls = median_and_calls
        if median <= 0:
            raise _LackError(f"the NVTX range {name!r} takes no time")
        return median * _NS * calls / (self._iteration_count() or calls)

    def bytes_moved(self, measured: Measured) -> float:
        """Bytes of copies between host and GPU, or of collectives, in an iteration."""
        rows = self._tables.get("gpu_summary" if measured == "copies" else "communication", ())
        if measured == "copies":
            rows = [r for r in rows if r.get("kind") == "memcpy" and ("HtoD" in r["name"] or "DtoH" in r["name"])]
        sizes = [row.get("total_bytes") for row in rows]
        iterations = self._iteration_count()
        if not iterations:
            raise _LackError(f"the bytes of {measured} are those of the whole run: name the range that is an iteration")
        if not sizes or any(size is None for size in sizes):
            raise _LackError(f"the reports do not record the bytes of {measured}: give a formula")
        return float(sum(size for size in sizes if size is not None)) / iterations

    def iteration_s(self) -> float | None:
        """Seconds of an iteration, by the CPU's clock."""
        median_and_calls = self._median_ns_and_calls(self._iteration, "cpu") if self._iteration else None
        return median_and_calls[0] * _NS if median_and_calls else None

    def _iteration_count(self) -> int:
        return sum(row.get("calls") or 0 for row in self._range_rows(self._iteration, "cpu")) if self._iteration else 0

    def _range_rows(self, name: str | None, clock: Clock) -> list[Mapping[str, Any]]:
        table = self._tables.get("nvtx_gpu_summary" if clock == "gpu" else "nvtx_summary", ())
        return [row for row in table if row.get("name") == name and row.get("calls")]

    def _median_ns_and_calls(self, name: str | None, clock: Clock) -> tuple[float, int] | None:
        """The median time (ns) of a range, of several reports their mean by calls; and its calls."""
        rows = self._range_rows(name, clock)
        total, median = ("projected_ns", "projected_med_ns") if clock == "gpu" else ("total_ns", "med_ns")
        calls = sum(row["calls"] for row in rows)
        each = [row[median] if row.get(median) is not None else (row.get(total) or 0.0) / row["calls"] for row in rows]
        if not calls:
            return None
        return sum(value * row["calls"] for value, row in zip(each, rows, strict=True)) / calls, calls
