"""Reports read in a process that may die, with what every answer must be."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

RUNAWAY = 60  # s: a guard against what never ends, no measure of speed; a file takes some 5 ms
_MOST = 150  # reports that one process reads: what its caches take is not what the next report costs
MEMORY = 1 << 30  # bytes that a report may cost, of address space


@dataclass
class Answer:
    """What became of one report."""

    format: str | None
    problems: list[tuple[str, str, int | None]]
    tables: dict[str, list[dict[str, Any]]]
    peak: int

    @property
    def errors(self) -> list[str]:
        return [message for severity, message, _ in self.problems if severity == "error"]

    @property
    def count(self) -> int:
        return sum(len(t) for t in self.tables.values())


class BoundedReader:
    """Reads reports in one process as long as it lives, then in another."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0  # by this process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process, self._read = None, 0

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, Path(__file__).with_name("reader_process.py"), str(self._memory)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "ARROW_DEFAULT_MEMORY_POOL": "system",  # Arrow's own reserves a GiB of address space, used or not
            "MALLOC_ARENA_MAX": "2",  # each thread's takes 64 MiB of address space, used or not
        }
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def read(self, path: Path, tables: frozenset[str] | None = None) -> Answer:
        """Read, and hold what must be of every report however damaged; an AssertionError tells what is not."""
        if self._read >= _MOST:
            self._end()
        process = self._process = self._process or self._start()
        self._read += 1
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((str(path), tables), process.stdin)
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], RUNAWAY)
            if not ready:
                raise AssertionError(f"{path} was not read after {RUNAWAY} s")
            found = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            process.wait()
            raise AssertionError(f"reading {path} ended the process: {process.returncode}") from None
        finally:
            if process.poll() is not None or not ready:
                self._end()
        assert found["fault"] is None, f"{path}: {found['fault']}"
        answer = Answer(found["format"], found["problems"], found["tables"], found["peak"])
        assert answer.count or answer.errors, f"{path}: neither rows nor an error"
        assert all(message for _, message, _ in answer.problems)
        # a reader knows its own faults: what `read` had to catch for it is a fault of nsw
        assert not [e for e in answer.errors if e.startswith("damaged or unknown variant")], answer.errors
        return answer
