"""Many reports: processes with limits, answers in the order of the files.

A report that takes too much, or that brings its process down, spoils only itself: that is reported, and the rest goes
on in a new process. Whoever stops asking (Ctrl-C, an error) leaves no process behind.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nsw.apart import Limits, NoPoolError, is_possible, pool, run_isolated, starting, with_limits
from nsw.errors import LimitError
from nsw.readers.detect import read
from nsw.readers.model import Options, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["read_many", "size_of", "stopped", "takes_long"]

_AHEAD: Final = 4  # files a worker holds beyond the one that is asked for: bounds what waits in memory
# What one process takes, roughly; from _WORTHWHILE on the start of others (half a second each) pays.
_SECONDS_A_FILE: Final = 0.005
_BYTES_A_SECOND: Final = 10e6
_WORTHWHILE: Final = 2.0
_SMALL: Final = 8 << 20  # bytes in all: what one process reads sooner than another starts


def read_many(paths: Sequence[Path], options: Options | None = None, workers: int | None = None) -> Iterator[Report]:
    """Read files one after the other as they are asked for.

    Args:
        paths: The files.
        options: What is asked of the readers.
        workers: How many processes with limits; 0: this one reads. By default one a core for what takes long, one for
            other files that are not small or where limits were asked for, none for small ones. A process apart reads
            itself.
    """
    chosen = options or Options()
    count = _workers(paths, requested=chosen.limits != Limits()) if workers is None else workers
    if count == 0 or not is_possible():
        for path in paths:
            yield read(path, chosen)
        return
    at = 0
    try:
        while at < len(paths):
            try:
                for report in _pooled(paths[at:], chosen, count):
                    yield report
                    at += 1
                if at < len(paths):  # the pool broke over this file, or over one that was read beside it
                    yield _alone(paths[at], chosen)
                    at += 1
            except LimitError as fault:  # of memory little may be left there: the next file has another process
                yield stopped(paths[at], fault)
                at += 1
    except NoPoolError:
        for path in paths[at:]:
            yield read(path, chosen)


def takes_long(paths: Sequence[Path]) -> bool:
    """Whether reading takes so long that several processes, and a progress bar, are worth it."""
    seconds = _SECONDS_A_FILE * len(paths)
    for path in paths:
        if seconds >= _WORTHWHILE:
            break
        seconds += size_of(path) / _BYTES_A_SECOND
    return len(paths) > 1 and seconds >= _WORTHWHILE


def size_of(path: Path) -> int:
    """The bytes of a file, or of the files of a folder that is a report."""
    try:
        return sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0  # what is wrong with it is reported when it is read


def _workers(paths: Sequence[Path], *, requested: bool) -> int:
    if takes_long(paths):
        return len(os.sched_getaffinity(0))
    return int(requested or sum(map(size_of, paths)) >= _SMALL)


def _pooled(paths: Sequence[Path], options: Options, workers: int) -> Iterator[Report]:
    """Reports from a pool of processes until one of them dies.

    Raises:
        LimitError: The next file took too much.
    """
    from concurrent.futures.process import BrokenProcessPool

    waiting: list[Future[Report]] = []
    rest = iter(paths)
    with pool(workers) as processes:
        try:
            for path in rest:
                with starting():
                    waiting.append(processes.submit(_read_within, path, options))
                if len(waiting) > workers * _AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        except BrokenProcessPool:
            return


def _alone(path: Path, options: Options) -> Report:
    """Read a file in a process of its own, which may die of it."""
    return run_isolated(read, path, options, subject=f"reading {path}", size=size_of(path), limits=options.limits)


def _read_within(path: Path, options: Options) -> Report:
    """Read a file in a process apart that may be there for others too."""
    with with_limits(f"reading {path}", options.limits.for_bytes(size_of(path))):
        return read(path, options)


def stopped(path: Path, fault: LimitError) -> Report:
    """The report of a file that could not be read within its limits."""
    report = Report(str(path))
    report.error(fault.message, fix=fault.hint)
    return report
