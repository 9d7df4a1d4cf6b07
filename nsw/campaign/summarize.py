"""`nsw summarize`, and `nsw.open` in Python: what a campaign shows."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsw.campaign.answers import is_good, repeat_command, summary_of
from nsw.campaign.selection import Selection, job_ids, selected
from nsw.engine.ledger_rows import NOTE, SITE, STOPPED, Problem, RunRow
from nsw.engine.look import look
from nsw.wording import headline

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from nsw.analysis.blocks import Lanes
    from nsw.analysis.summary import Summary
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger

__all__ = ["Results", "results"]


class Results:
    """What a campaign shows, of the cases of some runs or of all, as long as its ledger is open."""

    def __init__(self, folder: CampaignFolder, ledger: Ledger, selection: Selection) -> None:
        self.folder = folder
        self._ledger = ledger
        every = ledger.runs()
        cases = {run.case_id for run in selected(ledger, every, selection)} if selection else None
        self._cases = sorted(cases or ())
        self.runs: list[RunRow] = [run for run in every if cases is None or run.case_id in cases]
        self.parameters: frozenset[str] = frozenset(key for run in every for key in run.params)
        self.site: str = ledger.meta(SITE)
        self.note: str | None = ledger.meta(NOTE)
        self.is_recorded = bool(ledger.site().get("replay"))  # nothing of it was measured where it ran

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        return self._ledger.counts()

    @property
    def headline(self) -> str:
        """The counts in words, with what runs lack."""
        return headline(self.counts, self._ledger.incomplete(), self._ledger.unreadable())

    @property
    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run."""
        return self._ledger.calls()

    @property
    def stopped(self) -> str | None:
        """Why nothing new is submitted."""
        return self._ledger.meta(STOPPED)

    def is_good(self, only: Sequence[str] | None = None) -> bool:
        """Whether every run (of `only`) is done, its reports were read and it printed every required figure."""
        return is_good(self._ledger, only)

    def repeat_command(self, option: str) -> str:
        """The command that repeats what failed; `which` is the option that names the campaign, or empty."""
        return repeat_command(self.folder, self._ledger, option)

    @property
    def jobs(self) -> dict[str, str]:
        """The scheduler's job id of each run."""
        return job_ids(self._ledger, self.runs)

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with reports."""
        return self._ledger.problems()

    @cached_property
    def summary(self) -> Summary:
        """The answer."""
        summary = summary_of(self.folder, self._ledger)
        return summary.only(self._cases) if self._cases else summary

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table of the reports."""
        from nsw.engine.tables import load_rows

        ids = {run.id for run in self.runs}
        return [row for row in load_rows(self.folder, table) if row["run"] in ids]

    def trace(self, table: str, runs: Sequence[RunRow]) -> list[dict[str, Any]]:
        """The rows of one trace; it raises what `traces` does."""
        return [row for _, tables in self.traces(runs, [table]) for row in tables.get(table, [])]

    def traces(
        self, runs: Sequence[RunRow], names: Collection[str]
    ) -> Iterator[tuple[RunRow, dict[str, list[dict[str, Any]]]]]:
        """The rows of traces by their names, run after run, which are read from the collected reports.

        Raises:
            CampaignError: The campaign was made elsewhere, and so were the reports and the program that exports them.
        """
        from nsw.engine.read import read_traces

        return read_traces(self.folder, self._ledger, runs, names)

    def timeline(self, case: str | None = None) -> Lanes | None:
        """One iteration of a case by process and stream, read from its report; None where no timeline tells of any.

        Args:
            case: Which; None: the first one of which there is a timeline.

        Raises:
            CampaignError: As `traces`.
        """
        from nsw.analysis.iteration_lanes import iteration_lanes

        traced_runs = {row["run"] for row in self.rows("iterations")}
        run = next((run for run in self.runs if run.id in traced_runs and case in {None, run.case_id}), None)
        if run is None:
            return None
        names = ("gpu_trace", "nvtx_trace", "iteration_trace")
        ((_, tables),) = self.traces([run], names)
        return iteration_lanes(run.case_id, *(tables.get(name, []) for name in names))


@contextmanager
def results(folder: CampaignFolder, selection: Selection = Selection()) -> Iterator[Results]:  # noqa: B008  it is frozen
    """What a campaign shows, as it is now."""
    with look(folder) as ledger:
        yield Results(folder, ledger, selection)
