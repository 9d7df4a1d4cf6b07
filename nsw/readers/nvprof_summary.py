"""nvprof's summary tables as text: with the Type column (since CUDA 9) and without, GPU, API, OpenACC, NVTX."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nsw.readers.nvprof_activity import is_call
from nsw.readers.nvprof_times import exact_to_a_ns
from nsw.readers.quantities import Quantity, duration, percent, whole
from nsw.tables.kinds import gpu_kind
from nsw.tables.names import api_name

if TYPE_CHECKING:
    from nsw.readers.nvprof_state import Sink, Stream

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
_SHARE = re.compile(r"\d+(?:\.\d+)?%")
_TIME = re.compile(TIME)
_ROWISH = re.compile(r"\s*(?:[A-Z][A-Za-z ]{2,30}(?:\((?:excl|incl)\))?:\s*)?\d{1,3}\.\d\d?%(?:\s|\Z)")
_SHARELESS = re.compile(rf"(?<!\s)\s+{TIME}\s+\d+\s+{TIME}\s+{TIME}\s")  # a row without its share
_LABELLED = re.compile(r"\s*(GPU activities|API calls|Range|Open(?:ACC|MP) \((?:excl|incl)\)):\s*\S")
# a label that lost a word or its colon; of which section the rows below it are is known by what is left
_UNLABELLED = re.compile(rf"\s*(?P<label>[A-Za-z][\w() ]{{0,30}}:?)\s+\d+(?:\.\d+)?%\s+{TIME}\s+\d+\s+{TIME}\s")
_LEFT_OF_LABELS = {"GPU:": "gpu", "GPU": "gpu", "activities:": "gpu", "API:": "api", "API": "api", "calls:": "api"}
_API = re.compile(r"cu(?:da)?[A-Z\d]\w*\Z")
_CORRELATION = re.compile(r"\s+\[\d+\]\Z")
_MOST_CONTINUATIONS = 8

SECTIONS = {
    "GPU activities": "gpu",
    "API calls": "api",
    "Range": "range",
    "OpenACC (excl)": "openacc",
    "OpenACC (incl)": "openacc",
    "OpenMP (excl)": "openmp",
    "OpenMP (incl)": "openmp",
}
_UNNAMED = "<unnamed>"


def statistics(
    pct: Quantity | None,
    total: Quantity | None,
    calls: int | None,
    avg: Quantity | None,
    low: Quantity | None,
    high: Quantity | None,
) -> dict[str, Any]:
    """The columns of a summary row with their twins.

    nvprof counts in whole ns, so what is printed to the ns is exact; but it cuts its means to whole ns.
    """
    row: dict[str, Any] = {"calls": calls}
    if pct is not None:
        row["time_pct"], row["time_pct_pm"] = pct
    for column, quantity in (("total_ns", total), ("min_ns", low), ("max_ns", high)):
        if quantity is not None:
            row[column], row[column + "_pm"] = quantity.value, exact_to_a_ns(quantity.pm)
    if avg is not None:
        row["avg_ns"], row["avg_ns_pm"] = avg.value, max(avg.pm or 0.0, 1.0)
    return row


class SummaryTable:
    """One summary table being read; follows the labels of the Type column."""

    def __init__(self, sink: Sink, stream: Stream, *, typed: bool, number: int) -> None:
        self._sink = sink
        self._stream = stream
        self._typed = typed
        self.number = number
        self.rows = 0
        self._units: tuple[str, ...] | None = None  # of total, mean, least, greatest, where rows have none
        self._last: dict[str, Any] | None = None  # whose name may go on in the next line
        self._continued = ""
        self._continuations = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row, or a line that a name goes on in."""
        row = _plain_row(text)
        if row is not None:
            label, (statistics_, name) = None, row
        elif (found := self._row(text)) is not None:
            label, pct, total, calls, device_calls, avg, low, high, name = found.groups()
            times = list(map(duration, (total, avg, low, high), self._units or (None,) * 4))
            statistics_ = statistics(percent(pct), times[0], calls_of(calls, device_calls or ""), *times[1:])
        elif not self.rows and (units := _UNITS.match(text)) is not None:
            self._units = units.groups()
            return True
        elif (labelled := _LABELLED.match(text)) is not None or _ROWISH.match(text):
            self._sink.fault("a row of a summary is cut short or damaged", number, "copy the report again")
            if labelled is not None:  # what follows is of its section all the same
                self._stream.section = SECTIONS[labelled[1]]
            self._last = None
            return True
        elif (torn := _UNLABELLED.match(text)) is not None:
            self._sink.fault("a row of a summary is cut short or damaged", number, "copy the report again")
            self._stream.section = _LEFT_OF_LABELS.get(torn["label"].strip(), "other")
            self._last = None
            return True
        elif _SHARELESS.search(text):
            self._sink.fault("a row of a summary is cut short or damaged", number, "copy the report again")
            self._last = None
            return True
        else:
            return self._take_continuation(text)
        self.rows += 1
        if label is not None:
            self._stream.section = SECTIONS.get(label, "other")
        elif self._stream.section is None:
            self._stream.section = "api" if _API.match(name) else "gpu"
        self._last = add_summary_row(self._sink, self._stream, number, statistics_, name.rstrip())
        self._continuations = 0
        return True

    def _row(self, text: str) -> re.Match[str] | None:
        if self._units is not None:
            return _UNITLESS_ROW.match(text)
        return ROW.match(text) or (None if self._typed else _BARE_ROW.match(text))

    def _take_continuation(self, text: str) -> bool:
        """A name that a terminal or a mail broke over lines: joined when that closes its brackets."""
        if self._last is None or not text.strip() or text.startswith("=") or self._continuations >= _MOST_CONTINUATIONS:
            self._last = None if text.startswith("=") else self._last
            return False
        if self._continuations == 0:
            self._continued = self._last["name"]
            if _is_closed(self._continued) or HEADER.match(text):
                self._last = None
                return False
        self._continuations += 1
        self._continued += text.rstrip()
        if _is_closed(self._continued):
            self._last["name"] = self._continued
            self._last = None
        return True


