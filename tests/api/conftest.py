"""Campaigns of small shell programs on this machine, driven from Python within this process."""

from tests.cli.conftest import home, recipe

__all__ = ["home", "recipe"]
