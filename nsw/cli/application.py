"""The program `nsw` as typer sees it, to which files of commands add theirs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from nsw import __version__
from nsw.cli.command_help import Command, Commands

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


def _version(wanted: bool) -> None:
    if wanted:
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
