"""A function in a process of its own, with limits of memory and time: for bytes that others made.

What reads them can then crash, take all memory or never end, in libraries too, and it becomes an error that says so.
NVIDIA's own exporters, which such a function may start, have none of these limits.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from nsw.errors import LimitError, NswError
from nsw.safe_files import read_text
from nsw.safe_import_path import SafeProcesses, processes_are_safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext, SpawnContext

__all__ = [
    "Limits",
    "NoPoolError",
    "allow_fork",
    "can_fork",
    "child_processes_without_limits",
    "is_isolated",
    "is_possible",
    "isolated_pool",
    "limited_block",
    "out_of_memory",
    "run_isolated",
    "starting_processes",
    "with_limits",
]

_T = TypeVar("_T")
# An nsys export takes 1.7 times its length (16 million kernels, 1.75 GB: 2.9 GB in 21 s), so that one of 5 GB is read.
# Libraries reserve a gigabyte that they never use. Three quarters of a machine leave it usable.
_MEMORY: Final = min(16 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4)
# The slowest readers take 0.1 s a MB; a packed trace becomes twenty times as long, and machines are half as fast.
_SECONDS: Final = 120.0
_SECONDS_A_BYTE: Final = 5e-6
_GRACE_S: Final = 5.0
_ARENAS: Final = -8  # M_ARENA_MAX of glibc
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of prctl
_ONE_AT_A_TIME: Final = RLock()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process apart may take; None: what suits the size of its input.

    Attributes:
        memory: Bytes, beside what it has in use when it begins.
        seconds: Processor time of each call.
        command: What a hint names as the command whose options raise them.
    """

    memory: int | None = None
    seconds: float | None = None
    command: str = "nsw read"

    def for_bytes(self, size: int) -> _Chosen:
        """The limits for an input of this size."""
        seconds = round(_SECONDS + size * _SECONDS_A_BYTE) if self.seconds is None else self.seconds
        hint = f"if you know who made it: `{self.command} --max-memory 64G --max-time 5h` allows more"
        return _Chosen(_MEMORY if self.memory is None else self.memory, seconds, hint)


@dataclass(frozen=True, slots=True)
class _Chosen:
    memory: int
    seconds: float
    hint: str


@dataclass(slots=True)
class _Process:
    """What this process is."""

    may_fork: bool = False
    is_isolated: bool = False


_this_process: Final = _Process()


def allow_fork() -> None:
    """Say that this process is nsw's own program, which a fork may copy: from Python it may be anybody's."""
    _this_process.may_fork = True


def can_fork() -> bool:
    """Whether a process apart can be a copy of this one, which takes 5 ms; a fresh interpreter takes 0.4 s.

    A copy of a process with threads (Arrow's) may hang.
    """
    try:
        return _this_process.may_fork and len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  for its length only
    except OSError:
        return False


def is_isolated() -> bool:
    """Whether this is a process apart."""
    return _this_process.is_isolated


def is_possible() -> bool:
    """Whether there can be a process apart: not in one, nor where it would look for modules in the current folder."""
    return not _this_process.is_isolated and (can_fork() or processes_are_safe())


def run_isolated(function: Callable[..., _T], *args: Any, subject: str, size: int, limits: Limits | None = None) -> _T:
    """Call a function in a process with limits; where there can be none (`is_possible`), call it as it is.

    Args:
        function: What to call; where the process is a fresh interpreter, a function of a module.
        *args: Its arguments.
        subject: What it does, as the beginning of a sentence: reading x.sqlite.
        size: Bytes of what it reads.
        limits: What it may take.

    Returns:
        What the function returned. What it printed is printed.

    Raises:
        LimitError: It took more, or its process crashed.
        Exception: The function raised it.
    """
    if not is_possible():
        return function(*args)
    chosen = (limits or Limits()).for_bytes(size)
    context = _multiprocessing_context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, function, args, subject, chosen))
    _flush_streams()  # a copy would print it again
    try:  # from the start on: Python waits at its end for a process that Ctrl-C left behind
        with starting_processes():
            process.start()
        sender.close()
        answer = receiver.recv_bytes()
    except EOFError:
        process.join()
        raise _error_of_ended_process(process.exitcode or 0, subject, chosen) from None
    except BaseException:
        if process.pid is not None:
            process.terminate()
            process.join(_GRACE_S)
            process.kill()
        raise
    finally:
        if process.pid is not None:
            process.join()
    good, result = pickle.loads(answer)  # noqa: S301  of our own process
    if not good:
        raise result
    return cast("_T", result)


