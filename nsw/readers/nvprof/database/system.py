"""Records of GPU clocks, temperature, power and fan (--system-profiling on) -> facts."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.nvprof.vocabulary import SAMPLES, Sampled

if TYPE_CHECKING:
    from nsw.readers.nvprof.database.connection import Database

# environmentKind of a database's records -> the quantities that its bytes begin with, each of four.
_RECORDS: Final = dict(enumerate(SAMPLES.values(), 1))
_ENVIRONMENT: Final = "CUPTI_ACTIVITY_KIND_ENVIRONMENT"


def system_facts(database: Database) -> list[dict[str, Any]]:
    """The facts of a database's records; those of no known kind, or that are damaged, are told."""
    if not database.has(_ENVIRONMENT, "deviceId", "environmentKind", "data"):
        return []
    sampled, lost = Sampled(), 0
    for device, kind, data in database.rows(f"SELECT deviceId, environmentKind, data FROM {_ENVIRONMENT}"):  # noqa: S608
        quantities = _RECORDS.get(kind, ())
        if not quantities or not isinstance(data, bytes) or len(data) < 8 or not isinstance(device, int):
            lost += 1
            continue
        for quantity, value in zip(quantities, struct.unpack_from("<2I", data), strict=False):
            sampled.add_sample({"device": device}, quantity, float(value))
    if lost:
        database.report.warn(f"not read: {lost} samples of clocks, temperatures and power that are damaged")
    return sampled.facts()
