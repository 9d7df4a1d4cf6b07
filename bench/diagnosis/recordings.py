"""Recordings as small files: an nsys export as its columns, differences instead of times, packed; and back into SQLite.

A timeline is `recordings/ID.timeline.xz`: JSON of the tables that the reduced export has, column by column; `end` is
the time since `start`, whole numbers are differences from the row before. Counters are in
`recordings/LETTER.counters.xz`, as JSON: the raw pages of the cases whose ids begin with that letter, much alike.
"""

from __future__ import annotations

import functools
import json
import lzma
import re
import sqlite3
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "recordings"
_MACHINE = {"Hostname": "node"}  # of the environment: what tells whose machine it was
_KNOWN = {"NvDriverVersion", "Hostname", "OsDescription", "CpuDescription", "CudaDriverVersion"}
_SYSTEM_CALLS = "OSRT_API"
_OF_ITSELF = {"DIAGNOSTIC_EVENT", "META_DATA_EXPORT", "EXPORT_META_DATA"}
_PATH = re.compile(r"(?:/[\w.-]+){2,}|[\w-]+\.(?:nsys-rep|sqlite)\b")


def columns_of(export: Path, shortest_call_ns: int = 0) -> dict[str, Any]:
    """The tables of a reduced export: names and types of columns, and their values.

    Args:
        export: A SQLite file.
        shortest_call_ns: System calls that took less are left out.
    """
    database = sqlite3.connect(export)
    tables: dict[str, Any] = {}
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        info = database.execute(f'PRAGMA table_info("{name}")').fetchall()
        header = [[row[1], row[2], row[5]] for row in info]
        condition = (
            f' WHERE "end" - "start" >= {shortest_call_ns}' if name == _SYSTEM_CALLS and shortest_call_ns else ""
        )
        rows = database.execute(f'SELECT * FROM "{name}"{condition}').fetchall()
        if name == "TARGET_INFO_SYSTEM_ENV":
            at = [row[0] for row in header].index("name")
            rows = [tuple(_MACHINE.get(row[at], cell) if index != at else cell for index, cell in enumerate(row))
                    for row in rows if row[at] in _KNOWN]  # fmt: skip
        tables[name] = {"columns": header, "values": [list(column) for column in zip(*rows, strict=True)]}
    _without_unused_texts(tables)
    without_paths(tables)
    return tables


def without_paths(tables: dict[str, Any]) -> None:
    """Take out the paths of what nsys says of itself and of the export, and what it says twice."""
    for name in _OF_ITSELF & set(tables):
        rows = [
            tuple(_PATH.sub("/a/path", cell) if isinstance(cell, str) else cell for cell in row)
            for row in zip(*tables[name]["values"], strict=True)
        ]
        tables[name]["values"] = [list(column) for column in zip(*dict.fromkeys(rows), strict=True)]


def cut(tables: dict[str, Any], share: float, first: float = 0.0) -> dict[str, Any]:
    """The tables without what begins after a share of the kernels, or before the share `first`."""
    kernels = tables.get("CUPTI_ACTIVITY_KIND_KERNEL")
    if (share >= 1 and not first) or not kernels or not kernels["values"]:
        return tables
    starts = kernels["values"][[column[0] for column in kernels["columns"]].index("start")]
    last = sorted(starts)[min(int(share * len(starts)), len(starts) - 1)]
    begin = sorted(starts)[int(first * len(starts))] if first else 0
    result = {}
    for name, table in tables.items():
        names = [column[0] for column in table["columns"]]
        rows = list(zip(*table["values"], strict=True))
        if {"start", "end"} <= set(names):
            at = names.index("start")
            rows = [row for row in rows if row[at] is None or begin <= row[at] <= last]
        result[name] = {"columns": table["columns"], "values": [list(column) for column in zip(*rows, strict=True)]}
    _without_unused_texts(result)
    return result


def _without_unused_texts(tables: dict[str, Any]) -> None:
    named = {"demangledName", "shortName", "mangledName", "nameId", "textId", "srcFile"}
    used = {value for table in tables.values()
            for column, values in zip(table["columns"], table["values"], strict=False)
            if column[0] in named for value in values}  # fmt: skip
    if "StringIds" in tables and (texts := tables["StringIds"])["values"]:
        at = [column[0] for column in texts["columns"]].index("id")
        rows = [row for row in zip(*texts["values"], strict=True) if row[at] in used]
        texts["values"] = [list(column) for column in zip(*rows, strict=True)]


