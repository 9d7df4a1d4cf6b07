"""The profilers that a recipe may name, by kind of pass: a line each here, or an entry point of another package.

Another package registers a module as `nsw.profilers.model.Profiler` says, under KIND.TOOL, the kind timeline or host:

    [project.entry-points."nsw.profilers"]
    "host.likwid" = "likwid_nsw.profiler"
"""

from __future__ import annotations

from typing import Final

from nsw.resources import registered

GROUP: Final = "nsw.profilers"
AUTO: Final = "auto"  # the first of a kind that the site has

# kind of pass -> tool -> its module
PROFILERS: Final = {
    "timeline": {"nsys": "nsw.profilers.nsys", "nvprof": "nsw.profilers.nvprof"},
    "counters": {"ncu": "nsw.profilers.ncu", "nvprof": "nsw.profilers.nvprof"},
    "host": {
        "cprofile": "nsw.profilers.cprofile",
        "torch": "nsw.profilers.torch",
        "onednn": "nsw.profilers.onednn",
        "perf": "nsw.profilers.perf",
        "py-spy": "nsw.profilers.pyspy",
        "gprof": "nsw.profilers.gprof",
        "tau": "nsw.profilers.tau",
        "vtune": "nsw.profilers.vtune",
        "aps": "nsw.profilers.aps",
    },
}
PROGRAMS: Final = ("nsys", "ncu", "nvprof")  # those of nsw's own that a site must have
WITHIN_PYTHON: Final = frozenset({"cprofile", "torch", "onednn"})  # for which a site needs no program
HOST_PROGRAMS: Final = tuple(tool for tool in PROFILERS["host"] if tool not in WITHIN_PYTHON)
_OPEN: Final = ("timeline", "host")  # what a counters pass measures is told in each tool's own metric names


def of_kind(kind: str) -> dict[str, str]:
    """Tool -> module for a kind of pass; nsw's own come first."""
    own_modules = PROFILERS.get(kind, {})
    modules = dict(own_modules)
    for name, path in registered(GROUP).items() if kind in _OPEN else ():
        tool = name.removeprefix(f"{kind}.")
        if tool not in {name, AUTO, *own_modules}:
            modules[tool] = path.partition(":")[0]
    return modules


def module_of(tool: str) -> str:
    """The module of a profiler."""
    return next(tools[tool] for tools in map(of_kind, PROFILERS) if tool in tools)


def with_files() -> tuple[str, ...]:
    """The profilers that have a module here or in another package."""
    return tuple(dict.fromkeys(tool for tools in map(of_kind, PROFILERS) for tool in tools))


def on_a_site() -> tuple[str, ...]:
    """The profilers whose paths a site may tell, and whose versions jobs write down."""
    return tuple(dict.fromkeys(tool for tool in (*PROGRAMS, *with_files()) if tool not in WITHIN_PYTHON))
