"""What a job needs -> its `#SBATCH` lines."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from nsw.errors import RefusedError, UsageError
from nsw.recipe.units import clock, format_memory

if TYPE_CHECKING:
    from nsw.plan.model import Job

# options that a line of the recipe's own may not have, each with the reason
_OWN = {
    ("--array", "-a"): "nsw makes the arrays itself, as limits.max_array and limits.max_in_flight say",
    ("--clusters", "--cluster", "-M"): "nsw asks the cluster of its own login node, and would take the job for lost",
    ("--test-only",): "nothing would be submitted; `nsw plan` asks whether the jobs would be accepted",
    ("--wait", "-W"): "sbatch would wait for the job's end, and nothing else be submitted",
    ("--job-name", "-J"): "nsw finds its jobs by the names that it gives them",
    ("--output", "-o"): "`nsw logs` prints the job's output, which it looks for where nsw told Slurm to write it",
    ("--comment",): "it holds the campaign's id, by which all jobs of a campaign are known",
    ("--open-mode",): "what a job printed before it was put back into the queue is kept",
}
_REFUSED = {option: why for options, why in _OWN.items() for option in options}
_PLAIN = re.compile(r"[A-Za-z0-9_.,:@%+/=*|&()\[\]~^!<>-]+")


def directives(job: Job, scratch: str) -> list[str]:
    """The lines of one job; of an array each task gets what they ask.

    Raises:
        UsageError: A value cannot be on such a line.
        RefusedError: A line of the recipe's own asks for what nsw must do itself.
    """
    needs = job.resources
    log = f"{scratch.replace('%', '%%')}/jobs/%x.%j.log"  # nsw names it anew when it submits
    asked = {
        "output": log,
        "time": clock(job.walltime_s),
        "nodes": needs.nodes,
        "ntasks": needs.tasks,
        "ntasks-per-node": -(-needs.tasks // needs.nodes) if needs.tasks > 1 else None,
        "cpus-per-task": needs.cpus_per_task,
        "mem": None if needs.memory_bytes is None else format_memory(needs.memory_bytes),
        "gres": needs.gres,
        **({} if needs.gres else _gpus(needs.gpus, needs.nodes)),
        "partition": needs.queue,
        "account": needs.account,
        "qos": needs.qos,
        "constraint": needs.constraint,
        "reservation": needs.reservation,
    }
    lines = [directive(option, value) for option, value in asked.items() if value is not None]
    if needs.exclusive:
        lines.append("#SBATCH --exclusive")
    return [*lines, *(_extra(line) for line in needs.extra)]


def directive(option: str, value: object) -> str:
    """One line; the value is quoted as sbatch's own parser reads quotes."""
    text = str(value)
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise UsageError(f"resources: {option} holds a control character: {text!r}")
    if not _PLAIN.fullmatch(text):
        text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"#SBATCH --{option}={text}"


def _gpus(count: int, nodes: int) -> dict[str, object]:
    if count == 0:
        return {}
    return {"gpus-per-node": count // nodes} if count % nodes == 0 else {"gpus": count}


def _extra(line: str) -> str:
    if "\n" in line or "\r" in line:
        raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
    text = line if line.startswith("#") else f"#SBATCH {line}"
    if text.startswith("#SBATCH"):
        for option in _options(text):
            if why := _REFUSED.get(option):
                raise RefusedError(f"resources.extra cannot hold {option}: {why}", key="extra")
    return text


def _options(directive: str) -> list[str]:
    """The names of the options on a line, as sbatch reads it."""
    try:
        words = shlex.split(directive, comments=False)[1:]
    except ValueError:  # an open quote, of which sbatch says what it thinks
        words = directive.split()[1:]
    return [word.partition("=")[0] if word.startswith("--") else word[:2] for word in words if word.startswith("-")]
