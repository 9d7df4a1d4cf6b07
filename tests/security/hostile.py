"""A site that answers with what nobody asked for: started in the place of ssh, it reads what nsw sends, and lies."""

import os
import signal
import sys
import time
from pathlib import Path

JUNK = b"x" * (1 << 16)


def until(end):
    """What nsw sends, up to these bytes."""
    data = b""
    while not data.endswith(end):
        data += os.read(0, 1)
    return data


def say(data, to=1):
    while data:
        data = data[os.write(to, data) :]


def flood(data=JUNK, to=1):
    while True:
        say(data, to)


def facts(text, content=b""):
    """The answer to a command: what it announces, and what comes."""
    until(b"\0")
    say(b"\n%s %s\n%s" % (TOKEN, text.encode(), content))
    time.sleep(600)


def listing():
    """As large as an answer may be, of the shortest lines."""
    entries = b"folder\0" + b"".join(b"regular file\t1\t/s/%07d\0" % n for n in range(640_000))
    facts(f"0 0 {len(entries)} 0", entries)


def large():
    """The state of a campaign, as large as nsw takes it."""
    size = 48 << 20
    facts(f"0 0 {size + 14} 0", b"file %d\n" % size + bytes(size))


def download(*parts):
    """Announce a file of five bytes under the name that was asked for, and send these."""
    name = until(b"\0").rstrip(b"\0")
    say(b"regular file\t5\t%s\0" % name)
    for part in parts:
        say(part)
    flood()


LIES = {
    "endless greeting": None,
    "endless stdout": lambda: (until(b"\0"), flood()),
    "endless lines": lambda: (until(b"\0"), flood(b"\n" * (1 << 16))),
    "endless stderr": lambda: (until(b"\0"), say(b"\n%s 0 0 3 0\nyes" % TOKEN), flood(to=2)),
    "negative": lambda: facts("0 0 -1 5"),
    "negative and large": lambda: facts("0 0 4000000000 -3999999990"),
    "too long": lambda: facts("0 0 1000000000000 0"),
    "too long to be a number": lambda: facts(f"0 0 {'9' * 5000} 0"),
    "words": lambda: facts("nought 0 ten ten"),
    "strange digits": lambda: facts("0 0 ² ٣"),
    "too few": lambda: facts("0 0 5"),
    "longer than asked": lambda: facts("0 0 15 0", b"file 9\n123456789"),
    "a length in words": lambda: facts("0 0 15 0", b"file nine\n12345"),
    "a length too long": lambda: facts("0 0 15 0", b"file 1234567\n12"),
    "a large state": large,
    "listing without end": listing,
    "a listing of another folder": lambda: facts("0 0 39 0", b"folder\0regular file\t1\t/other/name\0end\0\0"),
    "a size in words": lambda: facts("0 0 34 0", b"folder\0regular file\tone\t/s/na\0end\0"),
    "a file longer than announced": lambda: download(b"sha256\0", b"12345"),
    "a hash that nobody knows": lambda: download(b"md5\0"),
    "a file that was not asked for": lambda: (until(b"\0"), say(b"regular file\t5\t/etc/passwd\0"), flood()),
    "a size of strange digits": lambda: (until(b"\0"), say("regular file\t²\t/s/a\0".encode()), flood()),
    "stays": lambda: (signal.signal(signal.SIGPIPE, signal.SIG_IGN), stay()),
}


def stay():
    """Neither the end of its input nor that of whoever listens ends it."""
    while True:
        try:
            flood(to=2)
        except OSError:
            time.sleep(0.01)


if __name__ == "__main__":
    if sys.argv[1] == "endless greeting":
        flood()
    if "HOSTILE_PID" in os.environ:
        Path(os.environ["HOSTILE_PID"]).write_text(str(os.getpid()))
    TOKEN = until(b"\n").strip().partition(b"=")[2]
    until(b"exit\n")
    say(b"\n%s free\n" % TOKEN)
    LIES[sys.argv[1]]()
