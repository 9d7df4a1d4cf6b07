"""What the profilers say of themselves -> problems that say what it means and what to do.

The messages are data (data/messages.toml), for every reader that meets the tools' own lines, for a program's output,
and for what is there in place of a report. A message is looked up without its prefix (`==123== Warning: `).
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from nsw.readers.model import Problem, Report, Sample
from nsw.readers.untrusted_files import SQLITE_MAGIC, open_sqlite_read_only
from nsw.resources import toml_data
from nsw.safe_files import open_to_read
from nsw.wording import first_names

Severity = Literal["error", "warning"]
# `==PROF== Profiling "1:7:function:1": 0%` where --kernel-id is given, else `Profiling "function" - 3: 0%`
_PROFILING: Final = re.compile(r'Profiling "(?:\d*:\d*:)?(?P<kernel>[^"]+?)(?::\d+)?"')
_NCCL: Final = re.compile(r"nccl", re.IGNORECASE)
_LONGEST: Final = 400  # characters of a message that are repeated to the user


@dataclass(frozen=True, slots=True)
class Message:
    """A message that nsw knows: how bad it is, what it means, what to do.

    `is_outcome`: it says that nothing came of it, and not why. `is_hang`: a kernel that is run again does not end.
    `is_replay`: to run a kernel again failed, as that of a collective does, for which other ranks wait no more.
    `is_loss`: records of the capture are missing. `is_note`: it is of what an answer does not show.
    `is_early_end`: a program that failed is cause enough for it. `explains`: beside a problem that this matches a note
    is a warning.
    """

    tools: frozenset[str]
    pattern: re.Pattern[str]
    severity: Severity
    explanation: str
    fix: str | None = None
    is_outcome: bool = False
    is_hang: bool = False
    is_loss: bool = False
    is_replay: bool = False
    is_note: bool = False
    is_early_end: bool = False
    explains: str | None = None


@cache
def known_messages() -> tuple[Message, ...]:
    """Every message that is known; of several that match, the first counts."""
    return tuple(
        Message(**row | {"tools": frozenset(row["tools"]), "pattern": re.compile(row["pattern"])})
        for row in toml_data("readers/data/messages.toml")["message"]
    )


def find_known_message(tool: str, text: str) -> Message | None:
    """What is known of a message of `tool` (nvprof, ncu, nsys, pytorch), or None."""
    text = text[: 4 * _LONGEST]
    return next((m for m in known_messages() if tool in m.tools and m.pattern.search(text)), None)


def problem_of_known_message(
    tool: str, text: str, *, line: int | None = None, severity: str | None = None, kernel: str | None = None
) -> Problem | None:
    """The problem that a tool's message makes.

    Args:
        tool: Who said it: nvprof, ncu, nsys, pytorch.
        text: The message, less its prefix.
        line: Where it is.
        severity: What the tool itself called it ("error", "warning"); None when it said so in passing, and
            then only what nsw knows is a problem.
        kernel: The one that ncu was running again, where that is known.
    """
    message = text.strip()[:_LONGEST]
    meaning = find_known_message(tool, text)
    waits = meaning is not None and (meaning.is_hang or (meaning.is_replay and _NCCL.search(kernel or "")))
    if meaning is not None and waits and kernel is not None:
        meaning = _hang_message_with_kernel(meaning, kernel)
    if meaning is not None:
        text = f"{tool}: {message} ({meaning.explanation})"
        return Problem(meaning.severity, text, line, meaning.fix, meaning.is_loss, meaning.is_note)
    if severity is None:
        return None
    return Problem("error" if severity == "error" else "warning", f"{tool}: {message}", line)


def without_hint_of_early_end(tool: str, problem: Problem) -> Problem:
    """The problem as it is where the program is known to have failed, which explains what is missing at the end."""
    meaning = find_known_message(tool, problem.message)
    if meaning is None or not meaning.is_early_end:
        return problem
    message = problem.message.removesuffix(f" ({meaning.explanation})")
    return replace(problem, message=message, fix=None, is_note=not problem.is_loss)


def warn_by_notes_that_explain(report: Report) -> None:
    """Make warnings of the notes that may be the cause of another problem of the report."""
    text = "\n".join(problem.message for problem in report.problems)
    for at, problem in enumerate(report.problems):
        meaning = find_known_message(report.tool or "", problem.message) if problem.is_note else None
        if meaning is not None and meaning.explains is not None and re.search(meaning.explains, text):
            report.problems[at] = replace(problem, is_note=False)


def kernel_in_progress_line(text: str) -> str | None:
    """The kernel that a line of ncu's progress names; None where it names none."""
    match = _PROFILING.search(text)
    return match["kernel"] if match else None


