"""Times of traces, of which there are two in each of millions of rows: whole ns and the twin, read fast.

What is no plain number with a unit of nvprof's goes through `quantities.duration`; both give the same.
"""

from __future__ import annotations

from nsw.readers.text.quantities import TIME_UNITS, Quantity, duration

_POWERS = {"ns": 0, "us": 3, "ms": 6}
_MOST_DIGITS = 15  # whole numbers of as many are exact as floats


def whole_ns(text: str, unit: str | None = None) -> tuple[int | None, float | None]:
    """Nanoseconds as an integer, half to even where the print is finer, and the twin; None where there is no time.

    Args:
        text: As printed, less blanks around it: `4.2567ms`, or `4.2567` with the unit given.
        unit: The unit of the column.
    """
    if text[-1:] == "s":
        own = text[-2:]
        power = _POWERS.get(own)
        printed = text[:-2]
        if power is None:
            power, printed = 9, text[:-1]
    else:
        power, printed = TIME_UNITS.get(unit or ""), text
    whole, _, fraction = printed.partition(".")
    digits = whole + fraction
    if power is None or not whole or len(digits) + power > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
        return _slowly(duration(text, unit))
    exponent = power - len(fraction)
    if exponent < 0:
        return round(int(digits) / 10**-exponent), None
    return int(digits) * 10**exponent, 5.0 * 10 ** (exponent - 1) if exponent else None


def _slowly(quantity: Quantity | None) -> tuple[int | None, float | None]:
    if quantity is None:
        return None, None
    return round(quantity.value), exact_to_a_ns(quantity.pm)


def exact_to_a_ns(pm: float | None) -> float | None:
    """None for a half-width that a clock of whole ns cannot have."""
    return None if pm is None or pm <= 0.5 else pm
