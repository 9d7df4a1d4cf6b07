"""C++ names out of mangled ones, by the C++ runtime's own `__cxa_demangle`.

The runtime (libstdc++ or libc++) knows every corner of the Itanium ABI, which the Python packages for it do
not (lambdas, expressions), and every machine that runs numpy has it. But a name comes out of an untrusted
file, and a hundred characters of back-references can stand for a name of 2^50: so the calls are made in a
child process with limits on memory and time, started when the first mangled name is met and asked for many
names at once. What it does not answer stays mangled.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator

LONGEST = 8192  # characters of a mangled name that are worth asking for
_LONGEST_ANSWER = 65536
_BATCH_BYTES = 16384  # of questions at a time: less than a pipe holds, so that neither side blocks
_START_SECONDS = 20.0  # a cold file system of a cluster can be that slow
_BATCH_SECONDS = 1.5
_SINGLE_SECONDS = 0.5  # for each name of a batch that had no answer
_MOST_FAILURES = 6  # then the rest of the session's names stay as they are

# Runs in the child, isolated from the user's site-packages; a line in, a line out.
_CHILD = f"""
import ctypes, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1", "libc++.1.dylib"):
    try:
        library = ctypes.CDLL(name)
        break
    except OSError:
        continue
else:
    sys.exit(3)
convert, free = library.__cxa_demangle, ctypes.CDLL(None).free
convert.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
print("ready", flush=True)
for line in sys.stdin.buffer:
    status, answer = ctypes.c_int(), line[:-1]
    found = convert(answer, None, None, ctypes.byref(status))
    if found:
        text = ctypes.string_at(found)
        free(found)
        if status.value == 0 and len(text) <= {_LONGEST_ANSWER}:
            answer = text
    sys.stdout.buffer.write(answer.replace(b"\\n", b" ") + b"\\n")
    sys.stdout.buffer.flush()
"""


def demangle_all(names: Iterable[str]) -> dict[str, str]:
    """Each distinct name with its demangled form; with itself where there is none."""
    answers = {name: name for name in names}
    questions = [n for n in answers if is_mangled(n) and len(n) <= LONGEST and n.isascii() and n.isprintable()]
    with _LOCK:
        for batch in _batches(questions):
            answers.update(zip(batch, _ask_patiently(batch), strict=True))
    return answers


def is_mangled(name: str) -> bool:
    """Whether the name looks like one of the Itanium ABI's (`_Z` or, from Mach-O, `__Z`)."""
    return name.startswith(("_Z", "__Z"))


def _batches(questions: list[str]) -> Iterator[list[str]]:
    rest = iter(questions)
    while first := list(islice(rest, 1)):
        size = len(first[0])
        batch = first
        for name in rest:
            batch.append(name)
            size += len(name) + 1
            if size > _BATCH_BYTES:
                break
        yield batch


def _ask_patiently(batch: list[str]) -> list[str]:
    """The batch's answers; after a failure one name at a time, so that one bad name costs itself alone."""
    answers = _CHILD_PROCESS.ask(batch, _BATCH_SECONDS)
    if answers is not None:
        return answers
    return [(_CHILD_PROCESS.ask([name], _SINGLE_SECONDS) or [name])[0] for name in batch]


class _Child:
    """The child process: started late, restarted after a failure, given up after several."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._owner = 0  # a fork of this process must not share the child's pipes

    def ask(self, names: list[str], seconds: float) -> list[str] | None:
        """An answer a name, or None when the child died or took too long."""
        if self._failures >= _MOST_FAILURES:
            return None
        try:
            process = self._process if self._process and self._owner == os.getpid() else self._start()
            assert process.stdin is not None
            process.stdin.write("".join(f"{n}\n" for n in names).encode("ascii"))
            process.stdin.flush()
            return self._lines(len(names), time.monotonic() + seconds)
        except OSError:
            self._failures += 1
            self.stop()
            return None

    def _start(self) -> subprocess.Popen[bytes]:
        if not sys.executable:
            self._failures = _MOST_FAILURES
            raise OSError("there is no Python interpreter to run the demangler")
        self._owner = os.getpid()
        import subprocess  # where no name is mangled it is not needed

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lines(1, time.monotonic() + _START_SECONDS)
        return self._process

    def _lines(self, how_many: int, deadline: float) -> list[str]:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        got = bytearray()
        while (found := got.count(b"\n")) < how_many:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise TimeoutError(f"{how_many - found} names were not answered")
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                raise BrokenPipeError("the demangler ended")
            got += piece
        return got.decode("utf-8", errors="replace").split("\n")[:how_many]

    def stop(self) -> None:
        """End the child if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # what was still to be written to a dead child
        process.wait()


_LOCK = threading.Lock()
_CHILD_PROCESS = _Child()
atexit.register(_CHILD_PROCESS.stop)
