"""Quantities: numbers as they are written, durations, sizes, percentages, amounts; parsed once, here.

A number remembers its text, so that `1e3`, `0x10` and `1.10` reach a program as they are in the file. Where a unit
belongs, a bare number is refused: it does not say what it counts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar

from nsw.errors import UsageError, did_you_mean


class _Written:
    """A number and its text."""

    text = ""

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class WrittenInt(_Written, int):
    """A whole number and its text."""


class WrittenFloat(_Written, float):
    """Another number and its text."""


def keep_text(value: float, text: str) -> int | float:
    """The number with its text, or itself where Python writes it the same way."""
    if str(value) == text:
        return value
    number = WrittenInt(value) if isinstance(value, int) else WrittenFloat(value)
    number.text = text
    return number


def plain_number(value: Any) -> Any:
    """A number without its text, and everything else as it is."""
    if isinstance(value, WrittenInt):
        return int(value)
    return float(value) if isinstance(value, WrittenFloat) else value


def as_text(value: object) -> str:
    """A value as a program gets it: a number as it was written, true and false as YAML has them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_TIME_WORDS = {
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
}
_TIME_PART = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z]+)")
_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):([0-5]?\d):([0-5]?\d)")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(?:\s*|-)([A-Za-z]+)")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%")
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(?:\s*|-)([A-Za-z][A-Za-z-]*)")
_SIZE_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_LONGEST = 10 * 365 * 86400  # seconds; what is longer is a slip

AmountUnit = Literal["node-hour", "gpu-hour", "second"]
_AMOUNT_UNITS: tuple[AmountUnit, ...] = ("node-hour", "gpu-hour")


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a machine: a number of node-hours or GPU-hours, or of seconds that its jobs take."""

    number: float
    unit: AmountUnit

    def __str__(self) -> str:
        return f"{self.number:g} {self.unit}{'' if self.number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Canary:
    """Whether the first run goes ahead alone: in campaigns of more than `above` runs; None: never."""

    above: int | None

    def is_wanted(self, runs: int) -> bool:
        """Whether a campaign of so many runs starts with a canary."""
        return self.above is not None and runs > self.above

    def __str__(self) -> str:
        if self.above is None:
            return "off"
        return f"runs above {self.above}" if self.above else "on"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much a figure may change.

    Attributes:
        percent: The largest change, in %.
        falls: Whether a drop is limited, else a rise.
        may_be_undecided: Whether a figure passes when the runs cannot decide.
    """

    percent: float
    falls: bool
    may_be_undecided: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.falls else '+'}{self.percent:g}%{' or undecided' if self.may_be_undecided else ''}"


TOLERANCE = r"^\s*([-+])\s*([0-9]+(?:\.[0-9]+)?)\s*%(\s+or undecided)?\s*$"


def parse_tolerance(value: object) -> Tolerance:
    """`-2%` allows a drop of 2 %, `+2%` a rise; `or undecided` passes also when the runs cannot decide.

    Raises:
        Fault: It is none of these.
    """
    match = re.match(TOLERANCE, value) if isinstance(value, str) else None
    if match is None:
        raise Fault(
            f"expected how much it may change, such as -2% or +2%; found {show_value(value)}",
            hint="'-2%' allows a drop of 2 %, '+2%' a rise; add 'or undecided' to pass when the runs cannot decide",
        )
    if match[1] == "-" and float(match[2]) >= 100:
        raise Fault("nothing falls by 100 % or more")
    return Tolerance(float(match[2]), match[1] == "-", bool(match[3]))


MARGIN = r"^\s*([-+]?)\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$"


def parse_margin(value: object) -> str:
    """`5%` both ways, `-5%` below alone, `+5%` above alone, as it was written.

    Raises:
        Fault: It is none of these.
    """
    if not isinstance(value, str) or re.match(MARGIN, value) is None:
        raise Fault(
            f"expected how far it may be, such as 5%, -5% or +5%; found {show_value(value)}",
            hint="'5%' allows 5 % less or more, '-5%' less alone, '+5%' more alone",
        )
    return value


def parse_least(value: object) -> float | str:
    """A number, or the text of a size such as 1M.

    Raises:
        Fault: It is neither.
    """
    number = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value)
    if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
        return float(number)
    if isinstance(value, str):
        parse_size(value)
        return value
    raise Fault(f"expected a number, or a size such as 1M; found {show_value(value)}")


def parse_number(value: object) -> float:
    """A number.

    Raises:
        Fault: It is none.
    """
    number = parse_least(value)
    if isinstance(number, str):
        raise Fault(f"expected a number, found {show_value(value)}")
    return number