def _hang_message_with_kernel(meaning: Message, kernel: str) -> Message:
    """The message of a hang, with what the kernel's name tells."""
    if _NCCL.search(kernel):
        reason = f"{kernel} is run again and waits for the other ranks, which have done it once"
        fix = (
            "leave NCCL's kernels out (in a recipe kernels: {exclude: [nccl]}, as nsw does where none is named), or"
            " measure them together: --replay-mode range (replay: range)"
        )
    else:
        reason, fix = f"it was running {kernel} again", (meaning.fix or "").replace("[NAME]", f"[{kernel}]")
    return replace(meaning, explanation=reason, fix=fix)


_MAX_MESSAGES: Final = 20  # different messages kept
_END: Final = 65536  # bytes looked at of either end of a long output
_SEVERITY: Final = r"(?:\s*(?P<severity>Error|Warning)\s*:)?\s*(?P<text>.*)"
_NVPROF: Final = re.compile(r"(?:={8}|==\d+==)" + _SEVERITY)
_NCU: Final = re.compile(r"==(?P<severity>ERROR|WARNING|PROF)==\s*(?P<text>.*)")
# these put no mark before their messages: only known lines are their own
_UNMARKED: Final = re.compile(r"(?P<severity>)(?P<text>.+)")
# a rank that waits for one under a profiler says so itself, without any mark
_WATCHDOG: Final = re.compile(r"(?P<severity>)(?P<text>.*Watchdog caught collective operation timeout.*)")
_AVAILABLE: Final = re.compile(r"^Available Kernels:[^\S\n]*+$((?:\s*+^\d+\. .+$)+)", re.MULTILINE)
_MAX_KERNELS: Final = 10  # kernels that a filter could have matched
_INTEL: Final = re.compile(r"(?:vtune|amplxe|aps):? (?P<severity>Error|Warning): (?P<text>.*)")
_LINES: Final = {
    "nvprof": _NVPROF,
    "ncu": _NCU,
    **dict.fromkeys(("nsys", "perf", "py-spy", "gprof", "tau"), _UNMARKED),
    **dict.fromkeys(("vtune", "aps"), _INTEL),
}


def known_problems_in_text(tool: str, text: str) -> list[Problem]:
    """The known messages of `tool` (nvprof, ncu, nsys; of others none) in a text, each once.

    That nothing was collected is left out where the reason is there too.
    """
    return _find_problems(tool, text, known_only=True)


def known_problems_in_file(tool: str, path: Path) -> list[Problem]:
    """As `said`, of the beginning and the end of a file; [] when it is not there."""
    return known_problems_in_text(tool, _read_file_ends(path).decode(errors="replace"))


# what ends a program whose output is around a report: the end of Python's traceback, CUDA's and the system's words
_FAILED: Final = re.compile(
    r"Traceback \(most recent call last\):\r?\n(?:[ \t].*\n)*(\S.*)"
    r"|^(.*\b(?:CUDA error|CUDA out of memory|cudaError[A-Z]\w+|Accelerator Fatal Error)\b.*"
    r"|.*\b(?:Segmentation fault|Bus error)\b.*)$",
    re.MULTILINE,
)
_REMEDY: Final = re.compile(r"\r?\n[ \t]*((?:Rebuild|Recompile|Compile|Set|Try|Use|Please)\b.*)")  # the line behind it
_LONGEST_FAILURE: Final = 300  # characters


def find_program_failure_line(path: Path) -> str | None:
    """The line among those of a report in which a program says that it failed, and the remedy behind it; or None."""
    if path.is_dir():
        return None
    data = _read_file_ends(path)
    if data.startswith(SQLITE_MAGIC):
        text = _program_output_in_nsys_export(path)
    else:
        text = "" if b"\0" in data else data.decode(errors="replace")
    failed = _FAILED.search(text)
    if failed is None:
        return None
    line = (failed[1] or failed[2]).strip()
    if (remedy := _REMEDY.match(text, failed.end())) is not None:
        line = f"{line.rstrip('.')}. {remedy[1].strip()}"
    return line[:_LONGEST_FAILURE].rstrip(".")


