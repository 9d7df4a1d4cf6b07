"""Metrics and events of single units of a GPU (nvprof --aggregate-mode off) in the tables of metrics and events.

A row has the means of all units instead of one, and neither least nor greatest: each becomes a row, named like the
columns of a trace of them, `branch (0)`:

    4   branch (3 instances)           -           -  [        400        401        402 ]           -
    "Tesla V100 (0)","axpy(float*)",4,"branch (3 instances)",,,"400,401,402",
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text.csv import CsvTable, cells_of
from nsw.readers.nvprof.text.metric_rows import add_metric
from nsw.readers.text.quantities import whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.readers.nvprof.text.metrics import MetricTable
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

_SIGN: Final = " instances)"
_NAME: Final = r"(?P<name>[a-z_]\w*) \((?P<units>\d{1,6}) instances\)"
_VALUE: Final = re.compile(
    r"[A-Z][a-z]+ \(\d+\)|[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)(?:%|[KMGT]?B(?:/s)?)?|<OVERFLOW>|<INVALID>"
)
_ROW_HEAD: Final = re.compile(rf"\s*(?P<calls>\d+)\s+{_NAME}\s+")
_ROW_TAIL: Final = re.compile(r"\[(?P<values>[^\[\]]*)\](?:\s+-)?\s*\Z")
_LISTED: Final = re.compile(r"\s*\d.*\s\[ +\S")  # one that lost a word
_CSV_TAIL: Final = re.compile(rf'"{_NAME}"(?:,"(?P<text>[^"]*)")?,,,(?P<values>.*)\Z')
_BETWEEN: Final = re.compile(r'[\s,"]*')
_DAMAGED: Final = "a row of metrics is cut short or damaged"


def _row(text: str) -> Mapping[str, str] | None:
    """The parts of `1 name (4 instances)  What it is  -  -  [ 1 2 3 4 ]`."""
    head, tail = _ROW_HEAD.match(text), _ROW_TAIL.match(text, max(text.rfind("["), 0))
    if head is None or tail is None or not text[: tail.start()][-1:].isspace():
        return None
    parts = text[head.end() : tail.start()].rsplit(None, 2)  # a description, and no least and no most
    if parts[-2:] != ["-", "-"]:
        return None
    return {**head.groupdict(), **tail.groupdict(), "text": "".join(parts[:-2])}


class _Instances:
    """A table of metrics or events that may have such rows."""

    def __init__(self, sink: Sink, stream: Stream, table: MetricTable | CsvTable) -> None:
        self._sink = sink
        self._stream = stream
        self._table = table
        self._own = 0
        self.number = table.number

    @property
    def rows(self) -> int:
        """How many there were."""
        return self._own + self._table.rows

    def _add(self, number: int, kernel: str | None, calls: int | None, found: Mapping[str, str]) -> bool:
        values = _VALUE.findall(found["values"])
        between = _VALUE.sub("", found["values"])
        if kernel is None or calls is None or len(values) != int(found["units"]) or not _BETWEEN.fullmatch(between):
            return self._fault(number)
        for unit, value in enumerate(values):
            name = f"{found['name']} ({unit})"
            add_metric(self._sink, self._stream, kernel, name, found["text"] or None, calls, ["-", "-", value])
        self._own += 1
        return True

    def _fault(self, number: int) -> bool:
        self._sink.fault(_DAMAGED, number)
        return True


class TextInstances(_Instances):
    """One of text."""

    def __init__(self, sink: Sink, stream: Stream, table: MetricTable) -> None:
        super().__init__(sink, stream, table)
        self._metrics = table

    def take(self, number: int, text: str) -> bool:
        """Read a row of all units, or leave it to the table."""
        if _SIGN not in text and not ("[ " in text and _LISTED.match(text)):
            return self._table.take(number, text)
        found = _row(text)
        if found is None:
            return self._fault(number)
        return self._add(number, self._metrics.kernel, whole(found["calls"]), found)


class CsvInstances(_Instances):
    """One of CSV."""

    def __init__(self, sink: Sink, stream: Stream, table: CsvTable, titles: list[str], mark: str) -> None:
        super().__init__(sink, stream, table)
        self._mark = mark
        self._at = [titles.index(t) if t in titles else -1 for t in ("Device", "Kernel", "Invocations")]

    def take(self, number: int, text: str) -> bool:
        """Read a row of all units, or leave it to the table."""
        if _SIGN not in text:
            return self._table.take(number, text)
        found = _CSV_TAIL.search(text)
        cells = cells_of(text[: found.start()].strip(), self._mark) if found is not None else []
        if found is None or min(self._at) < 0 or max(self._at) >= len(cells):
            return self._fault(number)
        device, kernel, calls = (cells[at].strip() for at in self._at)
        self._stream.set_device(device)
        return self._add(number, kernel or None, whole(calls), found.groupdict())


def with_instances(
    sink: Sink, stream: Stream, table: RowTaker | None, header: tuple[str, list[str], str]
) -> RowTaker | None:
    """A table of CSV, that also takes such rows when it is one of metrics or events."""
    kind, titles, mark = header
    if kind != "metrics" or not isinstance(table, CsvTable):
        return table
    return CsvInstances(sink, stream, table, titles, mark)
