"""Find the reader for a file and read it; nothing that a file holds raises an exception here."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, cast

from nsw.readers.gzip_files import MAGIC as GZIP
from nsw.readers.gzip_files import read_packed
from nsw.readers.invariants import leave_out_broken_rows
from nsw.readers.messages_in_output import only_said
from nsw.readers.mixed_text import add_others
from nsw.readers.model import SURE_OF_ALL, Options, Reader, Report, Sample
from nsw.readers.not_a_report import explain, is_archive, pointer, special, unopened
from nsw.readers.registry import FORMATS, Format

if TYPE_CHECKING:
    from pathlib import Path


CERTAIN = 100
_OF_ITERATIONS = frozenset({"iterations", "iteration_trace", "phase_summary"})
_NO_ITERATIONS = "no iterations were found; of a timeline `--table phases` says why"
UNKNOWN = "no known report format"
_NO_THREAD = "can't start new thread"  # for its stack there is no memory
_MORE_MEMORY = "read it where there is more, or export it with fewer events (nsys: --filter-time)"


def read(path: Path, options: Options | None = None) -> Report:
    """Read one report of any known format.

    Returns:
        A report with tables, or with at least one problem of severity `error`.
    """
    report = _read(path, options or Options())
    leave_out_broken_rows(report)
    if "metrics" in report.tables:
        from nsw.readers.portable_metrics import add_portable_names, give_one_unit

        if report.tool == "ncu":
            give_one_unit(report)
        add_portable_names(report)
    if not any(len(t) for t in report.tables.values()) and not any(p.severity == "error" for p in report.problems):
        asked = options.tables if options else None
        if not asked:
            report.error("the file contains no results")
        else:
            why = _NO_ITERATIONS if asked <= _OF_ITERATIONS else None
            report.lacks_asked = True
            report.error(f"holds nothing of {', '.join(sorted(asked))}", fix=why)
    return report


def _read(path: Path, options: Options, *, nested: bool = False) -> Report:
    """Read a file; `nested`: it was packed itself, and one that is packed twice is left alone."""
    report = Report(str(path))
    if (other := special(path)) is not None:
        report.error(other.message, fix=other.fix)
        return report
    try:
        sample = Sample(path)
    except OSError as fault:
        why = unopened(path, fault.strerror or str(fault))
        report.error(why.message, fix=why.fix)
        return report
    if sample.size == 0 and not sample.is_folder:
        report.error("the file is empty", fix="the profiler or the copy was cut short: run or copy again")
        return report
    if not sample.is_folder and (other := pointer(sample)) is not None:
        report.error(other.message, fix=other.fix)
        return report
    found = detect(sample)
    if found is None and sample.head.startswith(GZIP) and not nested and not is_archive(sample):
        inside = read_packed(path, options, lambda one: detect(Sample(one)) is not None, partial(_read, nested=True))
        if inside is not None:
            return inside
    if found is None:
        if not sample.is_folder and (other := explain(sample)) is not None:
            report.error(other.message, fix=other.fix)
            return report
        if (spoken := only_said(sample)) is not None:
            report.tool, report.problems = spoken
            report.error(f"contains only messages of {report.tool}, no results")
            return report
        report.error(UNKNOWN, fix="`nsw read --formats` lists what can be read")
        return report
    format_, reader = found
    try:
        report = reader.read(path, options)
        add_others(report, sample, format_, options)
    except Exception as fault:  # noqa: BLE001  untrusted input: a reader's fault must spoil this file only
        if isinstance(fault, MemoryError) or _NO_THREAD in str(fault):
            report.error("there is not enough memory to read it", fix=_MORE_MEMORY)
        else:
            report.error(f"damaged or unknown variant of {format_.id}: {type(fault).__name__}: {fault}")
    report.tool = report.tool or format_.tool
    report.format = report.format or format_.id
    if not any(len(t) for t in report.tables.values()) and not sample.is_folder and not report.refused:
        _look_again(report, sample)
    return report


def _look_again(report: Report, sample: Sample) -> None:
    """Of a file that only its name makes a report, what it is says more than what of a report it lacks."""
    if (other := explain(sample)) is not None and any(p.severity == "error" for p in report.problems):
        report.problems = [p for p in report.problems if p.severity != "error"]
        report.error(other.message, fix=other.fix)


def detect(sample: Sample) -> tuple[Format, Reader] | None:
    """The format that recognises the sample with most certainty, or None.

    By its beginning if that suffices: to look through all of a long file takes longer than to read some.
    """
    sample.is_looked_through = False
    best = _surest(sample)
    if (best is None or best[0] < SURE_OF_ALL) and sample.size > len(sample.head):
        sample.is_looked_through = True
        best = _surest(sample)
    return (best[1], best[2]) if best else None


def _surest(sample: Sample) -> tuple[int, Format, Reader] | None:
    best: tuple[int, Format, Reader] | None = None
    for format_ in FORMATS:
        if format_.folder != sample.is_folder or not format_.may_be(sample.head, sample.suffix):
            continue
        if best is not None and format_.most <= best[0]:
            continue
        reader = cast("Reader", importlib.import_module(format_.module))
        try:
            sure = reader.sniff(sample)
        except Exception:  # noqa: BLE001, S112  what one reader cannot look at, another may know
            continue
        if sure > (best[0] if best else 0):
            best = (sure, format_, reader)
        # nobody after it can be surer by looking through all of a long file
        sample.is_looked_through = sample.is_looked_through and (best is None or best[0] < SURE_OF_ALL)
        if sure >= CERTAIN:  # a magic number: the other readers need not even be loaded
            break
    return best
