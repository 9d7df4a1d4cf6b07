"""What ncu says of itself between its results (`==ERROR== ...`) -> problems that say what to do."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from nsw.readers.messages import explain, kernel_in, known_message

if TYPE_CHECKING:
    from nsw.readers.model import Problem, Report

__all__ = ["Messages"]

_MAX_MESSAGES: Final = 20  # different messages kept
_LINE: Final = re.compile(r"==(PROF|WARNING|ERROR)==\s*(.*)")
_REPORT: Final = re.compile(r"Report: (\S.*)")


@dataclass(slots=True)
class Messages:
    """Collects the lines that are no results; tells at the end."""

    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    profiled: int = 0
    kernel: str | None = None  # the one that ncu began last
    during: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def see(self, line: str, number: int) -> None:
        """Take note of a line, if it is a message of ncu's."""
        if "==" not in line or not (match := _LINE.search(line)):
            return
        kind, text = match[1], match[2].strip()[:1000]
        if kind == "PROF":
            self.profiled += text.startswith("Profiling ")
            self.kernel = kernel_in(text) or self.kernel
            if (report := _REPORT.match(text)) and len(self.reports) < _MAX_MESSAGES:
                self.reports.append(report[1])
        elif text and len(self.seen) < _MAX_MESSAGES:
            self.seen.setdefault((kind, text), number)
            self.during.setdefault((kind, text), self.kernel)

    def tell(self, report: Report, *, empty: bool) -> None:
        """Add a problem for each message, and one that says where the results are when none is here."""
        report.problems += self._problems(empty=empty)
        if not empty:
            return
        if self.reports:
            report.error(
                f"contains only messages of ncu; its results are in {self.reports[0]}",
                fix=f"nsw read {self.reports[0]}",
            )
        elif self.profiled:
            count = "1 launch" if self.profiled == 1 else f"{self.profiled} launches"
            report.error(
                f"ncu profiled {count}, but no result of that is in this file",
                fix="read the report that ncu wrote (-o), or print it: ncu --import REPORT --page raw --csv",
            )

    def _problems(self, *, empty: bool) -> list[Problem]:
        """A problem a meaning, with how many more mean the same; a cause without what follows from it."""
        first: dict[str, Problem] = {}
        alike: Counter[str] = Counter()
        following: set[str] = set()
        for (kind, text), number in self.seen.items():
            meaning, kernel = explain("ncu", text), self.during[kind, text]
            problem = known_message("ncu", text, line=number, severity=kind.lower(), kernel=kernel)
            if problem is None:
                continue
            if not empty and text.startswith("No "):
                # one process of several had no kernel; the others' results are here
                problem = replace(problem, severity="warning")
            key = meaning.explanation if meaning else text
            first.setdefault(key, problem)
            alike[key] += 1
            if meaning is not None and meaning.is_outcome:
                following.add(key)
        if any(p.severity == "error" for key, p in first.items() if key not in following):
            left_out = sum(alike[key] for key in following)
            first = {key: p for key, p in first.items() if key not in following}
        else:
            left_out = 0
        merged = [
            replace(p, message=f"{p.message} (and {alike[key] - 1} like it)") if alike[key] > 1 else p
            for key, p in first.items()
        ]
        if left_out:
            at = next(i for i, p in enumerate(merged) if p.severity == "error")
            consequences = "1 message that follows" if left_out == 1 else f"{left_out} messages that follow"
            merged[at] = replace(
                merged[at], message=f"{merged[at].message.rstrip('.')}; {consequences} from it left out"
            )
        return merged
