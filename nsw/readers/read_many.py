"""Many reports: several processes, answers in the order of the files.

A report that brings its process down (a fault in a native library) spoils only itself: that is reported, and the
rest goes on in a new pool. Whoever stops asking (Ctrl-C, an error) leaves no process behind.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Final

from nsw.readers.detect import read
from nsw.readers.model import Options, Report
from nsw.safe_import_path import SafeProcesses, processes_are_safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor
    from pathlib import Path

_AHEAD: Final = 4  # files a worker holds beyond the one that is asked for: bounds what waits in memory
# What one process takes, roughly; from _WORTHWHILE on the start of others (half a second each) pays.
_SECONDS_A_FILE: Final = 0.005
_BYTES_A_SECOND: Final = 10e6
_WORTHWHILE: Final = 2.0
_ONE_AT_A_TIME: Final = RLock()


def read_many(paths: Sequence[Path], options: Options | None = None, workers: int | None = None) -> Iterator[Report]:
    """Read files one after the other as they are asked for.

    Args:
        paths: The files.
        options: What is asked of the readers.
        workers: How many processes; by default one a core, and none for what one process reads as soon.
    """
    chosen = options or Options()
    count = workers if workers is not None else (_cores() if takes_long(paths) else 1)
    if count <= 1 or not processes_are_safe():
        for path in paths:
            yield read(path, chosen)
        return
    at = 0
    try:
        while at < len(paths):
            for report in _pooled(paths[at:], chosen, count):
                yield report
                at += 1
            if at < len(paths):  # the pool broke over this file, or over one that was read beside it
                yield _alone(paths[at], chosen)
                at += 1
    except _NoPoolError:
        for path in paths[at:]:
            yield read(path, chosen)


class _NoPoolError(Exception):
    """Processes cannot share locks here: containers may have no /dev/shm that can be written."""


def takes_long(paths: Sequence[Path]) -> bool:
    """Whether reading takes so long that several processes, and a progress bar, are worth it."""
    seconds = _SECONDS_A_FILE * len(paths)
    for path in paths:
        if seconds >= _WORTHWHILE:
            break
        seconds += _size(path) / _BYTES_A_SECOND
    return len(paths) > 1 and seconds >= _WORTHWHILE


def _size(path: Path) -> int:
    try:
        return sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0  # what is wrong with it is reported when it is read


def _pooled(paths: Sequence[Path], options: Options, workers: int) -> Iterator[Report]:
    """Reports from a pool of processes until one of them dies."""
    from concurrent.futures.process import BrokenProcessPool

    waiting: list[Future[Report]] = []
    rest = iter(paths)
    with _pool(workers) as pool:
        try:
            for path in rest:
                with _starting_processes():
                    waiting.append(pool.submit(read, path, options))
                if len(waiting) > workers * _AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        except BrokenProcessPool:
            return


def _alone(path: Path, options: Options) -> Report:
    """Read a file in a process of its own, which may die of it."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            with _starting_processes():
                reading = pool.submit(read, path, options)
            return reading.result()
        except BrokenProcessPool:
            report = Report(str(path))
            report.error(
                "the process that read this file crashed",
                fix="this is a bug in nsw: report it, with the file",
            )
            return report


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end with the block, in the middle of a file if need be."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    others = set(multiprocessing.active_children())
    # fresh interpreters: a forked copy of one with threads (Arrow's) may hang
    with _ONE_AT_A_TIME, SafeProcesses():  # multiprocessing has a process of its own too
        try:
            pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        except OSError:
            raise _NoPoolError from None
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _starting_processes() -> Iterator[None]:
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


def _cores() -> int:
    return len(os.sched_getaffinity(0))
