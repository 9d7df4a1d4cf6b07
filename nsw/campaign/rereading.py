"""Reading a campaign's reports once more: for tables that are gone or damaged, and for other figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nsw.campaign.ledger_rows import Reading, State
from nsw.campaign.recipe_lock import read_locked, write_locked
from nsw.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.recipe.model import Recipe

_TAKEN = (("app", "figures"), ("report",))  # the parts of a recipe that only concern reading


def take_over(folder: CampaignFolder, before: Recipe, now: Recipe) -> list[str]:
    """Put the figures and the report section of a recipe into the campaign's recipe.lock.yaml.

    Args:
        folder: The campaign's folder.
        before: The recipe in its lockfile.
        now: The recipe to take them from.

    Returns:
        What changed, a line each.
    """
    old, new = _as_data(before), _as_data(now)
    changes = [line for path in _TAKEN for line in _differences(".".join(path), _at(old, path), _at(new, path))]
    if changes:
        head, recipe = read_locked(folder)
        recipe["app"]["figures"], recipe["report"] = new["app"]["figures"], new["report"]
        write_locked(folder, head, recipe)
    return changes


def not_taken(before: Recipe, now: Recipe) -> list[str]:
    """The keys of the two recipes that differ and that reading does not depend on, such as app.command."""
    old, new = _as_data(before), _as_data(now)
    keys = ["app.command", "app.setup", "app.env", "app.launcher", "app.build", "app.container", "passes", "resources"]
    found = [key for key in keys if _at(old, key.split(".")) != _at(new, key.split("."))]
    # a campaign that carries out some of the recipe's passes (`--pass`) has these alone
    return [key for key in found if key != "passes" or not all(one in new["passes"] for one in old["passes"])]


def release(
    folder: CampaignFolder, ledger: Ledger, chosen: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Let the reports of every run, or of those chosen, be read again that are still here.

    A table's file that cannot be read is put aside as NAME.parquet.damaged.

    Returns:
        The runs whose reports are read again, and those whose reports are gone: their rows stay as they are.
    """
    ended = ledger.runs(states=(State.DONE, State.FAILED))
    runs = [run for run in ended if run.reading is not Reading.NONE and (chosen is None or run.id in chosen)]
    here = [run.id for run in runs if _has_files(folder.reports / run.id)]
    for path in tables(folder):
        if row_count(path) is None:
            path.replace(path.with_name(f"{path.name}.damaged"))
    ledger.update_tasks(here, reading=Reading.COLLECTED)
    return here, [run.id for run in runs if run.id not in set(here)]


def tables(folder: CampaignFolder) -> list[Path]:
    """The files of the campaign's tables."""
    return sorted(path for path in folder.tables.glob("*.parquet") if path.stem in TABLES)


def row_count(path: Path) -> int | None:
    """How many rows a table's file has; None when it is damaged."""
    import pyarrow as pa

    from nsw.safe_files import open_plain
    from nsw.tables.parquet_tables import unchecked_table

    try:
        with os.fdopen(open_plain(path), "rb") as file:
            found: int = unchecked_table(file).num_rows
            return found
    except (pa.ArrowException, OSError):
        return None


def state_of(folder: CampaignFolder, ledger: Ledger) -> dict[str, Any]:
    """What reading again may change: rows by table, the values of figures, and what became of each run's reports."""
    from nsw.campaign.reading import load_rows

    counts = {path.stem: row_count(path) for path in tables(folder)}
    figures = {} if counts.get("figures", 0) is None else {
        (row["name"], row["run"]): row["value"] for row in load_rows(folder, "figures")
    }  # fmt: skip
    reading = {run.id: str(run.reading) for run in ledger.runs() if run.state in {State.DONE, State.FAILED}}
    return {"rows": counts, "figures": figures, "reading": reading}


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What reading again has changed, a line each."""
    lines = []
    for name in sorted({*before["rows"], *after["rows"]}):
        old, new = before["rows"].get(name, 0), after["rows"].get(name, 0)
        if old != new:
            was = "a damaged file" if old is None else f"{old:,}"
            lines.append(f"table {name}: {new:,} rows (before: {was})")
    figures: dict[str, list[tuple[str, str]]] = {}
    for key in {*before["figures"], *after["figures"]}:
        if before["figures"].get(key) != after["figures"].get(key):
            figures.setdefault(key[0], []).append(key)
    for name, keys in sorted(figures.items()):
        first = min(keys)
        was, now = before["figures"].get(first), after["figures"].get(first)
        lines.append(
            f"figure {name}: {len(keys)} value{'s' if len(keys) > 1 else ''} changed, such as {first[1]}:"
            f" {_number(was)} -> {_number(now)}"
        )
    moved: dict[tuple[str, str], list[str]] = {}
    for run, old in before["reading"].items():
        if old != (new := after["reading"].get(run, old)):
            moved.setdefault((old, new), []).append(run)
    for (old, new), runs in moved.items():
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        lines.append(f"{runs[0]}{more}: {old} -> {new}")
    return lines


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"


def _has_files(home: Path) -> bool:
    return home.is_dir() and any(path.is_file() for path in home.iterdir())


def _as_data(recipe: Recipe) -> dict[str, Any]:
    found: dict[str, Any] = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def _at(data: Any, path: Any) -> Any:
    for key in path:
        data = (data or {}).get(key)
    return data


def _differences(name: str, old: Any, new: Any) -> list[str]:
    """Where two trees of data differ: `app.figures.loss.regex: 'a' -> 'b'`."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        return [line for key in keys for line in _differences(f"{name}.{key}", old.get(key), new.get(key))]
    if old == new:
        return []
    if old is None:
        return [f"{name}: new"]
    if new is None:
        return [f"{name}: gone"]
    return [f"{name}: {_as_yaml(old)} -> {_as_yaml(new)}"]


def _as_yaml(value: Any) -> str:
    """A value as it may be pasted into a recipe: a regex keeps its backslashes as they are."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
