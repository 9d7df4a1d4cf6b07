"""`nsw query`: questions in SQL over the tables of campaigns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

from nsw.api.combined import CombinedTables, meaning_of, schema_rows
from nsw.api.query import query as answer
from nsw.cli.application import command
from nsw.cli.options import ReadingLimits, Root, TableTarget, argument, option
from nsw.cli.output import print_newest, print_on_stderr
from nsw.engine import folder as folders
from nsw.errors import Exit, UsageError
from nsw.present.terminal import TextTable, console, page_output
from nsw.quantities import number
from nsw.recipe.units import show_value
from nsw.tables import TABLES

_COLUMNS = ("column", "type", "unit", "meaning")
_LEAST = ("campaign", "report")  # columns that go where there is no room for values


@command("""nsw query "select gpus, sum(total_ns) / 1e9 as s from gpu_summary group by gpus order by gpus\"""")
def query(
    sql: Annotated[str | None, argument(metavar="SQL", help="A SELECT, in the SQL of DuckDB.")] = None,
    campaigns: Annotated[
        list[str] | None, argument(metavar="CAMPAIGN", help="Campaigns whose tables it sees; the newest if not given.")
    ] = None,
    schema: Annotated[
        bool,
        option("--schema", help="Print the tables of the campaigns, or those named, and their columns; takes no SQL."),
    ] = False,
    root: Root = None,
    *,
    target: TableTarget,
    limits: ReadingLimits,
) -> int:
    """Answer a SELECT over the tables of campaigns; parameters are columns, and so are `campaign` and `pass`."""
    names, tables = [*(campaigns or ())], list[str]()
    if schema:
        names = [*([sql] if sql else []), *names]
        tables = [name for name in names if name in {"campaigns", "runs", *TABLES}]
        names = [name for name in names if name not in tables]
    elif sql is None:
        raise UsageError("nsw query needs a SELECT", hint="`nsw query --schema` lists tables and columns")
    elif not any(map(str.isspace, sql.strip())):
        raise UsageError(
            f"{show_value(sql)} is no SELECT",
            hint="the SELECT comes first, then campaigns: `nsw query 'SELECT ...' CAMPAIGN`",
        )
    parent = folders.root(root)
    found = [folders.find_tables(parent, name) for name in names] or [folders.find(parent, None)]
    if not names:
        print_newest(found[0])
    for folder in found:
        folder.limits = limits
    if schema:
        columns, rows = ["table", *_COLUMNS], schema_rows(CombinedTables(found))
        rows = [row for row in rows if not tables or row["table"] in tables]
        if not rows:
            raise UsageError(f"{found[0].id} has no table {tables[0]}", hint="`nsw query --schema` lists those it has")
    else:
        columns, rows = answer(sql or "", found, limits)
    target.put_data(
        rows,
        columns,
        data=lambda: {"campaigns": [folder.id for folder in found], "columns": columns, "rows": rows},
        show=lambda: _show_schema(rows) if schema else _show_rows(columns, rows),
    )
    if re.search(r"\bfigures\b", sql or ""):
        _print_note_on_figures(sql or "", CombinedTables(found).is_profiled, is_table=target.format == "table")
    return Exit.GOOD


def _print_note_on_figures(sql: str, is_profiled: Mapping[str, bool], *, is_table: bool) -> None:
    """Say that a profiler slowed some of the runs, where the query does not part them; what a row is, to a reader."""
    bare = [name for name in is_profiled if not is_profiled[name]]
    slowed = [name for name in is_profiled if is_profiled[name]]
    if bare and slowed and not re.search(r"\b(pass|run)\b", sql):
        print_on_stderr(
            f"warning: figures: runs that a profiler slowed are among these (pass {', '.join(slowed)});"
            f" `where pass = '{bare[0]}'` has those without"
        )
    if is_table:
        print_on_stderr("figures: a row a run; `nsw summarize --table figures` has a row a case")


def _show_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """The rows in their order, with the columns that fit: paths and what has no value go first."""
    if not rows:
        print_on_stderr("no rows")
        return
    by_column = {column: [row[column] for row in rows] for column in columns}
    numbers = {c for c, values in by_column.items() if all(isinstance(v, int | float | None) for v in values)}
    texts = {c: max(len(str(v)) for v in values) for c, values in by_column.items() if values and c not in numbers}
    cells = ([number(v) if isinstance(v, float) else v for v in row.values()] for row in rows)
    heads = [f"{c}>" if c in numbers else c for c in columns]
    least = [c for c in columns if c in _LEAST or all(v in (None, "") for v in by_column[c])]
    wide = max((c for c in texts if c not in least), key=lambda c: texts[c], default=None)
    console().print(TextTable(None, heads, cells, wide=wide, droppable=least, elsewhere="--format csv"))


def _show_schema(rows: Sequence[Mapping[str, Any]]) -> None:
    out = console()
    with page_output(out):
        for name, columns in groupby(rows, key=lambda row: row["table"]):
            cells = ([row[c] for c in _COLUMNS] for row in columns)
            out.print(TextTable(f"{name}: {meaning_of(name)}", _COLUMNS, cells, wide="meaning"))
