"""Times of traces and summaries, of which nvprof's clock tells whole ns."""

from __future__ import annotations

from nsw.readers.text.quantities import duration


def whole_ns(text: str, unit: str | None = None) -> tuple[int | None, float | None]:
    """Nanoseconds as an integer, half to even where the print is finer, and the twin; None where there is no time.

    Args:
        text: As printed: `4.2567ms`, or `4.2567` with the unit given.
        unit: The unit of the column.
    """
    found = duration(text, unit)
    return (None, None) if found is None else (round(found.value), exact_to_a_ns(found.pm))


def exact_to_a_ns(pm: float | None) -> float | None:
    """None for a half-width that a clock of whole ns cannot have."""
    return None if pm is None or pm <= 0.5 else pm
