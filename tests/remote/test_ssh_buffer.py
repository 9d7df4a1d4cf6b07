"""What stands in for paramiko's own buffer gives the same answers, and read-ahead of a socket loses nothing."""

import random
import socket
import threading

import pytest
from paramiko.buffered_pipe import BufferedPipe, PipeTimeout

from nsw.transport import ssh
from nsw.transport.model import connect
from nsw.transport.ssh import Packets

from .conftest import Server


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_calls_gives_what_paramiko_gives(seed):
    dice = random.Random(seed)
    ours, theirs = Packets(), BufferedPipe()
    events = threading.Event(), threading.Event()
    ours.set_event(events[0])
    theirs.set_event(events[1])
    for _ in range(300):
        what = dice.random()
        if what < 0.4:
            data = dice.randbytes(dice.choice([0, 1, 5, 1000]))
            ours.feed(data)
            theirs.feed(data)
        elif what < 0.9:
            most = dice.choice([1, 4, 700, 5000])
            assert answer(ours, most) == answer(theirs, most)
        elif what < 0.92:
            assert ours.empty() == theirs.empty()
        elif what > 0.995:
            ours.close()
            theirs.close()
        assert (len(ours), ours.read_ready()) == (len(theirs), theirs.read_ready())
        assert events[0].is_set() == (len(ours) > 0 or ours._closed)


def answer(buffer, most):
    try:
        return buffer.read(most, 0.0)
    except PipeTimeout:
        return "nothing yet"


def test_who_waits_is_woken_by_bytes_and_by_the_end():
    buffer, found = Packets(), []
    reader = threading.Thread(target=lambda: found.extend([buffer.read(10, 60), buffer.read(10, 60)]))
    reader.start()
    buffer.feed(b"one")
    buffer.close()
    reader.join(60)
    assert found == [b"one", b""]


@pytest.mark.parametrize("ahead", [3, 1000])
def test_what_a_socket_gave_at_once_comes_in_the_pieces_that_are_asked_for(ahead, monkeypatch):
    monkeypatch.setattr(ssh, "AHEAD", ahead)
    near, there = socket.socketpair()
    with near, there:
        there.sendall(b"0123456789" * 30)
        there.shutdown(socket.SHUT_WR)
        line, pieces = ssh.Line(near), []
        while piece := line.recv(7):
            assert len(piece) <= 7
            pieces.append(piece)
    assert b"".join(pieces) == b"0123456789" * 30


@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_files_come_through_a_proxy_command_which_a_shell_runs_with_its_tokens_replaced(server, tmp_path, kind):
    jump = Server(tmp_path / "jump", more=f"PermitOpen 127.0.0.1:{server.port}")
    jump.start()
    try:
        server.config.write_text(
            server.config.read_text() + f"  ProxyCommand env HOST=%h sh -c 'ssh -F {jump.config} -W $HOST:%p far'\n"
        )
        transport = connect({"transport": {"kind": kind, "host": "far", "config": str(server.config)}}, None)
        (tmp_path / "file").write_bytes(random.Random(1).randbytes(3_000_000))
        transport.get_many([(str(tmp_path / "file"), tmp_path / "here")])
        assert (tmp_path / "here").read_bytes() == (tmp_path / "file").read_bytes()
        transport.close()
        assert jump.logins() >= 1
    finally:
        jump.stop(sessions=True)
