"""Which part of a Python profile is the import of modules: a price paid once, before the program does its work.

What importlib does itself and the code of imported modules is import. The time of a function that both call, and the
program too, is shared out by what the profile says of its callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Key: TypeAlias = tuple[str, int, str]  # file, line, function

_MODULE: Final = "<module>"
_IMPORTING: Final = ("<frozen importlib", "<frozen zipimport", "<frozen runpy")
_ROUNDS: Final = 100
_SETTLED: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Entry:
    """One function: its own time and that with its callees (s), and its own time by caller (s)."""

    self_s: float
    total_s: float
    callers: Mapping[Key, float]


def import_seconds(entries: Mapping[Key, Entry]) -> dict[Key, float] | None:
    """Of each function's own time the part within imports, in s; None where the profile tells no callers."""
    if not any(entry.callers for entry in entries.values()):
        return None
    modules = [key for key in entries if key[2] == _MODULE]
    program = max(modules, key=lambda key: entries[key].total_s, default=None)
    share = {key: 1.0 if _is_import(key) and key != program else 0.0 for key in entries}
    shared = [key for key in entries if not _is_import(key) and entries[key].callers]
    weights = {key: _weights(entries, key) for key in shared}
    for _ in range(_ROUNDS):
        change = 0.0
        for key in shared:
            found = sum(weight * share[caller] for caller, weight in weights[key].items())
            change = max(change, abs(found - share[key]))
            share[key] = found
        if change < _SETTLED:
            break
    return {key: entries[key].self_s * part for key, part in share.items()}


def _is_import(key: Key) -> bool:
    return key[2] == _MODULE or key[0].startswith(_IMPORTING)


def _weights(entries: Mapping[Key, Entry], key: Key) -> dict[Key, float]:
    """How much of a function's time each caller is charged with, together 1; recursion charges nobody."""
    callers = {c: max(s, 0.0) for c, s in entries[key].callers.items() if c != key and c in entries}
    whole = sum(callers.values())
    if whole <= 0:
        return dict.fromkeys(callers, 1 / len(callers)) if callers else {}
    return {caller: seconds / whole for caller, seconds in callers.items()}
