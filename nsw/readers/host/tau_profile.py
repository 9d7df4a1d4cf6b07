"""profile.NODE.CONTEXT.THREAD of TAU: the timers of one thread by one metric, which the first line names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import text_lines
from nsw.readers.text.quantities import number, parse_integer
from nsw.tables import Row

__all__ = ["Timer", "function_rows", "read", "sniff"]


_HEAD: Final = re.compile(r"(\d{1,9}) templated_functions(?:_(?:MULTI_)?(\S{1,100}))?\s*\Z")
# "NAME" CALLS SUBROUTINES EXCLUSIVE INCLUSIVE PROFILED-CALLS GROUP="GROUP|GROUP"
_TIMER: Final = re.compile(
    r'"(.{1,20000})" (\S{1,30}) \S{1,30} (\S{1,40}) (\S{1,40}) \S{1,30} GROUP="(.{0,1000})"\s*\Z'
)
_ATTRIBUTE: Final = re.compile(r"<attribute><name>([^<]{1,200})</name><value>([^<]{0,4000})</value>")
_FILE: Final = re.compile(r"(?:^|\.)profile\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})\Z")
_RANK: Final = re.compile(r"\.rank(\d{1,7})\.")
_TIME: Final = re.compile(r"(?:^|_)TIME|TIMERS|^GET_TIME_OF_DAY$|^GETTIMEOFDAY$")
_COUNTERS: Final = {"PAPI_TOT_CYC": "cycles", "PAPI_TOT_INS": "instructions"}
_MICRO: Final = 1e6
_MPI: Final = "MPI"
_NO_MESSAGE: Final = re.compile(r"P?MPI_(?:Init|Finalize|File_)", re.IGNORECASE)  # starts, ends, reads and writes


def sniff(sample: Sample) -> int:
    """Certain by its first two lines."""
    lines = sample.text[:4000].splitlines()[:2]
    return 100 if len(lines) == 2 and _HEAD.match(lines[0]) and lines[1].startswith("# Name Calls Subrs Excl") else 0


def read(path: Path, options: Options) -> Report:
    """Fill `function_rows`, in the file's order, and `facts` of the process and its machine."""
    report = Report(str(path), tool="tau", format="tau-profile")
    lines = iter(text_lines(path))
    head, metric = _HEAD.match(next(lines, (0, ""))[1]), "TIME"
    attributes = dict(_ATTRIBUTE.findall(next(lines, (0, ""))[1]))
    promised = int(head[1]) if head else 0
    metric = attributes.get("Metric Name") or (head[2] if head and head[2] else "TIME")
    report.tool_version = attributes.get("TAU Version")
    column = "self_s" if _TIME.search(metric) else _COUNTERS.get(metric)
    if column is None:
        report.error(f"{metric} is neither a time nor cycles or instructions, and not read", fix="read those of TIME")
        return report
    timers: list[Timer] = []
    mpi: list[float] = []
    bad = []
    for line, text in lines:
        if text.rstrip().endswith((" aggregates", " userevents")) and not text.startswith('"'):
            break
        timer = _parse_timer(text, mpi)
        if timer is None:
            bad.append(line)
        else:
            timers.append(timer)
    if len(timers) + len(bad) < promised:
        report.error(f"cut short: {len(timers)} of {promised} timers are there", fix="copy it again")
    wrong = "no timer with its calls and times; left out"
    report.errors([wrong] * len(bad), f"{len(bad)} such lines in all", lines=bad)
    # rank, host and process; TAU's node is the rank of MPI
    rank_match, numbered = _RANK.search(path.name), _FILE.search(path.name)
    rank = int(rank_match[1]) if rank_match else int(numbered[1]) if numbered else None
    origin = {"rank": rank, "host": attributes.get("Hostname"), "pid": parse_integer(attributes.get("pid", ""))}
    if options.wants("functions"):
        report.tables["functions"] = [
            origin | row for row in function_rows(timers, lambda t: _amount_columns(column, t))
        ]
    if options.wants("facts"):
        is_whole = len(timers) == promised
        report.tables["facts"] = [
            origin | fact for fact in _fact_rows(attributes, timers if is_whole else [], mpi, column)
        ]
    return report


def _parse_timer(text: str, mpi_own_times: list[float]) -> Timer | None:
    match = _TIMER.match(text)
    numbers = [number(match[n]) for n in (2, 3, 4)] if match else []
    calls, own_time, total = (*numbers, None, None, None)[:3]
    if match is None or calls is None or own_time is None or total is None:
        return None
    groups = match[5].split("|")
    if _MPI in groups and "TAU_CALLPATH" not in groups and not _NO_MESSAGE.match(match[1]):
        mpi_own_times.append(own_time.value)
    return Timer(match[1], calls.value, own_time.value, total.value)


