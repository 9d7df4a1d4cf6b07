"""Values of a recipe that may be expressions -> plain values for one case, each worked out once."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from nsw.errors import NswError
from nsw.plan.layout import LayoutError
from nsw.plan.model import Resources
from nsw.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nsw.recipe.expressions import Expression


_GPUS = 1  # of a node, where a recipe does not say how many


class UnresolvedError(NswError):
    """A value that cannot be worked out for a case, or that is none of its kind; `path` is where it is."""

    def __init__(self, path: tuple[str | int, ...], message: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@contextmanager
def standing_at(*path: str | int) -> Iterator[None]:
    """Errors inside are reported at this path of the recipe.

    Raises:
        UnresolvedError: Something did.
    """
    try:
        yield
    except LayoutError as fault:  # which knows its place
        raise UnresolvedError(fault.path, fault.message, fault.hint) from None
    except (Fault, NswError) as fault:
        raise UnresolvedError(path, fault.message, fault.hint) from None


class Resolver:
    """Evaluates expressions, remembering what the same inputs gave."""

    def __init__(self) -> None:
        self._parsed: dict[str, Expression] = {}
        self._values: dict[tuple[str, tuple[Any, ...]], Any] = {}
        self._resource_names: list[str] | None = None
        self._resources: dict[tuple[str, ...], Resources] = {}

    def parse(self, text: str) -> Expression:
        """The expression of a text."""
        expression = self._parsed.get(text)
        if expression is None:
            from nsw.recipe.expressions import Expression

            expression = self._parsed[text] = Expression.parse(text)
        return expression

    def value(self, value: Any, values: Mapping[str, Any]) -> Any:
        """A literal as it is; a text with `{{ }}` filled in."""
        if not isinstance(value, str) or "{" not in value:
            return value
        expression = self.parse(value)
        key = (value, tuple(repr(values.get(name)) for name in sorted(expression.names)))
        if key not in self._values:
            self._values[key] = expression.value(values)
        return self._values[key]

    def resources(self, requested: Any, site: Any, values: Mapping[str, Any]) -> Resources:
        """The resources of one case; cases that differ in nothing they are made of share them."""
        if self._resource_names is None:
            texts = [text for text in requested.model_dump().values() if isinstance(text, str) and "{" in text]
            self._resource_names = sorted({name for text in texts for name in self.parse(text).names})
        key = tuple(repr(values.get(name)) for name in self._resource_names)
        if key not in self._resources:
            self._resources[key] = resources(requested, site, values, self)
        return self._resources[key]


def resources(requested: Any, site: Any, values: Mapping[str, Any], resolver: Resolver) -> Resources:
    """The resources of one case, with what the site says where the recipe is silent; its tasks follow from the layout.

    Args:
        requested: The recipe's `resources`.
        site: The site, for queue and account.
        values: What expressions may name.
        resolver: Evaluates them.
    """
    from nsw.recipe.fields import flag, whole_number
    from nsw.recipe.units import parse_duration, parse_size

    def get(name: str, parse: Callable[[Any], Any] = str) -> Any:
        with standing_at("resources", name):
            value = resolver.value(getattr(requested, name), values)
            return None if value is None else parse(value)

    at_least_one = partial(whole_number, minimum=1)
    nodes = get("nodes", at_least_one)
    requested_gpus = get("gpus", whole_number)
    gpus = _GPUS * nodes if requested_gpus is None else requested_gpus
    return Resources(
        nodes=nodes,
        gpus=gpus,
        cpus_per_task=get("cpus_per_task", at_least_one),
        memory_bytes=get("memory", _unless_text(parse_size)),
        time_s=get("time", _unless_text(parse_duration)),
        exclusive=get("exclusive", flag),
        queue=get("queue") or get("partition") or site.queue or site.partition,
        account=get("account") or site.account,
        qos=get("qos") or site.qos,
        gres=get("gres") or site_gres(site, nodes, gpus, values, resolver),
        reservation=get("reservation"),
        constraint=get("constraint"),
        extra=(*site.extra, *requested.extra),
    )


def site_gres(site: Any, nodes: int, gpus: int, values: Mapping[str, Any], resolver: Resolver) -> str | None:
    """The site's own words for GPUs; Slurm counts them a node. None where it has none, or no GPU is asked for."""
    if site.gres is None or gpus == 0:
        return None
    if gpus % nodes:
        with standing_at("resources", "gpus"):
            raise NswError(
                f"{gpus} GPUs cannot be divided equally among {nodes} nodes, as this site's gres asks",
                hint=f"such as gpus: {-(-gpus // nodes) * nodes}",
            )
    return str(resolver.value(site.gres, {**values, "gpus": gpus // nodes, "nodes": nodes}))


def _unless_text(parse: Callable[[Any], float]) -> Callable[[Any], int]:
    """A number was parsed when the recipe was loaded; text is what an expression gave."""
    return lambda value: int(parse(value)) if isinstance(value, str) else int(value)
