"""Many reports: several processes, answers in the order of the files.

A report that brings its process down (a fault in a native library) spoils only itself: it is said so, and the
rest goes on in a new pool.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nsw.readers.detect import read
from nsw.readers.model import Options, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor
    from pathlib import Path

FEW = 8  # files that one process reads before others have started
_AHEAD = 4  # files a worker holds beyond the one that is asked for: bounds what waits in memory


def read_many(paths: Sequence[Path], options: Options | None = None, workers: int | None = None) -> Iterator[Report]:
    """Read files one after the other as they are asked for.

    Args:
        paths: The files.
        options: What is asked of the readers.
        workers: How many processes; by default one a core, and none for a few files.
    """
    chosen = options or Options()
    count = workers if workers is not None else (_cores() if len(paths) > FEW else 1)
    if count <= 1:
        for path in paths:
            yield read(path, chosen)
        return
    at = 0
    while at < len(paths):
        for report in _pooled(paths[at:], chosen, count):
            yield report
            at += 1
        if at < len(paths):  # the pool broke over this file, or over one that was read beside it
            yield _alone(paths[at], chosen)
            at += 1


def _pooled(paths: Sequence[Path], options: Options, workers: int) -> Iterator[Report]:
    """Reports from a pool of processes until one of them dies."""
    from concurrent.futures.process import BrokenProcessPool

    waiting: list[Future[Report]] = []
    rest = iter(paths)
    with _pool(workers) as pool:
        try:
            for path in rest:
                waiting.append(pool.submit(read, path, options))
                if len(waiting) > workers * _AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _alone(path: Path, options: Options) -> Report:
    """Read a file in a process of its own, which may die of it."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            return pool.submit(read, path, options).result()
        except BrokenProcessPool:
            report = Report(str(path))
            report.error(
                "reading this file brought the reading process down",
                fix="report it with the file: it is a fault of nsw",
            )
            return report


def _pool(workers: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # fresh interpreters: a forked copy of one with threads (Arrow's) may hang
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _cores() -> int:
    return len(os.sched_getaffinity(0))
