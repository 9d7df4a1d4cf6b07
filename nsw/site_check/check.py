"""Whether a site can carry out campaigns: what it is asked, what its answers mean, and what is kept of them.

How each check may go, what it then reports and what a person can do are the rows of outcomes.csv. What `nsw sites
check` found is kept a day for the warnings of `nsw run`, GPU and MPI until the site changes. The metrics that the
site's own ncu lists are kept for a week: `nsw sites check` and `nsw metrics check --site` ask, a plan reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import sys
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import CommandError, CommandResult, HostKeyError, LoginError, NswError, UnreachableError
from nsw.launchers.mpi import FAMILIES, mpi_family
from nsw.metrics import Chip, find_chip, unsupported_reason
from nsw.metrics.ncu_names import base_names_in_query_output, query_metrics_command
from nsw.metrics.requests import counters_tools, default_counters_tool
from nsw.plan.model import SiteFacts
from nsw.profilers import load_profiler
from nsw.quantities import seconds
from nsw.recipe.passes import PROGRAMS, site_profilers
from nsw.recipe.units import parse_duration
from nsw.resources import csv_rows, shipped_text, user_folder
from nsw.safe_files import make_folders, read_plain, write_text
from nsw.schedulers.adapter import Adapter, Facts, Queue
from nsw.schedulers.create import is_shared, owner_of
from nsw.scripts.quoting import quote_all
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsw.site.load import LoadedSite
    from nsw.site.model import Site
    from nsw.transport.model import HostKeyCheck, Transport

_SECONDS: Final = 60.0
_PROBE_S: Final = 120.0
_SKEW_S: Final = 5.0
_LEAST_FREE: Final = 1 << 30
_FULL: Final = 0.9  # of a quota
_MOST_NAMES: Final = 8
_COUNTERS: Final = "counters"
_MPI: Final = "MPI"
_PRODUCTS: Final = {"openmpi": "Open MPI's", "mpich": "MPICH's or a relative's (Hydra)", "pals": "Cray PALS'"}
_QUOTA: Final = """
if command -v lfs >/dev/null && lfs quota -q -u "$(id -un)" "$1" 2>/dev/null; then exit; fi
command -v quota >/dev/null && quota -w 2>/dev/null
exit 0
"""
# What a node says of itself in `word value` lines; the site names the profilers, or its modules bring them. That of
# another package may have no --version. Of an MPI its place counts too: PALS says its name in its path only.
PROBE: Final = shipped_text("site_check/node.sh")
_VERSION: Final = re.compile(r"[Vv]ersion (\d+(?:\.\d+)+)")
_DAY_S: Final = 24 * 3600.0
_WEEK_S: Final = 7 * _DAY_S
_MAX_BYTES: Final = 4 << 20  # bytes of a kept file
_ASK_S: Final = 120.0


class Verdict(StrEnum):
    """How a check went; `SKIPPED`: it could not be made, or does not matter here."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was looked at, how it went, what was found, what to do.

    Some of what was found is data too: the names of the GPUs, the family of mpirun and mpiexec, how many seconds a
    wrong clock is ahead.
    """

    what: str
    verdict: Verdict
    found: str
    fix: str = ""
    gpus: tuple[str, ...] = field(default=(), compare=False)
    mpi: str | None = field(default=None, compare=False)
    ahead_s: float = field(default=0.0, compare=False)


@cache
def _load_outcomes() -> Mapping[tuple[str, str], Mapping[str, str]]:
    return {(row["check"], row["outcome"]): row for row in csv_rows("site_check/outcomes.csv")}


def check_from_outcome(
    check: str,
    result: str,
    *,
    subject: str = "",
    gpus: tuple[str, ...] = (),
    mpi: str | None = None,
    ahead_s: float = 0.0,
    **values: object,
) -> Check:
    """A check by its row of outcomes.csv.

    Args:
        check: The column `check`.
        result: The column `outcome`.
        subject: What was looked at, if it is called otherwise than the check.
        gpus: As in Check.
        mpi: As in Check.
        ahead_s: Seconds, as in Check.
        values: What the row's sentences name.
    """
    row = _load_outcomes()[check, result]
    sentence, fix = row["found"].format_map(values), row["fix"].format_map(values)
    return Check(subject or check, Verdict(row["verdict"]), sentence, fix, gpus=gpus, mpi=mpi, ahead_s=ahead_s)


def clock_skew(checks: Iterable[Check]) -> float:
    """Seconds that the site's clock is ahead, where a check found that it is wrong; else 0."""
    return next((site_check.ahead_s for site_check in checks if site_check.what == "clock"), 0.0)


