"""Bytes of a stream: records first, then files, read in large pieces and none lost."""

import pytest

from nsw.transport.shell import ConnectionLostError, Incoming, TooLongError


class Scripted:
    """A stream that gives these parts, then its end or a fault."""

    def __init__(self, *parts, fault=None):
        self.parts, self.fault, self.asked = list(parts), fault, []

    def receive(self, most, _timeout):
        self.asked.append(most)
        if not self.parts and self.fault:
            raise self.fault
        part = self.parts.pop(0) if self.parts else b""
        if len(part) > most:
            self.parts.insert(0, part[most:])
        return part[:most]


def taken(incoming, sizes):
    """Files of these sizes."""
    found, left = [], sum(sizes)
    for size in sizes:
        data = b""
        while len(data) < size:
            part = bytes(incoming.take(size - len(data), left))
            left -= len(part)
            data += part
        found.append(data)
    return found


@pytest.mark.parametrize("width", [1, 2, 5, 100])
def test_records_and_files_come_whole_however_they_were_cut_on_the_way(width):
    text = b"one\0two\0" + b"abcdefghij"
    pipe = Scripted(*(text[at : at + width] for at in range(0, len(text), width)))
    incoming = Incoming(pipe)
    assert [incoming.record(100), incoming.record(100)] == [b"one", b"two"]
    assert taken(incoming, [1, 4, 0, 5]) == [b"a", b"bcde", b"", b"fghij"]


def test_many_small_files_are_read_in_few_turns():
    pipe = Scripted(b"head\0", *[b"0123456789" * 1000] * 10)
    incoming = Incoming(pipe)
    incoming.record(100)
    assert taken(incoming, [10] * 10_000) == [b"0123456789"] * 10_000
    assert len(pipe.asked) == 11


def test_no_more_is_read_than_was_asked_for_in_all():
    pipe = Scripted(b"abcdef")
    assert bytes(Incoming(pipe).take(2, 4)) == b"ab"
    assert pipe.parts == [b"ef"]


def test_what_came_before_a_connection_was_lost_is_handed_out_and_then_the_loss_is_raised():
    incoming = Incoming(Scripted(b"abc", fault=ConnectionLostError("cut")))
    assert bytes(incoming.take(10, 10)) == b"abc"
    with pytest.raises(ConnectionLostError, match="cut"):
        incoming.take(7, 7)
    with pytest.raises(ConnectionLostError, match="ended"):
        Incoming(Scripted(b"abc")).record(100)


def test_a_record_that_never_ends_is_refused():
    with pytest.raises(TooLongError):
        Incoming(Scripted(*[b"x" * 10] * 100)).record(50)
