"""What a job needs -> its `#PBS` lines, for PBS Professional and OpenPBS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.errors import RefusedError, UsageError
from nsw.recipe.units import clock, format_memory
from nsw.scripts.quoting import directive_value

if TYPE_CHECKING:
    from nsw.plan.model import Job, Resources

# options that a line of the recipe's own may not have, each with the reason
_REFUSED = {
    "J": "nsw makes the arrays itself, as limits.max_array and limits.max_in_flight say",
    "N": "nsw finds its jobs by the names that it gives them",
    "o": "`nsw logs` prints the job's output, which it looks for where nsw told PBS to write it",
    "e": "`nsw logs` shows what the job prints, with its errors",
    "j": "`nsw logs` shows what the job prints, with its errors",
    "v": "nsw's own -v would replace it; write the variables into the recipe's app.env",
    "I": "an interactive job would wait for a terminal",
    "z": "qsub would not print the job's id",
    "h": "the job would never start; `nsw run` holds nothing back",
    "C": "the directives that nsw writes begin with #PBS",
    "S": "the job script is bash",
    "t": "-t is Torque's; PBS has -J, which nsw writes itself",
}
_REFUSED_ATTRIBUTES = {
    "block": "qsub would wait for the job's end, and nothing else be submitted",
    "depend": "nsw sets the dependencies itself",
    "stageout": "nsw fetches what the runs left",
}
_CHUNK = re.compile(r"[A-Za-z][\w.-]*=[\w.,-]+(:[A-Za-z][\w.-]*=[\w.,-]+)*")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:@%+/=*^~-]+")


def directives(job: Job, scratch: str) -> list[str]:
    """The lines of one job; each subjob of an array gets what they ask.

    Raises:
        UsageError: A value cannot be written on such a line, or qsub does not take the folder's name.
        RefusedError: A line of the recipe's own asks for what nsw must do itself.
    """
    if ":" in scratch:
        raise UsageError(
            f"scratch holds a colon, which PBS takes for the end of a host's name: {scratch}",
            hint="name a folder without one",
        )
    if not scratch.isascii():
        raise UsageError(
            f"the campaign's folder on the site has a character that qsub does not take in paths: {scratch!a}",
            hint="name a scratch folder of the site with ASCII characters only, or put campaigns elsewhere with --root",
        )
    needs = job.resources
    extra = [_extra(line) for line in needs.extra]
    own = {name for line in extra for name in _resources(line)}
    lines = [] if "select" in own else [directive("l", f"select={select(needs)}")]
    if "place" not in own and (where := place(needs)) is not None:
        lines.append(directive("l", f"place={where}"))
    lines.append(directive("l", f"walltime={clock(job.walltime_s)}"))
    lines += [directive(letter, value) for letter, value in (("q", needs.queue), ("A", needs.account)) if value]
    return [*lines, directive("j", "oe"), directive("o", f"{scratch}/jobs/"), *extra]


def select(needs: Resources) -> str:
    """The chunks, one a node: `2:ncpus=8:ngpus=4:mem=32768kb:mpiprocs=4`.

    Raises:
        RefusedError: The GPUs cannot be divided equally among the nodes, or gres is no part of a chunk.
    """
    if needs.gpus % needs.nodes:
        raise RefusedError(
            f"{needs.gpus} GPUs cannot be divided equally among {needs.nodes} nodes, and all chunks of a PBS job"
            " are alike",
            key="gpus",
            hint=f"such as gpus: {-(-needs.gpus // needs.nodes) * needs.nodes},"
            " or write the chunks yourself: extra: ['#PBS -l select=...']",
        )
    if needs.gres is not None and not _CHUNK.fullmatch(needs.gres):
        raise RefusedError(
            f"gres is no part of a chunk of PBS: {needs.gres!r}",
            key="gres",
            hint="such as gres: 'ngpus=4:gputype=A100' or system=aurora",
        )
    processes = max(1, -(-needs.tasks // needs.nodes))
    memory = None if needs.memory_bytes is None else f"{format_memory(needs.memory_bytes).lower()}b"
    gpus = needs.gpus // needs.nodes
    words = [
        str(needs.nodes),
        f"ncpus={processes * (needs.cpus_per_task or 1)}",
        needs.gres or (f"ngpus={gpus}" if gpus else None),  # a site's own words for GPUs take their place
        None if memory is None else f"mem={memory}",
        f"mpiprocs={processes}" if processes > 1 and not needs.one_a_node else None,
    ]
    return ":".join(word for word in words if word is not None)


def place(needs: Resources) -> str | None:
    """How the chunks are placed: each on a node of its own. None for the queue's default."""
    words = [*(["scatter"] if needs.nodes > 1 else []), *(["exclhost"] if needs.exclusive else [])]
    return ":".join(words) or None


def directive(letter: str, value: str) -> str:
    """One line; the value is quoted as qsub's own parser reads quotes: it has no escapes."""
    return f"#PBS -{letter} {directive_value(letter, value, _PLAIN, 'PBS')}"


def _extra(line: str) -> str:
    if "\n" in line or "\r" in line:
        raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
    text = line if line.startswith("#") else f"#PBS {line}"
    if text.startswith("#PBS"):
        for letter, value in _options(text):
            why = _REFUSED.get(letter)
            if letter == "W":
                why = next((_REFUSED_ATTRIBUTES[n] for n in _names(value) if n in _REFUSED_ATTRIBUTES), None)
            if letter == "l" and "walltime" in _names(value):
                raise RefusedError(
                    "resources.extra cannot hold -l walltime: nsw requests the time that a job's runs need",
                    key="extra",
                    hint="set resources.time, the time of one run",
                )
            if why:
                raise RefusedError(f"resources.extra cannot hold -{letter}: {why}", key="extra")
    return text


def _resources(line: str) -> list[str]:
    """The resources that a line asks for with -l."""
    return [name for letter, value in _options(line) if letter == "l" for name in _names(value)]


def _names(value: str) -> list[str]:
    return [part.partition("=")[0].strip() for part in value.split(",")]


def _options(line: str) -> list[tuple[str, str]]:
    """Letters and values of a directive's options."""
    if not line.startswith("#PBS"):
        return []
    return re.findall(r"(?:^|\s)-([A-Za-z])\s*((?:\"[^\"]*\"|'[^']*'|[^\s\"'])*)", line[4:])
