"""How much a packed file may unpack to: a few kilobytes can become more than a machine holds."""

from __future__ import annotations

from typing import Final

_MIN_ALLOWANCE: Final = 256 << 20  # bytes that any file may unpack to
_TIMES: Final = 50  # of the packed size; traces of PyTorch pack 10 to 20 to 1


class TooMuchError(Exception):
    """A file unpacks to more than is taken of it; the text says to how much."""


class Allowance:
    """Bytes that may come out of one packed file.

    Args:
        packed: The size of the file.
        limit: What a person allowed; by default 256 MiB, or fifty times the file's size if that is more.
    """

    def __init__(self, packed: int, limit: int | None = None) -> None:
        self.limit = max(_MIN_ALLOWANCE, _TIMES * packed) if limit is None else limit
        self._packed = packed
        self._unpacked = 0

    def take(self, size: int) -> None:
        """Count bytes that came out, or that will.

        Raises:
            TooMuchError: They are too many.
        """
        self._unpacked += size
        if self._unpacked > self.limit:
            raise TooMuchError(
                f"{format_bytes(self._packed)} that unpack to more than {format_bytes(self.limit)}, nsw's limit"
                " for this file"
            )


def format_bytes(size: int) -> str:
    """Bytes for people, in powers of 1024: 13.1 MiB."""
    for unit, power in (("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} B"