def check_site(
    site: Mapping[str, Any], transport: Transport, adapter: Adapter | None, now: Callable[[], float] = time.time
) -> Iterator[Check]:
    """Each check as it is made; nothing follows one that the others need.

    Args:
        site: The site as data.
        transport: The way to it.
        adapter: Its batch system; None for a machine without one.
        now: Unix seconds here.
    """
    before = now()
    alive = transport.run(["bash", "-c", 'echo "$BASH_VERSION"; date +%s.%N; hostname; id -un'], timeout=_SECONDS)
    lines = alive.stdout.splitlines()
    if alive.returncode != 0 or len(lines) != 4:
        kind = (site.get("transport") or {}).get("kind", "local")
        fix = (alive.unreachable and alive.unreachable.hint) or f"see docs/remote.md: transport {kind}"
        fault = alive.unreachable
        step = (
            "host key"
            if isinstance(fault, HostKeyError)
            else "login"
            if isinstance(fault, LoginError)
            else "connection"
        )
        yield Check(step, Verdict.BAD, _first_line(alive), fix)
        return
    yield check_from_outcome("connection", "good", host=lines[2], bash=lines[0])
    if transport.host_key is not None:
        yield host_key_check(transport.host_key())
    yield check_from_outcome("login", "good", user=lines[3])
    yield _check_clock(lines[1], before, now())
    facts = yield from _check_scheduler(site, transport, adapter)
    if adapter is not None and facts is not None:
        # ask for queues and accounts, and compare them with the site
        if command := adapter.queues_command:
            yield limits_check(
                site, adapter.parse_queues(_run_scheduler_command(transport, adapter, command)), facts.longest_array
            )
        else:
            yield check_from_outcome("limits", "not readable", name=adapter.name)
        if command := adapter.accounts_command:
            yield account_check(site, adapter.parse_accounts(transport.run(command, timeout=_SECONDS)))
    yield from _check_scratch(site, transport)
    shell = ["bash", "-lc" if site.get("login_shell") else "-c"]  # as the site's jobs start
    load = f"module load {quote_all(site['modules'])} 2>/dev/null\n" if site.get("modules") else ""
    done = transport.run([*shell, load + PROBE, *_probe_arguments(site)], timeout=_PROBE_S)
    yield from _check_machine(site, node_facts_of(done.stdout), "here", has_nodes=adapter is not None)


def host_key_check(key_check: HostKeyCheck) -> Check:
    """Whether somebody else could answer for the host."""
    return check_from_outcome(
        "host key", "verified" if key_check.verified else "not verified", evidence=key_check.evidence
    )


def _first_line(result: CommandResult) -> str:
    text = (result.stderr.strip() or result.stdout.strip() or f"exit status {result.returncode}").splitlines()
    return text[0] if text else "no answer"


def _check_clock(theirs: str, before: float, after: float) -> Check:
    try:
        skew = float(theirs) - (before + after) / 2
    except ValueError:
        return check_from_outcome("clock", "not reported")
    slack = (after - before) / 2
    if abs(skew) > _SKEW_S + slack:
        return check_from_outcome(
            "clock", "off", off=abs(skew), direction="ahead" if skew > 0 else "behind", ahead_s=round(skew)
        )
    return check_from_outcome("clock", "good", slack=_SKEW_S + slack)


