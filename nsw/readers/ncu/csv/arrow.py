"""The details pages of `ncu --csv` when they are large: pieces of whole lines, most of them read by numpy and Arrow.

The tables are the same as those of `reader.read_exactly`, whose `Scan` reads every line that is no plain
row. Other pages, labels of ranks and lines without end make `read` give None instead.
"""

from __future__ import annotations

import codecs
import csv
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nsw.readers.model import Report, Sample
from nsw.readers.ncu.csv.block import Block, block_of
from nsw.readers.ncu.csv.find_plain_rows import OddFileError
from nsw.readers.ncu.csv.gather import Gather
from nsw.readers.ncu.csv.page import page_of
from nsw.readers.text.lines import LONGEST, LOOKED_AT, as_shown, is_labelled, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

    from nsw.readers.model import Options

_BLOCK: Final = 4 << 20  # bytes read at a time; each worker holds about five times as many
_LEAST: Final = 1 << 15  # bytes below which lines are read one by one
_WORKERS: Final = 2
_NEWLINE: Final = ord("\n")


def read(path: Path, options: Options) -> Report | None:
    """The report, or None when the file must be read row by row."""
    if is_labelled(list(islice(text_lines(path), LOOKED_AT))):
        return None
    report = Report(str(path), tool="ncu", format="ncu-csv")
    try:
        _gather(path, Gather(report)).fill(options)
    except (OddFileError, pa.ArrowException, csv.Error):
        return None
    return report


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole lines; of a header, the first of them is it."""

    number: int  # of the first line, from 1
    data: bytes | bytearray
    headed: bool = False


def _gather(path: Path, gather: Gather) -> Gather:
    """All pieces of the file, parsed ahead while the page goes on and how its numbers are written is known."""
    running: deque[tuple[int, Future[Block]]] = deque()
    with ThreadPoolExecutor(_WORKERS) as pool:
        for piece in _pieces(path):
            ahead = gather.layout is not None and gather.marks is not None
            if ahead and not piece.headed and len(piece.data) >= _LEAST:
                assert gather.layout is not None
                running.append((piece.number, pool.submit(block_of, piece.data, gather.layout, gather.marks)))
            while running and (len(running) > _WORKERS or not ahead or piece.headed or len(piece.data) < _LEAST):
                number, block = running.popleft()
                gather.add(number, block.result())
            if not running:
                _read_now(piece, gather)
        for number, block in running:
            gather.add(number, block.result())
    return gather


def _read_now(piece: _Piece, gather: Gather) -> None:
    """A piece that may decide how the next ones are read."""
    number, data = piece.number, piece.data
    if piece.headed:
        header, _, data = data.partition(b"\n")
        gather.header(number, as_shown(header.decode()))
        number += 1
    if gather.layout is not None and len(data) >= _LEAST:
        gather.add(number, block_of(data, gather.layout, gather.marks))
        return
    lines = data.decode().split("\n")[:-1]
    gather.lines((number + i, as_shown(line)) for i, line in enumerate(lines))


def _pieces(path: Path) -> Iterator[_Piece]:
    """The file as UTF-8, cut at line ends and before each header."""
    number = 1
    for data in _whole_lines(path):
        headers = [0, *_headers(data), len(data)]
        for begin, end in pairwise(headers):
            if begin < end:
                yield _Piece(number, data[begin:end] if end - begin < len(data) else data, begin in headers[1:-1])
                number += data.count(b"\n", begin, end)


def _whole_lines(path: Path) -> Iterator[bytes | bytearray]:
    """Blocks of whole lines as UTF-8, whatever the encoding."""
    encoding = Sample(path).encoding
    with path.open("rb") as file:
        if encoding.startswith("utf-16"):
            yield from _decoded(file, encoding)
            return
        if encoding == "utf-8-sig":
            file.seek(len(codecs.BOM_UTF8))
        while block := _block(file):
            yield block if block.isascii() else block.decode(errors="replace").encode()


def _block(file: BufferedReader) -> bytes | bytearray:
    """The next bytes up to the end of a line, in one buffer: copies of it would cost as much as parsing."""
    block = bytearray(_BLOCK + LONGEST)
    with memoryview(block) as view, view[:_BLOCK] as part:
        size = file.readinto(part)
    rest = file.readline(LONGEST) if size and block[size - 1] != _NEWLINE else b""
    if size and rest[-1:] != b"\n" and block[size - 1] != _NEWLINE:
        if len(rest) == LONGEST:
            raise OddFileError
        rest += b"\n"
    block[size : size + len(rest)] = rest
    del block[size + len(rest) :]
    return block


def _decoded(file: BufferedReader, encoding: str) -> Iterator[bytes]:
    """Blocks of whole lines of a file with two bytes a character."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    rest = b""
    while raw := file.read(_BLOCK):
        data = rest + decoder.decode(raw).encode()
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > LONGEST:
            raise OddFileError
        if cut:
            yield data[:cut]
    if last := rest + decoder.decode(b"", final=True).encode():
        yield last + b"\n"


def _headers(data: bytes | bytearray) -> Iterator[int]:
    """Where lines begin that are the header of a details page."""
    at = -1
    while (at := data.find(b'"Metric Name"', at + 1)) >= 0:
        begin = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        if page_of(as_shown(data[begin:end].decode())) is not None:
            yield begin
            at = end
