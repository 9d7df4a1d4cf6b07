"""Reduce an nsys SQLite export to what nsw's readers read: the same tables, fewer columns and rows, compressed.

nsw copies this one file to a site and runs it there: `python3 reduce_export.py EXPORT.sqlite OUT.sqlite.xz`. It needs
the standard library of Python 3.6 or later and nothing of nsw. The readers make the same rows of its output as of the
export, for every table, the traces and phases included; tests/readers/test_reduce_export.py holds them equal.

Left out: what is above a sample's function in its call chain, the capture's own settings, the environment but for four
entries, names that no kept row uses, and the columns that no table of nsw has.

In the large tables a row has the values of many: of each column what differs from the row before, or from the start,
the lowest byte of all first. That is a third to a half of what rows compress to. A range's own text becomes one of
StringIds, with a number below zero.
"""

# Python 3.6 must run it; what SQL is made of is quoted
# ruff: noqa: B905, PTH100, PTH105, PTH107, PTH110, PTH123, PTH202, S608, UP006, UP035

import os
import shutil
import sqlite3
import sys
from array import array
from itertools import chain
from typing import Any, List, Sequence, Tuple
from urllib.parse import quote

_TIMED = ("start", "end")
_ON_GPU = (*_TIMED, "deviceId", "contextId", "streamId", "correlationId", "globalPid")
# table -> the columns that are read; a name that ends with * stands for all tables that begin so
READ_COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *_ON_GPU, "demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId", "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (*_ON_GPU, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*_ON_GPU, "bytes", "memKind", "graphNodeId"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (*_ON_GPU, "graphId", "graphExecId"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (*_TIMED, "globalTid", "correlationId", "nameId", "returnValue"),
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": ("start",),
    "CUPTI_ACTIVITY_KIND_OPENACC_*": (*_TIMED, "nameId", "srcFile", "lineNo"),
    "NVTX_EVENTS": (*_TIMED, "eventType", "text", "textId", "domainId", "globalTid", "endGlobalTid"),
    "OSRT_API": (*_TIMED, "nameId", "globalTid"),
    "OPENMP_EVENT_KIND_*": (*_TIMED, "nameId"),
    "MPI_P2P_EVENTS": (*_TIMED, "textId", "size"),
    "MPI_COLLECTIVES_EVENTS": (*_TIMED, "textId", "size"),
    "MPI_START_WAIT_EVENTS": (*_TIMED, "textId", "size"),
    "MPI_OTHER_EVENTS": (*_TIMED, "textId", "size"),
    "MPI_RANKS": ("rank",),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": ("start",),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": (*_TIMED, "numberOfPageFaults"),
    "ENUM_CUDA_MEMCPY_OPER": ("id", "label"),
    "ANALYSIS_DETAILS": ("duration",),
    "DIAGNOSTIC_EVENT": ("severity", "text", "globalPid"),
    "META_DATA_EXPORT": ("name", "value"),
    "EXPORT_META_DATA": ("name", "value"),
    "TARGET_INFO_SESSION_START_TIME": ("utcTime",),
    "TARGET_INFO_SYSTEM_ENV": ("name", "value"),
    "TARGET_INFO_CUDA_CONTEXT_INFO": ("processId", "deviceId"),
    "COMPOSITE_EVENTS": ("id", "start", "globalTid"),
    "SAMPLING_CALLCHAINS": ("id", "symbol", "module", "stackDepth"),
    "SCHED_EVENTS": ("start", "isSchedIn", "globalTid"),
    "ThreadNames": ("nameId", "globalTid"),
    "GPU_METRICS": ("timestamp", "rawTimestamp", "typeId", "metricId", "value"),
    "TARGET_INFO_GPU_METRICS": ("typeId", "metricId", "metricName"),
    "TARGET_INFO_CUDA_DEVICE": ("gpuId", "cudaId", "pid"),
    "TARGET_INFO_GPU": (
        "id", "name", "cuDevice", "computeMajor", "computeMinor", "smCount", "clockRate", "totalMemory",
        "memoryBandwidth", "l2CacheSize",
    ),
}  # fmt: skip
# the large tables, if they hold integers alone; the declared type of their columns then
PACKED_TABLES = frozenset((
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS",
    "GPU_METRICS",
))  # fmt: skip
PACKED = "PACKED"
RISING = frozenset(("start", "correlationId", "timestamp", "rawTimestamp"))  # columns of which differences are kept
_NULL = -(2**63)
_ROWS = 1 << 16  # that become one
# the columns with ids of StringIds
_NAMES = frozenset(("demangledName", "shortName", "mangledName", "nameId", "textId", "srcFile", "symbol", "module"))
# the environment's other entries are the user's own affair, and may hold secrets
_ENVIRONMENT = ("NvDriverVersion", "Hostname", "OsDescription", "CpuDescription", "CudaDriverVersion")
_STRINGS = "StringIds"
_TEXT = "text"  # a column of texts in a table of integers
_OWN_TEXT = "rowid - 2147483648"  # their ids: below all others, in order of first sight, as the readers number them


