"""A site that answers with what was not asked for gets an error, and neither nsw's memory nor its disk."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsw.errors import CommandError, CommandResult
from nsw.transport.local import LocalTransport
from nsw.transport.ssh import Line, Packets

HOSTILE = Path(__file__).with_name("hostile.py")
MOST_MB = 200
# an nsw whose site is hostile: what it asks, and what it makes of the answer
ASKED = """
import sys
from pathlib import Path
import nsw.cli.running, nsw.engine.loop
from nsw.errors import NswError
from nsw.transport.openssh import OpenSsh
from nsw.transport.remote import RemoteTransport

far = RemoteTransport(OpenSsh([sys.executable, *sys.argv[1:]], "far"), {"limits": {"download": "1G"}}, None)
try:
    print(ASK)
except NswError as fault:
    print(type(fault).__name__, fault.message)
print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) >> 10)  # a parent's peak is not in it
"""
RUN = "far.run(['squeue'], timeout=1)"
READ = "far.read_many(['/s/a'], 8)"
LIST = "len(far.list_many({'/s': ['*']}))"
GET = "far.get_many([('/s/a', Path('here/a'))])"


def asked(tmp_path, ask, lie):
    """What nsw says at last, and the most memory that it took, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED.replace("ASK", ask, 1), HOSTILE, lie], capture_output=True, text=True,
        check=False, cwd=tmp_path, timeout=120, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, memory = done.stdout.rstrip().rsplit("\n", 1)
    assert int(memory) < MOST_MB
    return said


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("endless greeting", "far cannot be reached .* the reply does not have the form of an answer"),
        ("endless stdout", "the reply does not have the form of an answer"),
        ("endless lines", "the reply does not have the form of an answer"),
        ("negative", "a malformed answer: '0 0 -1 5'"),
        ("negative and large", "a malformed answer"),
        ("too long", "the answer has 1,000,000,000,000 bytes; the limit is 33,554,432"),
        ("too long to be a number", "a malformed answer"),
        ("words", "a malformed answer: 'nought 0 ten ten'"),
        ("strange digits", "a malformed answer"),
        ("too few", "a malformed answer: '0 0 5'"),
    ],
)
def test_a_command_whose_answer_is_none_is_in_doubt(tmp_path, lie, said):
    answer = asked(tmp_path, RUN, lie)
    assert "timed_out=True" in answer
    assert re.search(said, answer)


def test_an_endless_stderr_beside_an_answer_is_no_matter(tmp_path):
    assert "stdout='yes'" in asked(tmp_path, RUN, "endless stderr")


@pytest.mark.parametrize(
    ("ask", "lie", "said"),
    [
        (READ, "longer than asked", "/s/a cannot be read: the site's answer has another length than announced"),
        (READ, "a length too long", "/s/a cannot be read: the site's answer has another length than announced"),
        (LIST, "listing without end", "/s cannot be listed: the site's answer is cut short"),
        (LIST, "a listing of another folder", "/s cannot be listed: the site's answer is cut short, or of something"),
        (LIST, "a size in words", "/s cannot be listed"),
        (GET, "a file longer than announced", "the transfer was ended: the site .* sends more of them"),
        (GET, "a hash that nobody knows", "the transfer was ended: the site hashes with 'md5'"),
        (GET, "a file that was not asked for", "the transfer was ended: the site sent what was not asked for"),
        (GET, "a size of strange digits", "the transfer was ended: the site sent what was not asked for"),
    ],
)
def test_files_that_are_not_as_asked_for_are_an_error(tmp_path, ask, lie, said):
    assert re.match(f"UnreachableError {said}", asked(tmp_path, ask, lie))
    assert not (tmp_path / "here" / "a").exists()


def test_the_state_of_a_campaign_to_take_over_is_refused_when_it_is_damaged_and_kept_on_no_disk(tmp_path):
    ask = "__import__('nsw.engine.handover', fromlist='x').fetch_stored_state(far, '/s', Path('.'))"
    assert asked(tmp_path, ask, "a large state").startswith("CampaignError the campaign's state on the site is damaged")
    assert not list(tmp_path.glob("*.db"))


