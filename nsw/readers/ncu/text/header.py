"""The lines of ncu's text that say whose figures follow: a process, a device, a launch, a summary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsw.tables.data import Row

_SIZE = r"\(\d+, ?\d+, ?\d+\)"
_ANY_SIZE: Final = r"\((?:-?\d+, ?){2}-?\d+\)"
_PROCESS: Final = re.compile(r"\s{0,4}\[(\d{1,18})\] ?(.*)@([^\s@]+)\s*")
# `, Context 1, Stream 7, Device 0, CC 8.9`, the later parts only in newer versions
_PLACE: Final = re.compile(
    r"(?:, )?Context (?P<context>\d{1,18})(?:, Stream (?P<stream>\d{1,18}))?"
    r"(?:, Device (?P<device>\d{1,9}))?(?:, CC (?P<cc>\d+\.\w+))?\s*"
)
_SUMMARY: Final = re.compile(
    r"(?:, Device (?P<device>\d{1,9}))?(?:, CC (?P<cc>\d+\.\w+))?, Invocations (?P<count>[\d,.]{1,18})\s*"
)
_NEGATIVE: Final = re.compile(rf"{_ANY_SIZE}x{_ANY_SIZE}\Z")  # where sizes are not found: one is below zero
_GEOMETRY: Final = re.compile(rf"(?P<grid>{_SIZE})x(?P<block>{_SIZE})\Z")
_DATE: Final = re.compile(r"(?:, |\A)\d{4}-\w{3}-\d{1,2} \d\d:\d\d:\d\d\Z")
_PIECE: Final = re.compile(r"\)x\(-?\d|\), Context \d|, Context \d+, Stream|, CC \d+\.\d+\s*\Z")
_BRACKETS: Final = (("(", ")"), ("<", ">"))
_FUNCTION: Final = re.compile(r"(?:void )?[A-Za-z_~][\w:~]*(?:<.*>)?")  # a name that lacks its parameters
_DEVICE: Final = re.compile(r"\s+Device (\d{1,9}), CC (\d+\.\w+)\s*")


@dataclass(frozen=True, slots=True)
class Header:
    """What a header tells, in the columns of the launches table; `invocations` of a summary only."""

    columns: Row
    invocations: int | None = None


def process_of(line: str) -> Row | None:
    """The process of `[3662034] instructionMix@127.0.0.1`."""
    if (found := _PROCESS.fullmatch(line)) is None:
        return None
    return {"pid": int(found[1]), "process": found[2].strip() or None, "host": found[3]}


def is_device_line(line: str) -> Row | None:
    """The device of a line that has nothing else, as `--print-summary per-gpu` writes it."""
    found = _DEVICE.fullmatch(line)
    return {"device": int(found[1]), "compute_capability": found[2]} if found else None


def header_of(line: str, before: str) -> Header | None:
    """The launch or summary that a line announces; its name may be on the line before."""
    summary = _last(_SUMMARY, line, ", Invocations ")
    place = None if summary else _last(_PLACE, line, "Context ")
    found = summary or place
    if found is None:
        return None
    head = line[: found.start()].strip()
    geometry = _GEOMETRY.search(head)
    if geometry is None and _NEGATIVE.search(head):
        return None
    date = _DATE.search(head)
    name = (head[: geometry.start()] if geometry else head[: date.start()] if date else head).strip()
    name = _whole_name(name, before, is_lone=geometry is not None)
    if not name or not (geometry or date or line[:1].isspace()) or name.count(")") > name.count("("):
        return None
    columns: Row = {"kernel": name, "compute_capability": found["cc"], "device": _int(found["device"])}
    if geometry:
        columns |= {"grid": _size(geometry["grid"]), "block_size": _size(geometry["block"])}
    columns = {k: v for k, v in columns.items() if v is not None}
    if summary:
        count = re.sub(r"\D", "", summary["count"])
        return Header(columns, int(count)) if count else None
    return Header(columns | {"context": _int(found["context"]), "stream": _int(found["stream"])})


def _whole_name(name: str, before: str, *, is_lone: bool) -> str:
    """A kernel's name with its beginning, where that is on the line before: wrapped, or above its sizes."""
    begun = before.strip()
    if not name:
        return begun if is_lone else ""
    is_open = any(begun.count(open_) > begun.count(close) for open_, close in _BRACKETS)
    is_cut = any(name.count(close) > name.count(open_) for open_, close in _BRACKETS) and is_open
    is_called = name.startswith("(") and not name.startswith("(anonymous") and _FUNCTION.fullmatch(begun) is not None
    if not before[:1].isspace() or not (is_cut or is_called):
        return name
    joined = f"{begun}{' ' if begun.endswith(',') else ''}{name}"
    return joined if all(joined.count(open_) == joined.count(close) for open_, close in _BRACKETS) else name


def is_piece_of_header(line: str) -> bool:
    """Whether a line that is no header is one that something broke in two."""
    return _PIECE.search(line) is not None


def _last(pattern: re.Pattern[str], line: str, word: str) -> re.Match[str] | None:
    """The match that ends the line; names hold commas and may hold the word itself."""
    at = line.rfind(word)
    if at < 0:
        return None
    # the pattern begins a little before its word: `, Device 0, CC 8.9, Invocations 14`
    for start in (line.rfind(", Device ", 0, at), at - 2, at):
        if start >= 0 and (found := pattern.fullmatch(line, start)):
            return found
    return None


def _int(text: str | None) -> int | None:
    return int(text) if text else None


def _size(text: str) -> str:
    return "(" + ", ".join(re.findall(r"\d+", text)) + ")"
