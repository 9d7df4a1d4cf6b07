"""How much the batches of an Arrow stream unpack to, by what is before each packed buffer; nothing is unpacked.

pyarrow tells it only of batches that it has unpacked. The places are those of Arrow's Message.fbs: a message's header
is a record batch, or a dictionary that holds one; a batch has a length, nodes, buffers and how they are packed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DICTIONARY: Final = 2  # the type of a message's header
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message
_DATA: Final = 1  # field of a dictionary
_BUFFERS, _PACKED = 2, 3  # fields of a record batch
_BUFFER: Final = struct.Struct("<qq")
_AS_IT_IS: Final = -1


class NoArrowError(ValueError):
    """The bytes are no message of Arrow's."""


def unpacked_sizes(path: Path) -> Iterator[int]:
    """The bytes that each batch of a stream unpacks to.

    Raises:
        NoArrowError: A message is none.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow as pa

    with pa.memory_map(str(path)) as raw:
        while raw.tell() < raw.size():
            try:
                message = pa.ipc.read_message(raw)
            except EOFError:  # the mark at the end of a stream
                return
            if message.type in {"record batch", "dictionary"} and message.body is not None:
                yield _unpacked(memoryview(message.metadata), memoryview(message.body))


def _unpacked(head: memoryview, body: memoryview) -> int:
    try:
        message = _Table(head, _word(head, "<I", 0))
        batch = message.table(_HEADER)
        if batch is not None and message.byte(_HEADER_TYPE) == _DICTIONARY:
            batch = batch.table(_DATA)
        if batch is None or batch.at(_PACKED) is None:
            return len(body)
        return sum(_size(body, start, length) for start, length in batch.buffers(_BUFFERS))
    except struct.error as fault:
        raise NoArrowError(f"a message of the stream is damaged: {fault}") from None


def _size(body: memoryview, start: int, length: int) -> int:
    if length <= 0:
        return 0
    size = _word(body, "<q", start)
    return length if size == _AS_IT_IS else size


def _word(data: memoryview, kind: str, at: int) -> int:
    if at < 0:
        raise struct.error(f"a place before the beginning: {at}")
    value: int = struct.unpack_from(kind, data, at)[0]
    return value


class _Table:
    """A table of a flatbuffer; its fields are found by their numbers."""

    def __init__(self, data: memoryview, place: int) -> None:
        self._data = data
        self._place = place
        self._fields = place - _word(data, "<i", place)
        self._size = _word(data, "<H", self._fields)

    def at(self, field: int) -> int | None:
        """Where a field is, or None."""
        entry = 4 + 2 * field
        offset = _word(self._data, "<H", self._fields + entry) if entry < self._size else 0
        return self._place + offset if offset else None

    def byte(self, field: int) -> int:
        """A field of one byte; 0 where it is not there."""
        place = self.at(field)
        return 0 if place is None else _word(self._data, "<B", place)

    def table(self, field: int) -> _Table | None:
        """A field that is a table."""
        place = self.at(field)
        return None if place is None else _Table(self._data, place + _word(self._data, "<I", place))

    def buffers(self, field: int) -> Iterator[tuple[int, int]]:
        """A field that is a list of buffers: start and length of each."""
        place = self.at(field)
        if place is None:
            return
        first = place + _word(self._data, "<I", place)
        for number in range(_word(self._data, "<I", first)):
            yield _BUFFER.unpack_from(self._data, first + 4 + number * _BUFFER.size)
