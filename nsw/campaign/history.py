"""`nsw history`: a figure over all campaigns of a recipe, when it stepped, and what changed with it.

The user's state folder stores what each campaign measured (history.parquet); a campaign that changes is read again.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nsw.analysis import sides as sides_module
from nsw.analysis.conditions import median_sm_clock_mhz
from nsw.analysis.sides import COMMIT, FILES, ORDER, Compared, Side, compare_sides, match_cases, measured_values
from nsw.analysis.steps import MIN_NIGHTS, Step, find_steps, one_night_noise
from nsw.campaign.baselines import read_baselines
from nsw.campaign.compare import difference_of, noise_floors, side_of_campaign
from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.ledger_rows import NAME
from nsw.engine.recipe_lock import locked_recipe
from nsw.engine.trust import known_paths
from nsw.errors import CampaignError, NswError, UsageError, did_you_mean
from nsw.recipe.load import fits_parameters, join_parameter_words
from nsw.recipe.matrix import BEFORE, SIDE
from nsw.resources import user_folder
from nsw.safe_files import make_folders, read_bytes, replacing_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder

__all__ = ["Cause", "Changed", "History", "Measured", "Night", "Request", "Series", "history", "unaccepted_steps"]

_FORM: Final = "1"  # of what is stored; another form is made again
_COLUMNS: Final = ("key", "stamp", "data")
_CLOCK: Final = "SM clock"
_RECIPE: Final = "recipe"
_CLOCKS_APART: Final = 0.01
_SHIFTS: Final = (0, -1, 1, -2, 2)  # nights between a step and the change of a condition
_RECENT: Final = 10  # campaigns of a case that a gate looks at


@dataclass(frozen=True, slots=True)
class Request:
    """What a history is of.

    Attributes:
        figure: The figure; None: the main one of the newest campaign.
        recipe: The recipe's name; None: that of the newest campaign.
        since: Only campaigns that began at most so many seconds ago.
        cases: Words for the cases that are meant, as of --case; none: all.
        site: Only campaigns on this site.
        root: Only campaigns in this folder; None: in all that the user's state folder knows.
    """

    figure: str | None = None
    recipe: str | None = None
    since: float | None = None
    cases: tuple[str, ...] = ()
    site: str | None = None
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a campaign measured; `values` are [unit, whether more is better, a value a run] by case and figure."""

    path: str
    recipe: str
    site: str
    created: float
    note: str | None
    main: str | None
    params: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Mapping[str, tuple[str | None, bool | None, Sequence[float]]]]
    conditions: Mapping[str, str]

    @property
    def id(self) -> str:
        """The campaign's name."""
        return Path(self.path).name

    @property
    def name(self) -> str:
        """What commands take as its name: its id where they look for campaigns, else its folder."""
        path = Path(self.path)
        return path.name if path.parent == folders.root(None).resolve() else self.path


@dataclass(frozen=True, slots=True)
class Night:
    """The values of a figure in a campaign, one a run."""

    campaign: Measured
    values: Sequence[float]

    @property
    def median(self) -> float:
        """Their median, in the unit of the figure."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Changed:
    """A condition that changed with a step, so many nights after it."""

    name: str
    before: str
    after: str
    nights: int


@dataclass(frozen=True, slots=True)
class Cause:
    """What changed with a step.

    Attributes:
        conditions: The conditions that changed.
        programs: How the programs differ.
        work: What takes more or less GPU time, as `nsw compare` shows it.
        group: The class of kernels that changed most, with the change of its time in an iteration, ns.
    """

    conditions: tuple[Changed, ...] = ()
    programs: str | None = None
    work: str | None = None
    group: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A figure of a case on a site, the oldest night first.

    A night with a value of 0 or less is left out: it has no ratio.

    Attributes:
        case: The case.
        site: The site.
        unit: Of the values.
        higher_is_better: None: neither is.
        nights: The campaigns.
        noise: The standard deviation of a night, as a logarithm.
        steps: Where it stepped.
    """

    case: str
    site: str
    unit: str | None
    higher_is_better: bool | None
    nights: Sequence[Night]
    noise: float
    steps: Sequence[Step]

    @property
    def is_long_enough(self) -> bool:
        """Whether it has nights enough for a step."""
        return len(self.nights) >= 2 * MIN_NIGHTS

    def is_worse(self, step: Step) -> bool:
        """Whether the level after a step is worse than before it."""
        return self.higher_is_better is not None and (step.size < 0) == self.higher_is_better


