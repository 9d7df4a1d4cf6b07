"""A process forked from a test, which ends with it: it has the test's open files, and with them its locks."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_FAILED = 70


def forked(work: Callable[[], int]) -> int:
    """Do this in a process of its own, which is killed when this one ends; its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == parent:  # else it ended before that
                code = work()
        except BaseException:  # noqa: BLE001  the child of a test must not go on as the test
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def ended(process: int) -> int:
    """Wait for such a process; its exit status, -9 where it was killed. A test that is interrupted kills it."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    except BaseException:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
