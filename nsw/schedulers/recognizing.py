"""Which batch system a machine has, by what the adapters tell of theirs: several have a command of the same name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.schedulers.create import adapter_of
from nsw.site.scheduler_and_transport_names import schedulers

if TYPE_CHECKING:
    from collections.abc import Collection

    from nsw.schedulers.adapter import Adapter


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a command is: a product, and the scheduler that drives it, empty where nsw has none for it."""

    product: str
    scheduler: str


def adapters() -> dict[str, Adapter]:
    """Every batch system that a sites file may name."""
    return {name: one for name in schedulers() if (one := adapter_of(name)) is not None}


def commands() -> set[str]:
    """The commands whose presence says something."""
    return {command for one in adapters().values() for command in (one.submit, one.known_by) if command}


def is_shared(adapter: Adapter) -> bool:
    """Whether another system has a command of the same name as this one's for submission."""
    others = (one for one in adapters().values() if type(one) is not type(adapter))
    return bool(adapter.relatives) or any(one.submit == adapter.submit for one in others)


def there(found: Collection[str]) -> list[str]:
    """The schedulers whose command for submission is among these, those first that no other system could have.

    Slurm's package brings a qsub of its own, so a command that several systems have counts only where it is alone. Of
    those that share it one is certain whose `known_by` is there.
    """
    some = {name: one for name, one in adapters().items() if one.submit in found}
    own = [name for name, one in some.items() if not is_shared(one)]
    return own or [name for name, one in some.items() if one.known_by in found] or list(some)


def owner_of(submit: str, printed: str) -> Owner | None:
    """Whose command for submission prints this when it is asked for its version; None where that cannot be told."""
    signs = [
        (Owner(product, known), sign)
        for name, one in adapters().items()
        if one.submit == submit
        for signs_of, known in ((one.products, name), (one.relatives, ""))
        for product, sign in signs_of.items()
    ]
    signs.sort(key=lambda sign: not sign[0].scheduler)  # what nsw drives before what only looks like it
    return next((owner for owner, sign in signs if re.search(sign, printed, re.IGNORECASE | re.MULTILINE)), None)