def _plain_row(text: str) -> tuple[dict[str, Any], str] | None:
    """Statistics and name of a row without label and calls from the device: what `ROW` finds, sooner."""
    cells = text.split(None, 6)
    if len(cells) < 7 or cells[0][-1] != "%" or not (cells[2].isascii() and cells[2].isdigit()):
        return None
    pct, total, avg, low, high = _share(cells[0]), *map(_time, (cells[1], *cells[3:6]))
    if pct is None or total is None or avg is None or low is None or high is None:
        return None
    row = {
        "calls": whole(cells[2]),
        "time_pct": pct.value,
        "time_pct_pm": pct.pm,
        "total_ns": total.value,
        "total_ns_pm": total.pm,
        "min_ns": low.value,
        "min_ns_pm": low.pm,
        "max_ns": high.value,
        "max_ns_pm": high.pm,
        "avg_ns": avg.value,
        "avg_ns_pm": max(avg.pm or 0.0, 1.0),
    }
    return row, cells[6]


@lru_cache(4096)
def _share(cell: str) -> Quantity | None:
    return percent(cell) if _SHARE.fullmatch(cell) else None


@lru_cache(16384)
def _time(cell: str) -> Quantity | None:
    """A time with the twin that `exact_to_a_ns` leaves."""
    found = duration(cell) if _TIME.fullmatch(cell) else None
    return found and Quantity(found.value, exact_to_a_ns(found.pm))


def calls_of(host: str, device: str) -> int | None:
    """Launches from the host and, with dynamic parallelism, from the device, together."""
    launched = whole(host)
    return None if launched is None else launched + (whole(device) or 0)


def _is_closed(name: str) -> bool:
    if name.endswith(("...", "\u2026")):  # cut short by who pasted it
        return True
    return name.count("<") <= name.count(">") and name.count("(") <= name.count(")")


def add_summary_row(sink: Sink, stream: Stream, number: int, row: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Put a row where its section belongs; the row as it stands in the table, or None when it is in none."""
    if stream.section == "gpu" and _API.match(name) and is_call(name):
        sink.warn("CUDA calls without the line that begins them: counted as API calls", number)
        stream.section = "api"
    section = stream.section
    if stream.in_nvtx:
        _add_nvtx_row(sink, stream, row, name)
        return None
    origin = stream.origin()
    if section in {"gpu", "api"}:
        stream.filled.add(section)
    if section == "gpu":
        if name.endswith("]"):
            name = _CORRELATION.sub("", name)
        row |= {**origin, "device": stream.device, "kind": gpu_kind(name), "name": name}
        sink.add("gpu_summary", row)
        return row
    if section == "api":
        sink.add("api_summary", {**origin, "name": api_name(name), **row})
    elif section == "openacc":
        sink.add("openacc_summary", {**origin, "name": name, "kind": openacc_kind(name), **row})
    elif section == "openmp":
        sink.add("openmp_summary", {**origin, "name": name, **row})
    elif section == "range":
        _add_nvtx_row(sink, stream, row, name)
    return None


def openacc_kind(name: str) -> str:
    """compute, data or other, by the event's name."""
    event = name.partition("@")[0].partition("[")[0]  # less the construct of --print-openacc-constructs
    if event in {"acc_compute_construct", "acc_enqueue_launch"}:
        return "compute"
    data = ("data", "upload", "download", "alloc", "create", "delete", "update")
    return "data" if any(word in event for word in data) else "other"


def _add_nvtx_row(sink: Sink, stream: Stream, row: dict[str, Any], name: str) -> None:
    origin = stream.origin()
    if stream.section == "range":
        sink.add("nvtx_summary", {**origin, "domain": stream.nvtx_domain, "name": name, **row})
        stream.nvtx_range = name
    elif stream.section == "gpu" and stream.nvtx_range is not None:
        sums = sink.rows.setdefault("nvtx_gpu_summary", [])
        key = {**origin, "domain": stream.nvtx_domain, "name": stream.nvtx_range}
        if not sums or any(sums[-1].get(k) != v for k, v in key.items()):
            sums.append({**key, "gpu_ops": 0, "gpu_ns": 0.0})
        sums[-1]["gpu_ops"] += row["calls"] or 0
        sums[-1]["gpu_ns"] += row.get("total_ns") or 0.0


def nvtx_name(text: str) -> str | None:
    """The text of an NVTX domain; nvprof's "<unnamed>" is the default one."""
    return None if text == _UNNAMED else text
