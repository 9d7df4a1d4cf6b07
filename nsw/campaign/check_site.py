"""What of a site works: from its login node, what its scheduler would take, and from a compute node.

The compute node is looked at with a campaign of one short job, of which nothing stays.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.campaign import start
from nsw.campaign.cancel import cancel
from nsw.campaign.clean import find_leftovers, remove
from nsw.campaign.planning import Planned, ask_start_times, make_plan
from nsw.campaign.running import Running
from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.events import Event, Message
from nsw.engine.ledger_rows import IN_FLIGHT, SCRATCH, State
from nsw.engine.trust import forget
from nsw.errors import NswError
from nsw.safe_files import read_text, write_text
from nsw.schedulers.adapter import Watched
from nsw.schedulers.batch import runner_of
from nsw.schedulers.create import adapter_of
from nsw.schedulers.model import Native, Phase
from nsw.site.load import load_site
from nsw.site.names import LOCAL
from nsw.site_check import check as checks_of_site
from nsw.site_check.check import Check, Verdict, check_from_outcome
from nsw.transport.model import Transport, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.engine.folder import CampaignFolder

_NAME = "node-check"
_TIME = "1m"
_DELIVERS_S = 60.0  # that a batch system may take to copy what the job printed
_LOOK_S = 2.0


def check(
    name: str, sites: Sequence[Path] | None, listen: Callable[[Event], object], *, node: bool = False
) -> Iterator[Check]:
    """Each check as it is made; they are kept for the warnings of later plans.

    Args:
        name: The site's name.
        sites: Sites files to search first.
        listen: Called with what happens while the job waits and runs.
        node: Whether to look from a compute node too, if the login node is good.

    Raises:
        UsageError: There is no such site.
    """
    loaded_site = load_site(name, list(sites) if sites else None)
    site = loaded_site.site.model_dump(mode="json", by_alias=True)
    checks: list[Check] = []
    for site_check in _run_checks(name, sites, site, listen, checks, node=node):
        checks.append(site_check)
        yield site_check
    checks_of_site.save_checks(site, checks)
    if (listed := checks_of_site.query_site_metrics(loaded_site, checks)) is not None:
        yield listed


def _run_checks(
    name: str,
    sites: Sequence[Path] | None,
    site: dict[str, Any],
    listen: Callable[[Event], object],
    earlier: Sequence[Check],
    *,
    node: bool,
) -> Iterator[Check]:
    """Those of the login node, the queue, a compute node and the chip; `found` holds those before."""
    adapter = adapter_of(site["scheduler"])
    with closing(connect(site)) as transport:
        yield from checks_of_site.check_site(site, transport, adapter)

    def plan_probe(home: Path) -> Planned:
        return make_plan(_write_probe_recipe(home, site), name, sites)

    if adapter is not None and _is_good(earlier):
        yield _check_queue(site, plan_probe)
    if node and _is_good(earlier):
        listen(Message("a short job looks from a compute node; Ctrl-C cancels it"))
        yield from _check_node(site, plan_probe, listen, checks_of_site.clock_skew(earlier))
    if not any(
        site_check.verdict is Verdict.BAD and site_check.what in checks_of_site.REACHING for site_check in earlier
    ):
        yield checks_of_site.chip_check(site, earlier)


def _is_good(checks: Sequence[Check]) -> bool:
    return not any(site_check.verdict is Verdict.BAD for site_check in checks)


def _write_probe_recipe(home: Path, site: Mapping[str, Any]) -> str:
    """Write a recipe with one run of a minute that uses the site's defaults; returns its path."""
    gpus = (site.get("gpus") or {}).get("per_node") or 0
    recipe = {
        "nsw": 1,
        "name": _NAME,
        "app": {"command": checks_of_site.probe_words(site)},
        "passes": [{"baseline": {}}],
        "resources": {"nodes": 1, "gpus": 1 if gpus else 0, "time": _TIME},
    }
    path = home / "recipe.yaml"
    write_text(path, json.dumps(recipe))
    return str(path)


def _bad_check(subject: str, fault: NswError, fix: str = "see `nsw plan`") -> Check:
    return Check(subject, Verdict.BAD, fault.message.splitlines()[0], fault.hint or fix)


# --- the queue ----------------------------------------------------------------------------------------------


