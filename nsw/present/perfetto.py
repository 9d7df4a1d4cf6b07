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


def _encode_varint(number: int) -> bytes:
    """Encode a whole number that is not negative as a protobuf varint: seven bits a byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _encode_varint_field(field: int, value: int) -> bytes:
    return _encode_varint(field << 3) + _encode_varint(
        value & 0xFFFF_FFFF_FFFF_FFFF
    )  # negative ones as two's complement


def _encode_bytes_field(field: int, value: bytes | str) -> bytes:
    data = value.encode(errors="replace") if isinstance(value, str) else value
    return _encode_varint(field << 3 | _LENGTH) + _encode_varint(len(data)) + data


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
            process, pid = self._process_ids(track.process)
            uuid, tid = self._next_id(), self._next_id()
            thread = _encode_varint_field(1, pid) + _encode_varint_field(2, tid) + _encode_bytes_field(5, track.name)
            self._add_packet(
                _encode_bytes_field(
                    60,
                    _encode_varint_field(1, uuid) + _encode_varint_field(5, process) + _encode_bytes_field(4, thread),
                )
            )
            self._add_slices(track, uuid, process)

    def _next_id(self) -> int:
        self._numbers += 1
        return self._numbers

    def _process_ids(self, name: str) -> tuple[int, int]:
        """The track and the process id in the trace: its own pid may be that of another process on another node."""
        if name not in self._processes:
            uuid, pid = self._processes[name] = self._next_id(), self._next_id()
            described = _encode_varint_field(1, pid) + _encode_bytes_field(6, name)
            self._add_packet(_encode_bytes_field(60, _encode_varint_field(1, uuid) + _encode_bytes_field(3, described)))
        return self._processes[name]

    def _add_packet(self, content: bytes) -> None:
        flags = _FIRST | _LATER if not self.packets else _LATER
        head = _encode_varint_field(10, 1) + _encode_varint_field(13, flags)
        names = _encode_bytes_field(12, b"".join(self._new)) if self._new else b""
        self._new.clear()
        packet = _encode_bytes_field(1, head + names + content)
        self.packets.append(packet)
        self.size += len(packet)

    def _add_slices(self, track: Track, uuid: int, process: int) -> None:
        """Begin and end of each slice, in their order: a slice inside another one ends before it."""
        open_: list[int] = []
        for part in track.slices:
            while open_ and open_[-1] <= part.start:
                self._add_event(open_.pop(), _encode_varint_field(9, _END) + _encode_varint_field(11, uuid))
            if part.end is not None:
                open_.append(part.end)
            kind = _INSTANT if part.end is None else _BEGIN
            self._add_event(
                part.start,
                _encode_varint_field(9, kind) + _encode_varint_field(11, uuid) + self._slice_content(part, process),
            )
            self.events += 1
        for end in reversed(open_):
            self._add_event(end, _encode_varint_field(9, _END) + _encode_varint_field(11, uuid))

    def _add_event(self, time: int, content: bytes) -> None:
        self._add_packet(_encode_varint_field(8, time) + _encode_bytes_field(11, content))

    def _slice_content(self, part: Slice, process: int) -> bytes:
        encoded = _encode_varint_field(10, self._intern(_NAMES, part.name)) + _encode_varint_field(
            3, self._intern(_CATEGORIES, part.kind)
        )
        for key, value in part.details.items():
            field = (
                _encode_varint_field(17, self._intern(_TEXTS, value))
                if isinstance(value, str)
                else _encode_varint_field(4, int(value))
            )
            encoded += _encode_bytes_field(4, _encode_varint_field(1, self._intern(_KEYS, key)) + field)
        if part.correlation is not None:  # an arrow from the call to what it launched
            flow = 47 if part.kind == "api" else 48
            number = (process << 40 | part.correlation) & 0xFFFF_FFFF_FFFF_FFFF
            encoded += _encode_varint(flow << 3 | _FIXED64) + struct.pack("<Q", number)
        return encoded

    def _intern(self, field: int, text: str) -> int:
        key = (field, text)
        if key not in self._interned:
            number = self._interned[key] = len(self._interned) + 1
            self._new.append(_encode_bytes_field(field, _encode_varint_field(1, number) + _encode_bytes_field(2, text)))
        return self._interned[key]
