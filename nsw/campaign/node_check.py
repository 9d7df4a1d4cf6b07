"""Looking at a site from one of its compute nodes: a campaign of one short job, of which nothing stays."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.campaign import folder as folders
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_rows import IN_FLIGHT, SCRATCH, State
from nsw.campaign.node_probe import node_checks, probe_words
from nsw.campaign.site_check_result import Check, Verdict
from nsw.errors import NswError
from nsw.site.load import load_site
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.campaign.events import Event
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.planning import Planned
    from nsw.transport.model import Transport

_NAME = "node-check"
_TIME = "1m"
_DELIVERS_S = 60.0  # that a batch system may take to copy what the job printed
_LOOK_S = 2.0


def check_node(
    site: str,
    sites: Sequence[Path] | None,
    listen: Callable[[Event], object],
    skew: float = 0.0,
) -> Iterator[Check]:
    """Run the shortest job on a site's compute node, and say what it found there.

    Args:
        site: The site's name.
        sites: Sites files to search first.
        listen: Called with what happens while the job waits and runs.
        skew: Seconds that the login node's clock is ahead of this machine's.

    Raises:
        KeyboardInterrupt: The job was cancelled then.
    """
    from nsw.campaign.start import check, lock_of, start

    with ExitStack() as stack:
        try:
            home = stack.enter_context(_home(site, sites))
            planned = planned_job(home, site, sites)
            data = planned.place.site.model_dump(mode="json", by_alias=True)
            campaign = start(home, check(planned), lock_of(planned)[0])
        except NswError as fault:
            yield Check("node", Verdict.BAD, fault.message.splitlines()[0], fault.hint or "see `nsw plan`")
            return
        earliest = time.time()
        yield from _carried_out(campaign, data, listen, earliest, skew)


@contextmanager
def _home(site: str, sites: Sequence[Path] | None) -> Iterator[Path]:
    """A folder for the campaign that is removed at the end; on this machine where the nodes see campaigns, too."""
    if load_site(site, list(sites) if sites else None).site.transport.kind != LOCAL:
        with tempfile.TemporaryDirectory(prefix="nsw-node-check-") as folder:
            yield Path(folder)
        return
    root = folders.root_to_write().absolute()
    is_new = not root.exists()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".nsw-node-check-", dir=root) as folder:
            yield Path(folder)
    finally:
        if is_new:
            with suppress(OSError):  # another campaign is there by now
                root.rmdir()


def planned_job(home: Path, site: str, sites: Sequence[Path] | None) -> Planned:
    """The plan of one job of a minute that asks for what the site has by default, its recipe in `home`."""
    from nsw.campaign.planning import make_plan

    first = make_plan(_recipe(home, {}), site, sites)
    return make_plan(_recipe(home, first.place.site.model_dump(mode="json", by_alias=True)), site, sites)


def _recipe(home: Path, site: dict[str, Any]) -> str:
    """The file of a recipe with one run."""
    gpus = (site.get("gpus") or {}).get("per_node") or 0
    recipe = {
        "nsw": 1, "name": _NAME, "app": {"command": probe_words(site)}, "passes": [{"baseline": {}}],
        "resources": {"nodes": 1, "gpus": 1 if gpus else 0, "time": _TIME},
    }  # fmt: skip
    path = home / "recipe.yaml"
    path.write_text(json.dumps(recipe), encoding="utf-8")
    return str(path)


def _carried_out(
    campaign: CampaignFolder, site: dict[str, Any], listen: Callable[[Event], object], earliest: float, skew: float
) -> Iterator[Check]:
    from nsw.campaign.cancel import cancel
    from nsw.campaign.running import Running

    try:
        try:
            Running(campaign).drive(listen)
        except KeyboardInterrupt:
            cancel(campaign, listen)
            raise
        except NswError as fault:
            yield Check("node", Verdict.BAD, fault.message.splitlines()[0], fault.hint or "")
            return
        with Ledger(campaign.ledger, read_only=True) as ledger:
            (run,) = ledger.runs()
        output = campaign.reports / run.id / "stdout"
        if run.state is not State.DONE or not output.is_file():
            yield Check("node", Verdict.BAD, f"the job {run.state}: {run.reason}", "`nsw plan` shows what it asked for")
            return
        text = output.read_text(encoding="utf-8", errors="replace")
        yield from node_checks(site, text, earliest=earliest, latest=time.time(), skew=skew)
    finally:
        with suppress(NswError):
            _forget(campaign)


def _forget(campaign: CampaignFolder) -> None:
    """Remove what the job left on the site."""
    from nsw.campaign.clean import leftovers_of, remove
    from nsw.transport.model import connect

    with Ledger(campaign.ledger, read_only=True) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        over = not ledger.runs(states=IN_FLIGHT)
        natives = ledger.native_ids()
    if over:
        with closing(connect(site)) as transport:
            _wait_for_delivery(site, transport, natives)
            remove(transport, leftovers_of(campaign, transport, scratch, ()), everything=True)


def _wait_for_delivery(site: dict[str, Any], transport: Transport, natives: Mapping[str, str | None]) -> None:
    """Return once the job has left the queue: until then PBS copies what it printed into the folder."""
    from nsw.campaign.dry_run import runner_of
    from nsw.schedulers.adapter import Watched
    from nsw.schedulers.create import adapter_of
    from nsw.schedulers.model import Native, Phase

    adapter = adapter_of(site["scheduler"])
    watched = [Watched(name, Native.parse(native), "") for name, native in natives.items() if native]
    if adapter is None or not watched:
        return
    runner, deadline = runner_of(adapter, transport), time.monotonic() + _DELIVERS_S
    while time.monotonic() < deadline:
        listed = adapter.parse_queue(runner.run(adapter.queue_command(watched), timeout=_DELIVERS_S))
        if listed is not None and not any(line.answer.phase in {Phase.QUEUED, Phase.RUNNING} for line in listed):
            return
        time.sleep(_LOOK_S)
