"""A site for a sites file, from what its machine answered: what is known as keys, what a person must add marked so."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nsw.metrics.catalogue import find_chip
from nsw.recipe.units import format_duration
from nsw.site.names import FIRST_TRANSPORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.schedulers.adapter import Queue

TO_FILL: Final = "FILL-IN"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./$ ()-]*")
_NO_TEXT: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Answers:
    """What a machine answered.

    Attributes:
        scheduler: As a sites file names it; local for a machine without a batch system.
        queue_key: Under which key a site names a queue: partition, queue.
        queues: Those that take jobs.
        untold: Why there are none.
        gpus: Names of the machine's own GPUs, as nvidia-smi lists them.
        accounts: Accounts of the user, where the scheduler tells.
        profilers: Paths of profilers that are not on PATH.
        scratch: A folder of the user's for large files; empty where none was found.
        host: The host it was reached by; None for this machine.
        login_shell: Whether the scheduler's commands are on PATH in a login shell only.
        has_module: Whether `module` is there in a login shell only.
        names: What the machine calls itself: host names, and variables that centres set.
        silent: What a batch system's client said that reaches no server; empty where none is like that.
    """

    scheduler: str
    queue_key: str = "queue"
    queues: tuple[Queue, ...] = ()
    untold: str = ""
    gpus: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    profilers: Mapping[str, str] = field(default_factory=dict)
    scratch: str = ""
    host: str | None = None
    login_shell: bool = False
    has_module: bool = False
    names: tuple[str, ...] = ()
    silent: str = ""


def site_for(name: str, answers: Answers) -> tuple[str, list[str], list[str]]:
    """A site.

    Returns:
        Its lines as they are below `sites:`; what was found, a line each; what a person has to fill in or check.
    """
    lines: list[tuple[str, str]] = [(f"scheduler: {answers.scheduler}", "")]
    found = [f"scheduler: {answers.scheduler if answers.scheduler != 'local' else 'none, runs start on the machine'}"]
    todo = (
        [f"scheduler: {answers.silent}; where it should, run `nsw init` again once it does"] if answers.silent else []
    )
    if answers.host is not None:
        lines.append((f"transport: {transport_of(answers)}", "your own ssh"))
    batch = answers.scheduler != "local"
    if batch or answers.host is not None:
        _scratch(answers, lines, todo)
    if batch:
        _account(answers, lines, todo)
    chosen = best(answers.queues)
    if chosen is not None:
        _queue(answers, chosen, lines, found, todo)
    elif batch:
        lines.append((f"#- {answers.queue_key}: {TO_FILL}", "where the site has no default"))
        todo.append(f"{answers.queue_key}: where the site has no default ({answers.untold})")
    _gpus(answers, chosen, lines, found, todo)
    if answers.has_module:
        lines.append(("login_shell: true", "jobs know `module` in a login shell only"))
    if batch:
        lines.append(("#- modules: [cuda]", "modules that provide the program and the profilers"))
    if answers.profilers:
        inner = ", ".join(f"{tool}: {scalar(path)}" for tool, path in sorted(answers.profilers.items()))
        lines.append((f"profilers: {{ {inner} }}", ""))
        found += [f"{tool}: {path}" for tool, path in sorted(answers.profilers.items())]
    elif batch:
        lines.append(("#- profilers: { nsys: /path/of/nsys, ncu: /path/of/ncu }", "where no module provides them"))
    if chosen is not None and chosen.walltime is not None:
        lines.append((f"limits: {{ max_walltime: {format_duration(chosen.walltime)} }}", f"of {chosen.name}"))
    text = [f"  {scalar(name)}:"]
    text += [f"    {key}" + (f" # {_one_line(why)}" if why else "") for key, why in lines]
    return "\n".join(text) + "\n", found, todo


def transport_of(answers: Answers) -> str:
    """The value of a site's key `transport`, for one that was reached by its host."""
    more = ", login_shell: true" if answers.login_shell else ""
    return f"{{ kind: {FIRST_TRANSPORT}, host: {scalar(answers.host or '')}{more} }}"


def best(queues: Sequence[Queue]) -> Queue | None:
    """The queue for a first campaign: the default or else the first, of those with GPUs where there are any."""
    some = [one for one in queues if one.gpus] or list(queues)
    return next((one for one in some if one.is_default), some[0] if some else None)