def _multiprocessing_context() -> ForkContext | SpawnContext:
    from multiprocessing import get_context

    return get_context("fork") if can_fork() else get_context("spawn")


def _send_result(
    sender: Connection, function: Callable[..., object], args: tuple[Any, ...], subject: str, limits: _Chosen
) -> NoReturn:
    """Call the function and send what it returns; in the process apart."""
    try:
        _become_isolated()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary files go
        with with_limits(subject, limits):
            answer = pickle.dumps((True, function(*args)), pickle.HIGHEST_PROTOCOL)
        _flush_streams()
    except BaseException as fault:  # noqa: BLE001  whoever asked gets it
        answer = pickle.dumps((False, _with_traceback_note(fault)))
    with suppress(OSError):  # nobody waits for it any more
        sender.send_bytes(answer)
    os._exit(0)  # taking Arrow apart may end the process with SIGABRT


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # where it was closed
            stream.flush()


def _with_traceback_note(fault: BaseException) -> BaseException:
    """The exception; with a note where it was raised if it is nobody's mistake: tracebacks do not travel."""
    import traceback

    if not isinstance(fault, NswError | OSError | KeyboardInterrupt | SystemExit):
        fault.add_note("".join(traceback.format_exception(fault)))
    return fault


class _WithoutPandas:
    """Finds no pandas: pyarrow would load it with its first array, which takes 0.3 s, and nothing here uses it."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


def _become_isolated() -> None:
    """Make this process one apart, whose calls have limits; it ends with the one that started it."""
    import ctypes

    _this_process.is_isolated = True
    for number in (signal.SIGTERM, signal.SIGHUP):  # a copy of the program handles them as Ctrl-C
        signal.signal(number, signal.SIG_DFL)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy reserves memory for a thread of each core, which nothing here uses
    sys.meta_path.insert(0, _WithoutPandas)
    with suppress(OSError, AttributeError):  # where there is no prctl
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        ctypes.CDLL(None).mallopt(_ARENAS, 1)  # else each thread keeps what it freed: a fifth more memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextmanager
def with_limits(subject: str, limits: _Chosen) -> Iterator[None]:
    """What happens inside has these limits; for a process apart alone, which ends where Python cannot raise an error.

    Raises:
        LimitError: It took more.
    """
    with limited_block(subject, seconds=limits.seconds, memory=limits.memory, hint=limits.hint):
        left, _ = signal.setitimer(signal.ITIMER_PROF, 1.1 * limits.seconds + 1)
        try:
            yield
        except Exception as fault:
            if out_of_memory(fault):
                raise MemoryError from fault
            raise
        finally:
            signal.setitimer(signal.ITIMER_PROF, left)


def out_of_memory(fault: Exception) -> bool:
    """Whether memory was lacking: for an object, the stack of a thread, or a library."""
    words = ("can't start new thread", "failed to map segment")
    return isinstance(fault, MemoryError) or any(word in str(fault) for word in words)


def _error_of_ended_process(status: int, subject: str, limits: _Chosen) -> LimitError:
    """The error of a process that ended without an answer."""
    if status == -signal.SIGPROF:
        return LimitError(f"{subject} takes more than {limits.seconds:g} s of processor time", hint=limits.hint)
    if status == -signal.SIGKILL:
        return LimitError(
            f"{subject}: the process that did it was killed", hint="the machine, or your job, had no memory left"
        )
    ending = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return LimitError(
        f"{subject}: the process that did it crashed ({ending})",
        hint=f"where it lacked memory, {limits.hint}; else this is a bug: report it, with the file",
    )


@contextmanager
def child_processes_without_limits() -> Iterator[None]:
    """Programs that are started meanwhile do not get the limits of this process apart."""
    if not _this_process.is_isolated:  # it has no limits, and another thread may be setting some (nsw/apart.py)
        yield
        return
    before = {name: resource.getrlimit(name) for name in (resource.RLIMIT_AS, resource.RLIMIT_CORE)}
    try:
        for name, (_, hard) in before.items():
            resource.setrlimit(name, (hard, hard))
        yield
    finally:
        for name, both in before.items():
            resource.setrlimit(name, both)


class NoPoolError(Exception):
    """Processes cannot share locks here: containers may have no /dev/shm that can be written."""


@contextmanager
def isolated_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes apart, for many calls; they end with the block, in the middle of a call if need be.

    The calls themselves are to be `within` their limits.

    Raises:
        NoPoolError: There can be none.
    """
    from concurrent.futures import ProcessPoolExecutor

    with _ONE_AT_A_TIME, SafeProcesses():  # multiprocessing has a process of its own too
        try:
            executor = ProcessPoolExecutor(workers, mp_context=_multiprocessing_context(), initializer=_become_isolated)
        except OSError:
            raise NoPoolError from None
    try:
        yield executor
    except BaseException:
        for process in list((executor._processes or {}).values()):  # noqa: SLF001  of this pool: another thread may have one
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def starting_processes() -> Iterator[None]:
    """Processes started here get no Ctrl-C, which a terminal sends to all: it is this process that ends them.

    Nor do they look for modules in the current folder, or import the program that reads: a script that calls nsw
    without `if __name__ == "__main__":` would do its work a second time in each of them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _ONE_AT_A_TIME, SafeProcesses():  # what is changed here is shared by all threads
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                yield
            finally:
                sys.modules["__main__"] = main
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_CPU_SECONDS: Final = 120.0  # of this process's own time, not of the clock's: 10,000 runs take one or two
_BYTES: Final = 4 << 30  # beside what is in use
_HINT: Final = "a loop, a text or the matrix in it is too large"
# A limit is of the whole process: two threads that put it back in turn would leave that of the first for ever.
_LIMITS_LOCK: Final = threading.RLock()


class _OverTimeError(BaseException):
    """No Exception, so that nothing between takes it for a fault of its own."""


def _raise_over_time(_signal: int, _frame: object) -> NoReturn:
    raise _OverTimeError


@contextmanager
def limited_block(
    subject: str, *, seconds: float = _CPU_SECONDS, memory: int = _BYTES, hint: str = _HINT
) -> Iterator[None]:
    """Limit the processor time and memory that the block may take.

    Both limits apply to the whole process, and end with the block. Signals reach the main thread alone: other threads
    have no time limit. Inside of another limit, the other's clock stops. Threads take turns.

    Args:
        subject: What the block does, such as `reading FILE`; the error message begins with it.
        seconds: Processor time of this process.
        memory: Bytes of address space beside those in use.
        hint: The error's hint.

    Raises:
        LimitError: The block took more.
    """
    with _LIMITS_LOCK:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        timed = threading.current_thread() is threading.main_thread()
        handler = signal.signal(signal.SIGVTALRM, _raise_over_time) if timed else None
        left = 0.0
        try:
            if (used := _address_space_bytes()) is not None:
                most = used + memory
                resource.setrlimit(
                    resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
                )
            if timed:
                left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
            yield
        except _OverTimeError:
            raise LimitError(f"{subject} takes more than {seconds:g} s of processor time", hint=hint) from None
        except MemoryError:
            raise LimitError(f"{subject} takes more than {memory >> 20:,} MiB", hint=hint) from None
        finally:
            if timed:
                signal.setitimer(signal.ITIMER_VIRTUAL, left)
                signal.signal(signal.SIGVTALRM, handler)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space_bytes() -> int | None:
    """Bytes of this process's address space; None where the kernel has no such file."""
    try:
        return int(read_text(Path("/proc/self/statm")).split()[0]) * resource.getpagesize()
    except OSError:
        return None


_MIN_ALLOWANCE: Final = 256 << 20  # bytes that any file may unpack to
_TIMES: Final = 50  # of the packed size; traces of PyTorch pack 10 to 20 to 1


class TooMuchError(Exception):
    """A file unpacks to more than is taken of it; the text says to how much."""


class Allowance:
    """Bytes that may come out of one packed file.

    Args:
        packed: The size of the file.
        limit: What a person allowed; by default 256 MiB, or fifty times the file's size if that is more.
    """

    def __init__(self, packed: int, limit: int | None = None) -> None:
        self.limit = max(_MIN_ALLOWANCE, _TIMES * packed) if limit is None else limit
        self._packed = packed
        self._unpacked = 0

    def take(self, size: int) -> None:
        """Count bytes that came out, or that will.

        Raises:
            TooMuchError: They are too many.
        """
        self._unpacked += size
        if self._unpacked > self.limit:
            raise TooMuchError(
                f"{format_bytes(self._packed)} that unpack to more than {format_bytes(self.limit)}, nsw's limit"
                " for this file"
            )


def format_bytes(size: int) -> str:
    """Bytes for people, in powers of 1024: 13.1 MiB."""
    for unit, power in (("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} B"