def test_a_length_in_words_is_that_of_no_file(tmp_path):
    assert "Unreadable" in asked(tmp_path, READ, "a length in words")


LOCAL = """
import sys
import nsw.cli.running, nsw.engine.loop
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.schedulers.model import Submission
from nsw.schedulers.slurm import Slurm
from nsw.transport.local import LocalTransport

slurm = BatchScheduler(Slurm(), LocalTransport(), sys.argv[1], "c-1", Limits())
print(slurm.poll([Submission("nsw-1", "j", None, 1, (0,), native_id="7")]))
print(LocalTransport().run(["squeue"], timeout=60).stderr)
print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) >> 10)  # a parent's peak is not in it
"""


def test_a_squeue_that_never_ends_is_ended_and_says_nothing_of_any_job(tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec yes '7|N/A|RUNNING|nsw-1'\n")
    (tmp_path / "squeue").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, tmp_path], env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    polled, *said, memory = done.stdout.splitlines()
    assert "Phase.UNKNOWN" in polled
    assert "".join(said) == "it printed more than 33554432 bytes, and nsw ended it"
    assert int(memory) < MOST_MB


def test_of_a_long_stderr_the_beginning_and_the_end_are_kept(tmp_path):
    script = "echo begin >&2; head -c 100000000 /dev/zero | tr '\\0' x >&2; echo end >&2; echo out"
    done = LocalTransport().run(["bash", "-c", script], timeout=60)
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert re.fullmatch(r"begin\nx+\n\[99934474 bytes are left out\]\nx+end\n", done.stderr)


def test_an_error_shows_the_beginning_and_the_end_of_a_long_output():
    message = CommandError(CommandResult(("squeue",), 1, f"begin{'x' * 1_000_000}end", ""), subject="asking").message
    assert len(message) < 10_000
    assert "begin" in message
    assert "[992,008 characters are left out]" in message
    assert "xend" in message


def test_a_server_that_announces_a_packet_without_measure_gets_no_room_for_it():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b"x")
        line = Line(near)
        with pytest.raises(OSError, match="a packet of 4,294,967,295 bytes"):
            line.recv((1 << 32) - 1)
        assert line.recv(1 << 17) == b"x"


def test_a_server_that_sends_more_than_its_window_has_ended_its_stream():
    packets = Packets()
    for _ in range(1000):
        packets.feed(b"x" * (1 << 17))
    assert len(packets) <= 1 << 25
    while packets.read(1 << 20):
        pass
    packets.feed(b"later")
    assert packets.read(10) == b""


def processes_of_session(leader):
    """Those that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if session == str(leader) and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(tmp_path, then):
    """An nsw that talks to a site that never goes away; and the process that stands in for its ssh."""
    mark = tmp_path / "pid"
    nsw = subprocess.Popen(
        [sys.executable, "-c", ASKED.replace("ASK", f"far._shell.connect() and {then}", 1), HOSTILE, "stays"], env=os.environ | {"HOSTILE_PID": str(mark)},
        stdin=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: mark.exists() and mark.read_text())
    return nsw, int(mark.read_text())


def test_an_ssh_ends_with_an_nsw_that_is_killed(tmp_path):
    nsw, ssh = started(tmp_path, "sys.stdin.read()")
    assert processes_of_session(ssh)
    nsw.kill()
    nsw.communicate()
    wait_until(lambda: not processes_of_session(ssh))


def test_nothing_is_left_of_an_ssh_that_was_let_go_of(tmp_path):
    nsw, ssh = started(tmp_path, "(far.close(), sys.stdin.read())")
    wait_until(lambda: not processes_of_session(ssh))
    assert nsw.poll() is None
    nsw.kill()
    nsw.communicate()
