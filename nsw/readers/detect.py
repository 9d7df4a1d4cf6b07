"""Find the reader for a file and read it; nothing that a file holds raises an exception here."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from nsw.apart import inside, out_of_memory
from nsw.readers.invariants import leave_out_broken_rows, report_no_values
from nsw.readers.messages import only_messages, program_failure
from nsw.readers.model import SURE_OF_ALL, Lack, Options, Reader, Report, Sample
from nsw.readers.not_a_report import NotReport, explain, is_archive, pointer, special, unopened
from nsw.readers.registry import FORMATS, Format
from nsw.readers.untrusted_files import GZIP_MAGIC, read_packed

if TYPE_CHECKING:
    from pathlib import Path


CERTAIN = 100
_OF_ITERATIONS = frozenset({"iterations", "iteration_trace", "phase_summary"})
_NO_ITERATIONS = "no iterations were found; of a timeline `--table phases` says why"
_MORE_MEMORY = "read it where there is more, or export it with fewer events (nsys: --filter-time)"


def read(path: Path, options: Options | None = None) -> Report:
    """Read one report of any known format.

    Returns:
        A report with tables, or with at least one problem of severity `error`.

    Raises:
        MemoryError: This is a process apart, and the file takes more memory than it has.
    """
    report = _read(path, options or Options())
    leave_out_broken_rows(report)
    report_no_values(report)
    if report.tables:
        report.failed = program_failure(path)
    if "metrics" in report.tables:
        from nsw.readers.portable_metrics import add_portable_names, give_one_unit

        if report.tool == "ncu":
            give_one_unit(report)
        add_portable_names(report)
    if not any(len(t) for t in report.tables.values()) and not any(p.severity == "error" for p in report.problems):
        requested = options.tables if options else None
        if not requested:
            report.error("the file contains no results")
        else:
            fix_text = _NO_ITERATIONS if requested <= _OF_ITERATIONS else None
            report.lack = Lack.TABLES
            report.error(f"holds nothing of {', '.join(sorted(requested))}", fix=fix_text)
    return report


def _read(path: Path, options: Options, *, nested: bool = False) -> Report:
    """Read a file; `nested`: it was packed itself, and one that is packed twice is left alone."""
    report = Report(str(path))
    if (explanation := special(path)) is not None:
        return _no_report(report, explanation)
    try:
        sample = Sample(path)
    except OSError as fault:
        return _no_report(report, unopened(path, fault.strerror or str(fault)))
    if sample.size == 0 and not sample.is_folder:
        report.error("the file is empty", fix="the profiler or the copy was cut short: run or copy again")
        return report
    if not sample.is_folder and (explanation := pointer(sample)) is not None:
        return _no_report(report, explanation)
    detected = detect(sample)
    if detected is None and sample.head.startswith(GZIP_MAGIC) and not nested and not is_archive(sample):
        unpacked = read_packed(
            path, options, lambda unpacked_path: detect(Sample(unpacked_path)) is not None, partial(_read, nested=True)
        )
        if unpacked is not None:
            return unpacked
    if detected is None:
        if not sample.is_folder and (explanation := explain(sample)) is not None:
            return _no_report(report, explanation)
        if (spoken := only_messages(sample)) is not None:
            report.tool, report.problems = spoken
            report.error(f"contains only messages of {report.tool}, no results")
            return report
        report.lack = Lack.UNKNOWN
        report.error("no known report format", fix="`nsw read --formats` lists what can be read")
        return report
    format_, reader = detected
    try:
        report = reader.read(path, options)
        add_other_reports(report, sample, format_, options)
    except Exception as fault:  # untrusted input: a reader's fault must spoil this file only
        if out_of_memory(fault):
            if inside():  # the limit's: who set it names it
                raise
            report.error("there is not enough memory to read it", fix=_MORE_MEMORY)
        else:
            report.error(f"damaged or unknown variant of {format_.id}: {type(fault).__name__}: {fault}")
    report.tool = report.tool or format_.tool
    report.format = report.format or format_.id
    if not any(len(t) for t in report.tables.values()) and not sample.is_folder and not report.refused:
        _look_again(report, sample)
    return report


def _no_report(report: Report, explanation: NotReport) -> Report:
    report.error(explanation.message, fix=explanation.fix)
    report.lack = Lack.POINTER if explanation.is_pointer else None
    return report


def _look_again(report: Report, sample: Sample) -> None:
    """Of a file that only its name makes a report, what it is says more than what of a report it lacks."""
    if (explanation := explain(sample)) is not None and any(p.severity == "error" for p in report.problems):
        report.problems = [p for p in report.problems if p.severity != "error"]
        report.error(explanation.message, fix=explanation.fix)


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
        if best is not None and format_.max_certainty <= best[0]:
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


# One of these words is in each report of a format: what is looked for before its reader is asked.
TEXTS: Final = {
    "nvprof-text": ("rofiling result", "PROF is profiling", "== NVTX result", "== OpenACC (", "== OpenMP ("),
    "nsys-stats": ("Total Time", "Total (", "Start (", "PID,TID", "PID\tTID", "Total Proj"),
    "ncu-text": (", Context ", ", Invocations ", "Session Attribute"),
    "ncu-csv": ("Process ID", "Session Attribute", '"Source"', "Metric Name", "Kernel Name", "PL_Type"),
    "torch-table": ("Self CPU", "CPU total", "CPU time", "Self CUDA", "CUDA total", "CUDA time", "Self XPU"),
    "vtune": ("CPU Time", "Elapsed Time:", "Hardware Event Count"),
    "aps": ("Summary information", "Metric Table", "MPI Time per Rank"),
    "onednn": ("onednn_verbose,", "dnnl_verbose,", "mkldnn_verbose,"),
}
_RESULTS: Final = 75  # how sure a reader is at least of what has tables
_NO_RESULT: Final = "facts"
_OF_WHOLE_RUNS: Final = frozenset({"vtune", "aps"})  # whose facts are results


def add_other_reports(report: Report, sample: Sample, chosen: Format, options: Options) -> None:
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
        other_report = reader.read(sample.path, options)
        names = [name for name, table in other_report.tables.items() if len(table) and name != _NO_RESULT]
        facts = other_report.tables.get(_NO_RESULT, [])
        if not names and not (len(facts) and format_.id in _OF_WHOLE_RUNS):
            continue
        if any(len(report.tables.get(name, ())) for name in names):
            report.error(
                f"holds a report of {format_.tool} ({format_.id}) too, which is not read",
                fix="put each report into a file of its own",
            )
            continue
        report.warn(f"holds a report of {format_.tool} too: its tables are {', '.join(sorted(names or [_NO_RESULT]))}")
        report.tables |= {name: other_report.tables[name] for name in names}
        report.problems += other_report.problems
        if len(facts):
            report.tables[_NO_RESULT] = [*report.tables.get(_NO_RESULT, []), *facts]