def _check_scheduler(
    site: Mapping[str, Any], transport: Transport, adapter: Adapter | None
) -> Generator[Check, None, Facts | None]:
    """Check the batch system; returns its settings if it answers."""
    if adapter is None:
        yield check_from_outcome("scheduler", "none")
        return None
    command, stated = adapter.sign_of_life_command(), site.get("scheduler")
    alive = _run_scheduler_command(transport, adapter, command)
    owner = None
    if is_shared(adapter):
        version_output = transport.run([adapter.submit, "--version"], timeout=_SECONDS)
        owner = owner_of(adapter.submit, version_output.stdout + version_output.stderr)
    if owner and owner.scheduler != stated:  # whatever its commands answer
        kind = "another" if owner.scheduler else "unsupported"
        yield check_from_outcome(
            "scheduler", kind, submit=adapter.submit, product=owner.product, stated=stated, scheduler=owner.scheduler
        )
        return None
    if alive.returncode != 0 or alive.timed_out:
        message = _first_line(adapter.plain(alive))
        yield check_from_outcome("scheduler", "no answer", command=command[0], message=message, name=adapter.name)
        return None
    facts = Facts()
    if facts_command := adapter.facts_command:
        answer = _run_scheduler_command(transport, adapter, facts_command)
        facts = adapter.parse_facts(answer) if answer.returncode == 0 else facts
    name = owner.product if owner else adapter.name
    yield check_from_outcome("scheduler", "good", name_and_version=" ".join(filter(None, (name, facts.version))))
    return facts


def _run_scheduler_command(transport: Transport, adapter: Adapter, command: Sequence[str]) -> CommandResult:
    """Run a command of a batch system."""
    return transport.run(command, timeout=_SECONDS, without=adapter.cleared_variables, keep=adapter.kept_variables)


def _check_scratch(site: Mapping[str, Any], transport: Transport) -> Iterator[Check]:
    scratch = site.get("scratch")
    if scratch is None:
        yield check_from_outcome("scratch", "none")
        return
    try:
        path = transport.expand(scratch)
        transport.make_folders([path])
    except NswError as fault:
        message = _first_line(fault.result) if isinstance(fault, CommandError) else fault.message
        kinds = {CommandError: "not made", UnreachableError: "not reached"}
        kind = next((kind for error, kind in kinds.items() if isinstance(fault, error)), "not a path")
        yield check_from_outcome("scratch", kind, message=message)
        return
    script = 'file=$1/.nsw-check-$$; : >"$file" && rm -f "$file" && df -P -k "$1" | tail -n 1'
    df_output = transport.run(["bash", "-c", script, "nsw", path], timeout=_SECONDS)
    fields = (df_output.stdout.splitlines() or [""])[0].split()
    if len(fields) < 4 or not fields[3].isdigit():
        yield check_from_outcome("scratch", "not writable", path=path, message=_first_line(df_output))
        return
    free = int(fields[3]) << 10
    yield check_from_outcome("scratch", "good" if free >= _LEAST_FREE else "full", path=path, free_gib=free / (1 << 30))
    quota = transport.run(["bash", "-c", _QUOTA, "nsw", path], timeout=_SECONDS)
    yield (quota_check(quota.stdout) if quota.returncode == 0 else None) or check_from_outcome("quota", "not listed")


def quota_check(printed: str) -> Check | None:
    """How full a quota is, by `quota -w` or `lfs quota -q`; None where no limit is told.

    The numbers behind a file system's name are used, soft limit and hard limit in KiB; `*` marks too much.
    """
    fullest: tuple[float, str, int, int] | None = None
    for line in printed.splitlines():
        words = line.split()
        numbers = [int(word.rstrip("*")) for word in words[1:4] if word.rstrip("*").isdigit()]
        if len(words) < 4 or len(numbers) < 3:
            continue
        used, limits = numbers[0], [limit for limit in numbers[1:] if limit]
        if limits and (fullest is None or used / min(limits) > fullest[0]):
            fullest = (used / min(limits), words[0], used, min(limits))
    if fullest is None:
        return None
    share, file_system, used, allowed = fullest
    kind = "good" if share < _FULL else "full"
    return check_from_outcome(
        "quota", kind, file_system=file_system, used_gib=used / (1 << 20), allowed_gib=allowed / (1 << 20)
    )


def probe_words(site: Mapping[str, Any]) -> list[str]:
    """The program that asks a node, with the profilers as the site names them."""
    return ["bash", "-c", PROBE, *_probe_arguments(site)]


def _probe_arguments(site: Mapping[str, Any]) -> list[str]:
    configured = site.get("profilers") or {}
    return [
        "nsw",
        *(word for tool in _profilers_to_find(configured) for word in (tool, str(configured.get(tool) or tool))),
    ]


