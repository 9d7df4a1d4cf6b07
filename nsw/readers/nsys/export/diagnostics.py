"""What nsys itself warned of while it recorded, as warnings of the report.

Its errors are warnings here too: the file can be read, but what was recorded may mislead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.readers.message_meanings import explain
from nsw.readers.model import Problem
from nsw.readers.nsys.export.source import KERNEL, NVTX, RUNTIME, TableFault

if TYPE_CHECKING:
    from nsw.readers.nsys.export.source import Source

# ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_LEVELS = {2: "nsys", 3: "nsys reported an error"}
_MOST = 50  # different messages shown
_LONGEST = 1000  # characters of a message
_VARYING = re.compile(r"0x[0-9a-fA-F]+|'[^']*'|\d+")
# Default traces that most programs do not use, and for which nsw has no table.
_IDLE = re.compile(
    r"(?:No |Not all )?(?:OpenGL|Vulkan|DirectX|cuDNN|cuBLAS|NvMedia)\b.*"
    r"(?: events | might have not been started)"
)
# nsys says this of each process, such as a launcher or a compiler; it is true of the report where no process has any.
_NOTHING = (
    (re.compile(r"No CUDA events collected|CUDA profiling might have not been started"), (KERNEL, RUNTIME)),
    (re.compile(r"No NVTX events collected"), (NVTX,)),
)


def diagnostics(source: Source) -> list[Problem]:
    """Warnings and errors of DIAGNOSTIC_EVENT; those that differ only in numbers and quoted names are one."""
    rows = source.rows("DIAGNOSTIC_EVENT", ["severity", "text"], at_most=100_000)
    untrue = [said for said, tables in _NOTHING if any(_has_rows(source, table) for table in tables)]
    seen: dict[tuple[str, str], list[str]] = {}
    for level, text in rows:
        if level not in _LEVELS or not isinstance(text, str) or _IDLE.match(text):
            continue
        if not any(said.search(text) for said in untrue):
            seen.setdefault((_LEVELS[level], _VARYING.sub("#", text)), []).append(text)
    problems = [_problem(who, texts) for (who, _), texts in seen.items()]
    if len(problems) > _MOST:
        left = len(problems) - _MOST
        problems = [*problems[:_MOST], Problem("warning", f"{left} more kinds of nsys diagnostics are not shown")]
    return problems


def _has_rows(source: Source, table: str) -> bool:
    try:
        return bool(source.rows(table, ["start"], at_most=1))
    except TableFault:
        return False  # named where the table itself is read


def _problem(who: str, texts: list[str]) -> Problem:
    text = " ".join(texts[0].split())[:_LONGEST]
    more = f" (and {len(texts) - 1} like it)" if len(texts) > 1 else ""
    known = explain("nsys", text)
    meaning = f" ({known.explanation})" if known else ""
    return Problem("warning", f"{who}: {text}{more}{meaning}", fix=known.fix if known else None)
