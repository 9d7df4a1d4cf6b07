"""The program `nsw` as typer sees it: its commands, the groups of options that they share, its help.

A command is a function with `@command(example)`. A parameter whose annotation holds a `Group` stands for all options
of that group: the command gets the one object that the group makes of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature, signature
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from nsw.cli.topics import TOPICS
from nsw.errors import UsageError, did_you_mean
from nsw.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    F = TypeVar("F", bound=Callable[..., int])

# the module of each command below nsw.cli, in the order of `nsw --help`; only that of the command that is run is loaded
COMMANDS: Final = {
    "init": "planning", "plan": "planning", "render": "planning", "run": "running", "resume": "running",
    "retry": "running", "reread": "running", "fetch": "running", "cancel": "running", "attach": "running",
    "adopt": "running", "clean": "running", "throttle": "running", "status": "looking", "watch": "looking",
    "logs": "looking", "problems": "looking", "ls": "looking", "summarize": "summarizing", "report": "summarizing",
    "export": "summarizing", "compare": "comparing", "gate": "comparing", "noise": "comparing", "baseline": "comparing",
    "history": "history", "model": "modelling", "query": "querying", "read": "reading", "metrics": "metrics",
    "mcp": "agents",
    "schema": "planning", "sites": "planning",
}  # fmt: skip
_DAILY: Final = {
    "Start": ("init", "plan", "run", "resume", "retry"), "Watch": ("status", "watch", "logs", "ls", "cancel"),
    "Results": ("summarize", "report", "read"), "Compare": ("compare", "gate"), "Sites": ("sites",),
}  # fmt: skip
_HELP_WIDTH: Final = 80
_ABOUT: Final = "GPU profiling campaigns on clusters: one recipe in, an answer with evidence out."
# the word for a value, by the name of the parameter; others are called like the parameter
_WORDS: Final = {
    "cases": "CASE", "exclude": "CASE", "files": "PATTERN", "into": "FOLDER", "launch": "ID", "lines": "N",
    "named": "CAMPAIGN", "names": "NAME", "output": "FILE", "passes": "PASS", "root": "FOLDER", "runs": "RUN",
    "sites": "FILE", "steps": "RANGE", "top": "N",
}  # fmt: skip
_ARGUMENTS: Final = {"files": "FILE", "names": "NAME", "runs": "RUN"}


class Command(TyperCommand):
    """A command with nsw's words for the values of its options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, each with a word for its value; a switch has none."""
        return _prepare_parameters(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, `[OPTIONS] RECIPE`: optional arguments alone have brackets."""
        return [re.sub(r"\A\{(.+)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class Commands(TyperGroup):
    """All commands; their own switches have no type either."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of nsw itself."""
        return _prepare_parameters(super().get_params(ctx))


def _prepare_parameters(params: list[Any]) -> list[Any]:
    """The parameters as nsw checks and shows them: with words such as FILE for the parser's types (`<str>`)."""
    for param in params:
        if "process_value" not in vars(param):  # typer asks for the parameters several times
            param.process_value = partial(_check_value, param, param.process_value)
        if getattr(param, "is_flag", False):
            param.metavar = ""
            continue
        is_argument, is_choice = param.param_type_name == "argument", param.type_descriptor.is_choice
        if param.metavar is None and (is_argument or not is_choice):  # the values of an option are its word
            param.metavar = (_ARGUMENTS if is_argument else _WORDS).get(param.name, param.name.upper())
        if is_argument and not is_choice:  # whose word is its name already
            param.display_type_rich = _hide_type
    return params


def _hide_type(ctx: Any) -> None:
    """Show no type of an argument."""


def _check_value(param: Any, check: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """A parameter's value, checked by typer only where it could be wrong: that loads pydantic, which takes 0.1 s."""
    if value is None and not param.required:
        value = () if param.multiple or param.nargs == -1 else None
    elif not _is_valid(param, context, value):
        return check(context, value)
    return value if param.callback is None else param.callback(context, param, value)


def _is_valid(param: Any, context: Any, value: Any) -> bool:
    """Whether a value has its parameter's type: text without signs that a check might refuse, or nsw's own default."""
    kind = param.type_descriptor
    if kind.parameter_info.parser is not None or type(value) is not kind.annotation:
        return False
    source = context.get_parameter_source(param.name)
    return value.isprintable() if isinstance(value, str) else source is not None and source.name == "DEFAULT"


@dataclass(frozen=True, slots=True)
class Group:
    """Options that several commands take together: the parameters of a function, which makes one object of them.

    Parameters in `without` are no options of these commands, and keep their defaults.
    """

    make: Callable[..., Any]
    without: tuple[str, ...] = ()


_REGISTERED: Final[dict[str, tuple[Callable[..., int], str]]] = {}  # function and example by the command's name


def command(example: str, name: str | None = None) -> Callable[[F], F]:
    """Make a command of a function; its help ends with the example, and its name is the function's unless given."""

    def register(function: F) -> F:
        _REGISTERED[name or function.__name__] = function, example
        return function

    return register


def program(names: Sequence[str]) -> typer.Typer:
    """The program with these commands; typer takes 30 ms for the options of all, which are needed for one alone."""
    app = _empty_program()
    for name in names:
        import_module(f"nsw.cli.{COMMANDS[name]}")
        function, example = _REGISTERED[name]
        app.command(name, cls=Command, epilog=f"For example: {example}" if example else None)(_typer_callback(function))
    return app


def daily_help() -> str:
    """The help of nsw: what most people need, on a screen, and the names of the other commands."""
    from nsw.cli.completion import load_commands

    commands = load_commands()[1]
    lines = ["Usage: nsw COMMAND ...; `nsw COMMAND --help` explains one", "", _ABOUT]
    for group, names in _DAILY.items():
        lines += ["", group]
        for name in names:
            summary = re.split(r"[:;] ", commands[name].help)[0].rstrip(".")
            summary = summary if len(summary) + 13 <= _HELP_WIDTH else summary.partition(", ")[0]
            lines += wrap(summary, _HELP_WIDTH, initial_indent=f"  {name:11}", subsequent_indent=" " * 13)
    daily = {name for names in _DAILY.values() for name in names}
    others = ", ".join(name for name in commands if name not in daily)
    topics = ", ".join(TOPICS)
    lines += [
        "",
        *wrap(
            f"Others: {others}. `nsw help --all` explains all, `nsw help TOPIC` {topics}.",
            _HELP_WIDTH,
            break_on_hyphens=False,
        ),
    ]
    return "\n".join(lines) + "\n"


def program_of_help() -> typer.Typer:
    """The program whose commands have a name and a help, and no options: those of no command are asked for."""
    from nsw.cli.completion import load_commands

    app = _empty_program()
    for name, described in load_commands()[1].items():
        app.command(name, help=described.help)(lambda: None)  # typer never calls it
    return app


def _empty_program() -> typer.Typer:
    app = typer.Typer(
        name="nsw",
        cls=Commands,
        help=_ABOUT,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root_command)
    return app


def _typer_callback(function: Callable[..., int]) -> Callable[..., int]:
    """The function as typer calls it, with the options of each group as parameters of its own."""
    parameters: dict[str, Parameter] = {}
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    own_parameters = signature(function, eval_str=True).parameters
    for name, parameter in own_parameters.items():
        notes = getattr(parameter.annotation, "__metadata__", ())
        group = next((note for note in notes if isinstance(note, Group)), None)
        if group is None:
            parameters[name] = parameter
        else:
            options = {n: p for n, p in signature(group.make).parameters.items() if n not in group.without}
            groups[name] = group.make, list(options)
            parameters |= options

    def callback(**values: Any) -> int:
        objects = {name: make(**{option: values[option] for option in options})
                   for name, (make, options) in groups.items()}  # fmt: skip
        return function(**{name: objects[name] if name in groups else values[name] for name in own_parameters})

    callback.__doc__ = function.__doc__
    # keyword-only: an option without a default may follow one with a default
    listed = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters.values()]
    callback.__signature__ = Signature(listed)  # type: ignore[attr-defined]
    callback.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return callback


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"nsw {__version__}")
        raise typer.Exit


def _root_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version.", show_default=False
        ),
    ] = False,
) -> None:
    pass


_SYNONYMS: Final = {
    "submit": "run", "start": "run", "check": "plan", "validate": "plan", "list": "ls", "show": "status",
    "stop": "cancel", "kill": "cancel", "continue": "resume", "rerun": "retry",
    "diff": "compare", "demo": "run alexnet_scaling --site demo", "analyze": "read", "analyse": "read", "stats": "read",
    "perfetto": "export --trace", "timeline": "report --timeline", "plot": "summarize --plot",
}  # fmt: skip


def unknown_command_error(word: str, topics: Sequence[str] = ()) -> UsageError:
    """The error for an unknown command, or for what is no topic either, with the nearest of all."""
    names = [*COMMANDS, *topics]
    suggestion = f"did you mean 'nsw {_SYNONYMS[word]}'?" if word in _SYNONYMS else did_you_mean(word, names)
    hint = suggestion or f"`nsw --help` lists the commands{' and topics' if topics else ''}"
    return UsageError(f"there is no command {'or topic ' if topics else ''}{word!r}", hint=hint)
