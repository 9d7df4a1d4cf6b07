"""What a run or a build printed, at its end or while it goes on: files that were brought, else the site's own."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nsw.campaign import folder as folders
from nsw.campaign.collect import brought_folder
from nsw.campaign.folder import run_folder
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import ENDED, BuildRow, Ledger
from nsw.campaign.ledger_meta_keys import SCRATCH
from nsw.campaign.owning_user import owner_if_other, tail
from nsw.campaign.runs_by_name import one_of, the_one
from nsw.campaign.select_runs import Selection, named, selected
from nsw.errors import NswError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import RunRow
    from nsw.transport.model import Transport

MOST_SHOWN = 1 << 26  # bytes
_FIRST = 1 << 16  # bytes of what is followed that are shown at once
_PAUSE_S = 1.0
_PATIENCE = 30  # looks in a row that may fail


def row_named(
    folder: CampaignFolder, run: str | None, selection: Selection, *, follow: bool = False
) -> RunRow | BuildRow:
    """The one run, build or reduction that is meant; with `follow` one that runs rather than one that failed.

    Raises:
        UsageError: None is, or several are.
    """
    with Ledger(folder.ledger, read_only=True) as ledger:
        known: list[RunRow | BuildRow] = selected(ledger, [*ledger.builds(), *ledger.runs()], selection)
        if run is None:
            return the_one(known, follow=follow)
        # a reduction is shown when it is named in full: its output is of interest when it failed
        exact = [row for row in (*known, *ledger.reductions()) if row.id == run]
        several = exact or named(run, known, job_ids(ledger, known))
        return the_one(several, follow=follow) if several else one_of(known, run)


class Output:
    """The output of a run as far as it is there: what was brought of this attempt, else the site's own files.

    Another user's campaign names a site and a folder of that user's choice: no connection is made, and only files of
    that user on this machine are read.

    Args:
        folder: The campaign.
        row: The run, build or reduction.
    """

    def __init__(self, folder: CampaignFolder, row: RunRow | BuildRow) -> None:
        from nsw.schedulers.batch_and_login_node import LOGIN
        from nsw.schedulers.create import adapter_of
        from nsw.schedulers.host import Host
        from nsw.schedulers.submission_ids import Native

        with Ledger(folder.ledger, read_only=True) as ledger:
            self._site, self._scratch = ledger.site(), ledger.meta(SCRATCH)
            native = ledger.native_id(row.submission) if row.submission else None
            on_login = ledger.place_of(row.job) == LOGIN
        adapter = Host() if on_login else adapter_of(self._site.get("scheduler", "local"))
        self._folder, self._row = folder, row
        self._brought = None if isinstance(row, BuildRow) else brought_folder(folder, row.id, row.attempt)
        self._log = f"{row.submission}.log"
        if adapter is not None and row.submission:
            self._log = adapter.log_name(row.submission, Native.parse(native), row.task)
        self._transport: Transport | None = None
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._transport is not None:
            self._transport.close()

    def of(self, name: str) -> bytes | None:
        """The end of `stdout` or `stderr`.

        Raises:
            UnreachableError: The site does not answer and nothing was brought.
        """
        if self._brought is not None and self._row.state in ENDED:
            brought = tail(self._folder.path, (self._brought / name,), MOST_SHOWN)
            if brought is not None:
                return brought
        return self._there(f"{run_folder(self._scratch, self._row.id, self._row.attempt)}/{name}", needed=True)

    def job_log(self) -> bytes | None:
        """The end of what the job's script itself printed; None also where there was no job."""
        if not self._row.submission:
            return None
        return self._there(f"{self._scratch}/jobs/{self._log}", needed=self._brought is None)

    def _there(self, path: str, *, needed: bool) -> bytes | None:
        if owner_if_other(self._folder.path):
            return tail(self._folder.path, (Path(path),), MOST_SHOWN)
        from nsw.transport.model import connect

        try:
            # without the folder's lock, which who drives it holds
            self._transport = self._transport or connect(self._site)
            return self._transport.tail(path, MOST_SHOWN)
        except NswError as fault:
            if needed:
                raise
            self.notes.append(f"what its job's script printed is on the site, which does not answer: {fault.message}")
            return None


