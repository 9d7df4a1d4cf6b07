"""What a site's batch system allows beside what its description says: queue, longest job, GPUs a node, account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.campaign.site_check_result import Check, Verdict
from nsw.quantities import seconds
from nsw.recipe.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.schedulers.adapter import Adapter, Facts, Queue
    from nsw.transport.model import Transport

_SECONDS = 60.0
_MOST_NAMES = 8


def limits_checks(
    site: Mapping[str, Any], transport: Transport, adapter: Adapter, facts: Facts | None
) -> Iterator[Check]:
    """Ask for queues and accounts, and compare them with the site.

    Args:
        site: The site as data.
        transport: The way to it.
        adapter: Its batch system.
        facts: The system's settings; None where it did not print them.
    """
    if command := adapter.queues_command:
        done = transport.run(command, timeout=_SECONDS, without=adapter.cleared, keep=adapter.kept)
        yield limits_check(site, adapter.parse_queues(done), None if facts is None else facts.longest_array)
    else:
        fix = "`--node` tries the queue with a job; `limits: {max_walltime: ...}` says how long one may be"
        yield Check("limits", Verdict.SKIPPED, f"nsw cannot read the limits of {adapter.name}'s queues", fix)
    if command := adapter.accounts_command:
        yield account_check(site, adapter.parse_accounts(transport.run(command, timeout=_SECONDS)))


def limits_check(site: Mapping[str, Any], queues: Sequence[Queue], longest_array: int | None) -> Check:
    """What the site's queue allows, and whether the site's description asks for more.

    Args:
        site: The site as data.
        queues: The queues that the batch system lists.
        longest_array: Tasks that an array may have; None where it is not known.
    """
    name = site.get("partition") or site.get("queue")
    queue = next((one for one in queues if (one.name == name if name else one.is_default)), None)
    if queue is None:
        known = ", ".join(one.name for one in queues[:_MOST_NAMES]) or "none"
        found = f"{name} is not among the queues listed: {known}" if name else f"no default queue; listed: {known}"
        return Check("limits", Verdict.SKIPPED, found, "`partition:` or `queue:` of the site names the queue")
    limits = site.get("limits") or {}
    longest = None if limits.get("max_walltime") is None else parse_duration(limits["max_walltime"])
    per_node = (site.get("gpus") or {}).get("per_node")
    if longest is not None and queue.walltime is not None and longest > queue.walltime:
        found = f"limits.max_walltime is {seconds(longest)}, and {queue.name} takes jobs of {seconds(queue.walltime)}"
        return Check("limits", Verdict.WARNING, found, "correct limits.max_walltime, or name another queue")
    if isinstance(per_node, int) and queue.gpus is not None and per_node > queue.gpus:
        found = f"gpus.per_node is {per_node}, and nodes of {queue.name} have {queue.gpus or 'none'}"
        return Check("limits", Verdict.WARNING, found, "correct gpus.per_node, or name the queue with GPUs")
    most = limits.get("max_array")
    if most and longest_array is not None and most > longest_array:
        found = f"limits.max_array is {most}, and an array may have {longest_array} tasks"
        return Check("limits", Verdict.GOOD, f"{found}: nsw makes none longer")
    told = [f"jobs of at most {seconds(queue.walltime)}" if queue.walltime is not None else "no longest time listed"]
    told += [f"{queue.gpus} GPUs a node"] if queue.gpus else []
    told += [f"arrays of at most {longest_array}"] if longest_array is not None else []
    return Check("limits", Verdict.GOOD, f"{queue.name}: {', '.join(told)}")


def account_check(site: Mapping[str, Any], accounts: Sequence[str]) -> Check:
    """Whether the site's account is one of the user's.

    Args:
        site: The site as data.
        accounts: The user's accounts; none where the batch system keeps no list.
    """
    account = site.get("account")
    if not accounts:
        found = f"{account}: not compared, " if account else ""
        fix = "the line `queue` shows whether the scheduler takes jobs so"
        return Check("account", Verdict.SKIPPED, f"{found}the batch system lists no accounts", fix)
    yours = ", ".join(accounts[:_MOST_NAMES])
    if account and account not in accounts:
        fix = "correct `account:` of the site, or ask its administrators"
        return Check("account", Verdict.WARNING, f"{account} is not among yours: {yours}", fix)
    return Check("account", Verdict.GOOD, f"{account}" if account else f"the default one; yours: {yours}")