def parse_sha256(value: object) -> str:
    """The 64 hexadecimal digits of a SHA-256.

    Raises:
        Fault: It is something else.
    """
    if not isinstance(value, str) or not re.fullmatch(r"[0-9A-Fa-f]{64}", value):
        raise Fault(f"expected the 64 hexadecimal digits that `sha256sum` prints, found {show_value(value)}")
    return value.lower()


def format_clock(seconds: int) -> str:
    """`HH:MM:SS` of seconds, more than a day included: what every scheduler understands."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_duration(value: object) -> int:
    """Seconds of `10m`, `1h30m`, `90s`, `2 days`, `HH:MM:SS` or `D-HH:MM:SS`; longer than zero.

    Raises:
        Fault: It is none of these.
    """
    text = _require_unit(value, "duration", "10m", "write {0}h for hours, {0}m for minutes or {0}s for seconds")
    seconds = _parse_clock(text) if ":" in text else _parse_time_parts(text)
    if seconds.denominator != 1:
        raise Fault(f"the duration {show_value(text)} is not a whole number of seconds")
    if not 0 < seconds <= _LONGEST:
        raise Fault(f"the duration {show_value(text)} is {'zero' if not seconds else 'longer than ten years'}")
    return int(seconds)


def _require_unit(value: object, quantity: str, example: str, hint: str) -> str:
    """The text of a value that must have a unit; the hint has its number as {0}.

    Raises:
        Fault: It is a bare number, or no text.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Fault(f"the {quantity} {value} has no unit", hint=hint.format(value))
    if not isinstance(value, str):
        raise Fault(f"expected a {quantity} such as {example}, found {show_value(value)}")
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        raise Fault(f"the {quantity} {show_value(text)} has no unit", hint=hint.format(text))
    return text


def _parse_clock(text: str) -> Fraction:
    match = _CLOCK.fullmatch(text)
    if not match:
        hint = "write hours, minutes and seconds as 01:30:00, or 1h30m"
        raise Fault(f"the duration {show_value(text)} is not HH:MM:SS", hint=hint)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return Fraction(days * 86400 + hours * 3600 + minutes * 60 + seconds)


def _parse_time_parts(text: str) -> Fraction:
    total, position, last = Fraction(0), 0, None
    for match in _TIME_PART.finditer(text):
        unit = _TIME_WORDS.get(match[2].lower())
        if unit is None:
            hint = did_you_mean(match[2].lower(), _TIME_WORDS) or "the units are d, h, m (minutes) and s"
            offset = None if text[0].isspace() else match.start(2)  # where the text is as it was written
            raise Fault(f"{show_value(match[2])} is not a unit of time", hint=hint, offset=offset)
        if match.start() != position or (last is not None and _SECONDS[unit] >= _SECONDS[last]):
            break
        total += Fraction(match[1]) * _SECONDS[unit]
        position, last = match.end(), unit
    if not text or position != len(text):
        raise Fault(
            f"expected a duration such as 10m, found {show_value(text)}", hint="such as 90s, 10m, 1h30m or 01:30:00"
        )
    return total


def format_duration(seconds: int) -> str:
    """Seconds as `1h30m`, which `parse_duration` reads back."""
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_size(value: object) -> int:
    """Bytes of `32G`, `512MiB`, `1.5T`, `4096B`; K, M, G, T are powers of 1024, as the schedulers count.

    Raises:
        Fault: It is none of these.
    """
    text = _require_unit(value, "size", "32G", "write {0}G for GiB or {0}M for MiB")
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() if match else ""
    power = 0 if unit in {"b", "byte", "bytes"} else _SIZE_POWERS.get(unit[:1])
    if match is None or power is None or (power and unit[1:] not in {"", "b", "ib", "i"}):
        raise Fault(f"expected a size such as 32G, found {show_value(text)}", hint="the units are B, K, M, G, T and P")
    size = Fraction(match[1]) * 1024**power
    if size.denominator != 1 or not 0 < size < 1 << 63:
        raise Fault(f"the size {show_value(text)} is not a whole number of bytes that fits")
    return int(size)


def format_size(size: int) -> str:
    """Bytes as `32G` where that is exact, else as `33000B`; `parse_size` reads it back."""
    for letter in "PTGMK":
        unit = 1024 ** _SIZE_POWERS[letter.lower()]
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return f"{size}B"


