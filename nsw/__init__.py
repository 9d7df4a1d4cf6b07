"""nsw: GPU profiling campaigns on clusters, from a recipe to an answer with evidence.

`nsw.run` carries a recipe out, `nsw.open` reads a campaign, `nsw.read` reads reports of any profiler, `nsw.compare`
compares them; docs/python.md shows each. Every error that nsw raises for a reason is a class of `nsw.errors`.
"""

import os
import sys


def _is_command(words: "list[str]", given: "list[str]") -> bool:
    """Whether this process is `nsw` or `python -m nsw`, and not a program that imports nsw."""
    if words[:1] != ["-m"]:  # so while Python looks for the module
        return bool(words) and words[0].rpartition("/")[2] == "nsw"
    word = given[-len(words)]
    return (word.partition("m")[2] if word.startswith("-") else word).partition(".")[0] == "nsw"


if _is_command(sys.argv, sys.orig_argv):
    # Ctrl-C prints no traceback, neither while modules are imported nor where nothing can catch it, as in callbacks of
    # the import system. Here, since it may come from now on.
    _hooks = sys.excepthook, sys.unraisablehook
    sys.excepthook = lambda kind, *more: (
        os._exit(130) if issubclass(kind, KeyboardInterrupt) else _hooks[0](kind, *more)
    )
    sys.unraisablehook = lambda it: os._exit(130) if issubclass(it.exc_type, KeyboardInterrupt) else _hooks[1](it)

from nsw.safe_import_path import leave_folder_of_module  # noqa: E402

leave_folder_of_module()  # before any other import

from typing import TYPE_CHECKING, Any  # noqa: E402

from nsw.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from nsw import errors as errors
    from nsw import events as events
    from nsw.api.driving import Planned as Planned
    from nsw.api.driving import Running as Running
    from nsw.api.driving import adopt as adopt
    from nsw.api.driving import attach as attach
    from nsw.api.driving import dry_run as dry_run
    from nsw.api.driving import reread as reread
    from nsw.api.driving import resume as resume
    from nsw.api.driving import retry as retry
    from nsw.api.driving import run as run
    from nsw.api.history import history as history
    from nsw.api.results import Campaign as Campaign
    from nsw.api.results import Campaigns as Campaigns
    from nsw.api.results import Compared as Compared
    from nsw.api.results import Reports as Reports
    from nsw.api.results import compare as compare
    from nsw.api.results import open_all as open_all
    from nsw.api.results import open_campaign as open  # noqa: A004  nsw.open("campaign") reads as it should
    from nsw.api.results import read as read

__all__ = [
    "Campaign", "Campaigns", "Compared", "Planned", "Reports", "Running", "__version__", "adopt", "attach", "compare",
    "dry_run", "errors", "events", "history", "open", "open_all", "read", "reread", "resume", "retry", "run",
]  # fmt: skip

_FROM = {
    "Campaign": "api.results:Campaign",
    "Campaigns": "api.results:Campaigns",
    "Compared": "api.results:Compared",
    "Planned": "api.driving:Planned",
    "Reports": "api.results:Reports",
    "Running": "api.driving:Running",
    "adopt": "api.driving:adopt",
    "attach": "api.driving:attach",
    "compare": "api.results:compare",
    "dry_run": "api.driving:dry_run",
    "errors": "errors",
    "events": "events",
    "history": "api.history:history",
    "open": "api.results:open_campaign",
    "open_all": "api.results:open_all",
    "read": "api.results:read",
    "reread": "api.driving:reread",
    "resume": "api.driving:resume",
    "retry": "api.driving:retry",
    "run": "api.driving:run",
}


if not TYPE_CHECKING:  # for mypy there are the public names and no others

    def __getattr__(name: str) -> Any:
        """A public name, imported when it is used: `nsw --version` must not pay for it."""
        location = _FROM.get(name)
        if location is None:
            raise AttributeError(f"module 'nsw' has no attribute {name!r}")
        from importlib import import_module

        module, _, attribute = location.partition(":")
        imported = import_module(f"nsw.{module}")
        return getattr(imported, attribute) if attribute else imported


def __dir__() -> list[str]:
    """The public names, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