def _program_output_in_nsys_export(path: Path) -> str:
    """What nsys kept of the program's output in its export; nothing where it is another database."""
    with suppress(sqlite3.Error), closing(open_sqlite_read_only(path)) as database:
        tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('ProcessStreams', 'StringIds')"
        if database.execute(tables).fetchone() != (2,):  # a view of a hostile file may have no end
            return ""
        query = "SELECT value FROM ProcessStreams JOIN StringIds ON id = contentId LIMIT 8"
        return "\n".join(str(text)[-_END:] for (text,) in database.execute(query))
    return ""


def _read_file_ends(path: Path) -> bytes:
    """The beginning and the end of a file; nothing when it is not there."""
    try:
        with open_to_read(path) as file:
            data = file.read(_END)
            rest = path.stat().st_size - _END
            if rest > 0:
                file.seek(-min(rest, _END), 2)
                data += b"\n" + file.read(_END)
    except OSError:
        return b""
    return data


_NSYS_OUTPUT: Final = re.compile(
    r"^Generating '[^'\n]+\.qdstrm'|^Importer error status:|^Generated:\s*\n\s*\S+\.(?:nsys-rep|qdrep|qdstrm)"
    r"|^Saved report file to |^Report file moved to |^Capturing recipe|^Processing \d* ?events\.\.\.",
    re.MULTILINE,
)
_NSYS_WROTE: Final = re.compile(
    r"^(?:Generated:\s*\n\s*|Report file moved to |Saved report file to |\t)\"?(\S[^\n\"]*\.(?:nsys-rep|qdrep|qdstrm))",
    re.MULTILINE,
)
_QDSTRM: Final = ".qdstrm"


def nsys_profile_output(sample: Sample) -> tuple[list[Problem], bool] | None:
    """What `nsys profile` printed in a job's output: its errors, its reports; None: it printed nothing.

    Beside them whether it wrote a report and said nothing else.
    """
    if sample.is_binary or sample.is_folder:
        return None
    text = sample.without_numbers(_read_file_ends(sample.path).decode(sample.encoding, errors="replace"))
    text = text.replace("\r\n", "\n")
    if _NSYS_OUTPUT.search(text) is None:
        return None
    problems = known_problems_in_text("nsys", text)
    reports = list(dict.fromkeys(match[1] for match in _NSYS_WROTE.finditer(text)))
    first = next((report for report in reports if not report.endswith(_QDSTRM)), reports[0] if reports else None)
    more = f" (and {len(reports) - 1} more)" if len(reports) > 1 else ""
    if first is None:
        message = "and names no report that it wrote"
        fix = "see the program's own output, and the messages of nsys above"
    elif first.endswith(_QDSTRM):
        message = f"which recorded {first}{more} and did not import it"
        fix = (
            f"import it: `QdstrmImporter -i {shlex.quote(first)}`, in the folder host-linux-x64 of an nsys of that"
            " version or newer, then read the .nsys-rep"
        )
    else:
        message, fix = f"no report itself; nsys wrote {first}{more}", f"nsw read {shlex.quote(first)}"
    is_all_well = not problems and first is not None and not first.endswith(_QDSTRM)
    return [*problems, Problem("error", f"the output of `nsys profile`, {message}", None, fix)], is_all_well


def problems_if_only_messages(sample: Sample) -> tuple[str, list[Problem]] | None:
    """The tool and its messages, when a file holds nothing else: it was to be a report, and none was made."""
    if sample.is_binary or sample.is_folder:
        return None
    lines = [line for line in sample.text.splitlines() if line.strip()]
    for tool, pattern in (("nvprof", _NVPROF), ("ncu", _NCU)):
        if lines and pattern.match(lines[0]) and all(pattern.match(line) or line[0].isspace() for line in lines):
            problems = _find_problems(tool, sample.text, known_only=False)
            return (tool, problems) if problems else None
    return None


def _listed_kernels_text(text: str) -> str | None:
    """What ncu lists where its filter matched nothing, for people."""
    listed = _AVAILABLE.search(text)
    if listed is None:
        return None
    names = [line.strip().partition(". ")[2] for line in listed[1].splitlines() if line.strip()]
    return f"the filter matched 0 of {len(names)} kernels: {first_names(names, _MAX_KERNELS)}"


