"""What a profiler said of itself amid a program's output, or in place of a report -> problems."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.readers.hung_kernel import kernel_in, of_kernel
from nsw.readers.message_meanings import explain, known_message

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.readers.model import Problem, Sample

_MOST: Final = 20  # different messages kept
_END: Final = 65536  # bytes looked at of either end of a long output
_SEVERITY: Final = r"(?:\s*(?P<severity>Error|Warning)\s*:)?\s*(?P<text>.*)"
_NVPROF: Final = re.compile(r"(?:={8}|==\d+==)" + _SEVERITY)
_NCU: Final = re.compile(r"==(?P<severity>ERROR|WARNING|PROF)==\s*(?P<text>.*)")
# nsys puts no mark before its messages: of its lines only known ones are its own
_NSYS: Final = re.compile(r"(?P<severity>)(?P<text>.+)")
# a rank that waits for one under a profiler says so itself, without any mark
_WATCHDOG: Final = re.compile(r"(?P<severity>)(?P<text>.*Watchdog caught collective operation timeout.*)")
_AVAILABLE: Final = re.compile(r"^Available Kernels:[^\S\n]*+$((?:\s*+^\d+\. .+$)+)", re.MULTILINE)
_SHOWN: Final = 10  # kernels that a filter could have matched
_LINES: Final = {"nvprof": _NVPROF, "ncu": _NCU, "nsys": _NSYS}


def said(tool: str, text: str) -> list[Problem]:
    """The known messages of `tool` (nvprof, ncu, nsys; of others none) in a text, each once.

    That nothing was collected is left out where the reason is there too.
    """
    return _problems(tool, text, known_only=True)


def said_in(tool: str, path: Path) -> list[Problem]:
    """As `said`, of the beginning and the end of a file; [] when it is not there."""
    try:
        with path.open("rb") as file:
            data = file.read(_END)
            rest = path.stat().st_size - _END
            if rest > 0:
                file.seek(-min(rest, _END), 2)
                data += b"\n" + file.read(_END)
    except OSError:
        return []
    return said(tool, data.decode(errors="replace"))


def only_said(sample: Sample) -> tuple[str, list[Problem]] | None:
    """The tool and its messages, when a file holds nothing else: it was to be a report, and none was made."""
    if sample.is_binary or sample.is_folder:
        return None
    lines = [line for line in sample.text.splitlines() if line.strip()]
    for tool, pattern in (("nvprof", _NVPROF), ("ncu", _NCU)):
        if lines and pattern.match(lines[0]) and all(pattern.match(line) or line[0].isspace() for line in lines):
            found = _problems(tool, sample.text, known_only=False)
            return (tool, found) if found else None
    return None


def _available(text: str) -> str | None:
    """What ncu lists where its filter matched nothing, for people."""
    listed = _AVAILABLE.search(text)
    if listed is None:
        return None
    names = [line.strip().partition(". ")[2] for line in listed[1].splitlines() if line.strip()]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the filter matched 0 of {len(names)} kernels: {', '.join(names[:_SHOWN])}{more}"


def _problems(tool: str, text: str, *, known_only: bool) -> list[Problem]:
    pattern = _LINES.get(tool)
    found: dict[str, Problem] = {}
    empty: set[str] = set()
    watched = None  # what the watchdog said first; it says the same again as the program ends
    kernel = None  # the last one that ncu ran again
    for line in text.splitlines() if pattern else ():
        match = pattern.match(line.strip()) if pattern else None
        if match is None and tool in {"ncu", "nvprof"} and not watched:
            match = watched = _WATCHDOG.match(line)
        if match is None:
            continue
        kernel = kernel_in(match["text"]) or kernel
        severity = (match["severity"] or "").lower()
        known = explain(tool, match["text"])
        problem = known_message(tool, match["text"], severity=severity if severity in {"error", "warning"} else None)
        if problem is None or (known is None and known_only) or len(found) >= _MOST:
            continue
        if tool == "ncu" and "were profiled" in problem.message and (there := _available(text)):
            problem = replace(problem, fix=there)
        if known is not None and known.is_hang:
            problem = of_kernel(problem, kernel)
        found.setdefault(problem.message, problem)
        if known is not None and known.is_outcome:
            empty.add(problem.message)
    causes = [p for message, p in found.items() if message not in empty]
    return causes if any(p.severity == "error" for p in causes) else list(found.values())
