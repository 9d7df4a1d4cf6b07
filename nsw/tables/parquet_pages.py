"""How much the pages of a Parquet file unpack to, by their own headers: the sizes in its footer are only a claim.

Arrow makes room for what the header of a page says, and a page that unpacks to anything else is damaged. So the sum
over the headers is the truth, and nothing needs to be unpacked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    import pyarrow.parquet as pq

_HEADER: Final = 1 << 16  # bytes at first; a page's statistics can make its header longer
_LONGEST_HEADER: Final = 1 << 24
_DEEPEST: Final = 8
_UNPACKED, _PACKED = 2, 3  # fields of a page's header
_INTEGERS: Final = frozenset({4, 5, 6})
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 0, 1, 2, 3, 7, 8, 12


class PageError(ValueError):
    """What is in the place of a page is none."""


def unpacked_sizes(file: BinaryIO, footer: pq.FileMetaData, wanted: Container[str] | None = None) -> Iterator[int]:
    """The size of each page of a Parquet file, unpacked.

    Args:
        file: The file; where it stands is changed.
        footer: What it says of itself.
        wanted: Only of these columns.

    Raises:
        PageError: Where the footer says that pages are is something else.
        OSError: The file cannot be read.
    """
    for group in range(footer.num_row_groups):
        columns = footer.row_group(group)
        for number in range(columns.num_columns):
            column = columns.column(number)
            if column.num_values == 0 or (wanted is not None and column.path_in_schema not in wanted):
                continue  # of no values Arrow reads no page; where they would begin is not said
            at = column.data_page_offset
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
                at = column.dictionary_page_offset
            yield from _pages(file, at, at + column.total_compressed_size)


def _pages(file: BinaryIO, at: int, end: int) -> Iterator[int]:
    while at < end:
        length, unpacked, packed = _header(file, at, end)
        yield unpacked
        at += length + packed


def _header(file: BinaryIO, at: int, end: int) -> tuple[int, int, int]:
    """A page's header: its own length, what the page unpacks to, what it takes in the file."""
    size = _HEADER
    while True:
        if at < 0:
            raise PageError("a page begins before the file")
        file.seek(at)
        data = file.read(min(size, end - at))
        try:
            length, fields = _Compact(data).struct()
        except IndexError:
            if len(data) < size or size >= _LONGEST_HEADER:
                raise PageError("a page's header has no end") from None
            size *= 16
            continue
        unpacked, packed = fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise PageError("a page's header has no size")
        return length, unpacked, packed


class _Compact:
    """Thrift's compact protocol, as far as headers need it. Raises IndexError where the bytes end first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> tuple[int, dict[int, int]]:
        """Its length, and its fields that are integers."""
        return self._fields(0)

    def _fields(self, depth: int) -> tuple[int, dict[int, int]]:
        if depth > _DEEPEST:
            raise PageError("a page's header is nested too deeply")
        found: dict[int, int] = {}
        number = 0
        while (head := self._byte()) & 15 != _STOP:
            number = number + (head >> 4) if head >> 4 else self._integer()
            if (kind := head & 15) in _INTEGERS:
                found[number] = self._integer()
            else:
                self._skip(kind, depth)
        return self._at, found

    def _skip(self, kind: int, depth: int) -> None:
        skip: dict[int, Callable[[], object]] = {
            _TRUE: int, _FALSE: int, _BYTE: self._byte, _DOUBLE: lambda: self._over(8),
            _BINARY: lambda: self._over(self._plain()), _STRUCT: lambda: self._fields(depth + 1),
        }  # fmt: skip
        if kind not in skip:
            raise PageError("a page's header holds what none holds")
        skip[kind]()

    def _over(self, length: int) -> None:
        self._at += length
        if self._at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _plain(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise PageError("a page's header holds a number without end")

    def _integer(self) -> int:
        value = self._plain()
        return (value >> 1) ^ -(value & 1)
