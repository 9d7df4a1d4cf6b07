"""Text in which several tools tell of themselves: a job that ran two profilers, a page that shows what both print."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, cast

from nsw.readers.registry import FORMATS

if TYPE_CHECKING:
    from nsw.readers.model import Options, Reader, Report, Sample
    from nsw.readers.registry import Format

# One of these words is in each report of a format: what is looked for before its reader is asked.
TEXTS: Final = {
    "nvprof-text": ("rofiling result", "PROF is profiling", "== NVTX result", "== OpenACC (", "== OpenMP ("),
    "nsys-stats": ("Total Time", "Total (", "Start (", "PID,TID", "PID\tTID", "Total Proj"),
    "ncu-text": (", Context ", ", Invocations ", "Session Attribute"),
    "ncu-csv": ("Process ID", "Session Attribute", '"Source"', "Metric Name", "Kernel Name", "PL_Type"),
    "torch-table": ("Self CPU", "CPU total", "CPU time", "Self CUDA", "CUDA total", "CUDA time", "Self XPU"),
}
_RESULTS: Final = 75  # how sure a reader is at least of what has tables
_NO_RESULT: Final = "facts"


def add_others(report: Report, sample: Sample, chosen: Format, options: Options) -> None:
    """Add the tables of every other tool whose report is in the file too; say which are, and which cannot be.

    Tables of two tools are not mixed: rows of the same table would number their blocks alike.
    """
    if chosen.id not in TEXTS:
        return
    sample.is_looked_through = False
    for format_ in FORMATS:
        if format_.id == chosen.id or not any(word in sample.text for word in TEXTS.get(format_.id, ())):
            continue
        reader = cast("Reader", importlib.import_module(format_.module))
        if reader.sniff(sample) < _RESULTS:
            continue
        other = reader.read(sample.path, options)
        names = [name for name, table in other.tables.items() if len(table) and name != _NO_RESULT]
        if not names:
            continue
        if any(len(report.tables.get(name, ())) for name in names):
            report.error(
                f"holds a report of {format_.tool} ({format_.id}) too, which is not read",
                fix="put each report into a file of its own",
            )
            continue
        report.warn(f"holds a report of {format_.tool} too: its tables are {', '.join(sorted(names))}")
        report.tables |= {name: other.tables[name] for name in names}
        report.problems += other.problems
        if facts := other.tables.get(_NO_RESULT):
            report.tables[_NO_RESULT] = [*report.tables.get(_NO_RESULT, []), *facts]
