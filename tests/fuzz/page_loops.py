"""SQLite files whose pages point to each other: a few kilobytes that hold more rows than can be read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INTERIOR = 5  # the type of a table's page that holds pointers to others
_POINTERS = 300
_LEVELS = 10


def with_page_loop(path: Path, table: str) -> bytes:
    """The file, with ten layers of pages between a table's root and its rows, each pointing 300 times to the next.

    The table must have more rows than one page holds: its root is then an interior page.
    """
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    start = (root - 1) * size
    assert data[start] == _INTERIOR, "the table fits into one page"
    leaf = int.from_bytes(data[start + 8 : start + 12], "big")
    first = len(data) // size + 1
    layers = [root, *range(first, first + _LEVELS)]
    data += bytes(size * _LEVELS)
    for at, page in enumerate(layers):
        data[(page - 1) * size : page * size] = _interior(size, layers[at + 1] if at < _LEVELS else leaf)
    data[28:32] = (len(data) // size).to_bytes(4, "big")  # pages in the file
    return bytes(data)


def _interior(size: int, child: int) -> bytes:
    """A page that points to `child` and to nothing else; the keys grow as they must."""
    cells = [child.to_bytes(4, "big") + _varint(key) for key in range(1, _POINTERS + 1)]
    at = size
    pointers, bodies = b"", b""
    for cell in cells:
        at -= len(cell)
        pointers += at.to_bytes(2, "big")
        bodies = cell + bodies
    head = bytes([_INTERIOR, 0, 0, *len(cells).to_bytes(2, "big"), *at.to_bytes(2, "big"), 0])
    head += child.to_bytes(4, "big")
    return head + pointers + bytes(size - len(head) - len(pointers) - len(bodies)) + bodies


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([0x80 | value >> 7, value & 0x7F])
