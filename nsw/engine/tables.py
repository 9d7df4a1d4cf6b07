"""The tables of a campaign on disk: tables/NAME.parquet, one file a table, each row with its run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from nsw.apart import run_isolated
from nsw.errors import CampaignError
from nsw.safe_files import make_folders, open_plain, replacing_file
from nsw.tables import TABLES, parquet_tables, to_arrow
from nsw.tables.parquet_tables import StoredTableError, read_rows_lazily, read_stored_rows, read_table_unchecked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from nsw.engine.folder import CampaignFolder


EARLIER_FIGURES: Final = "earlier_figures"  # the only table that no report is read into
INVALID_FIGURES: Final = "invalid_figures"  # of runs that a check of the recipe made invalid: in no statistics

_T = TypeVar("_T")


def table_files(folder: CampaignFolder) -> list[Path]:
    """The files of the campaign's tables; others there are of another version of nsw, or a user's own."""
    return [folder.tables / name for name in folder.names(folder.tables) if name.removesuffix(".parquet") in TABLES]


def row_count(path: Path) -> int | None:
    """How many rows a table's file has; None when it is damaged."""
    import pyarrow as pa

    try:
        with os.fdopen(open_plain(path), "rb") as file:
            counted: int = read_table_unchecked(file).num_rows
            return counted
    except (pa.ArrowException, OSError):
        return None


def replace_rows(
    folder: CampaignFolder, tables: Mapping[str, list[dict[str, Any]]], runs: Sequence[str], note: str | None
) -> None:
    """Replace all rows of some runs in tables; each file is rewritten as a whole.

    Args:
        folder: The campaign.
        tables: The new rows by table, each with its `run`.
        runs: The ids of the runs whose old rows are removed.
        note: The campaign's note, stored in each file's metadata; None: there is none.

    Raises:
        CampaignError: A file is damaged.
    """
    for table, rows in tables.items():
        path = folder.tables / f"{table}.parquet"
        if rows or path.exists():
            _replace_table_rows(path, table, rows, runs, note)


def _replace_table_rows(
    path: Path, table: str, rows: list[dict[str, Any]], runs: Sequence[str], note: str | None
) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    new = to_arrow(table, rows)
    if os.path.lexists(path):
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                old = read_table_unchecked(file)
            old = old.filter(pc.invert(pc.is_in(old["run"], pa.array(runs, pa.string()))))
            for field in new.schema:  # a column that the nsw which wrote the file did not have
                if field.name not in old.column_names:
                    old = old.append_column(field, pa.nulls(len(old), field.type))
            new = pa.concat_tables([old.select(new.column_names).cast(new.schema), new])
        except (pa.ArrowException, KeyError, OSError) as fault:
            raise CampaignError(
                f"{path} is damaged, and nothing can be added to it: {str(fault).splitlines()[0]}",
                hint="move it away: the reports that it was made of are in reports/",
            ) from None
    if note:
        new = new.replace_schema_metadata({**(new.schema.metadata or {}), b"nsw_note": note.encode()})
    make_folders(path.parent)  # a person may have removed it, to have the reports read again
    with replacing_file(path) as file:
        pq.write_table(new, file, compression="zstd")


def put_rows(folder: CampaignFolder, table: str, run: str, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of one run in a table.

    Args:
        folder: The campaign.
        table: The table's name.
        run: The run's id, which each row gets as its `run`.
        rows: The new rows.

    Raises:
        CampaignError: The table's file is damaged.
    """
    replace_rows(folder, {table: [row | {"run": run} for row in rows]}, [run], None)


def load_rows(folder: CampaignFolder, table: str) -> list[dict[str, Any]]:
    """All rows of one of the campaign's tables; [] when there is none.

    Raises:
        CampaignError: Its file is damaged.
        LimitError: Another user made it, and it takes more than `folder.limits`.
    """
    return _load_table(folder, table, read_stored_rows) or []


def load_rows_lazily(folder: CampaignFolder, table: str) -> Sequence[dict[str, Any]]:
    """The same as `load_rows`; the rows of a large table of one's own are made when they are looked at."""
    # others' rows are made where memory is limited
    return _load_table(folder, table, read_rows_lazily if _has_own_tables(folder) else read_stored_rows) or []


def load_table(folder: CampaignFolder, table: str) -> pa.Table | None:
    """Load a table of the campaign as an Arrow table with the rows and columns of its file; None when there is none.

    Raises:
        CampaignError, LimitError: As `load_rows`.
    """
    return _load_table(folder, table, parquet_tables.read_stored_table)


def load_tables(folder: CampaignFolder, names: Iterable[str]) -> dict[str, pa.Table]:
    """Those of these tables that the campaign has, each as `load_table` loads it."""
    return {name: table for name in names if (table := load_table(folder, name)) is not None}


def _load_table(folder: CampaignFolder, table: str, load: Callable[[BinaryIO, str], _T]) -> _T | None:
    path = folder.tables / f"{table}.parquet"
    if path.name not in folder.names(folder.tables):
        return None
    if _has_own_tables(folder):
        return _read_table_file(folder, path, load)
    limits = replace(folder.limits, command=f"nsw summarize {folder.id}")
    size = path.lstat().st_size
    rows: _T = run_isolated(_read_table_file, folder, path, load, subject=f"reading {path}", size=size, limits=limits)
    return rows


def _has_own_tables(folder: CampaignFolder) -> bool:
    """Whether this user's nsw wrote its tables, which need no process of their own; of a copy this process did."""
    return folder.trusted or folder.is_copy


def _read_table_file(folder: CampaignFolder, path: Path, load: Callable[[BinaryIO, str], _T]) -> _T:
    import pyarrow as pa

    try:
        with folder.open(path) as file:
            return load(file, path.stem)
    except pa.ArrowMemoryError:  # not the file's fault
        raise
    except (pa.ArrowException, OSError, StoredTableError) as fault:
        raise CampaignError(
            f"{path} is damaged: {str(fault).splitlines()[0]}", hint="the reports that it was made of are in reports/"
        ) from None