def _profilers_to_find(configured: Mapping[str, Any]) -> tuple[str, ...]:
    """The profilers to look for: those that every site may have, and what this one names."""
    return tuple(dict.fromkeys((*PROGRAMS, *configured)))


def node_facts_of(output: str) -> dict[str, list[str]]:
    """The `nsw-WORD VALUE` lines that a node printed, by their words; a login shell may print others."""
    facts_by_word: dict[str, list[str]] = {}
    for line in output.splitlines():
        word, _, value = line.partition(" ")
        if word.startswith("nsw-"):
            facts_by_word.setdefault(word.removeprefix("nsw-"), []).append(value.strip())
    return facts_by_word


def _check_machine(
    site: Mapping[str, Any], node_facts: Mapping[str, list[str]], location: str, *, has_nodes: bool
) -> Iterator[Check]:
    """Check a node's profilers, MPI and GPUs by its answer."""
    configured = site.get("profilers") or {}
    present, failed = (
        {t: v for t, _, v in (x.partition(" ") for x in node_facts.get(k, ()))} for k in ("tool", "failed")
    )
    for tool in _profilers_to_find(configured):
        if tool in present or (tool not in PROGRAMS and failed.get(tool, "not found") != "not found"):
            yield check_from_outcome(
                "profiler", "good", subject=tool, version=present.get(tool) or str(configured[tool])
            )
        elif tool in configured:
            message = failed.get(tool, "no answer")
            yield check_from_outcome(
                "profiler", "not at its path", subject=tool, tool=tool, path=configured[tool], message=message
            )
        else:
            nodes = "; compute nodes may have it all the same" if has_nodes else ""
            yield check_from_outcome("profiler", "not on PATH", subject=tool, tool=tool, location=location, nodes=nodes)
    mpi: dict[str, str] = {}
    for line in node_facts.get("mpi", ()):
        name, _, text = line.partition(" ")
        mpi[name] = f"{mpi[name]}\n{text}" if name in mpi else text
    yield mpi_check(site, mpi)
    yield from _check_gpus(node_facts, has_nodes=has_nodes)


def mpi_check(site: Mapping[str, Any], printed: Mapping[str, str]) -> Check:
    """Which MPI's mpirun and mpiexec are; planning uses the family that `found` names behind `mpi:`.

    Args:
        site: The site as data.
        printed: Those that are on PATH, each with its path and below that what its `--version` printed.
    """
    if not printed:
        return check_from_outcome(_MPI, "none")
    families = {}
    for name, text in printed.items():
        path, _, version = text.partition("\n")
        families[name] = mpi_family(version) or mpi_family(path)
    programs = ", ".join(
        f"{name} is {_PRODUCTS[mpi] if mpi else 'of an unknown MPI'}" for name, mpi in families.items()
    )
    stated = site.get("mpi")
    known_families = {mpi for mpi in families.values() if mpi}
    if stated and known_families and stated not in known_families:
        return check_from_outcome(_MPI, "another", stated=stated, programs=programs)
    if len(known_families) == 1 or stated in known_families:
        family = stated or next(iter(known_families))
        return check_from_outcome(_MPI, "good", programs=programs, family=family, mpi=family)
    kind = "several" if known_families else "unknown"
    return check_from_outcome(_MPI, kind, programs=programs, families=", ".join(FAMILIES))


def _check_gpus(node_facts: Mapping[str, list[str]], *, has_nodes: bool) -> Iterator[Check]:
    """The GPUs of a node, and who may read their counters; `has_nodes`: there are compute nodes beside this one."""
    names = gpu_names(node_facts.get("gpu", ()))
    if not names:
        kind = "login node" if has_nodes else "none"
        yield check_from_outcome("GPUs", kind)
        yield check_from_outcome(_COUNTERS, kind)
        return
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    yield check_from_outcome("GPUs", "good", kinds=kinds, gpus=tuple(names))
    only_root = node_facts.get("admin")
    yield check_from_outcome(
        _COUNTERS, "not reported" if not only_root else "restricted" if only_root == ["1"] else "good"
    )


def gpu_names(lines: Iterable[str]) -> list[str]:
    """The GPUs that `nvidia-smi -L` lists."""
    return re.findall(r"^GPU \d+: (.*?) \(UUID", "\n".join(lines), re.MULTILINE)


