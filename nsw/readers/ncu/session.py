"""The session page of Nsight Compute: how and where the report was made -> facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.tables.data import Row

_DEVICE: Final = re.compile(r"Device (\d{1,6})")
_KEYS: Final = {"display_name": "gpu_name", "display_driver_version": "driver_version"}
_VERSION: Final = re.compile(r"(?<!\d)\d++(?:\.\d+)+")  # each number is tried once


def session_fact(header: Sequence[str], row: Sequence[str], rank: int | None) -> list[Row]:
    """The facts of one line: one for each device under `Device Attribute`, else one."""
    if len(row) < 2 or not row[0].strip():
        return []
    if header[0] == "Process Id":
        pid = row[0].strip()
        if not (pid.isascii() and pid.isdigit() and len(pid) < 19) or not row[1].strip():
            return []
        return [{"rank": rank, "key": "process_name", "text": row[1].strip(), "pid": int(pid)}]
    if header[0] != "Device Attribute":
        return [_fact(row[0], row[1], rank, None)] if row[1].strip() else []
    return [
        _fact(row[0], cell, rank, int(found[1]) if (found := _DEVICE.fullmatch(title.strip())) else None)
        for title, cell in zip(header[1:], row[1:], strict=False)
        if cell.strip()
    ]


def tool_version(facts: Iterable[Row]) -> str | None:
    """The version of the ncu that made the report, as its session page tells."""
    for fact in facts:
        if fact["key"] == "nsight_compute_target" and (found := _VERSION.search(fact.get("text") or "")):
            return found[0]
    return None


def _fact(name: str, cell: str, rank: int | None, device: int | None) -> Row:
    key = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")[:80]
    cell = cell.strip()
    fact: Row = {"rank": rank, "device": device, "key": _KEYS.get(key, key)}
    whole = cell.isascii() and cell.isdigit() and len(cell) < 16
    return fact | ({"value": float(cell)} if whole else {"text": cell})
