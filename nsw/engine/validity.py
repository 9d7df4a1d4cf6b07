"""Whether a run holds what its recipe's `check` says, and what its reports lack of what was to be recorded.

Both follow from what was collected: `nsw reread` decides anew. What only the job can see, its script wrote down: the
size and hash of files, and how commands ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.engine.collect import CHECKS_FILE, CHECKS_LOG
from nsw.readers.program_figures import first_matching_lines, line_at_offset
from nsw.recipe.units import MARGIN, format_duration, format_size, parse_size, show_value
from nsw.safe_files import read_plain
from nsw.wording import first_names, plural, singular_or_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.recipe.model import Check
    from nsw.recipe.passes import CountersPass, TimelinePass

__all__ = ["Failure", "failed_checks"]


# CHECKS_FILE has lines `file SIZE SHA256 CHECK PATH`, SIZE `-` where there is no such file, SHA256 `-` where none was
# asked for, and `command STATUS LINES CHECK`: how many lines of CHECKS_LOG there are once it has ended
_MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 160  # characters of a line of output in a sentence
_OVER_TIME: Final = frozenset({"124", "137"})


@dataclass(frozen=True, slots=True)
class Failure:
    """A check that does not hold, or (`undecided`) of which nobody can tell; `file` of the run shows it."""

    sentence: str
    file: str | None = None
    undecided: bool = False


def failed_checks(
    checks: Sequence[Check], home: Path, figures: Sequence[Mapping[str, Any]], *, profiled: bool
) -> list[Failure]:
    """The checks that do not hold of a run, in the recipe's order.

    Args:
        checks: The recipe's.
        home: The folder with what was collected of the run.
        figures: A row for each figure of the recipe, as `nsw.readers.program_figures.figures` makes them.
        profiled: Whether a profiler slowed the program, so that a figure's usual value says nothing.
    """
    evidence = _Evidence(checks, home, figures, profiled=profiled)
    failing: list[Failure] = []
    for number, check in enumerate(checks, 1):
        if check.kind == "figure" and check.at_least is None and profiled:
            continue
        failure = getattr(evidence, f"check_{check.kind}")(check)
        if failure is not None:
            sentence = f"check {number}: {failure.sentence}"
            failing.append(Failure(sentence, failure.file, failure.undecided))
    return failing


class _Evidence:
    """What a run left that its checks are about."""

    def __init__(
        self, checks: Sequence[Check], home: Path, figures: Sequence[Mapping[str, Any]], *, profiled: bool
    ) -> None:
        self._home = home
        self._profiled = profiled
        self._figures = {row["name"]: row for row in figures}
        regexes = [check.regex for check in checks if check.regex is not None]
        outputs = [path for name in ("stdout", "stderr") if (path := home / name).is_file()] if regexes else []
        self._lines = [
            (path.name, dict(zip(regexes, first_matching_lines(path, regexes), strict=True))) for path in outputs
        ]
        self._facts = {
            tuple(line[:1] + line[3:4]): line
            for line in (line.split("\t") for line in _read_text(home / CHECKS_FILE).splitlines())
        }

    def check_regex(self, check: Check) -> Failure | None:
        """That a text is in the output, or nowhere in it."""
        shown = show_value(check.regex)
        for name, lines in self._lines:
            line = lines[str(check.regex)]
            if line is not None and line.too_slow:
                return Failure(f"the regex {shown} takes too long on the program's output", name)
            if line is not None:
                text = f"{shown} matches, which must never be: {name}:{line.number}: {_shorten_line(line.text)}"
                return Failure(text, name) if check.never else None
        return None if check.never else Failure(f"{shown} matches nothing that the program printed", "stdout")

    def check_figure(self, check: Check) -> Failure | None:
        """That a figure is large enough, or as usual."""
        row = self._figures.get(str(check.figure), {})
        value = row.get("value")
        if value is None:
            return Failure(f"figure {check.figure} has no value", "stdout")
        low, high = self._figure_bounds(check)
        if low <= value <= high:
            return None
        limit = f"at least {low:,.10g}" if value < low else f"at most {high:,.10g}"
        usual = f" ({check.near:,.10g} within {check.within})" if check.near is not None and not self._profiled else ""
        printed = ""
        if row.get("matches") == 1:
            line = line_at_offset(self._home / "stdout", row["at"])
            printed = f": stdout:{line.number}: {_shorten_line(line.text)}"
        return Failure(f"figure {check.figure} is {value:,.10g}, and must be {limit}{usual}{printed}", "stdout")

    def _figure_bounds(self, check: Check) -> tuple[float, float]:
        """The least and the most that a figure may be."""
        low, high = float("-inf") if check.at_least is None else float(check.at_least), float("inf")
        margin = re.match(MARGIN, check.within or "")
        if check.near is None or margin is None or self._profiled:
            return low, high
        off = abs(check.near) * float(margin[2]) / 100
        if margin[1] != "+":
            low = max(low, check.near - off)
        if margin[1] != "-":
            high = check.near + off
        return low, high

    def check_file(self, check: Check) -> Failure | None:
        """That a file is there, large enough and the same."""
        fact = self._facts.get(("file", str(check.file)))
        if fact is None or len(fact) != 5:
            return _not_recorded_failure(f"file {check.file}")
        _, size, digest, _, path = fact
        if not size.isdecimal():
            return Failure(f"file {path} is not there, or is no regular file")
        if check.at_least is not None and int(size) < (least := parse_size(check.at_least)):
            return Failure(f"file {path} has {int(size):,} bytes, and must have at least {format_size(least)}")
        if check.sha256 is not None and digest == "-":
            return _not_recorded_failure(f"the SHA-256 of file {check.file}")
        if check.sha256 is not None and digest != check.sha256:
            return Failure(f"file {path} has the SHA-256 {digest}, and must have {check.sha256}")
        return None

    def check_command(self, check: Check) -> Failure | None:
        """That a command ended with 0."""
        fact = self._facts.get(("command", str(check.command)))
        if fact is None or len(fact) != 4:
            return _not_recorded_failure(f"how {show_value(check.command)} ended")
        _, status, number, _ = fact
        if status == "0":
            return None
        ending = f"exit status {status}" + (" (over the run's time?)" if status in _OVER_TIME else "")
        return Failure(f"{show_value(check.command)} ended with {ending}{self._last_printed_line(number)}", CHECKS_LOG)

    def _last_printed_line(self, number: str) -> str:
        """The last line that a command printed, by how many lines there were then."""
        lines = _read_text(self._home / CHECKS_LOG).splitlines()
        at = min(int(number), len(lines)) if number.isdecimal() else 0
        return f": {CHECKS_LOG}:{at}: {_shorten_line(lines[at - 1])}" if at else ""


def _not_recorded_failure(subject: str) -> Failure:
    return Failure(f"the job has not written down {subject}, so that nobody can tell", undecided=True)


def _read_text(path: Path) -> str:
    try:
        return read_plain(path, last=_MOST_BYTES).decode(errors="backslashreplace")
    except OSError:
        return ""


def _shorten_line(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 3] + "..."


# --- ranges, seconds, iterations and launches that are missing ------------------------------------------------


_CLOSE: Final = 0.9  # of what is asked for, or of what another rank has: less is missing
_MAX_RANKS: Final = 4  # in a sentence
_DROPPED: Final = "profiler__pmsampler_dropped_samples"  # in the sections that sample over time alone


def window_gap(timeline: TimelinePass, ranges: int, recorded_s: float | None) -> str | None:
    """What the reports of a process lack of the pass's window; None: nothing.

    Args:
        timeline: The pass.
        ranges: How many ranges were captured.
        recorded_s: Seconds that were recorded; None: the report does not tell.
    """
    within, duration = timeline.within, timeline.duration
    if within is not None and ranges < within.count:
        return f"nsys captured {ranges} of {within.count} ranges {show_value(within.nvtx)}: no more began and ended"
    if duration is not None and recorded_s is not None and recorded_s < _CLOSE * duration:
        return (
            f"nsys recorded {recorded_s:.2g} s of {format_duration(duration)}: the program ended before the window did"
        )
    return None


def is_recorded_to_its_end(
    timeline: TimelinePass, recorded_s: float | None, phases: Iterable[Mapping[str, Any]]
) -> bool:
    """Whether a window by the clock has work of the GPU up to its end.

    nsys says of each such window that events might be missing, and of some that incomplete ones were dropped: the
    buffers that CUPTI fills when it ends never come back, and what the GPU has not done then is beyond the window. On
    an H200 nothing of the window was missing.

    Args:
        timeline: The pass.
        recorded_s: Seconds that were recorded; None: the report does not tell.
        phases: The rows of table phases of the report.
    """
    ends_ns = [row["start_ns"] + row["duration_ns"] for row in phases if row.get("duration_ns") is not None]
    if timeline.duration is None or recorded_s is None or not ends_ns:
        return False
    return bool(max(ends_ns) >= _CLOSE * recorded_s * 1e9)


def empty_window(timeline: TimelinePass) -> str | None:
    """Why there is no report at all of a window, as a question; None where all of the program was to be recorded."""
    if timeline.within is not None:
        return f"did the range {show_value(timeline.within.nvtx)} begin and end?"
    return f"did the program run longer than {format_duration(timeline.after)}?" if timeline.after else None


def reports_ended_early(iterations: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The report of each rank whose trace has fewer iterations than others', and a sentence.

    Args:
        iterations: The rows of table iterations of a run; those that NVTX ranges of one name mark are compared.
    """
    most: dict[int, Mapping[str, Any]] = {}
    for row in iterations:
        rank = row.get("rank")
        if rank is not None and row["found_by"] == "nvtx" and row["iterations"] is not None:
            most[rank] = max(row, most.get(rank, row), key=lambda each: int(each["iterations"]))
    if len({row["name"] for row in most.values()}) != 1:
        return []
    highest = max(int(row["iterations"]) for row in most.values())
    sentence = "rank {} has {} iterations ({}), others up to {}: its trace ends early, or it does less"
    return [
        (row["report"], sentence.format(rank, row["iterations"], row["name"], highest))
        for rank, row in sorted(most.items())
        if row["iterations"] < _CLOSE * highest
    ]


