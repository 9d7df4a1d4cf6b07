"""What other packages register with nsw: entry points of a group."""

from __future__ import annotations

from functools import cache
from typing import Any


def registered(group: str) -> dict[str, str]:
    """Name -> `module:name` of each entry point of a group, such as `nsw.schedulers`."""
    return {point.name: point.value for point in _all_entry_points().select(group=group)}


@cache
def _all_entry_points() -> Any:
    """Those of all groups; to look for one group reads the files of all packages as well."""
    from importlib.metadata import entry_points

    return entry_points()
