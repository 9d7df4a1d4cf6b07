"""The options in a job script, of directives and of profilers -> keys of a site, of resources, of passes.

What nsw writes itself (names of jobs and reports, formats of output) is left out. Options of directives that nsw has no
key for go into `resources.extra`, those of profilers into the pass's `options`, as they are. What options of directives
mean, the adapters of the batch systems know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from nsw.convert.shell_reader import LOOKED_UP, Piece, Text
from nsw.errors import RefusedError
from nsw.metrics.requests import Tool, find_metric_faults
from nsw.profilers.vtune import ANALYSES, OLD_ANALYSES
from nsw.recipe.passes import TraceDomain
from nsw.recipe.units import Fault, format_size, parse_size
from nsw.resources import toml_data
from nsw.schedulers.create import adapters
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from nsw.schedulers.adapter import Adapter

_OWN_REPORT: Final = "nsw names the report itself"
_NOT_KNOWN: Final = "only the job knows its value"
KEEPS_OUTPUT: Final = "nsw keeps what a run prints: `nsw logs`"
_TABLES: Final = toml_data("convert/profiler_options.toml")
_TOOLS: Final = {program: tool for tool, programs in _TABLES["profilers"].items() for program in programs.split()}


@dataclass(slots=True)
class PassWords:
    """What a profiler's command line asks for.

    Attributes:
        tool: The profiler.
        path: How the script calls it.
        kind: The kind of the pass.
        fields: The keys of the pass, without `tool` and `options`.
        options: What is passed on.
        left_out: Options that nsw writes itself, each with the reason.
        unknown: Options that are not carried over, each with the reason.
        program: The words behind it.
    """

    tool: str
    path: str
    kind: str = "timeline"
    fields: dict[str, Any] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    program: list[Text] = field(default_factory=list)

    @property
    def is_path_known(self) -> bool:
        """Whether its path is known before the job runs."""
        return re.fullmatch(r"[\w./+-]+", self.path) is not None

    @property
    def is_of_site(self) -> bool:
        """Whether the site says what is started: a profiler by its path, or under a name that nsw does not start."""
        is_own = self.path == _TABLES["profilers"][self.tool].split()[0]
        return self.kind != "baseline" and not is_own and self.is_path_known

    def keep(self, option: _Option) -> None:
        """Pass an option on, if it is the same whenever it is run."""
        words = option.words
        if None in words:
            self.unknown.append((option.text_shown, _NOT_KNOWN))
        else:
            self.options += [word for word in words if word is not None]


class _Option(NamedTuple):
    """An option with its value, joined to it by `=` or the next word."""

    name: str
    value: Text | None
    joined: bool = False

    @property
    def text(self) -> str:
        """The value where it is known; empty where there is none."""
        return (self.value.as_pattern or "") if self.value is not None else ""

    @property
    def words(self) -> list[str | None]:
        if self.value is None or not self.joined:
            return [self.name, *([] if self.value is None else [self.value.as_pattern])]
        return [None if self.value.as_pattern is None else f"{self.name}={self.value.as_pattern}"]

    @property
    def text_shown(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}{'=' if self.joined else ' '}{self.value.source_text}"


def called_tool(words: Sequence[Text]) -> str | None:
    """The profiler that a command line starts with, by whatever path; None for other programs."""
    if not words or not words[0].pieces:
        return None
    text = LOOKED_UP.sub(r"\1\2", words[0].source_text)
    return _TOOLS.get(PurePosixPath(text.rstrip("}").rpartition(":-")[2]).name.removesuffix(".exe"))


def reads_reports(words: Sequence[Text]) -> bool:
    """Whether a command is a profiler's, and measures nothing: it prints what it has measured."""
    tool = called_tool(words)
    if tool is None:
        return False
    if tool in _TABLES["commands"]:
        return len(words) < 2 or (words[1].literal or "-") not in _TABLES["commands"][tool].split()
    at, text = 1, "-"
    while at < len(words) and text.startswith("-"):
        text = words[at].literal or ""
        if re.fullmatch(_TABLES["reading"][tool], text):
            return True
        at += 1 + ("=" not in text and _takes_value(tool, text))
    return False


