"""Whether a site can carry out campaigns: questions to it, and what their answers mean, each with what to do."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from nsw.campaign.check_site_limits import limits_checks
from nsw.campaign.site_check_result import Check, Verdict
from nsw.errors import CommandError, HostKeyError, LoginError, NswError, UnreachableError
from nsw.plan.launchers import FAMILIES, family_of
from nsw.recipe.profiler_names import PROGRAMS
from nsw.schedulers.adapter import Facts
from nsw.schedulers.create import is_shared, owner_of
from nsw.scripts.quoting import quote_all

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from nsw.errors import CommandResult
    from nsw.schedulers.adapter import Adapter
    from nsw.transport.model import HostKeyCheck, Transport

_SECONDS = 60.0
_SKEW_S = 5.0
_LEAST_FREE = 1 << 30
_FULL = 0.9  # of a quota
COUNTERS = "counters"
MPI = "MPI"
_PRODUCTS = {"openmpi": "Open MPI's", "mpich": "MPICH's or a relative's (Hydra)", "pals": "Cray PALS'"}
# where it is and what it prints: PALS says its name in its path only
MPI_VERSION = 'p=$(command -v "$1") || exit 1; readlink -f "$p"; exec "$1" --version </dev/null 2>&1'
_QUOTA = """
if command -v lfs >/dev/null && lfs quota -q -u "$(id -un)" "$1" 2>/dev/null; then exit; fi
command -v quota >/dev/null && quota -w 2>/dev/null
exit 0
"""


def skew_of(checks: Iterable[Check]) -> float:
    """Seconds that the site's clock is ahead, where a check found that it is wrong; else 0."""
    for one in checks:
        if one.what == "clock" and (told := re.fullmatch(r"(\d+) s (ahead|behind)", one.found)):
            return float(told[1]) if told[2] == "ahead" else -float(told[1])
    return 0.0


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
        yield Check(_failed_step(alive.unreachable), Verdict.BAD, _said(alive), fix)
        return
    yield Check("connection", Verdict.GOOD, f"{lines[2]}, bash {lines[0]}")
    if transport.host_key is not None:
        yield host_key_check(transport.host_key())
    yield Check("login", Verdict.GOOD, f"as {lines[3]}")
    yield _clock(lines[1], before, now())
    facts = yield from _scheduler(site, transport, adapter)
    if adapter is not None and facts is not None:
        yield from limits_checks(site, transport, adapter, facts)
    yield from _scratch(site, transport)
    yield from _profilers(site, transport, has_nodes=adapter is not None)
    yield _mpi(site, transport)
    yield from _gpus(transport, has_nodes=adapter is not None)


def _failed_step(fault: UnreachableError | None) -> str:
    """Which step of getting there failed."""
    if isinstance(fault, HostKeyError):
        return "host key"
    return "login" if isinstance(fault, LoginError) else "connection"


def host_key_check(told: HostKeyCheck) -> Check:
    """Whether somebody else could answer for the host."""
    if told.verified:
        return Check("host key", Verdict.GOOD, told.found)
    return Check(
        "host key", Verdict.WARNING, told.found, "remove that line, so that ssh refuses a key that has changed"
    )


def _said(result: CommandResult) -> str:
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
        return Check("clock", Verdict.WARNING, f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}", fix)
    return Check("clock", Verdict.GOOD, f"within {_SKEW_S + slack:.0f} s of this machine's")


def _scheduler(
    site: Mapping[str, Any], transport: Transport, adapter: Adapter | None
) -> Generator[Check, None, Facts | None]:
    """A check; returns the settings of a system that answers."""
    if adapter is None:
        yield Check("scheduler", Verdict.GOOD, "none: runs are started on the machine itself")
        return None
    command = adapter.sign_of_life_command()
    alive = transport.run(command, timeout=_SECONDS, without=adapter.cleared, keep=adapter.kept)
    owner = None
    if is_shared(adapter):
        told = transport.run([adapter.submit, "--version"], timeout=_SECONDS)
        owner = owner_of(adapter.submit, told.stdout + told.stderr)
    if owner and owner.scheduler != site.get("scheduler"):  # whatever its commands answer
        of_site = f"`scheduler:` says {site.get('scheduler')}"
        fix = f"{of_site}; write {owner.scheduler}" if owner.scheduler else f"nsw does not support it, though {of_site}"
        yield Check("scheduler", Verdict.BAD, f"its {adapter.submit} is {owner.product}'s", fix)
        return None
    if alive.returncode != 0 or alive.timed_out:
        fix = f"are {adapter.name}'s commands on PATH? transport: {{login_shell: true}} where only a login has them"
        yield Check("scheduler", Verdict.BAD, f"`{command[0]}`: {_said(adapter.plain(alive))}", fix)
        return None
    facts = Facts()
    if asked := adapter.facts_command:
        answer = transport.run(asked, timeout=_SECONDS, without=adapter.cleared, keep=adapter.kept)
        facts = adapter.parse_facts(answer) if answer.returncode == 0 else facts
    name = owner.product if owner else adapter.name
    yield Check("scheduler", Verdict.GOOD, " ".join(filter(None, (name, facts.version))))
    return facts


