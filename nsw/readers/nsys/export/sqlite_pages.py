"""Integer columns of a SQLite table, decoded from the file's pages by numpy: a third of the time of a driver's rows.

See https://sqlite.org/fileformat2.html. What is not as plain as nsys writes its large tables (texts of more than 57
bytes, overflow pages, rows of an older schema, damage) is refused: SQLite itself reads the rest.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.nsys.export.source import NULL, Batch
from nsw.readers.timeline.statistics import IntArray
from nsw.readers.untrusted_files import open_sqlite_read_only
from nsw.safe_files import open_to_read

if TYPE_CHECKING:
    from io import BufferedReader


Bytes = np.ndarray[Any, np.dtype[np.uint8]]

__all__ = ["NotPlainError", "plain_batches"]


_LEAF, _INTERIOR = 13, 5  # kinds of the pages of a table
_AT_A_TIME: Final = 1 << 20  # bytes of pages
_DEEPEST: Final = 20  # levels of a tree
_ROOM: Final = 512  # bytes behind the last page, which a damaged row may reach into
# by serial type: bytes of the value, and whether it is an integer or NULL
_TYPES = np.arange(256)
_SIZE = np.where(_TYPES < 12, np.resize([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], 256), (_TYPES - 12) // 2).astype(
    np.uint16
)
_IS_INTEGER = np.isin(_TYPES, (0, 1, 2, 3, 4, 5, 6, 8, 9))
_ONE, _CONTINUED = 9, 128


class NotPlainError(Exception):
    """The table, or its next page, is none that is decoded here."""


def plain_batches(path: Path, table: str, columns: Sequence[str]) -> Iterator[Batch]:
    """Yield columns of a table in batches, in order of the rows' numbers; `NULL` where one is null or absent.

    Args:
        path: The database, which is only read.
        table: The table.
        columns: Its columns; one that the table lacks is null.

    Raises:
        NotPlainError: What follows is not plain; the batches before it are whole.
        sqlite3.Error: The list of tables is damaged.
    """
    with closing(open_sqlite_read_only(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        declared = connection.execute("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", (table,)).fetchall()
    if not isinstance(root, int):
        raise NotPlainError
    indices = {name: index for index, (name, *_) in enumerate(declared)}
    for name, kind, key, hidden in declared:
        # a key may be the row's number, which is no column; numbers of a REAL column are kept as integers
        if hidden or (name in columns and (key or "INT" not in kind.upper())):
            raise NotPlainError
    if len(declared) >= _CONTINUED - 1:
        raise NotPlainError
    chosen = [indices.get(column, -1) for column in columns]
    with open_to_read(path) as file, ThreadPoolExecutor(1) as pool:  # decodes what follows while a batch is looked at
        pages = _Pages(file)
        leaves = pages.leaf_pages(root)
        at_a_time = max(_AT_A_TIME // pages.size, 1)
        running: deque[Future[list[IntArray]]] = deque()
        for at in range(0, len(leaves) + at_a_time, at_a_time):
            if at < len(leaves):
                running.append(pool.submit(_decode_columns, pages, leaves[at : at + at_a_time], len(declared), chosen))
            if at and len((batch := running.popleft().result())[0]):
                yield dict(zip(columns, batch, strict=True))


class _Pages:
    """The pages of a database."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file.fileno()
        header = os.pread(self._file, 100, 0)
        self.size = int.from_bytes(header[16:18], "big")
        self.size = 65536 if self.size == 1 else self.size
        if len(header) < 100 or self.size < 512:
            raise NotPlainError
        self.most_payload = self.size - header[20] - 35  # of a row that does not go on in another page
        self.count = os.fstat(self._file).st_size // self.size

    def read(self, numbers: IntArray) -> Bytes:
        """These pages one behind the other, with room behind them."""
        block = np.empty(len(numbers) * self.size + _ROOM, np.uint8)
        view, at = block.data, 0
        heads = np.flatnonzero(np.diff(numbers, prepend=-1) != 1).tolist()  # of runs that lie together in the file
        for first, end in zip(heads, [*heads[1:], len(numbers)], strict=True):
            length = (end - first) * self.size
            offset = (int(numbers[first]) - 1) * self.size
            if not 0 < numbers[first] <= self.count or os.preadv(self._file, [view[at : at + length]], offset) < length:
                raise NotPlainError
            at += length
        return block

    def leaf_pages(self, root: int) -> IntArray:
        """The numbers of the pages with a table's rows, in their order."""
        numbers = np.array([root], np.int64)
        for _ in range(_DEEPEST):
            if len(numbers) > self.count:  # some are named twice
                raise NotPlainError
            if self.read(numbers[:1])[0] != _INTERIOR:
                return numbers
            numbers = np.concatenate([self._child_pages(number) for number in numbers.tolist()])
        raise NotPlainError

    def _child_pages(self, number: int) -> IntArray:
        block = self.read(np.array([number]))
        cells = _cell_positions(block, self, _INTERIOR, header=12)
        four = np.append(cells, 8)[:, None] + np.arange(4)
        return block[four].view(">u4")[:, 0].astype(np.int64)


