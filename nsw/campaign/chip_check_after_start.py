"""Whether a counters pass can be measured on the GPU that the campaign's jobs met, where its site names no chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nsw.metrics import check, find_chip, unsupported

if TYPE_CHECKING:
    from nsw.campaign.locked_choices import Basis
    from nsw.recipe.passes import CountersPass


@dataclass(frozen=True, slots=True)
class LateCheck:
    """What is wrong with a pass: `fault` if nothing of it can be measured, else a warning for each such metric."""

    fault: str | None = None
    warnings: tuple[str, ...] = ()


def late_check(one: CountersPass, tool: Literal["ncu", "nvprof"], met: Basis) -> LateCheck:
    """Check the tool and the metrics of a pass against the GPU and the versions that the jobs met."""
    chip = find_chip(met.chip)
    if chip is None:
        return LateCheck()
    if why := unsupported(tool, chip, met.tools.get(tool)):
        return LateCheck(f"{why} (the jobs ran on {met.chip})")
    found = check(one.metrics, chip, tool, replay=one.replay)
    faults = [fault.message + (f" ({fault.hint})" if fault.hint else "") for fault in found]
    if len(faults) == len(one.metrics):
        return LateCheck(f"{'; '.join(faults)} (the jobs ran on {met.chip})")
    return LateCheck(None, tuple(faults))