def _scratch(site: Mapping[str, Any], transport: Transport) -> Iterator[Check]:
    given = site.get("scratch")
    if given is None:
        yield Check("scratch", Verdict.SKIPPED, "runs work in the campaign's own folder")
        return
    try:
        path = transport.expand(given)
        transport.make_folders([path])
    except CommandError as fault:
        yield Check("scratch", Verdict.BAD, _said(fault.result), "name a folder of yours that compute nodes see too")
        return
    except UnreachableError as fault:
        yield Check("scratch", Verdict.BAD, fault.message)
        return
    except NswError as fault:
        yield Check("scratch", Verdict.BAD, fault.message, "an absolute path, whose variables are set on the site")
        return
    script = 'file=$1/.nsw-check-$$; : >"$file" && rm -f "$file" && df -P -k "$1" | tail -n 1'
    told = transport.run(["bash", "-c", script, "nsw", path], timeout=_SECONDS)
    fields = (told.stdout.splitlines() or [""])[0].split()
    if len(fields) < 4 or not fields[3].isdigit():
        yield Check("scratch", Verdict.BAD, f"{path}: {_said(told)}", "it must be a folder that you may write")
        return
    free = int(fields[3]) << 10
    verdict = Verdict.GOOD if free >= _LEAST_FREE else Verdict.WARNING
    fix = "" if verdict is Verdict.GOOD else "profiles of GPUs take gigabytes: make room, or name another folder"
    yield Check("scratch", verdict, f"{path}, {free / (1 << 30):,.1f} GiB free", fix)
    quota = transport.run(["bash", "-c", _QUOTA, "nsw", path], timeout=_SECONDS)
    none = Check(
        "quota", Verdict.SKIPPED, "`quota` and `lfs quota` list no limit", "ask the site: jobs fail at its limit"
    )
    yield (quota_check(quota.stdout) if quota.returncode == 0 else None) or none


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
    share, where, used, most = fullest
    found = f"{where}: {used / (1 << 20):,.1f} of {most / (1 << 20):,.1f} GiB used"
    if share < _FULL:
        return Check("quota", Verdict.GOOD, found)
    return Check("quota", Verdict.WARNING, found, "jobs fail when it is full: `nsw clean`, or name another scratch")


def _profilers(site: Mapping[str, Any], transport: Transport, *, has_nodes: bool) -> Iterator[Check]:
    named = site.get("profilers") or {}
    version = '"$1" --version 2>&1 | tail -n 1; exit "${PIPESTATUS[0]}"'
    # the profiler of another package may have no --version
    place = 'command -v "$1" || { echo not found >&2; exit 1; }'
    tools = tuple(dict.fromkeys((*PROGRAMS, *named)))
    commands = [
        _with_modules(site, version if tool in PROGRAMS else place, str(named.get(tool) or tool)) for tool in tools
    ]
    for tool, done in zip(tools, transport.run_many(commands, timeout=_SECONDS), strict=True):
        if done.returncode == 0:
            yield Check(tool, Verdict.GOOD, done.stdout.strip())
        elif tool in named:
            fix = f"correct profilers.{tool}, or name the module that provides it"
            yield Check(tool, Verdict.BAD, f"{named[tool]}: {_said(done)}", fix)
        else:
            nodes = "; compute nodes may have it all the same" if has_nodes else ""
            fix = f"name its path: profilers: {{{tool}: ...}}, or its module{nodes}"
            yield Check(tool, Verdict.SKIPPED, "not on PATH here", fix)


