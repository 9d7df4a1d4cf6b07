"""The whole program: its commands, in the order in which `nsw --help` shows them."""

from nsw.cli import commands_that_drive, commands_that_look  # noqa: F401  each adds its commands
from nsw.cli.application import app

__all__ = ["app"]