def fewer_launches(counters_pass: CountersPass, launches: Sequence[Mapping[str, Any]]) -> str | None:
    """A sentence on the ranks and kernels of which fewer launches were measured than asked for; None: none is short.

    Args:
        counters_pass: The pass. What a timeline chooses is compared with that choice instead; of kernels that nobody
            names, one may well be launched once.
        launches: The rows of table launches of a run.
    """
    asked = counters_pass.launches.count
    if asked is None or counters_pass.is_guided or not counters_pass.kernels.is_named:
        return None
    counts: dict[tuple[Any, Any, str], int] = {}
    for row in launches:
        key = row.get("rank"), row.get("pid"), str(row["kernel"])
        counts[key] = counts.get(key, 0) + 1
    short = {key: count for key, count in counts.items() if count < asked}
    if not short:
        return None
    (_, _, kernel), count = next(iter(short.items()))
    ranks = sorted({rank for rank, _, _ in short if rank is not None})
    of_ranks = (
        f" of rank{'s' if ranks[1:] else ''} {first_names([str(rank) for rank in ranks], _MAX_RANKS)}" if ranks else ""
    )
    kernels = plural(len({name for *_, name in short}), "kernel")
    return f"fewer launches than the {asked} asked for, of {kernels}{of_ranks}, such as {count} of {kernel}"


def dropped_samples(metrics: Iterable[Mapping[str, Any]]) -> str | None:
    """A sentence on the launches of which ncu says that it dropped samples; None: of none.

    Args:
        metrics: The rows of table metrics of a run.
    """
    dropped = [row["value"] for row in metrics if row["metric"] == _DROPPED and row["value"]]
    launches = singular_or_count(len(dropped), "one launch", "launches")
    return f"ncu dropped {sum(dropped):,.0f} samples over time of {launches} ({_DROPPED})" if dropped else None