def _check_queue(site: Mapping[str, Any], plan: Callable[[Path], Planned]) -> Check:
    """Whether the scheduler would take the shortest job as the site is described; nothing is submitted."""
    with tempfile.TemporaryDirectory(prefix="nsw-queue-check-") as folder:
        try:
            planned = plan(Path(folder))
            prospects = ask_start_times(planned)
        except NswError as fault:
            return _bad_check("queue", fault)
    if not prospects:
        return check_from_outcome("queue", "no dry run")
    names = [f"{key} {site[key]}" for key in ("partition", "queue", "account", "qos") if site.get(key)]
    queue, prospect = ", ".join(names) or "the default queue", prospects[0]
    if prospect.refused is not None:
        refused = check_from_outcome("queue", "refused", message=prospect.refused.message.splitlines()[0], queue=queue)
        return replace(refused, fix=prospect.refused.hint or refused.fix)
    if prospect.untold is not None:
        return check_from_outcome("queue", "no answer", message=prospect.untold.splitlines()[0])
    return check_from_outcome("queue", "good" if prospect.waits is None else "waits", queue=queue, waits=prospect.waits)


# --- a compute node -----------------------------------------------------------------------------------------


def _check_node(
    site: dict[str, Any], plan: Callable[[Path], Planned], listen: Callable[[Event], object], skew: float
) -> Iterator[Check]:
    """Run the shortest job on a compute node, and say what it found there.

    Args:
        site: The site as data.
        plan: Plans that job, its recipe in a folder.
        listen: Called with what happens while the job waits and runs.
        skew: Seconds that the login node's clock is ahead of this machine's.

    Raises:
        KeyboardInterrupt: The job was cancelled then.
    """
    with ExitStack() as stack:
        try:
            home = stack.enter_context(_temporary_campaign_root(site))
            planned = plan(home)
            campaign = start.make_campaign(home, start.check_readiness(planned), start.lock_of(planned)[0])
        except NswError as fault:
            yield _bad_check("node", fault)
            return
        yield from _run_probe(campaign, site, listen, time.time(), skew)


@contextmanager
def _temporary_campaign_root(site: Mapping[str, Any]) -> Iterator[Path]:
    """A folder for the campaign that is removed at the end; on this machine where the nodes see campaigns, too."""
    if site["transport"]["kind"] != LOCAL:
        with tempfile.TemporaryDirectory(prefix="nsw-node-check-") as folder:
            yield Path(folder)
        return
    root = folders.root().absolute()
    is_new = not root.exists()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".nsw-node-check-", dir=root) as folder:
            yield Path(folder)
    finally:
        if is_new:
            with suppress(OSError):  # another campaign is there by now
                root.rmdir()


def _run_probe(
    campaign: CampaignFolder, site: dict[str, Any], listen: Callable[[Event], object], earliest: float, skew: float
) -> Iterator[Check]:
    try:
        try:
            Running(campaign).drive(listen)
        except KeyboardInterrupt:
            cancel(campaign, listen)
            raise
        except NswError as fault:
            yield _bad_check("node", fault, "")
            return
        with ledger_to_read(campaign) as ledger:
            (run,) = ledger.runs()
        output = campaign.reports / run.id / "stdout"
        if run.state is not State.DONE or not output.is_file():
            yield Check("node", Verdict.BAD, f"the job {run.state}: {run.reason}", "`nsw plan` shows what it asked for")
            return
        text = read_text(output, errors="backslashreplace")
        yield from checks_of_site.node_checks(site, text, earliest=earliest, latest=time.time(), skew=skew)
    finally:
        with suppress(NswError):
            _remove_probe(campaign)


def _remove_probe(campaign: CampaignFolder) -> None:
    """Remove what the job left on the site."""
    with ledger_to_read(campaign) as ledger:
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        over = not ledger.runs(states=IN_FLIGHT)
        natives = ledger.native_ids()
    if over:
        with closing(connect(site)) as transport:
            _wait_for_delivery(site, transport, natives)
            remove(transport, find_leftovers(campaign, transport, scratch, ()), include_uncollected=True)
    forget(campaign.directory)


def _wait_for_delivery(site: dict[str, Any], transport: Transport, natives: Mapping[str, str | None]) -> None:
    """Return once the job has left the queue: until then PBS copies what it printed into the folder."""
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
