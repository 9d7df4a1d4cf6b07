"""Files of others: SQLite opened so that nothing of it can change, gzip and xz unpacked piece by piece within a limit.

A packed report of any format is unpacked to be read.
"""

from __future__ import annotations

import lzma
import os
import shlex
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from nsw.apart import Allowance, TooMuchError
from nsw.profilers.files_of_one_recording import recording_files_from
from nsw.readers.model import Options, Report
from nsw.safe_files import make_file, open_to_read

GZIP_MAGIC: Final = b"\x1f\x8b"
XZ_MAGIC: Final = b"\xfd7zXZ\x00"
_XZ_MEMORY: Final = 1 << 28  # bytes that a dictionary may take: `xz -9` asks for 65 MiB
_WINDOW = 1 << 18  # bytes that come out at a time
_PACKED = 1 << 16  # bytes that go in at a time
_LOOKED_AT = 16 << 20  # unpacked bytes by which a report is known: what is none is not unpacked further


def read_packed_report(
    path: Path,
    options: Options,
    is_known_report: Callable[[Path], bool],
    read_report: Callable[[Path, Options], Report],
) -> Report | None:
    """Read a report that is packed with gzip or xz, from a copy that is removed afterwards.

    Args:
        path: The packed file.
        options: What is asked of the readers; `max_unpacked` limits the copy.
        is_known_report: Whether a file, perhaps only its beginning, is a report of any format.
        read_report: Reads it.

    Returns:
        The report, under the name of the packed file; None where nothing comes out of it.
    """
    report = Report(str(path))
    try:
        with tempfile.TemporaryDirectory(prefix="nsw-unpacked-") as folder:
            copy = Path(folder) / (path.name.removesuffix(".gz").removesuffix(".xz") or "report")
            broken = None
            for file in recording_files_from(path)[::-1]:
                target = copy.with_name(file.name.removesuffix(".gz")) if file != path else copy
                allowance = Allowance(file.stat().st_size, options.max_unpacked)
                broken = _unpack_to_copy(file, target, allowance, is_known_report) or broken
            if not copy.stat().st_size:
                return None
            report = _report_of_packed_file(read_report(copy, options), copy, path)
    except TooMuchError as fault:
        report.refuse_unpacking(fault)
        return report
    except OSError as fault:
        reason = fault.strerror or fault
        report.error(f"cannot be unpacked: {reason}", fix="TMPDIR names another place for the unpacked copy")
        return report
    if broken is not None:
        report.error(
            f"packed with {_compression_kind(path)}, and damaged or cut short: {broken}",
            fix="copy it again: what came out was read",
        )
    return report


def _unpack_to_copy(
    path: Path, copy: Path, allowance: Allowance, is_known_report: Callable[[Path], bool]
) -> str | None:
    """Write what is packed, as far as it goes, of what is no report the beginning only; what is wrong with it."""
    size, is_report = 0, False
    with open_to_read(path) as raw, make_file(copy) as out:
        try:
            for piece in unpack_chunks(raw, allowance):
                out.write(piece)
                size += len(piece)
                if not is_report and size >= _LOOKED_AT:
                    out.flush()
                    if not is_known_report(copy):
                        break
                    is_report = True
        except (EOFError, zlib.error, lzma.LZMAError) as fault:
            return str(fault)
    return None


def _compression_kind(path: Path) -> str:
    """How it is packed."""
    with open_to_read(path) as file:
        return "xz" if file.read(len(XZ_MAGIC)) == XZ_MAGIC else "gzip"


def _report_of_packed_file(report: Report, copy: Path, path: Path) -> Report:
    """The report of the copy as that of the packed file."""
    inside = f"packed with {_compression_kind(path)}: " if report.tool is None else ""
    report.path = str(path)
    report.problems = [
        replace(
            p,
            message=inside + _text_with_packed_name(p.message, copy, path),
            fix=_fix_with_packed_name(p.fix, copy, path),
        )
        for p in report.problems
    ]
    return report


def _text_with_packed_name(text: str, copy: Path, path: Path) -> str:
    """A text about the copy and files beside it, which names them where the packed one is unpacked in its place."""
    quoted = shlex.quote(str(path.with_name(copy.name)))
    prefix = "" if path.parent == Path() else f"{path.parent}/"
    return text.replace(shlex.quote(str(copy)), quoted).replace(f"{copy.parent}/", prefix)


def _fix_with_packed_name(text: str | None, copy: Path, path: Path) -> str | None:
    if text is None or str(copy) not in text:
        return text
    command = "unxz" if _compression_kind(path) == "xz" else "gunzip"
    return f"unpack it first: {command} -k {shlex.quote(str(path))}; then: {_text_with_packed_name(text, copy, path)}"


def unpack_beginning(head: bytes, size: int = 65536) -> bytes:
    """The first bytes, `size` at most, of a file that may be packed with gzip; none where it is damaged."""
    if not head.startswith(GZIP_MAGIC):
        return head[:size]
    try:
        return zlib.decompressobj(wbits=31).decompress(head, size)
    except zlib.error:
        return b""


def unpack_chunks(raw: BinaryIO, allowance: Allowance) -> Iterator[bytes]:
    """The content of a file that is packed with gzip or xz, as far as it goes.

    Python's own reader gives nothing of a chunk that the end of the file cuts.

    Raises:
        EOFError: The file ends before its content.
        TooMuchError: The content is larger than is allowed.
        zlib.error, lzma.LZMAError: The file is damaged.
    """
    data = raw.read(_PACKED)
    if data.startswith(XZ_MAGIC):
        yield from _unpack_xz_chunks(raw, data, allowance)
        return
    unpacker = zlib.decompressobj(wbits=31)
    while data:
        chunk = unpacker.decompress(data, _WINDOW)
        allowance.take(len(chunk))
        if chunk:
            yield chunk
        data = unpacker.unconsumed_tail or (b"" if unpacker.eof else raw.read(_PACKED))
        if unpacker.eof and (data := unpacker.unused_data or raw.read(_PACKED)):
            if not data.startswith(GZIP_MAGIC):  # padding
                return
            unpacker = zlib.decompressobj(wbits=31)
    if not unpacker.eof:
        raise EOFError("the compressed data end before their end mark")


def _unpack_xz_chunks(raw: BinaryIO, data: bytes, allowance: Allowance) -> Iterator[bytes]:
    while data.startswith(XZ_MAGIC):  # a stream; behind the last one may be padding
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not unpacker.eof:
            chunk = unpacker.decompress(data, _WINDOW)
            allowance.take(len(chunk))
            if chunk:
                yield chunk
            data = raw.read(_PACKED) if unpacker.needs_input else b""
            if not data and unpacker.needs_input and not unpacker.eof:
                raise EOFError("the compressed data end before their end mark")
        data = unpacker.unused_data or data or raw.read(_PACKED)


SQLITE_MAGIC: Final = b"SQLite format 3\0"


def sqlite_read_only_uri(path: Path) -> str:
    """A URI that opens the file as it is: no lock, no journal, no side file, whoever else has it open."""
    return f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1"


def open_sqlite_read_only(path: Path) -> sqlite3.Connection:
    """A connection for the thread that opens it; bytes that are no UTF-8 become U+FFFD.

    Two threads that use one connection exchange their rows without an error (Python 3.12 and later), so that Python
    keeps its check of the thread.

    Raises:
        sqlite3.Error: The file is no database.
    """
    connection = sqlite3.connect(sqlite_read_only_uri(path), uri=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.execute("PRAGMA trusted_schema=OFF")  # defaults and generated columns of a hostile file
    return connection