class History:
    """A figure of a recipe's campaigns.

    Attributes:
        recipe: The recipe's name.
        figure: The figure.
        campaigns: The campaigns, the oldest first.
        series: A series for each case and site that has the figure.
        problems: Campaigns that cannot be read, each with the reason.
    """

    def __init__(
        self, recipe: str, figure: str, campaigns: Sequence[Measured], series: Sequence[Series],
        problems: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        self.recipe, self.figure, self.campaigns, self.series = recipe, figure, campaigns, series
        self.problems = problems
        self._sides: dict[str, Side | None] = {}

    def explain_step(self, series: Series, step: Step) -> Cause:
        """What changed with a step: conditions of the nights before and after it, and the work of the two beside it."""
        campaigns = [night.campaign for night in series.nights]
        at = series.steps.index(step)
        begin = series.steps[at - 1].until if at else 0
        end = series.steps[at + 1].at if at + 1 < len(series.steps) else len(campaigns)
        ends = [campaigns[step.at - 1], campaigns[step.until]]
        bare = [Side(name="", source="", runs=[], tables={}, conditions=each.conditions) for each in ends]
        cause = Cause(
            tuple(_changed_conditions(campaigns[begin:end], step.at - begin, step.until - begin)),
            sides_module.program_difference_text(*bare),
        )
        sides = [self._side_of_night(campaign) for campaign in ends]
        if sides[0] is None or sides[1] is None:
            return cause
        first, second = (replace(side, runs=[run for run in side.runs if _case_name(run) == series.case])
                         for side in sides if side is not None)  # fmt: skip
        match = next(iter(match_cases(first, second)), None)
        if match is None:
            return cause
        difference = difference_of(match, first, second)
        groups = compare_sides(first, second, "class")
        largest = max(groups, key=_change_size, default=None)
        return replace(
            cause,
            work=None if difference is None else difference.sentence,
            group=None if largest is None or not _change_size(largest) else (largest.what, _increase(largest)),
        )

    def _side_of_night(self, campaign: Measured) -> Side | None:
        if campaign.path not in self._sides:
            self._sides[campaign.path] = None
            with suppress(NswError, OSError):  # its folder may have gone
                self._sides[campaign.path] = _side_after(folders.CampaignFolder(Path(campaign.path)))
        return self._sides[campaign.path]


def _increase(row: Compared) -> float:
    return (row.second or 0.0) - (row.first or 0.0)


def _change_size(row: Compared) -> float:
    return abs(_increase(row))


def _changed_conditions(campaigns: Sequence[Measured], at: int, until: int) -> Iterator[Changed]:
    """Conditions that differ between all nights before a step and all after it; the step's date may be slightly off."""
    names = dict.fromkeys((*ORDER, *(name for each in campaigns for name in each.conditions)))
    for name in names:
        if name in {COMMIT, FILES}:
            continue
        values = [each.conditions.get(name) for each in campaigns]
        for shift in _SHIFTS if at == until else (0,):
            before, after = values[: max(0, at + shift)], values[until + shift :]
            if not before or not after or {None, *before} & {*after} or None in before:
                continue
            first, second = str(before[-1]), str(after[0])
            if name != _CLOCK or abs(float(first) - float(second)) > _CLOCKS_APART * float(first):
                yield Changed(name, first, second, shift)
                break


# --- the series -----------------------------------------------------------------------------------------------------


def history(request: Request) -> History:
    """The history of a figure.

    Args:
        request: The figure, and of which campaigns.

    Raises:
        CampaignError: There is no campaign of the recipe, or the stored values are damaged.
        UsageError: No campaign has the figure or the case.
    """
    store = _Store()
    try:
        return _build_history(request, store)
    finally:
        store.save()


def _build_history(request: Request, store: _Store) -> History:
    every, problems = _load_measured(_find_campaigns(request.root), store)
    newest = every[-1] if every else None
    recipe = request.recipe or (newest.recipe if newest else None)
    recipes = sorted({each.recipe for each in every})
    campaigns = [each for each in every if each.recipe == recipe]
    if recipe is None or not campaigns:
        scope = f"in {request.root}" if request.root else "in the folders that nsw knows"
        unread = f" that can be read; {problems[0][0]}: {problems[0][1]}" if problems else ""
        raise CampaignError(
            f"there is no campaign{f' of {recipe}' if recipe else ''} {scope}{unread}",
            hint=did_you_mean(recipe or "", recipes) or (f"there are: {', '.join(recipes)}" if recipes else None),
        )
    first = 0.0 if request.since is None else time.time() - request.since
    campaigns = [each for each in campaigns if each.created >= first and request.site in {None, each.site}]
    if not campaigns:
        raise CampaignError(f"no campaign of {recipe} fits --since and --site", hint="leave one out")
    figures = sorted({figure for each in campaigns for values in each.values.values() for figure in values})
    figure = request.figure or next((each.main for each in reversed(campaigns) if each.main), None)
    if figure not in figures:
        listing = f"measured: {', '.join(figures)}" if figures else "no run is done that measured one"
        raise UsageError(f"no campaign of {recipe} has a figure{f' {figure}' if figure else ''}",
                         hint=did_you_mean(figure or "", figures) or listing)  # fmt: skip
    series = _series_of(recipe, figure, campaigns, join_parameter_words(request.cases), store)
    if not series:
        raise UsageError(f"--case leaves no case of {recipe} that has {figure}")
    return History(recipe, figure, campaigns, series, problems)


def _series_of(
    recipe: str, figure: str, campaigns: Sequence[Measured], words: Sequence[str], store: _Store
) -> list[Series]:
    """A series for each case and site, with its steps."""
    nights: dict[tuple[str, str], list[Night]] = defaultdict(list)
    for campaign in campaigns:
        for case, values in campaign.values.items():
            params = campaign.params[case]
            if figure in values and (not words or any(fits_parameters(case, params, word) for word in words)):
                runs = values[figure][2]
                if min(runs) > 0:
                    nights[case, campaign.site].append(Night(campaign, runs))
    logs = [np.log([night.median for night in of_case]) for of_case in nights.values()]
    floor_logs = []
    for (_, site), of_case in nights.items():
        floor = noise_floors(site, of_case[-1].campaign.conditions.get("chip"), recipe).get(figure)
        floor_logs.append(floor.run if floor is not None else 0.0)
    key = f"windows of {recipe}: {figure}"
    memo = store.get(key, _FORM) or {}
    count = len(memo)
    steps_of_series = find_steps(logs, floor_logs, memo)
    if len(memo) > count:
        store.add(key, _FORM, memo)
    series = []
    for (case, site), of_logs, steps in zip(nights, logs, steps_of_series, strict=True):
        unit, better, _ = nights[case, site][-1].campaign.values[case][figure]
        series.append(Series(case, site, unit, better, nights[case, site], one_night_noise(of_logs), steps))
    return series


def _case_name(run: Any) -> str:
    """The case in words, the same of a pair's second side and of a campaign of that side alone."""
    return ", ".join(f"{key}={value}" for key, value in run.params.items() if key != SIDE) or run.case_id


def unaccepted_steps(history: History) -> list[tuple[Series, Step]]:
    """The steps for the worse in the last campaigns that nobody accepted.

    A campaign since the step that is a baseline accepts it; so does a note on its first one that the one before lacks.
    """
    parents = {Path(campaign.path).parent for campaign in history.campaigns}
    accepted = {str(parent / id_) for parent in parents for id_ in read_baselines(parent).values()}
    steps = []
    for series in history.series:
        for step in series.steps:
            before, after = series.nights[step.at - 1].campaign, series.nights[step.until].campaign
            is_noted = after.note is not None and after.note != before.note
            is_baseline = any(night.campaign.path in accepted for night in series.nights[step.until :])
            is_recent = step.until >= len(series.nights) - _RECENT
            if is_recent and series.is_worse(step) and not is_noted and not is_baseline:
                steps.append((series, step))
    return steps


# --- what campaigns measured, and what is stored of it ----------------------------------------------------------------


def _find_campaigns(root: Path | None) -> list[CampaignFolder]:
    """The campaigns in a folder; None: in all folders that the user's state folder knows, and in the usual one."""
    parents = [root] if root else [folders.root(None), *sorted({path.parent for path in known_paths()})]
    parents = list(dict.fromkeys(parent.resolve() for parent in parents))
    by_path = {folder.path: folder for parent in parents for folder in folders.existing(parent)}
    return list(by_path.values())


def _load_measured(campaigns: Sequence[CampaignFolder], store: _Store) -> tuple[list[Measured], list[tuple[str, str]]]:
    """What campaigns measured, the oldest first, and those that cannot be read, with reasons."""
    measured, problems = [], []
    for folder in campaigns:
        path, stamp = str(folder.path), _change_stamp(folder)
        fields = store.get(path, stamp)
        if fields is None:
            try:
                fields = _measured_fields(folder)
            except (NswError, OSError, ValueError) as fault:
                problems.append((folder.id, str(fault)))
                continue
            store.add(path, stamp, fields)
        measured.append(Measured(path, *fields))
    return sorted(measured, key=lambda each: (each.created, each.path)), problems


class _Store:
    """What is stored of campaigns and of windows of nights: a stamp and JSON by path or hash, in one Parquet file.

    Without a state folder nothing is stored.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, str]] = {}
        self._is_changed = False
        self._file: Path | None = None
        with suppress(OSError):
            self._file = user_folder("state") / "history.parquet"
            data = read_bytes(self._file)
            try:
                self._entries = {key: (stamp, text) for key, stamp, text in zip(*_read_columns(data), strict=True)}
            except (pa.ArrowException, ValueError) as fault:
                raise CampaignError(f"{self._file} is damaged: {fault}", hint="remove it: nsw makes it again") from None

    def get(self, key: str, stamp: str) -> Any:
        """What is stored under a key; None where nothing with this stamp is."""
        entry = self._entries.get(key)
        return json.loads(entry[1]) if entry is not None and entry[0] == stamp else None

    def add(self, key: str, stamp: str, value: Any) -> None:
        """Store a value, in the file once `save` is called."""
        self._entries[key] = stamp, json.dumps(value)
        self._is_changed = True

    def save(self) -> None:
        """Write the file, where something was added and the folder can be written."""
        if self._file is not None and self._is_changed:
            rows = [(key, *entry) for key, entry in self._entries.items()]
            table = pa.table(dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)))
            with suppress(OSError):
                make_folders(self._file.parent, 0o700)
                with replacing_file(self._file, 0o600) as file:
                    pq.write_table(table, file, compression="zstd")


def _read_columns(data: bytes) -> list[list[str]]:
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    return [table[name].to_pylist() for name in _COLUMNS]


def _change_stamp(folder: CampaignFolder) -> str:
    """A stamp that changes with the campaign: the modification times of its ledger and tables."""
    times = []
    for path in (folder.ledger, folder.path / folders.STATE, folder.recipe, folder.tables):
        with suppress(OSError):
            times.append(path.stat().st_mtime_ns)
    return f"{_FORM} {times}"


def _side_after(folder: CampaignFolder) -> Side:
    """The campaign as a side; with pairs, the side after the change."""
    side = side_of_campaign(folder)
    return replace(side, runs=[run for run in side.runs if run.params.get(SIDE) != BEFORE])


def _measured_fields(folder: CampaignFolder) -> list[Any]:
    """The fields of `Measured` but the first."""
    side = _side_after(folder)
    with ledger_to_read(folder) as ledger:
        recipe, site, created = ledger.meta(NAME), side.conditions["site"], ledger.created()
    params, values, main = {}, {}, side.figure
    for runs in side.cases.values():
        case = _case_name(runs[0])
        params[case] = {key: value for key, value in runs[0].params.items() if key != SIDE}
        measured = measured_values(side, runs)
        values[case] = {
            name: (quantity.unit, quantity.higher_is_better, [each.value for each in by_run.values()])
            for name, by_run in measured.items() for quantity in [next(iter(by_run.values()))]
        }  # fmt: skip
        if main not in measured:
            main = next(iter(measured), main)
    conditions = dict(side.conditions)
    text = locked_recipe(folder).model_copy(update={"lock": None}).model_dump_json()
    conditions[_RECIPE] = sha256(text.encode()).hexdigest()[:8]
    if (clock := median_sm_clock_mhz(side.tables["conditions"])) is not None:
        conditions[_CLOCK] = f"{clock:.0f}"
    return [recipe, site, created, side.note, main, params, values, conditions]
