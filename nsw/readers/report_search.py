"""The reports among files and folders that somebody names, and how many of the other files were none."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.profilers.files_of_one_recording import parts
from nsw.readers.detect import detect
from nsw.readers.model import Lack, Report, Sample
from nsw.readers.untrusted_files import SQLITE_MAGIC, open_read_only
from nsw.safe_files import open_to_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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

    def files(self, paths: Sequence[Path]) -> Iterator[Path]:
        """What to read: the named files; of a folder that is no report itself, every file below it, once."""
        names = {str(path) for path in paths}
        for path in paths:
            if not path.is_dir():
                yield path
                continue
            if is_report(path):
                yield path
                continue
            self.folders.append(path)
            for file in below(path):
                if str(file) not in names and str(file) not in self.searched:
                    self.searched.add(str(file))
                    yield file

    def recognised(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The reports without those of searched files that no profiler wrote; broken ones are among them."""
        for report in reports:
            if report.path in self.searched and report.tool is None and not is_meant_as_report(report):
                continue
            self.reports += report.path in self.searched
            yield report


# nothing but profilers writes files of these names
_REPORTS = (
    ".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep", ".nsight-cuprof-report", ".nvvp", ".nvprof", ".pstats",
    ".pt.trace.json", ".pt.trace.json.gz", "perf.data", ".vtune", ".amplxe",
)  # fmt: skip
# others write such files too: they are meant as reports while they cannot be opened as what they are named
_DATABASES = (".sqlite", ".sqlite3")
_PACKED = (".sqlite.gz", ".json.gz")
_MAYBE = (*_DATABASES, *_PACKED, ".prof", ".cprof")
_WRITTEN = (*_MAYBE, ".json", ".csv", ".txt")  # what a pointer may stand for


def is_meant_as_report(report: Report) -> bool:
    """Whether a file that no reader recognised was to be a report, by its name: it is broken then, and not other."""
    name = report.path.lower()
    if name.endswith(_REPORTS):
        return True
    if report.lack is Lack.POINTER:
        return name.endswith(_WRITTEN)
    return name.endswith(_MAYBE) and not _is_whole(report)


def _is_whole(report: Report) -> bool:
    """Whether a file of an ambiguous name is what that says, as far as its beginning tells: another program's."""
    path = Path(report.path)
    name = path.name.lower()
    try:
        if name.endswith(_PACKED):
            with open_to_read(path) as raw, gzip.open(raw) as packed:
                begin = packed.read(1 << 20)
            return bool(begin) and (".sqlite" not in name or begin.startswith(SQLITE_MAGIC))
        if name.endswith(_DATABASES):
            with open_to_read(path) as file:
                return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC and _can_be_asked(path)
    except (OSError, EOFError, zlib.error, sqlite3.Error):
        return False
    return report.lack is Lack.UNKNOWN


def _can_be_asked(path: Path) -> bool:
    with closing(open_read_only(path)) as database:
        return database.execute("SELECT count(*) FROM sqlite_master").fetchone() is not None


def is_report(folder: Path) -> bool:
    """Whether the folder is itself a report."""
    try:
        return detect(Sample(folder)) is not None
    except OSError:
        return False


def below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, in order of their names, and folders that are reports instead of their files.

    Hidden files and folders are passed over; links to folders are not followed. Files are not looked into:
    whether one is a report is known when it is read.
    """
    for walked, folders, files in os.walk(folder):
        directory = Path(walked)
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in [f for f in folders if is_report(directory / f)]:
            folders.remove(name)
            yield directory / name
        # of a report and the pages exported from it, one; each row is wanted once
        file_names = (
            name for name, part in parts(f for f in files if not f.startswith(".")).items() if part.only is None
        )
        paths = (directory / name for name in file_names)
        yield from (f for f in paths if f.is_file() or _leads_nowhere(f))


def _leads_nowhere(file: Path) -> bool:
    """Whether it is a link whose report is not here, as git-annex leaves them."""
    return file.name.lower().endswith((*_REPORTS, *_WRITTEN)) and file.is_symlink() and not file.exists()
