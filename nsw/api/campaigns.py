"""A campaign from Python: `nsw.open("campaigns/NAME").tables.gpu_summary` is a pandas frame."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.analysis.certainty import EQUIVALENCE
from nsw.apart import Limits
from nsw.api.reading import Tables, frame_of, unknown, with_parameters
from nsw.api.recipe_options import Names, names
from nsw.campaign.answers import Results, results
from nsw.engine import folder as folders
from nsw.engine.ledger_rows import RunRow, State
from nsw.errors import UsageError, did_you_mean
from nsw.tables.schema import TABLES, TRACES

if TYPE_CHECKING:
    import pandas as pd

    from nsw.analysis.compared_screen import Comparison
    from nsw.analysis.sides import By
    from nsw.campaign.watch import Watching

_PROBLEM = ("run", "report", "severity", "message", "fix")


class CampaignTables(Tables):
    """The campaign's tables, each row with the parameters of its run as columns.

    A parameter whose name is that of a column gets the prefix `param_`. A trace (`gpu_trace` and the others that end
    so) is read from the collected reports when it is asked for, and kept in memory.
    """

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self._folder = folder
        self._traces: dict[tuple[str, ...], pd.DataFrame] = {}

    def _frame(self, name: str) -> pd.DataFrame:
        import pandas as pd

        from nsw.engine.tables import load_table

        table = load_table(self._folder, name)
        frame = pd.DataFrame(columns=list(TABLES[name].names)) if table is None else table.to_pandas()
        with results(self._folder) as campaign_results:
            if name in TRACES:
                frame = self._with_trace(name, frame, campaign_results)
            return with_parameters(frame, {run.id: run.params for run in campaign_results.runs})

    def _with_trace(self, name: str, frame: pd.DataFrame, campaign_results: Results) -> pd.DataFrame:
        """The table with the rows of those runs whose reports were read without this trace."""
        import pandas as pd

        traced_runs = set(frame["run"])
        missing = [run for run in campaign_results.runs if _measured(run) and run.id not in traced_runs]
        key = (name, *(run.id for run in missing))
        if key not in self._traces:
            self._traces[key] = frame_of(campaign_results.trace(name, missing), TABLES[name].names)
        traces = self._traces[key]
        parts = [part for part in (frame, traces) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else frame

    def _names(self) -> list[str]:
        from nsw.engine.tables import table_files

        table_names = {path.stem for path in table_files(self._folder)}
        return sorted(
            table_names | (TRACES if self._folder.trusted and any(self._folder.reports.glob("*/*")) else set())
        )


def _measured(run: RunRow) -> bool:
    """Whether its reports hold rows."""
    return run.state is State.DONE and run.repeat > 0 and bool(run.reports)


class Answers:
    """What the campaign shows, as frames: the tables that `nsw summarize --table` has beside those of the reports."""

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self._folder = folder

    if TYPE_CHECKING:
        api: pd.DataFrame
        compare: pd.DataFrame
        copies: pd.DataFrame
        figures: pd.DataFrame
        functions: pd.DataFrame
        hotspots: pd.DataFrame
        kernels: pd.DataFrame
        model: pd.DataFrame
        perturbation: pd.DataFrame
        roofline: pd.DataFrame
        scaling: pd.DataFrame
    else:

        def __getattr__(self, name: str) -> pd.DataFrame:
            from nsw.present.emit import FLAT, flat_rows

            if name not in FLAT:
                raise AttributeError(unknown("answer", name, FLAT))
            return frame_of(flat_rows(self._summary(), name), ())

    @property
    def headline(self) -> str:
        """The answer in one line."""
        from nsw.analysis.answer.registry import blocks_of
        from nsw.analysis.first_screen import headline_of

        return headline_of(blocks_of(self._summary(), full=False))

    @property
    def findings(self) -> list[str]:
        """What nsw found, a sentence or two each."""
        return [finding.text for finding in self._summary().findings]

    def __dir__(self) -> list[str]:
        """The tables, the headline and the findings."""
        from nsw.present.emit import FLAT

        return sorted([*FLAT, "findings", "headline"])

    def _summary(self) -> Any:
        with results(self._folder) as campaign_results:
            return campaign_results.summary


class Campaign:
    """A campaign, finished or not, to be read; what it gives is as it is when it is asked for.

    Attributes:
        id: Its name, which is that of its folder.
        folder: Where it is.
        site: The site that it runs on.
        note: What must be known with its numbers; None where there is nothing.
        tables: What the reports hold.
        answers: What the tables show: hotspots, scaling, findings ...
    """

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self._campaign_folder = folder
        self.folder: Path = folder.path
        self.id: str = folder.id
        self.tables = CampaignTables(folder)
        self.answers = Answers(folder)
        with results(folder) as campaign_results:
            self.note: str | None = campaign_results.note
            self.site: str = campaign_results.site

    def __repr__(self) -> str:
        from nsw.wording import headline

        return f"<nsw campaign {self.id} on site {self.site}: {headline(self.counts)}>"

    def _repr_html_(self) -> str:
        """In a notebook: the headline, the table, the findings and the plots."""
        from nsw.analysis.answer.registry import blocks_of
        from nsw.present.plots import html_of

        with results(self._campaign_folder) as campaign_results:
            return html_of(blocks_of(campaign_results.summary))

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are in each state; a state without runs is left out."""
        with results(self._campaign_folder) as campaign_results:
            return campaign_results.counts

    @property
    def good(self) -> bool:
        """Whether every run is done, its reports were read and it printed every required figure."""
        with results(self._campaign_folder) as campaign_results:
            return campaign_results.is_good()

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run: id (the tables' `run`), pass, state, times, parameters (`param_state` where one clashes)."""
        import pandas as pd

        from nsw.present.status_view import flat_run

        with results(self._campaign_folder) as campaign_results:
            jobs = campaign_results.jobs
            return pd.DataFrame([flat_run(run, jobs) for run in campaign_results.runs])

    @property
    def problems(self) -> pd.DataFrame:
        """One row a problem of a report: run, report, severity (error, warning or note), message, fix."""
        with results(self._campaign_folder) as campaign_results:
            return frame_of(
                [dict(zip(_PROBLEM, problem, strict=True)) for problem in campaign_results.problems], _PROBLEM
            )

    def cancel(self) -> None:
        """End what is queued or running, here or through the nsw that drives the campaign; what is done stays."""
        from nsw.campaign.cancel import cancel, standing_of

        if not standing_of(self._campaign_folder).is_over:
            cancel(self._campaign_folder)

    def watch(self, *, once: bool = False) -> Watching:
        """Look at the campaign without driving it: an iterator of events, until no run is in flight.

        Another process may drive it, here or on another machine, or nobody: then its site is asked. Nothing is changed.
        Between two looks `next` waits, 2 s on this machine and 10 s elsewhere.

        Args:
            once: Look once.

        Raises:
            UnreachableError: The site cannot be reached, at the first look.
        """
        from nsw.campaign.watch import Watching

        return Watching(self._campaign_folder, once=once)

    def clean(self, *, everything: bool = False) -> int:
        """Remove from the site what is nsw's own or has a copy here, once the campaign is over and read.

        Args:
            everything: Also what was never brought: `fetch` brings files of runs before.

        Returns:
            The bytes that it freed.

        Raises:
            CampaignError: The campaign is not over, its reports are not read yet, or another nsw owns it.
            UnreachableError: The site gave no answer; doing it again removes the rest.
        """
        from nsw.campaign.clean import on_site

        with on_site(self._campaign_folder) as cleaning:
            if not cleaning.leftovers.files(include_uncollected=everything):
                return 0
            cleaning.remove(include_uncollected=everything)
            return cleaning.leftovers.freed(include_uncollected=everything)

    def fetch(self, runs: Names = (), files: Names = ()) -> list[Path]:
        """Bring files of runs that were left on the site; where they are here, also those that already were.

        Args:
            runs: Ids of runs, parts of them, cases or patterns; all if none is named.
            files: Patterns of file names; by default reports for the GUIs of NVIDIA's profilers.

        Raises:
            UsageError: No run has such a name, or none of them has begun.
            UnreachableError: The site cannot be reached.
        """
        from nsw.campaign.fetch import files_on_site
        from nsw.campaign.selection import Selection

        with files_on_site(self._campaign_folder, names(runs), names(files), Selection()) as site_files:
            site_files.bring()
            return [file.local_path for file in site_files.files]


def open_campaign(
    named: str | Path | None = None,
    root: str | Path | None = None,
    *,
    max_unpacked: int | None = None,
    max_memory: int | None = None,
    max_time: float | None = None,
) -> Campaign:
    """The campaign of that folder, id or beginning of an id; with none named the newest under `root`.

    Args:
        named: The campaign.
        root: Where campaigns are.
        max_unpacked: How many bytes a packed report may unpack to, of those that are read for traces.
        max_memory: How many bytes of memory a process may take that reads a report, or a table that another user made.
        max_time: How many seconds of processor time.

    Raises:
        CampaignError: There is none.
    """
    folder = find(named, root)
    folder.max_unpacked, folder.limits = max_unpacked, Limits(max_memory, max_time)
    return Campaign(folder)


def find(named: str | Path | None, root: str | Path | None) -> folders.CampaignFolder:
    """The folder of a campaign, by what `open_campaign` takes."""
    parent = folders.root(Path(root) if root is not None else None)
    return folders.find(parent, str(named) if named is not None else None)


class Compared:
    """What `nsw compare` shows."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __repr__(self) -> str:
        return f"<nsw comparison: {self.headline}>"

    def _repr_html_(self) -> str:
        """In a notebook: the headline, the table, the findings and the plots."""
        from nsw.present.plots import html_of

        return html_of(self._blocks)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        from nsw.analysis.first_screen import headline_of

        return headline_of(self._blocks)

    @property
    def findings(self) -> list[str]:
        """What did it, and what would decide what cannot be told, a sentence or two each."""
        from nsw.analysis.blocks import Finding

        return [block.text for block in self._blocks if isinstance(block, Finding)]

    @property
    def differs(self) -> list[str]:
        """What else differs between both sides: driver, node, program ..."""
        return list(self._comparison.differs)

    @property
    def rows(self) -> pd.DataFrame:
        """A row a quantity of a case: values, verdict, by how much with its interval, and how certain that is."""
        from nsw.present.compare_view import COLUMNS, rows_of

        return frame_of(rows_of(self._comparison), COLUMNS)

    @cached_property
    def _blocks(self) -> list[Any]:
        from nsw.analysis.compared_screen import blocks_of_comparison

        return blocks_of_comparison(self._comparison)


def compare(
    first: Campaign | str | Path,
    second: Campaign | str | Path | None = None,
    *,
    by: By = "case",
    same: float = EQUIVALENCE,
    root: str | Path | None = None,
) -> Compared:
    """Compare two campaigns, cases or reports.

    Args:
        first: What is compared with: a campaign, its folder, id or baseline, `"CAMPAIGN:CASE"`, or a report. Alone:
            a campaign of `run(..., against=...)`, which holds both sides.
        second: What is compared.
        by: What is compared: case, figure, kernel, class, range or metric.
        same: Differences below count as none, 0.01 being 1 %.
        root: The folder of campaigns.

    Raises:
        UsageError: Both have nothing in common, ran on unlike chips, or cannot be compared so.
        CampaignError: There is no such campaign or report.
    """
    from nsw.analysis.sides import BY
    from nsw.campaign.compare import compare as compared
    from nsw.campaign.compare import sides_of

    if by not in BY:
        raise UsageError(f"by={by!r}: there is no such", hint=did_you_mean(by, BY) or f"one of {', '.join(BY)}")
    side_names = [
        str(side.folder if isinstance(side, Campaign) else side) for side in (first, second) if side is not None
    ]
    sides = sides_of(side_names, Path(root) if root is not None else None, by)
    return Compared(compared(*sides, by, same))