def reduce_export(export: str, out: str) -> Tuple[int, int]:
    """Write the compressed reduction of an export; OUT appears whole or not at all.

    Args:
        export: The SQLite export, which is only read.
        out: What is made: a smaller database of the same tables, compressed with xz, or gzip where its name ends so.

    Returns:
        The bytes of the export and of what was made.

    Raises:
        sqlite3.Error: The export is damaged, or none of nsys.
        OSError: A file cannot be read or written.
    """
    small, packed = out + ".unpacked", out + ".part"
    try:
        _copy_reduced(export, small)
        with open(small, "rb") as plain, _compressing(packed, out) as file:
            shutil.copyfileobj(plain, file, 1 << 20)
        os.replace(packed, out)
    finally:
        for left in (small, packed):
            if os.path.exists(left):
                os.remove(left)
    return os.path.getsize(export), os.path.getsize(out)


def _compressing(packed: str, out: str) -> Any:
    """The file that compresses: xz at its quickest leaves a third less to transfer than gzip, and takes as long."""
    if out.endswith(".gz"):  # a Python that was built without lzma
        import gzip

        return gzip.GzipFile(packed, "wb", 6, mtime=0)
    import lzma

    return lzma.LZMAFile(packed, "wb", preset=0)


def _copy_reduced(export: str, small: str) -> None:
    if os.path.exists(small):
        os.remove(small)
    # texts are copied by SQLite itself: Python never decodes them, so bytes that are no UTF-8 stay as they are
    source = sqlite3.connect("file:" + quote(os.fsencode(os.path.abspath(export))) + "?mode=ro&immutable=1", uri=True)
    try:
        encoding = source.execute("PRAGMA encoding").fetchone()[0]
        target = sqlite3.connect(small)
        try:
            target.execute('PRAGMA encoding = "' + encoding + '"')
            target.execute("CREATE TABLE x (x)")  # the encoding is fixed by the first table
            target.execute("DROP TABLE x")
            target.commit()
        finally:
            target.close()
        tables = _tables_to_copy(source)
    finally:
        source.close()
    if not tables:
        raise sqlite3.DatabaseError("it holds no table of an nsys export")
    # a database that is written: the export is attached to it, read-only
    db = sqlite3.connect("file:" + quote(os.fsencode(os.path.abspath(small))), uri=True, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(
            "ATTACH ? AS full", ("file:" + quote(os.fsencode(os.path.abspath(export))) + "?mode=ro&immutable=1",)
        )
        db.execute("BEGIN")
        db.execute("CREATE TEMP TABLE texts (value UNIQUE)")
        for table, columns in tables:
            _copy_table(db, table, columns)
        _copy_strings(db, tables)
        db.execute("COMMIT")
    finally:
        db.close()


Columns = List[Tuple[str, str, bool]]  # name, type, whether it is the row's number


def _tables_to_copy(source: sqlite3.Connection) -> List[Tuple[str, Columns]]:
    """The tables that are kept, each with the columns that are."""
    tables = []
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"
    for table, sql in source.execute(query).fetchall():
        if not str(sql)[:14].upper().startswith("CREATE TABLE"):
            continue  # a virtual table would run code of the file
        to_read = _columns_to_read(table)
        if not to_read and table != _STRINGS:
            continue
        info = source.execute("PRAGMA table_info(" + _quote_name(table) + ")").fetchall()
        present = {str(row[1]) for row in info}
        keys = sum(bool(row[5]) for row in info)
        columns = [
            (str(name), str(kind), bool(key) and keys == 1 and str(kind).upper() == "INTEGER")
            for _, name, kind, _, _, key in info
            if (name in to_read or table == _STRINGS) and not (name == "shortName" and "demangledName" in present)
        ]
        # of a table that lacks all that is read of it one column: that it has rows is reported
        tables.append((table, columns or [(str(row[1]), str(row[2]), False) for row in info][:1]))
    return tables


def _columns_to_read(table: str) -> Sequence[str]:
    if table in READ_COLUMNS:
        return READ_COLUMNS[table]
    return next(
        (columns for name, columns in READ_COLUMNS.items() if name[-1] == "*" and table.startswith(name[:-1])), ()
    )


def _copy_table(db: sqlite3.Connection, table: str, columns: Columns) -> None:
    names = [name for name, _, _ in columns]
    if table in PACKED_TABLES and _holds_integers(db, table, names):
        _pack_table(db, table, names)
        return
    _create_table(db, table, columns)
    if table == _STRINGS:
        return  # once it is known which of them are used
    # the order of rows counts, and an index would give another
    copy = "INSERT INTO main.{0} SELECT {1} FROM full.{0} NOT INDEXED".format(
        _quote_name(table), ", ".join(map(_quote_name, names))
    )
    if table == "SAMPLING_CALLCHAINS" and "stackDepth" in names:
        db.execute(copy + " WHERE stackDepth = 0")
    elif table == "TARGET_INFO_SYSTEM_ENV" and "name" in names:
        db.execute(copy + " WHERE name IN (" + ", ".join("?" * len(_ENVIRONMENT)) + ")", _ENVIRONMENT)
    else:
        db.execute(copy)


def _holds_integers(db: sqlite3.Connection, table: str, names: Sequence[str]) -> bool:
    """Whether a table holds integers alone, but for texts of rows that name none."""
    tests = ["typeof(" + _quote_name(name) + ") NOT IN ('integer', 'null')" for name in names if name != _TEXT]
    if _TEXT in names:
        if "textId" not in names or not _has_strings(db):
            return False
        tests.append("typeof(text) NOT IN ('text', 'null') OR text IS NOT NULL AND textId IS NOT NULL")
    rows = db.execute("SELECT 1 FROM full." + _quote_name(table) + " WHERE " + " OR ".join(tests) + " LIMIT 1")
    return not rows.fetchone()


def _pack_table(db: sqlite3.Connection, table: str, names: Sequence[str]) -> None:
    expressions = {name: _quote_name(name) for name in names if name != _TEXT}
    if _TEXT in names:
        db.execute(f"INSERT OR IGNORE INTO texts SELECT text FROM full.{table} WHERE text IS NOT NULL")
        expressions["textId"] = f"ifnull(textId, (SELECT {_OWN_TEXT} FROM texts WHERE value = text))"
    names = list(expressions)
    _create_table(db, table, [(name, PACKED, False) for name in names])
    values = ", ".join(f"ifnull({expression}, {_NULL})" for expression in expressions.values())
    rows = db.execute("SELECT " + values + " FROM full." + table + " NOT INDEXED")
    insert = "INSERT INTO main." + table + " VALUES (" + ", ".join("?" * len(names)) + ")"
    for block in iter(lambda: rows.fetchmany(_ROWS), []):
        columns = dict(zip(names, zip(*block)))
        db.execute(insert, [_pack_column(name, values, columns.get("start", ())) for name, values in columns.items()])


def _pack_column(name: str, values: Sequence[int], starts: Sequence[int]) -> bytes:
    """How wide the values, or differences, are; then the lowest byte of each, then the next ones."""
    if name in RISING or (name == "end" and starts):
        bases = starts if name == "end" else chain((0,), values)
        values = [(value - base + 2**63) % 2**64 - 2**63 for value, base in zip(values, bases)]
    low, high = min(values), max(values)
    width = next(width for width in (1, 2, 4, 8) if -(256**width) <= 2 * low and 2 * high < 256**width)
    packed = array({1: "b", 2: "h", 4: "i", 8: "q"}[width], values)
    if sys.byteorder == "big":
        packed.byteswap()
    whole = packed.tobytes()
    return bytes((width,)) + b"".join(whole[at::width] for at in range(width))


def _create_table(db: sqlite3.Connection, table: str, columns: Columns) -> None:
    declared = [_quote_name(name) + " " + _declared_type(kind) + " PRIMARY KEY" * key for name, kind, key in columns]
    db.execute("CREATE TABLE main." + _quote_name(table) + " (" + ", ".join(declared) + ")")


def _declared_type(kind: str) -> str:
    """A declared type, which decides how SQLite keeps values; nothing else of a hostile file's declaration."""
    return kind if all(part.isidentifier() for part in kind.split()) else ""


def _copy_strings(db: sqlite3.Connection, tables: Sequence[Tuple[str, Columns]]) -> None:
    """The texts that a kept row names."""
    if not _has_strings(db):
        return
    uses = [
        "SELECT DISTINCT {0} FROM {1}.{2} WHERE typeof({0}) = 'integer'".format(
            _quote_name(name), "full" if table in PACKED_TABLES else "main", _quote_name(table)
        )
        for table, columns in tables
        for name, _, _ in columns
        if name in _NAMES
    ]
    db.execute("CREATE TEMP TABLE used (id INTEGER PRIMARY KEY)")
    for use in uses:
        db.execute("INSERT OR IGNORE INTO used " + use)
    insert = f"INSERT INTO main.{_STRINGS} (id, value) SELECT "
    db.execute(insert + f"id, value FROM full.{_STRINGS} NOT INDEXED WHERE id IN (SELECT id FROM used)")
    db.execute(insert + _OWN_TEXT + ", value FROM texts")


def _has_strings(db: sqlite3.Connection) -> bool:
    return {"id", "value"} <= {name for _, name, *_ in db.execute(f"PRAGMA full.table_info({_STRINGS})")}


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main(words: Sequence[str]) -> int:
    """Reduce a file as the command line says; the exit status."""
    if len(words) != 2:
        sys.stderr.write("usage: reduce_export.py EXPORT.sqlite OUT.sqlite.xz\n")
        return 2
    try:
        before, after = reduce_export(words[0], words[1])
    except (sqlite3.Error, OSError) as fault:
        sys.stderr.write(f"nsw: {words[0]} cannot be reduced: {fault}\n")
        return 1
    sys.stdout.write(f"{words[1]}: {after} bytes, {_percent_text(after, before)} of the export's {before}\n")
    return 0


def _percent_text(part: int, total: int) -> str:
    return f"{100.0 * part / total:.1f} %" if total else "all"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