def format_memory(size: int) -> str:
    """Bytes for a batch system, which counts KiB and has no fractions: `64G` as it was written, else rounded up."""
    return format_size(-(-size // 1024) * 1024)


def parse_sampling_frequency(value: object) -> int:
    """Hz of `10kHz`, `500 Hz`: as often as nsys samples GPU metrics, 10 Hz to 200 kHz.

    Raises:
        Fault: It is none of these.
    """
    text = _require_unit(value, "frequency", "10kHz", "write {0}kHz or {0}Hz")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(k?)Hz", text, re.IGNORECASE)
    hertz = Fraction(match[1]) * (1000 if match[2] else 1) if match else Fraction(0)
    if hertz.denominator != 1 or not 10 <= hertz <= 200_000:
        raise Fault(f"expected a frequency from 10Hz to 200kHz, such as 10kHz, found {show_value(text)}")
    return int(hertz)


def parse_percent(value: object) -> float:
    """The fraction of `90%`: 0.9; above 0 and at most 1.

    Raises:
        Fault: It is no percentage, or out of that range.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value * 100 if 0 < value < 1 else value
        raise Fault(f"the share {value} has no percent sign", hint=f"write {number:g}%")
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise Fault(f"expected a percentage such as 90%, found {show_value(value)}")
    fraction = float(Fraction(match[1]) / 100)
    if not 0 < fraction <= 1:
        raise Fault(f"{show_value(value)} is not above 0% and at most 100%")
    return fraction


def format_percent(fraction: float) -> str:
    """A fraction as `90%`."""
    return f"{fraction * 100:.10g}%"


def parse_amount(value: object) -> Amount:
    """`1 node-hour`, `0.5 gpu-hours`.

    Raises:
        Fault: It is no number with one of these units.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Fault(f"the amount {value} has no unit", hint=f"write {value} node-hours or {value} gpu-hours")
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise Fault(f"expected an amount such as 1 node-hour, found {show_value(value)}")
    word = match[2].lower().removesuffix("s")
    for unit in _AMOUNT_UNITS:
        if word == unit:
            return Amount(float(match[1]), unit)
    hint = did_you_mean(word, _AMOUNT_UNITS) or "the units are node-hours and gpu-hours"
    raise Fault(f"{show_value(match[2])} is not a unit of an amount", hint=hint)


def parse_price(value: str) -> Amount:
    """`2 node-hours`, `4 gpu-hours`, or a time such as `40m`, in seconds.

    Raises:
        Fault: It is none of these.
    """
    return parse_amount(value) if "-hour" in value else Amount(parse_duration(value), "second")


def parse_canary(value: object) -> Canary:
    """`on`, `off` or `runs above N`; true and false do as well.

    Raises:
        Fault: It is none of these.
    """
    if isinstance(value, bool):
        return Canary(0 if value else None)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if text in {"on", "off"}:
        return Canary(0 if text == "on" else None)
    match = re.fullmatch(r"runs above (\d{1,9})", text)
    if not match:
        raise Fault(f"expected on, off or 'runs above N', found {show_value(value)}")
    return Canary(int(match[1]))


T = TypeVar("T")

_QUOTED_CHARACTERS = 48  # characters of a value that a message repeats


class Fault(ValueError):  # noqa: N818  # a fault of the file, not an error of the program
    """What is wrong with one value.

    Attributes:
        message: What was found and what was expected.
        hint: What to do.
        offset: Where in the value's text the fault is.
        path: Where below the value it is, when the value is a list or a map.
    """

    def __init__(self, message: str, *, hint: str | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.offset = offset
        self.path: tuple[str | int, ...] = ()


def parse_each(parse: Callable[[object], T], items: list[Any] | tuple[Any, ...]) -> list[T]:
    """Every item parsed.

    Raises:
        Fault: Of the first that cannot be; its `path` says which.
    """
    return [parse_below(index, parse, item) for index, item in enumerate(items)]


def parse_below(part: str | int, parse: Callable[[object], T], value: object) -> T:
    """A value of a list or map parsed, its fault placed below `part`.

    Args:
        part: The key or index of the value.
        parse: The function that parses it.
        value: The value.

    Raises:
        Fault: The value's own, with `part` in front of its path.
    """
    try:
        return parse(value)
    except Fault as fault:
        fault.path = (part, *fault.path)
        raise


def option_value(option: str, parse: Callable[[str], T], text: str, hint: str | None = None) -> T:
    """The value of an option or argument.

    Args:
        option: Its name, such as `--time`.
        parse: The function that parses it.
        text: What was given.
        hint: What to do where the parser has no hint of its own.

    Raises:
        UsageError: The text is no such value.
    """
    try:
        return parse(text)
    except Fault as fault:
        raise UsageError(f"{option}: {fault.message}", hint=fault.hint or hint) from None


def show_value(value: object) -> str:
    """A value as a message names it: short, on one line, with nothing that a terminal would obey."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        short = value if len(value) <= _QUOTED_CHARACTERS else value[: _QUOTED_CHARACTERS - 3] + "..."
        return f"'{escape_nonprinting(short)}'"
    return str(value)[:_QUOTED_CHARACTERS]


def escape_nonprinting(text: str) -> str:
    """The text with control and format characters written as escapes, so that a terminal shows them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c
        for c in text
    )
