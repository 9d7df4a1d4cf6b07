"""nvprof's summaries: with the Type column (since CUDA 9) and without, GPU, API, OpenACC, OpenMP, NVTX.

NVTX ranges of CUDA 5 to 7 have a line of their own, above the GPU work of the range:

    NVTX range "step" (id = 1)                                CUDA 5.0: each time that it was open
    NVTX range "step" (2 times, total time: 50.500us)         later: all times
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.nvprof.vocabulary import Columns, exact_to_a_ns, is_call, openacc_kind
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import Quantity, duration, parse_integer, percent
from nsw.tables.names import api_name_without_version, gpu_operation_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.text.state import Sink, Stream

__all__ = [
    "API",
    "HEADER",
    "ROW",
    "SECTIONS",
    "TIME",
    "Figures",
    "SummaryTable",
    "add_openacc",
    "add_summary_row",
    "calls_of",
    "figures_of",
    "nvtx_name",
    "take_old_range",
]


Figures: TypeAlias = "tuple[int | float | None, ...]"  # in the order of `_FIGURES`

API: Final = re.compile(r"cu(?:da)?[A-Z\d]\w*\Z")
SECTIONS: Final = meaning_by_word("nvprof labels")
_FIGURES: Final = (
    "calls", "time_pct", "time_pct_pm", "total_ns", "total_ns_pm", "avg_ns", "avg_ns_pm", "min_ns", "min_ns_pm",
    "max_ns", "max_ns_pm",
)  # fmt: skip
_CORRELATION: Final = re.compile(r"\s+\[\d+\]\Z")
_NO_FIGURE: Final = (None, None)
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
    minimum: Quantity | None,
    maximum: Quantity | None,
) -> Figures:
    """Return the figures of a row: calls, then share and times, each followed by its uncertainty.

    nvprof counts in whole ns, so what is printed to the ns is exact; but it cuts its means to whole ns.

    Args:
        share: The share of the section's time (%).
        calls: The number of calls.
        total: The total time (ns).
        mean: The mean time (ns).
        minimum: The least time (ns).
        maximum: The greatest time (ns).
    """
    width = None if mean is None else max(mean.pm or 0.0, _MEAN_WIDTH)
    mean_of = None if mean is None else mean.value
    return (
        calls,
        *(share or _NO_FIGURE),
        *_value_and_error(total),
        mean_of,
        width,
        *_value_and_error(minimum),
        *_value_and_error(maximum),
    )


def _value_and_error(time: Quantity | None) -> tuple[float | None, float | None]:
    return _NO_FIGURE if time is None else (time.value, exact_to_a_ns(time.pm))


def calls_of(host: str, device: str) -> int | None:
    """The number of launches from host and device (dynamic parallelism) together; None if `host` is no count."""
    launched = parse_integer(host)
    return None if launched is None else launched + (parse_integer(device) or 0)


def add_summary_row(stream: Stream, number: int, figures: Figures, name: str) -> OpenName | None:
    """Add a row to the table of its section; returns the name where the next line may continue it, else None.

    Args:
        stream: Takes the row, and names its process, device and section.
        number: The number of the line, from 1.
        figures: The figures, as `figures_of` returns them.
        name: The name of the kernel, call or range.
    """
    if stream.section == "gpu" and name.startswith("cu") and API.match(name) and is_call(name):
        stream.sink.warn("CUDA calls without the line that begins them: counted as API calls", number)
        stream.section = "api"
    if stream.in_nvtx and stream.section == "gpu":
        _add_gpu_work_to_nvtx_range(stream, figures)
        return None
    if (table := _section_table(stream)) is None:
        return None
    shared = _shared_cells(stream, name)
    going_on = OpenName(shared[-1]) if stream.section == "gpu" and not is_closed(shared[-1]) else None
    table.append((*shared[:-1], going_on or shared[-1]), figures)
    if stream.section == "range":
        stream.nvtx_range = name
    return going_on


def add_openacc(sink: Sink, origin: tuple[int | None, ...], name: str, figures: Figures) -> None:
    """Add a row to the table of OpenACC events, from a trace that was summed instead of from a printed summary.

    Args:
        sink: Takes the row.
        origin: Block, rank and process id of the row.
        name: The name of the event.
        figures: The figures, as `figures_of` returns them.
    """
    _section_columns(sink, "openacc").append((*origin, openacc_kind(name), name), figures)


def _section_table(stream: Stream) -> Columns | None:
    """The table of the section, None where there is none."""
    section = stream.section
    if stream.in_nvtx and section != "range":
        return None
    if section in {"gpu", "api"}:
        stream.filled.add(section)
    if section not in _TABLES or (section in _OF_THE_PROCESS and _is_repeated(stream, section)):
        return None
    stream.sink.summed.add((section, stream.origin_values()))
    return _section_columns(stream.sink, section)


def _is_repeated(stream: Stream, section: str) -> bool:
    """Whether rows of the section stood below another GPU before: --print-summary-per-gpu prints them below each."""
    below = stream.block, stream.device
    first = stream.directives.get(section)
    if first is None or first[0] != stream.block:
        stream.directives[section] = below
        return False
    return first != below


def _section_columns(sink: Sink, section: str) -> Columns:
    table, *columns = _TABLES[section]
    return sink.table(table, ("block", "rank", "pid", *columns), _FIGURES)


def _shared_cells(stream: Stream, name: str) -> tuple[Any, ...]:
    """What all rows of this name and section share, the name as it is kept at their end."""
    origin = stream.origin_values()
    match stream.section:
        case "gpu":
            plain = name_without_correlation(name)
            return (*origin, stream.device, gpu_operation_kind(plain), plain)
        case "api":
            return (*origin, api_name_without_version(name))
        case "openacc":
            return (*origin, openacc_kind(name), name)
        case "range":
            return (*origin, stream.nvtx_domain, name)
    return (*origin, name)


def name_without_correlation(kernel: str) -> str:
    """The name of a kernel, without the correlation id of its launch."""
    return _CORRELATION.sub("", kernel) if kernel.endswith("]") else kernel


def is_closed(name: str) -> bool:
    """Whether all brackets of a name are closed, or it was cut short by who pasted it."""
    if name.endswith(("...", "\u2026")):
        return True
    return name.count("<") <= name.count(">") and name.count("(") <= name.count(")")


def _add_gpu_work_to_nvtx_range(stream: Stream, figures: Figures) -> None:
    """Add GPU work to the row of the NVTX range that was read last; outside of a range nothing is added."""
    if stream.nvtx_range is None:
        return
    sums = stream.sink.rows.setdefault("nvtx_gpu_summary", [])
    key = {**stream.origin(), "domain": stream.nvtx_domain, "name": stream.nvtx_range}
    if not sums or any(sums[-1].get(k) != v for k, v in key.items()):
        sums.append({**key, "gpu_ops": 0, "gpu_ns": 0.0})
    sums[-1]["gpu_ops"] += figures[_FIGURES.index("calls")] or 0
    sums[-1]["gpu_ns"] += figures[_FIGURES.index("total_ns")] or 0.0


def nvtx_name(text: str) -> str | None:
    """The text of an NVTX domain; nvprof's "<unnamed>" is the default one."""
    return None if text == _UNNAMED else text


