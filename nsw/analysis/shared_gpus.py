"""Runs that were measured beside another one: at the same time, on the same host, on the same GPU."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MOST_AT_ONCE = 200  # runs on a host that are compared with the next one


@dataclass(frozen=True, slots=True)
class Span:
    """When and where a run used GPUs; times are Unix seconds of that host."""

    run: str
    host: str
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs at the same time on a host; `gpu` is one that both had, None where neither was given one of its own."""

    first: str
    second: str
    host: str
    gpu: str | None


def pairs(spans: Iterable[Span], gpus_of: Callable[[str], frozenset[str] | None]) -> list[Pair]:
    """The pairs of runs that may have shared a GPU.

    Args:
        spans: Of all runs that use GPUs.
        gpus_of: The GPUs that a run was given (CUDA_VISIBLE_DEVICES): an empty set, it saw all; None, nobody knows.
            Asked only of runs that another one overlapped.
    """
    found = []
    for one, other in _at_the_same_time(spans):
        mine, yours = gpus_of(one.run), gpus_of(other.run)
        if mine is None or yours is None:
            continue
        if both := mine & yours:
            found.append(Pair(one.run, other.run, one.host, min(both)))
        elif not mine and not yours:
            found.append(Pair(one.run, other.run, one.host, None))
    return found


def _at_the_same_time(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    for _, on_host in groupby(sorted(spans, key=attrgetter("host", "started", "run")), key=attrgetter("host")):
        going: list[Span] = []
        for span in on_host:
            going = [one for one in going[-_MOST_AT_ONCE:] if one.ended > span.started]
            yield from ((one, span) for one in going)
            going.append(span)


def sentences(found: list[Pair]) -> list[str]:
    """A sentence for each way to share, for a person; [] where nothing was shared."""
    sure, perhaps = [one for one in found if one.gpu is not None], [one for one in found if one.gpu is None]
    lines = []
    if sure:
        one = sure[0]
        lines.append(
            f"{one.first} and {one.second} ran at the same time on GPU {one.gpu} of {one.host}{_more(sure)}: their"
            " figures are those of two programs on one GPU; measure them again, one after the other"
        )
    if perhaps:
        one = perhaps[0]
        lines.append(
            f"{one.first} and {one.second} ran at the same time on {one.host}{_more(perhaps)}, and neither was given"
            " a GPU of its own (CUDA_VISIBLE_DEVICES is not set): they may have shared one; `whole_nodes: true` or"
            " `limits: {max_in_flight: 1}` of the site keeps runs apart"
        )
    return lines


def _more(some: list[Pair]) -> str:
    rest = len(some) - 1
    return f", as did {rest} more pair{'s' if rest > 1 else ''}" if rest else ""
