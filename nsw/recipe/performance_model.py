"""The recipe's model of an iteration: its operations, its bytes, and the NVTX ranges that time them."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from nsw.recipe.fields import AmountOrTemplate, Filled, Name, amount, or_template
from nsw.recipe.parsed import Parsed
from nsw.recipe.pass_base import Model

MEASURED = ("copies", "collectives")


def _bytes(value: object) -> Any:
    return value if value in MEASURED else or_template(partial(amount), value)


Bytes = Annotated[
    float | str,
    Parsed(
        _bytes, {"anyOf": [{"enum": list(MEASURED)}, {"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}
    ),
]


class ModelLink(Model):
    """Data that moves in an iteration: over PCIe, MPI, a file system."""

    ranges: list[Filled] = Field(min_length=1, description="NVTX ranges in which it moves.")
    clock: Literal["gpu", "cpu"] = Field(
        default="gpu", description="Whose time counts: gpu: of the work that the range launched; cpu: of the range."
    )
    bytes: Bytes = Field(
        description="Bytes of an iteration, a number or a formula; copies: those between host and GPU that were"
        " measured; collectives: those of NCCL or MPI."
    )


class PerformanceModel(Model):
    """An iteration on one GPU computes and moves data; its effective rates make a roofline."""

    flop: AmountOrTemplate = Field(description="Floating-point operations of an iteration on one GPU.")
    ranges: list[Filled] = Field(min_length=1, description="NVTX ranges that compute, timed by the GPU's work.")
    links: dict[Name, ModelLink] = Field(default={}, description="What moves, by a name such as pci or mpi.")
    iteration: Filled | None = Field(
        default=None, description="NVTX range that is an iteration: without it each range is one of each iteration."
    )
