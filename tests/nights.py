"""Campaigns of many nights, made of a real one: copies with other times, values and conditions."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nsw.engine.driven import write_state
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

DAY_S = 86400


def make_nights(
    first: Path,
    factors: Sequence[float],
    *,
    figure: str,
    tables: Callable[[int, str, list[dict[str, Any]]], list[dict[str, Any]]] = lambda _night, _name, rows: rows,
    lock: Callable[[int, str], str] = lambda _night, text: text,
) -> list[Path]:
    """Copy a campaign to a night for each factor, which a figure is multiplied by; the last night is yesterday.

    Args:
        first: The campaign's folder, which goes.
        factors: One for each night.
        figure: The figure's name.
        tables: Changes the rows of a table of a night.
        lock: Changes the text of a night's recipe.lock.yaml.
    """
    name = first.name.rsplit("-", 3)[0]
    nights = []
    for night, factor in enumerate(factors):
        began = time.time() - DAY_S * (len(factors) - night)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(began))
        path = first.parent / f"{name}-{stamp}-{night:04x}"
        shutil.copytree(first, path)
        with closing(sqlite3.connect(path / "campaign.db")) as ledger, ledger:
            ledger.execute("UPDATE meta SET value = ? WHERE key = 'created'", (json.dumps(began),))
        for file in (path / "tables").glob("*.parquet"):
            table = pq.read_table(file)
            rows = tables(night, file.stem, table.to_pylist())
            if file.stem == "figures":
                rows = [row | {"value": row["value"] * factor} if row["name"] == figure else row for row in rows]
            pq.write_table(pa.Table.from_pylist(rows, table.schema), file)
        recipe = path / "recipe.lock.yaml"
        recipe.write_text(lock(night, recipe.read_text()))
        folder = CampaignFolder(path)
        folder.trust()
        with Ledger(folder.ledger) as opened:
            write_state(folder, opened)
        nights.append(path)
    shutil.rmtree(first)
    return nights
