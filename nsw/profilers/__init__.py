"""Profilers: a file per profiler; pass -> command line, the files it will leave, how it fails.

Their names are in nsw/recipe/passes.py, where the recipe finds them too.
"""

from __future__ import annotations

import importlib
from importlib.resources import files
from typing import cast

from nsw.profilers.model import Profiled, Profiler, Request


def load_profiler(tool: str) -> Profiler:
    """The profiler's module."""
    from nsw.recipe import passes  # pydantic takes longer to load than many a report to read

    module = next(tools[tool] for tools in map(passes.profiler_modules, passes.PROFILERS) if tool in tools)
    return cast("Profiler", importlib.import_module(module))


def shell_functions_of_profiler(tool: str) -> str:
    """The functions of bash that a profiler brings along for the jobs, in a file beside it or its SHELL, if any."""
    file = files("nsw.profilers").joinpath(f"{tool}.sh")
    text = file.read_text(encoding="utf-8") if file.is_file() else getattr(load_profiler(tool), "SHELL", "")
    return f"\n{text}" if text else ""


__all__ = ["Profiled", "Profiler", "Request", "load_profiler", "shell_functions_of_profiler"]
