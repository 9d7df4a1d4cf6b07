"""Nsight Compute's printed values: numbers with marks of the user's locale, `n/a`, text, instances.

`12,319,469` is exact; `7.59` stands for anything from 7.585 to 7.595, so its half-width is 0.005.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from nsw.readers.text.quantities import QUANTITY, TIME_UNITS, Mark, Votes, is_marked, last_marks, number, proven_mark

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

__all__ = [
    "ABSENCE",
    "EVIDENCE_VALUES",
    "NumberMarks",
    "PrintedValue",
    "PrintedValues",
    "ValueParser",
    "decide_decimal_mark",
    "name_or_unit_is_number",
    "parse_integer",
    "parse_values",
    "time_in_ns",
]


EVIDENCE_VALUES: Final = 10_000  # printed values that the decimal mark is decided from

# What ncu prints where it has no number; compared in lower case, less a leading "(!)".
ABSENT: Final = frozenset({"", "n/a", "nan", "-nan", "inf", "-inf", "no data", "-"})

_COUNTED: Final = frozenset({"cycle", "inst", "byte", "block", "thread", "sector", "warp", "request"})
_SIMPLE: Final = r"^[+-]?(?:[0-9]{1,3}(?:,[0-9]{3}){0,4}|[0-9]{1,15})(?:\.[0-9]{1,15})?$"  # as Arrow takes it
_PLAIN: Final = re.compile(rf"{_SIMPLE[1:-1]}\Z")
_NEVER: Final = r"[^\s\S]"
_INSTANCES: Final = re.compile(r"\s*\(.*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """One printed value: a number and half the width of its last digit, or text, or neither (absent)."""

    number: float | None = None
    half: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class NumberMarks:
    """How numbers are written: `guessed` when nothing in the file told the decimal mark."""

    decimal: Mark = "."
    guessed: bool = False


POINT: Final = NumberMarks()
ABSENCE: Final = PrintedValue()


def decide_decimal_mark(values: Iterable[tuple[str, str | None]]) -> NumberMarks:
    """The decimal mark that most of the first values prove; a point, marked as guessed, if none does.

    In a count a mark with three digits behind it is no decimal one either.

    Args:
        values: Values as printed, each with its unit.
    """
    ambiguous = False
    votes = Votes()
    for text, unit in islice(values, EVIDENCE_VALUES):
        decimal_mark = proven_mark(text)
        if decimal_mark is None and is_marked(text):
            ambiguous = True
            decimal_mark = last_marks(text)[1] if unit in _COUNTED else None
        votes.add((decimal_mark,))
    return NumberMarks(guessed=ambiguous) if votes.winner is None else NumberMarks(votes.winner)


class ValueParser:
    """Turns printed values into `PrintedValue`s by one decision on the marks; equal texts are parsed once."""

    _LIMIT = 100_000  # texts remembered

    def __init__(self, marks: NumberMarks = POINT) -> None:
        self.marks = marks
        self._cache: dict[str, PrintedValue] = {}

    def __call__(self, text: str) -> PrintedValue:
        """The value of one cell."""
        parsed = self._cache.get(text)
        if parsed is None:
            parsed = self._parse_value(text.strip())
            if len(self._cache) < self._LIMIT:
                self._cache[text] = parsed
        return parsed

    def _parse_value(self, text: str) -> PrintedValue:
        if self.marks.decimal == "." and _PLAIN.match(text):  # `number` gives the same, later
            decimals = len(text) - 1 - text.find(".") if "." in text else 0
            return PrintedValue(float(text.replace(",", "")), half_width_by_decimals()[decimals])
        if (parsed := number(text, self.marks.decimal)) is not None:
            return PrintedValue(parsed.value, parsed.pm)
        if text.removeprefix("(!)").strip().lower() in ABSENT:
            return ABSENCE
        # --print-metric-instances: the total, then every instance in parentheses
        head = text.split(" ", 1)[0]
        if _INSTANCES.fullmatch(text, len(head)) and (parsed := number(head, self.marks.decimal)) is not None:
            return PrintedValue(parsed.value, parsed.pm, text)
        return PrintedValue(text=text)


class PrintedValues(NamedTuple):
    """Many values.

    Attributes:
        numbers: NaN where there is none.
        halves: Half-widths, NaN where there is none.
        text_positions: The places of the values that have a text, ascending.
        texts: These texts.
    """

    numbers: FloatArray
    halves: FloatArray
    text_positions: list[int]
    texts: list[str]

    def slice_values(self, start: int, stop: int) -> PrintedValues:
        """The values from one place up to another."""
        first, last = bisect_left(self.text_positions, start), bisect_left(self.text_positions, stop)
        positions = [position - start for position in self.text_positions[first:last]]
        return PrintedValues(self.numbers[start:stop], self.halves[start:stop], positions, self.texts[first:last])


def parse_values(printed: pa.StringArray, parse: ValueParser) -> PrintedValues:
    """Many cells: plain numbers are converted together, all else is parsed one by one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    simple = pc.match_substring_regex(printed, _SIMPLE if parse.marks.decimal == "." else _NEVER)
    plain = pc.replace_substring(pc.if_else(simple, printed, "nan"), ",", "")
    numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False).copy()
    point = pc.find_substring(plain, ".").to_numpy(zero_copy_only=False)
    length = pc.binary_length(plain).to_numpy(zero_copy_only=False)
    widths = np.array(half_width_by_decimals(), dtype=float)  # of None: NaN
    halves = widths[np.where(point < 0, 0, length - point - 1)]
    unconverted = np.flatnonzero(~simple.to_numpy(zero_copy_only=False))
    coded = printed.take(pa.array(unconverted)).dictionary_encode()  # of texts there are few
    parsed = [parse(text) for text in coded.dictionary.to_pylist()]
    codes = coded.indices.to_numpy()
    numbers[unconverted] = np.array([value.number for value in parsed], float)[codes]
    halves[unconverted] = np.array([value.half for value in parsed], float)[codes]
    has_text = np.array([value.text is not None for value in parsed], bool)[codes]
    texts = [parsed[code].text or "" for code in codes[has_text].tolist()]
    return PrintedValues(numbers, halves, unconverted[has_text].tolist(), texts)


@cache
def half_width_by_decimals() -> list[float | None]:
    """Half the width of the last digit, by the number of decimals; None of a whole number."""
    return [None, *(q.pm for n in range(1, 16) if (q := number("0." + "0" * n)) is not None)]


def name_or_unit_is_number(name: str, unit: str | None) -> bool:
    """Whether a number stands where the name or the unit of a metric should: a cell of the row is missing."""
    return QUANTITY.fullmatch(name) is not None or (bool(unit) and QUANTITY.fullmatch(unit or "") is not None)


def time_in_ns(value: float, unit: str | None) -> float | None:
    """A time in ns, its decimal digits moved and not multiplied; None when the unit is none of time."""
    power = TIME_UNITS.get(unit or "")
    if not power:
        return None if power is None else value
    digits = repr(value)
    return float(f"{digits}e{power}" if "e" not in digits else Decimal(digits).scaleb(power))


@lru_cache(maxsize=65536)
def parse_integer(text: str | None) -> int | None:
    """An id or a count that fits a 64-bit column, or None."""
    if text is None:
        return None
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
