"""Samples of call stacks, summed by function: how many hit it itself, and how many it was on the stack of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Hits", "Stacks"]

Frame = TypeVar("Frame")


@dataclass(slots=True)
class Hits:
    """What samples say of one function; weights are in the unit of the samples, such as cycles or ns."""

    samples: int = 0
    own_weight: float = 0
    total: float = 0


@dataclass(slots=True)
class Stacks(Generic[Frame]):
    """The functions of all stacks; one that calls itself is on a stack once."""

    hits: dict[Frame, Hits] = field(default_factory=dict)
    samples: int = 0
    weight: float = 0

    def add(self, frames: Sequence[Frame], samples: int = 1, weight: float | None = None) -> None:
        """Count a stack, the function that was hit first, its callers behind it."""
        weight = samples if weight is None else weight
        self.samples += samples
        self.weight += weight
        for frame in set(frames):
            self.hits.setdefault(frame, Hits()).total += weight
        hit = self.hits[frames[0]]
        hit.samples += samples
        hit.own_weight += weight

    def by_weight(self) -> Iterator[tuple[Frame, Hits]]:
        """The functions, those that take most first."""
        yield from sorted(self.hits.items(), key=lambda item: (-item[1].own_weight, -item[1].total))