TIME = r"[\d.]+(?:[eE][-+]?\d+)?[num]?s"
# two columns of calls where kernels launched kernels
HEADER = re.compile(
    r"\s*(Type\s+)?Time ?\(%\)\s+Time\s+Calls(?:\s+\(host\)\s+Calls\s+\(device\))?\s+Avg\s+Min\s+Max\s+Name\s*\Z"
)
ROW = re.compile(
    rf"\s*(?:(?P<label>[A-Z][A-Za-z ]{{2,30}}(?:\((?:excl|incl)\))?):\s*)?(?P<pct>\d+(?:\.\d+)?)%\s+(?P<total>{TIME})"
    rf"\s+(?P<calls>\d+)(?:\s+(?P<device_calls>\d+|-))?\s+(?P<avg>{TIME})\s+(?P<min>{TIME})\s+(?P<max>{TIME})\s+(?P<name>\S.*)"
)
# With --normalized-time-unit a line of units follows the titles, and the rows have none.
_UNITS = re.compile(r"\s*%\s+([num]?s)\s+([num]?s)\s+([num]?s)\s+([num]?s)\s*\Z")
_UNITLESS_ROW = re.compile(ROW.pattern.replace("%", "", 1).replace(TIME, r"[\d.]+(?:[eE][-+]?\d+)?"))
# As nvprof of CUDA 5 wrote it: a share without its sign.
_BARE_ROW = re.compile(ROW.pattern.replace("%", "", 1))
_ROWISH = re.compile(r"\s*(?:[A-Z][A-Za-z ]{2,30}(?:\((?:excl|incl)\))?:\s*)?\d{1,3}\.\d\d?%(?:\s|\Z)")
_SHARELESS = re.compile(rf"(?<!\s)\s+{TIME}\s+\d+\s+{TIME}\s+{TIME}\s")  # a row without its share
_LABELLED = re.compile(r"\s*(GPU activities|API calls|Range|Open(?:ACC|MP) \((?:excl|incl)\)):\s*\S")
_LABEL_ALONE = re.compile(r"\s*(GPU activities|API calls):\s*\Z")
# a label that lost a word or its colon; of which section the rows below it are is known by what is left
_UNLABELLED = re.compile(rf"\s*(?P<label>[A-Za-z][\w() ]{{0,30}}:?)\s+\d+(?:\.\d+)?%\s+{TIME}\s+\d+\s+{TIME}\s")
_LEFT_OF_LABELS = {"GPU:": "gpu", "GPU": "gpu", "activities:": "gpu", "API:": "api", "API": "api", "calls:": "api"}
_MOST_CONTINUATIONS = 8
_TIMES = 3


