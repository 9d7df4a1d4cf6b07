"""Sections of nvprof's reports besides its summaries, traces and counters: which are read, and which passed over.

What has no table in nsw is named once, and its rows are known by their shape: a trace of the critical path has titles
like those of a trace of the GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text import events, system

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

# Titles of sections, as a part of a pattern, and what the section is.
TITLES: Final = (
    r"Dependency Analysis|NVLink topology|PCI[eE]? topology|PC Sampling(?: Summary)?|Available (?:Events|Metrics)"
)
_UNREAD: Final = {
    "dependency analysis": "the critical path of the program (--dependency-analysis)",
    "nvlink topology": "how the GPUs are connected (--print-nvlink-topology)",
    "pcie topology": "how the GPUs are connected (--print-pci-topology)",
    "pci topology": "how the GPUs are connected (--print-pci-topology)",
    "pc sampling": "samples of the program counter (--source-level-analysis pc_sampling)",
    "pc sampling summary": "samples of the program counter (--source-level-analysis pc_sampling)",
    "available events": "a list of what could be counted (--query-events), no result",
    "available metrics": "a list of what could be counted (--query-metrics), no result",
}
LISTING: Final = re.compile(r"^[^\S\n]*+Available (?:Events|Metrics):[^\S\n]*+$", re.MULTILINE)
_PATH: Final = re.compile(
    r'\s*"?(?:Critical path ?\(%\)|Start"?(?:,|\s+)"?Duration)"?(?:,|\s+)"?Critical path"?(?:,|\s+)"?Waiting time"?'
    r'(?:,|\s+)"?Name"?\s*\Z'
)
_TIME: Final = r"[\d.]+(?:[eE][-+]?\d+)?"
_PATH_ROW: Final = re.compile(
    rf"\s*{_TIME}%?[num]?s?(?:,|\s+){_TIME}[num]?s?(?:,|\s+){_TIME}[num]?s?(?:(?:,|\s+){_TIME}[num]?s?)?(?:,|\s+)\S.*"
)
_SAMPLED: Final = re.compile(
    r'\s*(?:"","Device",)?"?Sample Count"?(?:,|\s+)"?Avg\*?"?(?:,|\s+)"?Min\*?"?(?:,|\s+)"?Max\*?"?\s*\Z'
)
_PATH_UNITS: Final = re.compile(r"(?:%|[num]?s)(?:,[num]?s){2,3},\s*\Z")


def announce(sink: Sink, title: str) -> None:
    """Say that a section is not read, when its title is of one."""
    what = _UNREAD.get(title)
    if what is not None:
        sink.note(f"not read: {what}")


def section_table(sink: Sink, stream: Stream, text: str) -> RowTaker | None:
    """What takes the rows below a line of titles of these sections; None for other lines."""
    if _PATH.match(text):
        announce(sink, "dependency analysis")
        return PassedOver()
    if _SAMPLED.match(text):
        sink.note(
            "not read: samples of Unified Memory's counters (CUDA 6.0), which do not name the memories that they"
            " counted between"
        )
        return PassedOver()
    return system.system_table(sink, stream, text) or events.event_table(sink, stream, text)


class PassedOver:
    """Rows of the critical path, which no table takes."""

    def take(self, _: int, text: str) -> bool:
        """Whether the line is one of them."""
        return _PATH_ROW.match(text) is not None or _PATH_UNITS.match(text) is not None
