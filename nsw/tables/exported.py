"""Tables that nsw wrote and that lie apart from their campaign: they are no reports, and what can be done with them."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import Final

from nsw.tables.schema import TABLES

__all__ = ["exported_tables_hint"]

_LEDGER: Final = "campaign.db"
_ANSWER: Final = "answer.html"  # of `nsw export --share`
_READERS: Final = {".parquet": "read_parquet", ".csv": "read_csv"}


def exported_tables_hint(path: Path) -> str | None:
    """What to do with a table that nsw wrote, or with a folder of such tables; None: it is neither."""
    name = shlex.quote(str(path))
    if (path / _LEDGER).is_file():
        return f"it is a campaign without reports: `nsw summarize {name}` and `nsw report {name}` need its tables alone"
    try:
        files = sorted(chain(path.iterdir(), path.glob("tables/*"))) if path.is_dir() else [path]
        has_answer = (path / _ANSWER).is_file()
    except OSError:
        return None
    tables = [file for file in files if file.suffix in _READERS and file.stem in TABLES]
    if not tables:
        return None
    pandas = f"`pandas.{_READERS[tables[0].suffix]}('{tables[0]}')`"
    if has_answer:
        return f"`nsw export --share` wrote it: open {path / _ANSWER} in a browser; {pandas} has a table"
    reads = f"`nsw query 'SELECT ...' {name}`" if tables[0].parent not in {path, path.parent} else pandas
    return (
        f"nsw wrote its tables, which {reads} reads; `nsw summarize` needs the whole folder of their campaign, with"
        f" {_LEDGER}"
    )
