"""Read a campaign's reports once more: for tables that are gone or damaged, and for other figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.selection import Selection, absent_reports, campaign_option, selected
from nsw.engine.driven import locked_ledger
from nsw.engine.events import Message
from nsw.engine.folder import CampaignFolder, Log
from nsw.engine.ledger_rows import FIGURES_FROM, NOTE, RECIPE, SITE, WITH_OUTPUT, Reading, State
from nsw.engine.read import read_reports, reports_of
from nsw.engine.recipe_lock import locked_recipe, read_locked, write_locked
from nsw.engine.tables import load_rows, load_table, replace_rows, row_count, table_files
from nsw.errors import CampaignError
from nsw.safe_files import hash_of
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pyarrow as pa

    from nsw.engine.ledger import Ledger
    from nsw.recipe.model import Recipe


_READING_KEYS: Final = (
    ("app", "figures"),
    ("check",),
    ("allow_missing",),
    ("report",),
)  # the parts of a recipe that only concern reading
_IGNORED_KEYS: Final = (
    "app.command", "app.setup", "app.env", "app.launcher", "app.build", "app.container", "passes", "resources",
)  # fmt: skip


def _copy_reading_keys(
    folder: CampaignFolder, source: Path, before: Recipe, now: Recipe, notify: Callable[[Message], object]
) -> list[str]:
    """Put the figures, checks and the report section of a recipe into the campaign's recipe.lock.yaml.

    Args:
        folder: The campaign's folder.
        source: The file of the recipe to take them from.
        before: The recipe in its lockfile.
        now: The recipe to take them from.
        notify: Called with the other keys in which both differ.

    Returns:
        What changed, a line each.
    """
    old, new = _as_data(before), _as_data(now)
    changed = [
        line
        for path in _READING_KEYS
        for line in _tree_differences(".".join(path), _value_at_path(old, path), _value_at_path(new, path))
    ]
    if changed:
        head, recipe = read_locked(folder)
        recipe["app"]["figures"] = new["app"]["figures"]
        recipe |= {key: new[key] for key in ("check", "allow_missing", "report")}
        write_locked(folder, head, recipe)
        Log(folder.log).say(f"reread with {source} (SHA-256 {hash_of(source)}): {'; '.join(changed)}")
    ignored = [
        key for key in _IGNORED_KEYS if _value_at_path(old, key.split(".")) != _value_at_path(new, key.split("."))
    ]
    # a campaign that carries out some of the recipe's passes (`--pass`) has these alone
    if "passes" in ignored and all(recipe_pass in new["passes"] for recipe_pass in old["passes"]):
        ignored.remove("passes")
    if ignored:
        keys = ", ".join(ignored)
        notify(Message(f"{source} differs in {keys} too, which reading does not change: `nsw run` does runs with it"))
    return changed


def _mark_for_rereading(
    folder: CampaignFolder, ledger: Ledger, chosen: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Let reports that are still here be read again.

    A table's file that cannot be read is put aside as NAME.parquet.damaged.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        chosen: The ids of the runs to read again; None: every run.

    Returns:
        The runs whose reports are read again, and those whose reports are gone: their rows stay as they are.
    """
    ended = ledger.runs(states=WITH_OUTPUT)
    begun = [run for run in ended if run.attempt > 0 and run.reading is not Reading.NONE]
    runs = [run for run in begun if chosen is None or run.id in chosen]
    readable = [run.id for run in runs if any(path.is_file() for path in (folder.reports / run.id).glob("*"))]
    for path in table_files(folder):
        if row_count(path) is None:
            path.replace(path.with_name(f"{path.name}.damaged"))
    ledger.read_again(readable)
    return readable, [run.id for run in runs if run.id not in set(readable)]


def _reading_state(folder: CampaignFolder, ledger: Ledger) -> dict[str, Any]:
    """What reading again may change: rows by table, the values of figures, and what became of each run's reports."""
    counts = {path.stem: row_count(path) for path in table_files(folder)}
    figures = {} if counts.get("figures", 0) is None else {
        (row["name"], row["run"]): row["value"] for row in load_rows(folder, "figures")
    }  # fmt: skip
    reading = {
        run.id: str(run.state if run.state is State.INVALID else run.reading) for run in ledger.runs(states=WITH_OUTPUT)
    }
    return {"rows": counts, "figures": figures, "reading": reading}


def _describe_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What rereading has changed, one line for each change."""
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
            f" {_number_text(was)} -> {_number_text(now)}"
        )
    moved: dict[tuple[str, str], list[str]] = {}
    for run, old in before["reading"].items():
        if old != (new := after["reading"].get(run, old)):
            moved.setdefault((old, new), []).append(run)
    for (old, new), runs in moved.items():
        lines.append(f"{first_names(runs)}: {old} -> {new}")
    return lines


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"


def _as_data(recipe: Recipe) -> dict[str, Any]:
    recipe_data: dict[str, Any] = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    return recipe_data


def _value_at_path(data: Any, path: Any) -> Any:
    for key in path:
        data = (data or {}).get(key)
    return data


def _tree_differences(name: str, old: Any, new: Any) -> list[str]:
    """Where two trees of data differ: `app.figures.loss.regex: 'a' -> 'b'`."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        return [line for key in keys for line in _tree_differences(f"{name}.{key}", old.get(key), new.get(key))]
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


