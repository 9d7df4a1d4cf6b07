"""What other packages register with nsw: entry points of a group."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=8)
def registered(group: str) -> dict[str, str]:
    """Name -> `module:name` of each entry point of a group, such as `nsw.schedulers`."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}
