"""Python's own profiler: what `python -m cProfile -o FILE` and `pstats.Stats.dump_stats` leave.

`marshal.load` may crash the interpreter on a file made to do so, and reads only what this Python's version knows. A
profile is a dict of tuples of strings and numbers, encoded alike by all of Python 3, so `MarshalDecoder` needs few
types, no subprocess and no trust. What bounds it: an item takes at least one byte of the file, nesting is limited, and
only tuples of plain values are ever hashed.

A part of a profile is the import of modules: a price paid once, before the program does its work. What importlib does
itself and the code of imported modules is import; the time of a function that both call, and the program too, is shared
out by what the profile says of its callers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from nsw.readers.model import Options, Report, Sample
from nsw.safe_files import read_bytes
from nsw.tables import Row

__all__ = ["FunctionTimes", "Key", "own_seconds_within_imports", "read", "sniff"]


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
    entries: dict[Key, FunctionTimes] = {}
    sampled = False
    odd = 0
    try:
        for key, value in MarshalDecoder(read_bytes(path)).read_pairs():
            if key == _SAMPLED_KEY:
                sampled = True
            elif (row := _function_row(key, value)) is not None:
                functions.append(row)
                _keep_times_by_caller(entries, key, value)
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
        _warn_if_no_calls(functions, report)
    seconds_by_key = own_seconds_within_imports(entries)
    if seconds_by_key is not None:
        for row, seconds in zip(functions, seconds_by_key.values(), strict=False):
            row["import_s"] = seconds
    functions.sort(key=lambda row: -row["self_s"])
    if options.wants("functions"):
        report.tables["functions"] = functions
    if options.wants("facts") and functions:
        report.tables["facts"] = _total_facts(functions)
    return report


def _function_row(key: tuple[object, ...], value: object) -> Row | None:
    """The row of one entry, or None where it has not the shape that cProfile gives it."""
    match key, value:
        case (str(file), int(line), str(name)), (
            int(primitive),
            int(calls),
            float() | int() as own_s,
            float() | int() as total,
            *_,
        ):
            pass
        case _:
            return None
    if not (_is_valid_time(own_s) and _is_valid_time(total) and all(0 <= n < 2**63 for n in (line, primitive, calls))):
        return None
    in_python = file not in ("~", "")  # "~" stands for a function written in C, which has no file
    return {
        "name": name,
        "file": file if in_python else None,
        "line": line if in_python else None,
        "module": _dotted_module_of_file(file, name),
        "calls": int(calls),
        "primitive_calls": int(primitive),
        "self_s": float(own_s),
        "cpu_time_s": float(total),
    }


def _keep_times_by_caller(entries: dict[Key, FunctionTimes], key: tuple[object, ...], value: object) -> None:
    """Keep what tells the imports: times, and the function's own time by caller."""
    match key, value:
        case (str(file), int(line), str(name)), (_, _, float() | int() as own_s, float() | int() as total, *edges):
            callers: dict[Key, tuple[float, float]] = {}
            for caller, edge in edges[0].items() if edges and isinstance(edges[0], dict) else ():
                match caller, edge:
                    case (str(f), int(n), str(c)), (_, _, float() | int() as s, float() | int() as t, *_) if (
                        _is_valid_time(s) and _is_valid_time(t)
                    ):
                        callers[f, n, c] = float(s), float(t)
            # a file that has an entry twice is no profile, but its rows are kept apart
            entries[file, line, name if (file, line, name) not in entries else f"{name} {len(entries)}"] = (
                FunctionTimes(float(own_s), float(total), callers)
            )


def _is_valid_time(value: float) -> bool:
    # timers may run a rounding error backwards; NaN compares false
    return -1.0 < value < 1e12


def _dotted_module_of_file(file: str, name: str) -> str | None:
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


def _warn_if_no_calls(functions: list[Row], report: Report) -> None:
    report.warn("a sampling profiler made it: it counts samples, so calls and primitive_calls are absent")
    for row in functions:
        row["calls"] = row["primitive_calls"] = None


