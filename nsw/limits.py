"""A limit of time and memory for what recipes and templates compute: a matrix multiplies, and a template may loop."""

from __future__ import annotations

import resource
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from nsw.errors import LimitError
from nsw.safe_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["limited"]

_SECONDS: Final = 120.0  # of this process's own time, not of the clock's: 10,000 runs take one or two
_BYTES: Final = 4 << 30  # beside what is in use
_HINT: Final = "a loop, a text or the matrix in it is too large"
# A limit is of the whole process: two threads that put it back in turn would leave that of the first for ever.
_ONE_AT_A_TIME: Final = threading.RLock()


class _OverTimeError(BaseException):
    """No Exception, so that nothing between takes it for a fault of its own."""


def _end(_signal: int, _frame: object) -> NoReturn:
    raise _OverTimeError


@contextmanager
def limited(subject: str, *, seconds: float = _SECONDS, memory: int = _BYTES, hint: str = _HINT) -> Iterator[None]:
    """What happens inside may take so much processor time and memory.

    Both are of the whole process and hold only meanwhile. Signals reach the main thread alone: elsewhere time has no
    limit. Inside of another limit its clock stops. Threads take turns.

    Raises:
        LimitError: It took more; `what` begins the sentence.
    """
    with _ONE_AT_A_TIME:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        timed = threading.current_thread() is threading.main_thread()
        handler = signal.signal(signal.SIGVTALRM, _end) if timed else None
        left = 0.0
        try:
            if (used := _in_use()) is not None:
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


def _in_use() -> int | None:
    """Bytes of this process's address space; None where the kernel has no such file."""
    try:
        return int(read_text(Path("/proc/self/statm")).split()[0]) * resource.getpagesize()
    except OSError:
        return None
