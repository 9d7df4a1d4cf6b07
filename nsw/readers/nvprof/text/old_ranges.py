"""NVTX ranges as nvprof of CUDA 5 to 7 printed them: a line of its own for each, above the GPU work of the range.

NVTX range "step" (id = 1)                                CUDA 5.0: each time that it was open
NVTX range "step" (2 times, total time: 50.500us)         later: all times
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text.summary import TIME
from nsw.readers.nvprof.text.summary_rows import add_range, figures_of
from nsw.readers.text.quantities import duration, whole

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import Sink, Stream

_RANGE: Final = re.compile(
    r'\s*NVTX range (?:"(?P<name>.*)"|(?P<unnamed><unnamed>))'
    rf" \((?:(?P<times>\d+) times|id = \d+)(?:, total time: (?P<total>{TIME}))?\)\s*\Z"
)
_RANGEISH: Final = re.compile(r"\s*NVTX range \S")


def take_old_range(sink: Sink, stream: Stream, number: int, text: str) -> bool:
    """Whether the line names a range; what follows is of it."""
    found = _RANGE.match(text)
    if found is None:
        if not _RANGEISH.match(text):
            return False
        sink.fault("a line of an NVTX range is cut short or damaged: what is below it is left out", number)
        stream.nvtx_range = stream.table = None
        return True
    name = found["name"] if found["unnamed"] is None else found["unnamed"]
    stream.nvtx_range, stream.section, stream.table = name, "gpu", None
    total = duration(found["total"]) if found["total"] else None
    calls = whole(found["times"]) if found["times"] else 1
    if total is not None:
        add_range(sink, stream, name, figures_of(None, calls, total, None, None, None))
    return True
