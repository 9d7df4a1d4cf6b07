"""`nsw logs`: what a run or a build printed, at its end or while it goes on: brought files, else the site's own."""

from __future__ import annotations

import base64
import binascii
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from nsw.campaign.selection import Selection, default_run, find_run, job_ids, matching_rows, selected
from nsw.engine import folder as folders
from nsw.engine.collect import collected_attempt_folder, read_status
from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder, run_folder
from nsw.engine.ledger_rows import ENDED, SCRATCH, BuildRow, RunRow
from nsw.errors import NswError, UnreachableError
from nsw.schedulers.model import Native
from nsw.transport.model import Transport, connect

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nsw.engine.ledger import Ledger

__all__ = ["MOST_SHOWN", "Grown", "LeftAlone", "Output", "Row", "find_row", "follow"]

Row: TypeAlias = RunRow | BuildRow

MOST_SHOWN: Final = 1 << 26  # bytes
_FIRST: Final = 1 << 16  # bytes of what is followed that are shown at once
_MOST_GROWN: Final = 1 << 18  # bytes of a file a look at most; what is more comes with the next
_PAUSE_S: Final = 1.0
_PATIENCE: Final = 30  # looks in a row that may fail
_LOOK_S: Final = 60.0
# Prints the file's size and, in base64 since output need not be text, what lies behind a place. A place below zero
# counts from the end. A file that shrank was written anew, and is read from its beginning.
_ADDED: Final = r"""
size=$(wc -c 2>/dev/null <"$1") || { echo absent; exit 0; }
at=$2
if [ "$at" -lt 0 ]; then at=$((size + at)); [ "$at" -ge 0 ] || at=0; fi
[ "$at" -le "$size" ] || at=0
echo "$at"
tail -c "+$((at + 1))" -- "$1" | head -c "$3" | base64 -w 0
"""


def find_row(folder: CampaignFolder, run: str | None, selection: Selection, *, follow: bool = False) -> Row:
    """Return the run, build or reduction whose output is to be shown.

    Args:
        folder: The campaign.
        run: Its id, a part of it, its case, pass or job id; None: the only one that failed, else as `default_run`.
        selection: The runs and builds to choose from.
        follow: Whether the output is to be followed: prefer a run that runs to one that failed.

    Raises:
        UsageError: There is none, or there are several.
    """
    with ledger_to_read(folder) as ledger:
        rows: list[Row] = selected(ledger, [*ledger.builds(), *ledger.runs()], selection)
        if run is None:
            return default_run(rows, follow=follow)
        # a reduction is shown when it is named in full: its output is of interest when it failed
        exact = [row for row in (*rows, *ledger.reductions()) if row.id == run]
        several = exact or matching_rows(run, rows, job_ids(ledger, rows))
        return default_run(several, follow=follow) if several else find_run(rows, run)


class Output:
    """The output of a run as far as it is there: what was brought of this attempt, else the site's own files.

    A campaign that was made elsewhere names the site: no connection is made, and only files in its folder are read.

    Raises:
        CampaignError: It was made elsewhere, and the output is not in its folder, or the run goes on.
    """

    def __init__(self, folder: CampaignFolder, row: Row) -> None:
        with ledger_to_read(folder) as ledger:
            self._site, self._scratch = ledger.site(), ledger.meta(SCRATCH)
            self._log = _log_name(ledger, self._site, row)
        self._folder, self._row = folder, row
        self._collected_folder = (
            None if isinstance(row, BuildRow) else collected_attempt_folder(folder, row.id, row.attempt)
        )
        if not folder.trusted:
            inside = Path(self._scratch).parts[-2:] == (folder.id, "scratch")
            if row.state not in ENDED or not (inside or self._collected_folder):
                folder.require_trust()
            self._scratch = str(folder.path / "scratch")  # it may have been moved
        self._transport: Transport | None = None
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._transport is not None:
            self._transport.close()

    def read_end(self, name: str) -> bytes | None:
        """The end of `stdout` or `stderr`.

        Raises:
            UnreachableError: The site does not answer and nothing was brought.
        """
        if self._collected_folder is not None and self._row.state in ENDED:
            content = self._folder.tail(self._collected_folder / name, MOST_SHOWN)
            if content is not None:
                return content
        return self._read_on_site(f"{run_folder(self._scratch, self._row.id, self._row.attempt)}/{name}", needed=True)

    def job_log(self) -> bytes | None:
        """The end of what the job's script itself printed; None also where there was no job."""
        if not self._row.submission:
            return None
        return self._read_on_site(f"{self._scratch}/jobs/{self._log}", needed=self._collected_folder is None)

    def _read_on_site(self, path: str, *, needed: bool) -> bytes | None:
        if not self._folder.trusted:
            return self._folder.tail(Path(path), MOST_SHOWN)

        try:
            # without the folder's lock, which who drives it holds
            self._transport = self._transport or connect(self._site)
            return self._transport.tail(path, MOST_SHOWN)
        except NswError as fault:
            if needed:
                raise
            self.notes.append(f"what its job's script printed is on the site, which does not answer: {fault.message}")
            return None