def packed(tables: dict[str, Any]) -> bytes:
    """The tables as bytes."""
    small = {}
    for name, table in tables.items():
        names = [column[0] for column in table["columns"]]
        values = [list(column) for column in table["values"]]
        if values and "end" in names and "start" in names:
            starts, ends = values[names.index("start")], values[names.index("end")]
            if all(isinstance(value, int) for value in (*starts, *ends)):
                values[names.index("end")] = [end - start for start, end in zip(starts, ends, strict=True)]
        small[name] = {"columns": table["columns"], "values": [_differences(column) for column in values]}
    text = json.dumps(small, separators=(",", ":"), ensure_ascii=False)
    return lzma.compress(text.encode(errors="surrogatepass"), preset=9 | lzma.PRESET_EXTREME)


def _differences(column: list[Any]) -> Any:
    if len(column) < 2 or not all(isinstance(value, int) for value in column):
        return (
            column if len(set(map(str, column))) > 1 or len(column) < 2 else {"equal": column[0], "count": len(column)}
        )
    if len(set(column)) == 1:
        return {"equal": column[0], "count": len(column)}
    return {"first": column[0], "steps": [after - before for before, after in pairwise(column)]}


def _values(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if "equal" in column:
        return [column["equal"]] * column["count"]
    return list(accumulate(column["steps"], initial=column["first"]))


def tables_of(recording: Path) -> dict[str, Any]:
    """The tables of a packed timeline."""
    tables = json.loads(lzma.decompress(recording.read_bytes()))
    for table in tables.values():
        names = [column[0] for column in table["columns"]]
        table["values"] = values = [_values(column) for column in table["values"]]
        if values and "end" in names and "start" in names:
            starts, ends = values[names.index("start")], values[names.index("end")]
            if all(isinstance(value, int) for value in (*starts, *ends)):
                values[names.index("end")] = [start + length for start, length in zip(starts, ends, strict=True)]
    return tables  # type: ignore[no-any-return]


def write_database(tables: dict[str, Any], path: Path) -> None:
    """Make the SQLite export of tables."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN")
    for name, table in tables.items():
        declared = ", ".join(
            f'"{column}" {kind}' + " PRIMARY KEY" * bool(key) for column, kind, key in table["columns"]
        )
        database.execute(f'CREATE TABLE "{name}" ({declared})')
        if table["values"]:
            marks = ", ".join("?" * len(table["columns"]))
            database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', zip(*table["values"], strict=True))
    database.execute("COMMIT")
    database.close()


def unpack(case: str, folder: Path, recordings: Path = FOLDER) -> dict[str, Path]:
    """Write the reports of a case, as nsw reads them: `timeline` and `counters`, of those that it has.

    The source page, which a few have, lies beside them.
    """
    reports = {}
    if (timeline := recordings / f"{case}.timeline.xz").exists():
        reports["timeline"] = folder / f"{case}.sqlite"
        write_database(tables_of(timeline), reports["timeline"])
    if (source := recordings / f"{case}.source.xz").exists():
        (folder / f"{case}.source.csv").write_bytes(lzma.decompress(source.read_bytes()))
    if (counters := counters_by_case(case[0], recordings).get(case)) is not None:
        reports["counters"] = folder / f"{case}.raw.csv"
        reports["counters"].write_text(counters)
    return reports


@functools.cache
def counters_by_case(letter: str, recordings: Path = FOLDER) -> dict[str, str]:
    """The raw pages of ncu by case, of cases whose ids begin with a letter."""
    file = recordings / f"{letter}.counters.xz"
    return json.loads(lzma.decompress(file.read_bytes())) if file.exists() else {}  # type: ignore[no-any-return]


def scrubbed_counters(text: str) -> str:
    """The raw page of ncu without process and host."""
    return re.sub(r'^("\d+"),"\d+","[^"]*","[^"]*",', r'\1,"1","program","node",', text, flags=re.MULTILINE)


def main() -> None:
    """Write the reports of cases for `nsw read`: python recordings.py FOLDER [ID...]; without ids, the open ones."""
    folder, *cases = sys.argv[1:]
    if not cases:
        truth = yaml.safe_load((Path(__file__).parent / "truth.yaml").read_text())["cases"]
        cases = [case["id"] for case in truth if case["part"] == "open"]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for case in cases:
        print(case, *unpack(case, Path(folder)).values())


if __name__ == "__main__":
    main()
