"""What was measured, from Python: reports, campaigns and comparisons, their tables as pandas frames.

`nsw.read("report.sqlite").tables.gpu_summary`, `nsw.open("campaigns/NAME").tables.gpu_summary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nsw.analysis.blocks import Block, Finding, Note
from nsw.analysis.certainty import EQUIVALENCE
from nsw.analysis.first_screen import HEADLINE, find_headline
from nsw.apart import Limits
from nsw.api.combined import UNITS_OF_RUNS, CombinedTables
from nsw.campaign.answers import Results, results
from nsw.engine import folder as folders
from nsw.engine.ledger_rows import State
from nsw.engine.tables import load_table, table_files
from nsw.errors import UsageError, did_you_mean
from nsw.present.emit import FLAT, flat_rows
from nsw.tables.schema import TABLES, TRACES
from nsw.wording import headline, plural

if TYPE_CHECKING:
    import pandas as pd

    from nsw.analysis.compared_screen import Comparison
    from nsw.analysis.sides import By
    from nsw.campaign.watch import Watching
    from nsw.readers.model import Options, Report

Names: TypeAlias = str | Sequence[str]
Files: TypeAlias = str | Path | Sequence[str | Path]

_OWN_TABLES = ("runs", "problems")  # of a campaign, which neither reports nor the summary hold
_PREFIX = "param_"  # of a parameter whose name is that of a column


def name_tuple(one_or_several: Names) -> tuple[str, ...]:
    """Names, one or several."""
    return (one_or_several,) if isinstance(one_or_several, str) else tuple(one_or_several)


def path_list(one_or_several: Files | None) -> list[Path] | None:
    """Paths, one or several."""
    if one_or_several is None:
        return None
    return [Path(one_or_several)] if isinstance(one_or_several, str | Path) else [Path(path) for path in one_or_several]


def _unknown_name_message(kind: str, name: str, names: Iterable[str]) -> str:
    """The message for an unknown name: the name that was probably meant, or all known names."""
    near = None if name.startswith("_") else did_you_mean(name, names)
    return f"there is no {kind} {name}; {near or ', '.join(names)}"


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame; these columns first, and there even without a row. `attrs["units"]` has the units of columns."""
    import pandas as pd

    from nsw.present.rows_view import unit_of

    other_columns = dict.fromkeys(key for row in rows for key in row if key not in set(columns))
    frame = pd.DataFrame(list(rows), columns=[*columns, *other_columns])
    return _with_units(frame, {str(column): unit_of(str(column)) for column in frame.columns})


def _with_units(frame: pd.DataFrame, units: Mapping[str, str | None]) -> pd.DataFrame:
    frame.attrs["units"] = {column: unit for column, unit in units.items() if unit and column in frame.columns}
    return frame


