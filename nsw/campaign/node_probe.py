"""What a compute node says of itself: the program that the shortest job runs there, and what its answer means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.site_check import MPI_VERSION, gpu_checks, mpi_check
from nsw.campaign.site_check_result import Check, Verdict
from nsw.recipe.profiler_names import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SLACK_S: Final = 5.0
# `word value` lines; profilers are named by the site or found behind its modules, which the job has loaded
PROBE: Final = r"""
printf 'nsw-time %s\n' "$(date +%s.%N)"
printf 'nsw-host %s\n' "$(hostname)"
while [ $# -gt 0 ]; do
  command -v "$2" >/dev/null && printf 'nsw-tool %s %s\n' "$1" "$("$2" --version 2>&1 | tail -n 1)"
  shift 2
done
for m in mpirun mpiexec; do text=$(set -- "$m"; MPI_VERSION) && printf '%s\n' "$text" | sed "s/^/nsw-mpi $m /"; done
printf 'nsw-given %s\n' "${CUDA_VISIBLE_DEVICES-}"
command -v nvidia-smi >/dev/null && nvidia-smi -L | sed 's/^/nsw-gpu /'
sed -n 's/^RmProfilingAdminOnly: /nsw-admin /p' /proc/driver/nvidia/params 2>/dev/null
df -P -k . | tail -n 1 | sed 's/^/nsw-disk /'
true
""".replace("MPI_VERSION", MPI_VERSION)


def probe_words(site: Mapping[str, Any]) -> list[str]:
    """The program, with the profilers as the site names them."""
    named = site.get("profilers") or {}
    return [
        "bash",
        "-c",
        PROBE,
        "nsw",
        *(word for tool in _tools(named) for word in (tool, str(named.get(tool) or tool))),
    ]


def _tools(named: Mapping[str, Any]) -> tuple[str, ...]:
    """The profilers to look for: those that every site may have, and what this one names."""
    return tuple(dict.fromkeys((*PROGRAMS, *named)))


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
    said: dict[str, list[str]] = {}
    for line in output.splitlines():
        word, _, value = line.partition(" ")
        if word.startswith("nsw-"):
            said.setdefault(word.removeprefix("nsw-"), []).append(value.strip())
    host = said.get("host", ["?"])[0]
    yield Check("node", Verdict.GOOD, f"{host} ran the shortest job")
    yield _clock(said.get("time", [""])[0], earliest + skew, latest + skew)
    named = site.get("profilers") or {}
    there = {tool: version for tool, _, version in (line.partition(" ") for line in said.get("tool", ()))}
    for tool in _tools(named):
        if tool in there:
            yield Check(f"{tool} (node)", Verdict.GOOD, there[tool])
        else:
            verdict = Verdict.BAD if tool in named else Verdict.SKIPPED
            found = f"{named[tool]} is not on {host}" if tool in named else f"not on PATH on {host}"
            yield Check(f"{tool} (node)", verdict, found, f"name its path: profilers: {{{tool}: ...}}, or its module")
    mpi: dict[str, list[str]] = {}
    for line in said.get("mpi", ()):
        name, _, text = line.partition(" ")
        mpi.setdefault(name, []).append(text)
    if mpi:
        one = mpi_check(site, {name: "\n".join(text) for name, text in mpi.items()})
        yield Check(f"{one.what} (node)", one.verdict, one.found, one.fix)
    listed = "\n".join(said.get("gpu", []))
    params = "".join(f"RmProfilingAdminOnly: {value}\n" for value in said.get("admin", []))
    for one in gpu_checks(listed, params, has_nodes=True) if listed else ():
        yield Check(f"{one.what} (node)", one.verdict, one.found, one.fix)
    wanted = (site.get("gpus") or {}).get("per_node")
    seen = len(re.findall(r"^GPU \d+:", listed, re.MULTILINE))
    if wanted and not seen:
        fix = "does the job ask for GPUs as the site wants it? `resources: extra:` takes the site's own lines"
        yield Check("GPUs (node)", Verdict.WARNING, f"the site promises {wanted} a node; the job saw none", fix)
    if seen > 1 and said.get("given") == [""] and not site.get("whole_nodes"):
        fix = "runs on one node would use the same GPU: `whole_nodes: true`, or `resources: {exclusive: true}`"
        found = f"a job of one GPU is not told which of the {seen} is its own"
        yield Check("own GPU (node)", Verdict.WARNING, found, fix)


def _clock(text: str, earliest: float, latest: float) -> Check:
    try:
        told = float(text)
    except ValueError:
        return Check("clock (node)", Verdict.SKIPPED, "it did not report the time")
    off = told - latest if told > latest else told - earliest if told < earliest else 0.0
    if abs(off) > _SLACK_S:
        fix = "times of runs are the node's own, and may not fit those of the login node; ask about NTP"
        way = "ahead of" if off > 0 else "behind"
        return Check("clock (node)", Verdict.WARNING, f"{abs(off):.0f} s {way} the login node's", fix)
    return Check("clock (node)", Verdict.GOOD, "agrees with the login node's")
