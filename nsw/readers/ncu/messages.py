"""What ncu says of itself between its results (`==ERROR== ...`) -> problems that say what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsw.readers.message_meanings import known_message

if TYPE_CHECKING:
    from nsw.readers.model import Report

_MOST: Final = 20  # different messages kept
_LINE: Final = re.compile(r"==(PROF|WARNING|ERROR)==\s*(.*)")
_REPORT: Final = re.compile(r"Report: (\S.*)")


@dataclass(slots=True)
class Messages:
    """Collects the lines that are no results; tells at the end."""

    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    profiled: int = 0

    def see(self, line: str, number: int) -> None:
        """Take note of a line, if it is a message of ncu's."""
        if "==" not in line or not (found := _LINE.search(line)):
            return
        kind, text = found[1], found[2].strip()[:1000]
        if kind == "PROF":
            self.profiled += text.startswith("Profiling ")
            if (report := _REPORT.match(text)) and len(self.reports) < _MOST:
                self.reports.append(report[1])
        elif text and len(self.seen) < _MOST:
            self.seen.setdefault((kind, text), number)

    def tell(self, report: Report, *, empty: bool) -> None:
        """Add a problem for each message, and one that says where the results are when none is here."""
        for (kind, text), number in self.seen.items():
            problem = known_message("ncu", text, line=number, severity=kind.lower())
            if problem is not None and not empty and text.startswith("No "):
                # one process of several had no kernel; the others' results are here
                problem = replace(problem, severity="warning")
            report.problems += [problem] if problem is not None else []
        if not empty:
            return
        if self.reports:
            report.error(
                f"holds ncu's messages only; its results are in {self.reports[0]}", fix=f"nsw read {self.reports[0]}"
            )
        elif self.profiled:
            report.error(
                f"ncu profiled {self.profiled} launches, but no result of them is in this file",
                fix="read the report that ncu wrote (-o), or print it: ncu --import REPORT --page raw --csv",
            )