def _log_name(ledger: Ledger, site: dict[str, Any], row: Row) -> str:
    """The file that a job's own output goes into."""
    from nsw.schedulers.batch import LOGIN
    from nsw.schedulers.create import adapter_of
    from nsw.schedulers.local import Host

    on_login = ledger.job_place(row.job) == LOGIN
    adapter = Host() if on_login else adapter_of(site.get("scheduler", "local"))
    if adapter is None or not row.submission:
        return f"{row.submission}.log"
    return adapter.log_name(row.submission, Native.parse(ledger.native_id(row.submission)), row.task)


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


def follow(folder: CampaignFolder, row: Row) -> Generator[Row | Grown | LeftAlone]:
    """What a run prints until it is over, attempt after attempt; its row at each look.

    Raises:
        UnreachableError: The site did not answer for long.
    """
    with ledger_to_read(folder) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
    with closing(connect(site)) as transport:
        following = _Following(folder, transport, scratch)
        while row.state not in ENDED:
            row = yield from following.attempt(row)
            if not folders.is_driven(folder) and row.state not in ENDED:
                yield LeftAlone(following.is_over(row))
                return


@dataclass(frozen=True, slots=True)
class _Following:
    """Follows a run from attempt to attempt."""

    folder: CampaignFolder
    transport: Transport
    scratch: str

    def attempt(self, row: Row) -> Generator[Row | Grown, None, Row]:
        """An attempt's output as it grows, or nothing before the first; the row once it is over, or a later one began.

        A run that has not begun is left once nobody drives the campaign.
        """
        home, attempt, failures = run_folder(self.scratch, row.id, row.attempt), row.attempt, 0
        positions = {f"{home}/{name}": -_FIRST for name in ("stdout", "stderr") if attempt}
        while True:
            yield row
            with ledger_to_read(self.folder) as ledger:
                others: list[Row] = [*ledger.builds(), *ledger.reductions()]
                same: Sequence[Row] = ledger.runs_named([row.id]) or [one for one in others if one.id == row.id]
            now = same[0]
            over = now.attempt != attempt or now.state in ENDED
            try:
                # asked before the files, so that nothing is missed that it printed last
                over = over or (not folders.is_driven(self.folder) and (attempt == 0 or self.is_over(row)))
                added = _read_new_bytes(self.transport, positions) if positions else {}
                failures = 0
            except UnreachableError:
                over, added, failures = False, {}, failures + 1
                if failures > _PATIENCE:
                    raise
            for path in positions:
                yield Grown(attempt, path.rpartition("/")[2], added.get(path, b""))
            if over and not added:
                yield now
                return now
            row = now if now.attempt == attempt else row
            if not added:
                time.sleep(_PAUSE_S)

    def is_over(self, row: Row) -> bool:
        """Whether the attempt itself says that it is over."""
        if row.attempt == 0:
            return False
        status = read_status(self.transport, run_folder(self.scratch, row.id, row.attempt))
        return status is not None and status.state in {"done", "failed", "withdrawn"}


def _read_new_bytes(transport: Transport, places: dict[str, int]) -> dict[str, bytes]:
    """Read what was added to each file behind its offset, in one round trip; moves the offsets.

    Raises:
        UnreachableError: The site could not be asked.
    """
    commands = [["bash", "-c", _ADDED, "nsw", path, str(place), str(_MOST_GROWN)] for path, place in places.items()]
    added: dict[str, bytes] = {}
    for path, done in zip(list(places), transport.run_many(commands, timeout=_LOOK_S), strict=True):
        if done.returncode != 0 or done.timed_out:
            raise UnreachableError(f"{path} cannot be read: {done.stderr.strip() or 'no answer'}")
        start, _, text = done.stdout.partition("\n")
        if not start.isdigit():
            continue  # it is not there yet
        try:
            content = base64.b64decode(text)
        except binascii.Error:
            raise UnreachableError(f"{path} cannot be read: its content arrived damaged") from None
        places[path] = int(start) + len(content)
        if content:
            added[path] = content
    return added
