"""Files of runs that were left on the site, such as reports for NVIDIA's own programs: list them, bring them."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.campaign.downloading import watch_downloads
from nsw.campaign.folder import run_folder
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_meta_keys import SCRATCH
from nsw.campaign.owning_user import require_own
from nsw.campaign.select_runs import needed, selected
from nsw.errors import UsageError
from nsw.transport.remote import RemoteTransport, most_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.events import Downloading
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.select_runs import Selection
    from nsw.transport.model import Transport

# what Nsight Systems, Nsight Compute and the Visual Profiler open
GUI_FILES = ("*.nsys-rep", "*.qdrep", "*.ncu-rep", "*.nsight-cuprof-report", "*.nvvp")


@dataclass(frozen=True, slots=True)
class There:
    """A file on the site, and where it goes here; `name` is its path below the runs' folder, `size` bytes."""

    path: str
    name: str
    here: Path
    size: int

    @property
    def is_here(self) -> bool:
        """Whether a file of its size is here already."""
        return self.here.exists() and self.here.stat().st_size == self.size


@dataclass(frozen=True, slots=True)
class Found:
    """Files of runs on the site, while the connection is open."""

    files: list[There]
    limit: int | None  # bytes that the site's limits.download allows without asking
    _transport: Transport

    @property
    def missing(self) -> list[There]:
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
        missing = self.missing
        watch_downloads(self._transport, emit)
        if isinstance(self._transport, RemoteTransport):
            self._transport.allow(sum(file.size for file in missing))
        self._transport.get_many([(file.path, file.here) for file in missing])


@contextmanager
def on_site(
    folder: CampaignFolder, runs: Sequence[str], patterns: Sequence[str], selection: Selection
) -> Iterator[Found]:
    """Look for files of runs on the site; those brought go into the campaign's folder `fetched`.

    Args:
        folder: The campaign.
        runs: Ids of runs, parts of them, cases or patterns; none: all.
        patterns: Of file names; none: reports for the GUIs.
        selection: Only of these runs.

    Raises:
        CampaignError: The campaign is another user's, and so is the way to the site that it names.
        UsageError: No run has such a name, or none of them has begun.
        UnreachableError: The site cannot be reached.
    """
    from nsw.transport.model import connect

    require_own(folder.path)
    with Ledger(folder.ledger, read_only=True) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        rows = selected(ledger, ledger.runs(), selection)
        jobs = job_ids(ledger, rows)
    if runs:
        meant = {row.id for name in runs for row in needed("nsw fetch", name, rows, jobs)}
        rows = [row for row in rows if row.id in meant]
    chosen = [row for row in rows if row.attempt]
    if not chosen:
        raise UsageError("none of these runs has begun", hint="`nsw status --runs` lists them")
    wanted = tuple(patterns) or GUI_FILES
    with closing(connect(site)) as transport:
        homes = {run_folder(scratch, row.id, row.attempt): row.id for row in chosen}
        files = [
            There(path, path.removeprefix(f"{scratch}/runs/"), folder.path / "fetched" / homes[home] / entry.name,
                  entry.size)
            for home, entries in transport.list_many(dict.fromkeys(homes, wanted)).items()
            for entry in entries if (path := f"{home}/{entry.name}")
        ]  # fmt: skip
        yield Found(files, most_bytes(site), transport)