def node_checks(
    site: Mapping[str, Any], output: str, *, earliest: float, latest: float, skew: float = 0.0
) -> Iterator[Check]:
    """What a compute node's answer means, a check each.

    Args:
        site: The site as data.
        output: What the program printed.
        earliest: Unix seconds here before the job was submitted.
        latest: Unix seconds here when its end was known.
        skew: Seconds that the login node's clock is ahead of this machine's.
    """
    node_facts = node_facts_of(output)
    host = node_facts.get("host", ["?"])[0]
    yield check_from_outcome("node", "good", host=host)
    yield _check_node_clock(node_facts.get("time", [""])[0], earliest + skew, latest + skew)
    seen = gpu_names(node_facts.get("gpu", ()))
    for site_check in _check_machine(site, node_facts, f"on {host}", has_nodes=False):
        if (site_check.what != _MPI or "mpi" in node_facts) and (site_check.what not in {"GPUs", _COUNTERS} or seen):
            yield replace(site_check, what=f"{site_check.what} (node)")
    promised = (site.get("gpus") or {}).get("per_node")
    if promised and not seen:
        yield check_from_outcome("GPUs", "not given", subject="GPUs (node)", promised=promised)
    if len(seen) > 1 and node_facts.get("given") == [""] and not site.get("whole_nodes"):
        yield check_from_outcome("own GPU (node)", "shared", count=len(seen))


def _check_node_clock(text: str, earliest: float, latest: float) -> Check:
    try:
        node_time = float(text)
    except ValueError:
        return check_from_outcome("clock (node)", "not reported")
    off = node_time - latest if node_time > latest else node_time - earliest if node_time < earliest else 0.0
    if abs(off) > _SKEW_S:
        return check_from_outcome("clock (node)", "off", off=abs(off), direction="ahead of" if off > 0 else "behind")
    return check_from_outcome("clock (node)", "good")


def limits_check(site: Mapping[str, Any], queues: Sequence[Queue], longest_array: int | None) -> Check:
    """What the site's queue allows, and whether the site's description asks for more.

    Args:
        site: The site as data.
        queues: The queues that the batch system lists.
        longest_array: Tasks that an array may have; None where it is not known.
    """
    name = site.get("partition") or site.get("queue")
    queue = next(
        (candidate for candidate in queues if (candidate.name == name if name else candidate.is_default)), None
    )
    if queue is None:
        listed = ", ".join(candidate.name for candidate in queues[:_MOST_NAMES]) or "none"
        return check_from_outcome(
            "limits", "queue not listed" if name else "no default queue", queue=name, listed=listed
        )
    limits = site.get("limits") or {}
    longest = None if limits.get("max_walltime") is None else parse_duration(limits["max_walltime"])
    per_node = (site.get("gpus") or {}).get("per_node")
    if longest is not None and queue.walltime is not None and longest > queue.walltime:
        stated, allowed = seconds(longest), seconds(queue.walltime)
        return check_from_outcome("limits", "walltime", stated=stated, queue=queue.name, allowed=allowed)
    if isinstance(per_node, int) and queue.gpus is not None and per_node > queue.gpus:
        return check_from_outcome("limits", "GPUs", stated=per_node, queue=queue.name, allowed=queue.gpus or "none")
    max_array = limits.get("max_array")
    if max_array and longest_array is not None and max_array > longest_array:
        return check_from_outcome("limits", "array", stated=max_array, allowed=longest_array)
    queue_limits = [
        f"jobs of at most {seconds(queue.walltime)}" if queue.walltime is not None else "no longest time listed"
    ]
    queue_limits += [f"{queue.gpus} GPUs a node"] if queue.gpus else []
    queue_limits += [f"arrays of at most {longest_array}"] if longest_array is not None else []
    return check_from_outcome("limits", "good", queue=queue.name, limits=", ".join(queue_limits))


def account_check(site: Mapping[str, Any], accounts: Sequence[str]) -> Check:
    """Whether the site's account is one of the user's.

    Args:
        site: The site as data.
        accounts: The user's accounts; none where the batch system keeps no list.
    """
    account = site.get("account")
    if not accounts:
        return check_from_outcome("account", "not compared" if account else "no list", account=account)
    kind = "default" if not account else "good" if account in accounts else "another"
    return check_from_outcome("account", kind, account=account, listed=", ".join(accounts[:_MOST_NAMES]))


