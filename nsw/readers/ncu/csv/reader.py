"""`ncu --csv`: every page, also amid other output; a file of many rows goes through Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.model import Report, Sample
from nsw.readers.ncu.csv.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.readers.model import Options

LARGE: Final = 4 << 20  # bytes from which Arrow's start pays
_HEADERS: Final = (
    '"ID","Process ID"', '"Process ID","Process Name"', '"Session Attribute","Value"', '"Address","Source"',
    '"#","Source"', '"Line No","Source"', "ID,Process ID,Process Name", "ID;Process ID;Process Name",
    '"Domain","Range:PL_Type',
)  # fmt: skip


def sniff(sample: Sample) -> int:
    """Certain when a header of ncu's is in the file."""
    if sample.is_binary:
        return 0
    if any(page_of(line) for line in sample.text.splitlines()[:400]):
        return 95
    return 90 if sample.contains(*_HEADERS) else 0


def read(path: Path, options: Options) -> Report:
    """Launches, metrics, rules and facts; each CSV of the file is a block."""
    if path.stat().st_size >= LARGE:
        from nsw.readers.ncu.csv import arrow

        if (report := arrow.read(path, options)) is not None:
            return report
    return read_exactly(path, options)


def read_exactly(path: Path, options: Options) -> Report:
    """Row by row, whatever is between the rows."""
    from nsw.readers.ncu.csv.line_by_line import Scan
    from nsw.readers.ncu.csv.source_page import SourceRows
    from nsw.readers.ncu.messages import Messages
    from nsw.readers.ncu.results import Results
    from nsw.readers.ncu.rules_and_problems import LeftOut
    from nsw.readers.ncu.session import tool_version
    from nsw.readers.text.lines import by_rank, text_lines

    report = Report(str(path), tool="ncu", format="ncu-csv")
    results, messages, left, source = Results(), Messages(), LeftOut(), SourceRows()
    blocks = 0
    for rank, lines in by_rank(text_lines(path)):
        scan = Scan(report, results, messages, left, rank, blocks, source)
        scan.run(lines)
        blocks = scan.blocks
    results.fill(report, options)
    if source.at and options.wants("source_metrics"):
        report.tables["source_metrics"] = source.table()
    report.tool_version = tool_version(results.facts)
    empty = results.empty and not source.at
    left.source_lines = 0 if source.at else source.lines
    left.repeated = source.repeated
    left.tell(report, empty=empty)
    messages.tell(report, empty=empty)
    return report
