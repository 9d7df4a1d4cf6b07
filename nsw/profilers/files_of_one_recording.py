"""Files that a profiler leaves of one recording: which are read, and which tables each of them is read for.

A report for the GUI stays beside the pages that were exported from it, and each row is wanted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class FileToRead:
    """What is read of a file.

    Attributes:
        source: The file that its rows are reported to come from.
        only: The tables that are taken; None: all.
        without: Tables that are not taken: another file has them, with more in them.
    """

    source: str
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def reads_table(self, table: str) -> bool:
        """Whether a table of this file counts."""
        return table not in self.without and (self.only is None or table in self.only)


_RAW: Final = ".raw.csv"
_REPORT: Final = ".ncu-rep"
# pages of ncu beside the raw one, which has all metrics: the rules are on one alone, the machine on another
_PAGES: Final[Mapping[str, frozenset[str]]] = {
    ".details.csv": frozenset({"rules"}),
    ".session.csv": frozenset({"facts"}),
    ".source.csv": frozenset({"source_metrics"}),
}
_SUMMARY: Final = ".summary.csv"  # of VTune, whose functions are the first of all that are in the file beside it
_HOTSPOTS: Final = ".hotspots.csv"
_RESULT: Final = ".vtune.tar.gz"  # of which these are the tables
_SNAPSHOT: Final = ".aps.txt"
_PAGE: Final = "aps_report_"  # the same figures
_TRACE: Final = ".pt.trace.json"
_OPERATORS: Final = ".operators.txt"  # with the memory and FLOP that a trace lacks
_TIMELINE: Final = ".nsys-rep"
_EXPORT: Final = ".sqlite"  # which needs no nsys to be read
_PACKED: Final = (".gz", ".xz")
_VISUAL: Final = ".nvvp"
_PRINTED: Final = ".nvprof.csv"
_SAMPLES: Final = ".perf.data"
_FUNCTIONS: Final = ".perf.txt"  # printed from the samples where the program's own files are


# one of several ranges that nsys captured: timeline.NUMBER.ENDING, or timeline.rankN.NUMBER.ENDING
_RANGE: Final = re.compile(r"(timeline(?:\.(?:rank|node)\d+)?)\.(\d{1,6})(\.nsys-rep|\.qdstrm|\.sqlite(?:\.[gx]z)?)")


def files_to_read(file_names: Iterable[str]) -> dict[str, FileToRead]:
    """The files of one folder that are read, in order of their names."""
    sorted_names = sorted(file_names)
    all_names = frozenset(sorted_names)
    return {
        name: part
        for name in sorted_names
        if (part := _file_to_read(name, all_names)) is not None and range_files_of_recording(name, all_names)[0] == name
    }


def range_files_of_recording(file_name: str, folder_names: Iterable[str]) -> list[str]:
    """The files of one recording that are read as one, in order of time: a range each; of other files the file alone.

    Args:
        file_name: A file of the recording.
        folder_names: The files of its folder.
    """
    if (match := _RANGE.fullmatch(file_name)) is None:
        return [file_name]
    found = {
        int(other[2]): other[0]
        for other in map(_RANGE.fullmatch, folder_names)
        if other and other.group(1, 3) == match.group(1, 3)
    }
    return [found[number] for number in sorted(found)]


def recording_files_from(path: Path) -> list[Path]:
    """A file, and behind it the later ranges of the same recording that lie beside it."""
    if _RANGE.fullmatch(path.name) is None:
        return [path]
    ranges = range_files_of_recording(path.name, (other.name for other in path.parent.iterdir()))
    return [path.with_name(name) for name in ranges[ranges.index(path.name) :]]


def _file_to_read(file_name: str, folder_names: frozenset[str]) -> FileToRead | None:
    unpacked = file_name[:-3] if file_name.endswith(_PACKED) else file_name
    if unpacked != file_name and unpacked in folder_names:  # and kept
        return None
    if file_name.endswith(_RESULT) or (
        file_name.startswith(_PAGE) and any(sibling.endswith(_SNAPSHOT) for sibling in folder_names)
    ):
        return None
    for ending, only in _PAGES.items():
        if file_name.endswith(ending) and (stem := file_name.removesuffix(ending)) + _RAW in folder_names:
            return FileToRead(_report_or_raw_page(stem, folder_names), only)
    if file_name.endswith(_SUMMARY) and file_name.removesuffix(_SUMMARY) + _HOTSPOTS in folder_names:
        return FileToRead(file_name, frozenset({"facts"}))
    if file_name.endswith(_RAW):
        return FileToRead(_report_or_raw_page(file_name.removesuffix(_RAW), folder_names))
    if file_name.endswith(_REPORT) and file_name.removesuffix(_REPORT) + _RAW in folder_names:
        return None
    if file_name.endswith(_TIMELINE):
        export = file_name.removesuffix(_TIMELINE) + _EXPORT
        return None if {export, *(export + ending for ending in _PACKED)} & folder_names else FileToRead(file_name)
    if unpacked.endswith(_EXPORT) and (report := unpacked.removesuffix(_EXPORT) + _TIMELINE) in folder_names:
        return FileToRead(report)
    if file_name.endswith(_VISUAL) and file_name.removesuffix(_VISUAL) + _PRINTED in folder_names:
        return None
    if file_name.endswith(_SAMPLES) and file_name.removesuffix(_SAMPLES) + _FUNCTIONS in folder_names:
        return None
    if file_name.endswith(_TRACE) and file_name.removesuffix(_TRACE) + _OPERATORS in folder_names:
        return FileToRead(file_name, without=frozenset({"operators"}))
    return FileToRead(file_name)


def _report_or_raw_page(stem: str, folder_names: frozenset[str]) -> str:
    """The report that pages were exported from, where it was brought along."""
    return stem + _REPORT if stem + _REPORT in folder_names else stem + _RAW