def switches_recording(words: Sequence[Text]) -> bool:
    """Whether a command switches the recording of `nsys launch` on or off."""
    sessions = {"start", "stop", "cancel", "shutdown"}
    return called_tool(words) == "nsys" and len(words) > 1 and words[1].literal in sessions


def parse_pass(words: Sequence[Text]) -> PassWords | None:
    """The pass that a command line asks for; None where it starts with no profiler that measures."""
    tool = called_tool(words)
    if tool is None or reads_reports(words):
        return None
    pass_words, rest = PassWords(tool, LOOKED_UP.sub(r"\1\2", words[0].source_text)), list(words[1:])
    if tool == "nsys":
        command = rest[0].literal if rest else None
        if command not in {"profile", "nvprof", "launch"}:
            return None
        _take_options(pass_words, rest[1:], "nvprof" if command == "nvprof" else tool, _take_nsys_option)
        if command == "launch":
            reason = "nsw records the whole run, not from `nsys start` to `nsys stop`"
            pass_words.unknown.append(("nsys launch", reason))
        if command != "nvprof":  # nsys's own default
            pass_words.fields.setdefault("trace", ["cuda", "opengl", "nvtx", "osrt"])
    elif tool == "ncu":
        pass_words.kind = "counters"
        pass_words.fields = {"kernels": {"exclude": []}, "launches": {"skip": 0}, "metrics": []}
        _take_options(pass_words, rest, tool, _take_ncu_option)
        _pass_on_unknown_metrics(pass_words, "ncu", "set:basic")
    elif tool == "nvprof":
        _take_options(pass_words, rest, tool, _take_nvprof_option)
        if pass_words.kind == "counters":
            pass_words.fields = {"launches": {"skip": 0}, **pass_words.fields}
            pass_words.fields.setdefault("kernels", {"exclude": []})
            pass_words.fields.pop("report", None)
            _pass_on_unknown_metrics(pass_words, "nvprof", "set:analysis")
    elif tool in _TABLES["no_pass"]:
        pass_words.kind = "baseline"
        end = next((at for at, word in enumerate(rest) if word.literal == "--"), 0)  # options may have several values
        _take_options(pass_words, rest[end:], tool, lambda *_: None)
        pass_words.unknown.append((words[0].source_text, "nsw does not start it: a pass of its own program alone"))
    else:
        pass_words.kind = "host"
        if tool in _TABLES["commands"] and rest.pop(0).literal == "stat":
            pass_words.fields["analysis"] = "stat"
        _take_options(pass_words, rest, tool, _take_vtune_option if tool == "vtune" else _take_host_option)
    return pass_words


def _take_options(
    pass_words: PassWords, words: list[Text], table: str, take: Callable[[PassWords, _Option], None]
) -> None:
    computed: list[Text] = []  # since the last option: options too, or the program
    while words:
        first = words[0].pieces[0] if words[0].pieces else Piece("text", "")
        if words[0].literal == "--":
            pass_words.program = words[1:]
            return
        if first.kind == "computed" and len(words[0].pieces) == 1:
            computed.append(words.pop(0))
            continue
        if first.kind != "text" or not first.text.startswith("-"):
            break
        word = words.pop(0)
        pass_words.unknown += [(unknown.source_text, _NOT_KNOWN) for unknown in computed]
        computed.clear()
        name, equals, rest = first.text.partition("=")
        if equals:
            value: Text | None = Text((Piece("text", rest), *word.pieces[1:]))
        else:
            follows = words[0].literal if words else ""  # a switch is no program
            has_value = (
                words and (_takes_value(table, name) or follows in {"on", "off"}) and not _NO_VALUE.match(follows or "")
            )
            value = words.pop(0) if has_value else None
        option = _Option(name, value, bool(equals))
        reasons = _TABLES["handled"].get(pass_words.tool, {})
        short = name[:2] if pass_words.tool == "perf" and name[:2] != "--" else name  # `-x,`
        reason = next((reason for names, reason in reasons.items() if {name, short} & {*names.split()}), None)
        if table != pass_words.tool:
            reason = "nsys nvprof translates it: nsys's report has all events"
            pass_words.unknown.append((option.text_shown, reason))
        elif reason is not None:
            pass_words.left_out.append((option.text_shown, reason))
        else:
            take(pass_words, option)
    options = len(computed) if words and _PROGRAM.match(words[0].source_text) else max(0, len(computed) - 1)
    if not words:  # `$EXE $ARGS`
        options = 0
    pass_words.unknown += [(unknown.source_text, _NOT_KNOWN) for unknown in computed[:options]]
    pass_words.program = [*computed[options:], *words]


