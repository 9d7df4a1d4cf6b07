"""Whether a site can carry out campaigns: questions to it, and what their answers mean, each with what to do."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import CommandError, CommandResult, HostKeyError, LoginError, NswError, UnreachableError
from nsw.metrics import find_chip, unsupported
from nsw.metrics.requests import tool_for, tools_for
from nsw.plan.launchers import FAMILIES, family_of
from nsw.quantities import seconds
from nsw.recipe.passes import PROGRAMS
from nsw.recipe.units import parse_duration
from nsw.schedulers.adapter import Adapter, Facts, Queue
from nsw.schedulers.create import is_shared, owner_of
from nsw.scripts.quoting import quote_all
from nsw.site.names import LOCAL
from nsw.site_check.facts import Check, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

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
PROBE: Final = r"""
printf 'nsw-time %s\n' "$(date +%s.%N)"
printf 'nsw-host %s\n' "$(hostname)"
while [ $# -gt 0 ]; do
  if ! command -v "$2" >/dev/null; then printf 'nsw-failed %s not found\n' "$1"
  elif text=$("$2" --version 2>&1 </dev/null); then printf 'nsw-tool %s %s\n' "$1" "${text##*$'\n'}"
  else printf 'nsw-failed %s %s\n' "$1" "${text##*$'\n'}"; fi
  shift 2
done
for m in mpirun mpiexec; do
  p=$(command -v $m) && { readlink -f "$p"; "$p" --version </dev/null 2>&1; } | sed "s/^/nsw-mpi $m /"
done
printf 'nsw-given %s\n' "${CUDA_VISIBLE_DEVICES-}"
command -v nvidia-smi >/dev/null && nvidia-smi -L | sed 's/^/nsw-gpu /'
sed -n 's/^RmProfilingAdminOnly: /nsw-admin /p' /proc/driver/nvidia/params 2>/dev/null
true
"""
_VERSION: Final = re.compile(r"[Vv]ersion (\d+(?:\.\d+)+)")
_NAME_IT_HINT: Final = "profilers: {%s: ...} names another one, or modules: the module that brings it"


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
        yield Check(_failed_step(alive.unreachable), Verdict.BAD, _first_line(alive), fix)
        return
    yield Check("connection", Verdict.GOOD, f"{lines[2]}, bash {lines[0]}")
    if transport.host_key is not None:
        yield host_key_check(transport.host_key())
    yield Check("login", Verdict.GOOD, f"as {lines[3]}")
    yield _clock(lines[1], before, now())
    facts = yield from _scheduler(site, transport, adapter)
    if adapter is not None and facts is not None:
        yield from _limits_checks(site, transport, adapter, facts)
    yield from _scratch(site, transport)
    shell = ["bash", "-lc" if site.get("login_shell") else "-c"]  # as the site's jobs start
    load = f"module load {quote_all(site['modules'])} 2>/dev/null\n" if site.get("modules") else ""
    done = transport.run([*shell, load + PROBE, *_profiler_words(site)], timeout=_PROBE_S)
    yield from _machine_checks(site, _node_facts(done.stdout), "here", has_nodes=adapter is not None)


def _failed_step(fault: UnreachableError | None) -> str:
    """Which step of getting there failed."""
    if isinstance(fault, HostKeyError):
        return "host key"
    return "login" if isinstance(fault, LoginError) else "connection"


def host_key_check(key_check: HostKeyCheck) -> Check:
    """Whether somebody else could answer for the host."""
    if key_check.verified:
        return Check("host key", Verdict.GOOD, key_check.evidence)
    return Check(
        "host key", Verdict.WARNING, key_check.evidence, "remove that line, so that ssh refuses a key that has changed"
    )


def _first_line(result: CommandResult) -> str:
    text = (result.stderr.strip() or result.stdout.strip() or f"exit status {result.returncode}").splitlines()
    return text[0] if text else "no answer"


def _clock(theirs: str, before: float, after: float) -> Check:
    try:
        skew = float(theirs) - (before + after) / 2
    except ValueError:
        return Check("clock", Verdict.SKIPPED, "it did not report the time", "`date +%s.%N` there prints it")
    slack = (after - before) / 2
    if abs(skew) > _SKEW_S + slack:
        fix = "times of runs are the site's own; ask its administrators about NTP"
        difference = f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
        return Check("clock", Verdict.WARNING, difference, fix, ahead_s=round(skew))
    return Check("clock", Verdict.GOOD, f"within {_SKEW_S + slack:.0f} s of this machine's")


def _scheduler(
    site: Mapping[str, Any], transport: Transport, adapter: Adapter | None
) -> Generator[Check, None, Facts | None]:
    """A check; returns the settings of a system that answers."""
    if adapter is None:
        yield Check("scheduler", Verdict.GOOD, "none: runs are started on the machine itself")
        return None
    command = adapter.sign_of_life_command()
    alive = transport.run(command, timeout=_SECONDS, without=adapter.cleared_variables, keep=adapter.kept_variables)
    owner = None
    if is_shared(adapter):
        version_output = transport.run([adapter.submit, "--version"], timeout=_SECONDS)
        owner = owner_of(adapter.submit, version_output.stdout + version_output.stderr)
    if owner and owner.scheduler != site.get("scheduler"):  # whatever its commands answer
        of_site = f"`scheduler:` says {site.get('scheduler')}"
        fix = f"{of_site}; write {owner.scheduler}" if owner.scheduler else f"nsw does not support it, though {of_site}"
        yield Check("scheduler", Verdict.BAD, f"its {adapter.submit} is {owner.product}'s", fix)
        return None
    if alive.returncode != 0 or alive.timed_out:
        fix = f"are {adapter.name}'s commands on PATH? transport: {{login_shell: true}} where only a login has them"
        yield Check("scheduler", Verdict.BAD, f"`{command[0]}`: {_first_line(adapter.plain(alive))}", fix)
        return None
    facts = Facts()
    if facts_command := adapter.facts_command:
        answer = transport.run(
            facts_command, timeout=_SECONDS, without=adapter.cleared_variables, keep=adapter.kept_variables
        )
        facts = adapter.parse_facts(answer) if answer.returncode == 0 else facts
    name = owner.product if owner else adapter.name
    yield Check("scheduler", Verdict.GOOD, " ".join(filter(None, (name, facts.version))))
    return facts


def _scratch(site: Mapping[str, Any], transport: Transport) -> Iterator[Check]:
    scratch = site.get("scratch")
    if scratch is None:
        yield Check("scratch", Verdict.SKIPPED, "runs work in the campaign's own folder")
        return
    try:
        path = transport.expand(scratch)
        transport.make_folders([path])
    except CommandError as fault:
        yield Check(
            "scratch", Verdict.BAD, _first_line(fault.result), "name a folder of yours that compute nodes see too"
        )
        return
    except UnreachableError as fault:
        yield Check("scratch", Verdict.BAD, fault.message)
        return
    except NswError as fault:
        yield Check("scratch", Verdict.BAD, fault.message, "an absolute path, whose variables are set on the site")
        return
    script = 'file=$1/.nsw-check-$$; : >"$file" && rm -f "$file" && df -P -k "$1" | tail -n 1'
    df_output = transport.run(["bash", "-c", script, "nsw", path], timeout=_SECONDS)
    fields = (df_output.stdout.splitlines() or [""])[0].split()
    if len(fields) < 4 or not fields[3].isdigit():
        yield Check(
            "scratch", Verdict.BAD, f"{path}: {_first_line(df_output)}", "it must be a folder that you may write"
        )
        return
    free = int(fields[3]) << 10
    verdict = Verdict.GOOD if free >= _LEAST_FREE else Verdict.WARNING
    fix = "" if verdict is Verdict.GOOD else "profiles of GPUs take gigabytes: make room, or name another folder"
    yield Check("scratch", verdict, f"{path}, {free / (1 << 30):,.1f} GiB free", fix)
    quota = transport.run(["bash", "-c", _QUOTA, "nsw", path], timeout=_SECONDS)
    no_quota = Check(
        "quota", Verdict.SKIPPED, "`quota` and `lfs quota` list no limit", "ask the site: jobs fail at its limit"
    )
    yield (quota_check(quota.stdout) if quota.returncode == 0 else None) or no_quota


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
    usage = f"{file_system}: {used / (1 << 20):,.1f} of {allowed / (1 << 20):,.1f} GiB used"
    if share < _FULL:
        return Check("quota", Verdict.GOOD, usage)
    return Check("quota", Verdict.WARNING, usage, "jobs fail when it is full: `nsw clean`, or name another scratch")


def probe_words(site: Mapping[str, Any]) -> list[str]:
    """The program that asks a node, with the profilers as the site names them."""
    return ["bash", "-c", PROBE, *_profiler_words(site)]


def _profiler_words(site: Mapping[str, Any]) -> list[str]:
    configured = site.get("profilers") or {}
    return ["nsw", *(word for tool in _tools(configured) for word in (tool, str(configured.get(tool) or tool)))]


def _tools(configured: Mapping[str, Any]) -> tuple[str, ...]:
    """The profilers to look for: those that every site may have, and what this one names."""
    return tuple(dict.fromkeys((*PROGRAMS, *configured)))


def _node_facts(output: str) -> dict[str, list[str]]:
    """What a node said of itself, by its words."""
    facts_by_word: dict[str, list[str]] = {}
    for line in output.splitlines():
        word, _, value = line.partition(" ")
        if word.startswith("nsw-"):
            facts_by_word.setdefault(word.removeprefix("nsw-"), []).append(value.strip())
    return facts_by_word


def _machine_checks(
    site: Mapping[str, Any], node_facts: Mapping[str, list[str]], location: str, *, has_nodes: bool
) -> Iterator[Check]:
    """What a node's answer means: its profilers, MPI and GPUs."""
    configured = site.get("profilers") or {}
    present, failed = (
        {t: v for t, _, v in (x.partition(" ") for x in node_facts.get(k, ()))} for k in ("tool", "failed")
    )
    for tool in _tools(configured):
        if tool in present or (tool not in PROGRAMS and failed.get(tool, "not found") != "not found"):
            yield Check(tool, Verdict.GOOD, present.get(tool) or str(configured[tool]))
        elif tool in configured:
            fix = f"correct profilers.{tool}, or name the module that provides it"
            yield Check(tool, Verdict.BAD, f"{configured[tool]}: {failed.get(tool, 'no answer')}", fix)
        else:
            nodes = "; compute nodes may have it all the same" if has_nodes else ""
            fix = f"name its path: profilers: {{{tool}: ...}}, or its module{nodes}"
            yield Check(tool, Verdict.SKIPPED, f"not on PATH {location}", fix)
    mpi: dict[str, str] = {}
    for line in node_facts.get("mpi", ()):
        name, _, text = line.partition(" ")
        mpi[name] = f"{mpi[name]}\n{text}" if name in mpi else text
    yield mpi_check(site, mpi)
    yield from _gpu_checks(node_facts, has_nodes=has_nodes)


def mpi_check(site: Mapping[str, Any], printed: Mapping[str, str]) -> Check:
    """Which MPI's mpirun and mpiexec are; planning uses the family that `found` names behind `mpi:`.

    Args:
        site: The site as data.
        printed: Those that are on PATH, each with its path and below that what its `--version` printed.
    """
    if not printed:
        fix = "recipes that start through them need the module that brings them: `modules:`"
        return Check(_MPI, Verdict.SKIPPED, "neither mpirun nor mpiexec is on PATH here", fix)
    families = {}
    for name, text in printed.items():
        path, _, version = text.partition("\n")
        families[name] = family_of(version) or family_of(path)
    description = ", ".join(
        f"{name} is {_PRODUCTS[mpi] if mpi else 'of an unknown MPI'}" for name, mpi in families.items()
    )
    stated = site.get("mpi")
    known_families = {mpi for mpi in families.values() if mpi}
    if stated and known_families and stated not in known_families:
        fix = "correct `mpi:`, or name the module of the other MPI in `modules:`"
        return Check(_MPI, Verdict.WARNING, f"the site says `mpi: {stated}`, but {description}", fix)
    if len(known_families) == 1 or stated in known_families:
        family = stated or next(iter(known_families))
        return Check(_MPI, Verdict.GOOD, f"{description} (mpi: {family})", mpi=family)
    fix = f"write the site's `mpi:` for the one that recipes use: {', '.join(FAMILIES)}"
    return Check(_MPI, Verdict.WARNING if known_families else Verdict.SKIPPED, description, fix)


def _gpu_checks(node_facts: Mapping[str, list[str]], *, has_nodes: bool) -> Iterator[Check]:
    """The GPUs of a node, and who may read their counters; `has_nodes`: there are compute nodes beside this one."""
    names = _gpu_names(node_facts)
    if not names and not has_nodes:
        fix = "is NVIDIA's driver installed there, with nvidia-smi on PATH?"
        yield Check("GPUs", Verdict.SKIPPED, "`nvidia-smi -L` lists none", fix)
        yield Check(_COUNTERS, Verdict.SKIPPED, "there is no GPU to read them from", fix)
        return
    if not names:
        fix = "`--node` looks from a compute node"
        yield Check("GPUs", Verdict.SKIPPED, "none on this node, as on most login nodes", fix)
        yield Check(_COUNTERS, Verdict.SKIPPED, "who may read them is decided on nodes with GPUs", fix)
        return
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    yield Check("GPUs", Verdict.GOOD, kinds, gpus=tuple(names))
    only_root = node_facts.get("admin")
    if only_root == ["1"]:
        fix = "counters passes fail with ERR_NVGPUCTRPERM: sites lift it with NVreg_RestrictProfilingToAdminUsers=0"
        yield Check(_COUNTERS, Verdict.WARNING, "for administrators only", fix)
    elif only_root:
        yield Check(_COUNTERS, Verdict.GOOD, "allowed for everybody")
    else:
        fix = "a counters pass says so at once: ERR_NVGPUCTRPERM"
        yield Check(_COUNTERS, Verdict.SKIPPED, "the driver does not say who may read them", fix)


def _gpu_names(node_facts: Mapping[str, list[str]]) -> list[str]:
    return re.findall(r"^GPU \d+: (.*?) \(UUID", "\n".join(node_facts.get("gpu", ())), re.MULTILINE)


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
    node_facts = _node_facts(output)
    host = node_facts.get("host", ["?"])[0]
    yield Check("node", Verdict.GOOD, f"{host} ran the shortest job")
    yield _node_clock(node_facts.get("time", [""])[0], earliest + skew, latest + skew)
    seen = _gpu_names(node_facts)
    for site_check in _machine_checks(site, node_facts, f"on {host}", has_nodes=False):
        if (site_check.what != _MPI or "mpi" in node_facts) and (site_check.what not in {"GPUs", _COUNTERS} or seen):
            yield replace(site_check, what=f"{site_check.what} (node)")
    promised = (site.get("gpus") or {}).get("per_node")
    if promised and not seen:
        fix = "does the job ask for GPUs as the site wants it? `resources: extra:` takes the site's own lines"
        yield Check("GPUs (node)", Verdict.WARNING, f"the site promises {promised} a node; the job saw none", fix)
    if len(seen) > 1 and node_facts.get("given") == [""] and not site.get("whole_nodes"):
        fix = "runs on one node would use the same GPU: `whole_nodes: true`, or `resources: {exclusive: true}`"
        message = f"a job of one GPU is not told which of the {len(seen)} is its own"
        yield Check("own GPU (node)", Verdict.WARNING, message, fix)


def _node_clock(text: str, earliest: float, latest: float) -> Check:
    try:
        node_time = float(text)
    except ValueError:
        return Check("clock (node)", Verdict.SKIPPED, "it did not report the time")
    off = node_time - latest if node_time > latest else node_time - earliest if node_time < earliest else 0.0
    if abs(off) > _SKEW_S:
        fix = "times of runs are the node's own, and may not fit those of the login node; ask about NTP"
        direction = "ahead of" if off > 0 else "behind"
        return Check("clock (node)", Verdict.WARNING, f"{abs(off):.0f} s {direction} the login node's", fix)
    return Check("clock (node)", Verdict.GOOD, "agrees with the login node's")


def _limits_checks(site: Mapping[str, Any], transport: Transport, adapter: Adapter, facts: Facts) -> Iterator[Check]:
    """Ask for queues and accounts, and compare them with the site."""
    if command := adapter.queues_command:
        done = transport.run(command, timeout=_SECONDS, without=adapter.cleared_variables, keep=adapter.kept_variables)
        yield limits_check(site, adapter.parse_queues(done), facts.longest_array)
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
    queue = next(
        (candidate for candidate in queues if (candidate.name == name if name else candidate.is_default)), None
    )
    if queue is None:
        queue_names = ", ".join(candidate.name for candidate in queues[:_MOST_NAMES]) or "none"
        message = (
            f"{name} is not among the queues listed: {queue_names}"
            if name
            else f"no default queue; listed: {queue_names}"
        )
        return Check("limits", Verdict.SKIPPED, message, "`partition:` or `queue:` of the site names the queue")
    limits = site.get("limits") or {}
    longest = None if limits.get("max_walltime") is None else parse_duration(limits["max_walltime"])
    per_node = (site.get("gpus") or {}).get("per_node")
    if longest is not None and queue.walltime is not None and longest > queue.walltime:
        message = f"limits.max_walltime is {seconds(longest)}, and {queue.name} takes jobs of {seconds(queue.walltime)}"
        return Check("limits", Verdict.WARNING, message, "correct limits.max_walltime, or name another queue")
    if isinstance(per_node, int) and queue.gpus is not None and per_node > queue.gpus:
        message = f"gpus.per_node is {per_node}, and nodes of {queue.name} have {queue.gpus or 'none'}"
        return Check("limits", Verdict.WARNING, message, "correct gpus.per_node, or name the queue with GPUs")
    max_array = limits.get("max_array")
    if max_array and longest_array is not None and max_array > longest_array:
        message = f"limits.max_array is {max_array}, and an array may have {longest_array} tasks"
        return Check("limits", Verdict.GOOD, f"{message}: nsw makes none longer")
    queue_facts = [
        f"jobs of at most {seconds(queue.walltime)}" if queue.walltime is not None else "no longest time listed"
    ]
    queue_facts += [f"{queue.gpus} GPUs a node"] if queue.gpus else []
    queue_facts += [f"arrays of at most {longest_array}"] if longest_array is not None else []
    return Check("limits", Verdict.GOOD, f"{queue.name}: {', '.join(queue_facts)}")


def account_check(site: Mapping[str, Any], accounts: Sequence[str]) -> Check:
    """Whether the site's account is one of the user's.

    Args:
        site: The site as data.
        accounts: The user's accounts; none where the batch system keeps no list.
    """
    account = site.get("account")
    if not accounts:
        not_compared = f"{account}: not compared, " if account else ""
        fix = "the line `queue` shows whether the scheduler takes jobs so"
        return Check("account", Verdict.SKIPPED, f"{not_compared}the batch system lists no accounts", fix)
    own_accounts = ", ".join(accounts[:_MOST_NAMES])
    if account and account not in accounts:
        fix = "correct `account:` of the site, or ask its administrators"
        return Check("account", Verdict.WARNING, f"{account} is not among yours: {own_accounts}", fix)
    return Check("account", Verdict.GOOD, f"{account}" if account else f"the default one; yours: {own_accounts}")


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
        fix = "gpus: {chip: ...} of the site names it, such as H100"
        if site.get("scheduler") != LOCAL:
            fix = f"`--node` looks at a compute node's; {fix}"
        return Check("chip", Verdict.SKIPPED, "no GPU was seen, and the site names none", fix)
    text = seen[0] if seen else str(stated)
    chip = find_chip(text)
    if chip is None:
        fix = "recipes are checked once jobs have run; `nsw metrics` lists the chips that nsw knows"
        return Check("chip", Verdict.SKIPPED, f"{text}: no chip that nsw knows", fix)
    other_gpus = [
        site_check
        for site_check in seen
        if (other_chip := find_chip(site_check)) is not None and other_chip is not chip
    ]
    stated_chip = find_chip(str(stated)) if stated else None
    if other_gpus or (seen and stated_chip is not None and stated_chip is not chip):
        found_here = ", ".join([text, *other_gpus])
        fix = "correct gpus.chip; a queue with one kind of GPU each is a site each"
        return Check(
            "chip", Verdict.WARNING, f"the site says {stated or 'nothing'}, and its node has {found_here}", fix
        )
    reasons = []
    for tool in tools_for(chip):
        printed = findings.get(f"{tool} (node)") or findings.get(tool)
        if printed is None:
            continue
        version = _VERSION.search(printed)
        reason = unsupported(tool, chip, version[1] if version else None)
        if reason is None:
            return Check("chip", Verdict.GOOD, f"{chip.name}: {tool}{f' {version[1]}' if version else ''} measures it")
        reasons.append(reason)
    needed_tool = tool_for(chip)
    if reasons:
        return Check("chip", Verdict.WARNING, "; ".join(reasons), _NAME_IT_HINT % needed_tool)
    return Check(
        "chip",
        Verdict.SKIPPED,
        f"{chip.name}: counters need {needed_tool}, which was not found",
        _NAME_IT_HINT % needed_tool,
    )
