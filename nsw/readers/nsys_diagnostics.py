"""What nsys itself warned of while it recorded, as warnings of the report.

Its errors are warnings here too: the file can be read, but what was recorded may mislead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.readers.model import Problem

if TYPE_CHECKING:
    from nsw.readers.nsys_source import Source

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
_NO_FAULT = "no fault if the program has no NVTX ranges"
_CPU_ONLY = "CPU samples and states only; GPU figures are not affected"
_FIXES = {
    "No CUDA events collected": "trace with --trace=cuda and check that the program reached its GPU part and"
    " that nvidia-smi works there; a killed program leaves CUDA events only with --cuda-flush-interval",
    "CUDA profiling might have not been started correctly": "check that nvidia-smi works on that node",
    "Not all CUDA events might have been collected": "let the program end, or set --cuda-flush-interval",
    "is not supported by this build of Nsight Systems": "profile with an nsys as new as the CUDA driver",
    "No NVTX events collected": _NO_FAULT,
    "Not all NVTX events might have been collected": _NO_FAULT,
    "perf event paranoid level": _CPU_ONLY,
    "Scheduling information is absent": _CPU_ONLY,
    "Failed to load symbols": _CPU_ONLY,
}


def diagnostics(source: Source) -> list[Problem]:
    """Warnings and errors of DIAGNOSTIC_EVENT; those that differ only in numbers and quoted names are one."""
    rows = source.rows("DIAGNOSTIC_EVENT", ["severity", "text"], at_most=100_000)
    seen: dict[tuple[str, str], list[str]] = {}
    for level, text in rows:
        if level in _LEVELS and isinstance(text, str) and not _IDLE.match(text):
            seen.setdefault((_LEVELS[level], _VARYING.sub("#", text)), []).append(text)
    problems = [_problem(who, texts) for (who, _), texts in seen.items()]
    if len(problems) > _MOST:
        left = len(problems) - _MOST
        problems = [
            *problems[:_MOST],
            Problem("warning", f"{left} more kinds of nsys diagnostics are not shown"),
        ]
    return problems


def _problem(who: str, texts: list[str]) -> Problem:
    text = " ".join(texts[0].split())[:_LONGEST]
    more = f" (and {len(texts) - 1} like it)" if len(texts) > 1 else ""
    fix = next((fix for words, fix in _FIXES.items() if words in text), None)
    return Problem("warning", f"{who}: {text}{more}", fix=fix)