def chip_check(site: Mapping[str, Any], checks: Iterable[Check]) -> Check:
    """Compare the GPUs with the profilers' versions, those of a compute node where one was looked at.

    Args:
        site: The site as data.
        checks: What was found of the site so far.
    """
    good = {site_check.what: site_check for site_check in checks if site_check.verdict is Verdict.GOOD}
    findings = {subject: site_check.found for subject, site_check in good.items()}
    gpus = next((good[subject].gpus for subject in ("GPUs (node)", "GPUs") if subject in good), ())
    seen = list(dict.fromkeys(gpus))
    stated = (site.get("gpus") or {}).get("chip")
    if not stated and not seen:
        return check_from_outcome("chip", "not seen" if site.get("scheduler") == LOCAL else "not seen from login")
    text = seen[0] if seen else str(stated)
    chip = find_chip(text)
    if chip is None:
        return check_from_outcome("chip", "unknown", chip=text)
    other_gpus = [name for name in seen if (other_chip := find_chip(name)) is not None and other_chip is not chip]
    stated_chip = find_chip(str(stated)) if stated else None
    if other_gpus or (seen and stated_chip is not None and stated_chip is not chip):
        return check_from_outcome("chip", "another", stated=stated or "nothing", listed=", ".join([text, *other_gpus]))
    reasons = []
    for tool in counters_tools(chip):
        printed = findings.get(f"{tool} (node)") or findings.get(tool)
        if printed is None:
            continue
        version = _VERSION.search(printed)
        reason = unsupported_reason(tool, chip, version[1] if version else None)
        if reason is None:
            return check_from_outcome("chip", "good", chip=chip.name, tool=f"{tool} {version[1]}" if version else tool)
        reasons.append(reason)
    kind = "unsupported" if reasons else "no tool"
    return check_from_outcome(
        "chip", kind, chip=chip.name, tool=default_counters_tool(chip), reasons="; ".join(reasons)
    )


REACHING: Final = frozenset({"connection", "host key", "login"})  # without one of these a site cannot be asked anything


def find_facts(loaded_site: LoadedSite) -> SiteFacts:
    """Find out what a site has: only this machine is looked at, of others what `nsw sites check` found is known."""
    from nsw.schedulers.local import detect

    site = loaded_site.site
    if site.replay:
        return _demo_facts(site)

    def ncu_names(chip: Chip) -> Collection[str] | None:
        return load_metric_names(loaded_site, chip)

    data = site.model_dump(mode="json", by_alias=True)
    mpi = None if site.mpi else mpi_found(data)
    if site.scheduler != "local" or site.transport.kind != "local":
        per_node = site.gpus.per_node
        chip = None if site.gpus.chip else gpu_found(data)
        return SiteFacts(
            gpus_per_node=per_node if isinstance(per_node, int) else None, mpi=mpi, chip=chip, ncu_names=ncu_names
        )

    tools, missing = _find_profilers({str(tool): path for tool, path in site.profilers.items()})
    is_stated = isinstance(site.gpus.per_node, int) and site.gpus.chip is not None
    gpus = [] if is_stated else detect()
    chip = gpus[0].name if gpus else None
    return SiteFacts(
        gpus_per_node=_gpu_count(site, len(gpus)), tools=tools, missing=missing, mpi=mpi, chip=chip, ncu_names=ncu_names
    )


def _gpu_count(site: Site, detected: int) -> int:
    per_node = site.gpus.per_node
    return per_node if isinstance(per_node, int) else detected