def _amount_columns(column: str, timer: Timer) -> Row:
    if column != "self_s":
        return {column: timer.own_amount}
    return {"self_s": timer.own_amount / _MICRO, "cpu_time_s": timer.total / _MICRO}


def _fact_rows(attributes: dict[str, str], timers: Sequence[Timer], mpi: Sequence[float], column: str) -> list[Row]:
    texts = (("cpu_name", "CPU Type"), ("command", "Command Line"), ("metric", "Metric Name"))
    facts: list[Row] = [{"key": key, "text": attributes[name]} for key, name in texts if attributes.get(name)]
    values: list[tuple[str, Any, str | None]] = []
    if column == "self_s" and timers:
        elapsed = max(timer.total for timer in timers) / _MICRO
        values.append(("elapsed_s", elapsed, "s"))
        if mpi:
            values.append(("mpi_s", sum(mpi) / _MICRO, "s"))
            values += [("mpi_pct", 100 * sum(mpi) / _MICRO / elapsed, "%")] if elapsed else []
    return facts + [{"key": key, "value": value, "unit": unit} for key, value, unit in values]


_PATH: Final = " => "
_KIND: Final = re.compile(r"\[(SAMPLE|SUMMARY|CONTEXT|UNWIND|CALLSITE)\] ")
# NAME [LANGUAGE] [{FILE} {LINE,COLUMN}-{LINE,COLUMN}]
_LOCATION: Final = re.compile(
    r"(.{1,8000}?)(?: C)? {0,2}\[\{([^{}]{0,4000})\} ?(?:\{(\d{1,9})(?:,\d{1,9})?\}(?:-\{\d{1,9},\d{1,9}\})?)?\]"
)
_UNRESOLVED: Final = "UNRESOLVED "


class Timer(NamedTuple):
    """One line of a profile; times or counts are in its metric's own unit."""

    name: str
    calls: float
    own_amount: float
    total: float
    pm: float | None = None


def function_rows(timers: Sequence[Timer], amount_columns: Callable[[Timer], Row]) -> list[Row]:
    """The rows of a thread's timers.

    Args:
        timers: As the file has them.
        amount_columns: The columns that hold a timer's own and whole time or count.
    """
    flat = [timer for timer in timers if _PATH not in timer.name and "  => " not in timer.name]
    of_kind: dict[str, list[Timer]] = {}
    for timer in flat:
        match = _KIND.match(timer.name)
        of_kind.setdefault(match[1] if match else "", []).append(timer)
    sampled = {_timer_name_without_marks(timer.name): timer.total for timer in of_kind.get("CONTEXT", ())}
    rows = [
        {
            **_name_columns(timer.name),
            **({"calls": round(timer.calls)} if float(timer.calls).is_integer() else {}),
            **amount_columns(timer._replace(own_amount=_own_time_without_samples(timer, sampled.get(timer.name)))),
        }
        for timer in of_kind.get("", ())
    ]
    return rows + [
        {**_name_columns(name), "samples": round(timer.calls), **amount_columns(timer), "line": None}
        for name, timer in _sum_samples_by_function(of_kind.get("SUMMARY", of_kind.get("SAMPLE", []))).items()
    ]


def _own_time_without_samples(timer: Timer, sampled: float | None) -> float:
    """A timer's own time less what its samples say of the functions in it."""
    return timer.own_amount if sampled is None else max(0.0, timer.own_amount - sampled)


def _sum_samples_by_function(timers: Iterable[Timer]) -> dict[str, Timer]:
    """The samples of each function, which TAU tells apart by their line."""
    merged: dict[str, Timer] = {}
    for timer in timers:
        name = re.sub(r" ?\{\d{1,9}\}\]$", "]", _timer_name_without_marks(timer.name))
        existing = merged.get(name, Timer(name, 0, 0, 0))
        merged[name] = Timer(
            name, existing.calls + timer.calls, existing.own_amount + timer.own_amount, existing.total + timer.total
        )
    return merged


def _timer_name_without_marks(name: str) -> str:
    return _KIND.sub("", name, count=1)


def _name_columns(name: str) -> Row:
    """Function, file and line, or module."""
    if name.startswith(_UNRESOLVED):
        return {"name": name.split(maxsplit=1)[0], "module": name.removeprefix(_UNRESOLVED).strip()}
    match = _LOCATION.fullmatch(name.strip())
    if match is None:
        return {"name": name.strip()}
    return {"name": match[1], "file": match[2] or None, "line": int(match[3]) if match[3] else None}