def _total_facts(functions: list[Row]) -> list[Row]:
    """What `pstats` prints above its table: calls, primitive calls, seconds."""
    facts: list[tuple[str, Any, str | None]] = [("total_time_s", sum(row["self_s"] for row in functions), "s")]
    if "import_s" in functions[0]:
        facts.append(("import_time_s", sum(row["import_s"] for row in functions), "s"))
    if functions[0]["calls"] is not None:
        facts.append(("function_calls", sum(row["calls"] for row in functions), None))
        facts.append(("primitive_calls", sum(row["primitive_calls"] for row in functions), None))
    return [{"key": key, "value": value, "unit": unit} for key, value, unit in facts]


Key: TypeAlias = tuple[str, int, str]  # file, line, function

_MODULE: Final = "<module>"
_IMPORTING: Final = ("<frozen importlib", "<frozen zipimport", "<frozen runpy")
_ROUNDS: Final = 100
_SETTLED: Final = 1e-6


@dataclass(frozen=True, slots=True)
class FunctionTimes:
    """One function: its own time and that with its callees (s), and both by caller (s)."""

    self_s: float
    total_s: float
    callers: Mapping[Key, tuple[float, float]]


def own_seconds_within_imports(entries: Mapping[Key, FunctionTimes]) -> dict[Key, float] | None:
    """Of each function's own time the part within imports, in s; None where the profile tells no callers."""
    if not any(entry.callers for entry in entries.values()):
        return None
    modules = [key for key in entries if key[2] == _MODULE]
    program = max(modules, key=lambda key: entries[key].total_s, default=None)
    share = {key: 1.0 if _is_import_function(key) and key != program else 0.0 for key in entries}
    shared = [key for key in entries if not _is_import_function(key) and entries[key].callers]
    weights = {key: _caller_weights(entries, key, entries[key].total_s, 1) for key in shared}
    for _ in range(_ROUNDS):
        change = 0.0
        for key in shared:
            new_share = sum(weight * share[caller] for caller, weight in weights[key].items())
            change = max(change, abs(new_share - share[key]))
            share[key] = new_share
        if change < _SETTLED:
            break
    import_share = dict(share)  # what calls others long may be called often by imports itself, such as next()
    for key in shared:
        of_itself = entries[key].callers.get(key, (0.0, 0.0))[0]
        caller_weights = _caller_weights(entries, key, entries[key].self_s - of_itself, 0)
        import_share[key] = sum(weight * share[caller] for caller, weight in caller_weights.items())
    return {key: entries[key].self_s * part for key, part in import_share.items()}


def _is_import_function(key: Key) -> bool:
    return key[2] == _MODULE or key[0].startswith(_IMPORTING)


def _caller_weights(entries: Mapping[Key, FunctionTimes], key: Key, total: float, time_index: int) -> dict[Key, float]:
    """How much of a function's time each caller is charged with, together at most 1; recursion charges nobody.

    The rest is of callers that the profile lost: PyTorch's import drops the frames that it began in, the program's too.

    Args:
        entries: All functions.
        key: The function.
        total: Its time, s.
        time_index: Of the times by caller: 0 its own, 1 that with its callees.
    """
    callers = {c: max(s[time_index], 0.0) for c, s in entries[key].callers.items() if c != key and c in entries}
    total = max(total, sum(callers.values()))
    if total <= 0:
        return dict.fromkeys(callers, 1 / len(callers)) if callers else {}
    return {caller: seconds / total for caller, seconds in callers.items()}


_REFERENCE_FLAG = 0x80  # the item is numbered, for later items to refer to
_MAX_DEPTH = 8  # a profile needs 4: dict, tuple, dict of callers, tuple
_MAX_LONG_DIGITS = 5  # of 15 bits: more than int64 holds
_OTHER_TYPES: Final = {
    ord("c"): "the program's own code, which `python -m profile` leaves there (cProfile does not)",
    **dict.fromkeys(b"sIRf", "text or numbers as Python 2 wrote them, which nsw does not read"),
}
_END = object()  # closes a dict


