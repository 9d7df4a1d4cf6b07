"""What a job needs -> its `#SBATCH` lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.errors import UsageError
from nsw.recipe.units import clock

if TYPE_CHECKING:
    from nsw.plan.model import Job

_PLAIN = re.compile(r"[A-Za-z0-9_.,:@%+/=*|&()\[\]~^!<>-]+")


def directives(job: Job, scratch: str) -> list[str]:
    """The lines of one job; of an array each task gets what they ask.

    Raises:
        UsageError: A value cannot stand on such a line.
    """
    needs = job.resources
    log = f"{scratch.replace('%', '%%')}/jobs/%x.%j.log"  # nsw names it anew when it submits
    asked = {
        "output": log,
        "time": clock(job.walltime_s),
        "nodes": needs.nodes,
        "ntasks": needs.tasks,
        "cpus-per-task": needs.cpus_per_task,
        "mem": None if needs.memory_bytes is None else f"{-(-needs.memory_bytes // 1024)}K",
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
    return line if line.startswith("#") else f"#SBATCH {line}"
