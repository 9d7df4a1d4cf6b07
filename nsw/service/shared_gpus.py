"""What a campaign's answer says of runs that may have shared a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.placement import Span, pairs, sentences
from nsw.campaign.judge_run_state import parse_status
from nsw.campaign.ledger_rows import State
from nsw.campaign.owning_user import open_file
from nsw.site.scheduler_and_transport_names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow

_LONGEST = 1 << 16  # bytes of a status file


def shared_gpus(folder: CampaignFolder, ledger: Ledger, runs: Sequence[RunRow]) -> list[str]:
    """A sentence for each way in which runs that are done shared a GPU; [] where none did."""
    site = ledger.site()
    if site.get("replay"):
        return []
    spans = [
        Span(run.id, run.host, run.started, run.ended)
        for run in runs
        if run.gpus and run.state is State.DONE and run.host and run.started is not None and run.ended is not None
    ]
    numbered_alike = site.get("scheduler") == LOCAL  # elsewhere a job may count only its own GPUs: 0 of each is another

    def gpus_of(run: str) -> frozenset[str] | None:
        names = _given(folder, run)
        if names is None or numbered_alike:
            return names
        return frozenset(f"{run}: {name}" if name.isdigit() else name for name in names)

    return sentences(pairs(spans, gpus_of))


def _given(folder: CampaignFolder, run: str) -> frozenset[str] | None:
    """What CUDA_VISIBLE_DEVICES was to the run's job script; None where its status file is not here."""
    try:
        with open_file(folder.path, folder.reports / run / "status") as file:
            status = parse_status(file.read(_LONGEST))
    except OSError:
        return None
    return None if status is None else frozenset(filter(None, (status.gpus or "").split(",")))