class SummaryTable:
    """One summary table being read; follows the labels of the Type column."""

    def __init__(self, stream: Stream, *, typed: bool, number: int) -> None:
        self._stream = stream
        self._typed = typed
        self.number = number
        self.rows = 0
        self._units: Sequence[str | None] = (None,) * 4  # of total, mean, least, greatest, where rows have none
        self._open: OpenName | None = None  # of the row before
        self._continued = ""
        self._continuations = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row, or a line that a name goes on in."""
        if (match := self._match_row(text)) is not None:
            label, pct, total, calls, device_calls, avg, low, high, name = match.groups()
            times = map(duration, (total, avg, low, high), self._units)
            figures = figures_of(percent(pct), calls_of(calls, device_calls or ""), *times)
        elif not self.rows and (units := _UNITS.match(text)) is not None:
            self._units = units.groups()
            return True
        elif self._typed and (alone := _LABEL_ALONE.match(text)) is not None:  # its rows are on the lines below
            self._stream.section = SECTIONS[alone[1]]
            return True
        elif (labelled := _LABELLED.match(text)) is not None or _ROWISH.match(text):
            return self._report_damaged_row(number, SECTIONS[labelled[1]] if labelled else None)
        elif (torn := _UNLABELLED.match(text)) is not None:
            return self._report_damaged_row(number, _LEFT_OF_LABELS.get(torn["label"].strip(), "other"))
        elif _is_shareless(text):
            return self._report_damaged_row(number, None)
        else:
            return self._take_continuation(text)
        self.rows += 1
        if label is not None:
            self._stream.section = SECTIONS.get(label, "other")
        elif self._stream.section is None:
            self._stream.section = "api" if API.match(name) else "gpu"
        self._open = add_summary_row(self._stream, number, figures, name.rstrip())
        self._continued = "" if self._open is None else self._open.text
        self._continuations = 0
        return True

    def _report_damaged_row(self, number: int, section: str | None) -> bool:
        """A row that is damaged; what follows is of its section all the same, where that is known."""
        self._stream.sink.fault("a row of a summary is cut short or damaged", number)
        self._stream.section = section or self._stream.section
        self._open = None
        return True

    def _match_row(self, text: str) -> re.Match[str] | None:
        if self._units[0] is not None:
            return _UNITLESS_ROW.match(text)
        return ROW.match(text) or (None if self._typed else _BARE_ROW.match(text))

    def _take_continuation(self, text: str) -> bool:
        """A name that a terminal or a mail broke over lines: joined when that closes its brackets."""
        name = self._open
        if name is None or not text.strip() or text.startswith("=") or self._continuations >= _MOST_CONTINUATIONS:
            self._open = None if text.startswith("=") else name
            return False
        if self._continuations == 0 and HEADER.match(text):
            self._open = None
            return False
        self._continuations += 1
        self._continued += text.rstrip()
        if is_closed(self._continued):
            name.text = self._continued
            self._open = None
        return True


def _is_shareless(text: str) -> bool:
    """Whether `_SHARELESS` is in it, of which each of three words ends so."""
    return sum(map(str.endswith, text.split(), repeat("s"))) >= _TIMES and _SHARELESS.search(text) is not None


_RANGE: Final = re.compile(
    r'\s*NVTX range (?:"(?P<name>.*)"|(?P<unnamed><unnamed>))'
    rf" \((?:(?P<times>\d+) times|id = \d+)(?:, total time: (?P<total>{TIME}))?\)\s*\Z"
)
_RANGEISH: Final = re.compile(r"\s*NVTX range \S")


def take_old_range(stream: Stream, number: int, text: str) -> bool:
    """Whether the line names an NVTX range; if so, the rows below belong to it.

    A damaged line counts as one, is reported, and the rows below are left out.

    Args:
        stream: The stream of the line, which is changed; it takes the row of the range, if the line holds its time.
        number: The number of the line, from 1.
        text: The line.
    """
    match = _RANGE.match(text)
    if match is None:
        if not _RANGEISH.match(text):
            return False
        stream.sink.fault("a line of an NVTX range is cut short or damaged: what is below it is left out", number)
        stream.nvtx_range = stream.table = None
        return True
    name = match["name"] if match["unnamed"] is None else match["unnamed"]
    stream.nvtx_range, stream.section, stream.table = name, "gpu", None
    total = duration(match["total"]) if match["total"] else None
    calls = parse_integer(match["times"]) if match["times"] else 1
    if total is not None:
        columns = (*stream.origin_values(), stream.nvtx_domain, name)
        _section_columns(stream.sink, "range").append(columns, figures_of(None, calls, total, None, None, None))
    return True