def with_parameters(frame: pd.DataFrame, params: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The frame with the parameters of each row's run as columns behind `run`.

    A parameter whose name is that of a column gets the prefix `param_`: `device` becomes `param_device`.

    Args:
        frame: A table with a column `run`.
        params: The parameters of each run.
    """
    import pandas as pd

    parameter_names = dict.fromkeys(key for values in params.values() for key in values)
    existing = set(frame.columns)
    at = list(frame.columns).index("run") + 1
    added = {}
    for name in parameter_names:
        column = name if name not in existing else f"{_PREFIX}{name}"
        values = {run: run_params.get(name) for run, run_params in params.items()}
        added[column] = frame["run"].map(values)
    own_frame = pd.DataFrame(added, index=frame.index)
    return pd.concat([frame.iloc[:, :at], own_frame, frame.iloc[:, at:]], axis=1)


class Result:
    """What a notebook shows as its headline, its first table, its findings and its first plots."""

    def _repr_html_(self) -> str:
        from nsw.present.plots import html_of

        return html_of(self._blocks)

    @property
    def _blocks(self) -> Sequence[Block]:
        raise NotImplementedError


# --- reports -------------------------------------------------------------------------------------------------


class Tables:
    """The tables of nsw.tables.schema as attributes; one that no report filled is an empty frame with its columns.

    `attrs["units"]` of a frame has the units of its columns.
    """

    if TYPE_CHECKING:  # for mypy and for editors; a test compares this with the schema
        api_summary: pd.DataFrame
        api_trace: pd.DataFrame
        chosen_launches: pd.DataFrame
        communication: pd.DataFrame
        conditions: pd.DataFrame
        earlier_figures: pd.DataFrame
        facts: pd.DataFrame
        figures: pd.DataFrame
        functions: pd.DataFrame
        gpu_summary: pd.DataFrame
        gpu_trace: pd.DataFrame
        invalid_figures: pd.DataFrame
        iteration_trace: pd.DataFrame
        iterations: pd.DataFrame
        launches: pd.DataFrame
        metrics: pd.DataFrame
        nvtx_gpu_summary: pd.DataFrame
        nvtx_summary: pd.DataFrame
        nvtx_trace: pd.DataFrame
        openacc_summary: pd.DataFrame
        openmp_summary: pd.DataFrame
        operators: pd.DataFrame
        osrt_summary: pd.DataFrame
        phase_summary: pd.DataFrame
        phases: pd.DataFrame
        process_gpus: pd.DataFrame
        gaps: pd.DataFrame
        host_copies: pd.DataFrame
        gpu_use: pd.DataFrame
        collectives: pd.DataFrame
        bandwidth: pd.DataFrame
        cpu_samples: pd.DataFrame
        cpu_threads: pd.DataFrame
        cpu_trace: pd.DataFrame
        gpu_metrics: pd.DataFrame
        gpu_metric_trace: pd.DataFrame
        ranks: pd.DataFrame
        rules: pd.DataFrame
        source_metrics: pd.DataFrame
        um_summary: pd.DataFrame
    else:

        def __getattr__(self, name: str) -> pd.DataFrame:
            if name not in TABLES:
                raise AttributeError(_unknown_name_message("table", name, TABLES))
            return self[name]

    def __getitem__(self, name: str) -> pd.DataFrame:
        """The table of that name, as the attribute is.

        Raises:
            KeyError: There is no such table.
        """
        if name not in TABLES:
            raise KeyError(_unknown_name_message("table", name, TABLES))
        return _with_units(self._load_frame(name), {column.name: column.unit for column in TABLES[name].columns})

    def __iter__(self) -> Any:
        """The names of the tables that hold rows."""
        return iter(self._table_names())

    def __dir__(self) -> list[str]:
        """The tables that hold rows, and those that can be made."""
        return self._table_names()

    def _load_frame(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    def _table_names(self) -> list[str]:
        raise NotImplementedError


class ReportTables(Tables):
    """The tables of several reports, with the report of each row in column `report`.

    A trace that was not asked for by name is read from the files when it is used.
    """

    def __init__(self, reports: Sequence[Report], options: Options) -> None:
        self._reports = reports
        self._options = options
        self._traces: dict[str, pd.DataFrame] = {}

    def _load_frame(self, name: str) -> pd.DataFrame:
        requested = self._options.tables
        if name not in TRACES or requested is not None or any(name in r.tables for r in self._reports):
            return self._frame_from_reports(name, self._reports)
        if name not in self._traces:
            self._traces[name] = self._frame_from_reports(name, list(self._read_trace(name)))
        return self._traces[name]

    def _read_trace(self, name: str) -> Iterator[Report]:
        from dataclasses import replace

        from nsw.readers.detect import read_many

        trace_options = replace(self._options, tables=frozenset({name}))
        return read_many([Path(r.path) for r in self._reports if r.tool is not None], trace_options)

    def _frame_from_reports(self, name: str, reports: Sequence[Report]) -> pd.DataFrame:
        from nsw.tables import full_rows

        table_rows = [
            row | {"report": r.path} for r in reports if name in r.tables for row in full_rows(name, r.tables[name])
        ]
        return frame_of(table_rows, TABLES[name].column_names)

    def _table_names(self) -> list[str]:
        present = {name for r in self._reports for name, data in r.tables.items() if len(data)}
        return sorted(present | (TRACES if self._options.tables is None and present else set()))


class Reports(Result):
    """Files that were read.

    Attributes:
        tables: Their tables as pandas frames.
    """

    def __init__(self, reports: Sequence[Report], options: Options) -> None:
        self._reports = list(reports)
        self.tables = ReportTables(self._reports, options)

    def __repr__(self) -> str:
        bad = sum(any(p.severity == "error" for p in r.problems) for r in self._reports)
        broken = f", {bad} with errors" if bad else ""
        return f"<{plural(len(self._reports), 'report')}{broken}; tables: {', '.join(self.tables) or 'none'}>"

    @property
    def _blocks(self) -> Sequence[Block]:
        from nsw.analysis.answer.registry import answer_blocks
        from nsw.analysis.kernels import kernel_table_of_report
        from nsw.analysis.of_reports import ReadReport, summarize_reports

        names = [Path(report.path).name for report in self._reports]
        read = [
            ReadReport(name if names.count(name) == 1 else r.path, r.tables, kernel_table_of_report(r.tables), r.failed)
            for name, r in zip(names, self._reports, strict=True)
            if r.tables
        ]
        if not read:
            return [Note(HEADLINE, repr(self))]
        return list(
            answer_blocks(summarize_reports(read[0].name if len(read) == 1 else plural(len(read), "report"), read))
        )

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with any of them but warnings."""
        return not any(p.severity == "error" for r in self._reports for p in r.problems)

    @property
    def files(self) -> pd.DataFrame:
        """One row a file: report (its path), tool, format, tool_version."""
        columns = ("report", "tool", "format", "tool_version")
        rows = [{"report": r.path, "tool": r.tool, "format": r.format, "tool_version": r.tool_version}
                for r in self._reports]  # fmt: skip
        return frame_of(rows, columns)

    @property
    def problems(self) -> pd.DataFrame:
        """One row a problem: report, line (of a text file), severity (error, warning, aside), message, fix."""
        rows = [
            {"report": r.path, "line": p.line, "severity": p.level, "message": p.message, "fix": p.fix}
            for r in self._reports for p in r.problems
        ]  # fmt: skip
        return frame_of(rows, ("report", "line", "severity", "message", "fix"))


def read(
    paths: Files,
    *,
    tables: Names | None = None,
    steps: str | None = None,
    max_unpacked: int | None = None,
    max_memory: int | None = None,
    max_time: float | None = None,
) -> Reports:
    """Read reports of any profiler. A file that cannot be read is a row of `problems`, never an exception.

    Files of 8 MB together are read in this process, others in processes with limits.

    Args:
        paths: A file or several; of a folder that is no report itself, all reports below it.
        tables: Only these tables; by default all but the traces, which are read when they are used.
        steps: The NVTX range that marks an iteration of the program.
        max_unpacked: How many bytes a packed file may unpack to.
        max_memory: How many bytes of memory such a process may take.
        max_time: How many seconds of processor time it may take for each file.

    Raises:
        UsageError: There is no such table.
    """
    from nsw.readers.detect import ReportSearch, read_many
    from nsw.readers.model import Options

    names = None if tables is None else [tables] if isinstance(tables, str) else list(tables)
    for name in names or ():
        if name not in TABLES:
            raise UsageError(
                f"there is no table {name}", hint=did_you_mean(name, TABLES) or f"tables: {', '.join(TABLES)}"
            )
    limits = Limits(max_memory, max_time)
    options = Options(frozenset(names) if names else None, max_unpacked=max_unpacked, steps=steps, limits=limits)
    search = ReportSearch()
    report_files = list(search.find_files_to_read(path_list(paths) or []))
    return Reports(list(search.drop_unrecognised_reports(read_many(report_files, options))), options)


# --- campaigns -----------------------------------------------------------------------------------------------


class CampaignTables(Tables):
    """The campaign's tables, each row with the parameters of its run as columns.

    A parameter whose name is that of a column gets the prefix `param_`. A trace (`gpu_trace` and the others that end
    so) is read from the collected reports when it is asked for, and kept in memory.
    """

    def __init__(self, folder: folders.CampaignFolder) -> None:
        self._folder = folder
        self._traces: dict[tuple[str, ...], pd.DataFrame] = {}

    def _load_frame(self, name: str) -> pd.DataFrame:
        import pandas as pd

        table = load_table(self._folder, name)
        frame = pd.DataFrame(columns=list(TABLES[name].column_names)) if table is None else table.to_pandas()
        with results(self._folder) as campaign_results:
            if name in TRACES:
                frame = self._add_missing_traces(name, frame, campaign_results)
            return with_parameters(frame, {run.id: run.params for run in campaign_results.runs})

    def _add_missing_traces(self, name: str, frame: pd.DataFrame, campaign_results: Results) -> pd.DataFrame:
        """The table with the rows of those runs whose reports were read without this trace."""
        import pandas as pd

        traced_runs = set(frame["run"])
        missing = [
            run
            for run in campaign_results.runs
            if run.state is State.DONE and run.repeat > 0 and run.reports and run.id not in traced_runs
        ]
        key = (name, *(run.id for run in missing))
        if key not in self._traces:
            self._traces[key] = frame_of(campaign_results.trace(name, missing), TABLES[name].column_names)
        traces = self._traces[key]
        parts = [part for part in (frame, traces) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else frame

    def _table_names(self) -> list[str]:
        table_names = {path.stem for path in table_files(self._folder)}
        return sorted(
            table_names | (TRACES if self._folder.trusted and any(self._folder.reports.glob("*/*")) else set())
        )


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
        iteration_times: pd.DataFrame
        kernels: pd.DataFrame
        model: pd.DataFrame
        perturbation: pd.DataFrame
        stragglers: pd.DataFrame
        roofline: pd.DataFrame
        scaling: pd.DataFrame
    else:

        def __getattr__(self, name: str) -> pd.DataFrame:
            if name not in FLAT:
                raise AttributeError(_unknown_name_message("answer", name, FLAT))
            return frame_of(flat_rows(self._summary(), name), ())

    @property
    def headline(self) -> str:
        """The answer in one line."""
        return find_headline(self.blocks)

    @property
    def findings(self) -> list[str]:
        """What nsw found, a sentence or two each."""
        return [finding.text for finding in self._summary().findings]

    @property
    def blocks(self) -> list[Block]:
        """What `nsw summarize` shows, each with the tables and cases that prove it, as `Campaign.table` takes them."""
        from nsw.analysis.answer.registry import answer_blocks

        return list(answer_blocks(self._summary(), full=False))

    def __dir__(self) -> list[str]:
        """The tables, the headline and the findings."""
        return sorted([*FLAT, "blocks", "findings", "headline"])

    def _summary(self) -> Any:
        with results(self._folder) as campaign_results:
            return campaign_results.summary


class Campaign(Result):
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
        return f"<nsw campaign {self.id} on site {self.site}: {headline(self.counts)}>"

    @property
    def _blocks(self) -> Sequence[Block]:
        from nsw.analysis.answer.registry import answer_blocks

        with results(self._campaign_folder) as campaign_results:
            return list(answer_blocks(campaign_results.summary))

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
            return _with_units(pd.DataFrame([flat_run(run, jobs) for run in campaign_results.runs]), UNITS_OF_RUNS)

    @property
    def problems(self) -> pd.DataFrame:
        """One row a problem of a report: run, report, severity (error, warning or note), message, fix."""
        with results(self._campaign_folder) as campaign_results:
            columns = ("run", "report", "severity", "message", "fix")
            return frame_of([dict(zip(columns, p, strict=True)) for p in campaign_results.problems], columns)

    def compare(self, other: Campaign | str | Path, *, by: By = "case", same: float = EQUIVALENCE) -> Compared:
        """Compare another campaign, case or report with this campaign, as `nsw compare THIS OTHER` does.

        Args:
            other: What is compared with this campaign.
            by: What is compared: case, figure, kernel, class, range, metric or function.
            same: Differences below count as none, 0.01 being 1 %.

        Raises:
            UsageError, CampaignError: As `compare` of this module.
        """
        return compare(self, other, by=by, same=same, root=self.folder.parent)

    @property
    def table_names(self) -> list[str]:
        """The tables that have rows, as `table` takes them, and the traces, which are read when they are asked for."""
        with results(self._campaign_folder) as campaign_results:
            summary = campaign_results.summary
        return list(dict.fromkeys([*(name for name in FLAT if flat_rows(summary, name)), *_OWN_TABLES, *self.tables]))

    def table(self, name: str, cases: Names = ()) -> pd.DataFrame:
        """A table by its name, of `answers`, of `tables`, or `runs` or `problems`; each row with its case.

        Args:
            name: The table, as `nsw summarize --table` takes it.
            cases: Only rows of these cases; all if none is named.

        Raises:
            UsageError: There is no such table, or no such case.
        """
        case_of = dict(zip(self.runs["id"], self.runs["case"], strict=True))
        table_names, case_names = (*FLAT, *_OWN_TABLES, *TABLES), dict.fromkeys(case_of.values())
        for kind, word, known in (
            ("table", name, table_names),
            *(("case", case, case_names) for case in name_tuple(cases)),
        ):
            if word not in known:
                raise UsageError(_unknown_name_message(kind, word, known))
        source: Any = self.answers if name in FLAT else self if name in _OWN_TABLES else self.tables
        frame: pd.DataFrame = getattr(source, name)
        case = frame["run"].map(case_of) if "run" in frame else frame.get("case")
        if "case" not in frame and case is not None:
            frame.insert(0, "case", case)
        return frame[case.isin(name_tuple(cases))] if cases and case is not None else frame

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
        from nsw.campaign.clean import open_cleaning

        with open_cleaning(self._campaign_folder) as cleaning:
            if not cleaning.leftovers.files(include_uncollected=everything):
                return 0
            cleaning.remove(include_uncollected=everything)
            return cleaning.leftovers.freed_bytes(include_uncollected=everything)

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

        with files_on_site(self._campaign_folder, name_tuple(runs), name_tuple(files), Selection()) as site_files:
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


class CampaignsTables(Tables):
    """The stored tables of several campaigns: column `campaign`, then `run` and its parameters, then the rest."""

    def __init__(self, combined: CombinedTables) -> None:
        self._combined = combined

    def _load_frame(self, name: str) -> pd.DataFrame:
        frame: pd.DataFrame = self._combined.table(name).to_pandas()
        return frame

    def _table_names(self) -> list[str]:
        return sorted(name for name in self._combined.names if name in TABLES)


class Campaigns(Sequence[Campaign]):
    """Several campaigns, the oldest first.

    Attributes:
        tables: Their tables, each as one pandas frame.
    """

    def __init__(self, campaign_folders: Sequence[folders.CampaignFolder]) -> None:
        self._combined = CombinedTables(campaign_folders)
        self.tables = CampaignsTables(self._combined)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'nsw campaign')}; tables: {', '.join(self.tables) or 'none'}>"

    def __len__(self) -> int:
        """How many campaigns there are."""
        return len(self._combined.folders)

    def __getitem__(self, at: Any) -> Any:
        """A campaign, or those of a slice."""
        chosen = self._combined.folders[at]
        return Campaigns(chosen) if isinstance(at, slice) else Campaign(chosen)

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run: campaign, id (the tables' `run`), state, times, parameters (`param_state` for a clash)."""
        return _with_units(self._combined.table("runs").to_pandas(), UNITS_OF_RUNS)


def open_all(root: str | Path | None = None) -> Campaigns:
    """All campaigns under a folder of campaigns, the oldest first, with one frame for each table.

    Args:
        root: Where campaigns are; None: NSW_ROOT or ./campaigns.

    Raises:
        CampaignError: There is none.
    """
    parent = folders.root(Path(root) if root is not None else None)
    return Campaigns(folders.existing(parent) or [folders.find(parent, None)])


# --- comparisons ---------------------------------------------------------------------------------------------


class Compared(Result):
    """What `nsw compare` shows."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __repr__(self) -> str:
        return f"<nsw comparison: {self.headline}>"

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return find_headline(self._blocks)

    @property
    def findings(self) -> list[str]:
        """What did it, and what would decide what cannot be told, a sentence or two each."""
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
        from nsw.analysis.compared_screen import comparison_blocks

        return comparison_blocks(self._comparison)


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
        by: What is compared: case, figure, kernel, class, range, metric or function.
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
