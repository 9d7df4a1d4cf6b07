"""rocprofv3's CSV of kernels: the trace (--kernel-trace), one row a dispatch, and the statistics (--stats), one a name.

The statistics of API calls, copies and domains have the same columns; their names tell them apart.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.lines import text_lines
from nsw.readers.text.quantities import number
from nsw.tables import Row
from nsw.tables.names import demangle, is_mangled_name, short_name
from nsw.wording import plural

__all__ = ["read", "sniff"]


_TRACE: Final = frozenset({"Kind", "Agent_Id", "Kernel_Name", "Start_Timestamp", "End_Timestamp"})
_STATISTICS: Final = frozenset({"Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage"})
_DISPATCH: Final = "KERNEL_DISPATCH"
_NO_KERNEL: Final = re.compile(r"(?:__)?hip[A-Z]\w*|hsa_\w+|(?:nccl|rccl)[A-Z]\w*|[A-Z]+(?:_[A-Z]+)+")
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_FIGURES: Final = meaning_by_word("rocprof statistics")
# of gpu_trace -> the column, or what it was called before; a work-group is a block, and its lanes have vector registers
_COLUMNS: Final = {
    "stream": ("Stream_Id",), "correlation": ("Correlation_Id",), "block_x": ("Workgroup_Size_X",),
    "block_y": ("Workgroup_Size_Y",), "block_z": ("Workgroup_Size_Z",), "registers": ("VGPR_Count",),
    "smem_bytes": ("LDS_Block_Size", "Group_Segment_Size"),
}  # fmt: skip


def sniff(sample: Sample) -> int:
    """Certain by the titles, which are the first line."""
    titles = frozenset() if sample.is_binary else frozenset(_cells_of_line(sample.text.partition("\n")[0]) or ())
    return 95 if titles >= _TRACE or titles >= _STATISTICS else 0


def read(path: Path, options: Options) -> Report:
    """Fill `gpu_summary`, and of a trace `gpu_trace`."""
    report = Report(str(path), tool="rocprofv3", format="rocprofv3-csv")
    lines = text_lines(path)
    titles = _cells_of_line(next(lines, (1, ""))[1]) or []
    is_trace = _TRACE.issubset(titles)
    if not is_trace and not _STATISTICS.issubset(titles):
        report.error("the titles are not those of rocprofv3", line=1)
        return report
    rows: list[Row] = []
    bad: list[int] = []
    others: list[int] = []
    for line, text in lines:
        cells = _cells_of_line(text)
        if cells == []:
            continue
        columns = dict(zip(titles, cells, strict=True)) if cells and len(cells) == len(titles) else {}
        if columns and (columns["Kind"] != _DISPATCH if is_trace else _NO_KERNEL.fullmatch(columns["Name"])):
            others.append(line)
            continue
        row = _dispatch_row(columns) if is_trace else _statistics_row(columns)
        if row is not None:
            rows.append(row)
        elif bad[-1:] != [line]:  # a very long line comes in pieces
            bad.append(line)
    wrong = "a row that does not have rocprofv3's columns was left out"
    report.errors([wrong] * len(bad), f"{len(bad)} rows in all were left out", lines=bad)
    if others:
        report.error(
            f"{plural(len(others), 'row')} of no kernel left out",
            line=others[0],
            fix="read the *_kernel_*.csv beside it",
        )
    if not is_trace:
        if options.wants("gpu_summary"):
            report.tables["gpu_summary"] = rows
        return report
    first = min((row["start_ns"] for row in rows), default=0)
    rows = sorted(({**row, "start_ns": row["start_ns"] - first} for row in rows), key=lambda row: row["start_ns"])
    if options.wants("gpu_trace"):
        report.tables["gpu_trace"] = rows
    if options.wants("gpu_summary"):
        _add_gpu_summary(rows, report)
    return report


def _cells_of_line(text: str) -> list[str] | None:
    """The cells of a line, without any of an empty one; None of a line that is no CSV."""
    try:
        return next(csv.reader([text.rstrip("\r\n")], strict=True), [])
    except csv.Error:
        return None


def _kernel_name_columns(printed: str) -> Row:
    name = printed.removesuffix(".kd")  # of the kernel's descriptor, behind mangled names
    plain = demangle(name)
    return {"name": plain, "short_name": short_name(plain), "mangled_name": name if is_mangled_name(name) else None}


def _first_integer_of_columns(columns: Mapping[str, str], *titles: str) -> int | None:
    text = next((columns[title] for title in titles if title in columns), "")
    return int(text) if _WHOLE.fullmatch(text) else None


def _dispatch_row(columns: Mapping[str, str]) -> Row | None:
    """A row of the trace, or None; the start is still of the machine's clock."""
    start = _first_integer_of_columns(columns, "Start_Timestamp")
    end = _first_integer_of_columns(columns, "End_Timestamp")
    if start is None or end is None or end < start or not columns["Kernel_Name"]:
        return None
    row: Row = {
        "kind": "kernel",
        **_kernel_name_columns(columns["Kernel_Name"]),
        "start_ns": start,
        "duration_ns": end - start,
    }
    row |= {column: _first_integer_of_columns(columns, *titles) for column, titles in _COLUMNS.items()}
    for axis in "xyz":  # rocprofv3 counts a grid in work-items
        items, block = _first_integer_of_columns(columns, f"Grid_Size_{axis.upper()}"), row[f"block_{axis}"]
        row[f"grid_{axis}"] = -(-items // block) if items is not None and block else None
    return row


def _statistics_row(columns: Mapping[str, str]) -> Row | None:
    calls = _first_integer_of_columns(columns, "Calls")
    if calls is None or not columns["Name"]:
        return None
    row: Row = {"kind": "kernel", **_kernel_name_columns(columns["Name"]), "calls": calls}
    for title, column in _FIGURES.items():
        figure = number(columns.get(title, ""))
        if figure is None and title in columns and not (title == "StdDev" and calls == 1):
            return None
        row |= {} if figure is None else {column: figure.value, f"{column}_pm": figure.pm}
    return row


def _add_gpu_summary(rows: Iterable[Row], report: Report) -> None:
    import numpy as np

    from nsw.readers.timeline.statistics import duration_statistics, require_sums, with_shares

    durations: dict[str, list[int]] = {}
    names: dict[str, Row] = {}
    for row in rows:
        durations.setdefault(row["name"], []).append(row["duration_ns"])
        names.setdefault(row["name"], {key: row[key] for key in ("kind", "name", "short_name", "mangled_name")})
    try:
        require_sums(np.array([ns for of_one in durations.values() for ns in of_one] or [0], np.int64))
    except OverflowError as fault:
        report.error(f"the kernels are not summed: {fault}")
        return
    report.tables["gpu_summary"] = with_shares(
        [
            {**names[name], **duration_statistics(np.sort(np.array(of_one, np.int64)))}
            for name, of_one in durations.items()
        ]
    )