_NO_VALUE: Final = re.compile(r"--?[A-Za-z]|(python[\d.]*|julia|Rscript|perl|bash|sh|mpirun|mpiexec|srun|torchrun)$")
_PROGRAM: Final = re.compile(r"[.~$\w-]*/|(python|julia|Rscript|perl|bash|sh|mpi|torchrun|srun)")


def _takes_value(table: str, name: str) -> bool:
    if table in _TABLES["valued"]:
        return not {name, name.replace("--", "-", 1)}.isdisjoint(_TABLES["valued"][table].split())
    return name not in _TABLES["flags"][table].split()


def _take_nsys_option(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-t", "--trace"}:
        domains = option.text.split(",")
        traced = [domain for domain in domains if domain in get_args(TraceDomain)]
        if traced:
            pass_words.fields["trace"] = traced
        if untraced := ",".join(domain for domain in domains if domain not in traced):
            pass_words.unknown.append((f"{option.name} {untraced}", "nsw does not know what this traces"))
    else:
        pass_words.keep(option)


_NCU_FIELDS: Final = {
    "--target-processes": ("processes", {"all": "all", "application-only": "application"}),
    "--replay-mode": ("replay", {mode: mode for mode in ("kernel", "application", "range", "app-range")}),
    "--clock-control": ("clocks", {"base": "base", "none": "none"}),
    "--cache-control": ("cache", {"all": "all", "none": "none"}),
}


def _take_ncu_option(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"--set", "--section"} and option.text:
        pass_words.fields["metrics"].append(f"{option.name[2:]}:{option.text}")
    elif "--metrics".startswith(option.name) and option.text and len(option.name) > len("--me"):  # ncu guesses too
        pass_words.fields["metrics"] += option.text.split(",")
    elif option.name in _NCU_FIELDS and option.text in _NCU_FIELDS[option.name][1]:
        key, values = _NCU_FIELDS[option.name]
        pass_words.fields[key] = values[option.text]
    else:
        pass_words.keep(option)


def _pass_on_unknown_metrics(pass_words: PassWords, tool: Tool, default: str) -> None:
    """Pass what a recipe cannot name on to ncu as it is, or name it; a recipe without a metric takes the default."""
    names: list[str] = [name for name in pass_words.fields["metrics"] if name]
    unknown = [fault.name for fault in find_metric_faults(names, None, tool)]
    for fault in find_metric_faults(names, None, tool):
        kind, _, value = fault.name.partition(":")
        if kind in {"set", "section"} and tool == "ncu":
            pass_words.options += [f"--{kind}", value]
        else:
            pass_words.unknown.append((fault.name, fault.message))
    pass_words.fields["metrics"] = [name for name in names if name not in unknown] or [default]
    if unknown and pass_words.fields["metrics"] == [default] and default not in names:
        reason = f"no recipe can name it: nsw measures {tool}'s {default} too"
        pass_words.unknown.append((", ".join(unknown), reason))


def _take_nvprof_option(pass_words: PassWords, option: _Option) -> None:
    if option.name in {"-o", "--export-profile"}:
        pass_words.fields["report"] = "file"
        pass_words.left_out.append((option.text_shown, _OWN_REPORT))
    elif option.name in {"--print-gpu-trace", "--print-api-trace"}:
        pass_words.fields.setdefault("report", "trace")
    elif option.name in {"-m", "--metrics", "-e", "--events", "--analysis-metrics"}:
        pass_words.kind = "counters"
        event = "event:" if option.name in {"-e", "--events"} else ""
        names = option.text.split(",") if option.value is not None else ["set:analysis"]
        pass_words.unknown += [] if all(names) else [(option.text_shown, _NOT_KNOWN)]
        pass_words.fields.setdefault("metrics", []).extend(f"{event}{name}" for name in names)
    elif option.name == "--kernels" and option.text and ":" not in option.text:
        pass_words.fields["kernels"] = {"regex": option.text, "exclude": []}
    else:
        pass_words.keep(option)


def _take_host_option(pass_words: PassWords, option: _Option) -> None:
    knob = next((knob for knob, names in _TABLES["knobs"].items() if option.name in names.split()), None)
    is_setting = pass_words.tool in _TABLES["commands"] and pass_words.fields.get("analysis") != "stat"
    if knob is not None and option.text and is_setting:
        pass_words.fields.setdefault("knobs", {})[knob] = option.text
    else:
        pass_words.keep(option)


def _take_vtune_option(pass_words: PassWords, option: _Option) -> None:
    name = "-" + option.name.lstrip("-")
    is_custom = any(text.lstrip("-").startswith("collect-with") for text, _ in pass_words.unknown)
    if name == "-collect-with" or (name == "-knob" and is_custom):
        reason = "nsw collects an analysis by its name: set analysis of the pass"
        pass_words.unknown.append((option.text_shown, reason))
    elif name in {"-c", "-collect"} and option.text and option.text not in (*ANALYSES, *OLD_ANALYSES):
        pass_words.kind = "baseline"
        reason = "no analysis of nsw's VTune pass: a pass of its own program alone"
        pass_words.unknown.append((option.text_shown, reason))
    elif name in {"-c", "-collect"} and option.text:
        pass_words.fields["analysis"] = option.text
    elif name == "-knob" and "=" in option.text:
        knob, _, value = option.text.partition("=")
        pass_words.fields.setdefault("knobs", {})[knob] = value
    else:
        pass_words.keep(option)


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


PRINTS_ONLY: Final = "left out: it measures nothing"


@dataclass(frozen=True, slots=True)
class Line:
    """What lines of the script became.

    Attributes:
        first, last: Their numbers.
        text: What stands there.
        what: The keys that they became, or why there are none.
        is_understood: Whether the recipe and the site do the same.
    """

    first: int
    last: int
    text: str
    what: str
    is_understood: bool = True

    @property
    def does_more_than_print(self) -> bool:
        """Whether it does anything but print: lines that only print are left out of the recipe."""
        return self.what != PRINTS_ONLY

    @property
    def numbers(self) -> str:
        """`7`, or `42-87`."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


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
        component: The number of the heterogeneous job's component that they are of.
    """

    scheduler: str = LOCAL
    site: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    gpu_kind: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    became: list[Line] = field(default_factory=list)
    component: int = 0

    @property
    def nodes(self) -> int | None:
        """The number of nodes; None where the directives do not give it."""
        numbers = self.numbers
        if "nodes" not in numbers and {"tasks", "per_node"} <= numbers.keys():
            return -(-numbers["tasks"] // numbers["per_node"])
        return numbers.get("nodes")

    @property
    def tasks(self) -> int | None:
        """The number of processes; None where the directives do not give it."""
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
        """Take one option of a directive.

        Args:
            line: The number of its line.
            adapter: The batch system.
            option: The option, with its dashes.
            value: Its value; empty where it has none.
        """
        text = f"{option}{'=' if option.startswith('--') and value else ' ' if value else ''}{value}"
        if re.search(r"[\s&|()<>;]", value):  # as it was quoted
            text = text.replace(value, f'"{value}"')
        if option in {"-d", "--dependency"} and adapter.name == "Slurm":
            reason = "a dependency on another job: not carried over"
            self.became.append(Line(line, line, text, reason, is_understood=False))
            return
        requested = adapter.requested_keys(option, value)
        if not value and any(key in _OF_SITE or key in _NUMBERS for key, _ in requested):
            self.became.append(Line(line, line, text, "it has no value", is_understood=False))
            return
        keys = [self._set_key(key, text_value, adapter) for key, text_value in requested if key != "extra"]
        if ("extra", "") in requested:
            keys.append(self._add_extra(line, adapter, text).what)
        if requested and None not in keys:
            self.became.append(Line(line, line, text, "; ".join(dict.fromkeys(key for key in keys if key))))
        else:
            self.became.append(self._add_extra(line, adapter, text))

    def _set_key(self, key_name: str, value: str, adapter: Adapter) -> str | None:
        """Set a key and return what it became; None where nsw cannot write the value."""
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
        converted = {
            "time": _parse_time_limit(value, adapter.time_units),
            "memory": _parse_memory(value),
            "exclusive": True,
        }.get(key_name, value)
        if converted is None:
            return None
        self.resources[key_name] = converted
        return f"resources.{key_name}"

    def _add_extra(self, line: int, adapter: Adapter, text: str) -> Line:
        directive = f"{adapter.marker} {text}"
        try:
            refused = adapter.unwanted(directive)
        except RefusedError as fault:
            refused = text, str(fault)
        if refused is not None:
            return Line(line, line, text, f"nsw does not write it: {refused[1]}", is_understood=False)
        self.extra.append(directive)
        return Line(line, line, text, "resources.extra")


_FOREIGN: Final = re.compile(r"#(?:[A-Z]{3,5} --?[A-Za-z]| ?@ ?\w+ *=)")
_NEXT_COMPONENT: Final = re.compile(r"#SBATCH\s+(het|pack)job\b")


def read_directives(
    comments: Sequence[tuple[int, str]], commands: str, component: int = 0, late: Sequence[tuple[int, str]] = ()
) -> Directives:
    """What the directives ask for.

    Args:
        comments: The lines that begin with # before the first command, with their numbers.
        commands: The script's commands, whose variables tell the batch system where it has no directive.
        component: The component of a heterogeneous job that is wanted.
        late: Comments behind the first command.
    """
    adapters_by_name, behind = adapters(), list[Line]()
    directives = [
        (line, text, name) for line, text in comments for name, adapter in adapters_by_name.items()
        if re.match(r"\s+-", adapter.after_marker(text) or "")
    ]  # fmt: skip
    reason = "it stands behind the first command, where nsw reads none, nor does Slurm"
    for line, text in late:
        if any(re.match(r"\s+-", adapter.after_marker(text) or "") for adapter in adapters_by_name.values()):
            behind.append(Line(line, line, text, reason, is_understood=False))
    foreign = [line for line in comments if not directives and _FOREIGN.match(line[1])]
    prefixes = {adapter.variables: name for name, adapter in adapters_by_name.items() if adapter.variables}
    variable = re.search(rf"\$\{{?({'|'.join(prefixes)})", commands)
    scheduler = prefixes[variable[1]] if variable else LOCAL
    requested = Directives(directives[0][2] if directives else scheduler)
    components = [line for line, text in comments if _NEXT_COMPONENT.match(text)]
    requested.component = min(component, len(components))
    reason = "of a batch system that nsw does not know"
    requested.became += [*behind, *(Line(line, line, text, reason, is_understood=False) for line, text in foreign)]
    for line, text, name in directives:
        reason = f"the job is {adapters_by_name[requested.scheduler].name}'s" if name != requested.scheduler else ""
        if sum(line > first for first in components) != requested.component:
            reason = "another component of a heterogeneous job: nsw's jobs have one"
        for option, value in adapters_by_name[name].options_in(text) if not reason else ():
            requested.take(line, adapters_by_name[name], option, value)
        requested.became += [Line(line, line, text, reason, is_understood=False)] if reason else []
    requested.finish()
    return requested


def _parse_time_limit(text: str, units: tuple[int, int]) -> int | None:
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


def _parse_memory(text: str) -> str | None:
    """A size as a recipe has it; a bare number is MB."""
    try:
        return format_size(parse_size(f"{text}M" if text.isdecimal() else text))
    except Fault:
        return None
