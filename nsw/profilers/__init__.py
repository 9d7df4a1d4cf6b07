"""Profilers: a file per profiler; pass -> command line, the files it will leave, how it fails."""

from __future__ import annotations

import importlib
from typing import cast

from nsw.profilers.model import Profiled, Profiler, Request

# kind of pass -> tools that can do it; `auto` takes the first that the site has
BY_KIND: dict[str, tuple[str, ...]] = {
    "timeline": ("nsys", "nvprof"),
    "counters": ("ncu", "nvprof"),
    "host": ("cprofile", "torch"),
}
# tools that a recipe may name, whose files come later
LATER: dict[str, tuple[str, ...]] = {
    "host": ("vtune", "aps", "perf"),
}
_MODULES = {name: f"nsw.profilers.{name}" for names in BY_KIND.values() for name in names}


def load(tool: str) -> Profiler:
    """The profiler's module."""
    return cast("Profiler", importlib.import_module(_MODULES[tool]))


__all__ = ["BY_KIND", "LATER", "Profiled", "Profiler", "Request", "load"]
