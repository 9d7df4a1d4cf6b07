"""Titles of nvprof's tables that lost a word: what is below them is of no table that is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import Sink, Stream

_TITLE: Final = re.compile(
    r"Type|Time ?\(%\)|(?:Total )?Time|Calls(?: \((?:host|device)\))?|(?:Avg|Min|Max|Total)(?: Size)?|Name|Count"
    r"|Start|Duration|Grid(?: Size| [XYZ])|Block(?: Size| [XYZ])|Regs\*?|Registers Per Thread|Size|Throughput"
    r"|(?:SS|DS|Static S|Dynamic S)Mem\*?|(?:Src|Dst)MemType|Device|Context|Stream|Kernel|Correlation_ID|Invocations"
    r"|(?:Metric|Event) (?:Name|Description)"
)
# How a line of titles begins, its first one perhaps lost or torn.
BEGINS: Final = (
    r"""(?:"?(?:Type|Time\ ?\(%\)|Start|Device|Invocations|Context|Kernel|Duration|Count|Calls|Avg\ Size)\b"""
    r"""|"?(?:Event|Metric)\b"""
    r"""|"?\w{0,20}"?[,;\t]"?(?:Time|Duration|Kernel|Count|Context|Calls|Grid|Name|Invocations|Avg|Stream)\b)"""
)
_BEGINS: Final = re.compile(rf"[\s\ufeff]*{BEGINS}")
# Of titles between blanks a word may be missing, and a title so be half of one.
_WORDS: Final = frozenset(
    ("Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name", "Count", "Size", "Total", "Start", "Duration",
     "Grid", "Block", "Regs*", "SSMem*", "DSMem*", "Throughput", "Device", "Context", "Stream", "Kernel",
     "Invocations", "Metric", "Event", "Description")
)  # fmt: skip
_ENOUGH: Final = 3
_LONGEST: Final = 2000  # characters
_MARKS: Final = re.compile("[,;\t]")


def are_damaged_titles(text: str) -> bool:
    """Whether a line that begins no table is made of their titles."""
    if len(text) > _LONGEST or not _BEGINS.match(text):
        return False
    mark = _MARKS.search(text)
    if mark is None:
        words = text.split()
        return len(words) > _ENOUGH and _WORDS.issuperset(words)
    cells = [cell.strip(' "') for cell in text.split(mark[0])]
    titles = [cell for cell in cells if _TITLE.fullmatch(cell)]
    return len(titles) >= _ENOUGH and len(titles) >= len(cells) - 2


def refuse(sink: Sink, stream: Stream, number: int) -> None:
    """Say it, and end the table before: what follows is none of its rows."""
    sink.fault("the titles of a table are damaged: its rows are left out", number)
    stream.table = None
    stream.section = "other"