def _with_modules(site: Mapping[str, Any], script: str, word: str) -> list[str]:
    """A script with one argument, run with the site's modules loaded, as the site's jobs are."""
    load = f"module load {quote_all(site['modules'])} 2>/dev/null; " if site.get("modules") else ""
    return ["bash", "-lc" if site.get("login_shell") else "-c", f"{load}{script}", "nsw", word]


def _mpi(site: Mapping[str, Any], transport: Transport) -> Check:
    names = ("mpirun", "mpiexec")
    done = transport.run_many([_with_modules(site, MPI_VERSION, name) for name in names], timeout=_SECONDS)
    return mpi_check(site, {name: one.stdout for name, one in zip(names, done, strict=True) if one.returncode == 0})


def mpi_check(site: Mapping[str, Any], printed: Mapping[str, str]) -> Check:
    """Which MPI's mpirun and mpiexec are; planning uses the family that `found` names behind `mpi:`.

    Args:
        site: The site as data.
        printed: Those that are on PATH, each with its path and below that what its `--version` printed.
    """
    if not printed:
        fix = "recipes that start through them need the module that brings them: `modules:`"
        return Check(MPI, Verdict.SKIPPED, "neither mpirun nor mpiexec is on PATH here", fix)
    families = {}
    for name, text in printed.items():
        path, _, version = text.partition("\n")
        families[name] = family_of(version) or family_of(path)
    of = ", ".join(f"{name} is {_PRODUCTS[one] if one else 'of an unknown MPI'}" for name, one in families.items())
    told = site.get("mpi")
    known = {one for one in families.values() if one}
    if told and known and told not in known:
        fix = "correct `mpi:`, or name the module of the other MPI in `modules:`"
        return Check(MPI, Verdict.WARNING, f"the site says `mpi: {told}`, but {of}", fix)
    if len(known) == 1 or told in known:
        return Check(MPI, Verdict.GOOD, f"{of} (mpi: {told or next(iter(known))})")
    fix = f"write the site's `mpi:` for the one that recipes use: {', '.join(FAMILIES)}"
    return Check(MPI, Verdict.WARNING if known else Verdict.SKIPPED, of, fix)


def _gpus(transport: Transport, *, has_nodes: bool) -> Iterator[Check]:
    commands = [["nvidia-smi", "-L"], ["cat", "/proc/driver/nvidia/params"]]
    listed, params = transport.run_many(commands, timeout=_SECONDS)
    yield from gpu_checks(listed.stdout, params.stdout, has_nodes=has_nodes)


def gpu_checks(listed: str, params: str, *, has_nodes: bool) -> Iterator[Check]:
    """The GPUs of a node, and who may read their counters.

    Args:
        listed: What `nvidia-smi -L` printed.
        params: What the driver says in /proc/driver/nvidia/params.
        has_nodes: Whether there are compute nodes beside this one.
    """
    names = re.findall(r"^GPU \d+: (.*?) \(UUID", listed, re.MULTILINE)
    if not names and not has_nodes:
        fix = "is NVIDIA's driver installed there, with nvidia-smi on PATH?"
        yield Check("GPUs", Verdict.SKIPPED, "`nvidia-smi -L` lists none", fix)
        yield Check(COUNTERS, Verdict.SKIPPED, "there is no GPU to read them from", fix)
        return
    if not names:
        fix = "`--node` looks from a compute node"
        yield Check("GPUs", Verdict.SKIPPED, "none on this node, as on most login nodes", fix)
        yield Check(COUNTERS, Verdict.SKIPPED, "who may read them is decided on nodes with GPUs", fix)
        return
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    yield Check("GPUs", Verdict.GOOD, kinds)
    only_root = re.search(r"^RmProfilingAdminOnly: (\d)", params, re.MULTILINE)
    if only_root and only_root[1] == "1":
        fix = "counters passes fail with ERR_NVGPUCTRPERM: sites lift it with NVreg_RestrictProfilingToAdminUsers=0"
        yield Check(COUNTERS, Verdict.WARNING, "for administrators only", fix)
    elif only_root:
        yield Check(COUNTERS, Verdict.GOOD, "allowed for everybody")
    else:
        fix = "a counters pass says so at once: ERR_NVGPUCTRPERM"
        yield Check(COUNTERS, Verdict.SKIPPED, "the driver does not say who may read them", fix)
