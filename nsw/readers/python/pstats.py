"""Python's own profiler: what `python -m cProfile -o FILE` and `pstats.Stats.dump_stats` leave."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.readers.model import Options, Report, Sample
from nsw.readers.python.pstats_imports import Entry, Key, import_seconds
from nsw.readers.python.pstats_marshal import Decoder, MarshalError

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.tables import Row

# a dict (of any flag) whose first key is a tuple of three: (file, line, function)
_START = re.compile(rb"[\x7b\xfb](?:[\x28\xa8]\x03\0\0\0|[\x29\xa9]\x03)[aAzZustr\xe1\xc1\xfa\xda\xf5\xf3\xf4]")
_SAMPLED = re.compile(rb"[\x7b\xfb][\x29\xa9]\x01[zZ\xfa\xda]\x0b__sampled__")
_EMPTY = (b"{0", b"\xfb0")
_MAX_BYTES = 1 << 29  # some hundred times the largest real ones; it is decoded in memory
_SAMPLED_KEY = ("__sampled__",)

_BUILT_IN = re.compile(r"<built-in (?:method|function) ([\w.]+)\.\w+>")
_FROZEN = re.compile(r"<frozen ([\w.]+)>")
_LIBRARY = re.compile(r".*[/\\](?:site-packages|dist-packages|[Ll]ib[/\\]python\d[\d.]*t?|lib-dynload)[/\\]")


def sniff(sample: Sample) -> int:
    """Certain when the file begins as a marshalled dict with a function as key."""
    if _START.match(sample.head) or _SAMPLED.match(sample.head):
        return 100
    return 90 if sample.head in _EMPTY else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, the most expensive first, and `facts` with the totals of the profile."""
    report = Report(str(path), tool="cProfile", format="pstats")
    if path.stat().st_size > _MAX_BYTES:
        report.error(f"larger than {_MAX_BYTES >> 20} MiB, the most that nsw reads of a cProfile file")
        return report
    functions: list[Row] = []
    entries: dict[Key, Entry] = {}
    sampled = False
    odd = 0
    try:
        for key, value in Decoder(path.read_bytes()).pairs():
            if key == _SAMPLED_KEY:
                sampled = True
            elif (row := _function(key, value)) is not None:
                functions.append(row)
                _note(entries, key, value)
            else:
                odd += 1
    except MarshalError as fault:
        report.error(
            f"cut short or damaged: {fault}; functions read before it: {len(functions)}",
            fix="profile again, with python -m cProfile",
        )
    if odd:
        report.error(f"{odd} entries do not have cProfile's form and were left out")
    if sampled:
        _no_calls(functions, report)
    found = import_seconds(entries)
    if found is not None:
        for row, seconds in zip(functions, found.values(), strict=False):
            row["import_s"] = seconds
    functions.sort(key=lambda row: -row["self_s"])
    if options.wants("functions"):
        report.tables["functions"] = functions
    if options.wants("facts") and functions:
        report.tables["facts"] = _facts(functions)
    return report


def _function(key: tuple[object, ...], value: object) -> Row | None:
    """The row of one entry, or None where it has not the shape that cProfile gives it."""
    match key, value:
        case (str(file), int(line), str(name)), (
            int(primitive),
            int(calls),
            float() | int() as own,
            float() | int() as total,
            *_,
        ):
            pass
        case _:
            return None
    if not (_is_time(own) and _is_time(total) and all(0 <= n < 2**63 for n in (line, primitive, calls))):
        return None
    in_python = file not in ("~", "")  # "~" stands for a function written in C, which has no file
    return {
        "name": name,
        "file": file if in_python else None,
        "line": line if in_python else None,
        "module": _module(file, name),
        "calls": int(calls),
        "primitive_calls": int(primitive),
        "self_s": float(own),
        "cpu_time_s": float(total),
    }


def _note(entries: dict[Key, Entry], key: tuple[object, ...], value: object) -> None:
    """Keep what tells the imports: times, and the function's own time by caller."""
    match key, value:
        case (str(file), int(line), str(name)), (_, _, float() | int() as own, float() | int() as total, *more):
            callers: dict[Key, float] = {}
            for caller, edge in more[0].items() if more and isinstance(more[0], dict) else ():
                match caller, edge:
                    case (str(f), int(n), str(c)), (_, _, float() | int() as seconds, *_) if _is_time(seconds):
                        callers[f, n, c] = float(seconds)
            # a file that has an entry twice is no profile, but its rows are kept apart
            entries[file, line, name if (file, line, name) not in entries else f"{name} {len(entries)}"] = Entry(
                float(own), float(total), callers
            )


def _is_time(value: float) -> bool:
    # timers may run a rounding error backwards; NaN compares false
    return -1.0 < value < 1e12


def _module(file: str, name: str) -> str | None:
    """The dotted module that the place of a file tells; the bare file name outside of a library."""
    if file == "~":
        built_in = _BUILT_IN.fullmatch(name)
        return built_in[1] if built_in else None
    if frozen := _FROZEN.fullmatch(file):
        return frozen[1]
    if file.startswith("<"):
        return None
    within = _LIBRARY.sub("", file)
    parts = [part for part in re.split(r"[/\\]", within) if part]
    if not parts:
        return None
    parts[-1] = re.sub(r"\.(?:py[cwx]?|so|pyd)$", "", parts[-1])
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return parts[-1] if within == file else ".".join(parts)


def _no_calls(functions: list[Row], report: Report) -> None:
    report.warn("a sampling profiler made it: it counts samples, so calls and primitive_calls are absent")
    for row in functions:
        row["calls"] = row["primitive_calls"] = None


def _facts(functions: list[Row]) -> list[Row]:
    """What `pstats` prints above its table: calls, primitive calls, seconds."""
    facts: list[tuple[str, Any, str | None]] = [("total_time_s", sum(row["self_s"] for row in functions), "s")]
    if "import_s" in functions[0]:
        facts.append(("import_time_s", sum(row["import_s"] for row in functions), "s"))
    if functions[0]["calls"] is not None:
        facts.append(("function_calls", sum(row["calls"] for row in functions), None))
        facts.append(("primitive_calls", sum(row["primitive_calls"] for row in functions), None))
    return [{"key": key, "value": value, "unit": unit} for key, value, unit in facts]
