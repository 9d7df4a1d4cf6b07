"""The directives of a job script -> keys of a site and of a recipe's resources.

What nsw has no key for goes into `resources.extra` as it is; what nsw writes itself is left out. What options mean, the
adapters of the batch systems know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import RefusedError
from nsw.recipe.units import Fault, format_size, parse_size
from nsw.schedulers.create import adapters
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.schedulers.adapter import Adapter

__all__ = ["Became", "Directives", "read_directives"]

_OF_SITE: Final = frozenset({"partition", "account", "qos", "queue", "gres"})
_NUMBERS: Final = {
    "nodes": "resources.nodes", "tasks": "processes", "per_node": "processes a node", "cpus": "resources.cpus_per_task",
    "node_cpus": "resources.cpus_per_task", "gpus": "resources.gpus", "node_gpus": "resources.gpus",
    "task_gpus": "resources.gpus",
}  # fmt: skip
_HANDLED_BY_NSW: Final = {
    "name": "the name of the recipe: nsw names its jobs itself",
    "output": "nsw keeps what the job prints: `nsw logs`",
    "gpu_bind": "nsw gives each process its own GPUs",
    "place": "nsw asks for it where there are several nodes",
}


@dataclass(frozen=True, slots=True)
class Became:
    """What an option of a directive became: keys, or nothing with a reason."""

    line: int
    text: str
    what: str
    is_understood: bool = True


@dataclass(slots=True)
class Directives:
    """What the directives of a script ask for.

    Attributes:
        scheduler: The batch system; local for a script without one.
        site: Keys of a site.
        resources: Keys of a recipe's resources, less those that follow from the launcher.
        name: The job's name.
        gpu_kind: What the batch system calls the GPUs; empty: it is not said.
        numbers: nodes, tasks, per_node, cpus, node_cpus, gpus, node_gpus, task_gpus, as far as they are said.
        extra: Directive lines as they are.
        became: What each option became.
    """

    scheduler: str = LOCAL
    site: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    gpu_kind: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    became: list[Became] = field(default_factory=list)

    @property
    def nodes(self) -> int | None:
        """The nodes; None: they are not counted."""
        numbers = self.numbers
        if "nodes" not in numbers and {"tasks", "per_node"} <= numbers.keys():
            return -(-numbers["tasks"] // numbers["per_node"])
        return numbers.get("nodes")

    @property
    def tasks(self) -> int | None:
        """The processes; None: they are not counted."""
        per_node = self.numbers.get("per_node")
        return self.numbers.get("tasks", per_node and per_node * (self.nodes or 1))

    def finish(self) -> None:
        """Put together what several options say."""
        numbers, nodes = self.numbers, self.nodes or 1
        if self.nodes is not None:
            self.resources["nodes"] = self.nodes
        each = numbers.get("cpus", numbers.get("node_cpus", 0) // numbers.get("per_node", 1))
        if each > 1 or "cpus" in numbers:
            self.resources["cpus_per_task"] = each
        of_nodes = numbers.get("node_gpus", 0) * nodes or numbers.get("task_gpus", 0) * (self.tasks or 1)
        self.resources["gpus"] = numbers.get("gpus", of_nodes)

    def take(self, line: int, adapter: Adapter, option: str, value: str) -> None:
        """Take one option of a directive; `value` is empty where it has none."""
        text = f"{option}{'=' if option.startswith('--') and value else ' ' if value else ''}{value}"
        requested = adapter.requested_keys(option, value)
        keys = [self._set(key_name, text_value, adapter) for key_name, text_value in requested]
        if requested and None not in keys:
            self.became.append(Became(line, text, "; ".join(dict.fromkeys(key for key in keys if key))))
        else:
            self.became.append(self._extra(line, adapter, text))

    def _set(self, key_name: str, value: str, adapter: Adapter) -> str | None:
        """Set what is asked for, and say what it became; None: its value is none that nsw can write."""
        if key_name in _HANDLED_BY_NSW:
            self.name = value if key_name == "name" else self.name
            return _HANDLED_BY_NSW[key_name]
        if key_name == "gpu_kind":
            self.gpu_kind = value
            return ""
        if key_name == "chunk":  # also where no GPUs are asked for, whose words the site's gres are
            self.resources["gres"] = value
            return "resources.gres"
        if key_name in _OF_SITE:
            self.site[key_name] = value
            return f"site: {key_name}"
        if key_name in _NUMBERS:
            if not value.isdecimal():
                return None
            self.numbers[key_name] = int(value)
            return _NUMBERS[key_name]
        converted = {"time": _seconds(value, adapter.time_units), "memory": _memory(value), "exclusive": True}.get(
            key_name, value
        )
        if converted is None:
            return None
        self.resources[key_name] = converted
        return f"resources.{key_name}"

    def _extra(self, line: int, adapter: Adapter, text: str) -> Became:
        directive = f"{adapter.marker} {text}"
        try:
            refused = adapter.unwanted(directive)
        except RefusedError as fault:
            refused = text, str(fault)
        if refused is not None:
            return Became(line, text, f"nsw does not write it: {refused[1]}", is_understood=False)
        self.extra.append(directive)
        return Became(line, text, "resources.extra")


def read_directives(comments: Sequence[tuple[int, str]], commands: str) -> Directives:
    """What the directives ask for.

    Args:
        comments: The lines that begin with # before the first command, with their numbers.
        commands: The script's commands, whose variables tell the batch system where it has no directive.
    """
    adapters_by_name = adapters()
    directives = [(line, text, name) for line, text in comments if (name := _scheduler_of(text, adapters_by_name))]
    requested = Directives(directives[0][2] if directives else _by_variables(commands, adapters_by_name))
    for line, text, name in directives:
        if name != requested.scheduler:
            requested.became.append(
                Became(line, text, f"the job is {adapters_by_name[requested.scheduler].name}'s", is_understood=False)
            )
            continue
        for option, value in adapters_by_name[name].options_in(text):
            requested.take(line, adapters_by_name[name], option, value)
    requested.finish()
    return requested


def _scheduler_of(line: str, adapters_by_name: dict[str, Adapter]) -> str:
    """The batch system that reads a line; empty: none does."""
    return next(
        (name for name, adapter in adapters_by_name.items() if re.match(r"\s+-", adapter.after_marker(line) or "")), ""
    )


def _by_variables(commands: str, adapters_by_name: dict[str, Adapter]) -> str:
    prefixes = {adapter.variables: name for name, adapter in adapters_by_name.items() if adapter.variables}
    match = re.search(rf"\$\{{?({'|'.join(prefixes)})", commands)
    return prefixes[match[1]] if match else LOCAL


def _seconds(text: str, units: tuple[int, int]) -> int | None:
    """The seconds of a time limit: 90, 1:30, 1:30:00, 1-12 (days and hours).

    Args:
        text: The limit.
        units: The seconds of the last part, of one part and of two.
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+(?::\d+){0,2})", text)
    if match is None:
        return None
    parts = [int(part) for part in match[2].split(":")]
    if match[1] is None and len(parts) < 3:
        return parts[0] * units[0] if len(parts) == 1 else (parts[0] * 60 + parts[1]) * units[1]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return int(match[1] or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def _memory(text: str) -> str | None:
    """A size as a recipe has it; a bare number is MB."""
    try:
        return format_size(parse_size(f"{text}M" if text.isdecimal() else text))
    except Fault:
        return None
