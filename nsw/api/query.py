"""Questions in SQL over the tables of campaigns, answered by DuckDB, which sees these tables and nothing else.

The query may be anybody's, and so may the names in the tables: no file, no network, no extension and no setting can be
reached, and DuckDB works in a process with limits of memory and time (nsw/apart.py).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from nsw.apart import Limits, run_isolated
from nsw.api.combined import CombinedTables, known_tables
from nsw.errors import Diagnostic, InputError, LimitError, Mark, NswError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.engine.folder import CampaignFolder

__all__ = ["query"]

_THREADS: Final = 2
_LIBRARIES: Final = 2 << 30  # bytes that libraries and stacks of threads reserve beside the query's own
_LOCKED: Final = (  # the last ones forbid to change the others
    ("temp_directory", ""), ("python_enable_replacements", False), ("autoinstall_known_extensions", False),
    ("autoload_known_extensions", False), ("enable_progress_bar", False), ("errors_as_json", True),
    ("enable_external_access", False), ("lock_configuration", True),
)  # fmt: skip
_HINT: Final = "narrow it with `where` or `limit`, or allow more: --max-memory 32G --max-time 10m"
_LISTS: Final = "`nsw query --schema` lists tables and columns"
# tables of answers, and what runs have in their place
_ANSWER_TABLES: Final = {
    name: f"{name} is a table of the answer (`nsw summarize --table {name}`); a query has {rows}"
    for name, rows in {
        "kernels": "`launches` and `metrics`", "hotspots": "`gpu_summary`", "api": "`api_summary`",
        "copies": "`gpu_summary`",
    }.items()
} | {"case_id": "a query has `run`, which begins with its case, and a column for each parameter"}  # fmt: skip
_MISSING: Final = {"COLUMN_NOT_FOUND", "MISSING_ENTRY"}


def query(sql: str, folders: Sequence[CampaignFolder], limits: Limits) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns and the rows that a SELECT gives.

    Args:
        sql: The query.
        folders: The campaigns whose tables it sees.
        limits: The most memory in bytes and time in seconds that it may take.

    Raises:
        NswError: DuckDB is not installed.
        InputError: The query is wrong; the diagnostic has line and column.
        LimitError: It takes more than the limits.
        CampaignError: The file of a table is damaged.
    """
    size = CombinedTables(folders).size
    chosen = limits.for_bytes(size)
    process_limits = replace(limits, memory=chosen.memory + _LIBRARIES)
    arguments = sql, folders, chosen.memory, chosen.seconds
    try:
        return run_isolated(_run_query, *arguments, subject="the query", size=size, limits=process_limits)
    except LimitError as fault:
        fault.hint = _HINT
        raise


def _run_query(
    sql: str, folders: Sequence[CampaignFolder], memory: int, seconds: float
) -> tuple[list[str], list[dict[str, Any]]]:
    """The columns and rows of the answer."""
    from threading import Timer

    try:
        duckdb: Any = import_module("duckdb")
    except ImportError:
        raise NswError("nsw query needs DuckDB, which is not installed", hint="pip install 'nsw[sql]'") from None
    connection = duckdb.connect(config={"memory_limit": f"{memory}B", "threads": _THREADS})
    tables, columns = CombinedTables(folders), list[str]()
    for name in known_tables():
        if re.search(rf"\b{name}\b", sql, re.IGNORECASE):  # the others would only take time
            connection.register(name, table := tables.table(name))
            columns += table.column_names
    for option, value in _LOCKED:
        connection.execute(f"SET {option}={value!r}")
    timer = Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        statements = connection.extract_statements(sql)
        if [statement.type.name for statement in statements] != ["SELECT"]:
            raise UsageError("nsw query takes one SELECT: the tables of campaigns cannot be changed", hint=_LISTS)
        result = connection.execute(statements[0])
        titles = _number_duplicates([title for title, *_ in result.description])
        return titles, [dict(zip(titles, map(_as_json_value, row), strict=True)) for row in result.fetchall()]
    except (duckdb.InterruptException, RuntimeError) as fault:  # which of the two depends on where it is interrupted
        if "interrupt" not in str(fault).lower():
            raise
        raise LimitError(f"the query takes more than {seconds:g} s") from None
    except duckdb.OutOfMemoryException:
        raise LimitError(f"the query takes more than {memory >> 20:,} MiB") from None
    except duckdb.Error as fault:
        raise _sql_error(sql, str(fault), columns) from None
    finally:
        timer.cancel()


def _number_duplicates(titles: Sequence[str]) -> list[str]:
    """The columns; all but the first of those with the same name are numbered: a, a_1."""
    names: list[str] = []
    for title in titles:
        number, name = 0, title
        while name in names:
            number += 1
            name = f"{title}_{number}"
        names.append(name)
    return names


def _as_json_value(value: Any) -> Any:
    """Convert a value of DuckDB to a JSON value; NaN and infinity become null."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_as_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _as_json_value(item) for key, item in value.items()}
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value if isinstance(value, str | int | None) else str(value)


def _sql_error(sql: str, text: str, columns: Sequence[str]) -> InputError:
    """DuckDB's error at its place in the query, with the name that was probably meant."""
    start = text.find("{")
    details: dict[str, Any] = json.loads(text[start:]) if start >= 0 else {"exception_message": text}
    message, *more = details["exception_message"].splitlines()
    name, hint = details.get("name", ""), None
    if details.get("error_subtype") in _MISSING:
        known = [*columns, *details.get("candidates", "").split(",")]
        known = known_tables() if details.get("type") == "Table" else known
        hint = _ANSWER_TABLES.get(name.lower()) or did_you_mean(name, known) or _LISTS
    elif more and not more[0].startswith("\tCandidate"):
        hint = more[0]
    if "disabled by configuration" in message or "disabled through configuration" in message:
        message, hint = "a query sees the tables of campaigns, and no files, network or settings", _LISTS
    if "position" not in details:
        return InputError([Diagnostic(message, hint=hint)])
    before = sql.encode()[: int(details["position"])].decode(errors="ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    mark = Mark("SQL", line, column, line, column + max(1, len(name)))
    return InputError([Diagnostic(message, mark, sql.split("\n")[line - 1], hint)])