def _find_profilers(configured: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Profilers of this machine: their paths, and why the others were not found."""
    paths: dict[str, str] = {}
    missing: dict[str, str] = {}
    for tool in site_profilers():
        variable = f"NSW_{tool.upper().replace('-', '_')}"
        stated = configured.get(tool) or os.environ.get(variable)
        name = stated or load_profiler(tool).EXECUTABLE or tool
        path = shutil.which(os.path.expandvars(name))
        if path:
            paths[tool] = path
        elif stated:
            missing[tool] = f"{tool} is not at {stated}, where the site says"
        else:
            missing[tool] = f"{name} is not on PATH (name it in the site's profilers, or in {variable})"
    return paths, missing


def _demo_facts(site: Site) -> SiteFacts:
    from nsw.demo import NOTE, recordings

    recordings_by_case = {(tuple(sorted(r.params.items())), r.pass_kind): r for r in recordings()}

    def replay(params: Mapping[str, Any], pass_kind: str) -> tuple[str, ...] | None:
        recording = recordings_by_case.get((tuple(sorted(params.items())), pass_kind))
        return (sys.executable, "-P", "-m", "nsw.demo", recording.name) if recording else None

    return SiteFacts(
        gpus_per_node=_gpu_count(site, 4),
        replay=replay,
        replayed_reports=("*.sqlite",),
        replayed_tool="nsys",
        note=NOTE,
    )


def save_checks(site: Mapping[str, Any], checks: Sequence[Check]) -> None:
    """Keep what was found of a site; where the file cannot be written nothing is kept."""
    _write_cache(
        _checks_file(site), {"site": _site_digest(site), "checks": [asdict(site_check) for site_check in checks]}
    )


def gpu_found(site: Mapping[str, Any]) -> str | None:
    """The GPU's product as a compute node named it, else the login node; None where there were several or none."""
    gpu_check = _last_good_check(site, "GPUs")
    kinds = set(gpu_check.gpus) if gpu_check else set()
    return kinds.pop() if len(kinds) == 1 else None


def mpi_found(site: Mapping[str, Any]) -> str | None:
    """The family of mpirun and mpiexec on a compute node, else on the login node; None where that was not found."""
    mpi_check = _last_good_check(site, "MPI")
    return mpi_check.mpi if mpi_check else None


def _last_good_check(site: Mapping[str, Any], subject: str) -> Check | None:
    """The good result of a check on a compute node, else on the login node."""
    age_and_checks = load_checks(site, within=math.inf)
    checks = age_and_checks[1] if age_and_checks else []
    good = {site_check.what: site_check for site_check in checks if site_check.verdict is Verdict.GOOD}
    return good.get(f"{subject} (node)") or good.get(subject)


def load_checks(site: Mapping[str, Any], within: float = _DAY_S) -> tuple[float, list[Check]] | None:
    """What was found of a site in the last `within` seconds, and how many seconds ago; None where nothing was.

    What was found of a site whose description has changed since does not count.

    Args:
        site: The site as data.
        within: Seconds.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, NswError):
        data = _read_cache(_checks_file(site), within)
        if data["site"] == _site_digest(site):
            return data["age"], [
                Check(**row | {"verdict": Verdict(row["verdict"]), "gpus": tuple(row["gpus"])})
                for row in data["checks"]
            ]
    return None


def warnings(site: Mapping[str, Any], *, counters: bool) -> list[str]:
    """What `nsw run` should warn of: each a sentence.

    Args:
        site: The site as data.
        counters: Whether the plan has a pass that reads hardware counters.
    """
    age_and_checks = load_checks(site)
    if age_and_checks is None:
        return []
    age, checks = age_and_checks
    age_text = f"{age / 3600:.0f} h" if age >= 3600 else f"{age / 60:.0f} min"
    return [
        f"`nsw sites check {site.get('name')}`, {age_text} ago: {site_check.what}: {site_check.found}"
        + (f" ({site_check.fix})" if site_check.fix else "")
        for site_check in checks
        if (
            site_check.verdict is Verdict.WARNING
            or (site_check.verdict is Verdict.BAD and site_check.what not in REACHING)
        )
        and (counters or not site_check.what.startswith("counters"))
    ]


def _site_digest(site: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(site, sort_keys=True, default=str).encode()).hexdigest()


def _checks_file(site: Mapping[str, Any]) -> Path:
    name = hashlib.sha256(str(site.get("name")).encode()).hexdigest()[:16]
    return user_folder("cache") / "checks" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class SiteMetrics:
    """The base names that an ncu lists, and where they come from; None where it could not be asked, and why."""

    names: frozenset[str] | None
    note: str


def chip_of(loaded_site: LoadedSite) -> str | None:
    """The chip that the site names, else the GPU that is found on this machine."""
    return loaded_site.site.gpus.chip or find_facts(loaded_site).chip


def site_metrics(loaded_site: LoadedSite, chip: Chip) -> SiteMetrics:
    """Ask the site's ncu which metrics it knows on a chip, or read what it answered within the last week."""
    from nsw.transport.model import connect

    ncu, site = ncu_of(loaded_site), loaded_site.site
    if (kept := load_metric_names(loaded_site, chip)) is not None:
        return SiteMetrics(kept, f"by the {len(kept)} names that {ncu} of site {site.name} lists (kept)")
    query = " ".join(query_metrics_command(ncu, chip.name))
    load = f"module load {quote_all(site.modules)} 2>/dev/null; " if site.modules else ""
    shell = ["bash", "-lc" if site.login_shell else "-c", f'{load}exec "$@"', "nsw"]
    try:
        with closing(connect(loaded_site.site.model_dump(mode="json", by_alias=True))) as transport:
            done = transport.run([*shell, *query_metrics_command(ncu, chip.name)], timeout=_ASK_S)
    except (NswError, OSError) as fault:
        return SiteMetrics(None, f"site {site.name} could not be asked ({fault})")
    names = base_names_in_query_output(done.stdout)
    if done.returncode != 0 or not names:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1][:200] if lines else f"exit status {done.returncode}"
        return SiteMetrics(None, f"`{query}` gave no list on site {site.name} ({reason})")
    _write_cache(_metrics_file(loaded_site, chip), {"names": sorted(names)})
    return SiteMetrics(names, f"by the {len(names)} names that {ncu} of site {site.name} lists")


