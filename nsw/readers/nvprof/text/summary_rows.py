"""Rows of nvprof's summaries, from text and CSV: their figures, and the table that they go to by their section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.cuda_calls import is_call
from nsw.readers.nvprof.openacc import openacc_kind
from nsw.readers.nvprof.text.numbers import OddRowsError, counts, shares, times
from nsw.readers.nvprof.text.times import exact_to_a_ns
from nsw.readers.text.quantities import whole
from nsw.tables.names import api_name, gpu_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.table_builder import Columns
    from nsw.readers.nvprof.text.state import Sink, Stream
    from nsw.readers.text.quantities import Quantity

Figures: TypeAlias = "tuple[int | float | None, ...]"  # in the order of `_FIGURES`

API: Final = re.compile(r"cu(?:da)?[A-Z\d]\w*\Z")
SECTIONS: Final = {
    "GPU activities": "gpu",
    "API calls": "api",
    "Range": "range",
    "OpenACC (excl)": "openacc",
    "OpenACC (incl)": "openacc",
    "OpenMP (excl)": "openmp",
    "OpenMP (incl)": "openmp",
}
_FIGURES: Final = (
    "calls", "time_pct", "time_pct_pm", "total_ns", "total_ns_pm", "avg_ns", "avg_ns_pm", "min_ns", "min_ns_pm",
    "max_ns", "max_ns_pm",
)  # fmt: skip
_CORRELATION: Final = re.compile(r"\s+\[\d+\]\Z")
_NOTHING: Final = (None, None)
_UNNAMED: Final = "<unnamed>"
# By section the table, and what its rows share beside where they come from and their name.
_TABLES: Final = {
    "gpu": ("gpu_summary", "device", "kind"),
    "api": ("api_summary",),
    "openacc": ("openacc_summary", "kind"),
    "openmp": ("openmp_summary",),
    "range": ("nvtx_summary", "domain"),
}
_OF_THE_PROCESS: Final = frozenset(("openacc", "openmp"))
_MEAN_WIDTH: Final = 1.0  # ns: nvprof cuts its means to whole ones


@dataclass(slots=True, eq=False)
class OpenName:
    """A name whose brackets are open: it may go on in the next line."""

    text: str

    def __str__(self) -> str:
        return self.text


def figures_of(
    share: Quantity | None,
    calls: int | None,
    total: Quantity | None,
    mean: Quantity | None,
    least: Quantity | None,
    most: Quantity | None,
) -> Figures:
    """The figures of a row with their twins.

    nvprof counts in whole ns, so what is printed to the ns is exact; but it cuts its means to whole ns.
    """
    width = None if mean is None else max(mean.pm or 0.0, _MEAN_WIDTH)
    mean_of = None if mean is None else mean.value
    return (calls, *(share or _NOTHING), *_exact(total), mean_of, width, *_exact(least), *_exact(most))


def _exact(time: Quantity | None) -> tuple[float | None, float | None]:
    return _NOTHING if time is None else (time.value, exact_to_a_ns(time.pm))


def calls_of(host: str, device: str) -> int | None:
    """Launches from the host and, with dynamic parallelism, from the device, together."""
    launched = whole(host)
    return None if launched is None else launched + (whole(device) or 0)


def add_summary_row(sink: Sink, stream: Stream, number: int, figures: Figures, name: str) -> OpenName | None:
    """Put a row where its section belongs; the name of one in `gpu_summary` that may go on, else None."""
    if stream.section == "gpu" and _is_call(name):
        sink.warn("CUDA calls without the line that begins them: counted as API calls", number)
        stream.section = "api"
    if stream.in_nvtx and stream.section == "gpu":
        _add_work(sink, stream, figures)
        return None
    if (table := _table(sink, stream)) is None:
        return None
    shared = _shared(stream, name)
    going_on = OpenName(shared[-1]) if stream.section == "gpu" and not is_closed(shared[-1]) else None
    table.append((*shared[:-1], going_on or shared[-1]), figures)
    if stream.section == "range":
        stream.nvtx_range = name
    return going_on


def add_openacc(sink: Sink, where: tuple[int | None, ...], name: str, figures: Figures) -> None:
    """A row of the table of OpenACC events, that was not printed so; `where` is its block, rank and pid."""
    _columns(sink, "openacc").append((*where, openacc_kind(name), name), figures)


def add_range(sink: Sink, stream: Stream, name: str, figures: Figures) -> None:
    """A row of the table of ranges, that was not printed so."""
    _columns(sink, "range").append((*stream.where(), stream.nvtx_domain, name), figures)


def add_summary_rows(
    sink: Sink, stream: Stream, cells: Sequence[Sequence[str]], units: Sequence[str | None], names: Sequence[str]
) -> None:
    """The same of many rows of one section.

    Args:
        sink: What they go to.
        stream: Where they come from, and their section.
        cells: Share, calls, total, mean, least, greatest of each row, as printed.
        units: Of the share and the times; None where each cell has its own.
        names: Of each row; none of them goes on.

    Raises:
        OddRowsError: Nothing was done, since not all are plain.
    """
    known = {name: code for code, name in enumerate(dict.fromkeys(names))}
    is_gpu = stream.section == "gpu"
    if stream.section is None or stream.in_nvtx or "" in known or (is_gpu and any(map(_is_call, known))):
        raise OddRowsError
    share, calls, *printed = cells
    total, mean, least, most = (times(c, unit) for c, unit in zip(printed, units[1:], strict=True))
    widths = [_MEAN_WIDTH if pm is None or pm < _MEAN_WIDTH else pm for pm in mean[1]]
    figures = (counts(calls), *shares(share, units[0] or ""), *total, mean[0], widths, *least, *most)
    table = _table(sink, stream)
    if stream.section == "range":
        stream.nvtx_range = names[-1]
    if table is not None:
        table.extend([_shared(stream, name) for name in known], list(map(known.__getitem__, names)), figures)


def _is_call(name: str) -> bool:
    return name.startswith("cu") and API.match(name) is not None and is_call(name)


def _table(sink: Sink, stream: Stream) -> Columns | None:
    """The table of the section, None where there is none."""
    section = stream.section
    if stream.in_nvtx and section != "range":
        return None
    if section in {"gpu", "api"}:
        stream.filled.add(section)
    if section not in _TABLES or (section in _OF_THE_PROCESS and _is_repeated(stream, section)):
        return None
    sink.summed.add((section, stream.where()))
    return _columns(sink, section)


def _is_repeated(stream: Stream, section: str) -> bool:
    """Whether rows of the section stood below another GPU before: --print-summary-per-gpu prints them below each."""
    below = stream.block, stream.device
    first = stream.directives.get(section)
    if first is None or first[0] != stream.block:
        stream.directives[section] = below
        return False
    return first != below


def _columns(sink: Sink, section: str) -> Columns:
    table, *columns = _TABLES[section]
    return sink.table(table, ("block", "rank", "pid", *columns), _FIGURES)


def _shared(stream: Stream, name: str) -> tuple[Any, ...]:
    """What all rows of this name and section share, the name as it is kept at their end."""
    where = stream.where()
    match stream.section:
        case "gpu":
            plain = _CORRELATION.sub("", name) if name.endswith("]") else name
            return (*where, stream.device, gpu_kind(plain), plain)
        case "api":
            return (*where, api_name(name))
        case "openacc":
            return (*where, openacc_kind(name), name)
        case "range":
            return (*where, stream.nvtx_domain, name)
    return (*where, name)


def is_closed(name: str) -> bool:
    """Whether all brackets of a name are closed, or it was cut short by who pasted it."""
    if name.endswith(("...", "\u2026")):
        return True
    return name.count("<") <= name.count(">") and name.count("(") <= name.count(")")


def _add_work(sink: Sink, stream: Stream, figures: Figures) -> None:
    """GPU work of the range that was read last."""
    if stream.nvtx_range is None:
        return
    sums = sink.rows.setdefault("nvtx_gpu_summary", [])
    key = {**stream.origin(), "domain": stream.nvtx_domain, "name": stream.nvtx_range}
    if not sums or any(sums[-1].get(k) != v for k, v in key.items()):
        sums.append({**key, "gpu_ops": 0, "gpu_ns": 0.0})
    sums[-1]["gpu_ops"] += figures[_FIGURES.index("calls")] or 0
    sums[-1]["gpu_ns"] += figures[_FIGURES.index("total_ns")] or 0.0


def nvtx_name(text: str) -> str | None:
    """The text of an NVTX domain; nvprof's "<unnamed>" is the default one."""
    return None if text == _UNNAMED else text
