"""The tables of several campaigns, each as one: `campaign`, then `run` and its parameters, the rest; also as SQLite."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsw.campaign.answers import results
from nsw.campaign.selection import Selection
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.tables import load_table, table_files
from nsw.errors import NswError
from nsw.present.emit import columns_of, of_one_type
from nsw.present.status_view import RUN_COLUMNS, flat_run
from nsw.recipe.matrix import MatrixFault, expand_matrix
from nsw.recipe.passes import BaselinePass
from nsw.tables import TABLES, to_arrow
from nsw.wording import escape_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger_rows import RunRow

__all__ = ["UNITS_OF_RUNS", "CombinedTables", "known_tables", "meaning_of", "schema_rows", "write_sqlite"]


_CAMPAIGN: Final = "campaign"
_CAMPAIGNS: Final = "campaigns"
_RUNS: Final = "runs"
_MEANINGS: Final = {  # of the tables beside those of the reports
    _CAMPAIGNS: "one row a campaign, with its site and what must be known with its numbers",
    _RUNS: "one row a run, with its state, times and parameters",
}
UNITS_OF_RUNS: Final = {"seconds": "s", "started": "s", "ended": "s"}  # the last two since 1970


class _Campaign(NamedTuple):
    """What the tables need of a campaign; `jobs` are the job ids of its runs, `params` those of a run or its case.

    Of each of its `passes` it knows whether a profiler runs in it.
    """

    id: str
    site: str
    note: str | None
    runs: list[RunRow]
    jobs: Mapping[str, str]
    params: Mapping[str, Mapping[str, Any]]
    passes: Mapping[str, bool]

    def params_of(self, run: str) -> Mapping[str, Any]:
        """The parameters of a run by its name, `case.pass.r1`."""
        return self.params.get(run) or self.params.get(run.rsplit(".", 2)[0], {})


class CombinedTables:
    """The tables of some campaigns, made when they are asked for."""

    def __init__(self, folders: Sequence[CampaignFolder], selection: Selection = Selection()) -> None:  # noqa: B008
        """Take these campaigns in this order, and of them the cases of these runs."""
        self.folders = folders
        self._selection = selection

    @property
    def names(self) -> list[str]:
        """The tables that a campaign has, `campaigns` and `runs` first."""
        stored = {path.stem for folder in self.folders for path in table_files(folder)}
        return [*_MEANINGS, *(name for name in TABLES if name in stored)]

    @property
    def size(self) -> int:
        """The length of the files of all tables, in bytes."""
        return sum(path.lstat().st_size for folder in self.folders for path in table_files(folder))

    def table(self, name: str) -> pa.Table:
        """A row for each row of the table of each campaign; the fields' metadata has unit and meaning.

        A parameter whose name is that of another column gets the prefix `param_`. Of a parameter with numbers and texts
        all values are texts.

        Args:
            name: `campaigns`, `runs`, or a table of nsw.tables.schema; one that no campaign has is empty.

        Raises:
            CampaignError: The file of a table is damaged.
            LimitError: Another user made it, and reading it takes too much.
        """
        if name == _CAMPAIGNS:
            return _table_from_rows([{_CAMPAIGN: campaign.id, "site": campaign.site, "note": campaign.note}
                             for campaign in self._campaigns], (_CAMPAIGN, "site", "note"))  # fmt: skip
        if name == _RUNS:
            rows = [{_CAMPAIGN: c.id, **flat_run(run, c.jobs)} for c in self._campaigns for run in c.runs]
            return _table_from_rows(rows, (_CAMPAIGN, *RUN_COLUMNS, *columns_of(rows)))
        return self._stored_table(name)

    @property
    def is_profiled(self) -> dict[str, bool]:
        """Of each pass that has figures whether a profiler runs in it."""
        passes = {name: is_profiled for campaign in self._campaigns for name, is_profiled in campaign.passes.items()}
        return {name: passes[name] for name in self.table("figures")["pass"].unique().to_pylist() if name in passes}

    @cached_property
    def _campaigns(self) -> list[_Campaign]:
        campaigns = []
        for folder in self.folders:
            if not folder.ledger.exists():  # tables alone: the lockfile has the cases by which runs are named
                campaigns.append(_Campaign(folder.id, "", None, [], {}, *_locked_cases_and_passes(folder)))
                continue
            with results(folder, self._selection) as r:
                params = {run.id: run.params for run in r.runs}
                passes = {run.pass_name: run.tool is not None for run in r.runs}
                campaigns.append(_Campaign(folder.id, r.site, r.note, r.runs, r.jobs, params, passes))
        return campaigns

    def _stored_table(self, name: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = [to_arrow(name, [] if stored is None else stored)
                 for folder in self.folders for stored in [load_table(folder, name)]]  # fmt: skip
        if self._selection:
            parts = [part.filter(pc.is_in(part["run"], pa.array([run.id for run in campaign.runs], pa.string())))
                     for part, campaign in zip(parts, self._campaigns, strict=True)]  # fmt: skip
        table = pa.concat_tables([to_arrow(name, []), *parts])
        run_columns = [part["run"].combine_chunks().dictionary_encode() for part in parts]
        ids = [pa.repeat(campaign.id, len(part)) for campaign, part in zip(self._campaigns, parts, strict=True)]
        passes = [pa.array([_pass_of(run) for run in column.dictionary.to_pylist()], pa.string()).take(column.indices)
                  for column in run_columns]  # fmt: skip
        meaning = "the pass of the run: baseline has no profiler, others slow the program"
        added = [
            (_schema_field(_CAMPAIGN, pa.string()), ids),
            (_schema_field("pass", pa.string(), "", meaning), passes),
        ]
        for parameter, title in self._parameter_columns(table.column_names).items():
            # a value for each run of each campaign, then for each row the value of its run
            values = [[campaign.params_of(run).get(parameter) for run in column.dictionary.to_pylist()]
                      for campaign, column in zip(self._campaigns, run_columns, strict=True)]  # fmt: skip
            kind = _as_arrow_array([value for part in values for value in part]).type
            arrays = [pa.array(_as_texts(part) if kind == pa.string() else part, kind).take(column.indices)
                      for part, column in zip(values, run_columns, strict=True)]  # fmt: skip
            added.append((_schema_field(title, kind, meaning="a parameter of the recipe"), arrays))
        at = table.column_names.index("run")
        for index, (field, arrays) in zip([0, *range(at + 2, at + 1 + len(added))], added, strict=True):
            table = table.add_column(index, field, pa.chunked_array(arrays, field.type))
        return table

    def _parameter_columns(self, columns: Sequence[str]) -> dict[str, str]:
        """The column of each parameter; SQL takes `Name` and `name` for the same."""
        used = {_CAMPAIGN, "pass", *(column.lower() for column in columns)}
        titles: dict[str, str] = {}
        for parameter in dict.fromkeys(key for c in self._campaigns for params in c.params.values() for key in params):
            title = parameter
            while title.lower() in used:
                title = f"param_{title}"
            used.add(title.lower())
            titles[parameter] = title
        return titles


def _pass_of(run: str | None) -> str | None:
    """The pass of a run by its name, `case.pass.r1`."""
    return run.rsplit(".", 2)[-2] if run is not None and run.count(".") > 1 else None


def _locked_cases_and_passes(folder: CampaignFolder) -> tuple[dict[str, Mapping[str, Any]], dict[str, bool]]:
    """The parameters of each case in the lockfile, and its passes; none where it is missing or damaged."""
    try:
        recipe = locked_recipe(folder)
        cases = expand_matrix(recipe.matrix).cases
    except (OSError, NswError, MatrixFault):
        return {}, {}
    return {case.id: case.params for case in cases}, {
        pass_.name: not isinstance(pass_, BaselinePass) for pass_ in recipe.passes
    }


def known_tables() -> list[str]:
    """The tables that a campaign may have."""
    return [*_MEANINGS, *TABLES]


def meaning_of(name: str) -> str:
    """What a table has."""
    return _MEANINGS.get(name) or TABLES[name].meaning


def schema_rows(tables: CombinedTables) -> list[dict[str, Any]]:
    """A row for each column of each table that the campaigns have: table, column, type, unit, meaning."""
    return [
        {"table": name, "column": field.name, "type": str(field.type).replace("double", "float64"),
         "unit": field.metadata[b"unit"].decode() or None, "meaning": field.metadata[b"meaning"].decode() or None}
        for name in tables.names for field in tables.table(name).schema
    ]  # fmt: skip


def _schema_field(name: str, kind: pa.DataType, unit: str = "", meaning: str = "") -> pa.Field:
    import pyarrow as pa

    return pa.field(name, kind, metadata={"unit": unit, "meaning": meaning})


def _table_from_rows(rows: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> pa.Table:
    """The rows as a table with these columns."""
    import pyarrow as pa

    columns = {title: _as_arrow_array([row.get(title) for row in rows]) for title in titles}
    fields = [_schema_field(title, array.type, UNITS_OF_RUNS.get(title, "")) for title, array in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def _as_arrow_array(values: list[Any]) -> pa.Array:
    """The values as an array: whole numbers, numbers or texts; where all are absent, texts."""
    import pyarrow as pa

    try:
        array = pa.array(of_one_type(values))
    except pa.ArrowException:  # numbers of more than 64 bits, and lists
        return pa.array(_as_texts(values), pa.string())
    return array.cast(pa.string()) if pa.types.is_null(array.type) or pa.types.is_nested(array.type) else array


def _as_texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else escape_surrogates(str(value)) for value in values]


# --- an SQLite database, which most programs and languages can read -------------------------------------------


def write_sqlite(tables: CombinedTables, path: Path) -> dict[str, int]:
    """Write the tables into a new database, which replaces what has that name, completely or not at all.

    Table `columns` has the type, unit and meaning of each column.

    Args:
        tables: The tables.
        path: The file.

    Returns:
        The number of rows of each table.

    Raises:
        NswError: The file cannot be written.
    """
    import pyarrow as pa
    from adbc_driver_sqlite import dbapi

    written = {}
    try:
        with tempfile.TemporaryDirectory(prefix=".nsw-", dir=path.parent) as folder:
            database = Path(folder, "nsw.sqlite")
            with dbapi.connect(str(database)) as connection, connection.cursor() as cursor:
                for name in tables.names:
                    written[name] = cursor.adbc_ingest(name, tables.table(name), mode="create")
                cursor.adbc_ingest("columns", pa.Table.from_pylist(schema_rows(tables)), mode="create")
                connection.commit()
            database.replace(path)
    except (OSError, dbapi.Error) as fault:
        raise NswError(f"{path} cannot be written: {getattr(fault, 'strerror', None) or fault}") from None
    return written