def load_metric_names(loaded_site: LoadedSite, chip: Chip) -> frozenset[str] | None:
    """The base names that the site's ncu listed within the last week; None where it was not asked."""
    with suppress(OSError, ValueError, KeyError, TypeError, NswError):
        return frozenset(str(name) for name in _read_cache(_metrics_file(loaded_site, chip), _WEEK_S)["names"]) or None
    return None


def ncu_of(loaded_site: LoadedSite) -> str:
    """The site's ncu: as its file names it, else NSW_NCU, else the one on PATH."""
    stated = {str(tool): path for tool, path in loaded_site.site.profilers.items()}.get("ncu")
    return stated or os.environ.get("NSW_NCU", "ncu")


def _metrics_file(loaded_site: LoadedSite, chip: Chip) -> Path:
    site = loaded_site.site.model_dump(mode="json", include={"transport", "modules", "profilers"})
    key = hashlib.sha256(
        json.dumps([loaded_site.site.name, site, ncu_of(loaded_site), chip.name], sort_keys=True).encode()
    ).hexdigest()
    return user_folder("cache") / "metrics" / f"{key[:32]}.json"


def query_site_metrics(loaded_site: LoadedSite, checks: Iterable[Check]) -> Check | None:
    """Ask the site's ncu; None where it has no ncu, or the chip is not known or not measured by one.

    Args:
        loaded_site: The site.
        checks: What was found of it so far, as `keep` has kept it.
    """
    has_ncu = any(site_check.what == "ncu" and site_check.verdict is Verdict.GOOD for site_check in checks)
    chip = find_chip(loaded_site.site.gpus.chip or gpu_found(loaded_site.site.model_dump(mode="json", by_alias=True)))
    if not has_ncu or chip is None or default_counters_tool(chip) != "ncu":
        return None
    metrics = site_metrics(loaded_site, chip)
    if metrics.names is None:
        return check_from_outcome("metrics", "not listed", note=metrics.note)
    return check_from_outcome("metrics", "good", count=len(metrics.names), chip=chip.name)


def _read_cache(path: Path, within: float) -> dict[str, Any]:
    """The data that were cached in the last `within` seconds, with their age.

    Raises:
        ValueError: It is older, or damaged; OSError, KeyError, TypeError and NswError likewise.
    """
    data: dict[str, Any] = json.loads(read_plain(path, owner=os.geteuid(), last=_MAX_BYTES))
    age = time.time() - float(data["time"])
    if not 0 <= age < within:
        raise ValueError
    return data | {"age": age}


def _write_cache(path: Path, data: dict[str, Any]) -> None:
    """Cache the data atomically; where that is not possible nothing is cached."""
    with suppress(OSError):
        make_folders(path.parent, 0o700)
        write_text(path, json.dumps(data | {"time": time.time()}))