class MarshalError(Exception):
    """The bytes are no profile; `offset` is where that showed."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset}")
        self.offset = offset


class MarshalDecoder:
    """Reads one marshalled dict from `data`, pair by pair."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._numbered: list[object] = []
        self._kinds: dict[int, Callable[[int], object]] = {
            ord("0"): lambda _: _END,
            ord("N"): lambda _: None,
            ord("T"): lambda _: True,
            ord("F"): lambda _: False,
            ord("i"): lambda _: self._read_integer(),
            ord("l"): lambda _: self._read_long(),
            ord("g"): lambda _: float(struct.unpack("<d", self._read_bytes(8))[0]),
            **dict.fromkeys(b"uaAt", lambda _: self._read_text(self._read_integer())),
            **dict.fromkeys(b"zZ", lambda _: self._read_text(self._read_byte())),
            ord("r"): lambda _: self._resolve_reference(self._read_integer()),
            ord("("): lambda depth: self._read_tuple(self._read_integer(), depth),
            ord(")"): lambda depth: self._read_tuple(self._read_byte(), depth),
            ord("{"): lambda depth: dict(self._read_pairs(depth)),
        }

    def read_pairs(self) -> Iterator[tuple[tuple[object, ...], object]]:
        """The pairs of the outermost dict, as they are read.

        Raises:
            MarshalError: The bytes end too early or hold what no profile has. Pairs given before are whole.
        """
        code = self._read_byte()
        if code & ~_REFERENCE_FLAG != ord("{"):
            raise MarshalError("no dict", 0)
        if code & _REFERENCE_FLAG:
            self._numbered.append(None)  # a dict within itself is no profile
        yield from self._read_pairs(1)

    def _read_pairs(self, depth: int) -> Iterator[tuple[tuple[object, ...], object]]:
        while (key := self._read_object(depth)) is not _END:
            # a tuple of tuples that refer to each other would take for ever to hash
            if not isinstance(key, tuple) or not all(isinstance(part, str | int) for part in key):
                raise MarshalError("a key that is not (file, line, function)", self._at)
            value = self._read_object(depth)
            if value is _END:
                raise MarshalError("a key without a value", self._at)
            yield key, value

    def _read_object(self, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise MarshalError("nested too deep for a profile", self._at)
        start = self._at
        code = self._read_byte()
        kind = self._kinds.get(code & ~_REFERENCE_FLAG)
        if kind is None:
            raise MarshalError(
                _OTHER_TYPES.get(code & ~_REFERENCE_FLAG)
                or f"a value of a type that profiles do not contain ({code:#04x})",
                start,
            )
        if not code & _REFERENCE_FLAG:
            return kind(depth + 1)
        number = len(self._numbered)
        self._numbered.append(None)  # numbered before its content
        self._numbered[number] = value = kind(depth + 1)
        return value

    def _read_bytes(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MarshalError(f"the file ends within a value that began before byte {self._at}", len(self._data))
        chunk = self._data[self._at : end]
        self._at = end
        return chunk

    def _read_byte(self) -> int:
        return self._read_bytes(1)[0]

    def _read_integer(self) -> int:
        return int.from_bytes(self._read_bytes(4), "little", signed=True)

    def _read_long(self) -> int:
        digits = self._read_integer()
        if abs(digits) > _MAX_LONG_DIGITS:
            raise MarshalError("a number too large for a profile", self._at)
        parts: tuple[int, ...] = struct.unpack(f"<{abs(digits)}H", self._read_bytes(2 * abs(digits)))
        value = sum(part << (15 * index) for index, part in enumerate(parts))
        return -value if digits < 0 else value

    def _read_text(self, size: int) -> str:
        return self._read_bytes(size).decode("utf-8", errors="replace")

    def _resolve_reference(self, index: int) -> object:
        if not 0 <= index < len(self._numbered) or self._numbered[index] is None:
            raise MarshalError("a reference to nothing", self._at)
        return self._numbered[index]

    def _read_tuple(self, size: int, depth: int) -> tuple[object, ...]:
        if not 0 <= size <= len(self._data) - self._at:
            raise MarshalError("a tuple longer than the file", self._at)
        parts = tuple(self._read_object(depth) for _ in range(size))
        if _END in parts:
            raise MarshalError("a tuple with an end mark in it", self._at)
        return parts