def _scratch(answers: Answers, lines: list[tuple[str, str]], todo: list[str]) -> None:
    if answers.scratch:
        lines.append((f"scratch: {scalar(answers.scratch)}", "must be seen by the compute nodes too"))
        todo.append(f"scratch: check that compute nodes see {answers.scratch}")
    elif answers.host is not None:
        lines.append(("scratch: $HOME/nsw", "better a large file system that compute nodes see too"))
        todo.append("scratch: name a large file system that the compute nodes see")


def _account(answers: Answers, lines: list[tuple[str, str]], todo: list[str]) -> None:
    if len(answers.accounts) == 1:
        lines.append((f"account: {scalar(answers.accounts[0])}", ""))
    elif answers.accounts:
        lines.append((f"account: {scalar(answers.accounts[0])}", f"or {_few(answers.accounts[1:])}"))
        todo.append(f"account: one of {_few(answers.accounts)}")
    else:
        lines.append((f"#- account: {TO_FILL}", "the project that pays, where the site asks for one"))
        todo.append("account: the project that pays, where the site asks for one")


def _queue(answers: Answers, chosen: Queue, lines: list[tuple[str, str]], found: list[str], todo: list[str]) -> None:
    key = answers.queue_key
    others = [one.name for one in answers.queues if one.name != chosen.name]
    lines.append((f"{key}: {scalar(chosen.name)}", f"there are also {_few(others)}" if others else ""))
    for one in answers.queues:
        told = "number of GPUs unknown" if one.gpus is None else f"{one.gpus} GPUs a node" if one.gpus else "no GPUs"
        also = f", others {_few(one.other_kinds)}" if one.other_kinds else ""
        kind = f" ({one.kind}{also})" if one.kind else ""
        limit = f", at most {format_duration(one.walltime)}" if one.walltime is not None else ""
        found.append(f"{key} {one.name}: {told}{kind}{limit}")
    if others:
        todo.append(f"{key}: check that {chosen.name} is the one for you")


def _gpus(
    answers: Answers, chosen: Queue | None, lines: list[tuple[str, str]], found: list[str], todo: list[str]
) -> None:
    name, count = "", None
    others: tuple[str, ...] = ()
    if answers.gpus and (answers.scheduler == "local" or chosen is None or chosen.gpus is None):
        name, count = answers.gpus[0], len(answers.gpus)
        found.append(f"GPUs of this node: {count} x {name}")
    elif chosen is not None:
        name, count, others = chosen.kind, chosen.gpus, chosen.other_kinds
    elif answers.scheduler == "local":
        count = 0
        found.append("GPUs: none")
    chip = find_chip(name) if name else None
    inner = [f"chip: {chip.name}"] if chip else []
    if count is not None:
        inner.append(f"per_node: {count}")
    if inner:
        kinds = [name] if chip and chip.name != name else []
        if others and chosen is not None:
            kinds = [f"{name}; {chosen.name} also has {_few(others)}: ask for yours with gres or constraint"]
            todo.append(f"gpus: {chosen.name} has nodes with {_few([name, *others])}; say which are yours")
        lines.append((f"gpus: {{ {', '.join(inner)} }}", "".join(kinds)))
    if count is None:
        lines.append(("#- gpus: { per_node: 4, chip: ga100 }", "how many a node has, and which"))
        todo.append("gpus: how many a node has (per_node) and which chip they are")
    elif count and chip is None:
        todo.append("gpus.chip: such as ga100 (A100) or gh100 (H100); `nsw metrics check --chip` knows the names")


def _few(names: Iterable[str]) -> str:
    some = list(names)
    return ", ".join(some[:8]) + (f" and {len(some) - 8} more" if len(some) > 8 else "")


def _one_line(text: str) -> str:
    """What stays a comment: names come from the site."""
    return "".join(c if c.isprintable() else "?" for c in text)


def scalar(text: str) -> str:
    """A value of YAML, quoted where it must be."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT and not text.endswith(" ") and not text.isdigit()
    return text if plain and not re.fullmatch(r"[\d.eE+_-]+", text) else json.dumps(text)
