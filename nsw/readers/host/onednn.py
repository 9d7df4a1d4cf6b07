"""What oneDNN prints with ONEDNN_VERBOSE: a line a primitive, amid the output of the program that uses it.

Its columns are told by a line of its own (`template:operation,engine,primitive,...`, since oneDNN 2.2); before that
they follow from how many there are. The lines of oneDNN Graph are left out: its primitives have lines too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import lines_by_rank, text_lines
from nsw.readers.text.quantities import Quantity, duration
from nsw.tables import Row

__all__ = ["read", "sniff"]


_MARK: Final = re.compile(r"(?:onednn|dnnl|mkldnn)_verbose,")
_MARKS: Final = ("onednn_verbose,", "dnnl_verbose,", "mkldnn_verbose,")
_VERSION: Final = re.compile(r"\b(?:oneDNN|DNNL|MKL-DNN) v?(\d[\w.]*)")
_ISA: Final = re.compile(r"(?:\bisa:|Detected ISA is )(.+)")
_THREADS: Final = re.compile(r"\bnthr:(\d+)")
_TEMPLATE: Final = re.compile(r"\b(?:prim_)?template:(.+)")
_FORMAT: Final = re.compile(r"v\d+\Z")  # of the lines
_TIMESTAMP: Final = re.compile(r"\d+\.\d+\Z")
_COMPONENTS: Final = frozenset({"primitive", "graph", "ukernel", "common"})
_CREATION: Final = "create:cache_miss"
_SHAPES: Final = ("operation", "engine", "primitive", "implementation", "prop_kind", "memory_descriptors", "attributes",
                  "auxiliary", "problem_desc", "exec_time")  # fmt: skip
# what versions without a template print, by the number of their columns
_OLD: Final = {
    10: _SHAPES,  # since DNNL 1.2
    9: tuple(name for name in _SHAPES if name != "attributes"),  # DNNL 1.1
    8: tuple(name for name in _SHAPES if name not in {"attributes", "engine"}),  # MKL-DNN to 1.0
}
# the two memory formats of a reorder: `src:f32::blocked:abcd::f0`, `src_f32::blocked:abcd:f0`, `in:f32_oihw`
_FORMATS: Final = re.compile(r"(?:src|dst)[:_]\w{1,60}:\w{0,60}:blocked:(\w+)|(?:in|out):[a-z]+\d+_(\w+)")
_AGAIN: Final = "run it again, with its output in a file that no other process writes to"


def sniff(sample: Sample) -> int:
    """By a line of the library's; less where it stands behind other output."""
    if sample.is_binary:
        return 0
    if any(mark in sample.text for mark in _MARKS):
        return 90 if _MARK.match(sample.text.lstrip()) else 78
    return 60 if sample.contains(*_MARKS) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `operator_rows`, a row a primitive, implementation and shape, the most expensive first, and `fact_rows`."""
    report = Report(str(path), tool="onednn", format="onednn")
    operators: list[Row] = []
    facts: list[Row] = []
    for rank, lines in lines_by_rank(text_lines(path)):
        log = _ProcessLog()
        for number, text in lines:
            marks = list(_MARK.finditer(text))
            for mark, cut in zip_longest(marks, marks[1:]):  # a line that another one cuts ends where that begins
                log.read_verbose_line(number, text[mark.end() : cut and cut.start()].rstrip(), is_whole=cut is None)
        report.errors(
            ["a line of oneDNN is cut short or damaged and is left out"] * len(log.torn),
            f"{len(log.torn)} lines of oneDNN in all are cut short or damaged",
            lines=log.torn,
            fix=_AGAIN,
        )
        report.tool_version = report.tool_version or log.version
        operators += [row | {"rank": rank} for row in log.operator_rows()]
        facts += [row | {"rank": rank} for row in log.fact_rows()]
    if options.wants("operators"):
        report.tables["operators"] = operators
    if options.wants("facts") and facts:
        report.tables["facts"] = facts
    return report


@dataclass(slots=True)
class _ExecutionTotals:
    """The executions of one primitive."""

    calls: int = 0
    ns: float = 0.0
    pm: float = 0.0

    def add(self, time: Quantity) -> None:
        self.calls += 1
        self.ns += time.value
        self.pm += time.pm or 0.0


@dataclass(slots=True)
class _ProcessLog:
    """The lines of one process."""

    torn: list[int] = field(default_factory=list)
    version: str | None = None
    _texts: dict[str, str] = field(default_factory=dict)
    _threads: int | None = None
    _template: tuple[str, ...] = ()
    _sums: dict[tuple[str, str, str, str], _ExecutionTotals] = field(default_factory=dict)
    _created: _ExecutionTotals = field(default_factory=_ExecutionTotals)

    def read_verbose_line(self, number: int, text: str, *, is_whole: bool) -> None:
        """Take what stands behind the mark of a line."""
        cells = text.split(",")
        if _FORMAT.match(cells[0]):
            cells = cells[1:]
        if cells and _TIMESTAMP.match(cells[0]):
            cells = cells[1:]
        component = cells[0] if cells and cells[0] in _COMPONENTS else None
        cells = cells[1:] if component is not None else cells
        if not cells or cells[0] == "info":
            self._read_info_line(text, component)
        elif component in {None, "primitive"} and (cells[0] == "exec" or cells[0] == _CREATION):
            time = self._add_execution(cells) if is_whole else None
            if time is None:
                self.torn.append(number)

    def _read_info_line(self, text: str, component: str | None) -> None:
        if (match := _TEMPLATE.search(text)) is not None:
            if component != "graph":
                self._template = tuple(name for name in match[1].split(",") if name != "timestamp")
            return
        if (match := _VERSION.search(text)) is not None:
            self.version = match[1]
        if (match := _ISA.search(text)) is not None:
            self._texts["cpu_isa"] = match[1]
        if (match := _THREADS.search(text)) is not None:
            self._threads = int(match[1])

    def _add_execution(self, cells: Sequence[str]) -> Quantity | None:
        """Add one execution or creation; None where the line is not whole."""
        names = self._template if len(self._template) == len(cells) else _OLD.get(len(cells), ())
        row = dict(zip(names, cells, strict=False))
        time = duration(row.get("exec_time", ""), "ms")
        if time is None or not row.get("primitive"):
            return None
        if row["operation"] == _CREATION:
            self._created.add(time)
        else:
            key = (
                _operator_name(row),
                row.get("engine", "cpu"),
                row.get("implementation", ""),
                row.get("problem_desc", ""),
            )
            self._sums.setdefault(key, _ExecutionTotals()).add(time)
        return time

    def operator_rows(self) -> list[Row]:
        """The rows, the most expensive first."""
        several = sorted(self._sums.items(), key=lambda item: -item[1].ns)
        return [_operator_row(*key, times) for key, times in several]

    def fact_rows(self) -> list[Row]:
        """What the library says of itself, and what making primitives took."""
        facts: list[Row] = [{"key": "onednn_version", "text": self.version}] if self.version else []
        facts += [{"key": key, "text": text} for key, text in self._texts.items()]
        if self._threads is not None:
            facts.append({"key": "threads", "value": float(self._threads)})
        if self._created.calls:
            facts.append({"key": "primitives_created", "value": float(self._created.calls)})
            facts.append({"key": "primitive_creation_s", "value": self._created.ns / 1e9,
                          "value_pm": self._created.pm / 1e9, "unit": "s"})  # fmt: skip
        return facts


def _operator_name(row: Row) -> str:
    """`convolution forward_training`; of a reorder the formats that it goes between."""
    kind: str = row["primitive"]
    if kind == "reorder":
        formats = [blocked or plain for blocked, plain in _FORMATS.findall(row.get("memory_descriptors", ""))]
        return f"{kind} {formats[0]} to {formats[1]}" if len(formats) == 2 else kind
    passed = row.get("prop_kind", "undef")
    return kind if passed == "undef" else f"{kind} {passed}"


def _operator_row(name: str, engine: str, implementation: str, problem: str, times: _ExecutionTotals) -> Row:
    """A row of `operator_rows`: CPU time where the engine is the CPU, else the device's."""
    row: Row = {"name": name, "calls": times.calls, "source": implementation, "input_shapes": problem}
    if engine.startswith("cpu"):
        columns, average = ("self_cpu_ns", "cpu_ns"), "cpu_avg_ns"
    else:
        row["device_kind"] = engine.partition(":")[0].upper()
        columns, average = ("self_device_ns", "device_ns"), "device_avg_ns"
    row |= dict.fromkeys(columns, times.ns) | {f"{column}_pm": times.pm for column in columns}
    return row | {average: times.ns / times.calls, f"{average}_pm": times.pm / times.calls}