def _find_problems(tool: str, text: str, *, known_only: bool) -> list[Problem]:
    pattern = _LINES.get(tool)
    problems: dict[str, Problem] = {}
    empty: set[str] = set()
    watched = None  # what the watchdog said first; it says the same again as the program ends
    kernel = None  # the last one that ncu ran again
    for line in text.splitlines() if pattern else ():
        match = pattern.match(line.strip()) if pattern else None
        if match is None and tool in {"ncu", "nvprof"} and not watched:
            match = watched = _WATCHDOG.match(line)
        if match is None:
            continue
        kernel = kernel_in_progress_line(match["text"]) or kernel
        severity = (match["severity"] or "").lower()
        meaning = find_known_message(tool, match["text"])
        problem = problem_of_known_message(
            tool, match["text"], severity=severity if severity in {"error", "warning"} else None, kernel=kernel
        )
        if problem is None or (meaning is None and known_only) or len(problems) >= _MAX_MESSAGES:
            continue
        if tool == "ncu" and "were profiled" in problem.message and (listed_kernels := _listed_kernels_text(text)):
            problem = replace(problem, fix=listed_kernels)
        problems.setdefault(problem.message, problem)
        if meaning is not None and meaning.is_outcome:
            empty.add(problem.message)
    causes = [p for message, p in problems.items() if message not in empty]
    return causes if any(p.severity == "error" for p in causes) else list(problems.values())


SEE_MESSAGES: Final = "see what ncu and the program printed (==ERROR== lines), and profile again"
_MAX_NCU_MESSAGES: Final = 20  # different messages kept
_LINE: Final = re.compile(r"==(PROF|WARNING|ERROR)==\s*(.*)")
_REPORT: Final = re.compile(r"Report: (\S.*)")


@dataclass(slots=True)
class NcuMessageCollector:
    """Collects the lines that are no results; tells at the end."""

    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    profiled: int = 0
    kernel: str | None = None  # the one that ncu began last
    during: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def note_message_line(self, line: str, number: int) -> None:
        """Take note of a line, if it is a message of ncu's."""
        if "==" not in line or not (match := _LINE.search(line)):
            return
        kind, text = match[1], match[2].strip()[:1000]
        if kind == "PROF":
            self.profiled += text.startswith("Profiling ")
            self.kernel = kernel_in_progress_line(text) or self.kernel
            if (report := _REPORT.match(text)) and len(self.reports) < _MAX_NCU_MESSAGES:
                self.reports.append(report[1])
        elif text and len(self.seen) < _MAX_NCU_MESSAGES:
            self.seen.setdefault((kind, text), number)
            self.during.setdefault((kind, text), self.kernel)

    def add_problems_to_report(self, report: Report, *, has_no_results: bool) -> None:
        """Add a problem for each message, and one that says where the results are when none is here."""
        problems = self._problems_by_meaning(has_no_results=has_no_results)
        if any(problem.severity == "error" for problem in problems):
            report.problems = [replace(p, fix=None) if p.fix == SEE_MESSAGES else p for p in report.problems]
        report.problems += problems
        if not has_no_results:
            return
        if self.reports:
            report.error(
                f"contains only messages of ncu; its results are in {self.reports[0]}",
                fix=f"nsw read {self.reports[0]}",
            )
        elif self.profiled and not any(p.severity == "error" for p in report.problems):
            count = "1 launch" if self.profiled == 1 else f"{self.profiled} launches"
            report.error(
                f"ncu profiled {count}, but no result of that is in this file",
                fix="read the report that ncu wrote (-o), or print it: ncu --import REPORT --page raw --csv",
            )

    def _problems_by_meaning(self, *, has_no_results: bool) -> list[Problem]:
        """A problem a meaning, with how many more mean the same; a cause without what follows from it."""
        first: dict[str, Problem] = {}
        alike: Counter[str] = Counter()
        following: set[str] = set()
        causes: set[str] = set()
        hangs: set[str] = set()
        for (kind, text), number in self.seen.items():
            meaning, kernel = find_known_message("ncu", text), self.during[kind, text]
            problem = problem_of_known_message("ncu", text, line=number, severity=kind.lower(), kernel=kernel)
            if problem is None:
                continue
            if not has_no_results and text.startswith("No "):
                # one process of several had no kernel; the others' results are here
                problem = replace(problem, severity="warning")
            key = meaning.explanation if meaning else text
            first.setdefault(key, problem)
            alike[key] += 1
            (following if meaning is not None and meaning.is_outcome else causes).add(key)
            if meaning is not None and meaning.is_hang:
                hangs.add(key)
        following -= causes
        if any(p.severity == "error" for p in first.values()):  # how the launch that took long ended
            first = {key: p for key, p in first.items() if key not in hangs}
        errors = [key for key, p in first.items() if p.severity == "error"]
        if errors and following.issuperset(errors):
            following = set(errors[1:])  # no cause is here: the first consequence says most
        if errors and following:
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
