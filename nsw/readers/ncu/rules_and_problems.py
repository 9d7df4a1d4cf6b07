"""What both ways of reading Nsight Compute's CSV share: rows of rules, and problems of the whole file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nsw.wording import one_or

if TYPE_CHECKING:
    from collections import Counter

    from nsw.readers.model import Report
    from nsw.readers.ncu.csv.page import Page
    from nsw.tables.data import Row


# Sections by the identifier that rules name -> by the title that metrics have.
_SECTIONS: Final = {
    "SpeedOfLight": "GPU Speed Of Light Throughput",
    "SpeedOfLight_RooflineChart": "GPU Speed Of Light Roofline Chart",
    "ComputeWorkloadAnalysis": "Compute Workload Analysis",
    "InstructionStats": "Instruction Statistics",
    "LaunchStats": "Launch Statistics",
    "MemoryWorkloadAnalysis": "Memory Workload Analysis",
    "MemoryWorkloadAnalysis_Chart": "Memory Workload Analysis Chart",
    "MemoryWorkloadAnalysis_Tables": "Memory Workload Analysis Tables",
    "NumaAffinity": "NUMA Affinity",
    "Nvlink": "NVLink",
    "Nvlink_Tables": "NVLink Tables",
    "Nvlink_Topology": "NVLink Topology",
    "PmSampling": "PM Sampling",
    "SchedulerStats": "Scheduler Statistics",
    "SourceCounters": "Source Counters",
    "WarpStateStats": "Warp State Statistics",
    "WorkloadDistribution": "GPU and Memory Workload Distribution",
}
RULE_COLUMNS: Final = ("section", "rule", "type", "message", "speedup_type")  # as `Page.ruled` gives them


@dataclass(slots=True)
class LeftOut:
    """What stood in the file and is in no table."""

    damaged: list[int] = field(default_factory=list)
    of_two: dict[str, int] = field(default_factory=dict)  # ids of which rows name another kernel: the first line
    source_lines: int = 0  # without any figure
    repeated: int = 0  # of a source page, that are there twice

    def tell(self, report: Report, *, empty: bool) -> None:
        """Name it: an error where it is damage, or all that the file held."""
        if self.damaged:
            rows = one_or(len(self.damaged), "1 row does", "rows do")
            report.error(
                f"{rows} not match the header: left out",
                line=self.damaged[0],
                fix="print the report again: ncu --import REPORT --page raw --csv",
            )
        what = "belongs to two launches: rows whose kernel or size differs from its first row are left out"
        report.errors(
            [f"ID {number} {what}" for number in self.of_two],
            f"{len(self.of_two)} IDs in all belong to two launches",
            lines=list(self.of_two.values()),
            fix="print the report again: ncu --import REPORT --page details --csv",
        )
        if self.repeated:
            rows = one_or(self.repeated, "a row is", "rows are")
            report.error(
                f"{rows} there twice in a source page: the second is left out",
                fix="print the page again: ncu --import REPORT --page source --csv",
            )
        if self.source_lines:
            (report.error if empty else report.warn)(
                f"a source page of {self.source_lines} lines without figures",
                fix="print the page with them: ncu --import REPORT --page source --print-source sass --csv",
            )


def rule_of(page: Page, row: list[str]) -> tuple[Row, str] | None:
    """The columns of the rules table that a row holds, and its speed-up as printed."""
    *told, gain = page.ruled(row)
    told[0] = section_title(told[0])
    return (dict(zip(RULE_COLUMNS, (t or None for t in told), strict=True)), gain) if told[1] else None


def section_title(name: str) -> str:
    """The title of a section, which metrics have, by what rules call it."""
    return _SECTIONS.get(name, name)


def say_other_marks(report: Report, figures: Counter[str]) -> None:
    """Report figures that are none by the decimal mark of the rest: how often each text is there."""
    if figures:
        several = one_or(figures.total(), "a figure is", "figures are")
        report.error(
            f"{several} written with another decimal mark than the rest ('{next(iter(figures))}'): kept as text,"
            " without a number",
            fix="print the report again: ncu --import REPORT --page details --csv",
        )


def warn_of_guess(report: Report, block: int) -> None:
    """Say that a comma or a point could have meant either."""
    report.warn(
        f"block {block}: no number shows which mark is the decimal one; read '1,234' as 1234 and '1.234' as 1.234",
        fix="print again with LC_ALL=C",
    )