_ALL_RUNS: Final = Selection()


@dataclass(frozen=True, slots=True)
class Reread:
    """What reading again did.

    Attributes:
        source: The recipe that figures were taken from.
        taken: What was taken from it, a line each.
        changes: How the tables differ from before, a line each.
        unread: The runs that could not be read again, whose rows are those of before.
    """

    source: Path
    taken: list[str]
    changes: list[str]
    unread: list[str]


def reread(
    folder: CampaignFolder,
    recipe: Path | None,
    notify: Callable[[Message], object],
    progress: Callable[[int, int], object],
    selection: Selection = _ALL_RUNS,
) -> Reread:
    """Read the collected reports of a campaign again, or those of some runs.

    Args:
        folder: The campaign.
        recipe: The recipe to take figures, checks and the report section from; None: that of the last time, else the
            run's.
        notify: Called with what a person should know.
        progress: Called with how many runs are read, of how many.
        selection: The runs; nothing: all. The others keep what was read of them, also the figures of before.

    Raises:
        CampaignLockedError: An nsw drives the campaign.
        CampaignError: No report of it is here.
        InputError: The recipe has faults.
        UsageError: No run is meant.
    """
    with locked_ledger(folder, notify) as ledger:
        chosen = {run.id for run in selected(ledger, ledger.runs(), selection)} if selection else None
        source, now = _load_recipe(ledger, recipe, notify)
        locked = locked_recipe(folder)
        before = _reading_state(folder, ledger)
        taken = _copy_reading_keys(folder, source, locked, now, notify) if now is not None else []
        if recipe is not None:
            ledger.set_meta(FIGURES_FROM, str(recipe.absolute()))
        was_read = {run.id for run in ledger.runs(states=(State.DONE,)) if run.reading is Reading.READ}
        earlier = {path.stem: load_table(folder, path.stem) for path in table_files(folder) if row_count(path)}
        runs, gone = _mark_for_rereading(folder, ledger, chosen)
        if gone:
            notify(Message(f"not read again: {first_names(gone)}: nothing is left in {folder.reports / gone[0]}"))
        if not runs:
            option = campaign_option(folder)
            raise CampaignError(
                f"campaign {folder.id} has no report to read",
                hint=f"`nsw fetch{option}` downloads reports that are still on the site; `nsw resume{option}` continues"
                " with the rest",
            )
        read_reports(folder, ledger, progress)
        unread = _keep_earlier_rows(folder, ledger, was_read & set(runs), earlier, notify)
        return Reread(source, taken, _describe_changes(before, _reading_state(folder, ledger)), unread)


def _keep_earlier_rows(
    folder: CampaignFolder, ledger: Ledger, was_read: Collection[str], earlier: Mapping[str, pa.Table | None],
    notify: Callable[[Message], object],
) -> list[str]:  # fmt: skip
    """Put back the rows of runs whose reports were read before and cannot be now, such as where nsys is missing.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        was_read: The runs that were read again, of those that had been read.
        earlier: The tables before.
        notify: Called with what a person should know.

    Returns:
        These runs.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    problems = {
        run.id: [p for p in ledger.problems() if p.run == run.id]
        for run in ledger.runs(states=(State.DONE,), reading=Reading.UNREADABLE) if run.id in was_read
    }  # fmt: skip
    if not problems:
        return []
    rows = {
        name: table.filter(pc.is_in(table["run"], pa.array(list(problems), pa.string()))).to_pylist()
        for name, table in earlier.items() if table is not None
    }  # fmt: skip
    replace_rows(folder, rows, list(problems), ledger.meta(NOTE))
    with ledger.transaction():
        for run, faults in problems.items():
            ledger.update_tasks([run], reading=Reading.READ)
            ledger.set_problems(run, [(p.report, "warning", p.message, p.fix) for p in faults])
    faults = next(iter(problems.values()))
    reason, remedy = next(((p.message, p.fix) for p in faults if p.severity == "error"), ("unreadable", None))
    if not any(reports_of(folder, run) for run in ledger.runs() if run.id in problems):
        reason, remedy = absent_reports(folder)
    text = f"{first_names(list(problems))} cannot be read again: {reason}; what was read before stays"
    notify(Message(f"{text}\n  hint: {remedy}" if remedy else text))
    return list(problems)


def _load_recipe(
    ledger: Ledger, recipe_file: Path | None, notify: Callable[[Message], object]
) -> tuple[Path, Recipe | None]:
    """The recipe to take figures from, and its file; no recipe where none is named and the file is gone."""
    from nsw.recipe.load import load_recipe

    latest = ledger.meta(FIGURES_FROM) or ledger.meta(RECIPE)
    path = recipe_file or Path(latest or "")
    if recipe_file is None and not path.is_file():
        if latest:
            notify(Message(f"{path} is gone: the figures are those of the campaign (`--recipe FILE` names others)"))
        return path, None
    return path, load_recipe(path, ledger.meta(SITE), with_files=False).recipe
