"""A decoder of the part of Python's marshal format that cProfile writes.

`marshal.load` may crash the interpreter on a file made to do so, and reads only what this Python's
version knows. A profile holds nothing but a dict of tuples of strings and numbers, encoded alike since
Python 2.4, so this decoder needs few types, no subprocess and no trust. What bounds it: an item takes
at least one byte of the file, nesting is limited, and only tuples of plain values are ever hashed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REFERENCE_FLAG = 0x80  # the item is numbered, for later items to refer to
_MAX_DEPTH = 8  # a profile needs 4: dict, tuple, dict of callers, tuple
_MAX_LONG_DIGITS = 5  # of 15 bits: more than int64 holds
_CODE = ord("c")
_END = object()  # closes a dict


class MarshalError(Exception):
    """The bytes are no profile; `offset` is where that showed."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset}")
        self.offset = offset


class Decoder:
    """Reads one marshalled dict from `data`, pair by pair."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._numbered: list[object] = []
        self._interned: list[str] = []  # Python 2 numbers interned strings apart
        self._kinds: dict[int, Callable[[int], object]] = {
            ord("0"): lambda _: _END,
            ord("N"): lambda _: None,
            ord("T"): lambda _: True,
            ord("F"): lambda _: False,
            ord("i"): lambda _: self._size(),
            ord("I"): lambda _: int.from_bytes(self._take(8), "little", signed=True),
            ord("l"): lambda _: self._long(),
            ord("g"): lambda _: float(struct.unpack("<d", self._take(8))[0]),
            ord("f"): lambda _: self._text_float(),
            ord("u"): lambda _: self._text(self._size()),
            ord("s"): lambda _: self._text(self._size()),
            ord("a"): lambda _: self._text(self._size()),
            ord("A"): lambda _: self._text(self._size()),
            ord("z"): lambda _: self._text(self._byte()),
            ord("Z"): lambda _: self._text(self._byte()),
            ord("t"): lambda _: self._intern(),
            ord("R"): lambda _: self._referred(self._interned),
            ord("r"): lambda _: self._referred(self._numbered),
            ord("("): lambda depth: self._tuple(self._size(), depth),
            ord(")"): lambda depth: self._tuple(self._byte(), depth),
            ord("{"): lambda depth: dict(self._pairs(depth)),
        }

    def pairs(self) -> Iterator[tuple[tuple[object, ...], object]]:
        """The pairs of the outermost dict, as they are read.

        Raises:
            MarshalError: The bytes end too early or hold what no profile has. Pairs given before are whole.
        """
        code = self._byte()
        if code & ~_REFERENCE_FLAG != ord("{"):
            raise MarshalError("no dict", 0)
        if code & _REFERENCE_FLAG:
            self._numbered.append(None)  # a dict within itself is no profile
        yield from self._pairs(1)

    def _pairs(self, depth: int) -> Iterator[tuple[tuple[object, ...], object]]:
        while (key := self._item(depth)) is not _END:
            # a tuple of tuples that refer to each other would take for ever to hash
            if not isinstance(key, tuple) or not all(isinstance(part, str | int) for part in key):
                raise MarshalError("a key that is not (file, line, function)", self._at)
            value = self._item(depth)
            if value is _END:
                raise MarshalError("a key without a value", self._at)
            yield key, value

    def _item(self, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise MarshalError("nested too deep for a profile", self._at)
        start = self._at
        code = self._byte()
        kind = self._kinds.get(code & ~_REFERENCE_FLAG)
        if kind is None and code & ~_REFERENCE_FLAG == _CODE:
            raise MarshalError(
                "the program's own code, which `python -m profile` leaves there (cProfile does not)", start
            )
        if kind is None:
            raise MarshalError(f"a value of a type that profiles do not contain ({code:#04x})", start)
        if not code & _REFERENCE_FLAG:
            return kind(depth + 1)
        number = len(self._numbered)
        self._numbered.append(None)  # numbered before its content
        self._numbered[number] = value = kind(depth + 1)
        return value

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MarshalError(f"the file ends within a value that began before byte {self._at}", len(self._data))
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _byte(self) -> int:
        return self._take(1)[0]

    def _size(self) -> int:
        return int.from_bytes(self._take(4), "little", signed=True)

    def _long(self) -> int:
        digits = self._size()
        if abs(digits) > _MAX_LONG_DIGITS:
            raise MarshalError("a number too large for a profile", self._at)
        parts: tuple[int, ...] = struct.unpack(f"<{abs(digits)}H", self._take(2 * abs(digits)))
        value = sum(part << (15 * place) for place, part in enumerate(parts))
        return -value if digits < 0 else value

    def _text_float(self) -> float:
        text = self._take(self._byte())
        try:
            return float(text)
        except ValueError:
            raise MarshalError("a malformed number", self._at) from None

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", errors="replace")

    def _intern(self) -> str:
        text = self._text(self._size())
        self._interned.append(text)
        return text

    def _referred(self, numbered: list[str] | list[object]) -> object:
        index = self._size()
        if not 0 <= index < len(numbered) or numbered[index] is None:
            raise MarshalError("a reference to nothing", self._at)
        return numbered[index]

    def _tuple(self, size: int, depth: int) -> tuple[object, ...]:
        if not 0 <= size <= len(self._data) - self._at:
            raise MarshalError("a tuple longer than the file", self._at)
        parts = tuple(self._item(depth) for _ in range(size))
        if _END in parts:
            raise MarshalError("a tuple with an end mark in it", self._at)
        return parts
