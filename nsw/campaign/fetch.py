"""`nsw fetch`: files of runs that were left on the site, such as reports for NVIDIA's own programs; how far they are.

A transport says of each part that came; events of it are few, and none for a transfer that is over at once.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.campaign.selection import Selection, job_ids, require_matches, selected
from nsw.engine.driven import ledger_to_read
from nsw.engine.events import Downloading
from nsw.engine.folder import CampaignFolder, run_folder
from nsw.engine.ledger_rows import SCRATCH
from nsw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.transport.model import Transport

__all__ = ["GUI_FILES", "DownloadProgress", "FileThere", "FilesThere", "files_on_site", "watch_downloads"]

# what Nsight Systems, Nsight Compute and the Visual Profiler open
GUI_FILES: Final = ("*.nsys-rep", "*.qdrep", "*.ncu-rep", "*.nsight-cuprof-report", "*.nvvp")
_EVERY_S: Final = 0.5
_OVER_S: Final = 5.0  # the rate is that of the last seconds


@dataclass(frozen=True, slots=True)
class FileThere:
    """A file on the site, and where it goes here; `name` is its path below the runs' folder, `size` bytes."""

    path: str
    name: str
    local_path: Path
    size: int

    @property
    def is_here(self) -> bool:
        """Whether a file of its size is here already."""
        return self.local_path.exists() and self.local_path.stat().st_size == self.size


@dataclass(frozen=True, slots=True)
class FilesThere:
    """Files of runs on the site, while the connection is open."""

    files: list[FileThere]
    limit: int | None  # bytes that the site's limits.download allows without asking
    _transport: Transport

    @property
    def missing(self) -> list[FileThere]:
        """Those that are not here yet."""
        return [file for file in self.files if not file.is_here]

    @property
    def size(self) -> int:
        """The bytes of those that are not here yet."""
        return sum(file.size for file in self.missing)

    @property
    def is_over_limit(self) -> bool:
        """Whether they are more than may be brought without asking."""
        return self.limit is not None and self.size > self.limit

    def bring(self, emit: Callable[[Downloading], object] = lambda _event: None) -> None:
        """Bring those that are not here yet, also where they are more than the limit: ask before.

        Args:
            emit: Called now and then with how far it is.

        Raises:
            UnreachableError: The site cannot be reached.
        """
        from nsw.transport.remote import RemoteTransport

        watch_downloads(self._transport, emit)
        if isinstance(self._transport, RemoteTransport):
            self._transport.allow(self.size)
        self._transport.get_many([(file.path, file.local_path) for file in self.missing])


@contextmanager
def files_on_site(
    folder: CampaignFolder, runs: Sequence[str], patterns: Sequence[str], selection: Selection
) -> Iterator[FilesThere]:
    """Look for files of runs on the site; those brought go into the campaign's folder `fetched`.

    Args:
        folder: The campaign.
        runs: Ids of runs, parts of them, cases or patterns; none: all.
        patterns: Of file names; none: reports for the GUIs.
        selection: Only of these runs.

    Raises:
        CampaignError: The campaign was made elsewhere, and so was the way to the site that it names.
        UsageError: No run has such a name, or none of them has begun.
        UnreachableError: The site cannot be reached.
    """
    from nsw.transport.model import connect
    from nsw.transport.remote import most_bytes

    folder.require_trust()
    with ledger_to_read(folder) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        rows = selected(ledger, ledger.runs(), selection)
        jobs = job_ids(ledger, rows)
    if runs:
        row_ids = {row.id for name in runs for row in require_matches("nsw fetch", name, rows, jobs)}
        rows = [row for row in rows if row.id in row_ids]
    homes = {run_folder(scratch, row.id, row.attempt): folder.path / "fetched" / row.id for row in rows if row.attempt}
    if not homes:
        raise UsageError("none of these runs has begun", hint="`nsw status --runs` lists them")
    with closing(connect(site)) as transport:
        listed = transport.list_many(dict.fromkeys(homes, tuple(patterns) or GUI_FILES))
        files = [
            FileThere(path, path.removeprefix(f"{scratch}/runs/"), homes[home] / entry.name, entry.size)
            for home, entries in listed.items()
            for entry in entries
            if (path := f"{home}/{entry.name}")
        ]
        yield FilesThere(files, most_bytes(site), transport)


def watch_downloads(transport: Transport, emit: Callable[[Downloading], object]) -> None:
    """Emit events of the files that a transport brings."""
    transport.progress = DownloadProgress(emit)


class DownloadProgress:
    """Called by a transport with (bytes here, of how many), as often as it likes.

    Args:
        emit: Called with an event now and then.
        now: Seconds of a clock that only goes forward.
    """

    def __init__(self, emit: Callable[[Downloading], object], now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._seen: deque[tuple[float, int]] = deque()  # when how much was here
        self._total = 0
        self._last = 0.0
        self._emitted = False

    def __call__(self, done: int, total: int) -> None:
        """So much is here."""
        now = self._now()
        if not self._seen or total != self._total or done < self._seen[-1][1]:  # a new transfer
            self._seen = deque([(now, done)])
            self._total, self._last, self._emitted = total, now, False
        is_over = done == total
        if now - self._last < _EVERY_S and not (is_over and self._emitted):
            if is_over:
                self._seen.clear()
            return
        while len(self._seen) > 1 and now - self._seen[0][0] > _OVER_S:
            self._seen.popleft()
        since, before = self._seen[0]
        self._seen.append((now, done))
        self._last, self._emitted = now, True
        self._emit(Downloading(done, total, (done - before) / (now - since) if now > since else None))
        if is_over:
            self._seen.clear()
