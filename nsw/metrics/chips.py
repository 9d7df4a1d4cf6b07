"""The chips of GPUs: their names, compute capabilities and products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from nsw.metrics.data_files import rows

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip.

    Attributes:
        name: As ncu names it, such as gh100.
        capability: Compute capability as (major, minor); None: not published.
        names: The chip whose list of metric names holds for it; None: Nsight Compute does not support it.
        products: GPUs that have it.
    """

    name: str
    capability: tuple[int, int] | None
    names: str | None
    products: tuple[str, ...]


@cache
def chips() -> Mapping[str, Chip]:
    """Every chip by its name, oldest first."""
    return {row["chip"]: _chip(row) for row in rows("chips.csv")}


def _chip(row: Mapping[str, str]) -> Chip:
    major, _, minor = row["capability"].partition(".")
    capability = (int(major), int(minor)) if major else None
    products = tuple(p.strip() for p in row["products"].split(",") if p.strip())
    return Chip(row["chip"], capability, row["names"] or None, products)


def find_chip(text: str | None) -> Chip | None:
    """The chip of a name (`gh100`, `GH100`), a capability (`9.0`) or a product (`NVIDIA H100 80GB HBM3`).

    Of a capability that several chips share it is the first, whose metric names are those of the others.
    """
    if text is None:
        return None
    wanted = text.strip().lower()
    if wanted in chips():
        return chips()[wanted]
    for chip in chips().values():
        if chip.capability and wanted == "{}.{}".format(*chip.capability):
            return chip
    words = wanted.replace("-", " ").split()
    found = [(len(product), chip) for chip in chips().values() for product in chip.products if _holds(words, product)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _holds(words: list[str], product: str) -> bool:
    """Whether all words of a product's name are among the words of a device's, in their order."""
    rest = iter(words)
    return all(word in rest for word in product.lower().replace("-", " ").split())
