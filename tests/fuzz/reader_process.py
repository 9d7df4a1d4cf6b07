"""A process that reads reports within bounds: `python reader_process.py BYTES`, jobs on stdin, answers on stdout.

What a test of damaged reports must survive is here and not in pytest's own process: a crash of a native library, an
allocation beyond BYTES (of address space, above what the loaded libraries take), a reader that never ends.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
from pathlib import Path

import adbc_driver_sqlite  # noqa: F401  loaded before the limit: libraries are no part of what a report costs
import numpy as np  # noqa: F401
import pandas as pd  # noqa: F401
import pyarrow.csv
import pyarrow.parquet  # noqa: F401

from nsw.readers import Options, read
from nsw.readers.ncu import binary_reader as ncu_binary
from nsw.readers.ncu import binary_reader as ncu_tool
from nsw.readers.nsys.export import binary as nsys_binary
from nsw.tables import TABLES, full_rows

_MOST_ROWS = 20_000  # handed back


def main() -> None:
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    # NVIDIA's own readers stay out of it: they crash on damaged files, which is tested where they are run
    nsys_binary.find_nsys = ncu_tool.find_ncu = ncu_binary.find_ncu = list
    ncu_binary.ncu_report_extract_command = lambda _: None
    limit = _status("VmSize") + int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        try:
            path, tables = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(Path(path), tables), answers)
        answers.flush()


def _answer(path: Path, tables: frozenset[str] | None) -> dict:
    before = _forget_peak()
    try:
        report = read(path, Options(tables))
        peak = _status("VmHWM") - before
        found = {}
        for name, data in report.tables.items():
            given = {c for r in data for c in r} if isinstance(data, list) else set(data.column_names)
            assert given <= set(TABLES[name].column_names), f"{name}: {given - set(TABLES[name].column_names)}"
            found[name] = []
            for number, row in enumerate(full_rows(name, data)):
                if number < _MOST_ROWS:
                    json.dumps(row, allow_nan=False)
                    found[name].append(row)
    except BaseException as fault:  # noqa: BLE001  that is what is looked for
        return {"fault": f"{type(fault).__name__}: {fault}"}
    problems = [(p.severity, p.message, p.line) for p in report.problems]
    return {"fault": None, "format": report.format, "problems": problems, "tables": found, "peak": peak}


def _status(name: str) -> int:
    line = next(ln for ln in Path("/proc/self/status").read_text().splitlines() if ln.startswith(name + ":"))
    return int(line.split()[1]) * 1024


def _forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


if __name__ == "__main__":
    main()
