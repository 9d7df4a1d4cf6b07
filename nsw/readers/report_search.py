"""The reports among files and folders that somebody names, and how many of the other files were none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nsw.readers.model import Report


@dataclass(slots=True)
class ReportSearch:
    """One search: the commands and Python look for reports in the same way.

    Attributes:
        folders: Folders that were named and are no reports themselves.
        searched: The files below them that nobody named.
        reports: How many of these were reports, or were meant to be.
    """

    folders: list[Path] = field(default_factory=list)
    searched: set[str] = field(default_factory=set)
    reports: int = 0

    def files(self, named: Sequence[Path]) -> Iterator[Path]:
        """What to read: the named files; of a folder that is no report itself, every file below it, once."""
        names = {str(path) for path in named}
        for path in named:
            if not path.is_dir():
                yield path
                continue
            from nsw.readers.folders import below, is_report

            if is_report(path):
                yield path
                continue
            self.folders.append(path)
            for found in below(path):
                if str(found) not in names and str(found) not in self.searched:
                    self.searched.add(str(found))
                    yield found

    def known(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports without those of searched files that no profiler wrote; broken ones are among them."""
        for report in reports:
            if report.path in self.searched and report.tool is None and _is_another_file(report):
                continue
            self.reports += report.path in self.searched
            yield report


def _is_another_file(report: Report) -> bool:
    from nsw.readers.folders import is_meant_as_report

    return not is_meant_as_report(report)
