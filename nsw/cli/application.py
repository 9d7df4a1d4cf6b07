"""The program `nsw` as typer sees it: its help, the values that it checks, the commands that it does not have."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from nsw.errors import UsageError, did_you_mean
from nsw.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_EXAMPLES: Final = {
    "init": "nsw init -- python train.py --batch 8",
    "plan": "nsw plan recipe.yaml --site mycluster",
    "render": "nsw render recipe.yaml --site mycluster --into scripts/",
    "run": "nsw run recipe.yaml --site mycluster --yes",
    "resume": "nsw resume alexnet-scaling-20261121",
    "retry": "nsw retry gpus-2_batch-8.timeline.r1",
    "cancel": "nsw cancel alexnet-scaling-20261121",
    "attach": "nsw attach alexnet-scaling-20261121 --site mycluster",
    "clean": "nsw clean alexnet-scaling-20261121",
    "throttle": "nsw throttle 4",
    "status": "nsw status --json",
    "watch": "nsw watch alexnet-scaling-20261121",
    "logs": "nsw logs gpus-2_batch-8.timeline.r1 --lines 0",
    "problems": "nsw problems --format csv -o problems.csv",
    "ls": "nsw ls --root /scratch/me/campaigns",
    "summarize": "nsw summarize --table hotspots -o hotspots.csv",
    "report": "nsw report alexnet-scaling-20261121 -o answer.html",
    "read": "nsw read report.sqlite --table gpu_summary -o gpu.csv",
    "compare": "nsw compare before after --by kernel",
    "gate": "nsw gate main alexnet-scaling-20261121 --rule 'images_per_sec: -2%'",
    "noise": "nsw noise recipe.yaml --site mycluster",
    "baseline": "nsw baseline set main alexnet-scaling-20261121",
    "metrics": "nsw metrics show achieved_occupancy --chip H100",
    "schema": "nsw schema recipe > recipe.schema.json",
}
# the word for a value, by the name of the parameter; others are called like the parameter
_WORDS: Final = {
    "cases": "CASE", "exclude": "CASE", "files": "PATTERN", "into": "FOLDER", "launch": "ID", "lines": "N",
    "named": "CAMPAIGN", "names": "NAME", "output": "FILE", "passes": "PASS", "root": "FOLDER", "runs": "RUN",
    "sites": "FILE", "steps": "RANGE", "top": "N",
}  # fmt: skip
_ARGUMENTS: Final = {"files": "FILE", "names": "NAME", "runs": "RUN"}


class Command(TyperCommand):
    """A command whose help ends with an example."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        if name in _EXAMPLES and not settings.get("epilog"):
            settings["epilog"] = f"For example: {_EXAMPLES[name]}"
        super().__init__(name, **settings)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, each with a word for its value; a switch has none."""
        return _prepared(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, `[OPTIONS] RECIPE`: optional arguments alone have brackets."""
        return [re.sub(r"\A\{(.+)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class Commands(TyperGroup):
    """All commands; their own switches have no type either."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of nsw itself."""
        return _prepared(super().get_params(ctx))


def _prepared(params: list[Any]) -> list[Any]:
    """The parameters as nsw checks and shows them: with words such as FILE for the parser's types (`<str>`)."""
    for param in params:
        if "process_value" not in vars(param):  # typer asks for the parameters several times
            param.process_value = partial(_value, param, param.process_value)
        if getattr(param, "is_flag", False):
            param.metavar = ""
            continue
        is_argument, is_choice = param.param_type_name == "argument", param.type_descriptor.is_choice
        if param.metavar is None and (is_argument or not is_choice):  # the values of an option are its word
            param.metavar = (_ARGUMENTS if is_argument else _WORDS).get(param.name, param.name.upper())
        if is_argument and not is_choice:  # whose word is its name already
            param.display_type_rich = _no_type
    return params


def _no_type(ctx: Any) -> None:
    """No type of an argument."""


def _value(param: Any, check: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """A parameter's value, checked by typer only where it could be wrong: that loads pydantic, which takes 0.1 s."""
    if value is None and not param.required:
        value = () if param.multiple or param.nargs == -1 else None
    elif not _is_right(param, context, value):
        return check(context, value)
    return value if param.callback is None else param.callback(context, param, value)


def _is_right(param: Any, context: Any, value: Any) -> bool:
    """Whether a value has its parameter's type: text without signs that a check might refuse, or nsw's own default."""
    kind = param.type_descriptor
    if kind.parameter_info.parser is not None or type(value) is not kind.annotation:
        return False
    source = context.get_parameter_source(param.name)
    return value.isprintable() if isinstance(value, str) else source is not None and source.name == "DEFAULT"


app = typer.Typer(
    name="nsw",
    cls=Commands,
    help="GPU profiling campaigns on clusters: one recipe in, an answer with evidence out.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


command = partial(app.command, cls=Command)


def _version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"nsw {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version.", show_default=False),
    ] = False,
) -> None:
    pass


_SYNONYMS: Final = {
    "submit": "run", "start": "run", "check": "plan", "validate": "plan", "list": "ls", "show": "status",
    "stop": "cancel", "kill": "cancel", "continue": "resume", "rerun": "retry", "help": "--help",
    "diff": "compare", "query": "summarize --table NAME", "export": "summarize --output FOLDER/",
}  # fmt: skip


def unknown(word: str, commands_known: Collection[str]) -> UsageError:
    """The error for an unknown command, with the nearest known one."""
    suggestion = f"did you mean 'nsw {_SYNONYMS[word]}'?" if word in _SYNONYMS else did_you_mean(word, commands_known)
    return UsageError(f"there is no command {word!r}", hint=suggestion or "`nsw --help` lists the commands")