@dataclass(frozen=True, slots=True)
class Grown:
    """What a run added to `stdout` or `stderr`; `attempt` counts from 1."""

    attempt: int
    stream: str
    content: bytes


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Nobody drives the campaign, so nothing more is heard of the run; `over`: it says itself that it has ended."""

    over: bool


def can_be_followed(folder: CampaignFolder, row: RunRow | BuildRow) -> bool:
    """Whether it is not over, and its files may be asked for where they are written."""
    return row.state not in ENDED and not owner_if_other(folder.path)


def follow(folder: CampaignFolder, row: RunRow | BuildRow) -> Generator[RunRow | BuildRow | Grown | LeftAlone]:
    """What a run prints until it is over, attempt after attempt; its row at each look.

    Raises:
        UnreachableError: The site did not answer for long.
    """
    from nsw.transport.model import connect

    with Ledger(folder.ledger, read_only=True) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
    with closing(connect(site)) as transport:
        it = _Following(folder, transport, scratch)
        while row.state not in ENDED:
            row = yield from it.attempt(row) if row.attempt else it.begun(row)
            if not folders.is_driven(folder) and row.state not in ENDED:
                yield LeftAlone(bool(row.attempt) and it.is_over(row))
                return


class _Following:
    """Follows a run from attempt to attempt."""

    def __init__(self, folder: CampaignFolder, transport: Transport, scratch: str) -> None:
        self._folder = folder
        self._transport = transport
        self._scratch = scratch

    def begun(self, row: RunRow | BuildRow) -> Generator[RunRow | BuildRow, None, RunRow | BuildRow]:
        """The row once it has an attempt or is over, or nobody drives it."""
        while row.attempt == 0 and row.state not in ENDED and folders.is_driven(self._folder):
            yield row
            time.sleep(_PAUSE_S)
            row = _now(self._folder, row.id)
        yield row
        return row

    def attempt(self, row: RunRow | BuildRow) -> Generator[RunRow | BuildRow | Grown, None, RunRow | BuildRow]:
        """An attempt's output as it grows; the row once the attempt is over, or a later one has begun."""
        from nsw.campaign.growing_files import GrowingFiles

        home = run_folder(self._scratch, row.id, row.attempt)
        paths = [f"{home}/stdout", f"{home}/stderr"]
        files, failures, attempt = GrowingFiles(self._transport, paths, _FIRST), 0, row.attempt
        while True:
            yield row
            now = _now(self._folder, row.id)
            over = now.attempt != row.attempt or now.state in ENDED
            try:
                # asked before the files, so that nothing is missed that it printed last
                over = over or (not folders.is_driven(self._folder) and self.is_over(row))
                added = files.added()
                failures = 0
            except UnreachableError:
                over, added, failures = False, {}, failures + 1
                if failures > _PATIENCE:
                    raise
            for path in paths:
                yield Grown(attempt, path.rpartition("/")[2], added.get(path, b""))
            if over and not added:
                yield now
                return now
            row = now if now.attempt == row.attempt else row
            if not added:
                time.sleep(_PAUSE_S)

    def is_over(self, row: RunRow | BuildRow) -> bool:
        """Whether the attempt itself says that it is over."""
        from nsw.campaign.judge import read_status

        status = read_status(self._transport, run_folder(self._scratch, row.id, row.attempt))
        return status is not None and status.state in {"done", "failed", "withdrawn"}


def _now(folder: CampaignFolder, id_: str) -> RunRow | BuildRow:
    with Ledger(folder.ledger, read_only=True) as ledger:
        others: list[RunRow | BuildRow] = [*ledger.builds(), *ledger.reductions()]
        found: Sequence[RunRow | BuildRow] = ledger.runs_named([id_]) or [one for one in others if one.id == id_]
    return found[0]
