"""Damage to a report's bytes, as hypothesis draws it: cut, spliced, flipped, written in another encoding, mistyped."""

from __future__ import annotations

import gzip
import os
from typing import Any

from hypothesis import strategies as st

EXPLORES = bool(os.environ.get("NSW_EXPLORE"))  # other examples each time (tests/conftest.py), and many more of them
TIMES = 20 if EXPLORES else 1
LONGEST = 1_500_000  # bytes of a damaged report
PIECES = [b'"', b"\n", b",", b"\r", b"\0", b"-----", b"(!)", b"1e999", b"nan", b"-", b" ", b"\xff", b"==", b"{", b"]"]
NUMBERS = [
    b"9" * 400,
    b"-",
    b"-5",
    b"1e999",
    b"nan",
    b"inf",
    b"1,2.3.4",
    b"",
    b"99999999999999999999",
    b"0x10",
    b"null",
]
ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252", "utf-32"]

place = st.floats(0, 1)
_line = st.integers(0, 10_000)


def damages(others: list[str]) -> st.SearchStrategy[tuple[Any, ...]]:
    """One piece of damage; `others` are the names of the reports that it may be spliced with."""
    return st.one_of(
        st.tuples(st.just("cut"), place),
        st.tuples(st.just("head off"), place),
        st.tuples(st.just("copy within"), place, place, place),
        st.tuples(st.just("splice"), st.sampled_from(others), place, place),
        st.tuples(st.just("flip"), st.lists(st.tuples(place, st.integers(1, 255)), min_size=1, max_size=12)),
        st.tuples(st.just("flip head"), st.lists(st.tuples(place, st.integers(1, 255)), min_size=1, max_size=6)),
        st.tuples(st.just("noise"), place, st.integers(0, 2**32)),
        st.tuples(st.just("insert"), place, st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=40))),
        st.tuples(st.just("lines"), st.sampled_from(["drop", "double", "swap", "join"]), _line, _line),
        st.tuples(st.just("column"), st.sampled_from(["drop", "double", "swap"]), st.integers(0, 25), st.booleans()),
        st.tuples(st.just("encode"), st.sampled_from(ENCODINGS)),
        st.tuples(st.just("ends"), st.sampled_from([b"\r\n", b"\r", b"\n\n", b"\x0b", b"\n\0"])),
        st.tuples(st.just("number"), st.sampled_from(NUMBERS), place),
        st.tuples(st.just("pack"), place),
    )


def damaged(data: bytes, how: tuple[Any, ...], others: dict[str, bytes]) -> bytes:
    """The bytes after one piece of damage."""

    def at(fraction: float) -> int:
        return int(fraction * len(data))

    match how:
        case "cut", where:
            return data[: at(where)]
        case "head off", where:
            return data[at(where) :]
        case "copy within", a, b, where:
            return data[: at(where)] + data[min(at(a), at(b)) : max(at(a), at(b))] + data[at(where) :]
        case "splice", other, here, there:
            return data[: at(here)] + others[other][int(there * len(others[other])) :]
        case ("flip" | "flip head") as what, several:
            changed = bytearray(data)
            reach = len(changed) if what == "flip" else min(len(changed), 4096)
            for where, bits in several if changed else ():
                changed[min(int(where * reach), reach - 1)] ^= bits
            return bytes(changed)
        case "noise", where, seed:
            page = at(where) // 4096 * 4096
            noise = (seed * 2654435761 % 2**32).to_bytes(4, "little") * 1024
            return data[:page] + noise[: len(data) - page] + data[page + 4096 :]
        case "insert", where, more:
            return data[: at(where)] + more + data[at(where) :]
        case "lines", what, first, second:
            return b"\n".join(_lines(data.split(b"\n"), what, first, second))
        case "column", what, number, all_lines:
            return _column(data, what, number, all_lines=all_lines)
        case "encode", encoding:
            return data.decode("latin-1").encode(encoding, errors="replace")
        case "ends", ends:
            return data.replace(b"\n", ends)
        case "number", number, where:
            start = next((i for i in range(at(where), len(data)) if data[i : i + 1].isdigit()), len(data))
            end = next((i for i in range(start, len(data)) if not data[i : i + 1].isdigit()), len(data))
            return data[:start] + number + data[end:]
        case "pack", where:  # the head of something packed, cut
            return gzip.compress(data)[: at(where) + 1]
    raise AssertionError(how)


def _lines(lines: list[bytes], what: str, first: int, second: int) -> list[bytes]:
    a, b = first % len(lines), second % len(lines)
    match what:
        case "drop":
            del lines[a]
        case "double":
            lines.insert(b, lines[a])
        case "swap":
            lines[a], lines[b] = lines[b], lines[a]
        case "join":
            lines[a : a + 2] = [b"".join(lines[a : a + 2])]
    return lines


def _column(data: bytes, what: str, number: int, *, all_lines: bool) -> bytes:
    """A column of what has commas, in every line or in the first that has it."""
    lines, done = data.split(b"\n"), False
    for i, line in enumerate(lines):
        cells = line.split(b",")
        if number + 1 >= len(cells) or (done and not all_lines):
            continue
        done = True
        match what:
            case "drop":
                del cells[number]
            case "double":
                cells.insert(number, cells[number])
            case "swap":
                cells[number], cells[number + 1] = cells[number + 1], cells[number]
        lines[i] = b",".join(cells)
    return b"\n".join(lines)