def _cell_positions(block: Bytes, pages: _Pages, kind: int, *, header: int) -> IntArray:
    """Where the cells of pages of a kind begin in the block, in order."""
    bases = np.arange(0, len(block) - _ROOM, pages.size)
    counts = _two_bytes(block, bases + 3)
    if (block[bases] != kind).any() or (header + 2 * counts > pages.size).any():
        raise NotPlainError
    base = np.repeat(bases, counts)
    index = np.arange(len(base)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = _two_bytes(block, base + header + 2 * index)
    if len(base) and not header < int(offsets.min()) <= int(offsets.max()) < pages.size - 4:
        raise NotPlainError
    return base + offsets


def _two_bytes(block: Bytes, at: IntArray) -> IntArray:
    return np.asarray(_Pieces(block, at, 2).column(0, ">u2").astype(np.int64))


class _Pieces:
    """As many bytes from each of some places on, one behind the other: columns of them are far quicker to read."""

    def __init__(self, block: Bytes, at: IntArray, length: int) -> None:
        from_each = np.ndarray((len(block) - length + 1,), f"V{length}", block, strides=(1,))
        self._bytes, self._shape, self._strides = from_each[at].view(np.uint8), (len(at),), (length,)

    def column(self, offset: int, kind: str = "u1") -> Any:
        """The number that begins so many bytes into each."""
        return np.ndarray(self._shape, kind, self._bytes, offset, self._strides)


def _decode_columns(pages: _Pages, leaves: IntArray, count: int, indices: Sequence[int]) -> list[IntArray]:
    """The columns at these indices of the rows of leaves; at -1, `NULL`.

    Args:
        pages: The database.
        leaves: The numbers of pages with rows.
        count: The columns of the table.
        indices: Of the columns that are decoded, among all of the table.
    """
    block = pages.read(leaves)
    at = _cell_positions(block, pages, _LEAF, header=8)
    if not len(at):
        return [np.zeros(0, np.int64)] * len(indices)
    payload = _enter_rows(block, at)
    if (payload > pages.most_payload).any() or int((at % pages.size + payload).max()) > pages.size:
        raise NotPlainError
    last = max(indices, default=-1) + 1
    width = min(max(int(payload.max()), last + 1) + 8, _ROOM // 2)
    rows = _Pieces(block, at, width)
    if (rows.column(0) != count + 1).any():
        raise NotPlainError
    # of each column, one a byte, what differs of its types
    words = (rows.column(1 + index, "u8") for index in range(0, last, 8))
    varies = b"".join(np.bitwise_or.reduce(word ^ word[0]).tobytes() for word in words)
    values = {-1: np.full(len(at), NULL)}
    end, behind = at, count + 1  # where a column begins: so many bytes behind these
    for index in range(last):
        types = rows.column(1 + index) if varies[index] else rows.column(1 + index)[:1]
        different = np.flatnonzero(np.bincount(types))
        sizes = _SIZE[different if len(set(_SIZE[different].tolist())) == 1 else types]
        if different[-1] >= _CONTINUED or (index in indices and not _IS_INTEGER[different].all()):
            raise NotPlainError
        if index in indices and sizes.any():
            if end is at and behind + 8 <= width:
                begin = rows.column(behind, ">i8")
            elif (end + behind <= at + payload).all():
                begin = _Pieces(block, end + behind, 8).column(0, ">i8")
            else:
                raise NotPlainError
            values[index] = _decode_integers(begin.astype(np.int64), types, sizes)
        elif index in indices:
            values[index] = np.full(len(at), _without_bytes(types))
        if len(sizes) < len(at):
            behind += int(sizes[0])
        else:
            end = end + sizes
    if (end + behind > at + payload).any():
        raise NotPlainError
    return [values[index] for index in indices]


def _enter_rows(block: Bytes, at: IntArray) -> IntArray:
    """Move places of cells to those of their rows, behind the length and the row's number; the lengths of the rows."""
    payload: IntArray = block[at].astype(np.int64)
    long = payload >= _CONTINUED
    if long.any():
        at += long
        payload = np.where(long, (payload & 127) << 7 | block[at], payload)
        if (long & (block[at] >= _CONTINUED)).any():
            raise NotPlainError
    at += 1
    for _ in range(9):  # the row's number
        if not (more := block[at] >= _CONTINUED).any():
            break
        at += more
    at += 1
    return payload


def _decode_integers(taken: IntArray, kinds: Bytes, sizes: Any) -> IntArray:
    """The integers, of which the bytes were taken with those behind them."""
    least = int(sizes.min(initial=8))
    if least and least == int(sizes.max(initial=0)):
        taken >>= 64 - 8 * least
        return taken
    taken >>= np.minimum(64 - 8 * sizes.astype(np.int64), 63)
    return taken if least else np.where(sizes > 0, taken, _without_bytes(kinds))


def _without_bytes(kinds: Bytes) -> IntArray:
    """The integers that are told by their types alone: NULL, 0 and 1."""
    return np.where(kinds > 0, kinds == _ONE, NULL)
