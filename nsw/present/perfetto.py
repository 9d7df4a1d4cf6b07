"""Tracks as a trace for Perfetto (https://ui.perfetto.dev): its protobuf TracePacket, written without a library.

Perfetto reads Chrome's JSON too, but times there are microseconds with a fraction, which loses nanoseconds in long
traces, and names are repeated in each event. The fields are those of https://perfetto.dev/docs/reference/trace-packet-proto.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.timeline_tracks import Slice, Track

_LENGTH: Final = 2  # wire type of what begins with its number of bytes
_FIXED64: Final = 1
_FIRST, _LATER = 1, 2  # sequence_flags: names begin anew; names of before count
_BEGIN, _END, _INSTANT = 1, 2, 3  # TrackEvent.Type
_NAMES, _CATEGORIES, _KEYS, _TEXTS = 2, 1, 3, 29  # of InternedData: what is written once and then has a number
_LAUNCHERS: Final = frozenset({"api"})


def _varint(number: int) -> bytes:
    """A whole number that is not negative, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)  # negative ones as two's complement


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | _FIXED64) + struct.pack("<Q", value & 0xFFFF_FFFF_FFFF_FFFF)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode(errors="replace") if isinstance(value, str) else value
    return _varint(field << 3 | _LENGTH) + _varint(len(data)) + data


class PerfettoTrace:
    """A trace in the making, held as the bytes that its file will have.

    Attributes:
        events: How many slices and moments it has.
        size: Its bytes.
    """

    def __init__(self) -> None:
        self.events = 0
        self.size = 0
        self.packets: list[bytes] = []
        self._numbers = 0  # ids of tracks, processes and threads that were given out
        self._processes: dict[str, tuple[int, int]] = {}  # its track and its pid
        self._interned: dict[tuple[int, int | str], int] = {}
        self._new: list[bytes] = []  # names that the next packet brings along

    def add(self, tracks: Iterable[Track]) -> None:
        """Add tracks; those of one process come under one heading."""
        for track in tracks:
            process, pid = self._process(track.process)
            uuid, tid = self._next(), self._next()
            thread = _number(1, pid) + _number(2, tid) + _bytes(5, track.name)
            self._packet(_bytes(60, _number(1, uuid) + _number(5, process) + _bytes(4, thread)))
            self._events(track, uuid, process)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _process(self, name: str) -> tuple[int, int]:
        """The track and the number of a process: its own pid may be that of another one on another node."""
        if name not in self._processes:
            uuid, pid = self._processes[name] = self._next(), self._next()
            described = _number(1, pid) + _bytes(6, name)
            self._packet(_bytes(60, _number(1, uuid) + _bytes(3, described)))
        return self._processes[name]

    def _packet(self, content: bytes) -> None:
        flags = _FIRST | _LATER if not self.packets else _LATER
        head = _number(10, 1) + _number(13, flags)
        names = _bytes(12, b"".join(self._new)) if self._new else b""
        self._new.clear()
        packet = _bytes(1, head + names + content)
        self.packets.append(packet)
        self.size += len(packet)

    def _events(self, track: Track, uuid: int, process: int) -> None:
        """Begin and end of each slice, in their order: a slice inside another one ends before it."""
        open_: list[int] = []
        for part in track.slices:
            while open_ and open_[-1] <= part.start:
                self._event(open_.pop(), _number(9, _END) + _number(11, uuid))
            if part.end is not None:
                open_.append(part.end)
            kind = _INSTANT if part.end is None else _BEGIN
            self._event(part.start, _number(9, kind) + _number(11, uuid) + self._content(part, process))
            self.events += 1
        for end in reversed(open_):
            self._event(end, _number(9, _END) + _number(11, uuid))

    def _event(self, time: int, content: bytes) -> None:
        self._packet(_number(8, time) + _bytes(11, content))

    def _content(self, part: Slice, process: int) -> bytes:
        encoded = _number(10, self._intern(_NAMES, part.name)) + _number(3, self._intern(_CATEGORIES, part.kind))
        for key, value in part.details.items():
            field = _number(17, self._intern(_TEXTS, value)) if isinstance(value, str) else _number(4, int(value))
            encoded += _bytes(4, _number(1, self._intern(_KEYS, key)) + field)
        if part.correlation is not None:  # an arrow from the call to what it launched
            encoded += _fixed(47 if part.kind in _LAUNCHERS else 48, process << 40 | part.correlation)
        return encoded

    def _intern(self, field: int, text: str) -> int:
        key = (field, text)
        if key not in self._interned:
            number = self._interned[key] = len(self._interned) + 1
            self._new.append(_bytes(field, _number(1, number) + _bytes(2, text)))
        return self._interned[key]
